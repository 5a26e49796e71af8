//! `mpp run --then VERB`: another verb, with its flags, on what was recorded.

use std::ffi::OsString;
use std::path::Path;

use clap::{CommandFactory, FromArgMatches};

use crate::args::{Cli, CommonArgs, DebuginfodChoice, SymbolArgs, Verb};
use crate::exit::{Code, Failure, OrExit};
use crate::input;
use crate::settings::Settings;

/// The verbs that say something about a recording, and take it as their last argument.
const VERBS: &[&str] = &[
    "bundle",
    "check",
    "convert",
    "diff",
    "flame",
    "leaks",
    "list",
    "modules",
    "peek",
    "stats",
    "symbolize",
    "timeline",
    "top",
    "tree",
];

/// A verb and its flags, as words.
#[derive(Clone, Debug)]
pub(super) struct Then(Vec<String>);

/// Parses the value of `--then`, which is split into words as a shell does it.
pub(super) fn parse(text: &str) -> Result<Then, String> {
    let words = shlex::split(text).ok_or("a quotation mark is not closed")?;
    match words.first() {
        Some(verb) if VERBS.contains(&verb.as_str()) => Ok(Then(words)),
        _ => Err(format!("expected a verb with its flags; the verbs are {}", VERBS.join(", "))),
    }
}

impl Then {
    /// Refuses flags that the verb does not have, before anything is run.
    ///
    /// # Errors
    /// If the verb would not accept its words.
    pub(super) fn check(&self, symbols: &SymbolArgs) -> Result<(), Failure> {
        self.verb(Path::new("recording"), symbols).map(drop)
    }

    /// Runs the verb; returns its exit status.
    ///
    /// # Errors
    /// Those of the verb.
    pub(super) fn run(&self, folder: &Path, symbols: &SymbolArgs, common: CommonArgs) -> Result<u8, Failure> {
        crate::dispatch(&self.verb(&input::relative(folder), symbols)?, common)
    }

    /// The verb as if it had been typed, with what `mpp.toml` and the environment have for it.
    fn verb(&self, folder: &Path, symbols: &SymbolArgs) -> Result<Verb, Failure> {
        let command = Settings::read().and_then(|settings| settings.apply(Cli::command())).or_exit(Code::Usage)?;
        let has_symbols = command
            .find_subcommand(&self.0[0])
            .is_some_and(|verb| verb.get_arguments().any(|argument| argument.get_long() == Some("debug-dir")));
        let mut words: Vec<OsString> = vec!["mpp".into(), self.0[0].clone().into()];
        if has_symbols {
            words.extend(typed(symbols));
        }
        words.extend(self.0[1..].iter().map(OsString::from));
        words.extend(["--".into(), folder.into()]);
        let parsed = command.try_get_matches_from(words).and_then(|matches| Cli::from_arg_matches(&matches));
        let wrong = |error: clap::Error| {
            let why = error.to_string();
            let why = why.lines().next().unwrap_or_default().trim_start_matches("error: ");
            Failure::new(Code::Usage, format!("--then '{}': {why}\nsee `mpp help {}`", self.0.join(" "), self.0[0]))
        };
        Ok(parsed.map_err(wrong)?.verb)
    }
}

/// The flags that give these values.
fn typed(symbols: &SymbolArgs) -> Vec<OsString> {
    let SymbolArgs { debug_dir, sysroot, proc, no_symbol_cache, perf_map, debuginfod, bundle, source_dir } = symbols;
    let mut words = Vec::new();
    let mut flag = |name: &str, value: OsString| {
        let mut word = OsString::from(format!("--{name}="));
        word.push(value);
        words.push(word);
    };
    debug_dir.iter().for_each(|folder| flag("debug-dir", folder.into()));
    sysroot.iter().for_each(|folder| flag("sysroot", folder.into()));
    proc.iter().for_each(|pid| flag("proc", pid.to_string().into()));
    perf_map.iter().for_each(|file| flag("perf-map", file.into()));
    bundle.iter().for_each(|file| flag("bundle", file.into()));
    source_dir.iter().for_each(|folder| flag("source-dir", folder.typed()));
    match debuginfod {
        DebuginfodChoice::Off => flag("debuginfod", "off".into()),
        DebuginfodChoice::On => flag("debuginfod", "on".into()),
        // What it is anyway, unless the words of the verb say something else.
        DebuginfodChoice::Cache => {}
    }
    if *no_symbol_cache {
        words.push("--no-symbol-cache".into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        let Then(words) = parse("check --max-peak 1MiB --focus 'a b'").expect("a verb");
        assert_eq!(words, ["check", "--max-peak", "1MiB", "--focus", "a b"]);
        for text in ["", "run", "rm -rf", "check 'x", "--max-peak 1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
