//! The performance table: builds the peers, measures, and writes what came out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use mpp_bench::document::command_line;
use mpp_bench::peers::Peer;
use mpp_bench::peers::choice::{Choice, beside};
use mpp_bench::performance::machine::Machine;
use mpp_bench::performance::measure::{PROGRAMS, Plan, Task, measure};
use mpp_bench::performance::results::{Command, PeerState, Results, SCHEMA, VERSION};
use mpp_bench::performance::table::{self, PLACE};
use mpp_bench::progress::Bar;
use regex::Regex;

/// Measures this allocator and its peers in the same rows, interleaved, and writes the figures as JSON and as Markdown.
///
/// A peer that cannot be built, crashes or hangs is named, and the others are measured.
#[derive(Parser)]
#[command(name = "performance", version)]
struct Args {
    /// Fewer rounds (unless told) and shorter runs, for a first look or a busy day; the document tells that it was used
    #[arg(long)]
    quick: bool,
    /// How often each row is measured under each peer [default: 9, quick: 3]
    #[arg(long)]
    rounds: Option<usize>,
    /// Only rows whose name or group matches this expression
    #[arg(long, value_name = "REGEX")]
    only: Option<Regex>,
    #[command(flatten)]
    choice: Choice,
    /// The program mpp-workload [default: beside this program]
    #[arg(long, value_name = "PATH")]
    workload: Option<PathBuf>,
    /// Kill a run after this many seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Decides orders and operations
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// For libraries of peers, inputs and output of programs
    #[arg(long, value_name = "FOLDER", default_value = "target/performance")]
    work: PathBuf,
    /// Where the measurements go [default: results.json in the folder of --work]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The document whose tables are replaced; without it they are printed
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Only make the tables anew from measurements that are there; of several files, the tables have the rows of all
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "rounds", "only", "peer", "peers", "json"])]
    render: Vec<PathBuf>,
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
            eprintln!("performance: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything was measured.
fn run(args: Args) -> Result<bool, String> {
    if let Some((first, more)) = args.render.split_first() {
        let results = more.iter().try_fold(read(first)?, |all, path| all.join(read(path)?))?;
        return PLACE.tell(args.markdown.as_deref(), &table::markdown(&results)).map(|()| true);
    }
    // A document that cannot take the tables should be known before an hour is spent on them.
    if let Some(path) = &args.markdown {
        PLACE.in_file(path, "")?;
    }
    std::fs::create_dir_all(&args.work).map_err(|error| format!("{}: {error}", args.work.display()))?;
    let work = args.work.canonicalize().map_err(|error| error.to_string())?;
    let tasks = tasks(&args, &work);
    if args.list {
        tasks.iter().for_each(|task| println!("{:24} {}", task.name, task.group));
        return Ok(true);
    }
    if tasks.is_empty() {
        return Err("no row matches".to_owned());
    }
    let tell = |message: &str| eprintln!("performance: {message}");
    let (peers, missing) = args.choice.all(&work.join("peers"), tell)?;
    let state = |(name, problem)| PeerState { name, origin: String::new(), problem: Some(problem) };
    let missing = missing.into_iter().map(state).collect();
    let results = measured(&args, &work, tasks, peers, missing);
    let json = args.json.clone().unwrap_or_else(|| work.join("results.json"));
    let text = serde_json::to_string_pretty(&results).map_err(|error| error.to_string())?;
    std::fs::write(&json, text + "\n").map_err(|error| format!("{}: {error}", json.display()))?;
    eprintln!("performance: measurements are in {}", json.display());
    PLACE.tell(args.markdown.as_deref(), &table::markdown(&results))?;
    let cells = results.rows.iter().flat_map(|row| &row.cells);
    Ok(results.peers.iter().all(|peer| peer.problem.is_none()) && cells.into_iter().all(|cell| cell.problem.is_none()))
}

/// Measurements in a file.
fn read(path: &Path) -> Result<Results, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let results: Results = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    if (results.schema.as_str(), results.schema_version) == (SCHEMA, VERSION) {
        Ok(results)
    } else {
        Err(format!("{}: not measurements of this version", path.display()))
    }
}

/// The rows that were asked for.
fn tasks(args: &Args, work: &Path) -> Vec<Task> {
    let is_wanted =
        |name: &str, group: &str| args.only.as_ref().is_none_or(|only| only.is_match(name) || only.is_match(group));
    let workloads = Task::workloads().into_iter().filter(|task| is_wanted(&task.name, &task.group));
    workloads.chain(Task::programs(&work.join("inputs"), |name| is_wanted(name, PROGRAMS))).collect()
}

fn measured(args: &Args, work: &Path, tasks: Vec<Task>, peers: Vec<Peer>, missing: Vec<PeerState>) -> Results {
    let (rounds, repeats, budget_ms) = if args.quick { (3, 3, 300) } else { (9, 5, 1_000) };
    let plan = Plan {
        tasks,
        peers,
        rounds: args.rounds.unwrap_or(rounds).max(1),
        seed: args.seed,
        limit: Duration::from_secs(args.timeout),
        repeats,
        budget_ms,
        workload: args.workload.clone().or_else(|| beside("mpp-workload").ok()).unwrap_or_default(),
        folder: work.to_owned(),
    };
    let mut machine = Machine::this();
    let (mut rows, mut states) = measure(&plan, &mut Bar::new("performance"));
    machine.ends();
    for row in &mut rows {
        row.cells.extend(missing.iter().map(|_| Default::default()));
    }
    states.extend(missing);
    Results {
        schema: SCHEMA.to_owned(),
        schema_version: VERSION,
        commands: vec![Command { line: command_line("scripts/performance"), rounds: plan.rounds }],
        machine,
        seed: plan.seed,
        peers: states,
        rows,
    }
}
