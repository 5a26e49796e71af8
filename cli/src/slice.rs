//! A stretch of a recording's time instead of its end: `--at`, `--from` and `--to`.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use mpp_profile::Profile;
use mpp_profile::formats::Limits;
use mpp_profile::formats::timeline::{self, Slice};
use mpp_profile::units::parse_duration;
use serde::Serialize;

use crate::args::InputArgs;
use crate::bundle;
use crate::exit::{Code, Failure, OrExit};
use crate::input::{self, Chosen, Loaded, Opened};
use crate::recording::Recording;
use crate::timeline::seconds;

/// Which time of a recording is shown. Times count from the start of the recording.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct SliceArgs {
    /// What was there at this time of a recording, such as 1.5s; taken from its timeline
    #[arg(long, value_name = "TIME", value_parser = time, env = "MPP_AT", hide_env_values = true)]
    #[arg(conflicts_with_all = ["from", "to"])]
    pub(crate) at: Option<Duration>,
    /// Only what was allocated from this time of a recording on, such as 1.5s; live is what of that was not freed
    #[arg(long, value_name = "TIME", value_parser = time, env = "MPP_FROM", hide_env_values = true)]
    pub(crate) from: Option<Duration>,
    /// Only what was allocated up to this time of a recording; live is what of that was there at this time
    #[arg(long, value_name = "TIME", value_parser = time, env = "MPP_TO", hide_env_values = true)]
    pub(crate) to: Option<Duration>,
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl SliceArgs {
    /// The stretch; `None` if the end of the recording is meant.
    ///
    /// # Errors
    /// If it ends before it begins.
    pub(crate) fn slice(&self) -> Result<Option<Slice>, Failure> {
        let slice = match (self.at, self.from, self.to) {
            (None, None, None) => return Ok(None),
            (Some(at), ..) => Slice::at(micros(at)),
            (None, from, to) => Slice { from: from.map_or(0, micros), to: to.map_or(u64::MAX, micros) },
        };
        if slice.from > slice.to {
            let why = format!("--from {} is later than --to {}", seconds(slice.from), seconds(slice.to));
            return Err(Failure::new(Code::Usage, why));
        }
        Ok(Some(slice))
    }

    /// The flags again, for a command to paste.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        let flags = [("--at", self.at), ("--from", self.from), ("--to", self.to)];
        flags.into_iter().filter_map(|(flag, time)| Some(format!("{flag} {}us", micros(time?))))
    }
}

/// ` at 1.500 s`, ` from 1.000 s to 2.000 s`, for people.
pub(crate) fn words(slice: Slice) -> String {
    match (slice.from, slice.to) {
        (0, u64::MAX) => String::new(),
        (0, to) => format!(" at {}", seconds(to)),
        (from, u64::MAX) => format!(" from {} to the end", seconds(from)),
        (from, to) => format!(" from {} to {}", seconds(from), seconds(to)),
    }
}

/// Where the numbers of a report come from, in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Origin<'a> {
    source: &'a str,
    /// Microseconds since the start of the recording; without, the profile is of its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_us: Option<u64>,
}

impl<'a> Origin<'a> {
    pub(crate) fn of(loaded: &'a Loaded) -> Origin<'a> {
        let slice = loaded.slice;
        let to_us = slice.map(|slice| slice.to).filter(|&to| to != u64::MAX);
        Origin { source: &loaded.source, from_us: slice.map(|slice| slice.from), to_us }
    }
}

/// Reads the stretch of a timeline, or of that of a process in a bundle.
///
/// # Errors
/// If the file is no timeline, cannot be read, or the stretch is not in it.
pub(crate) fn read(opened: Opened, pid: Option<u32>, slice: Slice) -> Result<Profile, Failure> {
    let name = opened.name.clone();
    let limits = Limits::default();
    let profile = if opened.is_bundle() {
        timeline::profile(&bundle::timeline(opened, pid)?[..], &name, &limits, slice)
    } else if opened.is_timeline() {
        timeline::profile(opened.reader(), &name, &limits, slice)
    } else {
        let why =
            "--at, --from and --to need a timeline; name a recording folder of `mpp run`, or a timeline.bin in it";
        return Err(Failure::new(Code::Usage, format!("{name}: has no times: {why}")));
    };
    let profile = profile.or_exit(Code::Input)?;
    // A time that never came would look like the end, or like nothing.
    let end = profile.comment("timeline_end_us").and_then(|end| end.parse::<u64>().ok()).unwrap_or(u64::MAX);
    let wanted = if slice.to == u64::MAX { slice.from } else { slice.to };
    if wanted > end {
        let why = format!("{name}: ends at {}, before {}", seconds(end), seconds(wanted));
        return Err(Failure::new(Code::Usage, why));
    }
    Ok(profile)
}

/// The timelines of a recording that the flags choose.
///
/// # Errors
/// If there is none.
pub(crate) fn chosen(recording: &Recording, input: &InputArgs) -> Result<Chosen, Failure> {
    let mut files = recording.timelines();
    let all: Vec<u32> = files.iter().map(|(pid, _)| *pid).collect();
    let fail = |why: String| Failure::new(Code::Input, format!("{}: {why}", recording.folder.display()));
    if files.is_empty() {
        return Err(fail("holds no timeline; `mpp run` writes one unless --no-timeline is given".to_owned()));
    }
    if input.all && all.len() > 1 {
        // Each timeline counts from the start of its own process.
        let why = "--at, --from and --to count from the start of one process; choose it with --pid";
        return Err(Failure::new(Code::Usage, format!("{}: {why}", recording.folder.display())));
    }
    if !input.all {
        let pid = input.pid.unwrap_or_else(|| input::main_process(recording, &all));
        files.retain(|(known, _)| *known == pid);
        if files.is_empty() {
            return Err(fail(format!("has no timeline of process {pid}, but of {}", input::list(&all))));
        }
    }
    Ok(Chosen { all, files })
}

/// Reads the stretch of a file by its path.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_file(path: &Path, slice: Slice) -> Result<Profile, Failure> {
    read(input::open_file(path)?, None, slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(at: Option<u64>, from: Option<u64>, to: Option<u64>) -> SliceArgs {
        let [at, from, to] = [at, from, to].map(|time| time.map(Duration::from_millis));
        SliceArgs { at, from, to }
    }

    #[test]
    fn flags_are_stretches() {
        let slice = |args: SliceArgs| args.slice().map_err(drop);
        assert_eq!(slice(args(None, None, None)), Ok(None));
        assert_eq!(slice(args(Some(3), None, None)), Ok(Some(Slice { from: 0, to: 3000 })));
        assert_eq!(slice(args(None, Some(3), None)), Ok(Some(Slice { from: 3000, to: u64::MAX })));
        assert_eq!(slice(args(None, Some(3), Some(4))), Ok(Some(Slice { from: 3000, to: 4000 })));
        assert_eq!(slice(args(None, Some(5), Some(4))), Err(()));
        assert_eq!(words(Slice { from: 3000, to: 4000 }), " from 0.003 s to 0.004 s");
        assert_eq!(args(None, Some(3), Some(4)).words().collect::<Vec<_>>(), ["--from 3000us", "--to 4000us"]);
    }
}
