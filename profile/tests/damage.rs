//! Damaged copies of real dumps: never a panic, never a wrong total from a cut.

mod support;

use mpp_profile::analysis::{Folded, Quality, Table, View};
use mpp_profile::formats::{Limits, heap_text};
use mpp_profile::{Metric, WriteError, read, read_with};
use support::{all_data, data, shared_corpus};

/// Mutations of each file.
const MUTATIONS: u64 = 20;

/// A small generator with a fixed seed, so that a failure can be repeated.
struct Random(u64);

impl Random {
    /// splitmix64, below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }
}

fn mutated(original: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut content = original.to_vec();
    for _ in 0..=random.below(4) {
        if content.is_empty() {
            break;
        }
        let at = random.below(content.len());
        let length = random.below((content.len() - at).min(300));
        match seed % 5 {
            0 => content[at] ^= 1 << random.below(8),
            1 => content[at] = [b'0', b'9', b'-', b':', b'\n', b'@', 0, 0xff][random.below(8)],
            2 => content.truncate(at),
            3 => drop(content.drain(at..at + length)),
            _ => {
                let block = content[at..at + length].to_vec();
                let to = random.below(content.len());
                content.splice(to..to, block);
            }
        }
    }
    content
}

/// Reads and, when that works, computes everything; the outcome may be anything but a panic.
fn exercise(name: &str, content: &[u8]) -> bool {
    match read(content, name) {
        Ok(profile) => {
            let table = Table::build(&profile, &View::default());
            let folded = Folded::build(&profile, &View::default());
            assert_eq!(folded.stacks().map(|(_, weight)| weight).sum::<u64>(), table.total.bytes, "{name}");
            assert_eq!(
                Quality::of(&profile, Metric::Allocated).total,
                Table::build(&profile, &View { metric: Metric::Allocated, ..View::default() }).total.bytes
            );
            let written = heap_text::write(&profile, std::io::sink());
            // Some oddities that are a warning in the dumps of others cannot be written.
            assert!(matches!(written, Ok(()) | Err(WriteError::Inexpressible { .. })), "{written:?}");
            true
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with(name) && !message.chars().any(char::is_control), "{message:?}");
            assert!(message.len() < 1000, "{message}");
            false
        }
    }
}

#[test]
fn mutated_files_are_read_or_refused() {
    let files: Vec<_> = all_data().into_iter().chain(shared_corpus().unwrap_or_default()).collect();
    let (mut accepted, mut refused) = (0, 0);
    for (index, (name, content)) in files.iter().enumerate() {
        for mutation in 0..MUTATIONS {
            let seed = index as u64 * MUTATIONS + mutation;
            match exercise(&format!("{name} seed {seed}"), &mutated(content, seed)) {
                true => accepted += 1,
                false => refused += 1,
            }
        }
    }
    println!("{accepted} accepted, {refused} refused");
    assert!(accepted > 10 && refused > 10);
}

#[test]
fn a_cut_is_an_error_or_changes_no_total() {
    for (file, step) in [
        ("jemalloc-true-rate-1.txt", 1),
        ("jemalloc-lua.txt", 1),
        ("jemalloc-perl-accum.txt", 61),
        ("gperftools-gawk-mmap.txt", 211),
        ("gperftools-lua.txt", 307),
        ("go-heap-debug1.txt", 509),
    ] {
        let content = data(file);
        let whole = read(&content[..], file).unwrap();
        let ends_of_lines = (0..content.len()).filter(|&at| content[at] == b'\n').map(|at| at + 1);
        for length in (0..content.len()).step_by(step).chain(ends_of_lines.step_by(1 + step / 100)) {
            if let Ok(part) = read(&content[..length], file) {
                for metric in [Metric::Live, Metric::Allocated] {
                    assert_eq!(part.recorded(metric), whole.recorded(metric), "{file} cut at {length}");
                }
            }
        }
    }
}

#[test]
fn odd_inputs_are_refused() {
    let zeroes = vec![0; 1 << 20];
    let mut long_stack = b"heap profile: 1: 1 [0: 0] @ heap_v2/1\n1: 1 [0: 0] @".to_vec();
    long_stack.extend(b" 0x1".repeat(100_000));
    long_stack.extend(b"\nMAPPED_LIBRARIES:\n");
    let mut long_line = b"heap profile: 0: 0 [0: 0] @ heap_v2/1\n".to_vec();
    long_line.resize(3 << 20, b'x');
    let mut long_name = b"heap profile: 0: 0 [0: 0] @ heap_v2/1\nMAPPED_LIBRARIES:\n10-20 r-xp 0 0:0 0 /".to_vec();
    long_name.resize(long_name.len() + (1 << 20), b'x');
    let utf16: Vec<u8> = "heap_v2/1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let with_bom = [b"\xff\xfe".to_vec(), utf16.clone()].concat();
    for (name, content) in [
        ("empty", &b""[..]),
        ("one byte", b"h"),
        ("zeroes", &zeroes),
        ("long stack", &long_stack),
        ("long line", &long_line),
        ("long name", &long_name),
        ("utf16", &utf16),
        ("utf16 with a byte order mark", &with_bom),
        ("header only", b"heap profile: 1: 1 [1: 1] @ heap_v2/1\n"),
        ("no header", b"     1:    65536 [     1:    65536] @ 0x7ff8b822d4d5\n"),
        ("zero bytes in a line", b"heap profile: 1: 1 [1: 1] @ heap_v2/1\n1: 1\0 [1: 1] @ 0x1\nMAPPED_LIBRARIES:\n"),
    ] {
        assert!(!exercise(name, content), "{name}");
    }
    let endless = read_with(std::io::repeat(b'\n'), "endless", &Limits { input_bytes: 1 << 20, ..Limits::default() });
    assert!(endless.is_err());
}

#[test]
fn an_unreadable_input_says_what_the_system_said() {
    let folder = std::fs::File::open(env!("CARGO_MANIFEST_DIR")).unwrap();
    let error = read(folder, "a folder").unwrap_err();
    assert!(matches!(error, mpp_profile::ReadError::Io { .. }), "{error}");
}
