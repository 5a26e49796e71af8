//! The machine code of a function, as objdump prints it.

use std::path::Path;
use std::process::Command;

/// The straight way through a function, from its start to its first `ret`: what runs when no branch is taken.
pub fn straight_way(program: &Path, function: &str) -> Vec<String> {
    let run = |tool: &str, args: &[&str]| {
        let output = Command::new(tool).args(args).arg(program).output().expect("binutils are needed for this test");
        String::from_utf8(output.stdout).unwrap()
    };
    let dynamic: &[&str] = if program.extension().is_some_and(|name| name == "so") { &["-D"] } else { &[] };
    let symbols = run("nm", &[dynamic, &["--defined-only"]].concat());
    let address = symbols.lines().find(|line| line[16..].to_lowercase().ends_with(&format!(" t {function}")));
    let address = &address.unwrap_or_else(|| panic!("no function {function}"))[..16];
    let code = run("objdump", &["-d", "--no-show-raw-insn", "-M", "intel", &format!("--start-address=0x{address}")]);
    let mut way = Vec::new();
    for instruction in code.lines().filter_map(|line| line.split_once(":\t").map(|(_, i)| i.trim().to_owned())) {
        let end = instruction.starts_with("ret");
        way.push(instruction);
        if end {
            return way;
        }
    }
    panic!("{function} has no end");
}

/// At most so many instructions, and nothing that is slow by itself. Calls are for the caller to judge.
pub fn check(function: &str, way: &[String], most: usize) {
    assert!(way.len() <= most, "{function}: {} instructions\n{}", way.len(), way.join("\n"));
    for instruction in way {
        let slow = instruction.contains("lock") || instruction.starts_with("xchg") || instruction.starts_with("div");
        assert!(!slow, "{function}: {instruction}");
    }
}
