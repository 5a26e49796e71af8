//! The counts as text for people.

use super::super::holes::write_returned;
use super::super::process::write_info;
use super::super::text::{OutputFn, Text};
use super::gather::{Blocks, blocks, spans};
use crate::heap::classes::{CLASSES, class_size};
use crate::heap::zone::subprocess::{self, Subprocess};
use crate::heap::zone::{self, Scope};
use core::ffi::c_void;
use core::fmt::Write;

/// `mi_stats_print_out`, `mi_thread_stats_print_out`.
///
/// # Safety
/// The function may be called with the argument.
pub unsafe fn print_out(function: Option<OutputFn>, arg: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { print_scope(Scope::Process, function, arg) }
}

/// The blocks of a scope, and the process.
pub(super) unsafe fn print_scope(scope: Scope, function: Option<OutputFn>, arg: *mut c_void) {
    // SAFETY: the caller's promise.
    let mut text = unsafe { Text::to(function, arg) };
    write_blocks(&mut text, scope);
    if matches!(scope, Scope::Process) {
        write_returned(&mut text);
    }
    write_info(&mut text);
}

/// Each heap of a sub-process by itself.
pub(super) unsafe fn print_zones(process: *mut Subprocess, function: Option<OutputFn>, arg: *mut c_void) {
    // SAFETY: the caller's promise.
    let mut text = unsafe { Text::to(function, arg) };
    subprocess::each_zone(process, |zone| {
        let _ = writeln!(text, "heap {}", zone::number_of(zone));
        write_blocks(&mut text, Scope::Zone(zone));
        true
    });
    write_info(&mut text);
}

/// `mi_stats_print`: the argument has no meaning any more.
///
/// # Safety
/// The pointer is not used.
pub unsafe fn print(_: *mut c_void) {
    // SAFETY: there is no function.
    unsafe { print_out(None, core::ptr::null_mut()) }
}

/// `malloc_stats` of the GNU C library.
pub fn malloc_stats() {
    // SAFETY: there is no function.
    unsafe { print_out(None, core::ptr::null_mut()) }
}

fn write_blocks(text: &mut Text, scope: Scope) {
    let _ = writeln!(text, "{:>12} {:>12} {:>16} {:>16}", "block size", "live", "live bytes", "allocated");
    let (mut sum, mut bytes) = (Blocks::default(), 0);
    for class in 1..CLASSES {
        let (now, size) = (blocks(scope, class), class_size(class) as u64);
        if now.allocated != 0 {
            let _ = writeln!(text, "{size:>12} {:>12} {:>16} {:>16}", now.live, now.live * size, now.allocated);
        }
        sum.live += now.live;
        sum.allocated += now.allocated;
        bytes += now.live * size;
    }
    let (large, large_bytes) = spans(scope);
    let _ = writeln!(text, "{:>12} {:>12} {:>16} {:>16}", "larger", large.live, large_bytes.live, large.allocated);
    let (live, allocated) = (sum.live + large.live, sum.allocated + large.allocated);
    let _ = writeln!(text, "{:>12} {live:>12} {:>16} {allocated:>16}", "all", bytes + large_bytes.live);
}
