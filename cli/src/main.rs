//! `mpp`: see where the memory of an unmodified program goes.
//!
//! This crate is thin. It parses the command line ([`args`]), calls the crates that know (`mpp-profile` for everything
//! about profiles, `mpp-symbolizer` for names), and renders ([`render`]). One file per verb in [`verbs`]; exit codes in
//! [`exit`].

mod args;
mod bundle;
mod clock;
mod exit;
mod heading;
mod input;
mod labels;
mod message;
mod output;
mod preload;
mod process;
mod progress;
mod recording;
mod render;
mod selection;
mod settings;
mod slice;
mod suppressions;
mod symbols;
mod sys;
mod timeline;
mod verbs;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use args::{Cli, CommonArgs, Verb};
use exit::{Code, Failure, OrExit};
use settings::Settings;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(report_panic));
    // Before anything of mpp's own: its allocations would be part of the recording.
    if std::env::args_os().nth(1).is_some_and(|word| word == verbs::demo::PROGRAM) {
        return verbs::demo::run_program();
    }
    match command_line().and_then(|cli| dispatch(&cli.verb, cli.common)) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            message::error(format!("{:#}", failure.error));
            ExitCode::from(failure.code.number())
        }
    }
}

/// What the user has typed, with what files and the environment add. Ends the process for `--help` and for mistakes.
fn command_line() -> Result<Cli, Failure> {
    // A file with mistakes must not keep `mpp help` from working.
    if let Err(answer) = Cli::command().try_get_matches()
        && !answer.use_stderr()
    {
        answer.exit();
    }
    let command = Settings::read().and_then(|settings| settings.apply(Cli::command())).or_exit(Code::Usage)?;
    Cli::from_arg_matches(&command.get_matches()).map_err(|error| error.exit())
}

/// Runs a verb; returns the exit status.
fn dispatch(verb: &Verb, common: CommonArgs) -> Result<u8, Failure> {
    match verb {
        Verb::Run(args) => verbs::run::run(args, common),
        Verb::Top(args) => verbs::top::top(args, common).map(|()| 0),
        Verb::Tree(args) => verbs::tree::tree(args, common).map(|()| 0),
        Verb::Peek(args) => verbs::peek::peek(args, common).map(|()| 0),
        Verb::List(args) => verbs::list::list(args, common).map(|()| 0),
        Verb::Diff(args) => verbs::diff::diff(args, common),
        Verb::Heapmap(args) => verbs::heapmap::heapmap(args, common).map(|()| 0),
        Verb::Growth(args) => verbs::growth::growth(args, common).map(|()| 0),
        Verb::Leaks(args) => verbs::leaks::leaks(args, common),
        Verb::Stats(args) => verbs::stats::stats(args, common).map(|()| 0),
        Verb::Check(args) => verbs::check::check(args, common),
        Verb::Flame(args) => verbs::flame::flame(args, common).map(|()| 0),
        Verb::Convert(args) => verbs::convert::convert(args, common).map(|()| 0),
        Verb::Symbolize(args) => verbs::symbolize::symbolize(args, common).map(|()| 0),
        Verb::Merge(args) => verbs::merge::merge(args, common).map(|()| 0),
        Verb::Modules(args) => verbs::modules::modules(args, common).map(|()| 0),
        Verb::Timeline(args) => verbs::timeline::timeline(args, common).map(|()| 0),
        Verb::Bundle(args) => verbs::bundle::bundle(args, common).map(|()| 0),
        Verb::Ctl(args) => verbs::ctl::ctl(args).map(|()| 0),
        Verb::Demo(args) => verbs::demo::demo(args, common).map(|()| 0),
        Verb::DemoProgram => Ok(0),
        Verb::Doctor(args) => verbs::doctor::doctor(args, common),
        Verb::Explain(args) => verbs::explain::explain(args, common).map(|()| 0),
        Verb::Config(args) => verbs::config::config(args, common).map(|()| 0),
        Verb::Completions(args) => verbs::completions::completions(args).map(|()| 0),
        Verb::Man(args) => verbs::man::man(args, common).map(|()| 0),
    }
}

/// A bug in mpp: one line that can be pasted into a report, and the exit code for it instead of an abort.
fn report_panic(info: &std::panic::PanicHookInfo<'_>) {
    let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let what = text.unwrap_or("no message").replace('\n', " ");
    message::error(format!("internal error at {place}: {what}. This is a bug in mpp; please report it"));
    std::process::exit(i32::from(Code::Internal.number()));
}
