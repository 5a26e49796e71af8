//! Colour: who wants it, and how little of it there is.

use std::io::IsTerminal;

use crate::args::ColorChoice;

/// Whether text may carry escape sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    colored: bool,
}

impl Style {
    /// No escape sequences.
    pub(crate) const PLAIN: Style = Style { colored: false };

    /// What the user wants for text that goes to `stream`.
    pub(crate) fn of(choice: ColorChoice, stream: &impl IsTerminal) -> Style {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
        let colored = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto if is_set("NO_COLOR") => false,
            ColorChoice::Auto => is_forced || (stream.is_terminal() && !is_dumb),
        };
        Style { colored }
    }

    /// For headings.
    pub(crate) fn bold(self, text: &str) -> String {
        if self.colored { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }
}
