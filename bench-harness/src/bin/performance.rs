//! The performance table: builds the peers, measures, and writes what came out.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mpp_bench::peers::{self, GLIBC, OURS, Peer};
use mpp_bench::performance::machine::Machine;
use mpp_bench::performance::measure::{PROGRAMS, Plan, Task, Watch, measure};
use mpp_bench::performance::results::{Command, PeerState, Results, SCHEMA, VERSION};
use mpp_bench::performance::table;
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
    /// Another peer, or another library for a known one; may be given several times
    #[arg(long, value_name = "NAME=PATH", value_parser = named_path)]
    peer: Vec<(String, PathBuf)>,
    /// Only these peers, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    peers: Option<Vec<String>>,
    /// Our library [default: beside this program]
    #[arg(long, value_name = "PATH")]
    library: Option<PathBuf>,
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

fn named_path(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok((name.to_owned(), path.into())),
        _ => Err(format!("`{text}` is not NAME=PATH")),
    }
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
        return tell(&results, args.markdown.as_deref()).map(|()| true);
    }
    // A document that cannot take the tables should be known before an hour is spent on them.
    if let Some(path) = &args.markdown {
        document_with(path, "")?;
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
    let (peers, missing) = peers(&args, &work)?;
    let results = measured(&args, &work, tasks, peers, missing);
    let json = args.json.clone().unwrap_or_else(|| work.join("results.json"));
    let text = serde_json::to_string_pretty(&results).map_err(|error| error.to_string())?;
    std::fs::write(&json, text + "\n").map_err(|error| format!("{}: {error}", json.display()))?;
    eprintln!("performance: measurements are in {}", json.display());
    tell(&results, args.markdown.as_deref())?;
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

/// The peers that were asked for, and those that cannot be had.
fn peers(args: &Args, work: &Path) -> Result<(Vec<Peer>, Vec<PeerState>), String> {
    let beside = beside("libmimalloc_pprof.so")?;
    let mut ready = Vec::new();
    let mut missing = Vec::new();
    let is_wanted = |name: &str| args.peers.as_ref().is_none_or(|names| names.iter().any(|wanted| wanted == name));
    let mut add = |name: &str, made: Result<Peer, String>| match made {
        Ok(peer) => ready.push(peer),
        Err(problem) => {
            eprintln!("performance: {name}: not measured: {problem}");
            missing.push(PeerState { name: name.to_owned(), origin: String::new(), problem: Some(problem) });
        }
    };
    let given = |name: &str| args.peer.iter().rev().find(|(given, _)| given == name).map(|(_, path)| path);
    if let Some(path) = given(OURS).or(args.library.as_ref()).or(Some(&beside)).filter(|_| is_wanted(OURS)) {
        add(OURS, Peer::library(OURS, path, "this repository"));
    }
    let recipes = peers::recipes();
    for recipe in recipes.iter().filter(|recipe| is_wanted(recipe.name)) {
        match given(recipe.name) {
            Some(path) => add(recipe.name, Peer::library(recipe.name, path, "a library that was given")),
            None => {
                eprintln!("performance: {}: building, unless it is there", recipe.name);
                add(recipe.name, recipe.make(&work.join("peers")));
            }
        }
    }
    for (name, path) in &args.peer {
        if name != OURS && !recipes.iter().any(|recipe| recipe.name == name) {
            add(name, Peer::library(name, path, "a library that was given"));
        }
    }
    if is_wanted(GLIBC) {
        add(GLIBC, Ok(Peer::glibc()));
    }
    if ready.is_empty() { Err("no peer is left".to_owned()) } else { Ok((ready, missing)) }
}

/// A file in the folder of this program.
fn beside(name: &str) -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(program.with_file_name(name))
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
    let (mut rows, mut states) = measure(&plan, &mut Bar::new());
    machine.ends();
    for row in &mut rows {
        row.cells.extend(missing.iter().map(|_| Default::default()));
    }
    states.extend(missing);
    Results {
        schema: SCHEMA.to_owned(),
        schema_version: VERSION,
        commands: vec![Command { line: command_line(), rounds: plan.rounds }],
        machine,
        seed: plan.seed,
        peers: states,
        rows,
    }
}

/// How this was started, without the folders of this machine.
fn command_line() -> String {
    let words = std::env::args().skip(1).map(|word| match word.rsplit_once('/') {
        Some((before, file)) if before.contains('=') => {
            format!("{}={file}", before.split('=').next().unwrap_or_default())
        }
        Some((_, file)) if word.starts_with('/') => file.to_owned(),
        _ => word,
    });
    std::iter::once("scripts/performance".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The document at `path` with `tables` in their place.
fn document_with(path: &Path, tables: &str) -> Result<String, String> {
    let error = |message: String| format!("{}: {message}", path.display());
    let document = std::fs::read_to_string(path).map_err(|cause| error(cause.to_string()))?;
    table::splice(&document, tables).map_err(error)
}

fn tell(results: &Results, document: Option<&Path>) -> Result<(), String> {
    let tables = table::markdown(results);
    let Some(path) = document else {
        println!("{tables}");
        return Ok(());
    };
    std::fs::write(path, document_with(path, &tables)?).map_err(|error| format!("{}: {error}", path.display()))
}

/// Progress on a terminal; elsewhere a line now and then.
struct Bar {
    bar: ProgressBar,
    done: usize,
    all: usize,
}

impl Bar {
    fn new() -> Self {
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} ({eta} left) {msg}");
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        Self { bar: bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())), done: 0, all: 0 }
    }
}

impl Watch for Bar {
    fn starts(&mut self, runs: usize) {
        self.all = runs;
        self.bar.set_length(runs as u64);
    }

    fn runs(&mut self, row: &str, peer: &str) {
        self.done += 1;
        self.bar.set_position(self.done as u64);
        self.bar.set_message(format!("{row}, {peer}"));
        if !std::io::stderr().is_terminal() && self.done.is_multiple_of((self.all / 20).max(1)) {
            eprintln!("performance: {} of {} runs", self.done, self.all);
        }
    }

    fn notes(&mut self, message: &str) {
        self.bar.suspend(|| eprintln!("performance: {message}"));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
