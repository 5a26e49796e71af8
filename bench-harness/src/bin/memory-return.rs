//! The memory-return tables: builds the peers, measures, and writes tables and charts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use mpp_bench::document::command_line;
use mpp_bench::memory_return::chart::charts;
use mpp_bench::memory_return::measure::{Plan, measure};
use mpp_bench::memory_return::plan::{OFF, PEERS, SPEED, contenders, tasks};
use mpp_bench::memory_return::results::{Results, SCHEMA, VERSION};
use mpp_bench::memory_return::table;
use mpp_bench::peers::choice::{Choice, Missing, beside};
use mpp_bench::peers::{OURS, Peer};
use mpp_bench::performance::machine::Machine;
use mpp_bench::performance::measure::{self as performance, Task};
use mpp_bench::performance::results::{self, Command, PeerState, Results as Speed};
use mpp_bench::progress::Bar;
use regex::Regex;

/// Measures what comes back to the system under this allocator and its peers, when, and what that costs.
///
/// A peer that cannot be built, crashes or hangs is named, and the others are measured.
#[derive(Parser)]
#[command(name = "memory-return", version)]
struct Args {
    /// One round (unless told) and shorter runs, in ten minutes; the document tells that it was used
    #[arg(long)]
    quick: bool,
    /// How often each row is measured under each peer [default: 3, quick: 1]
    #[arg(long)]
    rounds: Option<usize>,
    /// Only rows whose name or group matches this expression (`speed` is a group, too)
    #[arg(long, value_name = "REGEX")]
    only: Option<Regex>,
    #[command(flatten)]
    choice: Choice,
    /// The program mpp-workload [default: beside this program]
    #[arg(long, value_name = "PATH")]
    workload: Option<PathBuf>,
    /// Kill a run after this many seconds
    #[arg(long, default_value_t = 150, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Decides orders and operations
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// For output of programs
    #[arg(long, value_name = "FOLDER", default_value = "target/memory-return")]
    work: PathBuf,
    /// Where libraries of peers are, or will be when they have been built
    #[arg(long, value_name = "FOLDER", default_value = "target/performance/peers")]
    built: PathBuf,
    /// Where the measurements go [default: results.json in the folder of --work]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The document whose tables are replaced, with charts in `images` beside it; without it tables are printed, and charts go to --work
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Only make tables and charts anew from measurements that are there
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "rounds", "only", "peer", "peers", "json"])]
    render: Option<PathBuf>,
    /// Only list the rows
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(complete) if complete => ExitCode::SUCCESS,
        // The tables are there, but something was not measured.
        Ok(_) => ExitCode::from(3),
        Err(message) => {
            eprintln!("memory-return: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything was measured.
fn run(mut args: Args) -> Result<bool, String> {
    let work = folder(&args.work)?;
    if let Some(path) = &args.render {
        return tell(&args, &work, &read(path)?).map(|()| true);
    }
    if args.list {
        tasks(&contenders(vec![Peer::glibc()]), args.quick, |_| true)
            .iter()
            .for_each(|task| println!("{:24} {:10} {}", task.name, task.group.name(), task.arguments.join(" ")));
        return Ok(true);
    }
    // A document that cannot take the tables should be known before an hour is spent on them.
    if let Some(path) = &args.markdown {
        let document = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        spliced(document, &Results::default()).map_err(|message| format!("{}: {message}", path.display()))?;
    }
    args.choice.peers.get_or_insert_with(|| PEERS.iter().map(|&name| name.to_owned()).collect());
    let note = |message: &str| eprintln!("memory-return: {message}");
    let (peers, missing) = args.choice.all(&folder(&args.built)?, note)?;
    let results = measured(&args, &work, contenders(peers), missing)?;
    let json = args.json.clone().unwrap_or_else(|| work.join("results.json"));
    let text = serde_json::to_string(&results).map_err(|error| error.to_string())?;
    std::fs::write(&json, text + "\n").map_err(|error| format!("{}: {error}", json.display()))?;
    note(&format!("measurements are in {}", json.display()));
    tell(&args, &work, &results)?;
    let mut cells = results.rows.iter().flat_map(|row| &row.cells);
    Ok(results.contenders.iter().all(|peer| peer.problem.is_none()) && cells.all(|cell| cell.problem.is_none()))
}

/// A folder, made if it is not there.
fn folder(path: &Path) -> Result<PathBuf, String> {
    let made = std::fs::create_dir_all(path).and_then(|()| path.canonicalize());
    made.map_err(|error| format!("{}: {error}", path.display()))
}

/// Measurements in a file.
fn read(path: &Path) -> Result<Results, String> {
    let error = |message: String| format!("{}: {message}", path.display());
    let text = std::fs::read_to_string(path).map_err(|cause| error(cause.to_string()))?;
    let results: Results = serde_json::from_str(&text).map_err(|cause| error(cause.to_string()))?;
    let is_known = (results.schema.as_str(), results.schema_version) == (SCHEMA, VERSION);
    if is_known { Ok(results) } else { Err(error("not measurements of this version".to_owned())) }
}

fn measured(args: &Args, work: &Path, contenders: Vec<Peer>, missing: Vec<Missing>) -> Result<Results, String> {
    let start = Instant::now();
    let is_wanted = |name: &str| args.only.as_ref().is_none_or(|only| only.is_match(name));
    let mut plan = Plan {
        tasks: tasks(&contenders, args.quick, is_wanted),
        contenders,
        rounds: args.rounds.unwrap_or(if args.quick { 1 } else { 3 }).max(1),
        seed: args.seed,
        limit: Duration::from_secs(args.timeout),
        workload: args.workload.clone().or_else(|| beside("mpp-workload").ok()).unwrap_or_default(),
        folder: work.to_owned(),
    };
    if plan.tasks.is_empty() && !is_wanted("speed") {
        return Err("no row matches".to_owned());
    }
    let mut machine = Machine::this();
    let mut rows = measure(&plan, &mut Bar::new("memory-return"));
    let command = Command { line: command_line("scripts/memory-return"), rounds: plan.rounds };
    let speed = is_wanted("speed").then(|| speed(args, &plan, &machine, &command)).flatten();
    machine.ends();
    let state =
        |name: &str, origin: &str| PeerState { name: name.to_owned(), origin: origin.to_owned(), problem: None };
    let mut states: Vec<_> = plan.contenders.drain(..).map(|peer| state(&peer.name, &peer.origin)).collect();
    for (name, problem) in missing {
        states.push(PeerState { problem: Some(problem), ..state(&name, "") });
        rows.iter_mut().for_each(|row| row.cells.push(Default::default()));
    }
    Ok(Results {
        schema: SCHEMA.to_owned(),
        schema_version: VERSION,
        command,
        seconds: start.elapsed().as_secs(),
        machine,
        contenders: states,
        rows,
        speed,
    })
}

/// Rows of the performance table, with returning on and off.
fn speed(args: &Args, plan: &Plan, machine: &Machine, command: &Command) -> Option<Speed> {
    let pair = [OURS, OFF].iter().filter_map(|name| plan.contenders.iter().find(|peer| peer.name == *name).cloned());
    let peers: Vec<_> = pair.collect();
    let (rounds, repeats, budget_ms) = if args.quick { (7, 5, 300) } else { (15, 7, 1_000) };
    let plan = performance::Plan {
        tasks: Task::workloads().into_iter().filter(|task| SPEED.contains(&task.name.as_str())).collect(),
        rounds,
        seed: args.seed,
        limit: plan.limit,
        repeats,
        budget_ms,
        workload: plan.workload.clone(),
        folder: plan.folder.clone(),
        peers,
    };
    (plan.peers.len() == 2).then(|| {
        let (rows, peers) = performance::measure(&plan, &mut Bar::new("memory-return, speed"));
        Speed {
            schema: results::SCHEMA.to_owned(),
            schema_version: results::VERSION,
            commands: vec![Command { rounds, ..command.clone() }],
            machine: machine.clone(),
            seed: plan.seed,
            peers,
            rows,
        }
    })
}

/// The document with all tables in their places.
fn spliced(document: String, results: &Results) -> Result<String, String> {
    table::parts(results).iter().try_fold(document, |document, (place, text)| place.splice(&document, text))
}

/// Writes tables and charts.
fn tell(args: &Args, work: &Path, results: &Results) -> Result<(), String> {
    let images = match &args.markdown {
        Some(path) => folder(&path.with_file_name("images"))?,
        None => work.to_owned(),
    };
    for (name, text) in charts(results) {
        std::fs::write(images.join(&name), text).map_err(|error| format!("{name}: {error}"))?;
    }
    let Some(path) = &args.markdown else {
        table::parts(results).iter().for_each(|(place, text)| println!("## {}\n{text}", place.0));
        return Ok(());
    };
    let error = |message: String| format!("{}: {message}", path.display());
    let document = std::fs::read_to_string(path).map_err(|cause| error(cause.to_string()))?;
    std::fs::write(path, spliced(document, results).map_err(error)?).map_err(|cause| error(cause.to_string()))
}
