//! What is thinned stays true, and what cannot be written ends the recording. No sampler runs here: the blocks are put together by hand.

use super::block::{Block, Content, Encoded, MOST_EVENT, ROOM, RUN, SITE, STACK};
use super::disk::{Header, Trouble};
use super::event::{Kind, is_kept};
use super::journal::{End, Journal, LEAST_BUDGET};
use super::thin::{Blocks, each_definition, each_event};
use super::tick::Tick;
use crate::os;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::string::String;
use std::vec::Vec;

const SITES: u32 = 500;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(std::format!("mimalloc-pprof-timeline-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A journal with a file.
fn begun(path: &str, budget: u64) -> Result<std::boxed::Box<Journal>, Trouble> {
    let mut journal = std::boxed::Box::new(Journal::NONE);
    assert!(journal.disk.path.push(path.as_bytes()));
    let header = Header { level: 0, process: os::process_id(), wall: 1, start: os::now(), interval: 100_000 };
    journal.begin(header, budget)?;
    Ok(journal)
}

impl Journal {
    fn put(&mut self, content: Content, fill: impl FnOnce(&mut Block)) -> Result<(), Trouble> {
        let file = self.disk.open()?;
        fill(&mut self.events);
        self.disk.write(&file, self.events.sealed(content))?;
        self.events.clear();
        Ok(())
    }

    /// Sites, each with a stack of its own, known to the tables as well.
    fn put_sites(&mut self, depth: u64) -> Result<(), Trouble> {
        self.put(Content::Definitions, |block| [RUN, 1, 0, 1000].into_iter().for_each(|n| block.number(n)))?;
        for key in 1..=SITES {
            for numbering in [&mut self.sites, &mut self.stacks] {
                numbering.number(key).unwrap().set_explained(true);
            }
            let number = u64::from(key - 1);
            self.put(Content::Definitions, |block| {
                [STACK, number, 0, depth].into_iter().for_each(|n| block.number(n));
                (0..depth).for_each(|frame| block.difference(frame * 999, number << 20 | frame));
                [SITE, number, number, 64, 0, 1].into_iter().for_each(|n| block.number(n));
            })?;
        }
        Ok(())
    }

    /// Blocks, of which 9 in 10 are freed again.
    fn put_events(&mut self, births: std::ops::Range<u64>) -> Result<(), Trouble> {
        let mut waiting = Vec::new();
        for birth in births {
            let site = (birth * 31 % u64::from(SITES)) as u32;
            let born = Encoded { kind: Kind::Allocated, site, time: birth, age: 0, slack: 3, thread: 0 };
            waiting.push(born);
            if birth % 10 != 0 {
                let age = birth % 77;
                waiting.push(Encoded { kind: Kind::Freed, time: birth + age, age, slack: 0, thread: 2, ..born });
            }
        }
        while !waiting.is_empty() {
            self.put(Content::Events, |block| {
                while block.room() >= MOST_EVENT
                    && let Some(event) = waiting.pop()
                {
                    block.event(&event);
                }
            })?;
        }
        Ok(())
    }
}

/// What is in a file.
#[derive(Default, Debug)]
struct Read {
    /// Number of events by birth.
    events: HashMap<u64, usize>,
    sites: HashSet<u64>,
    ticks: usize,
    marks: usize,
    modules: Vec<Vec<u8>>,
    needed: HashSet<u64>,
}

fn read(journal: &Journal) -> Read {
    let mut memory = std::vec![0u8; ROOM];
    let mut blocks = Blocks::open(journal.disk.path.as_c_str(), memory.as_mut_ptr()).unwrap();
    let (mut all, mut stacks) = (Read::default(), HashSet::new());
    while let Some((content, payload)) = blocks.next().unwrap() {
        match content {
            1 => each_definition(payload, |tag, numbers, _| {
                if tag == STACK {
                    stacks.insert(numbers[0]);
                } else if tag == SITE {
                    assert!(stacks.contains(&numbers[1]), "a stack is explained before its site");
                    all.sites.insert(numbers[0]);
                }
            })
            .unwrap(),
            2 => each_event(payload, |event, birth| {
                assert!(all.sites.contains(&u64::from(event.site)), "a site is explained before its events");
                all.needed.insert(u64::from(event.site));
                *all.events.entry(birth).or_default() += 1;
            })
            .unwrap(),
            3 => all.ticks += 1,
            4 => all.modules.push(payload.to_vec()),
            5 => all.marks += 1,
            _ => {}
        }
    }
    all
}

#[test]
fn a_half_is_left_and_nothing_is_torn_apart() {
    let folder = folder("thin");
    let mut journal = begun(folder.join("t.bin").to_str().unwrap(), 1 << 30).unwrap();
    journal.put_sites(20).unwrap();
    journal.put_events(0..30_000).unwrap();
    for time in 0..100 {
        journal.tick(journal.header.start + time * 1000, &Tick::default(), 0).unwrap();
    }
    journal.mark(os::now(), b"here").unwrap();
    for part in [&b"\x01old"[..], b"\x02 table", b"\x01new", b"\x00er", b"\x02 table"] {
        journal.put(Content::Modules, |block| block.bytes(part)).unwrap();
    }
    let mut size = journal.disk.extent.size;
    for level in 1..=3 {
        journal.thin().unwrap();
        assert_eq!(journal.header.level, level);
        let now = read(&journal);
        for birth in 0..30_000 {
            let expected = if is_kept(birth, level) { 1 + usize::from(birth % 10 != 0) } else { 0 };
            assert_eq!(now.events.get(&birth).copied().unwrap_or(0), expected, "{birth} at {level}");
        }
        assert_eq!(now.sites, now.needed, "only sites that are needed");
        assert_eq!((now.ticks, now.marks), (100 >> level, 1));
        assert_eq!(now.modules.concat(), b"\x01new\x00er\x02 table");
        let actual = std::fs::metadata(folder.join("t.bin")).unwrap().len();
        assert_eq!(actual, journal.disk.extent.size);
        assert!(actual < size * 4 / 5, "{actual} of {size}");
        size = actual;
        // It goes on as before.
        journal.disk.open().unwrap();
    }
    // Who is no longer in the file has to be explained again, and keeps its number.
    let explained = journal.sites.each().filter(|(_, known)| known.is_explained()).count();
    assert_eq!(explained, read(&journal).sites.len());
    assert_eq!(journal.sites.number(7).unwrap().number(), 6);
    assert!(!folder.join("t.bin.tmp").exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_budget_holds_for_the_file_and_its_copy() {
    let folder = folder("budget");
    let path = folder.join("t.bin");
    let mut journal = begun(path.to_str().unwrap(), LEAST_BUDGET).unwrap();
    journal.put_sites(2).unwrap();
    for round in 0..60u64 {
        journal.put_events(round * 2_000..(round + 1) * 2_000).unwrap();
        journal.tick(journal.header.start + round * 2_000_000, &Tick::default(), 0).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() <= LEAST_BUDGET * 4 / 5, "round {round}");
    }
    // What comes later was put there whole, so what is left is at least what the level says of the first.
    let (level, all) = (journal.header.level, read(&journal));
    assert!(level >= 2 && !all.events.is_empty() && all.ticks > 0, "{level}");
    assert!((0..2_000).all(|birth| all.events.contains_key(&birth) == is_kept(birth, level)));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_budget_that_stacks_alone_exceed_ends_the_recording() {
    let folder = folder("stacks");
    let mut journal = begun(folder.join("t.bin").to_str().unwrap(), LEAST_BUDGET).unwrap();
    // Blocks that were born at one moment stay together.
    journal.put_sites(900).unwrap();
    let kept = (1..).find(|&birth| is_kept(birth, 30)).unwrap();
    journal
        .put(Content::Events, |block| {
            for site in 0..SITES {
                block.event(&Encoded { kind: Kind::Allocated, site, time: kept, age: 0, slack: 0, thread: 0 });
            }
        })
        .unwrap();
    assert_eq!(journal.thin(), Err(Trouble::Budget));
    assert!(!folder.join("t.bin.tmp").exists());
    // What was written stays as it was.
    assert_eq!(read(&journal).events[&kept], SITES as usize);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_cannot_be_written_is_told() {
    let folder = folder("trouble");
    let trouble = |path: &str| begun(path, 1 << 20).err();
    assert_eq!(trouble("/dev/full"), Some(Trouble::Write));
    assert_eq!(trouble(folder.join("no/such/folder/t.bin").to_str().unwrap()), Some(Trouble::Open));
    let path = folder.join("new/t.bin");
    let mut journal = begun(path.to_str().unwrap(), 1 << 20).unwrap();
    journal.mark(os::now(), b"one").unwrap();
    let before = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&before[..], b"!"].concat()).unwrap();
    assert_eq!(journal.mark(os::now(), b"two"), Err(Trouble::Foreign));
    std::fs::write(&path, &before).unwrap();
    assert_eq!(journal.mark(os::now(), b"two"), Ok(()));
    // A copy of what cannot be read is not made.
    let mut damaged = std::fs::read(&path).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    assert_eq!(journal.thin(), Err(Trouble::Read));
    std::fs::remove_dir_all(folder.join("new")).unwrap();
    assert_eq!(journal.end(os::now(), 0, End::Exit), Err(Trouble::Open));
    std::fs::remove_dir_all(&folder).unwrap();
    let all: String = (1..9).filter_map(Trouble::from_code).map(|trouble| std::format!("{trouble:?} ")).collect();
    assert_eq!(all, "Open Foreign Write Limit Read Budget Memory Process ");
}
