//! Signals that writing may bring.

use super::syscall::{RT_SIGPENDING, RT_SIGPROCMASK, RT_SIGTIMEDWAIT, syscall};

const XFSZ: u64 = 1 << (25 - 1);
const PIPE: u64 = 1 << (13 - 1);
const BLOCK: usize = 0;
const SETMASK: usize = 2;
/// Bytes of a set of signals.
const SET: usize = 8;

/// Write without being killed by a limit on the size of files, or by a reader that has gone: the kernel sends the thread a signal that
/// ends the process, besides the error that the write returns. Those are held back meanwhile and taken away, unless the program had them
/// waiting already.
pub(crate) fn without_write_signals<R>(write: impl FnOnce() -> R) -> R {
    let (set, none) = (XFSZ | PIPE, [0u64; 2]);
    let (mut before, mut waiting) = (0u64, 0u64);
    // SAFETY: the kernel reads and writes one word at each pointer.
    unsafe {
        syscall(RT_SIGPROCMASK, [BLOCK, &raw const set as usize, &raw mut before as usize, SET, 0, 0]);
        syscall(RT_SIGPENDING, [&raw mut waiting as usize, SET, 0, 0, 0, 0]);
    }
    let result = write();
    let ours = set & !waiting;
    // SAFETY: as above; the wait, for each signal once, is for no time at all.
    unsafe {
        while ours != 0
            && syscall(RT_SIGTIMEDWAIT, [&raw const ours as usize, 0, none.as_ptr() as usize, SET, 0, 0]) > 0
        {}
        syscall(RT_SIGPROCMASK, [SETMASK, &raw const before as usize, 0, SET, 0, 0]);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Send a signal to the calling thread.
    fn raise(signal: usize) {
        const GETTID: usize = 186;
        const TGKILL: usize = 234;
        // SAFETY: a signal to the thread itself.
        unsafe {
            let thread = syscall(GETTID, [0; 6]) as usize;
            syscall(TGKILL, [std::process::id() as usize, thread, signal, 0, 0, 0]);
        }
    }

    fn word(call: usize, args: impl Fn(usize) -> [usize; 6]) -> u64 {
        let mut word = 0u64;
        // SAFETY: the kernel writes one word.
        unsafe { syscall(call, args(&raw mut word as usize)) };
        word
    }

    #[test]
    fn the_signal_of_a_write_is_taken_away() {
        let mask = || word(RT_SIGPROCMASK, |at| [BLOCK, 0, at, SET, 0, 0]);
        let before = mask();
        // The default action would end the process here.
        assert_eq!(
            without_write_signals(|| {
                raise(25);
                7
            }),
            7
        );
        assert_eq!(mask(), before);
        // One that waited before is the program's.
        let waits = || word(RT_SIGPENDING, |at| [at, SET, 0, 0, 0, 0]) & XFSZ != 0;
        without_write_signals(|| {
            raise(25);
            without_write_signals(|| ());
            assert!(waits());
        });
        assert!(!waits());
    }
}
