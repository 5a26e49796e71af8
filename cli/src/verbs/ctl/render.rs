//! An answer for people: one line for each field, with units.

use std::time::Duration;

use mpp_profile::text::escaped;
use mpp_profile::units::{bytes, count, duration};
use serde_json::Value;

/// The fields, those of inner objects below their name.
pub(super) fn text(answer: &Value) -> String {
    let mut text = String::new();
    fields(answer, 0, &mut text);
    if text.is_empty() { "done\n".to_owned() } else { text }
}

fn fields(object: &Value, depth: usize, text: &mut String) {
    let Some(object) = object.as_object() else { return };
    let shown = || object.iter().filter(|(key, _)| depth > 0 || *key != "ok");
    let width = shown().map(|(key, _)| name(key).chars().count()).max().unwrap_or(0);
    for (key, value) in shown() {
        let indent = "  ".repeat(depth);
        if value.is_object() {
            text.push_str(&format!("{indent}{}\n", name(key)));
            fields(value, depth + 1, text);
        } else {
            text.push_str(&format!("{indent}{:width$}  {}\n", name(key), shown_as(key, value)));
        }
    }
}

/// `estimated_live_bytes` is `estimated live`.
fn name(key: &str) -> String {
    let plain = key.strip_suffix("_bytes").or(key.strip_suffix("_ms")).unwrap_or(key);
    escaped(&plain.replace('_', " ")).to_string()
}

fn shown_as(key: &str, value: &Value) -> String {
    match (value, value.as_u64()) {
        (_, Some(number)) if key.ends_with("_bytes") || ["bytes", "sample_rate"].contains(&key) => bytes(number),
        (_, Some(number)) if key.ends_with("_ms") => duration(Duration::from_millis(number)),
        (_, Some(number)) if ["pid", "number"].contains(&key) => number.to_string(),
        (_, Some(number)) => count(number),
        (Value::Bool(yes), _) => if *yes { "yes" } else { "no" }.to_owned(),
        (Value::String(string), _) => escaped(string).to_string(),
        (other, _) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer() {
        let answer = serde_json::json!({
            "ok": true, "pid": 4711, "sampling": true, "live_bytes": 1_048_576, "observed_ms": 1500,
            "heap": { "allocated_blocks": 12_345, "odd\u{1b}": "a\u{1b}" },
        });
        let text = text(&answer);
        assert!(text.contains("pid") && text.contains("4711\n"), "{text}");
        assert!(text.contains("1.00 MiB\n"), "{text}");
        assert!(text.contains("sampling") && text.contains("yes\n") && text.contains("1.5"), "{text}");
        assert!(text.contains("heap\n  ") && !text.contains('\u{1b}') && !text.contains("ok"), "{text}");
        assert_eq!(super::text(&serde_json::json!({ "ok": true })), "done\n");
    }
}
