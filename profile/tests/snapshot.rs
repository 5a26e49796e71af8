//! Snapshots of a small program, whole and damaged. Whether they tell the truth is tested where they are made: `lib/tests/heap_dump.rs`.

use mpp_profile::formats::Limits;
use mpp_profile::formats::snapshot::{PageKind, Snapshot, read, read_with};
use mpp_profile::{Position, ReadError};

const V1: &[u8] = include_bytes!("snapshots/snapshot-v1.bin");
const V1_PAGES: &[u8] = include_bytes!("snapshots/snapshot-v1-pages.bin");
const V2: &[u8] = include_bytes!("snapshots/snapshot-v2.bin");

fn used(snapshot: &Snapshot) -> u64 {
    snapshot.pages.iter().map(|page| u64::from(page.used)).sum()
}

#[test]
fn both_versions_tell_the_same() {
    let (v1, pages, v2) = (read(V1, "v1").unwrap(), read(V1_PAGES, "pages").unwrap(), read(V2, "v2").unwrap());
    let bits = |snapshot: &Snapshot| snapshot.pages.iter().map(|page| page.live_blocks().count() as u64).sum::<u64>();
    assert_eq!([v1.version, pages.version, v2.version], [1, 1, 2]);
    assert_eq!([bits(&v1), bits(&pages), bits(&v2)], [used(&v1), 0, used(&v2)]);
    assert_eq!([used(&v1), used(&pages)], [used(&v2); 2]);
    assert!(used(&v1) > 40 && v1.heaps.len() == 2 && v2.heaps.len() == 2 && v1.slice == 65536);
    let blocks = |snapshot: &Snapshot| {
        snapshot.pages.iter().flat_map(|page| page.live_blocks().collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    assert_eq!(blocks(&v1), blocks(&v2));
    let more = v2.more.as_ref().unwrap();
    assert_eq!((more.rate, more.exact[0] - more.exact[2]), (3000, used(&v2)));
    // Runs do not overlap, and leave nothing out.
    let pages = v2.pages.iter().map(|page| (page.slice_start, page.slices));
    let mut all: Vec<_> = pages.chain(more.runs.iter().map(|run| (run.start, run.slices))).collect();
    all.sort_unstable();
    all.dedup(); // a slab of sampled blocks of two heaps
    assert!(all.windows(2).all(|two| two[0].0 + u64::from(two[0].1) * 65536 == two[1].0));
    let large = v2.pages.iter().find(|page| page.kind == PageKind::Single).unwrap();
    assert_eq!((large.used, large.more.as_ref().unwrap().requested), (1, 1_000_000));
    let sampled = v2.pages.iter().filter(|page| page.kind == PageKind::Sampled);
    assert!(
        sampled.clone().count() > 0
            && sampled.into_iter().all(|page| page.more.as_ref().unwrap().sites.len() as u32 == page.used)
    );
}

/// What comes after what is known is read over.
#[test]
fn later_versions_may_add_sections() {
    let section =
        |tag: &[u8; 4], content: &[u8]| [tag, &[0; 4][..], &(content.len() as u64).to_le_bytes(), content].concat();
    let end = V2.len() - 48;
    assert_eq!(&V2[end..end + 4], b"END ");
    let mut longer = [&V2[..32], &section(b"NEW!", &[7; 800]), &V2[32..]].concat();
    let sections = longer.len() - 32;
    longer[sections] += 1;
    let snapshot = read(&longer[..], "longer").unwrap();
    assert_eq!(snapshot.more.as_ref().unwrap().unknown, [*b"NEW!"]);
    assert_eq!(used(&snapshot), used(&read(V2, "v2").unwrap()));
}

fn offset(error: &ReadError) -> Option<u64> {
    match error {
        ReadError::Damaged { position: Position::Offset(offset), .. }
        | ReadError::TooLarge { position: Position::Offset(offset), .. } => Some(*offset),
        _ => None,
    }
}

#[test]
fn a_cut_is_an_error_with_its_place() {
    for (name, whole) in [("v1", V1), ("pages", V1_PAGES), ("v2", V2)] {
        for length in 0..whole.len() {
            let error = read(&whole[..length], name).unwrap_err();
            assert!(error.to_string().starts_with(name), "{error}");
            let known =
                offset(&error).is_none_or(|offset| offset <= length as u64 && offset + 64 * 1024 >= length as u64);
            assert!(known && (length < 4) == matches!(error, ReadError::Unrecognised { .. }), "{length}: {error}");
        }
        let longer = [whole, &[0]].concat();
        assert_eq!(offset(&read(&longer[..], name).unwrap_err()), Some(whole.len() as u64));
    }
}

#[test]
fn damage_is_an_error_or_consistent() {
    let mut refused = 0;
    for (name, whole) in [("v1", V1), ("v2", V2)] {
        for at in 0..whole.len() {
            let mut damaged = whole.to_vec();
            damaged[at] ^= 1 << (at % 8);
            match read(&damaged[..], name) {
                Ok(snapshot) => {
                    let told = |page: &mpp_profile::formats::snapshot::Page| {
                        page.live.is_none() || page.live_blocks().count() as u32 == page.used
                    };
                    assert!(snapshot.pages.iter().all(told));
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().chars().any(char::is_control));
                }
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn absurd_numbers_take_no_memory() {
    let mut huge = V1[..48].to_vec();
    huge[40..44].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(read(&huge[..], "huge").is_err());
    let limits = Limits { input_bytes: 100, ..Limits::default() };
    assert!(matches!(read_with(V1, "v1", &limits), Err(ReadError::TooLarge { .. })));
    let endless = [&V2[..32], b"NEW!", &[0; 4][..], &(1u64 << 60).to_le_bytes()].concat();
    let endless = std::io::Read::chain(&endless[..], std::io::repeat(0));
    let limits = Limits { input_bytes: 1 << 20, ..Limits::default() };
    assert!(matches!(read_with(endless, "endless", &limits), Err(ReadError::TooLarge { .. })));
    assert!(matches!(read(&b"MIHX"[..], "other"), Err(ReadError::Unrecognised { .. })));
    assert!(mpp_profile::read(V1, "v1").unwrap_err().to_string().contains("a heap snapshot"));
}
