//! `mpp explain`: what an exit code means, and what to do about it.

use clap::Args;
use serde::Serialize;

use crate::args::{CommonArgs, ReportArgs};
use crate::exit::Failure;
use crate::output;
use crate::render::{Cell, Column, Report, Table};

const EXAMPLES: &str = "\
Examples:
  mpp explain            all exit codes
  mpp explain 14         one of them, and what to do
  mpp top x; mpp explain $?";

/// The flags of `mpp explain`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// An exit code [default: all]
    #[arg(value_name = "CODE")]
    code: Option<u8>,
    #[command(flatten)]
    report: ReportArgs,
}

/// One code or range of codes. The numbers are those of [`Code`](crate::exit::Code) and of shells.
#[derive(Clone, Copy, Debug)]
struct Explanation {
    first: u8,
    last: u8,
    meaning: &'static str,
    advice: &'static str,
}

const fn one(code: u8, meaning: &'static str, advice: &'static str) -> Explanation {
    Explanation { first: code, last: code, meaning, advice }
}

const ALL: [Explanation; 13] = [
    one(0, "done; every gate passed", "nothing to do"),
    one(
        1,
        "internal or I/O error: something could not be written, or mpp has a bug",
        "the message names the file; is the disk full, may you write there? \"internal error\" is a bug: please report it",
    ),
    one(2, "the command line, or mpp.toml, is wrong", "the message names the flag; `mpp help VERB` has them all"),
    one(
        10,
        "a gate failed: a threshold, a leak, a regression",
        "the message names the metric, what was found and the limit; `mpp top` and `mpp diff` show where it comes from",
    ),
    one(
        11,
        "inconclusive: the limit lies within the error of the estimate",
        "sample more (`mpp run --sample 64KiB`), record every block (`--mode exact`), or run longer",
    ),
    one(
        12,
        "the baseline or partner of a comparison is missing",
        "write one with `mpp check --write-baseline FILE`, or name the right file",
    ),
    one(
        13,
        "an input is missing, unreadable, of an unknown format, or damaged",
        "the message names the file and the offset or line; `mpp doctor FILE` says what it is",
    ),
    one(
        14,
        "nothing was captured: the allocator was not active in the target, or nothing is in the profile",
        "`mpp doctor PROGRAM` says whether it can be preloaded, and if not, why and what to change",
    ),
    one(15, "the result is incomplete, and --strict was given", "leave out --strict, or repair what the message names"),
    one(125, "mpp run: failed before the program could start", "the message says why; the program did not run"),
    one(
        126,
        "mpp run: the program is there but cannot be executed",
        "chmod +x? the right architecture? a bad #! line?",
    ),
    one(127, "mpp run: the program was not found", "check the name and PATH"),
    Explanation {
        first: 129,
        last: 192,
        meaning: "mpp run: a signal ended the program, that of the code less 128",
        advice: "the program crashed or was killed (137: SIGKILL, as the kernel does when memory is short); the recording has its \
                 last snapshot: mpp top",
    },
];

/// What is printed as JSON.
#[derive(Debug, Serialize)]
struct Data<'a> {
    schema: &'static str,
    schema_version: u32,
    mpp_version: &'static str,
    codes: Vec<DataCode<'a>>,
}

#[derive(Debug, Serialize)]
struct DataCode<'a> {
    first: u8,
    last: u8,
    meaning: &'a str,
    advice: &'a str,
}

/// Runs the verb.
///
/// # Errors
/// If the report cannot be written.
pub(crate) fn explain(args: &ExplainArgs, common: CommonArgs) -> Result<(), Failure> {
    let wanted = |explanation: &&Explanation| {
        args.code.is_none_or(|code| (explanation.first..=explanation.last).contains(&code))
    };
    let mut shown: Vec<Explanation> = ALL.iter().filter(wanted).copied().collect();
    if shown.is_empty() {
        let code = args.code.unwrap_or_default();
        shown.push(one(
            code,
            "mpp itself never ends with this code: it is the status of the program that `mpp run` ran",
            "look it up in that program's manual",
        ));
    }
    let number = |explanation: &Explanation| match explanation.first == explanation.last {
        true => explanation.first.to_string(),
        false => format!("{}-{}", explanation.first, explanation.last),
    };
    // One code is for reading: sentences, no columns.
    let header: Vec<String> = match (args.code, shown.as_slice()) {
        (Some(code), [only]) => vec![format!("{code}: {}", only.meaning), format!("what to do: {}", only.advice)],
        _ => Vec::new(),
    };
    let columns = vec![Column::new("code", "code"), Column::new("meaning", "meaning"), Column::for_programs("advice")];
    let row = |explanation: &Explanation| {
        let text = |text: &str| Cell::Text(text.to_owned());
        vec![Cell::Text(number(explanation)), text(explanation.meaning), text(explanation.advice)]
    };
    let is_for_people = !args.report.format.is_for_programs();
    let rows = if header.is_empty() || !is_for_people { shown.iter().map(row).collect() } else { Vec::new() };
    let code = |shown: &Explanation| DataCode {
        first: shown.first,
        last: shown.last,
        meaning: shown.meaning,
        advice: shown.advice,
    };
    let data = Data {
        schema: "mpp-explain",
        schema_version: 1,
        mpp_version: env!("CARGO_PKG_VERSION"),
        codes: shown.iter().map(code).collect(),
    };
    let report = Report { header: &header, table: &Table { columns, rows }, footer: &[], data: &data };
    output::report(&report, &args.report, common)
}
