//! Stack capture: the return addresses of the calling thread, by the program's own unwind tables.
//!
//! # What it promises
//! * It allocates nothing, takes no lock, keeps `errno` and, once a thread's stack is known, makes no system call. It can be
//!   called from inside `malloc` at any moment, also in a signal handler and in a forked child.
//! * It does not fault. Stack memory is read only inside a range that was found readable, tables only inside their module
//!   ([`cursor`]). A table that lies, a stale rule or a smashed stack gives a short or wrong list of frames. Two gaps of a
//!   microsecond remain for walks gone astray, while another thread unmaps what they look at: [`stack`] and [`module`]
//!   describe them.
//! * It says how the walk ended ([`End`]), so that a stack cut short is never taken for a whole one.
//! * It uses less than 1.5 KiB of stack.
//!
//! # How
//! A *rule* tells how to get from one frame to the next: where the caller's frame begins (the CFA), and where the return
//! address and the caller's frame pointer lie. On x86-64 nearly all rules are `CFA = rsp + n` or `CFA = rbp + n`, so a rule
//! fits in 30 bits and is kept in a cache that all threads share ([`rule_cache`]); a frame that hits costs about 6 ns.
//! On a miss [`module`] asks the loader which module holds the address (`_dl_find_object`, the one look-up in glibc that
//! takes no lock), [`eh_frame`] finds the entry for the function and [`program`] runs its table program up to the address.
//! Registers other than the program counter, the stack pointer and the frame pointer are not followed: no compiler needs
//! them to find a caller at the point of a call. The one known piece of code that does is the loader's, while it binds a
//! function late; and in the handler of a signal the first or last instructions of some functions need them.
//!
//! # What it refuses to do
//! * Guess. Code without a table ends the walk, unless a step by the frame pointer leads to a place that confirms it
//!   ([`foreign`]): that is how just-in-time compiled code is crossed.
//! * Use `dl_iterate_phdr`: it takes the loader's lock. Where `_dl_find_object` is missing (glibc before 2.35, musl) only
//!   frame pointers are followed, and the walk is always reported as [`End::NoUnwindInfo`].
//! * See tables registered at run time with `__register_frame`: they hang on a lock in libgcc.
//!
//! # Layout
//! Everything that knows registers is in one folder per architecture ([`x86_64`]) with the same names in each: `entry.rs`
//! (reading the registers), `rule.rs` (the forms of rules), `step.rs` (applying one).

mod cursor;
mod eh_frame;
mod expression;
mod foreign;
mod module;
mod probe;
mod program;
mod rule_cache;
mod stack;
mod trail;
mod walk;

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
use x86_64 as arch;

#[cfg(test)]
mod tests;

pub(crate) use rule_cache::invalidate;
pub(crate) use stack::StackBounds;
#[allow(unused_imports, reason = "not all of it is used where this is compiled by itself")]
pub(crate) use trail::{Place, Recalled, Trails, recall};

/// Why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum End {
    /// The outermost frame of the thread was reached.
    Complete,
    /// There are more frames than room for them.
    DepthLimit,
    /// The last frame is in code that no unwind table describes (in a way that is understood here).
    NoUnwindInfo,
    /// The last frame's caller is not where the table says: outside the stack, or below the frame itself.
    BadFrame,
}

/// What a walk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Walk {
    /// How many addresses were written.
    pub(crate) frames: usize,
    /// Why there are not more.
    pub(crate) end: End,
}

/// Whether the loader knows a module with code at this address. Takes no lock.
#[allow(dead_code, reason = "not every user of this folder asks")]
pub(crate) fn is_in_module(address: usize) -> bool {
    module::find(address).is_some()
}

/// Fill `out` with the return addresses of the calling thread, innermost first, beginning with the one into the caller of
/// the function that calls this.
///
/// All entries follow the rule for return addresses: look up `address - 1`. For a frame that a signal interrupted the
/// address of the interrupted instruction plus one is written, so that the rule holds there too.
///
/// `bounds` is what is known of the calling thread's stack; keep one per thread, beginning with the default (or zero).
///
/// # Safety
/// The function that calls this must have unwind tables (the compiler's default on Linux, also with `panic = "abort"`).
/// Whoever must know which frame is first marks it `#[inline(never)]`.
#[inline(always)]
pub(crate) unsafe fn capture(out: &mut [usize], bounds: &mut StackBounds) -> Walk {
    // SAFETY: pointer and length describe one exclusive slice, and the bounds are exclusive too.
    let mut walk = unsafe { arch::enter(out.as_mut_ptr(), out.len(), bounds) };
    // SAFETY: an empty instruction sequence. It stands between the call and the return, so that the call cannot become a
    // tail call: the walk begins at its return address, which must lie in this frame and not in the caller's.
    unsafe { core::arch::asm!("/* {0} */", inout(reg) walk.frames, options(nomem, nostack, preserves_flags)) };
    walk
}
