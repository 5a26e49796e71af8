//! Unwinding one stack twice.

use crate::unwind::{End, StackBounds, Walk, capture};
use crate::{counts, libc, settings};
use core::cell::{RefCell, UnsafeCell};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::Instant;

/// Frames that are compared; the check's deepest recursion fits.
const DEPTH: usize = 4096;

/// The lists of addresses, used by the one thread that holds the lock.
struct Lists {
    ours: [usize; DEPTH],
    theirs: [usize; DEPTH],
}

struct Shared(UnsafeCell<Lists>);

// SAFETY: only reached through `LOCK`.
unsafe impl Sync for Shared {}

static LISTS: Shared = Shared(UnsafeCell::new(Lists { ours: [0; DEPTH], theirs: [0; DEPTH] }));
static LOCK: AtomicBool = AtomicBool::new(false);

thread_local! {
    static BOUNDS: RefCell<StackBounds> = RefCell::default();
}

/// Compare the two unwinders at the caller's stack, unless another thread is at it (or this one: libgcc may allocate).
#[inline(never)]
pub(crate) fn stacks() {
    if LOCK.swap(true, Acquire) {
        return;
    }
    // SAFETY: the lock is ours.
    let lists = unsafe { &mut *LISTS.0.get() };
    // A thread that ends has no bounds any more.
    let _ = BOUNDS.try_with(|bounds| {
        if let Ok(mut bounds) = bounds.try_borrow_mut() {
            unwind_twice(lists, &mut bounds);
        }
    });
    LOCK.store(false, Release);
}

/// The counts are gone, and so is a thread that may have held the lock (in a forked child).
pub(crate) fn unlock() {
    LOCK.store(false, Release);
}

#[inline(never)]
fn unwind_twice(lists: &mut Lists, bounds: &mut StackBounds) {
    let start = Instant::now();
    let walk = ours(&mut lists.ours, bounds);
    let our_time = start.elapsed();
    // The first address is in this function, which calls the two from different places.
    let found = lists.ours.get(1..walk.frames).unwrap_or_default();
    if settings::alone() {
        counts::add(found.len(), walk.end, counts::Verdict::Exact, None, [our_time.as_nanos() as u64, 0]);
        return;
    }
    let start = Instant::now();
    let length = theirs(&mut lists.theirs);
    let their_time = start.elapsed();
    let expected = lists.theirs.get(2..length).unwrap_or_default();
    let (verdict, at) = judge(found, expected, walk);
    counts::add(found.len(), walk.end, verdict, at, [our_time.as_nanos() as u64, their_time.as_nanos() as u64]);
}

/// What the two lists say of our unwinder, and the address where they part.
fn judge(ours: &[usize], theirs: &[usize], walk: Walk) -> (counts::Verdict, Option<usize>) {
    use counts::Verdict::*;
    let common = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
    let last = common.checked_sub(1).and_then(|i| ours.get(i)).copied();
    match (common == ours.len(), common == theirs.len()) {
        (true, true) => (Exact, None),
        (true, false) if walk.end == End::DepthLimit => (Exact, None),
        // To call a stack whole that is not is as bad as a wrong frame.
        (true, false) if walk.end == End::Complete => (Mismatched, last),
        (true, false) => (Short, last),
        (false, true) => (Longer, last),
        (false, false) => (Mismatched, last),
    }
}

#[inline(never)]
fn ours(list: &mut [usize], bounds: &mut StackBounds) -> Walk {
    // SAFETY: this function has unwind tables.
    unsafe { capture(list, bounds) }
}

struct Found<'a> {
    list: &'a mut [usize],
    length: usize,
}

extern "C" fn visit(context: *mut c_void, found: *mut c_void) -> c_int {
    const END_OF_STACK: c_int = 5;
    let mut before_instruction = 0;
    // SAFETY: `found` is what `theirs` passes; the context is libgcc's.
    let (found, address) =
        unsafe { (&mut *found.cast::<Found<'_>>(), libc::_Unwind_GetIPInfo(context, &raw mut before_instruction)) };
    let Some(place) = found.list.get_mut(found.length) else { return END_OF_STACK };
    // Ours gives all addresses in the way of return addresses; libgcc says which are not.
    *place = address + usize::from(before_instruction != 0);
    found.length += 1;
    0
}

#[inline(never)]
fn theirs(list: &mut [usize]) -> usize {
    let mut found = Found { list, length: 0 };
    // SAFETY: the visitor gets the list that it expects.
    unsafe { libc::_Unwind_Backtrace(visit, (&raw mut found).cast()) };
    // The outermost frame has no caller: libgcc shows that as a null address.
    let ends_with_null = found.length.checked_sub(1).and_then(|last| found.list.get(last)) == Some(&0);
    found.length - usize::from(ends_with_null)
}

extern "C" fn on_timer(_: c_int) {
    stacks();
}

/// Compare from now on at every tick, wherever the program is.
pub(crate) fn start_timer(period_us: u64) {
    // A real-time signal that programs do not use; the C library keeps the first two for itself.
    const SIGNAL: c_int = 32 + 11;
    let nanoseconds = (period_us * 1000).min(999_999_999) as i64;
    let action = libc::Action { handler: on_timer, mask: [0; 16], flags: libc::SA_RESTART_ON_STACK, restorer: 0 };
    let mut event = libc::TimerEvent { value: 0, signal: SIGNAL, kind: 0, rest: [0; 6] };
    let times = libc::TimerTimes { period: [0, nanoseconds], first: [0, nanoseconds] };
    let mut timer = 0;
    // SAFETY: all pointers are to structures of the C library's layout; the handler allocates nothing.
    unsafe {
        libc::sigaction(SIGNAL, &raw const action, null_mut());
        if libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) == 0 {
            libc::timer_settime(timer, 0, &raw const times, null_mut());
        }
    }
}
