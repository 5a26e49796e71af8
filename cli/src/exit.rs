//! Exit codes, and the one error type that carries them to `main`.
//!
//! Scripts rely on these numbers: a code is never reused for another meaning. `mpp run` alone passes through the status
//! of the program it ran; codes 125, 126, 127 and 128+N are those of a shell, and are used for `mpp run` only.

use std::fmt;

/// What the exit status of `mpp` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// Internal or I/O error: a report that cannot be written, a full disk, a bug in `mpp`.
    Internal,
    /// The command line is wrong. (The command line parser uses the same number by itself.)
    Usage,
    /// An input is missing, unreadable, of an unknown format or corrupt.
    Input,
    /// A gate has failed: a threshold, a leak, a regression.
    GateFailed,
    /// The error of an estimate does not let a gate decide.
    Inconclusive,
    /// The baseline or partner of a comparison is missing.
    NoPartner,
    /// Nothing was captured: the allocator was not active in the target.
    NothingCaptured,
    /// `mpp run` failed before it could start the target.
    BeforeStart,
    /// The target of `mpp run` exists but cannot be executed.
    NotExecutable,
    /// The target of `mpp run` does not exist.
    NotFound,
}

impl Code {
    /// The process exit status.
    pub(crate) fn number(self) -> u8 {
        match self {
            Code::Internal => 1,
            Code::Usage => 2,
            Code::GateFailed => 10,
            Code::Inconclusive => 11,
            Code::NoPartner => 12,
            Code::Input => 13,
            Code::NothingCaptured => 14,
            Code::BeforeStart => 125,
            Code::NotExecutable => 126,
            Code::NotFound => 127,
        }
    }
}

/// An error on its way to `main`: the exit code, and a message of one or more lines that names the file, what was
/// expected and what to do. Text from files in it is escaped when it is printed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code of the process.
    pub(crate) code: Code,
    /// What happened; its chain of causes is printed on one line, separated by `: `.
    pub(crate) error: anyhow::Error,
}

impl Failure {
    /// A failure with a message of its own.
    pub(crate) fn new(code: Code, message: impl fmt::Display) -> Self {
        Failure { code, error: anyhow::anyhow!("{message}") }
    }
}

/// An error nobody classified is an internal or I/O error.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure { code: Code::Internal, error }
    }
}

/// Gives an error its exit code.
pub(crate) trait OrExit<T> {
    /// The value, or a failure that ends the process with `code`.
    fn or_exit(self, code: Code) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> OrExit<T> for Result<T, E> {
    fn or_exit(self, code: Code) -> Result<T, Failure> {
        self.map_err(|error| Failure { code, error: error.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_contract() {
        let numbers = [
            (Code::Internal, 1),
            (Code::Usage, 2),
            (Code::GateFailed, 10),
            (Code::Inconclusive, 11),
            (Code::NoPartner, 12),
            (Code::Input, 13),
            (Code::NothingCaptured, 14),
            (Code::BeforeStart, 125),
            (Code::NotExecutable, 126),
            (Code::NotFound, 127),
        ];
        for (code, number) in numbers {
            assert_eq!(code.number(), number, "{code:?}");
        }
    }
}
