//! How far it is: a bar on a terminal, elsewhere a line now and then.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Who wants to know how far it is.
pub trait Watch {
    /// There will be so many runs.
    fn starts(&mut self, runs: usize);
    /// The next one comes.
    fn runs(&mut self, row: &str, peer: &str);
    /// Something is not as it should be.
    fn notes(&mut self, message: &str);
}

/// Progress of a program on standard error.
#[derive(Debug)]
pub struct Bar {
    program: &'static str,
    bar: ProgressBar,
    done: usize,
    all: usize,
}

impl Bar {
    /// A bar for the program of this name.
    #[must_use]
    pub fn new(program: &'static str) -> Self {
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} ({eta} left) {msg}");
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        Self { program, bar: bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())), done: 0, all: 0 }
    }
}

impl Watch for Bar {
    fn starts(&mut self, runs: usize) {
        self.all = runs;
        self.bar.set_length(runs as u64);
    }

    fn runs(&mut self, row: &str, peer: &str) {
        self.done += 1;
        self.bar.set_position(self.done as u64);
        self.bar.set_message(format!("{row}, {peer}"));
        if !std::io::stderr().is_terminal() && self.done.is_multiple_of((self.all / 20).max(1)) {
            eprintln!("{}: {} of {} runs", self.program, self.done, self.all);
        }
    }

    fn notes(&mut self, message: &str) {
        self.bar.suspend(|| eprintln!("{}: {message}", self.program));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
