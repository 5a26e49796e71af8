//! Estimates against the truth: programs that know how much they keep, and from where.

mod common;

use common::{Place, json, workload};
use serde_json::Value;

/// What a program says it keeps at one line.
struct Site {
    name: String,
    file: String,
    line: u64,
    bytes: f64,
    /// Variance of the estimated bytes: each block is sampled with a probability that its size gives, independently.
    variance: f64,
}

/// The lines that keep anything, in the JSON lines of a program's truth, when one byte in `rate` is sampled.
fn truth(lines: &str, rate: f64) -> Vec<Site> {
    let mut sites: Vec<Site> = Vec::new();
    for site in lines.lines().map(json).filter(|line| line["kind"] == "site" && line["blocks_live"] != 0) {
        let text = |key: &str| site[key].as_str().expect("a string").to_owned();
        let number = |key: &str| site[key].as_f64().expect("a number");
        let (name, file, line) = (text("function"), text("file"), site["line"].as_u64().expect("a line"));
        let (size, blocks) = (number("block_size"), number("blocks_live"));
        let p = 1.0 - (-size / rate).exp();
        let (bytes, variance) = (blocks * size, size * size * blocks * (1.0 - p) / p);
        // The same line in several threads, or for several types, is one row.
        match sites.iter_mut().find(|other| other.line == line && other.file == file) {
            Some(other) => (other.bytes, other.variance) = (other.bytes + bytes, other.variance + variance),
            None => sites.push(Site { name, file, line, bytes, variance }),
        }
    }
    assert!(sites.len() > 8, "the program tells its truth: {lines}");
    sites
}

impl Site {
    /// By how many standard errors an estimate is off. Where all blocks are sampled, a byte is the least error.
    fn score(&self, estimate: f64) -> f64 {
        (estimate - self.bytes) / self.variance.sqrt().max(1.0)
    }

    /// The estimate of this site in the rows of `mpp top --group line`.
    fn estimate(&self, rows: &[Value]) -> f64 {
        let here = |row: &&Value| {
            row["line"] == self.line && row["file"].as_str().is_some_and(|file| file.ends_with(&self.file))
        };
        rows.iter().filter(here).map(|row| row["flat_bytes"].as_f64().expect("bytes")).sum()
    }
}

fn top(place: &Place, recording: &str, flags: &[&str]) -> Value {
    json(&place.run([&["top", "--format", "json", "--limit", "1000000"], flags, &[recording]].concat()).exits(0).stdout)
}

/// 20 seeds: each site within three standard errors of the truth (as often as chance allows), the mean within 1 %, and the first
/// row is the user's function with its line, also where it was inlined, in a plugin or in a thread.
#[test]
fn estimates_scatter_around_the_truth() {
    const RATE: f64 = 512.0;
    const SEEDS: usize = 20;
    let place = Place::new();
    let leaky = workload("leaky");
    let leaky = leaky.to_str().expect("a UTF-8 path");
    let mut sums: Vec<f64> = Vec::new();
    let mut sites = Vec::new();
    let mut scores = Vec::new();
    for seed in 1..=SEEDS {
        let (recording, seed) = (format!("seed-{seed}"), seed.to_string());
        let run = ["run", "-q", "--sample", "512", "--seed", &seed, "-o", &recording, "--", leaky, "--format", "json"];
        let ran = place.run(run.into_iter().chain(["--seed", &seed])).exits(0);
        sites = truth(&ran.stdout, RATE);
        let table = top(&place, &recording, &["--group", "line"]);
        let rows = table["rows"].as_array().expect("rows");
        sums.resize(sites.len(), 0.0);
        for (site, sum) in sites.iter().zip(&mut sums) {
            let estimate = site.estimate(rows);
            scores.push(site.score(estimate));
            *sum += estimate;
        }
        let by_function = top(&place, &recording, &[]);
        let largest = sites.iter().max_by(|a, b| a.bytes.total_cmp(&b.bytes)).expect("sites");
        assert_eq!(by_function["rows"][0]["name"], largest.name.as_str());
        assert_eq!(by_function["rows"][0]["line"], largest.line);
        assert_eq!(by_function["quality"]["stack_truncated_bytes"], 0);
    }
    let beyond = scores.iter().filter(|score| score.abs() > 3.0).count();
    println!(
        "{} estimates, {beyond} beyond 3 standard errors (chance: {:.1})",
        scores.len(),
        scores.len() as f64 * 0.0027
    );
    assert!(scores.iter().all(|score| score.abs() < 5.0) && beyond <= scores.len() / 60, "{scores:?}");
    for (site, sum) in sites.iter().zip(&sums) {
        let off = sum / SEEDS as f64 / site.bytes - 1.0;
        println!("{:60} {:>10} bytes, mean off by {:+.2} %", site.name, site.bytes, off * 100.0);
        // Where a site is small, 1 % is less than what 20 seeds can tell.
        let least = 3.5 * site.variance.sqrt() / site.bytes / (SEEDS as f64).sqrt();
        assert!(off.abs() < f64::max(0.01, least), "{}: the mean is off by {:.2} %", site.name, off * 100.0);
    }
    let total: f64 = sites.iter().map(|site| site.bytes).sum();
    let mean = sums.iter().sum::<f64>() / SEEDS as f64;
    assert!(
        (mean / total - 1.0).abs() < 0.01,
        "the mean of the totals is off by {:.2} %",
        (mean / total - 1.0) * 100.0
    );
}

/// The same for C++, compiled plainly.
#[test]
fn cxx_sites_are_found() {
    let place = Place::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../workloads/src/cxx/leaky.cpp");
    let program = place.path("leaky-cxx");
    let compiler = std::process::Command::new("g++")
        .args(["-std=c++17", "-O2", "-g", "-pthread", "-o"])
        .arg(&program)
        .arg(source)
        .status();
    assert!(compiler.expect("g++ is needed for this test").success());
    let ran = place.run(["run", "-q", "--sample", "512", "--seed", "3", "-o", "r", "--", "./leaky-cxx"]).exits(0);
    let sites = truth(&ran.stdout, 512.0);
    let table = top(&place, "r", &["--group", "line"]);
    for site in &sites {
        let estimate = site.estimate(table["rows"].as_array().expect("rows"));
        assert!(site.score(estimate).abs() < 5.0, "{} line {}: {estimate} for {}", site.name, site.line, site.bytes);
    }
}

/// Programs as installed: output and status unchanged, and nearly all sampled bytes have whole stacks.
#[test]
fn stacks_of_installed_programs_are_whole() {
    let place = Place::new();
    let repository = place.path("repository");
    let script = "git init -q . && for i in 1 2 3 4 5; do echo $i > file && git add file && \
                  git -c user.name=a -c user.email=b commit -qm $i; done";
    std::fs::create_dir(&repository).expect("a folder");
    let made = std::process::Command::new("sh").args(["-c", script]).current_dir(&repository).status();
    assert!(made.expect("sh").success(), "git is needed for this test");
    let leaky = workload("leaky");
    let query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<50000) \
                 SELECT count(*) FROM (SELECT DISTINCT hex(i) FROM n ORDER BY 1);";
    let programs: [&[&str]; 4] = [
        &["python3", "-c", "import json; x = [json.dumps([i] * 50) for i in range(20000)]; print(len(x))"],
        &["sqlite3", ":memory:", query],
        &["git", "-C", "repository", "log", "--stat"],
        &[leaky.to_str().expect("a UTF-8 path"), "--exit", "3", "--format", "text", "--scale", "0.1"],
    ];
    for (i, program) in programs.into_iter().enumerate() {
        let plain = std::process::Command::new(program[0]).args(&program[1..]).current_dir(place.path("")).output();
        let plain = plain.unwrap_or_else(|error| panic!("{} is needed for this test: {error}", program[0]));
        let recording = format!("r{i}");
        let run = ["run", "-q", "--sample", "1KiB", "-o", &recording, "--"];
        let ran = place.run(run.iter().chain(program));
        assert_eq!((ran.status, ran.stdout.as_bytes()), (plain.status.code(), plain.stdout.as_slice()), "{ran:?}");
        let table = top(&place, &recording, &["--metric", "alloc"]);
        let quality = |key: &str| table["quality"][key].as_f64().expect("bytes");
        let complete = quality("stack_complete_bytes") / table["total_bytes"].as_f64().expect("bytes");
        println!("{}: {:.3} % of {} sampled blocks have whole stacks", program[0], complete * 100.0, table["samples"]);
        assert!(complete >= 0.99, "{}: {complete}", program[0]);
        assert!(table["samples"].as_u64() > Some(20), "{table}");
    }
}
