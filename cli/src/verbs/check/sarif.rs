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
            "results": checked.gates.iter().filter(|told| told.gate.verdict != Verdict::Passed).flat_map(results).collect::<Vec<_>>()
        }]
    });
    Ok((serde_json::to_string_pretty(&log)? + "\n").into_bytes())
}

/// One result for each site, so that each is shown at its line; one without a place if there are none.
fn results(told: &Told) -> Vec<Value> {
    let level = if told.gate.verdict == Verdict::Failed { "error" } else { "warning" };
    let index = Name::ALL.iter().position(|name| *name == told.gate.name).unwrap_or(0);
    let result = |message: String, locations: Vec<Value>| {
        json!({
            "ruleId": format!("mpp/{}", told.gate.name.text()),
            "ruleIndex": index,
            "level": level,
            "message": { "text": message },
            "locations": locations
        })
    };
    if told.sites.is_empty() {
        return vec![result(told.sentence(), Vec::new())];
    }
    let site = |site: &Site| {
        let message = format!("{}: {}", told.sentence(), site_line(site, told.gate.name).trim_start());
        result(message, location(site).into_iter().collect())
    };
    told.sites.iter().map(site).collect()
}

fn location(site: &Site) -> Option<Value> {
    let uri = uri(site.file.as_deref()?);
    let mut place = json!({ "artifactLocation": { "uri": uri } });
    if let Some(line) = site.line {
        place["region"] = json!({ "startLine": line });
    }
    Some(json!({ "physicalLocation": place }))
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
