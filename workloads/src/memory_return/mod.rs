//! Memory return: what comes back to the system after a drain, when, and what that costs.
//!
//! ```text
//! mpp-workload return churn …            the observer: starts the subject, reads /proc and the cgroup, prints one line of JSON
//!   └─ mpp-workload return churn … --subject     the subject: allocates, frees, and tells the observer where it is (link)
//! ```
//!
//! The subject is watched from outside. So it may have one thread only, may block for ever without another call, and its idle
//! time is really idle; and what the observer needs for its work is no part of the figures. Both are the same program under
//! the same preloaded library.
//!
//! # Design constraints
//!
//! * A subject's tables are mapped, not allocated, and resident before the first figure is taken. They count: a share is that
//!   of the whole process.
//! * Every block is filled, every survivor is read back in full at the end, every other block's first words before it is freed.
//! * Resident memory is not the whole truth where pages are huge: [`cgroup`] asks what the kernel charges for the subject.

pub mod calls;
pub mod catalogue;
pub mod cgroup;
pub mod link;
pub mod observer;
pub mod process;
pub mod purge;
pub mod record;
pub mod scenario;
mod share;
pub mod subjects;
pub mod system;

use std::time::Duration;

use crate::driver::args;
use crate::driver::report::Schema;

/// The schema of the lines; their kind is `result` for a [`record::Record`].
pub const SCHEMA: Schema = Schema { name: "memory-return", version: 1 };

/// What to run and how to watch it.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What is allocated and freed
    #[command(subcommand)]
    pub scenario: scenario::Scenario,
    /// How long to watch after the drain
    #[arg(long, global = true, value_name = "DURATION", default_value = "3s", value_parser = args::duration)]
    pub watch: Duration,
    /// Time between two looks at resident memory
    #[arg(long, global = true, value_name = "DURATION", default_value = "50ms", value_parser = args::duration)]
    pub sample: Duration,
    /// Count system calls instead of measuring times: the subject is stopped at each of them
    #[arg(long, global = true)]
    pub trace: bool,
    /// Be the subject: internal
    #[arg(long, global = true, hide = true)]
    pub subject: bool,
    /// Do nothing between start and end: internal
    #[arg(long, global = true, hide = true)]
    pub empty: bool,
}

/// Runs a subject if this process is one, else an observer.
///
/// # Errors
/// A sentence when the subject cannot be watched.
pub fn run(args: &Args, seed: u64, threads: u32, scale: f64) -> Result<Outcome, String> {
    if args.subject {
        let link = link::Link::of_subject();
        let setting = subjects::Setting { seed, threads, scale, trace: args.trace, link };
        let damaged = args.scenario.run(&setting, args.empty);
        link.say(link::Kind::End, damaged);
        return Ok(Outcome { lines: Vec::new(), damaged });
    }
    let error = |error: std::io::Error| error.to_string();
    if !args.trace {
        let record = observer::observe(args).map_err(error)?;
        return Ok(Outcome { damaged: record.damaged, lines: vec![("result", to_value(&record)?)] });
    }
    let count = |more: &[&str]| observer::subject(more).and_then(calls::count).map_err(error);
    let counted = count(&[])?;
    let mut lines = vec![("calls", to_value(&counted)?)];
    if matches!(args.scenario, scenario::Scenario::Turnover { .. }) {
        lines.push(("calls-of-empty-run", to_value(&count(&["--empty"])?)?));
    }
    Ok(Outcome { damaged: counted.damaged, lines })
}

fn to_value(record: &impl serde::Serialize) -> Result<serde_json::Value, String> {
    serde_json::to_value(record).map_err(|error| error.to_string())
}

/// What there is to print, and whether all is well.
#[derive(Debug)]
pub struct Outcome {
    /// Lines, with their kind.
    pub lines: Vec<(&'static str, serde_json::Value)>,
    /// Blocks that did not hold what was written into them.
    pub damaged: u64,
}
