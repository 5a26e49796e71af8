//! The target as a child process: start it with its signals as `mpp` found them, pass signals on, fetch its end.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

use libc::{c_int, pid_t};

use super::signals::Inherited;

/// A started child that has not been waited for.
#[derive(Debug)]
pub(crate) struct Child {
    pid: pid_t,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It called `exit` with this status (0 to 255).
    Exited(u8),
    /// This signal ended it.
    Signalled(c_int),
}

impl End {
    /// The status that a shell would report: the exit status, or 128 plus the signal.
    pub(crate) fn shell_status(self) -> u8 {
        match self {
            End::Exited(status) => status,
            End::Signalled(signal) => u8::try_from(signal).unwrap_or(u8::MAX).saturating_add(128),
        }
    }
}

impl Child {
    /// Starts `command`, which inherits the signal state given. When it returns, the program has been executed: an
    /// error is that of `fork` or of `execve`.
    pub(crate) fn start(mut command: Command, signals: Inherited) -> io::Result<Child> {
        // SAFETY: the closure runs between fork and exec of a single-threaded process and makes only
        // async-signal-safe calls.
        unsafe {
            command.pre_exec(move || signals.restore());
        }
        let child = command.spawn()?;
        let pid = pid_t::try_from(child.id()).map_err(io::Error::other)?;
        Ok(Child { pid })
    }

    /// Its process id. It stays valid, even after the end of the process, until [`Child::try_wait`] has returned an end.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Sends it a signal; an error means that it has ended, or is another user's by now.
    pub(crate) fn send(&self, signal: c_int) -> io::Result<()> {
        // SAFETY: a plain system call; the process has not been waited for, so its id cannot belong to another one.
        if unsafe { libc::kill(self.pid, signal) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// How it ended, or `None` if it still runs (or is stopped).
    pub(crate) fn try_wait(&self) -> io::Result<Option<End>> {
        let mut status: c_int = 0;
        // SAFETY: `status` is writable; a null usage is allowed.
        let waited = unsafe { libc::wait4(self.pid, &mut status, libc::WNOHANG, ptr::null_mut()) };
        match waited {
            0 => Ok(None),
            pid if pid == self.pid && libc::WIFEXITED(status) => {
                Ok(Some(End::Exited((libc::WEXITSTATUS(status) & 0xff) as u8)))
            }
            pid if pid == self.pid => Ok(Some(End::Signalled(libc::WTERMSIG(status)))),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_that_of_a_shell() {
        assert_eq!(End::Exited(7).shell_status(), 7);
        assert_eq!(End::Signalled(libc::SIGKILL).shell_status(), 137);
        assert_eq!(End::Signalled(9999).shell_status(), 255);
    }
}
