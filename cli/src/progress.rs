//! A sign of life for work that may take long: on a terminal only, and only once it has taken half a second.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const SHOW_AFTER: Duration = Duration::from_millis(500);
const TURN_EVERY: Duration = Duration::from_millis(100);

/// What the work waits for, if it has said so.
static WAITING: Mutex<Option<String>> = Mutex::new(None);

/// Says what the work waits for; `None` when it goes on. Nothing in it may be left to escape. Shown by a spinner, if
/// there is one. From any thread.
pub(crate) fn tell(text: Option<String>) {
    *WAITING.lock().unwrap_or_else(PoisonError::into_inner) = text;
}

/// Does the work; shows `message` with a spinner on stderr meanwhile, if that is a terminal and `quiet` is not set.
pub(crate) fn with_spinner<T>(message: &'static str, quiet: bool, work: impl FnOnce() -> T) -> T {
    if quiet || !io::stderr().is_terminal() {
        return work();
    }
    thread::scope(|scope| {
        // Dropping the sender is the signal that the work is done.
        let (working, done) = mpsc::channel::<()>();
        scope.spawn(move || {
            if done.recv_timeout(SHOW_AFTER) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner())).with_message(message);
            while done.recv_timeout(TURN_EVERY) == Err(RecvTimeoutError::Timeout) {
                let waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner).clone();
                bar.set_message(waiting.map_or(Cow::Borrowed(message), Cow::Owned));
                bar.tick();
            }
            bar.finish_and_clear();
        });
        let result = work();
        drop(working);
        result
    })
}
