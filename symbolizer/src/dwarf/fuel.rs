//! A limit on work.
//!
//! Honest debug information is read in time proportional to its size. Hostile debug information can make every entry
//! point at the same long table, or give one byte a million attributes. So every step is paid for from a supply that
//! is proportional to the size of the sections, and when it runs out, what has been found so far is the result.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Steps per byte of debug information. Symbolizing every address of real files takes less than two.
const STEPS_PER_BYTE: u64 = 16;

/// Steps that even the smallest file may take.
const BASE: u64 = 16 << 20;

/// Steps a worker takes from the common supply at once.
const PORTION: u64 = 1 << 16;

/// Why reading debug information stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It ends in the middle of something, or what was asked for lies outside of it.
    CutShort(Spot),
    /// It is damaged, and how.
    Damaged(Spot, &'static str),
    /// It takes more work or memory than a file of its size should.
    OutOfFuel,
}

/// A place in debug information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Name of the section.
    pub(crate) section: &'static str,
    /// Offset in it, unpacked.
    pub(crate) offset: u64,
}

impl Fault {
    /// What is damaged, and where; `None` for the end of the supply.
    pub(crate) fn what(self) -> Option<String> {
        match self {
            Fault::CutShort(spot) => Some(format!("it ends too early, at {spot}")),
            Fault::Damaged(spot, what) => Some(format!("{what} at {spot}")),
            Fault::OutOfFuel => None,
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x} in {}", self.offset, self.section)
    }
}

/// The supply for one module, shared by its workers.
#[derive(Debug)]
pub(crate) struct Fuel(AtomicU64);

impl Fuel {
    /// What `bytes` of debug information may cost.
    pub(crate) fn for_size(bytes: u64) -> Self {
        Fuel(AtomicU64::new(bytes.saturating_mul(STEPS_PER_BYTE).saturating_add(BASE)))
    }

    /// A worker's way to pay.
    pub(crate) fn meter(&self) -> Meter<'_> {
        Meter { fuel: self, portion: 0 }
    }

    /// Takes `wanted` steps out, or all there are if fewer.
    fn take(&self, wanted: u64) -> u64 {
        let before = self.0.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(wanted)));
        before.unwrap_or(0).min(wanted)
    }
}

/// Pays for one worker's steps.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    fuel: &'a Fuel,
    portion: u64,
}

impl Meter<'_> {
    /// Pays for `steps` steps.
    #[inline]
    pub(crate) fn burn(&mut self, steps: u64) -> Result<(), Fault> {
        match self.portion.checked_sub(steps) {
            Some(left) => {
                self.portion = left;
                Ok(())
            }
            None => self.refill(steps),
        }
    }

    /// Adds what reading `bytes` more of debug information may cost.
    pub(crate) fn supply(&mut self, bytes: u64) {
        let steps = bytes.saturating_mul(STEPS_PER_BYTE);
        let _ = self.fuel.0.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_add(steps)));
    }

    #[cold]
    fn refill(&mut self, steps: u64) -> Result<(), Fault> {
        self.portion += self.fuel.take(steps.saturating_add(PORTION));
        self.portion = self.portion.checked_sub(steps).ok_or(Fault::OutOfFuel)?;
        Ok(())
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        self.fuel.0.fetch_add(self.portion, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{BASE, Fault, Fuel};

    #[test]
    fn the_supply_ends_and_unused_portions_come_back() {
        let fuel = Fuel::for_size(0);
        let mut spent = 0;
        for steps in [1, 1000, 70_000] {
            let mut meter = fuel.meter();
            assert_eq!(meter.burn(steps), Ok(()));
            spent += steps;
        }
        let mut meter = fuel.meter();
        assert_eq!(meter.burn(BASE - spent), Ok(()));
        assert_eq!(meter.burn(1), Err(Fault::OutOfFuel));
        assert_eq!(fuel.meter().burn(u64::MAX), Err(Fault::OutOfFuel));
    }
}
