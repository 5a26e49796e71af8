//! How answers look: as text in the way of the tools that people and scripts know, and as JSON.

use std::fmt::Write as _;

use mpp_profile::text::escaped;
use mpp_symbolizer::{Frame, Quality, Symbolized};
use serde::Serialize;

use crate::args::NamesChoice;
use crate::selection;
use crate::symbols::Found;

/// What to print of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) names: NamesChoice,
    /// Inlined functions as well.
    pub(super) inlines: bool,
    /// The address above its answer, in text.
    pub(super) addresses: bool,
}

impl Look {
    /// The frames to print. The line of a function without those inlined into it is that of the call.
    fn frames(self, answer: &Symbolized) -> impl Iterator<Item = &Frame> {
        answer.frames.iter().filter(move |frame| self.inlines || !frame.inlined)
    }

    /// The name of the function, not escaped.
    fn name(self, frame: &Frame) -> Option<String> {
        let name = frame.function.as_ref()?;
        Some(selection::styled(&name.raw, &name.demangled, self.names))
    }
}

/// A line for the function, a line for its file and line, a blank line after the last function of an address. What is
/// not known is `??`, and `??:0`, as in llvm-symbolizer and addr2line.
pub(super) fn text(answers: &[Symbolized], look: Look) -> String {
    let mut text = String::new();
    for answer in answers {
        // Writing to a string does not fail.
        if look.addresses {
            let _ = writeln!(text, "{:#x}", answer.file_address);
        }
        if answer.frames.is_empty() {
            text.push_str("??\n??:0\n");
        }
        for frame in look.frames(answer) {
            let name = look.name(frame);
            let _ = writeln!(text, "{}", escaped(name.as_deref().unwrap_or("??")));
            let _ = writeln!(text, "{}:{}", escaped(frame.file.as_deref().unwrap_or("??")), frame.line);
        }
        text.push('\n');
    }
    text
}

/// All answers, and what they came from. A field keeps its name and meaning as long as `schema_version` stays.
#[derive(Debug, Serialize)]
struct Data<'a> {
    schema: &'static str,
    schema_version: u32,
    mpp_version: &'static str,
    file: &'a str,
    build_id: Option<&'a str>,
    /// Where the symbols come from: `dwarf`, `symtab` and the like; and the file, if it is known.
    source: &'static str,
    source_file: Option<&'a str>,
    problems: &'a [String],
    addresses: Vec<DataAddress<'a>>,
}

#[derive(Debug, Serialize)]
struct DataAddress<'a> {
    address: u64,
    /// `lines`, `name` or `nothing`.
    quality: &'static str,
    /// The innermost inlined function first.
    frames: Vec<DataFrame<'a>>,
}

#[derive(Debug, Serialize)]
struct DataFrame<'a> {
    function: Option<String>,
    linker_name: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    inlined: bool,
}

/// The answers for programs.
///
/// # Errors
/// If they cannot be made into JSON, which would be a bug.
pub(super) fn json(answers: &[Symbolized], look: Look, found: Option<&Found>) -> anyhow::Result<String> {
    let data = Data {
        schema: "mpp-symbolize",
        schema_version: 1,
        mpp_version: env!("CARGO_PKG_VERSION"),
        file: found.map_or("", |found| &found.path),
        build_id: found.and_then(|found| found.build_id.as_deref()),
        source: found.map_or("none", |found| found.source),
        source_file: found.and_then(|found| found.source_file.as_deref()),
        problems: found.map_or(&[], |found| &found.problems),
        addresses: answers.iter().map(|answer| DataAddress::of(answer, look)).collect(),
    };
    let mut text = serde_json::to_string_pretty(&data)?;
    text.push('\n');
    Ok(text)
}

impl<'a> DataAddress<'a> {
    fn of(answer: &'a Symbolized, look: Look) -> DataAddress<'a> {
        let frame = |frame: &'a Frame| DataFrame {
            function: look.name(frame),
            linker_name: frame.function.as_ref().map(|name| &*name.raw),
            file: frame.file.as_deref(),
            line: Some(frame.line).filter(|&line| line > 0),
            inlined: frame.inlined,
        };
        DataAddress {
            address: answer.file_address,
            quality: match answer.quality {
                Quality::Lines => "lines",
                Quality::Name => "name",
                Quality::Nothing => "nothing",
            },
            frames: look.frames(answer).map(frame).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpp_symbolizer::Name;

    fn answers() -> [Symbolized; 2] {
        let name = |raw: &str, demangled: &str| Some(Name { raw: raw.into(), demangled: demangled.into() });
        let frames = vec![
            Frame { function: name("_Z1fi", "f(int)"), file: Some("a\u{1b}.h".into()), line: 3, inlined: true },
            Frame { function: name("main", "main"), file: None, line: 0, inlined: false },
        ];
        let known = Symbolized { module: None, file_address: 0x10, frames, quality: Quality::Lines };
        [known, Symbolized { file_address: 0x20, ..Symbolized::default() }]
    }

    #[test]
    fn text_is_what_scripts_expect() {
        let look = Look { names: NamesChoice::Full, inlines: true, addresses: false };
        assert_eq!(text(&answers(), look), "f(int)\na\\u{1b}.h:3\nmain\n??:0\n\n??\n??:0\n\n");
        let look = Look { names: NamesChoice::Raw, inlines: true, addresses: true };
        assert_eq!(text(&answers(), look), "0x10\n_Z1fi\na\\u{1b}.h:3\nmain\n??:0\n\n0x20\n??\n??:0\n\n");
        let look = Look { names: NamesChoice::Short, inlines: false, addresses: false };
        assert_eq!(text(&answers(), look), "main\n??:0\n\n??\n??:0\n\n");
    }
}
