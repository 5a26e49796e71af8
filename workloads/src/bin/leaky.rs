//! Leaks a known amount of memory from known places, and prints the truth.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use mpp_workloads::driver::args;
use mpp_workloads::leaky::{
    self, Chain, DEFAULT_DEPTH, DEFAULT_SEED, DEFAULT_THREADS, Options, PLUGIN_FILE_NAME, Plugin,
};

/// Reaches every kept block, so that no leak checker calls them lost.
static KEPT: Chain = Chain::new();

/// The exit status when the kept blocks are damaged or the run failed (EX_SOFTWARE of sysexits.h).
const FAILED: u8 = 70;

/// Leaks a known amount of memory from known places, and prints which function and line keeps how many bytes and blocks
/// at exit.
#[derive(Parser)]
#[command(name = "leaky", version)]
struct Args {
    /// Multiply all counts; 1 keeps about 99 MB
    #[arg(long, default_value = "1", value_parser = args::scale)]
    scale: f64,
    /// Decides the order of allocations and frees, not their number
    #[arg(long, default_value_t = DEFAULT_SEED)]
    seed: u64,
    /// Worker threads; half of them have ended at exit, the others are alive
    #[arg(long, default_value_t = DEFAULT_THREADS, value_parser = clap::value_parser!(u32).range(..=1024))]
    threads: u32,
    /// Repeat the temporary allocations this often
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    cycles: u32,
    /// The deepest recursion of the recursive site
    #[arg(long, default_value_t = DEFAULT_DEPTH, value_parser = clap::value_parser!(u32).range(1..=1000))]
    depth: u32,
    /// The plugin to load; `none` for none [default: beside the executable, if it is there]
    #[arg(long, value_name = "PATH")]
    plugin: Option<PathBuf>,
    /// How to print the truth
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Stay alive this long after the truth is printed, for example 5s
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = args::duration)]
    hold: Duration,
    /// The exit status
    #[arg(long, value_name = "STATUS", default_value_t = 0)]
    exit: u8,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

fn main() -> ExitCode {
    // The arguments are dropped before the first site runs.
    let (options, format, hold, exit) = {
        let args = Args::parse();
        let plugin = match plugin(args.plugin.as_deref()) {
            Ok(plugin) => plugin,
            Err(error) => return fail(&error),
        };
        let Args { scale, seed, threads, cycles, depth, .. } = args;
        (Options { scale, seed, threads, cycles, depth, plugin }, args.format, args.hold, args.exit)
    };
    let truth = match leaky::run(&options, &KEPT) {
        Ok(truth) => truth,
        Err(error) => return fail(&error),
    };
    let mut stdout = io::stdout().lock();
    let printed = match format {
        Format::Text => truth.write_text(&mut stdout).and_then(|()| stdout.flush()),
        Format::Json => truth.write_json(&mut stdout),
    };
    match printed {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return fail(&error),
        _ => drop(truth),
    }
    std::thread::sleep(hold);
    ExitCode::from(exit)
}

fn plugin(wanted: Option<&Path>) -> Result<Option<Plugin>, leaky::LeakyError> {
    match wanted {
        Some(path) if path == Path::new("none") => Ok(None),
        Some(path) => Plugin::load(path).map(Some),
        None => match Plugin::find() {
            Some(path) => Plugin::load(&path).map(Some),
            None => {
                eprintln!("leaky: no {PLUGIN_FILE_NAME} beside the executable: its sites are left out (see --plugin)");
                Ok(None)
            }
        },
    }
}

fn fail(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("leaky: {error}");
    ExitCode::from(FAILED)
}
