//! Names of code that was made while the program ran (Java, JavaScript, Python, …), from the map that the program's
//! compiler writes for `perf`: lines of start, size and name, the first two in hex.
//!
//! Such a map is a log: an address may be named several times as code comes and goes, and the last line counts. It is
//! read once from front to back, and only names of wanted addresses are kept, so its length costs time but no memory.
//!
//! - `find` decides which file is the map of the process;
//! - this file reads it.

mod find;

use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Arc;

pub(crate) use find::find;

/// Largest map that is read, in bytes. Those of long-running Java and JavaScript programs have some tens of MB.
const MAX_SIZE: u64 = 1 << 30;

/// Longest line that is read whole, in bytes; the rest of a longer one, which is the end of a name, is left out.
const MAX_LINE: u64 = 16 << 10;

/// Most names given to addresses while a map of one byte is read, and for each further byte. In an honest map nearly
/// every address is named once; a map whose every line covers all addresses stops here.
const NAMES: (u64, u64) = (16 << 20, 4);

/// What a perf map says.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The name for each of the addresses.
    pub(crate) names: Vec<Option<Arc<[u8]>>>,
    /// What is wrong with the map.
    pub(crate) problem: Option<Problem>,
}

/// What is wrong with a perf map.
#[derive(Debug)]
pub(crate) enum Problem {
    /// It could not be read to the end.
    Io(io::Error),
    /// So many lines are something else; the first of them counts from 1.
    Damaged { lines: u64, first: u64 },
    /// Too much work; names that came after are missing.
    TooMuchWork,
}

/// Looks up `addresses`, which must be ascending, in a map of at most `size` bytes.
pub(crate) fn look_up(map: impl BufRead, size: u64, addresses: &[u64]) -> Found {
    let mut found = Found { names: vec![None; addresses.len()], problem: None };
    // No more than was there when it was opened: the program may still be writing.
    let mut map = map.take(size);
    let mut fuel = NAMES.1.saturating_mul(size).saturating_add(NAMES.0);
    let (mut line, mut number, mut damaged, mut first_damaged) = (Vec::new(), 0_u64, 0_u64, 0_u64);
    loop {
        line.clear();
        let length = match read_line(&mut map, &mut line) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) => {
                found.problem = Some(Problem::Io(error));
                return found;
            }
        };
        number += 1;
        let is_whole = line.last() == Some(&b'\n') || length > MAX_LINE;
        let Some(entry) = Entry::parse(&line) else {
            // A last line without an end is one that the program was still writing.
            if is_whole && !line.trim_ascii().is_empty() {
                damaged += 1;
                first_damaged = if damaged == 1 { number } else { first_damaged };
            }
            continue;
        };
        let from = addresses.partition_point(|&address| address < entry.start);
        let count = addresses[from..].partition_point(|&address| address - entry.start < entry.size);
        let Some(left) = fuel.checked_sub(count as u64) else {
            found.problem = Some(Problem::TooMuchWork);
            return found;
        };
        fuel = left;
        if count != 0 {
            let name: Arc<[u8]> = Arc::from(entry.name);
            found.names[from..from + count].fill(Some(name));
        }
    }
    found.problem = (damaged != 0).then_some(Problem::Damaged { lines: damaged, first: first_damaged });
    found
}

/// Appends the next line to `line`, as far as it is not too long, and returns its whole length; 0 at the end.
fn read_line(map: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    let length = io::Read::take(&mut *map, MAX_LINE).read_until(b'\n', line)? as u64;
    if length == MAX_LINE && line.last() != Some(&b'\n') {
        return Ok(length + map.skip_until(b'\n')? as u64 + 1);
    }
    Ok(length)
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'l> {
    start: u64,
    size: u64,
    name: &'l [u8],
}

impl<'l> Entry<'l> {
    /// Start and size in hex digits, with or without `0x`, then the name, which may hold spaces.
    fn parse(line: &'l [u8]) -> Option<Self> {
        let (start, rest) = hex_word(line)?;
        let (size, rest) = hex_word(rest)?;
        let name = rest.trim_ascii();
        (!name.is_empty()).then_some(Entry { start, size, name })
    }
}

/// The number that `text` starts with after spaces, and what follows it, which starts with a space.
fn hex_word(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.trim_ascii_start();
    let length = text.iter().position(u8::is_ascii_whitespace)?;
    let (word, rest) = text.split_at(length);
    let digits = word.strip_prefix(b"0x").or_else(|| word.strip_prefix(b"0X")).unwrap_or(word);
    let is_number = (1..=16).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let value = is_number.then(|| str::from_utf8(digits).ok()).flatten()?;
    Some((u64::from_str_radix(value, 16).ok()?, rest))
}

impl Problem {
    /// The same as an error about the map at `path`.
    pub(crate) fn at(self, path: &Path) -> crate::Error {
        let path = path.to_owned();
        match self {
            Problem::Io(source) => crate::Error::Io { path, source },
            Problem::Damaged { lines, first } => crate::Error::BadPerfMap { path, lines, first },
            Problem::TooMuchWork => {
                let what = "it names the same addresses over and over again".to_owned();
                crate::Error::Limit { path, what }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Found, MAX_LINE, Problem, look_up};

    fn names(map: &str, addresses: &[u64]) -> Vec<String> {
        let Found { names, problem } = look_up(map.as_bytes(), map.len() as u64, addresses);
        assert!(problem.is_none(), "{problem:?}");
        names.into_iter().map(|name| name.map_or("-".into(), |n| String::from_utf8_lossy(&n).into_owned())).collect()
    }

    #[test]
    fn addresses_inside_an_entry_get_its_name() {
        let map = "1000 10 LazyCompile:~f /a b.js:12\n0x2000 0x8 g\r\n\n  3000\t4   h  \n";
        let addresses = [0xfff, 0x1000, 0x100f, 0x1010, 0x2007, 0x2008, 0x3003, u64::MAX];
        let expected = ["-", "LazyCompile:~f /a b.js:12", "LazyCompile:~f /a b.js:12", "-", "g", "-", "h", "-"];
        assert_eq!(names(map, &addresses), expected);
    }

    #[test]
    fn the_last_of_several_names_counts() {
        let map = "1000 100 old\n1080 10 between\n1000 20 new\n";
        assert_eq!(names(map, &[0x1000, 0x1020, 0x1085, 0x1090]), ["new", "old", "between", "old"]);
    }

    #[test]
    fn entries_up_to_the_end_of_the_address_space() {
        let map = "fffffffffffffff0 10 top\n0 ffffffffffffffff all\nfffffffffffffff8 ffffffffffffffff beyond\n";
        assert_eq!(names(map, &[0, u64::MAX - 0xf, u64::MAX]), ["all", "all", "beyond"]);
    }

    #[test]
    fn lines_that_are_something_else_are_counted() {
        let map = "1000 10 f\nnonsense\n12 zz f\n1000 10\n11112222333344445 1 f\n2000 10 g\n";
        let found = look_up(map.as_bytes(), map.len() as u64, &[0x1000, 0x2000]);
        assert!(found.names.iter().all(Option::is_some));
        assert!(matches!(found.problem, Some(Problem::Damaged { lines: 4, first: 2 })), "{:?}", found.problem);
    }

    #[test]
    fn a_line_being_written_is_no_damage_and_what_comes_after_the_opening_is_not_read() {
        assert_eq!(names("1000 10 f\n20", &[0x1000]), ["f"]);
        let map = "1000 10 f\n2000 10 g\n";
        let found = look_up(map.as_bytes(), 10, &[0x1000, 0x2000]);
        assert!(found.names[0].is_some() && found.names[1].is_none() && found.problem.is_none());
    }

    #[test]
    fn long_lines_are_cut_and_the_next_one_is_read() {
        let map = format!("1000 10 {}\n2000 10 g\n", "x".repeat(5 * MAX_LINE as usize));
        let found = names(&map, &[0x1000, 0x2000]);
        assert_eq!((found[0].len(), found[1].as_str()), (MAX_LINE as usize - "1000 10 ".len(), "g"));
    }

    #[test]
    fn lines_that_all_name_everything_end() {
        let addresses: Vec<u64> = (0..100_000).collect();
        let map = "0 ffffffff f\n".repeat(1000);
        let found = look_up(map.as_bytes(), map.len() as u64, &addresses);
        assert!(matches!(found.problem, Some(Problem::TooMuchWork)));
        assert!(found.names.iter().all(Option::is_some));
    }

    #[test]
    fn entries() {
        assert_eq!(Entry::parse(b"0 0 x\n"), Some(Entry { start: 0, size: 0, name: b"x" }));
        for bad in
            ["", "\n", "1", "1 2", "1 2 ", "1 2\n", "0x 2 f", "-1 2 f", "+1 2 f", "1 2f f g".get(..3).unwrap_or("")]
        {
            assert_eq!(Entry::parse(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
