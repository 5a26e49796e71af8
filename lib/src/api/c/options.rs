//! `mi_option_…`: reading and changing options. An unknown number reads as 0, and setting it does nothing.

use super::process::VERSION;
use super::text::{OutputFn, Text};
use crate::heap::{guarded, secure};
use crate::options::{self, COUNT, Name, Unit};
use core::ffi::{c_int, c_long, c_void};
use core::fmt::Write;

/// The number of an option, or one that no option has.
fn number(option: c_int) -> usize {
    usize::try_from(option).unwrap_or(usize::MAX)
}

/// `mi_option_get`.
pub fn option_get(option: c_int) -> c_long {
    options::get_number(number(option))
}

/// `mi_option_get_clamp`: the lower bound counts where the two bounds cross.
pub fn option_get_clamp(option: c_int, min: c_long, max: c_long) -> c_long {
    option_get(option).min(max).max(min)
}

/// `mi_option_get_size`: in bytes; 0 for a negative value.
pub fn option_get_size(option: c_int) -> usize {
    let value = usize::try_from(option_get(option)).unwrap_or(0);
    match options::definition(number(option)) {
        Some(definition) if definition.unit == Unit::KiB => value.saturating_mul(1024),
        _ => value,
    }
}

/// `mi_option_set`.
pub fn option_set(option: c_int, value: c_long) {
    options::set_number(number(option), value);
    changed(option);
}

/// Some options are wanted at once.
fn changed(option: c_int) {
    if (Name::GuardedMin as c_int..=Name::GuardedSampleSeed as c_int).contains(&option) {
        guarded::options_changed();
    }
}

/// `mi_option_set_default`.
pub fn option_set_default(option: c_int, value: c_long) {
    options::set_default_number(number(option), value);
    changed(option);
}

/// `mi_option_is_enabled`.
pub fn option_is_enabled(option: c_int) -> bool {
    option_get(option) != 0
}

/// `mi_option_set_enabled`.
pub fn option_set_enabled(option: c_int, on: bool) {
    option_set(option, on.into());
}

/// `mi_option_set_enabled_default`.
pub fn option_set_enabled_default(option: c_int, on: bool) {
    option_set_default(option, on.into());
}

/// `mi_option_enable`.
pub fn option_enable(option: c_int) {
    option_set(option, 1);
}

/// `mi_option_disable`.
pub fn option_disable(option: c_int) {
    option_set(option, 0);
}

/// `mi_options_print_out`.
///
/// # Safety
/// The function may be called with the argument.
pub unsafe fn options_print_out(function: Option<OutputFn>, arg: *mut c_void) {
    // SAFETY: the caller's promise.
    let mut text = unsafe { Text::to(function, arg) };
    let _ = writeln!(text, "v{}.{}.{}", VERSION / 10000, VERSION / 100 % 100, VERSION % 100);
    for at in 0..COUNT {
        let Some(definition) = options::definition(at) else { continue };
        let unit = if definition.unit == Unit::KiB { "KiB" } else { "" };
        let _ = writeln!(text, "option '{}': {} {unit}", definition.name, options::get_number(at));
    }
    let _ = write!(text, "debug level : 0\nsecure level: {}\nmem tracking: none\n", secure::level());
}

/// `mi_options_print`.
pub fn options_print() {
    // SAFETY: there is no function.
    unsafe { options_print_out(None, core::ptr::null_mut()) }
}
