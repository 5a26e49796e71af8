//! Rust programs of several kinds against `llvm-symbolizer`.

mod common;

use std::path::PathBuf;
use std::process::Command;

use common::Folder;
use common::compare::assert_like_llvm_at;
use common::tools::run;

const PROGRAM: &str = r#"
use std::collections::HashMap;
use std::hint::black_box;

trait Weigh {
    fn weigh(&self, factor: u64) -> u64;
}

#[derive(Clone)]
struct Crate<T> {
    items: Vec<T>,
}

impl<T: Copy + Into<u64>> Weigh for Crate<T> {
    #[inline(never)]
    fn weigh(&self, factor: u64) -> u64 {
        self.items.iter().map(|&item| item.into() * factor).filter(|weight| weight % 3 != 0).sum()
    }
}

mod inner {
    #[inline(always)]
    pub fn mix(a: u64, b: u64) -> u64 {
        std::hint::black_box(a.rotate_left(7) ^ b)
    }

    #[inline(never)]
    pub fn spread<const N: usize>(seed: u64) -> [u64; N] {
        let mut all = [0; N];
        for (i, slot) in all.iter_mut().enumerate() {
            *slot = mix(seed, i as u64);
        }
        all
    }
}

#[inline(never)]
fn count(words: &[String]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for word in words {
        *counts.entry(word.as_str()).or_insert(0) += 1;
    }
    counts
}

fn main() {
    let n = std::env::args().count() as u64;
    let all: Vec<Box<dyn Weigh>> = vec![
        Box::new(Crate { items: vec![n as u8; 9] }),
        Box::new(Crate { items: inner::spread::<12>(n).to_vec() }),
    ];
    let words: Vec<String> = (0..n * 20).map(|i| format!("word {}", i % 7)).collect();
    let counts = count(&words);
    let mut sum: u64 = all.iter().map(|item| item.weigh(n)).sum();
    sum += counts.values().map(|&count| inner::mix(count as u64, n)).sum::<u64>();
    let result = std::thread::spawn(move || black_box(sum) + 1).join();
    std::process::exit((result.unwrap() == 1_234_567) as i32);
}
"#;

/// Compiles the program.
fn build(folder: &Folder, name: &str, flags: &[&str]) -> PathBuf {
    let source = folder.write("depot.rs", PROGRAM);
    let out = folder.path(name);
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition=2024", "--crate-name=depot"]).args(flags);
    run(rustc.arg(&source).arg("-o").arg(&out));
    out
}

/// Every instruction of the program's own functions and one in `step` of those of the standard library.
#[track_caller]
fn assert_like_llvm_all_over(folder: &Folder, name: &str, flags: &[&str], step: usize) {
    let program = build(folder, name, flags);
    let (mut all, own) =
        (common::code_of(&program, |_| true), common::code_of(&program, |name| name.contains("depot")));
    assert!(own.len() > 100, "{} instructions in {name}", own.len());
    all = all.into_iter().step_by(step).collect();
    all.extend(own);
    all.sort_unstable();
    all.dedup();
    assert_like_llvm_at(&program, &all);
}

#[test]
fn debug_and_release() {
    let folder = Folder::new();
    assert_like_llvm_all_over(&folder, "debug", &["-g"], 40);
    assert_like_llvm_all_over(&folder, "release", &["-g", "-Copt-level=3"], 40);
    assert_like_llvm_all_over(&folder, "small", &["-g", "-Copt-level=z", "-Ccodegen-units=1"], 40);
}

#[test]
fn lines_only_and_optimised_as_a_whole() {
    let folder = Folder::new();
    assert_like_llvm_all_over(&folder, "lines", &["-Cdebuginfo=line-tables-only", "-Copt-level=2"], 40);
    assert_like_llvm_all_over(&folder, "whole", &["-g", "-Copt-level=3", "-Clto=fat", "-Cpanic=abort"], 20);
    assert_like_llvm_all_over(&folder, "lld", &["-g", "-Copt-level=2", "-Clink-arg=-fuse-ld=lld"], 40);
}

#[test]
fn both_kinds_of_names() {
    let folder = Folder::new();
    assert_like_llvm_all_over(&folder, "v0", &["-g", "-Copt-level=2", "-Csymbol-mangling-version=v0"], 40);
}
