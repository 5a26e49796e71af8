//! `mpp ctl`: ask a process that runs, or tell it what to do. `docs/control.md` describes what is said on the channel.

mod channel;
mod render;

use std::time::Duration;

use clap::{Args, ValueEnum};
use mpp_profile::units::parse_duration;

use crate::exit::{Code, Failure, OrExit};
use crate::output;

use channel::Problem;

const EXAMPLES: &str = "\
Examples:
  mpp run --ctl -- ./server                 a program that can be asked
  mpp ctl 4711 status                       is it sampling, and what has it found?
  mpp ctl 4711 dump now.pb.gz               a profile of this moment (.prof: as text)
  mpp ctl 4711 snapshot now.heap            its slabs and blocks, for `mpp heapmap now.heap`
  mpp ctl 4711 start 64KiB                  sample from now on, or at another rate
  mpp ctl 4711 mark 'after warm-up'         give this moment a name; it is told in later dumps
  mpp ctl 4711 stats --format json | jq .heap
  mpp ctl 4711 options purge_delay=0

Actions: status, start [RATE], stop, dump [PATH [text|proto|proto-gz]], snapshot PATH, reset, mark NAME,
purge, stats, options [NAME[=VALUE]].

Exit codes: 0 done, 1 no answer in time or refused, 2 usage, 13 no such process or no channel.";

/// The flags of `mpp ctl`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CtlArgs {
    /// The process
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pid: u32,
    /// What it is to do
    #[arg(value_enum, value_name = "ACTION")]
    action: Action,
    /// What belongs to the action
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,
    /// How long to wait for the answer
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = timeout, env = "MPP_TIMEOUT")]
    #[arg(hide_env_values = true)]
    timeout: Duration,
    /// How to print the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text", env = "MPP_FORMAT", hide_env_values = true)]
    format: Format,
}

/// See [`CtlArgs::action`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    /// What it does and what it has found
    Status,
    /// Sample allocations, with so many bytes between two samples
    Start,
    /// Sample no more
    Stop,
    /// Write a profile
    Dump,
    /// Write which blocks there are and what is free between them, for `mpp heapmap`
    Snapshot,
    /// Forget what was counted
    Reset,
    /// Give this moment a name
    Mark,
    /// Return memory to the system
    Purge,
    /// Exact counts of the heap and of the process
    Stats,
    /// Show or change options of the allocator
    Options,
}

impl Action {
    fn word(self) -> &'static str {
        match self {
            Action::Status => "status",
            Action::Start => "start",
            Action::Stop => "stop",
            Action::Dump => "dump",
            Action::Snapshot => "snapshot",
            Action::Reset => "reset",
            Action::Mark => "mark",
            Action::Purge => "purge",
            Action::Stats => "stats",
            Action::Options => "options",
        }
    }

    /// How many words may follow.
    fn takes(self) -> std::ops::RangeInclusive<usize> {
        match self {
            Action::Status | Action::Stop | Action::Reset | Action::Purge | Action::Stats => 0..=0,
            Action::Mark | Action::Snapshot => 1..=1,
            Action::Start | Action::Options => 0..=1,
            Action::Dump => 0..=2,
        }
    }
}

/// See [`CtlArgs::format`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines for people
    Text,
    /// The object that the process has sent
    Json,
}

fn timeout(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Duration::ZERO) => Err("must be more than nothing".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// Runs the verb.
///
/// # Errors
/// If there is nobody to ask, no answer comes in time, or it is a refusal.
pub(crate) fn ctl(args: &CtlArgs) -> Result<(), Failure> {
    let request = request(args)?;
    let answer = channel::ask(args.pid, &request, args.timeout).map_err(|problem| {
        let code = if let Problem::NoAnswer(_) = problem { Code::Internal } else { Code::Input };
        Failure::new(code, format!("process {}: {problem}", args.pid))
    })?;
    let object: serde_json::Value = serde_json::from_str(&answer)
        .map_err(|error| Failure::new(Code::Internal, format!("process {}: no answer: {error}", args.pid)))?;
    if object["ok"] != true {
        let why = object["error"].as_str().unwrap_or("it does not say why");
        return Err(Failure::new(Code::Internal, format!("process {} refuses: {why}", args.pid)));
    }
    let text = match args.format {
        Format::Json => format!("{}\n", answer.trim_end()),
        Format::Text => render::text(&object),
    };
    output::to_stdout(text.as_bytes()).or_exit(Code::Internal)
}

/// What a process says of itself, in one line; else why there is no answer.
pub(crate) fn status(pid: u32) -> Result<String, String> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let answer = channel::ask(pid, "status\n", PATIENCE).map_err(|problem| problem.to_string())?;
    let object: serde_json::Value = serde_json::from_str(&answer).map_err(|error| format!("no answer: {error}"))?;
    Ok(render::text(&object).lines().take(2).collect::<Vec<_>>().join("; "))
}

/// The line to send.
fn request(args: &CtlArgs) -> Result<String, Failure> {
    let (takes, given) = (args.action.takes(), args.arguments.len());
    if !takes.contains(&given) {
        let expected =
            if takes.end() == takes.start() { format!("{}", takes.end()) } else { format!("at most {}", takes.end()) };
        let why = format!("{} takes {expected} arguments, and {given} are given", args.action.word());
        return Err(Failure::new(Code::Usage, why));
    }
    let mut line = args.action.word().to_owned();
    for (index, argument) in args.arguments.iter().enumerate() {
        let argument = match (args.action, index) {
            // The process has a folder of its own.
            (Action::Dump | Action::Snapshot, 0) => absolute(argument)?,
            _ => argument.clone(),
        };
        line.push(' ');
        line.push_str(&quoted(&argument)?);
    }
    line.push('\n');
    Ok(line)
}

fn absolute(path: &str) -> Result<String, Failure> {
    let absolute = std::path::absolute(path).or_exit(Code::Usage)?;
    let text = absolute.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        Failure::new(Code::Usage, "the present folder has a name that is no text; name an absolute path")
    })
}

/// As one word of a line.
fn quoted(word: &str) -> Result<String, Failure> {
    if word.contains(['\n', '\0']) {
        return Err(Failure::new(Code::Usage, format!("{word:?} does not fit on a line")));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=%:".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return Ok(word.to_owned());
    }
    Ok(format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted() {
        let word = |text| quoted(text).unwrap_or_default();
        assert_eq!(word("purge_delay=5"), "purge_delay=5");
        assert_eq!(word("a b"), "\"a b\"");
        assert_eq!(word(r#"say "\""#), r#""say \"\\\"""#);
        assert_eq!(word(""), "\"\"");
        assert!(quoted("a\nb").is_err());
    }
}
