//! Whole walks.

use super::super::{End, StackBounds, Walk, capture};
use super::std::thread;
use super::std::vec::Vec;
use super::{Guarded, PAGE};
use core::ffi::{c_int, c_void};
use core::hint::black_box;

unsafe extern "C" {
    fn _Unwind_Backtrace(visit: extern "C" fn(*mut c_void, *mut c_void) -> c_int, argument: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn __errno_location() -> *mut c_int;
}

extern "C" fn note(context: *mut c_void, found: *mut c_void) -> c_int {
    // SAFETY: `found` is the vector that `reference` passed.
    unsafe { (*found.cast::<Vec<usize>>()).push(_Unwind_GetIP(context)) };
    0
}

/// What libgcc finds, beginning with the return address into the caller of the caller of this function.
#[inline(never)]
fn reference() -> Vec<usize> {
    let mut found = Vec::new();
    // SAFETY: the visitor gets the vector it expects.
    unsafe { _Unwind_Backtrace(note, (&raw mut found).cast()) };
    if found.last() == Some(&0) {
        found.pop();
    }
    found.drain(..2);
    found
}

/// The function that a sampler would have: its caller comes first.
#[inline(never)]
fn sample(out: &mut [usize], bounds: &mut StackBounds) -> Walk {
    // SAFETY: this function has unwind tables.
    unsafe { capture(out, bounds) }
}

#[inline(never)]
fn compare(bounds: &mut StackBounds) -> usize {
    let mut out = [0; 256];
    let walk = sample(&mut out, bounds);
    let expected = reference();
    assert_eq!(walk.end, End::Complete);
    // The first address is in this function; libgcc was called from another place in it.
    assert_eq!(out[1..walk.frames], expected);
    walk.frames
}

#[inline(never)]
fn recurse(depth: usize, bounds: &mut StackBounds) -> usize {
    let room = black_box([0u8; 100]);
    if depth == 0 { compare(bounds) } else { recurse(depth - 1, bounds) + usize::from(room[3]) }
}

#[test]
fn finds_what_libgcc_finds() {
    let mut bounds = StackBounds::default();
    let shallow = compare(&mut bounds);
    for depth in 0..100 {
        assert_eq!(recurse(depth, &mut bounds), shallow + depth + 1);
    }
    thread::spawn(|| recurse(50, &mut StackBounds::default())).join().unwrap();
}

#[test]
fn the_first_frame_is_the_callers_caller() {
    let mut out = [0; 4];
    let walk = sample(&mut out, &mut StackBounds::default());
    let function = the_first_frame_is_the_callers_caller as fn() as usize;
    assert_eq!(walk.end, End::DepthLimit);
    assert!(out[0] > function && out[0] < function + 4096, "{:#x} is not near {function:#x}", out[0]);
}

#[test]
fn a_full_list_is_only_cut_when_there_is_more() {
    let mut bounds = StackBounds::default();
    let mut out = [0; 256];
    let whole = sample(&mut out, &mut bounds).frames;
    assert_eq!(sample(&mut out[..whole], &mut bounds), Walk { frames: whole, end: End::Complete });
    let cut = Walk { frames: whole - 1, end: End::DepthLimit };
    assert_eq!(sample(&mut out[..whole - 1], &mut bounds), cut);
    assert_eq!(sample(&mut [], &mut bounds), Walk { frames: 0, end: End::DepthLimit });
}

#[test]
fn errno_is_kept() {
    // SAFETY: the C library's own variable of this thread.
    unsafe { *__errno_location() = 4711 };
    sample(&mut [0; 64], &mut StackBounds::default());
    // SAFETY: as above.
    assert_eq!(unsafe { *__errno_location() }, 4711);
}

/// Call a function with another stack. To an unwinder the frame below it makes no sense.
fn on_stack(top: usize, function: extern "C" fn(*mut c_void), argument: *mut c_void) {
    // SAFETY: `top` is the aligned end of writable memory with room for the function; registers are restored by the callee
    // or declared as lost.
    unsafe {
        core::arch::asm!(
            "mov r12, rsp",
            "mov rsp, {top}",
            "call {function}",
            "mov rsp, r12",
            top = in(reg) top,
            function = in(reg) function,
            in("rdi") argument,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}

extern "C" fn sample_there(walk: *mut c_void) {
    let mut out = [0; 16];
    let found = sample(&mut out, &mut StackBounds::default());
    // SAFETY: the caller passes room for an optional walk.
    unsafe { *walk.cast::<Option<Walk>>() = Some(found) };
}

extern "C" fn nothing_there(_: *mut c_void) {
    black_box([0usize; 16]);
}

#[test]
fn a_stack_that_makes_no_sense_is_not_left() {
    for used in [64, PAGE - 64, PAGE, PAGE + 64] {
        let memory = Guarded::new(8);
        let mut walk: Option<Walk> = None;
        on_stack(memory.end() + 64 - used.next_multiple_of(64), sample_there, (&raw mut walk).cast());
        let walk = walk.unwrap();
        assert!(walk.frames >= 1, "{walk:?}");
    }
}

#[test]
fn takes_little_stack() {
    let lowest = |function| {
        let mut memory = Guarded::new(16);
        memory.bytes().fill(0xa5);
        let mut walk: Option<Walk> = None;
        super::super::invalidate();
        on_stack(memory.end() - 256, function, (&raw mut walk).cast());
        memory.bytes().iter().position(|byte| *byte != 0xa5).unwrap()
    };
    let taken = lowest(nothing_there) - lowest(sample_there);
    super::std::println!("{taken} bytes of stack, with {} for the frames of the test", 2 * 16 * 8);
    assert!(taken < 1536, "{taken}");
}
