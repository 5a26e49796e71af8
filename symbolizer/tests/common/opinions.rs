//! What other symbolizers say about addresses, all brought to one form.

use std::path::Path;
use std::process::{Command, Stdio};

use mpp_symbolizer::{Frame, Symbolized};

use super::tools::run;

/// One frame: the linker's name, the path as recorded, the line; `??` and 0 for what is not known. Without a line there is
/// no path either: some tools then give the path of the unit, or what a symbol table has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) line: u32,
}

impl Told {
    fn new(name: &str, path: &str, line: u32) -> Self {
        Told { name: name.to_owned(), file: if line == 0 { "??".to_owned() } else { plain_path(path) }, line }
    }
}

/// Our frames.
pub(crate) fn ours(symbolized: &Symbolized) -> Vec<Told> {
    let tell = |frame: &Frame| {
        let name = frame.function.as_ref().map_or("??", |name| &name.raw);
        Told::new(name, frame.file.as_deref().unwrap_or("??"), frame.line)
    };
    symbolized.frames.iter().map(tell).collect()
}

/// What `llvm-symbolizer` says of a file of any system, functions demangled, innermost first.
pub(crate) fn llvm_lines(library: &Path, addresses: &[u64]) -> Vec<Vec<super::Line>> {
    let list: Vec<String> = addresses.iter().map(|address| format!("{address:#x}")).collect();
    let text = run(Command::new("llvm-symbolizer").arg(format!("--obj={}", library.display())).args(list));
    let answer = |answer: &str| {
        let lines: Vec<&str> = answer.lines().collect();
        let frame = |frame: &[&str]| {
            let (place, _column) = frame[1].rsplit_once(':').expect("a column");
            let (file, line) = place.rsplit_once(':').expect("a line");
            (frame[0].to_owned(), file.rsplit('/').next().unwrap_or(file).to_owned(), line.parse().unwrap_or(0))
        };
        lines.chunks_exact(2).map(frame).collect()
    };
    text.trim_end().split("\n\n").map(answer).collect()
}

/// What `llvm-symbolizer` says.
#[track_caller]
pub(crate) fn llvm(file: &Path, addresses: &[u64]) -> Vec<Vec<Told>> {
    let mut command = Command::new("llvm-symbolizer");
    command.args(["--inlines", "--functions=linkage", "--no-demangle", "--obj"]).arg(file);
    let text = ask(&mut command, addresses);
    // Each answer ends with an empty line.
    let answers: Vec<_> = text.split_terminator("\n\n").map(|answer| frames(answer.lines(), 2)).collect();
    assert_eq!(answers.len(), addresses.len(), "answers of llvm-symbolizer");
    let is_nothing = |answer: &Vec<Told>| answer.len() == 1 && answer[0].name == "??" && answer[0].line == 0;
    answers.into_iter().map(|answer| if is_nothing(&answer) { Vec::new() } else { answer }).collect()
}

/// What `eu-addr2line` says.
#[track_caller]
pub(crate) fn elfutils(file: &Path, addresses: &[u64]) -> Vec<Vec<Told>> {
    let mut command = Command::new("eu-addr2line");
    command.args(["-a", "-f", "-i", "-e"]).arg(file);
    by_address(&ask(&mut command, addresses), addresses.len())
}

/// What `addr2line` of binutils says.
#[track_caller]
pub(crate) fn binutils(file: &Path, addresses: &[u64]) -> Vec<Vec<Told>> {
    let mut command = Command::new("addr2line");
    command.args(["-a", "-f", "-i", "-e"]).arg(file);
    by_address(&ask(&mut command, addresses), addresses.len())
}

/// Runs a tool with the addresses on its standard input.
#[track_caller]
fn ask(command: &mut Command, addresses: &[u64]) -> String {
    let list: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let mut input = tempfile::tempfile().expect("a temporary file");
    std::io::Write::write_all(&mut input, list.as_bytes()).expect("the addresses");
    std::io::Seek::rewind(&mut input).expect("the start of the file");
    run(command.stdin(Stdio::from(input)))
}

/// Answers that start with a line of the address.
#[track_caller]
fn by_address(text: &str, count: usize) -> Vec<Vec<Told>> {
    let mut answers: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        if line.starts_with("0x") {
            answers.push(Vec::new())
        } else {
            answers.last_mut().expect("an address").push(line)
        }
    }
    assert_eq!(answers.len(), count, "answers");
    answers.into_iter().map(|lines| frames(lines.into_iter(), 1)).collect()
}

/// Pairs of lines: the function, then `file:line` (with `columns` = 2 also `:column`).
fn frames<'t>(mut lines: impl Iterator<Item = &'t str>, columns: usize) -> Vec<Told> {
    let mut frames = Vec::new();
    while let (Some(name), Some(place)) = (lines.next(), lines.next()) {
        let place = place.split(" (").next().unwrap_or(place);
        let mut parts = place.rsplitn(columns + 1, ':').collect::<Vec<_>>();
        // eu-addr2line gives a column too, where there is one.
        if columns == 1
            && let Some((path, line)) = parts[1].rsplit_once(':').filter(|(_, line)| line.parse::<u32>().is_ok())
        {
            parts = vec![line, path];
        }
        let [.., line, path] = parts[..] else { panic!("{place:?} is not file:line") };
        // `f inlined at file:line in g`
        let name = name.split_once(" inlined at ").map_or(name, |(name, _)| name);
        frames.push(Told::new(name, path, line.parse().unwrap_or(0)));
    }
    frames
}

/// The path without `.` and with `..` resolved by its text, which tools do or do not do.
fn plain_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !last.is_empty() && *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
