//! The sampler through the real library: its estimates, that thefts change nothing, what it takes.

mod support;
use std::path::Path;
use std::process::Command;
use support::{compile, library, succeed};

fn program() -> Command {
    static PROGRAM: std::sync::OnceLock<std::path::PathBuf> = std::sync::OnceLock::new();
    let folder = library().parent().unwrap();
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    let search = format!("-L{}", folder.display());
    let program = PROGRAM.get_or_init(|| compile("sampler.c", &[include, &search, "-lmimalloc_pprof"]));
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", folder);
    command
}

/// Rows of numbers.
fn table(text: &str) -> Vec<Vec<u64>> {
    text.lines().map(|line| line.split(' ').map(|number| number.parse().expect(text)).collect()).collect()
}

/// Sampled blocks stand for so many.
fn scale(size: f64, rate: f64) -> f64 {
    1.0 / (1.0 - (-size / rate).exp())
}

/// Live and allocated blocks of a size in a dump.
fn in_dump(dump: &str, size: u64) -> (u64, u64) {
    let mut sum = (0, 0);
    for line in dump.lines().skip(1).take_while(|line| !line.starts_with("MAPPED")).filter(|line| line.contains("] @"))
    {
        let numbers: Vec<u64> = line
            .split(|c: char| !c.is_ascii_digit())
            .filter(|word| !word.is_empty())
            .take(4)
            .map(|word| word.parse().unwrap())
            .collect();
        if numbers[2] != 0 && numbers[3] / numbers[2] == size {
            sum = (sum.0 + numbers[0], sum.1 + numbers[2]);
        }
    }
    sum
}

/// 1,000,000 blocks of 64 bytes and 1,000 of 1 MiB are kept: both sites are found, right within 5 % with each of 20 seeds, and within 1 % on
/// average; through the functions, and the same in the dump. (A rate at which 64 MB are enough samples for that: 7,800.)
#[test]
fn small_and_large_blocks_are_estimated_without_bias() {
    const RATE: f64 = 8192.0;
    let dump = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bias.{}", std::process::id()));
    let mut errors = [0.0; 2];
    for seed in 1..=20 {
        let text = succeed(program().args(["bias", &RATE.to_string(), &seed.to_string()]).arg(&dump));
        let table = table(&text);
        assert_eq!(table.len(), 2, "{text}");
        let written = std::fs::read_to_string(&dump).unwrap();
        for row in &table {
            let (size, live, allocated) = (row[0] as f64, row[1] as f64, row[2] as f64);
            let (which, truth) = if row[0] == 64 { (0, 1e6) } else { (1, 1e3) };
            let estimate = live * scale(size, RATE);
            assert_eq!(live, allocated);
            assert!((estimate / truth - 1.0).abs() < 0.05, "seed {seed}: {estimate} of {truth}");
            errors[which] += (estimate / truth - 1.0) / 20.0;
            assert_eq!(in_dump(&written, row[0]), (row[1], row[2]), "seed {seed}");
        }
    }
    assert!(errors.iter().all(|error| error.abs() < 0.01), "{errors:?}");
    std::fs::remove_file(&dump).unwrap();
}

/// The same seed gives the same samples whatever thieves do meanwhile.
#[test]
fn thefts_change_no_sample() {
    for seed in ["1", "2", "3"] {
        let run = |steals: &str, scavenger: &str| {
            succeed(program().args(["thief", seed, steals]).env("MIMALLOC_SCAVENGER", scavenger))
        };
        let quiet = run("0", "0");
        let rows = table(&quiet);
        assert!(rows.len() >= 24 && rows.iter().map(|row| row[2]).sum::<u64>() > 10_000, "{quiet}");
        for (steals, scavenger) in [("1", "0"), ("1", "1"), ("0", "2"), ("0", "0")] {
            assert_eq!(run(steals, scavenger), quiet, "seed {seed}, thefts {steals}, scavenger {scavenger}");
        }
    }
    let other = |seed| succeed(program().args(["thief", seed, "0"]));
    assert_ne!(other("1"), other("2"));
}

/// At most 64 bytes for a live sample, besides stacks and counts; and they go back.
#[test]
fn memory_for_live_samples() {
    let text = succeed(program().arg("memory"));
    let rows = table(&text);
    let [full, drained, stopped] = &rows[..] else { panic!("{text}") };
    assert!(full[0] >= 100_000 && full[1] < full[0] * 64, "{text}");
    assert!(drained[0] < 1000 && drained[1] < 1 << 20, "{text}");
    assert!(stopped[0] == 0 && stopped[1] < 1 << 20, "{text}");
}

/// Nothing patches code: what `malloc` and `free` execute is the same, byte for byte, while the sampler runs.
#[test]
fn code_is_the_same_while_sampling() {
    succeed(program().arg("code"));
}
