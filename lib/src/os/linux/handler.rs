//! Handlers of signals: one of ours where the program has none, and none at all for a while.

use super::syscall::{RT_SIGPROCMASK, syscall};
use core::ptr::{null, null_mut};

const RT_SIGACTION: usize = 13;

/// As the kernel has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

const DEFAULT: usize = 0;
const SA_RESTORER: u64 = 0x0400_0000;
const SA_ONSTACK: u64 = 0x0800_0000;
const SA_RESTART: u64 = 0x1000_0000;

// The way back from a handler. Debuggers know these very bytes.
core::arch::global_asm!(
    ".pushsection .text.mimalloc_pprof_restore,\"ax\",@progbits",
    ".hidden mimalloc_pprof_restore",
    ".globl mimalloc_pprof_restore",
    ".type mimalloc_pprof_restore,@function",
    "nop", // who unwinds looks at the byte before
    "mimalloc_pprof_restore:",
    "mov rax, 15",
    "syscall",
    ".size mimalloc_pprof_restore, . - mimalloc_pprof_restore",
    ".popsection",
);

unsafe extern "C" {
    fn mimalloc_pprof_restore();
}

/// Handle a signal if nobody has said what is to become of it. Calls that it interrupts go on. False: somebody has.
pub(crate) fn handle_signal(signal: u32, handler: extern "C" fn(i32)) -> bool {
    let action = Action {
        handler: handler as *const () as usize,
        flags: SA_RESTORER | SA_RESTART | SA_ONSTACK,
        restorer: mimalloc_pprof_restore as *const () as usize,
        mask: 0,
    };
    let mut before = Action { handler: 0, flags: 0, restorer: 0, mask: 0 };
    // Asked first: another thread may install its own between two exchanges, but not what it had before.
    // SAFETY: the handler may be called at any time, and the restorer is what the kernel wants.
    unsafe {
        change(signal, null(), &raw mut before)
            && before.handler == DEFAULT
            && change(signal, &raw const action, null_mut())
    }
}

/// As if [`handle_signal`] had not been called, unless the program has a handler of its own by now.
pub(crate) fn unhandle_signal(signal: u32, handler: extern "C" fn(i32)) {
    let mut now = Action { handler: 0, flags: 0, restorer: 0, mask: 0 };
    let default = Action { handler: DEFAULT, ..now };
    // SAFETY: the default action.
    unsafe {
        if change(signal, null(), &raw mut now) && now.handler == handler as *const () as usize {
            change(signal, &raw const default, null_mut());
        }
    }
}

unsafe fn change(signal: u32, new: *const Action, old: *mut Action) -> bool {
    // SAFETY: the kernel reads one action and writes the other.
    unsafe { syscall(RT_SIGACTION, [signal as usize, new as usize, old as usize, 8, 0, 0]) == 0 }
}

/// While it lives, the calling thread handles no signal but those that it causes itself.
pub(crate) struct Undisturbed(u64);

impl Undisturbed {
    pub(crate) fn begin() -> Undisturbed {
        Undisturbed(set_mask(super::worker::BLOCKED))
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        set_mask(self.0);
    }
}

/// Block these signals and no others; those that were blocked before. By the system call: the C library keeps its own signals out.
pub(super) fn set_mask(mask: u64) -> u64 {
    const SETMASK: usize = 2;
    let mut before = 0u64;
    // SAFETY: the kernel reads one word and writes the other.
    unsafe { syscall(RT_SIGPROCMASK, [SETMASK, &raw const mask as usize, &raw mut before as usize, 8, 0, 0]) };
    before
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU32, Ordering::*};

    static SEEN: AtomicU32 = AtomicU32::new(0);

    extern "C" fn note(signal: i32) {
        SEEN.store(signal as u32, Relaxed);
    }

    fn raise(signal: u32) {
        const TGKILL: usize = 234;
        const GETTID: usize = 186;
        // SAFETY: a signal to the calling thread, which is handled.
        unsafe {
            let thread = syscall(GETTID, [0; 6]) as usize;
            syscall(TGKILL, [super::super::process_id() as usize, thread, signal as usize, 0, 0, 0]);
        }
    }

    #[test]
    fn handled_once_and_given_back() {
        // SIGWINCH is ignored by default: a mistake ends nothing.
        let signal = 28;
        assert!(handle_signal(signal, note));
        assert!(!handle_signal(signal, note), "it has a handler");
        raise(signal);
        assert_eq!(SEEN.swap(0, Relaxed), signal);
        {
            let _undisturbed = Undisturbed::begin();
            raise(signal);
            assert_eq!(SEEN.load(Relaxed), 0);
        }
        assert_eq!(SEEN.swap(0, Relaxed), signal);
        unhandle_signal(signal, note);
        raise(signal);
        assert_eq!(SEEN.load(Relaxed), 0);
        assert!(!handle_signal(9, note) && !handle_signal(0, note) && !handle_signal(65, note));
    }
}
