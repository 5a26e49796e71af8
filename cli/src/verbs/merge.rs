//! `mpp merge`: one profile out of many.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use mpp_profile::analysis::{Merger, Weights};
use mpp_profile::formats::pprof;
use mpp_profile::text::escaped;
use mpp_profile::units::{bytes, count};
use mpp_profile::{Metric, Profile};

use crate::args::{CommonArgs, InputArgs, OutputArgs, SymbolArgs};
use crate::exit::{Code, Failure, OrExit};
use crate::{input, message, output};

const EXAMPLES: &str = "\
Examples:
  mpp merge a.pb.gz b.pb.gz -o all.pb.gz        add profiles up
  mpp merge --all mpp-make-1-x -o make.pb.gz    all processes of a recording
  mpp merge host*/heap.prof -o fleet.pb.gz && mpp top fleet.pb.gz

The result is a profile.proto with names in it (not packed if FILE ends in .pb). Profiles are read one after the other, so
many large ones are no problem. Where sampling rates differ, estimates are added.";

/// The flags of `mpp merge`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MergeArgs {
    /// Heap profiles, recording folders, bundles
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<PathBuf>,
    /// All processes of recordings, and not only the ones that were started
    #[arg(long, env = "MPP_ALL", hide_env_values = true)]
    all: bool,
    /// Do not look up functions and lines now: faster, and the result needs the programs later
    #[arg(long, env = "MPP_NO_NAMES", hide_env_values = true)]
    no_names: bool,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the verb.
///
/// # Errors
/// If an input cannot be read, the sums are too large, or the result cannot be written.
pub(crate) fn merge(args: &MergeArgs, common: CommonArgs) -> Result<(), Failure> {
    let target = args.output.output.as_deref().filter(|path| *path != Path::new("-"));
    if args.output.output.is_none() && io::stdout().is_terminal() {
        return Err(Failure::new(Code::Usage, "a profile is no text for a terminal; name a file with -o FILE"));
    }
    let mut merger = Merger::default();
    let mut files = Vec::new();
    for path in &args.inputs {
        let profile = read(args, path, common)?;
        merger.add(profile).map_err(|why| Failure::new(Code::Input, format!("{}: {why}", path.display())))?;
        files.push(path);
    }
    let Some(profile) = merger.finish() else { return Err(Failure::new(Code::Usage, "no input")) };
    for warning in &profile.warnings {
        message::warning(common, warning);
    }
    let mut result = Vec::new();
    match target.is_some_and(|path| path.extension().is_some_and(|extension| extension == "pb")) {
        true => pprof::write(&profile, &mut result),
        false => pprof::write_packed(&profile, &mut result),
    }
    .or_exit(Code::Input)?;
    match target {
        None => output::to_stdout(&result)?,
        Some(path) => {
            output::to_private_file(path, &result, || args.output.force)?;
            let live = Weights::of(&profile, Metric::Live).total().bytes;
            let (inputs, stacks) = (count(files.len() as u64), count(profile.stacks.len() as u64));
            let path = escaped(&path.display().to_string()).to_string();
            message::note(
                common,
                format!("{inputs} inputs with {} live in {stacks} stacks written to {path}", bytes(live)),
            );
        }
    }
    Ok(())
}

fn read(args: &MergeArgs, path: &Path, common: CommonArgs) -> Result<Profile, Failure> {
    if args.no_names && path.is_file() {
        return input::read(path);
    }
    let input = InputArgs { input: Some(path.to_owned()), all: args.all, ..InputArgs::default() };
    Ok(input::load(&input, &args.symbols, common)?.profile)
}
