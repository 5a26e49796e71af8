//! JUnit's XML, as CI systems read it: a test case for each gate.

use std::fmt::Write;

use super::gates::Verdict;
use super::verdict::{Checked, site_line};

pub(super) fn text(checked: &Checked) -> String {
    let of = |verdict| checked.gates.iter().filter(|told| told.gate.verdict == verdict).count();
    let (failures, errors) = (of(Verdict::Failed), of(Verdict::Inconclusive));
    let tests = checked.gates.len();
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"0\"");
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n<testsuite name=\"mpp check\" {counts} time=\"0\">\n"
    );
    for told in &checked.gates {
        let name = told.gate.name.text();
        // Writing to a String cannot fail.
        let _ = write!(xml, "<testcase classname=\"mpp.check\" name=\"{name}\" time=\"0\">");
        let sites: Vec<String> = told.sites.iter().map(|site| site_line(site, told.gate.name)).collect();
        let body = format!("{}\n{}", told.sentence(), sites.join("\n"));
        let (element, kind) = match told.gate.verdict {
            Verdict::Passed => {
                xml.push_str("</testcase>\n");
                continue;
            }
            Verdict::Failed => ("failure", "limit"),
            // Not known to be wrong, but not known to be right either.
            Verdict::Inconclusive => ("error", "inconclusive"),
        };
        let message = plain(&told.sentence());
        let _ =
            writeln!(xml, "<{element} type=\"{kind}\" message=\"{message}\">{}</{element}></testcase>", plain(&body));
    }
    if !checked.notes.is_empty() {
        let _ = writeln!(xml, "<system-out>{}</system-out>", plain(&checked.notes.join("\n")));
    }
    xml.push_str("</testsuite>\n</testsuites>\n");
    xml
}

/// Text in XML; control characters were escaped before.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => plain.push_str("&amp;"),
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            '"' => plain.push_str("&quot;"),
            // The last two of the characters that XML cannot have.
            '\u{fffe}' | '\u{ffff}' => plain.push('\u{fffd}'),
            other => plain.push(other),
        }
    }
    plain
}
