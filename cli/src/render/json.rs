//! JSON for programs.

use serde::Serialize;

/// Indented, with a line end. Control characters in names are escaped by the format itself.
pub(super) fn render(data: &impl Serialize) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(data)?;
    text.push('\n');
    Ok(text)
}
