//! A stack for what needs more than the calling thread may have left: coroutines and signal handlers run on a few kilobytes.

use super::super::PAGE;
use super::{forbid, map, unmap};
use core::arch::asm;

/// With a page in front that nobody may touch. Only what is used takes memory.
const STACK: usize = 512 << 10;

/// Run a function on a stack of half a megabyte; on the present one if there is no memory for that.
///
/// Nobody unwinds through this; signal handlers that run meanwhile run on that stack.
pub(crate) fn on_large_stack<R, F: FnOnce() -> R>(run: F) -> R {
    let stack = map(STACK);
    if stack.is_null() {
        return run();
    }
    forbid(stack as usize, PAGE);
    let mut call = Call { run: Some(run), result: None };
    // SAFETY: the top is aligned to a page, and `enter` gets the call it was made for.
    unsafe { switch(stack.wrapping_add(STACK), enter::<R, F>, (&raw mut call).cast()) };
    unmap(stack, STACK);
    match call.result {
        Some(result) => result,
        None => super::fatal(b"internal error: a function did not return"),
    }
}

struct Call<R, F> {
    run: Option<F>,
    result: Option<R>,
}

extern "C" fn enter<R, F: FnOnce() -> R>(call: *mut u8) {
    // SAFETY: `on_large_stack` passes its own, which outlives this.
    let call = unsafe { &mut *call.cast::<Call<R, F>>() };
    call.result = call.run.take().map(|run| run());
}

#[inline(never)]
unsafe fn switch(top: *mut u8, run: extern "C" fn(*mut u8), argument: *mut u8) {
    // SAFETY: the callee keeps r12, as it has to; the stack pointer is back when the block ends.
    unsafe {
        asm!(
            "mov r12, rsp",
            "mov rsp, {top}",
            "call {run}",
            "mov rsp, r12",
            top = in(reg) top,
            run = in(reg) run,
            in("rdi") argument,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn deep(levels: u32) -> u64 {
        let frame = std::hint::black_box([levels as u64; 1024]);
        if levels == 0 { frame[7] } else { deep(levels - 1) + std::hint::black_box(frame)[levels as usize] }
    }

    #[test]
    fn it_is_deep_and_returns() {
        let small = std::thread::Builder::new().stack_size(64 << 10);
        let sum = small.spawn(|| on_large_stack(|| deep(10))).unwrap().join().unwrap();
        assert_eq!(sum, (1..=10).sum());
        let here = &raw const sum as usize;
        let there = on_large_stack(|| {
            let local = 0u64;
            &raw const local as usize
        });
        assert!(here.abs_diff(there) > STACK / 2);
    }
}
