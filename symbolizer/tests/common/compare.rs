//! Comparisons with `llvm-symbolizer`, instruction by instruction.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use super::opinions::{self, Told};
use super::tools::run;
use super::{code_of, symbolize};

/// Addresses of all instructions of the functions of a [`Project`](super::project::Project), not of what the linker
/// adds to each program.
#[track_caller]
pub(crate) fn instructions(program: &Path) -> Vec<u64> {
    let is_ours = |name: &str| ["_Z", "main", "plain_c"].iter().any(|start| name.starts_with(start));
    let addresses = code_of(program, |name| is_ours(name) && !name.ends_with("plt"));
    assert!(addresses.len() > 200, "only {} instructions in {}", addresses.len(), program.display());
    addresses
}

/// What we say about each of `addresses`; panics if that is too little to compare with anything.
#[track_caller]
pub(crate) fn told(program: &Path, addresses: &[u64]) -> Vec<Vec<Told>> {
    let ours: Vec<_> = symbolize(program, addresses).iter().map(opinions::ours).collect();
    assert_eq!(ours.len(), addresses.len());
    assert!(ours.iter().any(|frames| frames.len() >= 3), "nothing is inlined in {}", program.display());
    let with_lines = ours.iter().filter(|frames| frames.iter().any(|frame| frame.line != 0)).count();
    assert!(with_lines > ours.len() * 3 / 4, "{with_lines} of {} have lines in {}", ours.len(), program.display());
    ours
}

/// Our answers about `program` are the expected ones.
#[track_caller]
pub(crate) fn assert_same(program: &Path, addresses: &[u64], ours: &[Vec<Told>], expected: &[Vec<Told>]) {
    assert_eq!((ours.len(), expected.len()), (addresses.len(), addresses.len()));
    for ((address, ours), expected) in addresses.iter().zip(ours).zip(expected) {
        assert_eq!(ours, expected, "at {address:#x} of {}", program.display());
    }
}

/// Our answers for every instruction of a project's functions are those of `llvm-symbolizer`, frame for frame: linker's
/// name, path, line.
#[track_caller]
pub(crate) fn assert_like_llvm(program: &Path) {
    assert_like_llvm_at(program, &instructions(program));
}

/// The same for `addresses` of any program.
#[track_caller]
pub(crate) fn assert_like_llvm_at(program: &Path, addresses: &[u64]) {
    let (ours, theirs) = (told(program, addresses), opinions::llvm(program, addresses));
    let symbols = Symbols::of(program);
    for ((address, ours), theirs) in addresses.iter().zip(&ours).zip(&theirs) {
        let is_same = |(ours, theirs): (&Told, &Told)| {
            symbols.are_same(&ours.name, &theirs.name) && (&ours.file, ours.line) == (&theirs.file, theirs.line)
        };
        assert!(
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(is_same),
            "at {address:#x} of {}:\n ours {ours:#?}\n llvm-symbolizer {theirs:#?}",
            program.display()
        );
    }
}

/// The symbols of a program. `llvm-symbolizer` puts the name of a symbol in place of the one in the debug information,
/// which we do only where the latter has none for the linker.
struct Symbols(HashMap<String, u64>);

impl Symbols {
    #[track_caller]
    fn of(program: &Path) -> Self {
        let listing = run(Command::new("nm").arg("--defined-only").arg(program));
        let mut symbols = HashMap::new();
        for line in listing.lines() {
            let Some((address, name)) = line.split_once(' ') else { continue };
            let (Ok(address), Some((_, name))) = (u64::from_str_radix(address, 16), name.split_once(' ')) else {
                continue;
            };
            // What LLVM appends to make names of one unit known to others.
            let plain = name.split_once(".llvm.").map_or(name, |(plain, _)| plain);
            symbols.extend([name, plain].map(|name| (name.to_owned(), address)));
        }
        Symbols(symbols)
    }

    /// Whether both names are for the same function: they are equal; two symbols of one address (constructors, code
    /// that the linker folded); theirs is that of a part or a copy of ours (`f.cold`, `f.constprop.0`), or not one of a
    /// function at all: GCC's link-time optimizer makes symbols of the names of files.
    fn are_same(&self, ours: &str, theirs: &str) -> bool {
        let address = |name| self.0.get(name);
        ours == theirs
            || address(ours).is_some() && address(ours) == address(theirs)
            || theirs.strip_prefix(ours).is_some_and(|rest| rest.starts_with('.') && address(theirs).is_some())
            || theirs.starts_with("second.cc.")
    }
}
