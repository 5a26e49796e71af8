//! What is written while the program runs, and when.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use mpp_profile::units::{parse_duration, parse_size};

/// Peaks that are kept when no number is given.
const PEAKS: &str = "3";

/// The flags for it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "While it runs")]
pub(super) struct TriggerArgs {
    /// Write the profile at least so often, for the case that the program is killed (0: only when it exits)
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time, env = "MPP_SNAPSHOT")]
    #[arg(hide_env_values = true)]
    pub(super) snapshot: Duration,
    /// Keep a numbered dump every so often
    #[arg(long, value_name = "TIME", value_parser = time, env = "MPP_INTERVAL", hide_env_values = true)]
    interval: Option<Duration>,
    /// Keep a numbered dump whenever so much was allocated
    #[arg(long, value_name = "SIZE", value_parser = size, env = "MPP_EVERY", hide_env_values = true)]
    every: Option<u64>,
    /// Keep dumps of the highest peaks of live memory, so many at most [default number: 3]
    #[arg(long, value_name = "NUMBER", num_args = 0..=1, require_equals = true, default_missing_value = PEAKS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000), env = "MPP_PEAK", hide_env_values = true)]
    peak: Option<u32>,
    /// Keep a numbered dump whenever the program gets this signal (unless it handles it itself)
    #[arg(long, value_name = "SIGNAL", value_parser = signal, env = "MPP_ON_SIGNAL", hide_env_values = true)]
    on_signal: Option<i32>,
    /// Open the control channel for `mpp ctl`
    #[arg(long, env = "MPP_CTL", hide_env_values = true)]
    ctl: bool,
}

impl TriggerArgs {
    /// A flag that asks for dumps of samples.
    pub(super) fn asks(&self) -> Option<&'static str> {
        let flags = [
            (self.interval.is_some(), "--interval"),
            (self.every.is_some(), "--every"),
            (self.peak.is_some(), "--peak"),
            (self.on_signal.is_some(), "--on-signal"),
        ];
        flags.into_iter().find(|(is_given, _)| *is_given).map(|(_, flag)| flag)
    }

    /// The variables that tell the library.
    pub(super) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let milliseconds = |time: Duration| format!("{}ms", time.as_millis());
        let values = [
            ("MIMALLOC_PROF_SNAPSHOT", Some(milliseconds(self.snapshot)).filter(|_| !self.snapshot.is_zero())),
            ("MIMALLOC_PROF_DUMP_INTERVAL", self.interval.map(milliseconds)),
            ("MIMALLOC_PROF_DUMP_EVERY", self.every.map(|bytes| bytes.to_string())),
            ("MIMALLOC_PROF_DUMP_PEAKS", self.peak.map(|peaks| peaks.to_string())),
            ("MIMALLOC_PROF_DUMP_SIGNAL", self.on_signal.map(|signal| signal.to_string())),
            ("MIMALLOC_CTL", self.ctl.then(|| "1".to_owned())),
        ];
        values.into_iter().filter_map(|(name, value)| Some((name, value?.into()))).collect()
    }
}

fn time(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if time < Duration::from_millis(10) { Err("must be at least 10ms".to_owned()) } else { Ok(time) }
}

fn size(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Ok(0) => Err("must be at least 1 byte".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// A signal that a program may handle and that says nothing about a fault.
fn signal(text: &str) -> Result<i32, String> {
    let names = [
        ("HUP", libc::SIGHUP),
        ("INT", libc::SIGINT),
        ("QUIT", libc::SIGQUIT),
        ("USR1", libc::SIGUSR1),
        ("USR2", libc::SIGUSR2),
        ("PIPE", libc::SIGPIPE),
        ("ALRM", libc::SIGALRM),
        ("TERM", libc::SIGTERM),
        ("CHLD", libc::SIGCHLD),
        ("CONT", libc::SIGCONT),
        ("URG", libc::SIGURG),
        ("VTALRM", libc::SIGVTALRM),
        ("PROF", libc::SIGPROF),
        ("WINCH", libc::SIGWINCH),
        ("IO", libc::SIGIO),
        ("PWR", libc::SIGPWR),
    ];
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let number = text.parse().ok();
    let known = names.iter().find(|(known, value)| *known == name || Some(*value) == number).map(|&(_, value)| value);
    let free = number.filter(|number| (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(number));
    known.or(free).ok_or_else(|| "expected a signal that a program may handle, such as USR2".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals() {
        assert_eq!([signal("USR2"), signal("SIGUSR2"), signal("12")], [Ok(12), Ok(12), Ok(12)]);
        assert_eq!(signal("40"), Ok(40));
        for text in ["KILL", "9", "11", "0", "-1", "usr2", "", "65"] {
            assert!(signal(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(time("0"), Ok(Duration::ZERO));
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        assert!(time("1ms").is_err() && time("soon").is_err());
    }
}
