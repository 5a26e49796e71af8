//! Source files: read if they are there, with what is odd about them.

use std::fs::File;
use std::io::Read;
use std::time::{Duration, SystemTime};

use mpp_profile::text::escaped;

/// Larger files are not source code that anybody wrote.
const LARGEST: u64 = 16 << 20;
/// A tab goes to the next multiple of this.
const TAB: usize = 4;

/// The lines of a file, and why there are none.
#[derive(Debug, Default)]
pub(super) struct Source {
    lines: Vec<String>,
    missing: Option<String>,
    is_newer: bool,
}

impl Source {
    /// Reads a file; `recorded` is when the profile was made, in nanoseconds since 1970.
    pub(super) fn read(path: &str, recorded: Option<u64>) -> Source {
        let missing = |why: String| Source { missing: Some(why), ..Source::default() };
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => return missing("is not a regular file".to_owned()),
            Ok(metadata) if metadata.len() > LARGEST => return missing("is larger than 16 MiB".to_owned()),
            Ok(metadata) => metadata,
            Err(error) => return missing(error.to_string()),
        };
        let mut content = Vec::new();
        if let Err(error) = File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut content)) {
            return missing(error.to_string());
        }
        let recorded = recorded.map(|nanoseconds| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds));
        let is_newer = recorded.is_some_and(|recorded| metadata.modified().is_ok_and(|changed| changed > recorded));
        let lines = String::from_utf8_lossy(&content).lines().map(without_tabs).collect();
        Source { lines, missing: None, is_newer }
    }

    /// How many lines there are.
    pub(super) fn length(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    /// A line, from 1; nothing where there is none.
    pub(super) fn line(&self, number: u32) -> &str {
        let index = (number as usize).checked_sub(1);
        index.and_then(|index| self.lines.get(index)).map_or("", String::as_str)
    }

    /// What to know about it.
    pub(super) fn note(&self, path: &str) -> Option<String> {
        match &self.missing {
            Some(why) => Some(format!("no source: {}: {} (see --source-dir)", escaped(path), escaped(why))),
            None if self.is_newer => {
                Some(format!("{} has changed since the profile was made: lines may be others now", escaped(path)))
            }
            None => None,
        }
    }
}

fn without_tabs(line: &str) -> String {
    let mut plain = String::new();
    let mut width = 0;
    for character in line.chars() {
        let spaces = if character == '\t' { TAB - width % TAB } else { 0 };
        if spaces > 0 {
            plain.push_str(&" ".repeat(spaces));
            width += spaces;
        } else {
            plain.push(character);
            width += 1;
        }
    }
    plain.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_what_is_odd() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.c");
        std::fs::write(&path, "int\n\ta;\n \tb; \n")?;
        let path = path.to_str().expect("UTF-8");
        let source = Source::read(path, None);
        assert_eq!((source.line(1), source.line(2), source.line(3), source.line(4)), ("int", "    a;", "    b;", ""));
        assert_eq!((source.line(0), source.length(), source.note(path)), ("", 3, None));
        assert!(Source::read(path, Some(1)).note(path).is_some_and(|note| note.contains("has changed since")));
        assert_eq!(Source::read(path, Some(u64::MAX / 2)).note(path), None);
        assert!(Source::read("/gone.c", None).note("/gone.c").is_some_and(|note| note.contains("--source-dir")));
        assert!(Source::read("/dev/zero", None).note("/dev/zero").is_some_and(|note| note.contains("regular")));
        Ok(())
    }
}
