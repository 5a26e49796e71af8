//! A burst of small blocks, most of it freed, then idle: one JSON line at the end of each phase.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use mpp_workloads::churn::{self, Options};
use mpp_workloads::driver::args;
use serde::Serialize;

/// The exit status when a block did not hold what was written into it (EX_SOFTWARE of sysexits.h).
const DAMAGED: u8 = 70;

/// Allocates 300,000 small blocks, frees all but a scattered 1 in 20, idles, and prints resident memory at the end of each
/// phase as a line of JSON.
#[derive(Parser)]
#[command(name = "churn", version)]
struct Args {
    /// How long to idle, for example 10s
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = args::duration)]
    idle: Duration,
    /// Threads that share the work
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Decides which blocks survive, and the order with --mixed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Multiply all counts
    #[arg(long, default_value = "1", value_parser = args::scale)]
    scale: f64,
    /// Allocate and free the sizes in random order instead of one after the other
    #[arg(long)]
    mixed: bool,
}

fn main() -> ExitCode {
    let Args { idle, threads, seed, scale, mixed } = Args::parse();
    let result = churn::run(&Options { scale, seed, threads, mixed, idle }, |end| print("phase", &end));
    print("result", &result);
    if result.is_intact() { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) }
}

/// Prints one line. A reader that has gone away does not stop the work.
fn print(kind: &'static str, record: &impl Serialize) {
    let _ = churn::SCHEMA.line(&mut io::stdout().lock(), kind, record);
}
