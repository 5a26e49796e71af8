//! `mpp doctor`: will it work here, with this program, on this process; and how good is this profile? What to change, with exact flags.

mod input;
mod machine;
mod process;
mod program;

use std::ffi::OsString;
use std::path::Path;

use clap::Args;
use mpp_profile::text::escaped;
use serde::Serialize;

use crate::args::{CommonArgs, ReportArgs, SymbolArgs};
use crate::exit::{Code, Failure};
use crate::output;
use crate::render::{Cell, Column, Report, Table};

const EXAMPLES: &str = "\
Examples:
  mpp doctor                  this machine: library, folders, kernel, symbols
  mpp doctor ./app            can it be preloaded, and will its functions have names?
  mpp doctor 4711             is the allocator in this process, and can it be asked?
  mpp doctor mpp-app-1-x      how good is this recording, and what would make it better?

Exit codes: 0 nothing stands in the way, 14 the program or process cannot be profiled, 13 the input cannot be read.";

/// The flags of `mpp doctor`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// A program, a process id, or a profile or recording [default: this machine]
    #[arg(value_name = "CMD|PID|INPUT")]
    subject: Option<OsString>,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Grade {
    Ok,
    /// It works, but could be better.
    Hint,
    /// It does not work.
    Bad,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
struct Finding {
    grade: Grade,
    what: &'static str,
    /// Escaped.
    found: String,
    /// What to do; empty if nothing. Escaped.
    advice: String,
}

impl Finding {
    fn ok(what: &'static str, found: impl AsRef<str>) -> Finding {
        Finding::new(Grade::Ok, what, found, "")
    }

    fn hint(what: &'static str, found: impl AsRef<str>, advice: impl AsRef<str>) -> Finding {
        Finding::new(Grade::Hint, what, found, advice)
    }

    fn bad(what: &'static str, found: impl AsRef<str>, advice: impl AsRef<str>) -> Finding {
        Finding::new(Grade::Bad, what, found, advice)
    }

    fn new(grade: Grade, what: &'static str, found: impl AsRef<str>, advice: impl AsRef<str>) -> Finding {
        let plain = |text: &str| escaped(text.trim()).to_string();
        Finding { grade, what, found: plain(found.as_ref()), advice: plain(advice.as_ref()) }
    }
}

/// What is printed as JSON.
#[derive(Debug, Serialize)]
struct Data<'a> {
    schema: &'static str,
    schema_version: u32,
    mpp_version: &'static str,
    subject: String,
    findings: &'a [Finding],
}

/// Runs the verb; returns the exit status.
///
/// # Errors
/// If an input cannot be read, or the report cannot be written.
pub(crate) fn doctor(args: &DoctorArgs, common: CommonArgs) -> Result<u8, Failure> {
    let (subject, findings) = match &args.subject {
        None => ("this machine".to_owned(), machine::look()),
        Some(subject) => {
            let name = subject.to_string_lossy().into_owned();
            match name.parse::<u32>() {
                Ok(pid) if !Path::new(subject).exists() => (format!("process {pid}"), process::look(pid)),
                _ if input::is_input(subject) => (name, input::look(Path::new(subject), &args.symbols, common)?),
                _ => (name, program::look(subject, &args.symbols)),
            }
        }
    };
    let worst = findings.iter().map(|finding| finding.grade).max().unwrap_or(Grade::Ok);
    let verdict = match worst {
        Grade::Ok => "nothing stands in the way",
        Grade::Hint => "it works; some things could be better",
        Grade::Bad => "it does not work as it is",
    };
    let header = [format!("{}: {verdict}", escaped(&subject))];
    let advice: Vec<String> = findings
        .iter()
        .filter(|finding| !finding.advice.is_empty())
        .map(|finding| format!("{}: {}", finding.what, finding.advice))
        .collect();
    let mut footer = Vec::new();
    if !advice.is_empty() {
        footer.push("what to do:".to_owned());
        footer.extend(advice.into_iter().map(|line| format!("  {line}")));
    }
    let data = Data {
        schema: "mpp-doctor",
        schema_version: 1,
        mpp_version: env!("CARGO_PKG_VERSION"),
        subject,
        findings: &findings,
    };
    let report = Report { header: &header, table: &table(&findings), footer: &footer, data: &data };
    output::report(&report, &args.report, common)?;
    Ok(if worst == Grade::Bad { Code::NothingCaptured.number() } else { 0 })
}

fn table(findings: &[Finding]) -> Table {
    let columns = vec![
        Column::new("", "grade"),
        Column::new("", "what"),
        Column::new("", "found"),
        Column::for_programs("advice"),
    ];
    let row = |finding: &Finding| {
        let grade = match finding.grade {
            Grade::Ok => "ok",
            Grade::Hint => "hint",
            Grade::Bad => "BAD",
        };
        [grade, finding.what, &finding.found, &finding.advice].map(|text| Cell::Text(text.to_owned())).to_vec()
    };
    Table { columns, rows: findings.iter().map(row).collect() }
}
