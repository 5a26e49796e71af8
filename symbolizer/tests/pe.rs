//! Programs of Windows with DWARF in them, built here with MinGW, compared with `llvm-symbolizer`; and what is known of
//! stripped ones.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::opinions::llvm_lines;
use common::{Folder, run};
use mpp_symbolizer::{Options, SymbolSource, Symbolizer};

const LIBRARY: &str = r#"
static inline __attribute__((always_inline)) int leaf(int x)
{
    volatile int v = x;
    v += 3;
    return v * 7;
}
static __attribute__((noinline)) int hidden(int x, int (*f)(int))
{
    return f(x + leaf(x)) + leaf(x);
}
__attribute__((dllexport, noinline)) int outer(int x, int (*f)(int))
{
    int s = leaf(x);
    for (int i = 0; i < x; i++)
        s -= leaf(i * 2);
    return s + hidden(x, f);
}
int DllMain(void *instance, unsigned reason, void *reserved)
{
    return 1;
}
"#;

fn build(folder: &Folder, name: &str, flags: &[&str]) -> PathBuf {
    let source = folder.write("library.c", LIBRARY);
    let path = folder.path(name);
    let mut compiler = Command::new("x86_64-w64-mingw32-gcc");
    run(compiler.args(["-shared", "-O1"]).args(flags).arg(&source).arg("-o").arg(&path));
    path
}

/// Addresses of the instructions of each of our functions.
fn instructions(library: &Path) -> BTreeMap<String, Vec<u64>> {
    let text = run(Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(library));
    let mut functions: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut function = String::new();
    for line in text.lines() {
        if let Some((_, name)) = line.strip_suffix(">:").and_then(|line| line.split_once('<')) {
            name.clone_into(&mut function);
        } else if let Some((address, instruction)) = line.trim().split_once(':') {
            let is_ours = ["outer", "hidden", "DllMain"].contains(&function.as_str()) && !instruction.contains("nop");
            let address = u64::from_str_radix(address, 16).ok().filter(|_| is_ours);
            functions.entry(function.clone()).or_default().extend(address);
        }
    }
    functions.retain(|_, addresses| !addresses.is_empty());
    functions
}

#[test]
fn dwarf_in_sections_with_long_names() {
    let folder = Folder::new();
    for flags in [&["-gdwarf-5"][..], &["-gdwarf-2", "-gstrict-dwarf"]] {
        let library = build(&folder, "library.dll", flags);
        let addresses: Vec<u64> = instructions(&library).into_values().flatten().collect();
        assert!(addresses.len() > 30);
        let mut symbolizer = Symbolizer::new(Options::default());
        let answers = symbolizer.symbolize_file(&library, &addresses).expect("a library");
        assert_eq!(symbolizer.report()[0].source, SymbolSource::Dwarf { file: library.clone() });
        for ((address, answer), theirs) in addresses.iter().zip(&answers).zip(llvm_lines(&library, &addresses)) {
            assert_eq!(common::lines(answer), theirs, "at {address:#x}, {flags:?}");
        }
    }
}

/// What names the instructions of each function have.
fn names(library: &Path, functions: &BTreeMap<String, Vec<u64>>) -> (BTreeMap<String, Vec<String>>, SymbolSource) {
    let mut symbolizer = Symbolizer::new(Options::default());
    let names_of = |(function, addresses): (&String, &Vec<u64>)| {
        let answers = symbolizer.symbolize_file(library, addresses).expect("a library");
        let mut names: Vec<String> = answers
            .iter()
            .map(|answer| common::lines(answer).into_iter().map(|(name, ..)| name).collect::<Vec<_>>().join(" < "))
            .collect();
        names.dedup();
        (function.clone(), names)
    };
    let names = functions.iter().map(names_of).collect();
    let mut symbolizer = Symbolizer::new(Options::default());
    let addresses: Vec<u64> = functions.values().flatten().copied().collect();
    symbolizer.symbolize_file(library, &addresses).expect("a library");
    (names, symbolizer.report()[0].source.clone())
}

#[test]
fn symbols_and_exports_end_where_their_functions_end() {
    let folder = Folder::new();
    let library = build(&folder, "library.dll", &[]);
    let functions = instructions(&library);
    assert_eq!(functions.keys().collect::<Vec<_>>(), ["DllMain", "hidden", "outer"]);
    let (names, source) = self::names(&library, &functions);
    assert_eq!(source, SymbolSource::Symtab { file: library.clone() });
    for (function, names) in names {
        assert_eq!(names, [function]);
    }
    run(Command::new("x86_64-w64-mingw32-strip").arg(&library));
    let (names, source) = self::names(&library, &functions);
    // `hidden` is between functions with names, and gets neither.
    assert_eq!(
        (names["outer"].as_slice(), names["hidden"].as_slice()),
        (&["outer".to_owned()][..], &[String::new()][..])
    );
    assert_eq!(source, SymbolSource::Dynsym);
}
