//! The reader against files that are put together here, byte by byte as `docs/formats.md` says.

use proptest::prelude::*;

use super::blocks::checksum;
use super::*;
use crate::model::{Metric, StackEnd, TruncationReason};

/// Bytes of a file.
struct Writer(Vec<u8>);

fn number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn numbers(values: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.iter().for_each(|&value| number(&mut bytes, value));
    bytes
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

impl Writer {
    fn new(level: u32) -> Self {
        let mut bytes = MAGIC.to_vec();
        [1, 64, level, 42].iter().for_each(|value: &u32| bytes.extend(value.to_le_bytes()));
        [1_700_000_000_000_000_000, 5, 100_000, 0].iter().for_each(|value: &u64| bytes.extend(value.to_le_bytes()));
        bytes.extend([0; 4]);
        let sum = checksum(&[&bytes]);
        bytes.extend(sum.to_le_bytes());
        Self(bytes)
    }

    fn block(mut self, content: u8, payload: &[u8]) -> Self {
        let mut frame = vec![content, 0, 0, 0];
        frame.extend((payload.len() as u32).to_le_bytes());
        let sum = checksum(&[&frame, payload]);
        frame.extend(sum.to_le_bytes());
        self.0.extend(frame);
        self.0.extend(payload);
        self
    }

    /// Run 1 with a rate of 1000; stack 0 complete, stack 1 truncated; site 0 of 64 bytes, site 1 of 4096, in threads 0 and 7.
    fn defined(self) -> Self {
        let mut payload = numbers(&[1, 1, 0, 1000]);
        payload.extend(numbers(&[2, 7, 4711, 6]));
        payload.extend(b"worker");
        payload.extend(numbers(&[3, 0, 0, 2, zigzag(0x2000), zigzag(-0x1000)]));
        payload.extend(numbers(&[3, 1, 2, 1, zigzag(0x3000)]));
        payload.extend(numbers(&[4, 0, 0, 64, 0, 1]));
        payload.extend(numbers(&[4, 1, 1, 4096, 7, 1]));
        self.block(content::DEFINITIONS, &payload)
    }

    /// At 10 a block of each site, at 20 one more of site 0, at 30 the first of site 0 is freed by thread 7, at 40 that of site 1 moves.
    fn lived(self) -> Self {
        let mut payload = numbers(&[10]);
        payload.extend(numbers(&[0, 0, zigzag(4), 1 << 2, 0, zigzag(96), 0, zigzag(10), 0]));
        payload.extend(numbers(&[1, zigzag(10), 20, 8]));
        payload.extend(numbers(&[1 << 2 | 2, zigzag(10), 30, 0]));
        self.block(content::EVENTS, &payload)
    }

    fn ended(self) -> Self {
        self.block(content::STATE, &numbers(&[50, 0, 0, 1]))
    }
}

fn items(bytes: &[u8]) -> Result<(Vec<Item>, Ending), ReadError> {
    let mut timeline = open(bytes, "t", &Limits::default())?;
    let mut items = Vec::new();
    while let Some(item) = timeline.next_item()? {
        items.push(item);
    }
    Ok((items, timeline.ending()))
}

fn slice(bytes: &[u8], slice: Slice) -> crate::Profile {
    profile(bytes, "t", &Limits::default(), slice).unwrap()
}

fn sums(profile: &crate::Profile) -> [(u64, u64); 2] {
    [Metric::Live, Metric::Allocated].map(|metric| {
        let amount = profile.recorded(metric);
        (amount.objects, amount.bytes)
    })
}

#[test]
fn events_ticks_and_marks() {
    let tick = numbers(&[35, 9, 1, 2, 3, 4, 5, 6, 7, 8, 99]);
    let mark = [numbers(&[36]), b"before the import".to_vec()].concat();
    let file = Writer::new(0).defined().lived().block(content::TICK, &tick).block(content::MARK, &mark);
    let file = file.block(77, b"of a later version").ended();
    let mut timeline = open(&file.0[..], "t", &Limits::default()).unwrap();
    assert_eq!((timeline.header().process, timeline.header().interval), (42, 100_000));
    let items: Vec<Item> = timeline.by_ref().collect::<Result<_, _>>().unwrap();
    let Item::Event(first) = items[0] else { panic!("{items:?}") };
    assert_eq!((first.happening, first.time, first.requested), (Happening::Allocated, 10, Some(60)));
    let Item::Event(freed) = items[3] else { panic!("{items:?}") };
    assert_eq!((freed.happening, freed.time, freed.birth, freed.thread), (Happening::Freed, 30, 10, 7));
    let Item::Event(moved) = items[4] else { panic!("{items:?}") };
    assert_eq!((moved.happening, moved.time, moved.birth, moved.thread), (Happening::Moved, 40, 10, 7));
    let Item::Tick(tick) = items[5] else { panic!("{items:?}") };
    assert_eq!((tick.time, tick.resident, tick.live_blocks, tick.purged_total), (35, 1, 5, 8));
    assert_eq!(items[6], Item::Mark { time: 36, text: "before the import".into() });
    assert_eq!((timeline.ending(), timeline.latest()), (Ending::Exit, 50));
    assert_eq!(timeline.tables().threads()[&7].name, "worker");
    let stack = timeline.tables().stack(StackNumber(1)).unwrap();
    let StackEnd::Truncated(truncation) = &stack.end else { panic!("{stack:?}") };
    assert_eq!((&truncation.reason, truncation.at), (&TruncationReason::NoUnwindInfo, Some(0x3000)));
    assert_eq!(*timeline.tables().stack(StackNumber(0)).unwrap().addresses, [0x2000, 0x1000]);
}

#[test]
fn a_profile_of_any_stretch() {
    let file = Writer::new(0).defined().lived().ended().0;
    assert_eq!(sums(&slice(&file, Slice::ALL)), [(1, 64), (3, 64 * 2 + 4096)]);
    assert_eq!(sums(&slice(&file, Slice::at(9))), [(0, 0), (0, 0)]);
    assert_eq!(sums(&slice(&file, Slice::at(10))), [(2, 64 + 4096), (2, 64 + 4096)]);
    assert_eq!(sums(&slice(&file, Slice::at(25))), [(3, 128 + 4096), (3, 128 + 4096)]);
    assert_eq!(sums(&slice(&file, Slice::at(30))), [(2, 64 + 4096), (3, 128 + 4096)]);
    // What was allocated after 15, and is there at 40: the end of older blocks is none of its business.
    assert_eq!(sums(&slice(&file, Slice { from: 15, to: 40 })), [(1, 64), (1, 64)]);
    let profile = slice(&file, Slice::ALL);
    assert_eq!((profile.sample_rate, profile.warnings.len()), (1000, 0));
    assert_eq!(crate::read(&file[..], "t").unwrap(), profile);
}

#[test]
fn thinned_files_stand_for_more() {
    let file = Writer::new(3).defined().lived().ended().0;
    let profile = slice(&file, Slice::ALL);
    assert_eq!(sums(&profile), [(8, 512), (24, 8 * (64 * 2 + 4096))]);
    assert!(profile.warnings.iter().any(|warning| warning.contains("stands for 8")), "{:?}", profile.warnings);
}

#[test]
fn modules_in_parts() {
    let map = b"# build_id 00ab /bin/x\n1000-2800 r-xp 00000000 00:00 1 /bin/x\n";
    let (one, two) = map.split_at(30);
    let file = Writer::new(0).defined().lived();
    let file = file.block(content::MODULES, &[b"\x03", &b"9000-a000 r-xp 0 00:00 1 /old\n"[..]].concat());
    let file = file.block(content::MODULES, &[b"\x01", one].concat());
    // Half a table takes nobody's place.
    assert_eq!(slice(&file.0, Slice::ALL).modules[0].path, "/old");
    let file = file.block(content::MODULES, &[b"\x02", two].concat()).ended();
    let profile = slice(&file.0, Slice::ALL);
    assert_eq!((profile.modules.len(), profile.modules[0].path.as_str()), (1, "/bin/x"));
    assert_eq!(profile.modules[0].build_id.as_ref().unwrap().to_string(), "00ab");
    assert!(profile.locations.iter().any(|location| location.address == 0x1000 + 0x1000 && location.module.is_some()));
}

#[test]
fn every_cut_is_told_and_what_is_whole_is_read() {
    let file = Writer::new(0).defined().lived().ended().0;
    let whole = items(&file).unwrap().0;
    let mut most = 0;
    for length in 0..file.len() {
        match items(&file[..length]) {
            Ok((read, ending)) => {
                assert!(length >= 64 && whole.starts_with(&read) && read.len() >= most);
                most = read.len();
                let (_, whole_length) = boundaries(&file).into_iter().rev().find(|&(at, _)| at <= length).unwrap();
                let expected = if whole_length == length {
                    Ending::Open
                } else {
                    Ending::Cut { offset: whole_length as u64, bytes: (length - whole_length) as u64 }
                };
                assert_eq!(ending, expected, "{length}");
            }
            Err(error) => assert!(length < 64, "{length}: {error}"),
        }
    }
    // A block whose bytes never came to the disk.
    let zeros = [&file[..], &[0; 5000]].concat();
    let last = file.len() - (12 + 4);
    let mut torn = zeros.clone();
    torn[last + 12..last + 16].fill(0);
    let (read, ending) = items(&torn).unwrap();
    assert_eq!((read, ending), (whole, Ending::Cut { offset: last as u64, bytes: 5016 }));
}

/// Where blocks begin, twice.
fn boundaries(file: &[u8]) -> Vec<(usize, usize)> {
    let mut at = 64;
    let mut all = vec![(at, at)];
    while at < file.len() {
        at += 12 + u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap()) as usize;
        all.push((at, at));
    }
    all
}

#[test]
fn damage_has_an_offset() {
    let good = Writer::new(0).defined().lived().ended().0;
    let error = |file: &[u8]| items(file).unwrap_err().to_string();
    let mut file = good.clone();
    file[64 + 20] ^= 1;
    assert_eq!(error(&file), "t:byte 64: the checksum of a block is wrong");
    file[20] ^= 1;
    assert_eq!(error(&file), "t:byte 0: the checksum of the header is wrong");
    let events = Writer::new(0).lived().0;
    assert_eq!(error(&events), format!("t:byte {}: an event of site 0, which was not explained before", 64 + 12 + 1));
    let mut later = good.clone();
    later[8] = 2;
    assert!(error(&later).contains("later version"));
    let site = Writer::new(0).block(content::DEFINITIONS, &numbers(&[4, 0, 5, 64, 0, 1])).ended().0;
    assert!(error(&site).contains("stack 5, which was not explained before"), "{}", error(&site));
    let long = Writer::new(0).block(content::TICK, &[0xff; 11]).ended().0;
    assert_eq!(error(&long), "t:byte 64: the time of a tick is a number of more than 64 bits");
    assert!(error(b"\xf0mpptl\r\n").contains("ends in its header"));
    assert!(error(b"heap profile:").contains("expected the first bytes"));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(mut noise in proptest::collection::vec(any::<(u16, u8)>(), 1..8)) {
        let mut file = Writer::new(0).defined().lived().ended().0;
        for (at, byte) in noise.drain(..) {
            let at = at as usize % file.len();
            file[at] = byte;
            // Checksums would find all of it.
            repair(&mut file);
            if let Ok(profile) = profile(&file[..], "t", &Limits::default(), Slice::ALL) {
                prop_assert!(profile.estimate(Metric::Allocated).bytes.is_finite());
            }
        }
    }
}

/// Make all checksums right.
fn repair(file: &mut [u8]) {
    let sum = checksum(&[&file[..60]]);
    file[60..64].copy_from_slice(&sum.to_le_bytes());
    let mut at = 64;
    while at + 12 <= file.len() {
        let length = u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap()) as usize;
        let Some(end) = (at + 12).checked_add(length).filter(|&end| end <= file.len()) else { return };
        let sum = checksum(&[&file[at..at + 8], &file[at + 12..end]]);
        file[at + 8..at + 12].copy_from_slice(&sum.to_le_bytes());
        at = end;
    }
}
