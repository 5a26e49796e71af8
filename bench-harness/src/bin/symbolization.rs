//! What looking up addresses costs: measures `mpp symbolize` and other tools on the same files, and compares their answers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use mpp_bench::document::command_line;
use mpp_bench::peers::choice::beside;
use mpp_bench::performance::machine::Machine;
use mpp_bench::progress::Bar;
use mpp_bench::symbols::addresses::Spread;
use mpp_bench::symbols::measure::{Plan, Results, Row, SCHEMA, VERSION, measure};
use mpp_bench::symbols::table::{self, PLACE};
use mpp_bench::symbols::tools;
use regex::Regex;

/// Measures `mpp symbolize` against other tools, interleaved, and writes the figures as JSON and as Markdown.
#[derive(Parser)]
#[command(name = "symbolization", version)]
struct Args {
    /// How often each tool is asked; one that takes too long is asked once
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only rows whose name matches this expression
    #[arg(long, value_name = "REGEX")]
    only: Option<Regex>,
    /// Only tools whose name matches this expression; ours always take part
    #[arg(long, value_name = "REGEX")]
    tools: Option<Regex>,
    /// A big program with its debug information in it [default: `giant` in the folder of --work; without it there are no
    /// such rows]
    #[arg(long, value_name = "FILE")]
    giant: Option<PathBuf>,
    /// The same with its debug information packed (zlib) [default: `giant-packed` there]
    #[arg(long, value_name = "FILE")]
    packed: Option<PathBuf>,
    /// The program mpp [default: beside this program]
    #[arg(long, value_name = "PATH")]
    mpp: Option<PathBuf>,
    /// Kill a run after this many seconds
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Draws the addresses
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// For what is asked and answered; tools in its folder `tools` are taken before others
    #[arg(long, value_name = "FOLDER", default_value = "target/symbolization")]
    work: PathBuf,
    /// The document whose tables are replaced; without it they are printed
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Only make the tables anew from measurements that are there
    #[arg(long, value_name = "FILE", conflicts_with_all = ["only", "giant", "packed"])]
    render: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("symbolization: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    // A document that cannot take the tables should be known before all the work.
    if let Some(path) = &args.markdown {
        PLACE.in_file(path, "")?;
    }
    if let Some(path) = &args.render {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let results: Results = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        return PLACE.tell(args.markdown.as_deref(), &table::markdown(&results));
    }
    std::fs::create_dir_all(&args.work).map_err(|error| format!("{}: {error}", args.work.display()))?;
    let work = args.work.canonicalize().map_err(|error| error.to_string())?;
    let results = measured(args, &work)?;
    let json = work.join("results.json");
    let text = serde_json::to_string_pretty(&results).map_err(|error| error.to_string())?;
    std::fs::write(&json, text + "\n").map_err(|error| format!("{}: {error}", json.display()))?;
    eprintln!("symbolization: measurements are in {}", json.display());
    PLACE.tell(args.markdown.as_deref(), &table::markdown(&results))
}

fn measured(args: &Args, work: &Path) -> Result<Results, String> {
    let mpp = args.mpp.clone().map_or_else(|| beside("mpp"), Ok)?;
    let (mut asked, missing) = tools::all(&mpp, &work.join("tools"));
    asked.retain(|tool| tool.is_ours || args.tools.as_ref().is_none_or(|wanted| wanted.is_match(&tool.name)));
    let mut rows = rows(args, work, &beside("mpp-workload")?);
    rows.retain(|row| args.only.as_ref().is_none_or(|only| only.is_match(&row.name)));
    let plan = Plan {
        rows,
        tools: asked,
        rounds: args.rounds.max(1),
        limit: Duration::from_secs(args.timeout),
        seed: args.seed,
        folder: work.to_owned(),
    };
    let mut machine = Machine::this();
    let rows = measure(&plan, &mut Bar::new("symbolization"))?;
    machine.ends();
    Ok(Results {
        schema: SCHEMA.to_owned(),
        schema_version: VERSION,
        command: command_line("scripts/symbolization"),
        machine,
        rounds: plan.rounds,
        rows,
        missing,
    })
}

fn rows(args: &Args, work: &Path, small: &Path) -> Vec<Row> {
    const LLVM: &str = "llvm-symbolizer 22";
    let mut rows = Vec::new();
    let mut add = |name: &str, file: &Path, count, spread, reference, target| {
        rows.push(Row { name: name.to_owned(), file: file.to_owned(), count, spread, reference, target });
    };
    let made =
        |given: &Option<PathBuf>, name| given.clone().or_else(|| Some(work.join(name)).filter(|path| path.exists()));
    if let Some(giant) = &made(&args.giant, "giant") {
        add("giant, 1 address", giant, 1, Spread::Uniform, LLVM, (Some(0.03), Some(80.0)));
        add("giant, 2,000 clustered", giant, 2_000, Spread::Clusters(300), LLVM, (Some(1.0), None));
        add("giant, 10,000 random", giant, 10_000, Spread::Uniform, LLVM, (Some(2.0), Some(350.0)));
    }
    if let Some(packed) = &made(&args.packed, "giant-packed") {
        add("giant packed, 10,000 random", packed, 10_000, Spread::Uniform, LLVM, (Some(3.5), None));
    }
    // Debug information of libc is in a file of its own (dwz and all) where libc6-dbg is installed.
    let libc = Path::new("/lib/x86_64-linux-gnu/libc.so.6");
    if libc.exists() {
        add("libc, 500 random", libc, 500, Spread::Uniform, "elfutils", (Some(0.06), None));
    }
    add("program of a few MB, 500 random", small, 500, Spread::Uniform, LLVM, (Some(0.06), None));
    rows
}
