//! Runs a plan. Whoever crashes, hangs, damages blocks or is not what it should be is noted, and the rest goes on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mpp_workloads::measured::catalogue;
use serde_json::Value;

use super::plan::{self, Run};
use super::programs::Program;
use super::proof;
use super::results::{Cell, PeerState, Row, Sample, Unit};
use crate::child::{self, End, Job, Usage};
use crate::peers::Peer;
use crate::progress::Watch;

/// After as many rows in which a peer hung it is given up: each costs the whole limit.
const HANGS: usize = 3;

/// The group of the real programs.
pub const PROGRAMS: &str = "programs";

/// A row to be measured.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// What is run.
    pub work: Work,
}

/// What a row runs.
#[derive(Clone, Debug)]
pub enum Work {
    /// `mpp-workload` with these arguments.
    Workload(Vec<String>),
    /// A real program.
    Program(Program),
    /// Nothing, for this reason.
    Missing(String),
}

impl Task {
    /// The rows of the catalogue.
    #[must_use]
    pub fn workloads() -> Vec<Self> {
        let task = |row: catalogue::Row| Self {
            name: row.name,
            group: row.group.name().to_owned(),
            work: Work::Workload(row.arguments),
        };
        catalogue::rows().into_iter().map(task).collect()
    }

    /// The real programs whose name is `wanted`, with their inputs in `folder`.
    #[must_use]
    pub fn programs(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<Self> {
        let task = |(name, program): (&str, Result<Program, String>)| Self {
            name: name.to_owned(),
            group: PROGRAMS.to_owned(),
            work: program.map_or_else(Work::Missing, Work::Program),
        };
        super::programs::programs(folder, wanted).into_iter().map(task).collect()
    }

    const fn unit(&self) -> Unit {
        if matches!(self.work, Work::Workload(_)) { Unit::Ns } else { Unit::Seconds }
    }
}

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The rows.
    pub tasks: Vec<Task>,
    /// The allocators.
    pub peers: Vec<Peer>,
    /// How often each pair of both is measured.
    pub rounds: usize,
    /// Decides the order, and the operations of workloads.
    pub seed: u64,
    /// Wall time of one run at most.
    pub limit: Duration,
    /// Repeats inside each run of a workload.
    pub repeats: u32,
    /// Wall time in milliseconds after which a workload starts no further repeat.
    pub budget_ms: u64,
    /// The program `mpp-workload`.
    pub workload: PathBuf,
    /// For output of programs.
    pub folder: PathBuf,
}

/// Measures. Returns the rows, and the peers as they stand in the end.
pub fn measure(plan: &Plan, watch: &mut dyn Watch) -> (Vec<Row>, Vec<PeerState>) {
    let mut state = State::new(plan);
    let runs = plan::schedule(plan.tasks.len(), plan.peers.len(), plan.rounds, plan.seed);
    watch.starts(runs.len() + plan.tasks.len() * plan.peers.len());
    // The proof of programs is a run of its own, which also brings files into memory.
    for row in 0..plan.tasks.len() {
        for peer in 0..plan.peers.len() {
            state.run(plan, Run { round: 0, row, peer }, true, watch);
        }
    }
    for run in runs {
        state.run(plan, run, false, watch);
    }
    (state.rows, state.peers)
}

/// Runs a task once under a peer, as it is measured. Processor time of the whole program.
///
/// # Errors
/// A sentence when it does not end well.
pub fn once(plan: &Plan, task: &Task, peer: &Peer) -> Result<Duration, String> {
    let outcome = match &task.work {
        Work::Missing(reason) => return Err(reason.clone()),
        Work::Workload(arguments) => {
            let numbers = [("--repeats", plan.repeats.to_string()), ("--budget-ms", plan.budget_ms.to_string())];
            let numbers = numbers.into_iter().flat_map(|(flag, number)| [flag.to_owned(), number]);
            let arguments: Vec<_> = arguments.iter().cloned().chain(numbers).collect();
            run_well(&workload_job(plan, &arguments, peer)).map(|usage| usage.cpu)
        }
        Work::Program(program) => {
            run_program(plan, program, peer, false).map(|figure| Duration::from_secs_f64(figure.value))
        }
    };
    outcome.map_err(|failure| failure.to_string())
}

struct State {
    rows: Vec<Row>,
    peers: Vec<PeerState>,
    /// What each row reads back, once known.
    checksums: Vec<Option<u64>>,
    hangs: Vec<usize>,
}

/// What a run gave.
struct Figure {
    value: f64,
    peak_rss: Option<u64>,
    checksum: Option<u64>,
}

impl State {
    fn new(plan: &Plan) -> Self {
        let row = |task: &Task| Row {
            name: task.name.clone(),
            group: task.group.clone(),
            unit: task.unit(),
            problem: if let Work::Missing(reason) = &task.work { Some(reason.clone()) } else { None },
            cells: vec![Cell::default(); plan.peers.len()],
        };
        let peer = |peer: &Peer| PeerState { name: peer.name.clone(), origin: peer.origin.clone(), problem: None };
        Self {
            rows: plan.tasks.iter().map(row).collect(),
            peers: plan.peers.iter().map(peer).collect(),
            checksums: vec![None; plan.tasks.len()],
            hangs: vec![0; plan.peers.len()],
        }
    }

    fn run(&mut self, plan: &Plan, run: Run, proof: bool, watch: &mut dyn Watch) {
        let (task, peer) = (&plan.tasks[run.row], &plan.peers[run.peer]);
        watch.runs(&task.name, &peer.name);
        let row = &self.rows[run.row];
        if self.peers[run.peer].problem.is_some() || row.problem.is_some() || row.cells[run.peer].problem.is_some() {
            return;
        }
        let figure = match &task.work {
            Work::Missing(_) => return,
            Work::Workload(arguments) if proof => prove_workload(plan, arguments, peer),
            Work::Workload(arguments) => run_workload(plan, arguments, peer),
            Work::Program(program) => run_program(plan, program, peer, proof),
        };
        let figure = figure.and_then(|figure| {
            let expected = self.checksums[run.row];
            match (figure.checksum, expected) {
                (Some(found), Some(expected)) if found != expected => {
                    Err(Failure::Other(format!("it read back {found}, others {expected}")))
                }
                _ => Ok(figure),
            }
        });
        let cell = &mut self.rows[run.row].cells[run.peer];
        match figure {
            Ok(Figure { value, peak_rss, checksum }) => {
                self.checksums[run.row] = self.checksums[run.row].or(checksum);
                if !proof {
                    cell.samples.push(Sample { round: run.round, value, peak_rss });
                }
            }
            Err(failure) => {
                watch.notes(&format!("{}, {}: not measured: {failure}", task.name, peer.name));
                cell.problem = Some(failure.to_string());
                if matches!(failure, Failure::Hung(_)) {
                    self.hangs[run.peer] += 1;
                    if self.hangs[run.peer] == HANGS {
                        watch.notes(&format!("{}: given up, it hung in {HANGS} rows", peer.name));
                        self.peers[run.peer].problem = Some(format!("given up, it hung in {HANGS} rows"));
                    }
                }
            }
        }
    }
}

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("hung: no end after {0:?}")]
    Hung(Duration),
    #[error("{0}")]
    Other(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Other(message)
    }
}

/// Runs a job that must end well.
fn run_well(job: &Job) -> Result<Usage, Failure> {
    let usage = child::run(job).map_err(|error| Failure::Other(format!("{}: {error}", job.program.display())))?;
    let words = || child::last_words(&job.output);
    match usage.end {
        End::Status(0) => Ok(usage),
        End::Status(status) => Err(Failure::Other(format!("ended with status {status}{}", words()))),
        End::Signal(signal) => Err(Failure::Other(format!("killed by signal {signal}{}", words()))),
        End::TimedOut => Err(Failure::Hung(job.limit)),
    }
}

fn workload_job(plan: &Plan, arguments: &[String], peer: &Peer) -> Job {
    let (program, arguments) = peer.command(&plan.workload, arguments);
    Job {
        program,
        arguments,
        environment: peer.environment(),
        input: None,
        folder: None,
        output: plan.folder.join("output"),
        limit: plan.limit,
        client: None,
    }
}

/// The row, tiny: does it run, is `malloc` where it should be, and what does it read back?
fn prove_workload(plan: &Plan, arguments: &[String], peer: &Peer) -> Result<Figure, Failure> {
    let small = ["--scale", "0.01", "--repeats", "1", "--repeat-ms", "1"].map(str::to_owned);
    peer.clear_evidence();
    let figure = one_workload(plan, [arguments, &small].concat(), peer)?;
    peer.check_evidence()?;
    // A smaller run reads back something else.
    Ok(Figure { checksum: None, ..figure })
}

fn run_workload(plan: &Plan, arguments: &[String], peer: &Peer) -> Result<Figure, Failure> {
    let numbers = [("--repeats", u64::from(plan.repeats)), ("--seed", plan.seed), ("--budget-ms", plan.budget_ms)];
    let numbers = numbers.iter().flat_map(|(flag, number)| [(*flag).to_owned(), number.to_string()]);
    one_workload(plan, arguments.iter().cloned().chain(numbers).collect(), peer)
}

fn one_workload(plan: &Plan, arguments: Vec<String>, peer: &Peer) -> Result<Figure, Failure> {
    let job = workload_job(plan, &arguments, peer);
    run_well(&job)?;
    let text = std::fs::read_to_string(&job.output).map_err(|error| error.to_string())?;
    // A library may print something of its own.
    let line = text.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    let line: Value = serde_json::from_str(line).map_err(|error| format!("its line is no JSON: {error}"))?;
    let origin = line["malloc_from"].as_str().unwrap_or_default();
    if peer.wrapper.is_empty() && !peer.is_in(origin) {
        return Err(Failure::Other(format!("its malloc is in {origin}")));
    }
    let value = line["ns"].as_f64().filter(|&ns| ns > 0.0).ok_or_else(|| "its line has no figure".to_owned())?;
    Ok(Figure { value, peak_rss: line["peak_rss"].as_u64(), checksum: line["checksum"].as_u64() })
}

fn run_program(plan: &Plan, program: &Program, peer: &Peer, proof: bool) -> Result<Figure, Failure> {
    let bindings = plan.folder.join("bindings");
    let mut environment = [program.environment.clone(), peer.environment()].concat();
    let by_loader = proof && peer.wrapper.is_empty();
    if by_loader {
        proof::clear(&bindings)?;
        environment.extend(proof::environment(&bindings));
    }
    if proof {
        peer.clear_evidence();
    }
    let (command, arguments) = peer.command(&program.program, &program.arguments);
    let job = Job {
        program: command,
        arguments,
        environment,
        input: program.input.clone(),
        folder: Some(program.folder.clone()),
        output: plan.folder.join("output"),
        limit: plan.limit,
        client: program.client.clone(),
    };
    let usage = run_well(&job)?;
    if by_loader {
        proof::check(&bindings, peer)?;
    }
    if proof {
        peer.check_evidence()?;
    }
    Ok(Figure { value: usage.cpu.as_secs_f64(), peak_rss: usage.peak_rss, checksum: None })
}
