//! The fast paths of `malloc` and `free`, as they stand in the library: how many instructions, no call, no lock.

mod support;
use std::process::Command;
use support::library;

/// Instructions from the start of a function to its first `ret`, as objdump prints them.
fn fast_path(function: &str) -> Vec<String> {
    let run = |program: &str, args: &[&str]| {
        let output =
            Command::new(program).args(args).arg(library()).output().expect("binutils are needed for this test");
        String::from_utf8(output.stdout).unwrap()
    };
    let symbols = run("nm", &["-D", "--defined-only"]);
    let address = symbols.lines().find(|line| line.ends_with(&format!(" T {function}"))).unwrap()[..16].to_owned();
    let code = run("objdump", &["-d", "--no-show-raw-insn", "-M", "intel", &format!("--start-address=0x{address}")]);
    let mut path = Vec::new();
    for instruction in code.lines().filter_map(|line| line.split_once(":\t").map(|(_, i)| i.trim().to_owned())) {
        let end = instruction.starts_with("ret");
        path.push(instruction);
        if end {
            return path;
        }
    }
    panic!("{function} has no end");
}

fn check(function: &str, most: usize) {
    let mut path = fast_path(function);
    // A conditional jump over the way to the medium classes is on the path, that way itself is not.
    path.retain(|instruction| !instruction.starts_with("jmp"));
    assert!(path.len() <= most, "{function}: {} instructions\n{}", path.len(), path.join("\n"));
    for instruction in &path {
        assert!(!instruction.contains("lock") && !instruction.starts_with("call") && !instruction.starts_with("xchg"));
    }
}

#[test]
fn malloc_is_short() {
    check("malloc", 14);
}

#[test]
fn free_is_short() {
    check("free", 18);
}
