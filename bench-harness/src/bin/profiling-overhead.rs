//! What watching costs: measures our library in all its modes, and other tools, and writes what came out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use mpp_bench::document::command_line;
use mpp_bench::overhead::gauge::Gauge;
use mpp_bench::overhead::modes::{EXACT, MALLOCS, OFF, ROWS, ROWS_OF_TOOLS, SAMPLED, modes, tools};
use mpp_bench::overhead::results::{Overhead, SCHEMA, VERSION};
use mpp_bench::overhead::table::{self, PLACE};
use mpp_bench::peers::Peer;
use mpp_bench::peers::choice::beside;
use mpp_bench::performance::machine::Machine;
use mpp_bench::performance::measure::{PROGRAMS, Plan, Task, Work, measure, once};
use mpp_bench::performance::programs;
use mpp_bench::performance::results::{self, Command, Results};
use mpp_bench::progress::Bar;
use regex::Regex;

/// Measures our library with each of its instruments against the same library without, interleaved, and writes the figures as JSON and
/// as Markdown.
#[derive(Parser)]
#[command(name = "profiling-overhead", version)]
struct Args {
    /// Fewer rounds (unless told) and shorter runs, for a first look or a busy day; the document tells that it was used
    #[arg(long)]
    quick: bool,
    /// How often each row is measured in each mode [default: 15, quick: 3]
    #[arg(long)]
    rounds: Option<usize>,
    /// How often other tools are measured; 0 leaves them out
    #[arg(long, default_value_t = 3)]
    tool_rounds: usize,
    /// Only rows whose name matches this expression
    #[arg(long, value_name = "REGEX")]
    only: Option<Regex>,
    /// Only these modes, separated by commas; `off` is always there
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    modes: Option<Vec<String>>,
    /// Our library [default: beside this program]
    #[arg(long, value_name = "PATH")]
    library: Option<PathBuf>,
    /// The program mpp-workload [default: beside this program]
    #[arg(long, value_name = "PATH")]
    workload: Option<PathBuf>,
    /// Kill a run after this many seconds
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Decides orders and operations
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// For inputs of programs and what the instruments write
    #[arg(long, value_name = "FOLDER", default_value = "target/profiling-overhead")]
    work: PathBuf,
    /// Where the measurements go [default: results.json in the folder of --work]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The document whose tables are replaced; without it they are printed
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Only make the tables anew from measurements that are there
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "rounds", "only", "json"])]
    render: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        // The tables are there, but something was not measured.
        Ok(false) => ExitCode::from(3),
        Err(message) => {
            eprintln!("profiling-overhead: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything was measured.
fn run(args: &Args) -> Result<bool, String> {
    // A document that cannot take the tables should be known before an hour is spent on them.
    if let Some(path) = &args.markdown {
        PLACE.in_file(path, "")?;
    }
    if let Some(path) = &args.render {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let overhead: Overhead = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        return PLACE.tell(args.markdown.as_deref(), &table::markdown(&overhead)).map(|()| true);
    }
    std::fs::create_dir_all(&args.work).map_err(|error| format!("{}: {error}", args.work.display()))?;
    let work = args.work.canonicalize().map_err(|error| error.to_string())?;
    let overhead = measured(args, &work)?;
    let json = args.json.clone().unwrap_or_else(|| work.join("results.json"));
    let text = serde_json::to_string_pretty(&overhead).map_err(|error| error.to_string())?;
    std::fs::write(&json, text + "\n").map_err(|error| format!("{}: {error}", json.display()))?;
    eprintln!("profiling-overhead: measurements are in {}", json.display());
    PLACE.tell(args.markdown.as_deref(), &table::markdown(&overhead))?;
    let rows = overhead.modes.rows.iter().chain(overhead.tools.iter().flat_map(|tools| &tools.rows));
    Ok(rows.flat_map(|row| &row.cells).all(|cell| cell.problem.is_none()))
}

/// The rows of these names that were asked for, and that of eight million blocks.
fn tasks(args: &Args, names: &[&str], inputs: &Path) -> Vec<Task> {
    let is_asked = |name: &str| args.only.as_ref().is_none_or(|only| only.is_match(name));
    let is_wanted = |name: &str| names.contains(&name) && is_asked(name);
    let workloads = Task::workloads().into_iter().filter(|task| is_wanted(&task.name));
    let mut tasks: Vec<Task> = workloads.chain(Task::programs(inputs, is_wanted)).collect();
    if is_asked(MALLOCS) {
        let work = programs::mallocs(inputs).map_or_else(Work::Missing, Work::Program);
        tasks.push(Task { name: MALLOCS.to_owned(), group: PROGRAMS.to_owned(), work });
    }
    tasks
}

fn measured(args: &Args, work: &Path) -> Result<Overhead, String> {
    let library = args.library.clone().map_or_else(|| beside("libmimalloc_pprof.so"), Ok)?;
    let ours = Peer::library("ours", &library, "this repository")?;
    let is_wanted = |name: &str| args.modes.as_ref().is_none_or(|names| names.iter().any(|wanted| wanted == name));
    let (rounds, repeats, budget_ms) = if args.quick { (3, 3, 300) } else { (15, 5, 1_000) };
    let inputs = work.join("inputs");
    let all = modes(&ours, work);
    let plan = Plan {
        tasks: tasks(args, ROWS, &inputs),
        peers: all.iter().filter(|mode| mode.name == OFF || is_wanted(&mode.name)).cloned().collect(),
        rounds: args.rounds.unwrap_or(rounds).max(1),
        seed: args.seed,
        limit: Duration::from_secs(args.timeout),
        repeats,
        budget_ms,
        workload: args.workload.clone().map_or_else(|| beside("mpp-workload"), Ok)?,
        folder: work.to_owned(),
    };
    if plan.tasks.is_empty() {
        return Err("no row matches".to_owned());
    }
    let modes = results_of(&plan);
    let sampled = all.iter().find(|mode| mode.name == SAMPLED).ok_or("there is no sampled mode")?;
    let gauges = plan.tasks.iter().map(|task| gauge(&plan, task, sampled)).collect();
    let (mut peers, missing) = tools(work);
    // Ours beside them, without and with exact recording.
    peers.extend(all.iter().filter(|mode| mode.name == OFF || mode.name == EXACT).cloned());
    let names: &[&str] = if args.quick { &[] } else { ROWS_OF_TOOLS };
    let of_tools = Plan { tasks: tasks(args, names, &inputs), peers, rounds: args.tool_rounds, ..plan };
    let are_wanted = args.tool_rounds > 0 && !of_tools.tasks.is_empty();
    Ok(Overhead {
        schema: SCHEMA.to_owned(),
        schema_version: VERSION,
        modes,
        gauges,
        tools: are_wanted.then(|| results_of(&of_tools)),
        missing: missing.into_iter().map(str::to_owned).collect(),
    })
}

fn results_of(plan: &Plan) -> Results {
    let mut machine = Machine::this();
    let (rows, peers) = measure(plan, &mut Bar::new("profiling-overhead"));
    machine.ends();
    Results {
        schema: results::SCHEMA.to_owned(),
        schema_version: results::VERSION,
        commands: vec![Command { line: command_line("scripts/profiling-overhead"), rounds: plan.rounds }],
        machine,
        seed: plan.seed,
        peers,
        rows,
    }
}

fn gauge(plan: &Plan, task: &Task, sampled: &Peer) -> Option<Gauge> {
    sampled.clear_evidence();
    let cpu = once(plan, task, sampled).ok()?;
    Gauge::of(sampled.evidence.as_deref()?, cpu).ok()
}
