//! The ways to be watched.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::peers::Peer;

/// Our library with nothing switched on: what the others are compared with.
pub const OFF: &str = "off";
/// Our library as users are asked to begin with.
pub const SAMPLED: &str = "512 KiB";
/// The same with eight times as many samples.
pub const FINE: &str = "64 KiB";
/// All calls of a program, told one by one.
pub const EXACT: &str = "exact";

/// Rows of the performance table in which watching can cost something: those that allocate all the time, in one thread and in several, of
/// all sizes; and programs. Names as on its command line.
pub const ROWS: &[&str] = &[
    "pair-64",
    "pair-1024",
    "pairmix-16-1024",
    "batch-rand-1000",
    "window-1000",
    "window-100000",
    "window-20000-big",
    "big-131072",
    "general-t2",
    "handoff-t2",
    "larson-2",
    "alloc-test-1",
    "mstress-2",
    "espresso",
    "python-objects",
    "python-json",
    "perl",
    "sqlite3",
    "c++-containers-1",
    "jq",
];

/// Rows for tools that take a minute where others take a second.
pub const ROWS_OF_TOOLS: &[&str] = &["python-json", "sqlite3"];

/// The row of eight million blocks.
pub const MALLOCS: &str = "8-million-mallocs";

/// Our library in all modes, the reference first. What they write goes to `folder`.
#[must_use]
pub fn modes(ours: &Peer, folder: &Path) -> Vec<Peer> {
    let file = |name: &str| folder.join(name);
    let mode = |name: &str, settings: &[(&str, &str)], evidence: Option<&str>| {
        let words: Vec<_> = settings.iter().map(|(key, value)| format!("`{key}={value}`")).collect();
        let origin = if words.is_empty() { "this repository".to_owned() } else { words.join(" ") };
        Peer { origin, evidence: evidence.map(file), ..ours.with(name, settings) }
    };
    let sampled = |name: &str, rate: &str, dump: &str, more: &[(&str, &str)]| {
        let settings = [&[("MIMALLOC_PROF", "1"), ("MIMALLOC_PROF_SAMPLE_RATE", rate)], more].concat();
        let mut peer = mode(name, &settings, Some(dump));
        let path = if more.is_empty() { file(dump) } else { file("beside.prof") };
        peer.settings.push(("MIMALLOC_PROF_DUMP_AT_EXIT".to_owned(), path.display().to_string()));
        peer
    };
    let mut timeline = sampled("timeline", "524288", "timeline.bin", &[("MIMALLOC_TIMELINE_MAX", "1GiB")]);
    timeline.settings.push(("MIMALLOC_TIMELINE".to_owned(), file("timeline.bin").display().to_string()));
    let mut exact = mode(EXACT, &[("MIMALLOC_DHAT", "1")], Some("dhat.json"));
    exact.settings.push(("MIMALLOC_DHAT_DUMP_AT_EXIT".to_owned(), file("dhat.json").display().to_string()));
    vec![
        mode(OFF, &[], None),
        sampled(SAMPLED, "524288", "sampled.prof", &[]),
        sampled(FINE, "65536", "fine.prof", &[]),
        timeline,
        mode("events", &[("MIMALLOC_MEMORY_EVENTS", "1")], None),
        exact,
    ]
}

/// Other tools that watch every call, as they are had here; and the names of those that are not installed. They work on the C library's
/// allocator, so that comes first.
#[must_use]
pub fn tools(folder: &Path) -> (Vec<Peer>, Vec<&'static str>) {
    let (mut tools, mut missing) = (vec![Peer::glibc()], Vec::new());
    let mut add = |name: &'static str, program: &str, arguments: &[String], evidence: &str| match version(program) {
        Some(version) => tools.push(Peer {
            name: name.to_owned(),
            origin: version,
            wrapper: std::iter::once(program.to_owned()).chain(arguments.iter().cloned()).collect(),
            evidence: Some(folder.join(evidence)),
            ..Peer::glibc()
        }),
        None => missing.push(name),
    };
    let output = folder.join("heaptrack").display().to_string();
    add("heaptrack", "heaptrack", &["--raw".to_owned(), "-o".to_owned(), output], "heaptrack.raw.zst");
    let output = format!("--dhat-out-file={}", folder.join("valgrind.json").display());
    add("Valgrind DHAT", "valgrind", &["-q".to_owned(), "--tool=dhat".to_owned(), output], "valgrind.json");
    (tools, missing)
}

/// What a program says of its version; `None` if it is not installed.
fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().trim().to_owned();
    output.status.success().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_differs_from_off_by_its_settings_only() {
        let ours = Peer { library: Some("/l.so".into()), ..Peer::glibc() };
        let modes = modes(&ours, Path::new("/w"));
        assert_eq!((modes[0].name.as_str(), modes[0].settings.len()), (OFF, 0));
        assert!(modes.iter().all(|mode| mode.library == ours.library && mode.wrapper.is_empty()));
        let mut names: Vec<_> = modes.iter().map(|mode| mode.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), modes.len());
        let timeline = modes.iter().find(|mode| mode.name == "timeline").unwrap();
        assert_eq!(timeline.evidence.as_deref(), Some(Path::new("/w/timeline.bin")));
        assert!(
            timeline
                .settings
                .iter()
                .any(|(key, value)| key == "MIMALLOC_PROF_DUMP_AT_EXIT" && value == "/w/beside.prof")
        );
        // What is a path of this machine stays out of the document.
        assert!(modes.iter().all(|mode| !mode.origin.contains("/w")));
    }

    #[test]
    fn tools_run_the_program() {
        let (tools, missing) = tools(Path::new("/w"));
        assert_eq!(tools.len() + missing.len(), 3);
        for tool in &tools[1..] {
            let (command, arguments) = tool.command(Path::new("/bin/true"), &["x".to_owned()]);
            assert_ne!(command, Path::new("/bin/true"));
            assert_eq!(arguments[arguments.len() - 2..], ["/bin/true".to_owned(), "x".to_owned()]);
        }
    }
}
