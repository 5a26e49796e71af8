//! The part of `mpp run` that is about timelines: its flags, its variables, its line in the summary.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use mpp_profile::units::{parse_duration, parse_size};

use crate::recording::Recording;
use crate::{input, timeline};

/// The library would take less, but not keep to it.
const LEAST_DISK: u64 = 512 << 10;

/// The flags about the timeline.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Timeline")]
pub(crate) struct TimelineArgs {
    /// Measure memory so often, also while a program of one thread does not allocate [default: 100ms, while it allocates]
    #[arg(long, value_name = "TIME", value_parser = interval, env = "MPP_RSS", hide_env_values = true)]
    rss: Option<Duration>,
    /// Most bytes of the timeline of one process: when they are nearly used up, it is thinned, not cut
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = disk, env = "MPP_MAX_DISK")]
    #[arg(hide_env_values = true)]
    max_disk: u64,
    /// Write no timeline
    #[arg(long, env = "MPP_NO_TIMELINE", hide_env_values = true, conflicts_with = "rss")]
    no_timeline: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if time < Duration::from_millis(1) { Err("must be at least 1ms".to_owned()) } else { Ok(time) }
}

fn disk(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text).map_err(|error| error.to_string())?;
    if bytes < LEAST_DISK { Err("must be at least 512KiB".to_owned()) } else { Ok(bytes) }
}

impl TimelineArgs {
    /// The flag that asks for what only a timeline has.
    pub(crate) fn asks(&self) -> Option<&'static str> {
        self.rss.map(|_| "--rss")
    }

    /// No timeline.
    #[cfg(test)]
    pub(crate) const NONE: Self = Self { rss: None, max_disk: LEAST_DISK, no_timeline: true };

    /// The variables for the library, which writes into its folder of the recording.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        if self.no_timeline {
            return Vec::new();
        }
        let mut variables =
            vec![("MIMALLOC_TIMELINE", "1".into()), ("MIMALLOC_TIMELINE_MAX", self.max_disk.to_string().into())];
        if let Some(time) = self.rss {
            variables.push(("MIMALLOC_TIMELINE_INTERVAL", format!("{}ms", time.as_millis()).into()));
        }
        variables
    }
}

/// Peak RSS and peak live memory of a process, and what is odd about its timeline; nothing if there is none that can be read.
pub(crate) fn lines(recording: &Recording, pid: Option<u32>) -> Vec<String> {
    let Some((_, path)) = recording.timelines().into_iter().find(|(known, _)| Some(*known) == pid) else {
        return Vec::new();
    };
    match timeline::read(&path, None) {
        Ok(measured) => measured
            .peaks()
            .into_iter()
            .chain(measured.oddities().into_iter().map(|oddity| format!("timeline: {oddity}")))
            .collect(),
        Err(failure) => vec![format!("timeline: {:#}", failure.error)],
    }
}

/// Whether a timeline has any sample in it.
pub(crate) fn tells_something(recording: &Recording) -> bool {
    recording
        .timelines()
        .iter()
        .any(|(_, path)| timeline::read(path, None).is_ok_and(|measured| measured.allocations > 0))
}

/// What to say of a recording that has timelines and no profile.
pub(crate) fn only(recording: &Recording) -> String {
    let folder = input::relative(&recording.folder);
    format!("no profile was written, but a timeline; next: mpp timeline {}", folder.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_the_library_shall_do() {
        let args = TimelineArgs { rss: Some(Duration::from_millis(250)), max_disk: 1 << 20, no_timeline: false };
        let variables = args.variables();
        let expected = [
            ("MIMALLOC_TIMELINE", OsString::from("1")),
            ("MIMALLOC_TIMELINE_MAX", "1048576".into()),
            ("MIMALLOC_TIMELINE_INTERVAL", "250ms".into()),
        ];
        assert_eq!(variables, expected);
        assert_eq!(TimelineArgs::NONE.variables(), []);
        assert!(disk("100KiB").is_err() && interval("0").is_err() && interval("10us").is_err());
    }
}
