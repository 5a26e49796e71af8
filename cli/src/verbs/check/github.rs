//! What GitHub's runners show: annotations as workflow commands, and the summary of the step.

use std::fs::OpenOptions;
use std::io::Write;

use anyhow::Context;

use super::gates::{Gate, Verdict};
use super::verdict::{Checked, Told, amount, site_line, verdict_word};

/// One command for each gate, on standard output.
pub(super) fn annotations(checked: &Checked) -> String {
    let mut text: String = checked.gates.iter().map(annotation).collect();
    for note in &checked.notes {
        text.push_str(&format!("::notice title=mpp check::{}\n", data(note)));
    }
    text.push_str(&format!("{}\n", checked.line()));
    text
}

fn annotation(told: &Told) -> String {
    let command = match told.gate.verdict {
        Verdict::Passed => return format!("passed: {}\n", told.sentence()),
        Verdict::Failed => "error",
        Verdict::Inconclusive => "warning",
    };
    // The first site with a place is where the annotation is shown; all are in its text.
    let place = told.sites.iter().find_map(|site| Some((site.file.as_deref()?, site.line?)));
    let place = place.map(|(file, line)| format!("file={},line={line},", property(file))).unwrap_or_default();
    let sites: Vec<String> = told.sites.iter().map(|site| site_line(site, told.gate.name)).collect();
    let message = format!("{}\n{}", told.sentence(), sites.join("\n"));
    format!("::{command} {place}title=mpp check {}::{}\n", told.gate.name.text(), data(message.trim_end()))
}

/// The text of a command: what would end it is written in another way.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A value in the list of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Adds a table to the file that the runner names; does nothing elsewhere.
///
/// # Errors
/// If it cannot be written.
pub(super) fn summarize(checked: &Checked) -> anyhow::Result<()> {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else { return Ok(()) };
    let mut text = format!("### mpp check: {}\n\n", verdict_word(checked.verdict()));
    text.push_str("| gate | found | limit | verdict |\n| --- | ---: | ---: | --- |\n");
    for told in &checked.gates {
        let Gate { name, figure, limit, verdict, .. } = told.gate;
        let row =
            [name.sentence(), &amount(name, figure.value), &amount(name, limit), verdict_word(verdict)].join(" | ");
        text.push_str(&format!("| {row} |\n"));
    }
    for told in checked.gates.iter().filter(|told| !told.sites.is_empty()) {
        text.push_str(&format!("\nMost of *{}*:\n\n```\n", told.gate.name.sentence()));
        for site in &told.sites {
            text.push_str(&format!("{}\n", site_line(site, told.gate.name).replace("```", "'''")));
        }
        text.push_str("```\n");
    }
    for note in &checked.notes {
        text.push_str(&format!("\n`{}`\n", note.replace('`', "'")));
    }
    let file = OpenOptions::new().append(true).create(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write {}", std::path::Path::new(&path).display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stay_one_line() {
        assert_eq!(data("a%\nb"), "a%25%0Ab");
        assert_eq!(property("C:a,b"), "C%3Aa%2Cb");
    }
}
