//! The options of mimalloc's interface: numbers that can be set from the environment and by the program.
//!
//! All of them exist here, with mimalloc's numbers, names and ways to write a value, so that programs and start scripts
//! need no change. Which of them change anything in this allocator says `docs/options.md`. For any thread at any time; lock-free and
//! without allocation.
//!
//! ```
//! use mimalloc_pprof::options::{self, Opt};
//!
//! options::enable(Opt::SHOW_STATS); // as MIMALLOC_SHOW_STATS=1 in the environment
//! assert_eq!(options::get(Opt::SHOW_STATS), 1);
//! # options::disable(Opt::SHOW_STATS);
//! ```

// Invariants:
//
// * O1 A value is one atomic word; `UNREAD` until somebody wants to know it. Whoever turns it into something else does so by one
//   exchange, so that a value read late never overwrites one that was set.
// * O2 `FIXED` is set before the word of a value that the environment or `set_number` gave: defaults that come later leave those
//   alone.

mod opt;
mod parse;
mod table;

pub use opt::*;
pub(crate) use parse::parse;
pub(crate) use table::{COUNT, Definition, Name, Unit};

use crate::os;
use core::sync::atomic::{AtomicBool, AtomicI64, Ordering::*};
use table::TABLE;

/// Not read from the environment yet.
const UNREAD: i64 = i64::MIN;

static VALUES: [AtomicI64; COUNT] = [const { AtomicI64::new(UNREAD) }; COUNT];
static FIXED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

const PREFIX: &[u8] = b"MIMALLOC_";
/// Room for the name of an environment variable.
const NAME: usize = 64;

/// What is known of the option with this number.
pub(crate) fn definition(number: usize) -> Option<&'static Definition> {
    TABLE.get(number)
}

/// The value of an option that is a count or a size, where 0 says that there is none; so does a negative one.
pub(crate) fn get_positive(name: Name) -> Option<u64> {
    u64::try_from(get(name)).ok().filter(|&value| value != 0)
}

/// The value of the option with this number; 0 when there is none.
pub(crate) fn get_number(number: usize) -> i64 {
    match VALUES.get(number).map(|value| value.load(Relaxed)) {
        None => 0,
        Some(UNREAD) => read(number),
        Some(value) => value,
    }
}

/// Whether the environment or the program has given the option a value.
pub(crate) fn is_given(name: Name) -> bool {
    get(name);
    FIXED[name as usize].load(Relaxed)
}

/// Change the option with this number. An unknown number is ignored.
pub(crate) fn set_number(number: usize, value: i64) {
    if number >= COUNT {
        return;
    }
    FIXED[number].store(true, Relaxed);
    VALUES[number].store(value.max(UNREAD + 1), Release);
    keep_order(number, value);
}

/// Change the option with this number unless the environment or [`set_number`] has given it a value.
pub(crate) fn set_default_number(number: usize, value: i64) {
    if number >= COUNT {
        return;
    }
    let before = get_number(number);
    if FIXED[number].load(Relaxed) {
        return;
    }
    // Before the environment is known the word is still unread, and this default takes its place.
    let held = if VALUES[number].load(Acquire) == UNREAD { UNREAD } else { before };
    let _ = VALUES[number].compare_exchange(held, value.max(UNREAD + 1), AcqRel, Relaxed);
}

/// The smaller of the two bounds on guarded sizes stays the smaller one: the other one gives way.
fn keep_order(number: usize, value: i64) {
    const MIN: usize = Name::GuardedMin as usize;
    const MAX: usize = Name::GuardedMax as usize;
    if number == MIN && get_number(MAX) < value {
        VALUES[MAX].store(value, Release);
    } else if number == MAX && get_number(MIN) > value {
        VALUES[MIN].store(value, Release);
    }
}

/// Read an option from the environment, or take its default.
#[cold]
#[inline(never)]
fn read(number: usize) -> i64 {
    let definition = &TABLE[number];
    if !os::environment_is_known() {
        return definition.default;
    }
    let found = find(definition);
    let parsed = found.and_then(|found| parse(found.value, definition.unit));
    if parsed.is_some() {
        FIXED[number].store(true, Relaxed);
    }
    let value = parsed.unwrap_or(definition.default);
    match VALUES[number].compare_exchange(UNREAD, value, AcqRel, Acquire) {
        Err(now) => return now,
        Ok(_) => complain(definition, found, parsed.is_none()),
    }
    // The program may have set the other bound before.
    if parsed.is_some() {
        keep_order(number, value);
    }
    value
}

/// What the environment says of an option.
#[derive(Clone, Copy)]
struct Found {
    value: &'static [u8],
    /// The part of the variable's name after the prefix.
    name: &'static str,
    /// Under a name that it no longer has.
    legacy: bool,
}

fn find(definition: &'static Definition) -> Option<Found> {
    if os::is_privileged() {
        return None;
    }
    let under = |name: &'static str, legacy| {
        let mut variable = [0u8; NAME];
        os::variable(variable_name(name, &mut variable)).map(|value| Found { value, name, legacy })
    };
    under_first(definition.alias, |name| under(name, false))
        .or_else(|| under(definition.name, false))
        .or_else(|| under_first(definition.legacy, |name| under(name, true)))
}

fn under_first(name: &'static str, look: impl FnOnce(&'static str) -> Option<Found>) -> Option<Found> {
    if name.is_empty() { None } else { look(name) }
}

/// `MIMALLOC_` and the name in capitals.
fn variable_name<'a>(name: &str, buffer: &'a mut [u8; NAME]) -> &'a [u8] {
    let end = PREFIX.len() + name.len();
    buffer[..PREFIX.len()].copy_from_slice(PREFIX);
    buffer[PREFIX.len()..end].copy_from_slice(name.as_bytes());
    buffer[PREFIX.len()..end].make_ascii_uppercase();
    &buffer[..end]
}

/// Say once what is wrong with a value, or with the name it came under.
fn complain(definition: &Definition, found: Option<Found>, unusable: bool) {
    let Some(found) = found else { return };
    let mut variable = [0u8; NAME];
    let variable = variable_name(found.name, &mut variable);
    if unusable {
        os::complain_about(variable, b" is not a number; the default is used");
    } else if found.legacy {
        const SAYS: &[u8] = b" is an old name; use ";
        let (mut now, mut text) = ([0u8; NAME], [0u8; SAYS.len() + NAME]);
        let now = variable_name(definition.name, &mut now);
        text[..SAYS.len()].copy_from_slice(SAYS);
        text[SAYS.len()..SAYS.len() + now.len()].copy_from_slice(now);
        os::complain_about(variable, &text[..SAYS.len() + now.len()]);
    }
}

#[cfg(test)]
mod tests;
