//! What `mpp` says besides its results: on stderr, one line each, with nothing from a file left unescaped.

use std::fmt::Display;
use std::io::{self, Write};

use mpp_profile::text::escaped;

use crate::args::CommonArgs;

/// A remark; not with `--quiet`.
pub(crate) fn note(common: CommonArgs, text: impl Display) {
    if !common.quiet {
        say(&text.to_string());
    }
}

/// Something is wrong, but not so that there would be no result; not with `--quiet`.
pub(crate) fn warning(common: CommonArgs, text: impl Display) {
    if !common.quiet {
        say(&format!("warning: {text}"));
    }
}

/// Why there is no result.
pub(crate) fn error(text: impl Display) {
    say(&format!("error: {text}"));
}

/// The lines in one write, so that they do not mix with those of the target. A closed stderr is nobody's problem.
fn say(text: &str) {
    let mut message = String::new();
    for (index, line) in text.lines().enumerate() {
        let start = if index == 0 { "mpp: " } else { "     " };
        message.push_str(&format!("{start}{}\n", escaped(line)));
    }
    let _ = io::stderr().lock().write_all(message.as_bytes());
}
