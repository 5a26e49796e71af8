//! Which rows there are, and which contender takes part in which.

use mpp_workloads::memory_return::catalogue::{self, Group};

use crate::peers::{OURS, Peer};

/// Ours with returning switched off.
pub const OFF: &str = "ours-off";
/// Ours with a thread from the start.
pub const THREAD: &str = "ours-thread";
/// Ours without holes: whole slabs and free runs only.
pub const NO_HOLES: &str = "ours-no-holes";

/// Ours with other options.
const VARIANTS: [(&str, &str, &str); 3] =
    [(OFF, "MIMALLOC_PURGE_DELAY", "-1"), (THREAD, "MIMALLOC_SCAVENGER", "2"), (NO_HOLES, "MIMALLOC_PURGE_HOLES", "0")];

/// The peers of these tables, unless others are asked for.
pub const PEERS: [&str; 7] = [OURS, "mimalloc3", "c-fork", "jemalloc", "tcmalloc", "snmalloc", "glibc"];

/// Rows that have a chart, and the row of the same scenario in which somebody asks.
pub const CHARTS: [(&str, Option<&str>, &str); 6] = [
    ("busy-4", Some("asked-busy-4"), "four threads drain and stay busy in other sizes"),
    ("same-4", Some("asked-same-4"), "four threads drain and stay busy in the same sizes"),
    ("asleep-4", Some("own-asleep-4"), "four threads drain and sleep"),
    ("alone-pairs", Some("own-alone-pairs"), "one thread drains, then a malloc and a free each millisecond"),
    ("alone-block", Some("own-alone-block"), "one thread drains, then never calls again"),
    ("threads-64", None, "64 threads free all in random order and sleep"),
];

/// Rows that say little more than others do: in a quick run only ours is measured in them.
const MINOR: [&str; 9] = [
    "busy-1",
    "busy-4-random",
    "same-1",
    "asleep-1",
    "asleep-4-random",
    "alone-pairs-random",
    "alone-block-random",
    "asked-asleep-1",
    "alone-loop",
];

/// Rows of `performance` in which returning must cost nothing.
pub const SPEED: [&str; 12] = [
    "pair-64",
    "pair-1024",
    "pairmix-16-1024",
    "calloc-4096",
    "batch-fifo-1000",
    "batch-rand-1000",
    "batch-fifo-100000",
    "window-1000",
    "window-100000",
    "window-20000-big",
    "grow15-65536",
    "big-131072",
];

/// The contenders: all peers, and ours with other options, if it is there.
#[must_use]
pub fn contenders(peers: Vec<Peer>) -> Vec<Peer> {
    let ours = peers.iter().find(|peer| peer.name == OURS).cloned();
    let variants = VARIANTS.iter().filter_map(|&(name, key, value)| Some(ours.as_ref()?.with(name, &[(key, value)])));
    let variants: Vec<_> = variants.collect();
    peers.into_iter().chain(variants).collect()
}

/// A row to be measured.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its name.
    pub name: &'static str,
    /// Its table.
    pub group: Group,
    /// The arguments of `mpp-workload`.
    pub arguments: Vec<String>,
    /// The same for the first round, in which rows that have a chart are watched for longer.
    pub first_arguments: Vec<String>,
    /// System calls are counted, too.
    pub is_traced: bool,
    /// Measured once only, under all contenders at the same time: nobody computes.
    pub is_idle: bool,
    /// The numbers of the contenders that take part.
    pub contenders: Vec<usize>,
}

/// The tasks whose name or group is `wanted`, for these contenders.
#[must_use]
pub fn tasks(contenders: &[Peer], quick: bool, wanted: impl Fn(&str) -> bool) -> Vec<Task> {
    let rows = catalogue::rows().into_iter().filter(|row| wanted(row.name) || wanted(row.group.name()));
    rows.map(|row| task(&row, contenders, quick)).collect()
}

fn task(row: &catalogue::Row, contenders: &[Peer], quick: bool) -> Task {
    let line = |more: &[&str]| row.arguments.iter().chain(more).map(|&word| word.to_owned()).collect::<Vec<_>>();
    let is_main = CHARTS.iter().any(|&(name, ..)| name == row.name);
    let is_charted = is_main || CHARTS.iter().any(|&(_, asked, _)| asked == Some(row.name));
    let has_watch = row.arguments.contains(&"--watch");
    let (later, first): (&[&str], &[&str]) = match (quick, row.name) {
        (false, _) if is_charted => (&[], &["--watch", "12s"]),
        (true, _) if is_main => (&["--watch", "2s"], &["--watch", "2s"]),
        (true, _) if !has_watch => (&["--watch", "1200ms"], &["--watch", "1200ms"]),
        _ => (&[], &[]),
    };
    let (mut arguments, mut first_arguments) = (line(later), line(first));
    if quick {
        let shorter = |word: &mut String| match (row.name, word.as_str()) {
            ("idle", "65s") => "12s".clone_into(word),
            ("busy-long" | "same-long", "20s") => "6s".clone_into(word),
            _ => {}
        };
        arguments.iter_mut().chain(&mut first_arguments).for_each(shorter);
    }
    let takes_part = |peer: &Peer| takes_part(row, &peer.name, quick);
    Task {
        name: row.name,
        group: row.group,
        arguments,
        first_arguments,
        is_traced: row.group == Group::Turnover || row.name == "asked-asleep-4",
        is_idle: row.name == "idle",
        contenders: (0..contenders.len()).filter(|&at| takes_part(&contenders[at])).collect(),
    }
}

/// Whether a contender is measured in a row.
fn takes_part(row: &catalogue::Row, contender: &str, quick: bool) -> bool {
    let is_long = row.name.ends_with("-long");
    match contender {
        OURS => true,
        OFF => match row.group {
            Group::Automatic | Group::Alone | Group::Peaks => true,
            Group::Asked => row.name.starts_with("asked"),
            Group::Owners => row.name.starts_with("latency"),
            Group::Turnover => false,
        },
        THREAD => row.group == Group::Alone || row.name == "idle",
        NO_HOLES => row.name == "burst",
        _ => !is_long && (!quick || !MINOR.contains(&row.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Vec<Peer> {
        let ours = Peer { name: OURS.to_owned(), ..Peer::glibc() };
        contenders(vec![ours, Peer::glibc()])
    }

    #[test]
    fn contenders_take_part_where_it_means_something() {
        let contenders = example();
        assert_eq!(contenders.len(), 5);
        let names = |row: &str, quick| {
            let tasks = tasks(&contenders, quick, |name| name == row);
            let numbers = tasks[0].contenders.iter();
            numbers.map(|&at| contenders[at].name.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names("busy-4", true), "ours glibc ours-off");
        assert_eq!(names("busy-1", true), "ours ours-off");
        assert_eq!(names("busy-1", false), "ours glibc ours-off");
        assert_eq!(names("alone-block", false), "ours glibc ours-off ours-thread");
        assert_eq!(names("burst", false), "ours glibc ours-off ours-no-holes");
        assert_eq!(names("pairs-64", false), "ours glibc");
        assert_eq!(names("busy-long", false), "ours");
        assert!(contenders.iter().all(|peer| peer.name != "glibc" || peer.settings.is_empty()));
    }

    #[test]
    fn rows_that_are_named_exist() {
        let all: Vec<_> = catalogue::rows().into_iter().map(|row| row.name).collect();
        let charts = CHARTS.iter().flat_map(|&(name, asked, _)| std::iter::once(name).chain(asked));
        for name in charts.chain(MINOR) {
            assert!(all.contains(&name), "{name}");
        }
        let speed: Vec<_> = mpp_workloads::measured::catalogue::rows().into_iter().map(|row| row.name).collect();
        assert!(SPEED.iter().all(|name| speed.iter().any(|row| row == name)));
    }

    #[test]
    fn what_is_typed_twice_would_be_refused() {
        for quick in [false, true] {
            for task in tasks(&example(), quick, |_| true) {
                for line in [&task.arguments, &task.first_arguments] {
                    assert!(line.iter().filter(|word| *word == "--watch").count() <= 1, "{line:?}");
                }
            }
        }
    }
}
