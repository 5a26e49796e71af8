//! Programs that look up addresses, and how each is asked.

use std::path::{Path, PathBuf};

use super::frames::{Frame, of_gnu_style, of_llvm_style};

/// How a tool prints its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Function and place, an empty line after each address.
    Llvm,
    /// The address first.
    Gnu,
    /// Some way of its own, which is not read: time and memory only.
    Own,
}

/// A program that reads addresses from standard input and prints functions and lines, with inlined calls.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Its name in tables.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments; `FILE` stands for the file that is asked about.
    pub arguments: Vec<String>,
    /// What it prints.
    pub style: Style,
    /// It is this project's.
    pub is_ours: bool,
}

impl Tool {
    fn new(name: &str, program: PathBuf, arguments: &[&str], style: Style) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self { name: name.to_owned(), program, arguments, style, is_ours: false }
    }

    /// The arguments to ask about `file`.
    #[must_use]
    pub fn arguments_for(&self, file: &Path) -> Vec<String> {
        let file = file.display().to_string();
        self.arguments.iter().map(|argument| argument.replace("FILE", &file)).collect()
    }

    /// Reads what it printed.
    #[must_use]
    pub fn read(&self, output: &str) -> Option<Vec<Vec<Frame>>> {
        match self.style {
            Style::Llvm => Some(of_llvm_style(output)),
            Style::Gnu => Some(of_gnu_style(output)),
            Style::Own => None,
        }
    }
}

/// Ours, on one thread and on all, then the others: those that are installed, and the names of those that are not. `folder` is
/// searched before `PATH`.
#[must_use]
pub fn all(mpp: &Path, folder: &Path) -> (Vec<Tool>, Vec<String>) {
    let ours = ["symbolize", "-q", "--names", "full", "--no-symbol-cache", "-e", "FILE"];
    let ours = |name: &str, more: &[&str]| {
        let arguments = [&ours[..], more].concat();
        Tool { is_ours: true, ..Tool::new(name, mpp.to_owned(), &arguments, Style::Llvm) }
    };
    let mut tools = vec![ours("mpp, one thread", &["--threads", "1"]), ours("mpp", &[])];
    let mut missing = Vec::new();
    let mut add = |name: &str, programs: &[&str], arguments: &[&str], style| match programs
        .iter()
        .find_map(|program| find(program, folder))
    {
        Some(program) => tools.push(Tool::new(name, program, arguments, style)),
        None => missing.push(name.to_owned()),
    };
    let llvm = ["--inlines", "--demangle", "--functions=linkage", "--obj=FILE"];
    add("llvm-symbolizer 22", &["llvm-symbolizer-22"], &llvm, Style::Llvm);
    add("llvm-symbolizer 14", &["llvm-symbolizer-14"], &llvm, Style::Llvm);
    let gnu = ["-a", "-C", "-f", "-i", "-e", "FILE"];
    add("elfutils", &["eu-addr2line"], &gnu, Style::Gnu);
    add("binutils", &["addr2line"], &gnu, Style::Gnu);
    add("blazesym (blazecli)", &["blazecli"], &["symbolize", "elf", "--path", "FILE", "@ADDRESSES"], Style::Own);
    add("addr2line crate", &["addr2line-crate"], &gnu, Style::Gnu);
    (tools, missing)
}

fn find(program: &str, folder: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_put_into_the_arguments_and_the_folder_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("addr2line"), "").unwrap();
        let (tools, _) = all(Path::new("/mpp"), folder.path());
        assert_eq!(tools[0].arguments_for(Path::new("/a b"))[5..], ["-e", "/a b", "--threads", "1"]);
        let binutils = tools.iter().find(|tool| tool.name == "binutils").unwrap();
        assert_eq!(binutils.program, folder.path().join("addr2line"));
        assert_eq!(binutils.arguments_for(Path::new("/x"))[4..], ["-e", "/x"]);
    }
}
