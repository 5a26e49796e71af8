//! SARIF 2.1.0: what code scanning shows beside the lines of the program.

use serde_json::{Value, json};

use super::gates::{Name, Verdict};
use super::verdict::{Checked, Site, Told, site_line};

pub(super) fn text(checked: &Checked) -> anyhow::Result<Vec<u8>> {
    let rule = |name: Name| {
        json!({
            "id": format!("mpp/{}", name.text()),
            "name": name.text(),
            "shortDescription": { "text": format!("Limit on: {}", name.sentence()) },
            "helpUri": "https://github.com/mimalloc-pprof/mimalloc-pprof/blob/main/docs/ci.md"
        })
    };
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "mpp check",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": "https://github.com/mimalloc-pprof/mimalloc-pprof",
                "rules": Name::ALL.map(rule)
            } },
            "columnKind": "unicodeCodePoints",
            "results": checked.gates.iter().filter(|told| told.gate.verdict != Verdict::Passed).flat_map(|told| results(told, &checked.source)).collect::<Vec<_>>()
        }]
    });
    Ok((serde_json::to_string_pretty(&log)? + "\n").into_bytes())
}

/// One result for each site, so that each is shown at its line. GitHub refuses a whole file if one result has no place; what has none is
/// said of the profile.
fn results(told: &Told, source: &str) -> Vec<Value> {
    let level = if told.gate.verdict == Verdict::Failed { "error" } else { "warning" };
    let index = Name::ALL.iter().position(|name| *name == told.gate.name).unwrap_or(0);
    let result = |message: String, location: Value| {
        json!({
            "ruleId": format!("mpp/{}", told.gate.name.text()),
            "ruleIndex": index,
            "level": level,
            "message": { "text": message },
            "locations": [location]
        })
    };
    if told.sites.is_empty() {
        return vec![result(told.sentence(), location(source, None))];
    }
    let site = |site: &Site| {
        let message = format!("{}: {}", told.sentence(), site_line(site, told.gate.name).trim_start());
        result(message, location(site.file.as_deref().unwrap_or(source), site.line))
    };
    told.sites.iter().map(site).collect()
}

/// A file without a line is shown at its first.
fn location(file: &str, line: Option<u32>) -> Value {
    json!({ "physicalLocation": { "artifactLocation": { "uri": uri(file) }, "region": { "startLine": line.unwrap_or(1) } } })
}

/// A path as a URI reference: relative ones stay relative.
fn uri(path: &str) -> String {
    let mut uri = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => uri.push(byte as char),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    #[test]
    fn paths_are_uris() {
        assert_eq!(super::uri("src/a b.c"), "src/a%20b.c");
        assert_eq!(super::uri("/usr/x+y.c"), "file:///usr/x%2By.c");
    }
}
