//! Leaks that are known: files in the form of LeakSanitizer's suppressions.
//!
//! A line `leak:PATTERN` takes away what was allocated by stacks with a function, file or library that has the pattern in it. `*` stands for
//! anything, `^` at the start and `$` at the end for the ends of the name. `#` begins a comment. Lines for other sanitizers are refused, so
//! that nobody believes in a suppression that does nothing.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use mpp_profile::{Location, Profile};

use crate::exit::{Code, Failure};

/// More than anybody writes by hand.
const LARGEST: u64 = 1 << 20;

/// The patterns of some files.
#[derive(Debug, Default)]
pub(crate) struct Suppressions {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    text: String,
    place: String,
    pattern: Pattern,
}

/// What a rule took away.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Used {
    /// The pattern as it was written; not escaped.
    pub(crate) pattern: String,
    /// File and line; not escaped.
    pub(crate) place: String,
    /// Samples that it took away.
    pub(crate) samples: usize,
}

impl Suppressions {
    /// Reads files.
    ///
    /// # Errors
    /// If one cannot be read, or a line is none of the form.
    pub(crate) fn read(files: &[PathBuf]) -> Result<Suppressions, Failure> {
        let mut rules = Vec::new();
        for path in files {
            let text = read(path).map_err(|why| Failure::new(Code::Usage, format!("{}: {why}", path.display())))?;
            for (index, line) in text.lines().enumerate() {
                let place = format!("{}:{}", path.display(), index + 1);
                let line = line.trim();
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let Some(pattern) = line.strip_prefix("leak:").filter(|pattern| !pattern.is_empty()) else {
                    return Err(Failure::new(
                        Code::Usage,
                        format!("{place}: expected `leak:PATTERN`, a comment or nothing"),
                    ));
                };
                rules.push(Rule { text: pattern.to_owned(), place, pattern: Pattern::new(pattern) });
            }
        }
        Ok(Suppressions { rules })
    }

    /// Takes away what is suppressed; says what each rule did. A stack can be suppressed by several.
    pub(crate) fn apply(&self, profile: &mut Profile) -> Vec<Used> {
        let rules_of = |location: &Location| -> Vec<usize> {
            let fitting = self.rules.iter().enumerate().filter(|(_, rule)| fits(profile, location, &rule.pattern));
            fitting.map(|(index, _)| index).collect()
        };
        let of_location: Vec<Vec<usize>> = profile.locations.iter().map(rules_of).collect();
        let mut samples = vec![0; self.rules.len()];
        profile.keep_samples(|profile, sample| {
            let locations = profile.stack(sample.stack).locations.iter();
            let mut fitting: Vec<usize> = locations.flat_map(|id| &of_location[id.index()]).copied().collect();
            fitting.sort_unstable();
            fitting.dedup();
            fitting.iter().for_each(|&rule| samples[rule] += usize::from(!sample.live.is_zero()));
            fitting.is_empty()
        });
        let used =
            |(rule, samples): (&Rule, usize)| Used { pattern: rule.text.clone(), place: rule.place.clone(), samples };
        self.rules.iter().zip(samples).map(used).collect()
    }
}

fn read(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > LARGEST { Err("is larger than 1 MiB".to_owned()) } else { Ok(text) }
}

fn fits(profile: &Profile, location: &Location, pattern: &Pattern) -> bool {
    let module = profile.module_of(location).is_some_and(|module| pattern.fits(&module.path));
    module
        || location
            .frames
            .iter()
            .any(|frame| pattern.fits(&frame.function) || frame.file.as_ref().is_some_and(|file| pattern.fits(file)))
}

/// Parts that have to occur in this order.
#[derive(Debug)]
struct Pattern {
    parts: Vec<String>,
    from_start: bool,
    to_end: bool,
}

impl Pattern {
    fn new(text: &str) -> Pattern {
        let (from_start, text) = text.strip_prefix('^').map_or((false, text), |rest| (true, rest));
        let (to_end, text) = text.strip_suffix('$').map_or((false, text), |rest| (true, rest));
        let from_start = from_start && !text.starts_with('*');
        let to_end = to_end && !text.ends_with('*');
        let parts = text.split('*').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        Pattern { parts, from_start, to_end }
    }

    fn fits(&self, name: &str) -> bool {
        let mut rest = name;
        let last = self.parts.len().saturating_sub(1);
        for (index, part) in self.parts.iter().enumerate() {
            let is_last = index == last && self.to_end;
            let found = match (index == 0 && self.from_start, is_last) {
                (true, true) => (rest == part).then_some(0),
                (true, false) => rest.starts_with(part.as_str()).then_some(0),
                (false, true) => rest.ends_with(part.as_str()).then(|| rest.len() - part.len()),
                (false, false) => rest.find(part.as_str()),
            };
            match found {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("grow", "app::grow_more", true),
            ("^grow", "app::grow", false),
            ("^app*more$", "app::grow_more", true),
            ("^app*grow$", "app::grow_more", false),
            ("more$", "more_more", true),
            ("^app$", "app", true),
            ("^app$", "apps", false),
            ("*lib*.so", "/usr/lib/libx.so.1", true),
            ("a*b*a", "ab", false),
            ("*", "anything", true),
        ] {
            assert_eq!(Pattern::new(pattern).fits(name), expected, "{pattern} {name}");
        }
    }
}
