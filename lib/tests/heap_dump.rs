//! Dumps and snapshots of the heap against what the program knows of it: programs/heapdump.c.

mod support;

use mpp_profile::formats::snapshot::{self, PageKind, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use support::{compile, library, succeed};

struct Program {
    program: PathBuf,
    folder: PathBuf,
}

impl Program {
    fn new(name: &str) -> Program {
        static COMPILED: OnceLock<PathBuf> = OnceLock::new();
        let program = COMPILED.get_or_init(|| {
            let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
            let search = format!("-L{}", library().parent().unwrap().display());
            compile("heapdump.c", &[include, &search, "-lmimalloc_pprof"])
        });
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("heapdump-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Program { program: program.clone(), folder }
    }

    fn command(&self, what: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.env("LD_LIBRARY_PATH", library().parent().unwrap()).arg(what).arg(&self.folder);
        command
    }

    fn read(&self, name: &str) -> Snapshot {
        let path = self.folder.join(name);
        snapshot::read(std::fs::File::open(&path).unwrap(), name).unwrap_or_else(|error| panic!("{error}"))
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// What the program knows: blocks by address, with their size, heap, and whether they are live; and the sums of all that is live.
struct Truth {
    blocks: BTreeMap<u64, (u64, u64, bool)>,
    total: (u64, u64),
}

fn truth(text: &str) -> Truth {
    let mut truth = Truth { blocks: BTreeMap::new(), total: (0, 0) };
    for line in text.lines() {
        let mut words = line.split(' ');
        let kind = words.next().unwrap();
        let numbers: Vec<u64> = words.map(|word| word.parse().unwrap()).collect();
        match (kind, numbers.as_slice()) {
            ("total", &[blocks, bytes]) => truth.total = (blocks, bytes),
            // A block that was freed may be live again as another.
            ("live", &[block, size, heap]) => drop(truth.blocks.insert(block, (size, heap, true))),
            ("freed", &[block, size, heap]) => drop(truth.blocks.entry(block).or_insert((size, heap, false))),
            _ => panic!("{line}"),
        }
    }
    truth
}

/// Live blocks: address to size and heap. None is there twice.
fn live_in(snapshot: &Snapshot) -> BTreeMap<u64, (u64, u64)> {
    let mut live = BTreeMap::new();
    for page in &snapshot.pages {
        for block in page.live_blocks() {
            assert!(live.insert(block, (page.block_size, page.heap)).is_none(), "{block:#x} is there twice");
        }
    }
    live
}

fn sums(snapshot: &Snapshot) -> (u64, u64) {
    let pages = snapshot.pages.iter();
    pages.fold((0, 0), |(blocks, bytes), page| {
        (blocks + u64::from(page.used), bytes + u64::from(page.used) * page.block_size)
    })
}

fn agrees(snapshot: &Snapshot, truth: &Truth) {
    let live = live_in(snapshot);
    for (block, &(size, heap, is_live)) in &truth.blocks {
        let expected = is_live.then_some((size, heap));
        assert_eq!(live.get(block).copied(), expected, "{block:#x} of {size} in heap {heap}");
    }
    assert_eq!(live.len() as u64, truth.total.0);
    assert_eq!(sums(snapshot), truth.total);
    for page in &snapshot.pages {
        assert!(snapshot.heaps.iter().any(|heap| heap.seq == page.heap));
        assert!(page.slice_start.is_multiple_of(65536) && page.start >= page.slice_start && page.used <= page.capacity);
        assert!(
            page.start + u64::from(page.reserved) * page.block_size
                <= page.slice_start + u64::from(page.slices) * 65536
        );
    }
}

/// A bit for each slice of the process, by its address.
fn slices(snapshot: &Snapshot, bitmap: impl Fn(&snapshot::Arena) -> &Vec<u8>) -> BTreeSet<u64> {
    let mut set = BTreeSet::new();
    for arena in &snapshot.arenas {
        assert_eq!(bitmap(arena).len() as u64, u64::from(arena.slices).div_ceil(512) * 64);
        assert_eq!(arena.bytes, u64::from(arena.slices) * snapshot.slice);
        for slice in (0..arena.slices as usize).filter(|at| bitmap(arena)[at / 8] >> (at % 8) & 1 != 0) {
            assert!(set.insert(arena.base + slice as u64 * snapshot.slice), "arenas overlap");
        }
    }
    set
}

fn slices_of_pages(snapshot: &Snapshot) -> BTreeSet<u64> {
    let of_page =
        |page: &snapshot::Page| (0..u64::from(page.slices)).map(|at| page.slice_start + at * 65536).collect::<Vec<_>>();
    snapshot.pages.iter().flat_map(of_page).collect()
}

fn shadow(program: &Program) {
    let truth = truth(&program.text("truth"));
    assert!(truth.blocks.len() > 9000 && truth.total.0 > 7000);
    let [v1, v1b, v2, v2b] = ["v1", "v1b", "v2", "v2b"].map(|name| program.read(name));
    assert_eq!((v1.version, v1b.version, v2.version, v2b.version), (1, 1, 2, 2));
    assert!(!v1.has_blocks && v1b.has_blocks && !v2.has_blocks && v2b.has_blocks);
    agrees(&v1b, &truth);
    agrees(&v2b, &truth);
    for other in [&v1, &v2] {
        assert!(other.pages.iter().all(|page| page.live.is_none()));
        assert_eq!(sums(other), truth.total);
    }
    let (free, committed, purge) =
        (slices(&v1, |arena| &arena.free), slices(&v1, |arena| &arena.committed), slices(&v1, |arena| &arena.purge));
    let pages = slices_of_pages(&v1);
    assert!(
        pages.is_disjoint(&free)
            && pages.is_subset(&committed)
            && purge.is_subset(&free)
            && purge.is_subset(&committed)
    );
    let more = v2b.more.as_ref().unwrap();
    let free_runs = more.runs.iter().filter(|run| run.kind == 0);
    let free_in_runs: BTreeSet<u64> =
        free_runs.flat_map(|run| (0..u64::from(run.slices)).map(|at| run.start + at * 65536)).collect();
    assert_eq!(free_in_runs, free);
    // The exact counts are of all that is allocated, too.
    assert_eq!(more.exact[0] - more.exact[2], truth.total.0);
    assert_eq!((more.skipped, more.unknown.len()), (0, 0));
    assert!(v2b.heaps.iter().any(|heap| heap.arena != 0) && v2b.arenas.iter().any(|arena| arena.exclusive));
    // Four threads have blocks of their own, and caches.
    let threads: BTreeSet<u64> = v2b.pages.iter().map(|page| page.thread).collect();
    assert!(threads.len() >= 4);
    assert!(v2b.pages.iter().map(|page| u64::from(page.more.as_ref().unwrap().cached)).sum::<u64>() > 100);
    let single = v2b.pages.iter().filter(|page| page.kind == PageKind::Single);
    assert!(single.clone().count() > 5 && single.clone().all(|page| page.more.as_ref().unwrap().requested != 0));
}

#[test]
fn everything_live_is_told_and_nothing_else() {
    let program = Program::new("shadow");
    succeed(program.command("shadow").env("MIMALLOC_SCAVENGER", "0"));
    shadow(&program);
    json(&program);
}

#[test]
fn samples_are_told_with_their_sites() {
    let program = Program::new("sampled");
    let mut command = program.command("shadow");
    succeed(command.env("MIMALLOC_SCAVENGER", "0").env("MIMALLOC_PROF", "1").env("MIMALLOC_PROF_SAMPLE_RATE", "5000"));
    shadow(&program);
    json(&program);
    let snapshot = program.read("v2b");
    assert_eq!(snapshot.more.as_ref().unwrap().rate, 5000);
    let (mut sampled, mut parked) = (0, 0);
    for page in &snapshot.pages {
        let more = page.more.as_ref().unwrap();
        assert_eq!(more.sites.len() as u32, more.samples);
        match page.kind {
            PageKind::Sampled => {
                assert!(more.samples == page.used && more.sites.iter().all(|&site| site != 0));
                sampled += page.used;
            }
            PageKind::Single => assert!(more.samples <= 1),
            PageKind::Slab => assert_eq!(more.samples, 0),
        }
        parked += more.parked;
    }
    // For each block that is a sample another one is kept.
    assert!(sampled > 50 && sampled == parked, "{sampled} {parked}");
}

/// The JSON has the same blocks; with ids instead of addresses as many, and no two alike.
fn json(program: &Program) {
    let snapshot = program.read("v1b");
    let live = live_in(&snapshot);
    let text = program.text("json");
    let check = Command::new("python3")
        .args(["-c", CHECK])
        .args(["json", "hashed", "pages.json"])
        .current_dir(&program.folder)
        .output();
    let check = check.expect("python3 is needed for this test");
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
    let blocks = String::from_utf8(check.stdout).unwrap();
    let told: BTreeMap<u64, (u64, u64)> = blocks
        .lines()
        .map(|line| {
            let [heap, block, size] = *line.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<u64>>() else {
                panic!()
            };
            (block, (size, heap))
        })
        .collect();
    // The four texts themselves come after the snapshot: the first of them may be live in the second.
    let extra = told.iter().filter(|&(block, _)| !live.contains_key(block)).count();
    assert!(extra <= 1 && live.iter().all(|(block, what)| told.get(block) == Some(what)), "{extra}");
    assert!(text.ends_with("], \"complete\": true, \"skipped_pages\": 0, \"busy_theaps\": 0 }\n"));
}

const CHECK: &str = r#"
import json, sys
plain, hashed, pages = (json.load(open(name)) for name in sys.argv[1:])
for dump in (plain, hashed, pages):
    assert list(dump) == ["heaps", "complete", "skipped_pages", "busy_theaps"] and dump["complete"] is True
    for heap in dump["heaps"]:
        assert list(heap)[:2] == ["seq", "pages"] and (dump is pages) != ("blocks" in heap)
        for page in heap["pages"]:
            assert list(page) == ["id", "block_size", "used", "reserved", "thread_id"] and page["used"] <= page["reserved"]
        if dump is not pages:
            assert sum(page["used"] for page in heap["pages"]) == len(heap["blocks"])
            assert sum(page["used"] * page["block_size"] for page in heap["pages"]) == sum(size for _, size in heap["blocks"])
def ids(dump): return [block for heap in dump["heaps"] for block, _ in heap["blocks"]]
assert len(set(ids(plain))) == len(ids(plain)) and len(set(ids(hashed))) == len(ids(hashed))
assert not set(ids(plain)) & set(ids(hashed)) and abs(len(ids(plain)) - len(ids(hashed))) <= 1
ends = [page["thread_id"] for heap in hashed["heaps"] for page in heap["pages"]]
assert not {end for end in ends if end} & {page["thread_id"] for heap in plain["heaps"] for page in heap["pages"]}
for heap in plain["heaps"]:
    for block, size in heap["blocks"]: print(heap["seq"], block, size)
"#;

/// As in the program.
const ROUNDS: u32 = 6;

#[test]
fn beside_threads_purges_and_forks() {
    let program = Program::new("storm");
    assert_eq!(succeed(&mut program.command("storm")), "");
    let stay: Vec<u64> = program.text("truth").lines().map(|line| line.parse().unwrap()).collect();
    for round in 0..ROUNDS {
        let snapshot = program.read(&format!("storm.{round}"));
        let live = live_in(&snapshot);
        assert!(stay.iter().all(|block| live.contains_key(block)), "round {round}");
        // What the threads share, what is on its way, what the program itself has; and some blocks that thieves take from caches and bring back.
        assert!(live.len() < stay.len() + 3000 + 40_000, "{} blocks in round {round}", live.len());
        assert_eq!(snapshot.version, 1 + round % 2);
    }
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let program = Program::new("refused");
    assert_eq!(succeed(&mut program.command("refused")), "");
}

#[test]
fn in_signal_handlers() {
    let program = Program::new("interrupted");
    assert_eq!(succeed(&mut program.command("interrupted")), "");
}

#[test]
fn when_the_process_ends() {
    let program = Program::new("exit");
    let files = || {
        let entries = std::fs::read_dir(&program.folder).unwrap();
        let names: BTreeSet<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.iter().for_each(|name| std::fs::remove_file(program.folder.join(name)).unwrap());
        names
    };
    // By `exit` and by `_exit`.
    for last in [None, Some("at once")] {
        for (value, version, blocks) in [("1", 1, false), ("2", 1, true), ("3", 2, true)] {
            let mut command = program.command("exit");
            command.env("MIMALLOC_SNAPSHOT_ON_EXIT", value).env("MIMALLOC_SNAPSHOT_PATH", "snapshot.bin").args(last);
            succeed(command.current_dir(&program.folder));
            let snapshot = program.read("snapshot.bin");
            assert_eq!((snapshot.version, snapshot.has_blocks), (version, blocks));
            let kept = snapshot.pages.iter().filter(|page| (7000..8000).contains(&page.block_size));
            assert_eq!(kept.map(|page| page.used).sum::<u32>(), 100);
            assert_eq!(files(), BTreeSet::from(["snapshot.bin".to_owned()]));
        }
    }
    // Names with the process id: one of the program, one of the child that was forked.
    succeed(program.command("exit").env("MIMALLOC_SNAPSHOT_ON_EXIT", "1").current_dir(&program.folder));
    let names = files();
    assert!(names.len() == 2 && names.iter().all(|name| name.starts_with("mimalloc-snapshot.")), "{names:?}");
    succeed(program.command("exit").env("MIMALLOC_SNAPSHOT_ON_EXIT", "0").current_dir(&program.folder));
    assert_eq!(files().len(), 0);
    let mut nowhere = program.command("exit");
    nowhere.env("MIMALLOC_SNAPSHOT_ON_EXIT", "1").env("MIMALLOC_SNAPSHOT_PATH", "/nowhere/at/all");
    let output = nowhere.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && errors == "mimalloc-pprof: cannot write the heap snapshot /nowhere/at/all\n",
        "{errors}"
    );
}
