//! Colour and width: who wants it, and how much there is.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use crate::args::ColorChoice;

/// What text may look like where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    /// It may carry escape sequences.
    pub(crate) colored: bool,
    /// A person looks at it: bars say something.
    pub(crate) is_terminal: bool,
    /// Columns of the terminal, or those that the user gives in COLUMNS; without, nothing is cut.
    pub(crate) width: Option<usize>,
}

impl Style {
    /// No escape sequences.
    pub(crate) const PLAIN: Style = Style { colored: false, is_terminal: false, width: None };

    /// What the user wants for text that goes to `stream`.
    pub(crate) fn of(choice: ColorChoice, stream: &(impl IsTerminal + AsFd)) -> Style {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
        let colored = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto if is_set("NO_COLOR") => false,
            ColorChoice::Auto => is_forced || (stream.is_terminal() && !is_dumb),
        };
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let width = columns.or_else(|| crate::sys::terminal::columns(stream.as_fd())).filter(|&width| width > 0);
        Style { colored, is_terminal: stream.is_terminal() && !is_dumb, width }
    }

    /// For headings.
    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// For what is looked at last.
    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// For what is worse: more memory, a limit that was exceeded. Red and green are the two that read on light and on dark.
    pub(crate) fn bad(self, text: &str) -> String {
        self.with("31", text)
    }

    /// For what is better.
    pub(crate) fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    /// For a box of a flame graph: black on one of some light colours, which neighbours do not share.
    pub(crate) fn boxed(self, text: &str, number: usize) -> String {
        const CODES: [&str; 3] = ["30;43", "30;46", "30;42"];
        self.with(CODES[number % CODES.len()], text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.colored && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
