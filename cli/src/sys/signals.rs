//! Signals while `mpp run` waits: the target must see exactly those it would have seen without `mpp`.
//!
//! - A signal that the terminal sends (Ctrl-C, Ctrl-\, a hang-up) goes to the whole foreground process group, so the
//!   target has it already: `mpp` only has to survive it.
//! - A signal that another process sends to `mpp` by its process id is meant for the target and is passed on.
//!
//! The two are told apart by `si_code`, as `sudo` does it. All of them are blocked and fetched with `sigtimedwait`,
//! so there is no handler, and none is lost between the start of the target and the first wait.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use libc::{c_int, pid_t, sigset_t};

/// What `mpp` passes on, and therefore must not die of while the target runs. Stop signals are not among them:
/// the terminal stops and continues both processes, which is what a user expects of Ctrl-Z.
const FORWARDED: [c_int; 8] = [
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGWINCH,
];

/// The disposition of SIGPIPE as `mpp` was started with it. The start-up code of Rust sets it to "ignore" before
/// `main`, so it is fetched by a constructor, which runs earlier; the target is started with this one.
static INHERITED_SIGPIPE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

extern "C" fn remember_sigpipe() {
    INHERITED_SIGPIPE.store(disposition(libc::SIGPIPE), Ordering::Relaxed);
}

// SAFETY: the section holds pointers to `extern "C"` functions that the loader calls once before `main`; this one needs
// nothing of the Rust runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER_SIGPIPE: extern "C" fn() = remember_sigpipe;

fn disposition(signal: c_int) -> libc::sighandler_t {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only asks; `action` is writable, and a zeroed `sigaction` is a valid value.
    unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction
    }
}

/// The signal state that `mpp` inherited, to be given to the target unchanged.
#[derive(Clone, Copy)]
pub(crate) struct Inherited {
    mask: sigset_t,
    sigpipe: libc::sighandler_t,
    sigchld: libc::sighandler_t,
}

impl Inherited {
    /// Makes this state that of the calling process. Meant for the child between `fork` and `execve`: it only makes
    /// async-signal-safe calls.
    pub(crate) fn restore(&self) -> io::Result<()> {
        // SAFETY: the dispositions are SIG_DFL or SIG_IGN (nothing else survives the exec that started `mpp`), and the
        // mask was filled by the kernel.
        unsafe {
            libc::signal(libc::SIGPIPE, self.sigpipe);
            libc::signal(libc::SIGCHLD, self.sigchld);
            if libc::sigprocmask(libc::SIG_SETMASK, &self.mask, ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }
}

/// While it lives, the signals above are collected instead of acting on `mpp`.
pub(crate) struct Collector {
    set: sigset_t,
    inherited: Inherited,
}

/// One signal that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    /// The signal number.
    pub(crate) signal: c_int,
    /// The process that sent it with `kill` or the like; `None` if the kernel did (terminal, child ended).
    pub(crate) sender: Option<pid_t>,
}

impl Collector {
    /// Blocks the signals in this thread, which must be the only one of the process.
    pub(crate) fn start() -> Collector {
        let sigchld = disposition(libc::SIGCHLD);
        let mut set = MaybeUninit::<sigset_t>::zeroed();
        let mut mask = MaybeUninit::<sigset_t>::zeroed();
        // SAFETY: `sigemptyset` initialises the set before anything is added, and the calls only write to the two sets.
        // SIGCHLD must be at its default, or the kernel would throw the status of the target away.
        let (set, mask) = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in FORWARDED.into_iter().chain([libc::SIGCHLD]) {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), mask.as_mut_ptr());
            (set.assume_init(), mask.assume_init())
        };
        let sigpipe = INHERITED_SIGPIPE.load(Ordering::Relaxed);
        Collector { set, inherited: Inherited { mask, sigpipe, sigchld } }
    }

    /// The state to give to the target.
    pub(crate) fn inherited(&self) -> Inherited {
        self.inherited
    }

    /// Waits for the next signal, at most `timeout`; `None` when the time is over.
    pub(crate) fn wait(&self, timeout: Duration) -> Option<Arrived> {
        let timeout = libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: the set is initialised; `info` and `timeout` live during the call.
        let signal = unsafe { libc::sigtimedwait(&self.set, info.as_mut_ptr(), &timeout) };
        if signal <= 0 {
            return None;
        }
        // SAFETY: zeroed is a valid value, and the kernel has filled it; `si_pid` is valid for signals of a process.
        let sender = unsafe {
            let info = info.assume_init();
            (info.si_code <= 0 && info.si_code != libc::SI_TIMER).then(|| info.si_pid())
        };
        Some(Arrived { signal, sender })
    }
}

impl Drop for Collector {
    /// Swallows what came together with the end of the target (the Ctrl-C that ended both), then unblocks the rest.
    fn drop(&mut self) {
        while self.wait(Duration::ZERO).is_some() {}
        // SAFETY: the mask is the one that was in force before `start`.
        unsafe {
            libc::sigprocmask(libc::SIG_SETMASK, &self.inherited.mask, ptr::null_mut());
        }
    }
}

/// The name of a signal, such as `SIGTERM`; `signal 34` for those without a common name.
pub(crate) fn name(signal: c_int) -> String {
    let known = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    known.to_owned()
}
