//! One row of the tables: a pattern of allocations under whatever allocator is preloaded.

use std::ffi::CStr;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mpp_workloads::driver::args;
use mpp_workloads::driver::memory::Memory;
use mpp_workloads::driver::report::Schema;
use mpp_workloads::measured::catalogue;
use mpp_workloads::measured::family::Family;
use mpp_workloads::measured::timing::{Figures, Pin, Settings};
use mpp_workloads::memory_return;
use serde::Serialize;

const SCHEMA: Schema = Schema { name: "mpp-workload", version: 1 };
/// The exit status when a block did not hold what was written into it (EX_SOFTWARE of sysexits.h).
const DAMAGED: u8 = 70;

/// Runs one pattern of allocations and prints what it cost as a line of JSON: processor time per operation, peak memory, a
/// checksum, and the file that `malloc` came from; or what came back, of a pattern after `return`.
#[derive(Parser)]
#[command(name = "mpp-workload", version, arg_required_else_help = true, subcommand_negates_reqs = true)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print the rows of the tables: name, group, command line
    #[arg(long)]
    list: bool,
    /// Only say which file malloc comes from
    #[arg(long)]
    prove: bool,
    /// Threads, for families that have them
    #[arg(long, global = true, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Decides sizes, orders and places
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
    /// Multiply the operations of a repeat, for families with threads and shapes
    #[arg(long, global = true, default_value = "1", value_parser = args::scale)]
    scale: f64,
    /// How often the work is repeated; the figures are the least and the median
    #[arg(long, global = true, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: u32,
    /// Processor time of a repeat in milliseconds, for families of one thread
    #[arg(long, global = true, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat_ms: u32,
    /// Wall time in milliseconds after which no further repeat starts
    #[arg(long, global = true, default_value_t = 2_000)]
    budget_ms: u64,
    /// Turns of a repeat instead of a time, for families of one thread
    #[arg(long, global = true)]
    turns: Option<u64>,
    /// On which processors the threads run
    #[arg(long, global = true, value_enum, default_value_t = Pin::No)]
    pin: Pin,
}

/// What to run.
#[derive(Clone, Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Measured(Family),
    /// Memory that comes back to the system: allocate, drain, and watch from outside
    Return(memory_return::Args),
}

#[derive(Serialize)]
struct Line {
    /// The file that `malloc` resolves to.
    malloc_from: String,
    threads: u32,
    seed: u64,
    #[serde(flatten)]
    figures: Option<Figures>,
    /// Resident memory in bytes at the end, and the most there ever was.
    rss: Option<u64>,
    peak_rss: Option<u64>,
}

fn main() -> ExitCode {
    let Args { command, list, prove, threads, seed, scale, repeats, repeat_ms, budget_ms, turns, pin } = Args::parse();
    if list {
        // A reader that has seen enough is no error.
        let _ = print_rows();
        return ExitCode::SUCCESS;
    }
    let family = match command {
        Some(Command::Return(args)) if !prove => return memory_return(&args, seed, threads, scale),
        Some(Command::Measured(family)) if !prove => Some(family),
        _ => None,
    };
    let settings = Settings { seed, threads, scale, repeats, repeat_ms: f64::from(repeat_ms), budget_ms, turns, pin };
    let figures = match family.map(|family| family.run(&settings)).transpose() {
        Ok(figures) => figures,
        Err(message) => {
            eprintln!("mpp-workload: {message}");
            return ExitCode::FAILURE;
        }
    };
    let memory = Memory::of_self().ok();
    let damaged = figures.as_ref().is_some_and(|figures| figures.damaged > 0);
    let line = Line {
        malloc_from: origin_of_malloc(),
        threads,
        seed,
        figures,
        rss: memory.map(|memory| memory.rss),
        peak_rss: memory.map(|memory| memory.peak_rss),
    };
    // A reader that has gone away does not matter here.
    let _ = SCHEMA.line(&mut io::stdout().lock(), "result", &line);
    if damaged { ExitCode::from(DAMAGED) } else { ExitCode::SUCCESS }
}

fn print_rows() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for row in catalogue::rows() {
        writeln!(out, "{:24} {:10} {}", row.name, row.group.name(), row.arguments.join(" "))?;
    }
    for row in memory_return::catalogue::rows() {
        writeln!(out, "{:24} {:10} {}", row.name, row.group.name(), row.arguments.join(" "))?;
    }
    Ok(())
}

fn memory_return(args: &memory_return::Args, seed: u64, threads: u32, scale: f64) -> ExitCode {
    match memory_return::run(args, seed, threads, scale) {
        Ok(outcome) => {
            let mut out = io::stdout().lock();
            for (kind, record) in &outcome.lines {
                let _ = memory_return::SCHEMA.line(&mut out, kind, record);
            }
            if outcome.damaged > 0 { ExitCode::from(DAMAGED) } else { ExitCode::SUCCESS }
        }
        Err(message) => {
            eprintln!("mpp-workload: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The file in which `malloc`, as this program calls it, is. Empty if the loader does not know.
fn origin_of_malloc() -> String {
    // SAFETY: `info` is a valid place for the answer, and the name in it lives as long as the file is loaded: always.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(libc::malloc as *const libc::c_void, &raw mut info) == 0 || info.dli_fname.is_null() {
            return String::new();
        }
        CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned()
    }
}
