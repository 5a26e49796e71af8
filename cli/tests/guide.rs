//! GUIDE.md: every command in it is run, in order, and its output is that of the guide but for numbers.
//!
//! `MPP_UPDATE_GUIDE=1 cargo test -p mpp --test guide` writes the outputs anew.

mod common;

use std::fmt::Write;
use std::process::Command;

use common::Place;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../GUIDE.md");

/// What the shell prints for a command, both streams.
fn output(place: &Place, command: &str) -> String {
    let mpp = std::path::Path::new(env!("CARGO_BIN_EXE_mpp")).parent().expect("a folder");
    let path = format!("{}:{}", mpp.display(), std::env::var("PATH").expect("a PATH"));
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("exec 2>&1; {command}")]).current_dir(place.path("")).env("PATH", path);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("MPP_") || name.starts_with("MIMALLOC_") {
            shell.env_remove(&*name);
        }
    }
    shell.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR")).env("XDG_CONFIG_HOME", place.path("none"));
    let output = shell.output().expect("bash");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stdout));
    // Folders of this machine say nothing to a reader.
    let text = String::from_utf8_lossy(&output.stdout)
        .replace(&format!("{}/", place.path("").display().to_string().trim_end_matches('/')), "");
    text.replace("/private", "")
}

/// A word in which numbers, such as process ids, are left out; and so is how the C library calls the caller of `main`.
fn without_numbers(word: &str) -> String {
    let word = if word.starts_with("__libc_start") { "__libc_start" } else { word };
    let mut plain = String::new();
    for character in word.chars() {
        match character {
            '0'..='9' if plain.ends_with('#') => {}
            '0'..='9' => plain.push('#'),
            other => plain.push(other),
        }
    }
    plain
}

/// Without numbers, units, and spaces that depend on them. Lines about the C library's own files differ between machines.
fn shape(text: &str) -> Vec<String> {
    let shape = |line: &str| {
        let mut shape = String::new();
        for word in line.split_whitespace() {
            let bare = word.trim_matches(|character: char| ",.;:()±+-<%=".contains(character));
            let is_number = bare.chars().next().is_some_and(|first| first.is_ascii_digit()) || bare.is_empty();
            let is_unit = ["B", "KiB", "MiB", "GiB", "ms", "s", "µs"].contains(&bare);
            match (is_number, is_unit) {
                (true, _) if shape.ends_with("# ") => {}
                (true, _) => shape.push_str("# "),
                (_, true) => {}
                _ => shape.push_str(&format!("{} ", without_numbers(word))),
            }
        }
        shape.trim_end().to_owned()
    };
    let is_of_the_machine =
        |line: &&str| ["RSS:", "peak: RSS", "libc.so", "/csu/"].iter().any(|part| line.contains(part));
    text.lines().filter(|line| !is_of_the_machine(line)).map(shape).collect()
}

#[test]
fn every_command_of_the_guide_works_and_says_what_is_written() {
    let place = Place::new();
    let guide = std::fs::read_to_string(GUIDE).expect("the guide");
    let mut updated = String::new();
    let mut lines = guide.lines().peekable();
    let mut commands = 0;
    while let Some(line) = lines.next() {
        let _ = writeln!(updated, "{line}");
        if let Some(name) = line.strip_prefix("```c ") {
            let mut source = String::new();
            while let Some(line) = lines.next_if(|line| *line != "```") {
                let _ = writeln!(source, "{line}");
            }
            updated.push_str(&source);
            place.write(name, source);
        }
        if line != "```console" {
            continue;
        }
        while let Some(line) = lines.next_if(|line| *line != "```") {
            let Some(command) = line.strip_prefix("$ ") else { panic!("output without a command: {line}") };
            let mut expected = String::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && *line != "```") {
                let _ = writeln!(expected, "{line}");
            }
            let found = output(&place, command);
            commands += 1;
            let _ = writeln!(updated, "{line}\n{}", found.trim_end());
            if found.is_empty() {
                updated.truncate(updated.trim_end().len());
                updated.push('\n');
            }
            if std::env::var_os("MPP_UPDATE_GUIDE").is_none() {
                assert_eq!(shape(&found), shape(&expected), "{command}: {found}");
            }
        }
    }
    assert!(commands > 15, "{commands} commands");
    if std::env::var_os("MPP_UPDATE_GUIDE").is_some() {
        std::fs::write(GUIDE, updated).expect("the guide is written");
    }
}
