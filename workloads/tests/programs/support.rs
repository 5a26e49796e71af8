//! Runs programs, and reads the truth that they print.

use std::process::Command;

use serde_json::Value;

/// What a program left behind.
pub(crate) struct Output {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `program` to its end.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    Output {
        status: output.status.code().unwrap_or_else(|| panic!("{program}: {}", output.status)),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Reads JSON lines, each of which must be of `schema`.
pub(crate) fn lines(text: &str, schema: &str) -> Vec<Value> {
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        assert_eq!((&line["schema"], &line["schema_version"]), (&Value::from(schema), &Value::from(1)), "{line}");
    }
    lines
}

/// The truth of a `leaky`.
pub(crate) struct Truth {
    run: Value,
    pub(crate) rows: Vec<Value>,
    pub(crate) total: Value,
}

impl Truth {
    pub(crate) fn parse(text: &str) -> Self {
        let mut rows = lines(text, "leaky-truth");
        let total = rows.pop().expect("a line");
        let run = rows.remove(0);
        assert_eq!((&run["kind"], &total["kind"]), (&Value::from("run"), &Value::from("total")));
        assert!(!rows.is_empty() && rows.iter().all(|row| row["kind"] == "site"));
        Self { run, rows, total }
    }

    pub(crate) fn sites<'a>(&'a self, site: &'a str) -> impl Iterator<Item = &'a Value> {
        self.rows.iter().filter(move |row| row["site"] == site)
    }

    pub(crate) fn order(&self) -> u64 {
        self.run["order"].as_u64().unwrap()
    }

    /// Blocks times size is bytes, nothing is live that was not allocated, and the total is the sum of the rows.
    pub(crate) fn check_sums(&self) {
        for row in &self.rows {
            let number = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key} of {row}"));
            assert_eq!(number("bytes_live"), number("blocks_live") * number("block_size"), "{row}");
            assert!(number("bytes_live") <= number("bytes_allocated"), "{row}");
            assert!(number("blocks_live") <= number("blocks_allocated"), "{row}");
        }
        for key in ["blocks_live", "bytes_live", "blocks_allocated", "bytes_allocated"] {
            let sum: u64 = self.rows.iter().map(|row| row[key].as_u64().unwrap()).sum();
            assert_eq!(self.total[key], sum, "{key}");
        }
    }
}

/// The file, the line and the call of a row.
pub(crate) fn site_files(row: &Value) -> (&str, usize, &str) {
    (row["file"].as_str().unwrap(), row["line"].as_u64().unwrap() as usize, row["call"].as_str().unwrap())
}
