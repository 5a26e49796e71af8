//! `mpp run`: start a program with the allocator preloaded, wait for it without being noticed, and say what came out.

mod elf;
mod environment;
mod outcome;
mod preflight;
mod summary;
mod then;
mod timeline;
mod triggers;
mod watch;

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use clap::{Args, ValueEnum};
use mpp_profile::units::parse_size;

use crate::args::{CommonArgs, SymbolArgs};
use crate::clock::Timestamp;
use crate::exit::{Code, Failure, OrExit};
use crate::recording::{self, Index, Recording};
use crate::sys::child::{Child, End};
use crate::sys::signals::Collector;
use crate::{message, output, preload};

use environment::{Follow, Settings, What};
use preflight::Target;
use then::Then;
use triggers::TriggerArgs;
use watch::Seen;

const EXAMPLES: &str = "\
Examples:
  mpp run -- ./app --flag                   then `mpp top` and `mpp flame` show where its memory is
  mpp run --sample 64KiB -- python3 job.py  more samples for a small program
  mpp run --mode exact -- ./app             every block, with the peak; some times slower
  mpp run --follow none -- make             only make itself, not what it starts
  mpp run --then top -- ./app               print the table at the end
  mpp run --then 'check --max-leak 1MiB' -- ./tests
                                            a gate for CI: exit status 10 if it fails
  mpp run --ctl --peak -- ./server          profiles of its peaks; `mpp ctl PID` asks it meanwhile
  mpp run --print-env                       the variables for a container file; runs nothing

The standard streams, exit status, signals and terminal of the program are left alone. Its
recording is a folder mpp-NAME-PID-TIME (the process id is that of mpp) with a profile of
every process, written when it exits, and every ten seconds for the case that it is killed.

Exit status: that of the program, 128+N if signal N ended it, 127 not found, 126 not executable,
125 mpp failed before the start, 14 nothing captured (instead of a status of 0 only); with
--then, that of the verb, such as 10 for a gate that failed (instead of a status of 0 only).";

/// The flags of `mpp run`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, override_usage = "mpp run [OPTIONS] [--] COMMAND [ARGUMENT]...")]
pub(crate) struct RunArgs {
    /// How to record: `sample` keeps one allocation in so many bytes, and costs little; `exact` counts every allocation and
    /// every free, and what was live at the peak
    #[arg(long, value_enum, value_name = "MODE", default_value = "sample", env = "MPP_MODE", hide_env_values = true)]
    mode: Mode,
    /// Mean bytes between two samples: less is more exact and slower, 1 records every block. Not for `--mode exact`
    #[arg(long, value_name = "SIZE", default_value = "512KiB", value_parser = sample_rate, env = "MPP_SAMPLE")]
    #[arg(hide_env_values = true)]
    sample: u64,
    /// The folder of the recording [default: mpp-NAME-PID-TIME]
    #[arg(short, long, value_name = "DIR", env = "MPP_RECORDING", hide_env_values = true)]
    output: Option<PathBuf>,
    /// Which processes write a profile
    #[arg(long, value_enum, value_name = "WHICH", default_value = "exec", env = "MPP_FOLLOW", hide_env_values = true)]
    follow: Follow,
    /// A variable for the environment of the program; can be given more than once
    #[arg(long, value_name = "NAME=VALUE", value_parser = environment::parse_assignment)]
    env: Vec<(OsString, OsString)>,
    /// Print the variables that would be set, and run nothing
    #[arg(long)]
    print_env: bool,
    /// Start of the random sequence of the sampler, to repeat a run
    #[arg(long, value_name = "N", env = "MPP_SEED", hide_env_values = true)]
    seed: Option<u64>,
    /// Another verb to run on the recording at the end, with its flags: `top`, or `'check --max-peak 200MiB'`. If the program
    /// succeeds, the exit status is that of the verb
    #[arg(long, value_parser = then::parse, value_name = "VERB", env = "MPP_THEN", hide_env_values = true)]
    then: Option<Then>,
    /// Also write which blocks there are at the end and what is free between them, for `mpp heapmap`
    #[arg(long, env = "MPP_HEAP_SNAPSHOT", hide_env_values = true)]
    heap_snapshot: bool,
    #[command(flatten)]
    triggers: TriggerArgs,
    /// The program and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(required_unless_present = "print_env")]
    command: Vec<OsString>,
    #[command(flatten)]
    timeline: timeline::TimelineArgs,
    #[command(flatten)]
    symbols: SymbolArgs,
}

/// See [`RunArgs::mode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// One allocation in so many bytes
    Sample,
    /// Every allocation and every free; the profile is a dhat.json, which DHAT's viewer opens too
    Exact,
}

fn sample_rate(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(0) => Err("must be at least 1 byte".to_owned()),
        Ok(rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
    }
}

/// Runs the verb and returns the exit status of `mpp`.
///
/// # Errors
/// If the target was not started, or nothing came out of a target that succeeded.
pub(crate) fn run(args: &RunArgs, common: CommonArgs) -> Result<u8, Failure> {
    if let (What::Exact, Some(flag)) = (what(args), args.triggers.asks().or(args.timeline.asks())) {
        let why = format!("{flag} is about samples, and --mode exact takes none: it writes one profile, at the end");
        return Err(Failure::new(Code::Usage, why));
    }
    if args.print_env {
        print_env(args, common)?;
        return Ok(0);
    }
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(Failure::new(Code::Usage, "no command given"));
    };
    args.then.as_ref().map_or(Ok(()), |then| then.check(&args.symbols))?;
    let path = path_of_target(args);
    let target = preflight::check(program, path.as_deref())?;
    let library = preload::unpack().or_exit(Code::BeforeStart)?;
    let started = Timestamp::now();
    let folder = args.output.clone().unwrap_or_else(|| recording::default_folder(Path::new(program), started));
    let recording = Recording::create(&folder).or_exit(Code::BeforeStart)?;
    let settings = Settings {
        library: &library,
        folder: &recording.folder,
        what: what(args),
        seed: args.seed,
        follow: args.follow,
        timeline: &args.timeline,
        snapshot: args.heap_snapshot,
        parent: Some(std::process::id()),
        triggers: args.triggers.variables(),
    };
    let variables = environment::variables(settings, &args.env);
    let index = new_index(args, started, &variables);

    let mut command = Command::new(&target.program);
    command.arg0(program).args(arguments).envs(variables);
    let finished = match recording.write_index(&index).or_exit(Code::BeforeStart) {
        Ok(()) => start_and_wait(command, program, &library, common),
        Err(failure) => Err(failure),
    };
    match finished {
        Ok(finished) => conclude(args, recording, index, &target, &finished, common),
        Err(failure) => {
            recording.remove();
            Err(failure)
        }
    }
}

/// Whether a program can have the library preloaded: its file, and whether it is a Go program.
///
/// # Errors
/// Why not, and what to do.
pub(crate) fn preflight(program: &OsStr) -> Result<(PathBuf, bool), Failure> {
    let target = preflight::check(program, std::env::var_os("PATH").as_deref())?;
    Ok((target.program, target.is_go))
}

fn what(args: &RunArgs) -> What {
    match args.mode {
        Mode::Sample => What::Sampled(args.sample),
        Mode::Exact => What::Exact,
    }
}

/// The PATH that the target will have: it decides which program a name means.
fn path_of_target(args: &RunArgs) -> Option<OsString> {
    let given = args.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    given.or_else(|| std::env::var_os("PATH"))
}

fn print_env(args: &RunArgs, common: CommonArgs) -> Result<(), Failure> {
    let library = preload::unpack().or_exit(Code::BeforeStart)?;
    let folder = args.output.clone().unwrap_or_else(|| PathBuf::from("mpp-recording"));
    let folder = std::path::absolute(folder).or_exit(Code::BeforeStart)?;
    let settings = Settings {
        library: &library,
        folder: &folder,
        what: what(args),
        seed: args.seed,
        follow: args.follow,
        timeline: &args.timeline,
        snapshot: args.heap_snapshot,
        parent: None,
        triggers: args.triggers.variables(),
    };
    let mut text = Vec::new();
    for (name, value) in environment::variables(settings, &args.env) {
        text.extend_from_slice(name.as_encoded_bytes());
        text.push(b'=');
        text.extend_from_slice(value.as_encoded_bytes());
        text.push(b'\n');
    }
    output::to_stdout(&text)?;
    let advice = format!(
        "copy {} to where LD_PRELOAD shall find it, and make the folder {} before the start",
        library.display(),
        folder.display()
    );
    message::note(common, advice);
    Ok(())
}

fn new_index(args: &RunArgs, started: Timestamp, variables: &[(OsString, OsString)]) -> Index {
    let lossy = |text: &OsString| text.to_string_lossy().into_owned();
    let cwd = std::env::current_dir().map(|folder| folder.display().to_string());
    Index {
        schema: recording::SCHEMA.to_owned(),
        schema_version: recording::SCHEMA_VERSION,
        mpp_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: args.command.iter().map(lossy).collect(),
        environment: variables.iter().map(|(name, _)| lossy(name)).collect(),
        cwd: cwd.unwrap_or_default(),
        started: started.rfc3339(),
        ended: None,
        sample_rate: match what(args) {
            What::Sampled(rate) => rate,
            What::Exact => 1,
        },
        follow: args.follow.word().to_owned(),
        pid: None,
        exit_status: None,
        exit_signal: None,
        processes: Vec::new(),
    }
}

/// What is known when the target has ended.
#[derive(Debug)]
struct Finished {
    pid: u32,
    end: End,
    seen: Seen,
    ended: Timestamp,
    /// The same for the clock of files.
    moment: SystemTime,
}

impl Finished {
    /// The index with the end of the target in it.
    fn noted_in(&self, index: Index) -> Index {
        let (exit_status, exit_signal) = match self.end {
            End::Exited(status) => (Some(status), None),
            End::Signalled(signal) => (None, Some(signal)),
        };
        Index { ended: Some(self.ended.rfc3339()), pid: Some(self.pid), exit_status, exit_signal, ..index }
    }
}

fn start_and_wait(command: Command, program: &OsStr, library: &Path, common: CommonArgs) -> Result<Finished, Failure> {
    let signals = Collector::start();
    let child = Child::start(command, signals.inherited()).map_err(|error| {
        let code = match (error.kind(), error.raw_os_error()) {
            (ErrorKind::NotFound, _) => Code::NotFound,
            // The start of a process itself failed.
            (_, Some(libc::EAGAIN | libc::ENOMEM)) => Code::BeforeStart,
            _ => Code::NotExecutable,
        };
        Failure::new(code, format!("{}: {error}", program.display()))
    })?;
    let on_missing = |executable: &Path| {
        message::warning(common, format!("the allocator is not active: {}", outcome::not_loaded(executable)));
    };
    let (end, seen) = watch::wait(&child, &signals, library, on_missing)?;
    Ok(Finished { pid: child.pid(), end, seen, ended: Timestamp::now(), moment: SystemTime::now() })
}

/// Looks at what the target left, tells the user, and decides the exit status: what `mpp` finds takes the place of a
/// success only, since a failure of the target says more to whoever started it.
fn conclude(
    args: &RunArgs,
    recording: Recording,
    index: Index,
    target: &Target,
    finished: &Finished,
    common: CommonArgs,
) -> Result<u8, Failure> {
    let status = finished.end.shell_status();
    let replaces_success = |failure: Failure| match status {
        0 => Err(failure),
        _ => {
            message::warning(common, format!("{:#}", failure.error));
            Ok(status)
        }
    };
    if recording.dumps().is_empty() {
        // What was killed early has no profile, but what it had told up to then.
        if timeline::tells_something(&recording) {
            message::note(common, timeline::only(&recording));
            recording.write_index(&finished.noted_in(index))?;
            return Ok(status);
        }
        recording.remove();
        let facts = outcome::Facts { end: finished.end, seen: &finished.seen };
        let name = target.program.display();
        let why = format!("nothing captured: {name}: {}", outcome::no_profile(&facts));
        return replaces_success(Failure::new(Code::NothingCaptured, why));
    }
    let index = Index { processes: summary::processes(&recording), ..finished.noted_in(index) };
    let reported = recording
        .write_index(&index)
        .map_err(Failure::from)
        .and_then(|()| summary::report(args, &recording, &index, target.is_go, finished.moment, common));
    if let Err(failure) = reported {
        if failure.code == Code::NothingCaptured {
            recording.remove();
        }
        return replaces_success(failure);
    }
    let Some(then) = &args.then else { return Ok(status) };
    match then.run(&recording.folder, &args.symbols, common) {
        Ok(of_verb) if status == 0 => Ok(of_verb),
        Ok(_) => Ok(status),
        Err(failure) if status == 0 => Err(failure),
        // Without this nobody knows that there is no verdict, so it is told to those as well who want it quiet.
        Err(failure) => {
            message::error(format!("{:#}", failure.error));
            Ok(status)
        }
    }
}
