//! The environment variables that tell the preload library what to do.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use crate::preload;
use crate::recording::{EXACT_DUMP, SNAPSHOT};

use super::timeline::TimelineArgs;

/// Which processes write a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Follow {
    /// Only the one that mpp starts
    None,
    /// Also programs that it starts (not mere forks)
    Exec,
    /// Also forks that go on in the same program
    All,
}

impl Follow {
    /// The word for it, on the command line, in the environment and in the recording.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Follow::None => "none",
            Follow::Exec => "exec",
            Follow::All => "all",
        }
    }
}

/// Which blocks are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// One in so many bytes.
    Sampled(u64),
    /// All.
    Exact,
}

/// What to record, and where.
#[derive(Clone, Debug)]
pub(crate) struct Settings<'a> {
    /// The unpacked library, absolute.
    pub(crate) library: &'a Path,
    /// The recording folder, absolute: the target may change its folder.
    pub(crate) folder: &'a Path,
    /// Every block, or one in so many bytes.
    pub(crate) what: What,
    /// Start of the random sequence, for repeatable runs.
    pub(crate) seed: Option<u64>,
    /// Which processes.
    pub(crate) follow: Follow,
    /// What of the timeline.
    pub(crate) timeline: &'a TimelineArgs,
    /// A heap snapshot at the end.
    pub(crate) snapshot: bool,
    /// The process that starts the target; `None` if that is not mpp.
    pub(crate) parent: Option<u32>,
    /// What says when to write while the program runs.
    pub(crate) triggers: Vec<(&'static str, OsString)>,
}

/// The variables to set, in the order they are printed in. Those the user gave (`--env`) come last and win, except that
/// what is in `LD_PRELOAD` already stays behind our library.
pub(crate) fn variables(settings: Settings<'_>, user: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let user_preload = user.iter().rev().find(|(name, _)| name == "LD_PRELOAD").map(|(_, value)| value.clone());
    let preload = user_preload.or_else(|| std::env::var_os("LD_PRELOAD"));
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    let mut set = |name: &str, value: &OsStr| variables.push((name.into(), value.to_owned()));
    set("LD_PRELOAD", &preload::ld_preload(settings.library, preload.as_deref()));
    match settings.what {
        What::Sampled(rate) => {
            set("MIMALLOC_PROF", OsStr::new("1"));
            set("MIMALLOC_PROF_SAMPLE_RATE", OsStr::new(&rate.to_string()));
            set("MIMALLOC_PROF_RECORDING", &pattern(settings.folder, ""));
            settings.timeline.variables().iter().for_each(|(name, value)| set(name, value));
        }
        What::Exact => {
            set("MIMALLOC_DHAT", OsStr::new("1"));
            set("MIMALLOC_DHAT_DUMP_AT_EXIT", &pattern(settings.folder, &format!("/%p/{EXACT_DUMP}")));
        }
    }
    if settings.snapshot {
        set("MIMALLOC_SNAPSHOT_ON_EXIT", OsStr::new("3"));
        set("MIMALLOC_SNAPSHOT_PATH", &pattern(settings.folder, &format!("/%p/{SNAPSHOT}")));
    }
    set("MIMALLOC_PROF_FOLLOW", OsStr::new(settings.follow.word()));
    if let Some(seed) = settings.seed {
        set("MIMALLOC_PROF_SEED", OsStr::new(&seed.to_string()));
    }
    if let Some(parent) = settings.parent {
        set("MIMALLOC_PROF_PARENT", OsStr::new(&parent.to_string()));
    }
    settings.triggers.iter().for_each(|(name, value)| set(name, value));
    for (name, value) in user.iter().filter(|(name, _)| name != "LD_PRELOAD") {
        variables.retain(|(known, _)| known != name);
        variables.push((name.clone(), value.clone()));
    }
    variables
}

/// Where the library writes: `%` stands before a letter with a meaning, and `%%` for a `%` in the name of the folder. `below`: a pattern.
fn pattern(folder: &Path, below: &str) -> OsString {
    let mut pattern = Vec::new();
    for &byte in folder.as_os_str().as_bytes() {
        pattern.extend_from_slice(if byte == b'%' { b"%%" } else { std::slice::from_ref(&byte) });
    }
    pattern.extend_from_slice(below.as_bytes());
    OsString::from_vec(pattern)
}

/// Reads `NAME=VALUE`.
pub(crate) fn parse_assignment(text: &str) -> Result<(OsString, OsString), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !text.contains('\0') => Ok((name.into(), value.into())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings<'static> {
        Settings {
            timeline: &TimelineArgs::NONE,
            library: Path::new("/c/libmimalloc_pprof.so"),
            folder: Path::new("/r"),
            what: What::Sampled(4096),
            seed: None,
            follow: Follow::Exec,
            snapshot: false,
            parent: Some(17),
            triggers: vec![("MIMALLOC_CTL", "1".into())],
        }
    }

    fn value<'a>(variables: &'a [(OsString, OsString)], name: &str) -> Vec<&'a str> {
        variables.iter().filter(|(known, _)| known == name).filter_map(|(_, value)| value.to_str()).collect()
    }

    #[test]
    fn says_where_and_how_to_record() {
        let variables = variables(settings(), &[]);
        assert_eq!(value(&variables, "MIMALLOC_PROF_RECORDING"), ["/r"]);
        assert_eq!(value(&variables, "MIMALLOC_CTL"), ["1"]);
        assert_eq!(value(&variables, "MIMALLOC_PROF_SAMPLE_RATE"), ["4096"]);
        assert_eq!(value(&variables, "MIMALLOC_PROF_PARENT"), ["17"]);
        assert_eq!(value(&variables, "MIMALLOC_PROF_SEED"), [""; 0]);
        assert_eq!(value(&variables, "MIMALLOC_DHAT"), [""; 0]);
    }

    #[test]
    fn exact_recordings_sample_nothing() {
        let variables = variables(Settings { what: What::Exact, ..settings() }, &[]);
        assert_eq!(value(&variables, "MIMALLOC_DHAT"), ["1"]);
        assert_eq!(value(&variables, "MIMALLOC_DHAT_DUMP_AT_EXIT"), ["/r/%p/dhat.json"]);
        assert_eq!(value(&variables, "MIMALLOC_PROF_FOLLOW"), ["exec"]);
        assert_eq!(value(&variables, "MIMALLOC_PROF"), [""; 0]);
    }

    #[test]
    fn percent_signs_in_the_folder_are_not_placeholders() {
        assert_eq!(pattern(Path::new("/50%p"), "/%p/x"), "/50%%p/%p/x");
    }

    #[test]
    fn what_the_user_sets_wins_but_the_library_stays() {
        let user = [("LD_PRELOAD", "/x.so"), ("MIMALLOC_PROF_SAMPLE_RATE", "1"), ("A", "b")];
        let variables = variables(settings(), &user.map(|(name, value)| (name.into(), value.into())));
        assert_eq!(value(&variables, "LD_PRELOAD"), ["/c/libmimalloc_pprof.so:/x.so"]);
        assert_eq!(value(&variables, "MIMALLOC_PROF_SAMPLE_RATE"), ["1"]);
        assert_eq!(value(&variables, "A"), ["b"]);
    }

    #[test]
    fn assignments() {
        assert_eq!(parse_assignment("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert_eq!(parse_assignment("A="), Ok(("A".into(), "".into())));
        assert!(parse_assignment("A").is_err() && parse_assignment("=b").is_err());
    }
}
