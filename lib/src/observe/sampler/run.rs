//! A run of the sampler: the memory that it lives in, from a start to a stop.
//!
//! One mapping of the size that was allowed: what is known of the run, two tables, and behind them stacks and sites as they come. Pages
//! are touched as they are needed. A number is a place in it. Nothing in it is ever moved or given back before the run has ended.

use super::peak::Peak;
use super::sites::Site;
use super::stacks::Stack;
use super::table::Table;
use crate::os::{
    self,
    users::{User, Users},
};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// Bytes per number of a stack or a site: they begin at multiples of this.
const UNIT: usize = 16;
/// Room for a stack or a site of few frames, by which the tables are sized.
const TYPICAL: usize = 192;
/// The least memory of a run, in bytes.
const LEAST: usize = 64 * 1024;
/// Waits of a quarter of a millisecond for those who are at the memory of a run that has ended.
const WAITS: u32 = 200;

/// See above.
pub(crate) struct Run {
    /// Bytes in all.
    size: usize,
    /// Bytes in use, with the tables and what is before them: `first`.
    used: AtomicUsize,
    first: usize,
    /// The epoch of the heap that samples belong to.
    epoch: AtomicU32,
    unique_stacks: AtomicU32,
    unique_sites: AtomicU32,
    rate: u64,
    /// When it began, by the kernel's monotonic clock.
    started: u64,
    dropped: AtomicU64,
    /// Of those, for lack of memory.
    overflows: AtomicU64,
    pub(super) peak: Peak,
    pub(super) stacks: Table,
    pub(super) sites: Table,
}

/// The present run.
static RUN: AtomicPtr<Run> = AtomicPtr::new(core::ptr::null_mut());
/// Who is at the memory of a run.
static USERS: Users = Users::new();
/// A run that has ended while somebody was at it for long.
static LEFT_BEHIND: AtomicPtr<Run> = AtomicPtr::new(core::ptr::null_mut());

/// The run as long as this is kept: its stacks and sites stay where they are, although it may end.
pub(crate) struct Hold {
    run: &'static Run,
    _user: User,
}

/// The present run, if there is one.
#[inline(always)]
pub(crate) fn hold() -> Option<Hold> {
    let user = USERS.enter();
    // SAFETY: complete when it was published, and mapped until the user has left.
    unsafe { RUN.load(SeqCst).as_ref() }.map(|run| Hold { run, _user: user })
}

impl Hold {
    /// To be used no longer than this is kept.
    pub(super) fn run(&self) -> &'static Run {
        self.run
    }

    /// The number of the run, for [`all`](super::sites::all).
    pub(crate) fn number(&self) -> u32 {
        self.run.epoch.load(Relaxed)
    }

    /// Mean distance between samples, in bytes.
    pub(crate) fn rate(&self) -> u64 {
        self.run.rate
    }

    /// When the run began, in nanoseconds of the kernel's monotonic clock.
    pub(crate) fn started(&self) -> u64 {
        self.run.started
    }

    /// Samples that were drawn and could not be kept.
    pub(crate) fn dropped(&self) -> u64 {
        self.run.dropped.load(Relaxed)
    }

    /// Of those, for lack of memory for stacks and sites.
    pub(crate) fn overflows(&self) -> u64 {
        self.run.overflows.load(Relaxed)
    }

    /// A site by the number that the heap keeps in the records of this run.
    pub(crate) fn site(&self, number: u32) -> &Site {
        self.run.site(number)
    }

    /// How many different stacks there are.
    pub(crate) fn unique_stacks(&self) -> u32 {
        self.run.unique_stacks.load(Relaxed)
    }

    /// Bytes of memory that stacks and sites use, with their slots in the tables (which may be on pages with free ones).
    pub(crate) fn memory(&self) -> usize {
        let entries = self.unique_stacks() + self.run.unique_sites.load(Relaxed);
        self.run.used.load(Relaxed).min(self.run.size) - self.run.first + entries as usize * size_of::<u64>()
    }

    /// Estimated bytes that are live.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.run.peak.live_bytes()
    }

    /// The most that those were.
    pub(crate) fn highest_bytes(&self) -> u64 {
        self.run.peak.highest_bytes()
    }

    /// Estimated bytes that were allocated since the start or the last reset.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.run.peak.allocated_bytes()
    }

    /// All sites, in no particular order.
    pub(crate) fn sites(&self) -> impl Iterator<Item = &Site> {
        self.run.all_sites()
    }
}

impl Run {
    /// Memory for a run, at most `limit` bytes of address space. Under an address-space limit it makes do with less. `None`: no memory.
    pub(super) fn create(limit: usize, rate: u64) -> Option<&'static Run> {
        let mut size = limit.max(LEAST).next_multiple_of(os::PAGE);
        let mut at = os::map(size);
        while at.is_null() && size > LEAST {
            size = (size / 4).max(LEAST).next_multiple_of(os::PAGE);
            at = os::map(size);
        }
        if at.is_null() {
            return None;
        }
        // Tables take an eighth of it, or less.
        let mut levels = Table::levels_for(size / TYPICAL);
        while levels > 1 && Table::bytes(levels) > size / 16 {
            levels -= 1;
        }
        let first = size_of::<Run>().next_multiple_of(64);
        let (second, rest) = (first + Table::bytes(levels), first + 2 * Table::bytes(levels));
        debug_assert!(rest.is_multiple_of(UNIT));
        // SAFETY: fresh memory of this size, of which the tables have a part each; it is unmapped when nobody uses the run.
        unsafe {
            let (stacks, sites) = (Table::at(at.add(first), levels), Table::at(at.add(second), levels));
            at.cast::<Run>().write(Run {
                size,
                used: AtomicUsize::new(rest),
                first: rest,
                epoch: AtomicU32::new(0),
                unique_stacks: AtomicU32::new(0),
                unique_sites: AtomicU32::new(0),
                rate,
                started: os::now(),
                dropped: AtomicU64::new(0),
                overflows: AtomicU64::new(0),
                peak: Peak::default(),
                stacks,
                sites,
            });
            Some(&*at.cast::<Run>())
        }
    }

    /// Samples of this epoch of the heap belong to it.
    pub(super) fn set_epoch(&self, epoch: u32) {
        self.epoch.store(epoch, Relaxed);
    }

    /// Whether samples of this epoch belong to it.
    #[inline(always)]
    pub(super) fn is_of(&self, epoch: u32) -> bool {
        self.epoch.load(Relaxed) == epoch
    }

    pub(super) fn rate(&self) -> u64 {
        self.rate
    }

    pub(super) fn drop_one(&self, for_lack_of_memory: bool) {
        self.dropped.fetch_add(1, Relaxed);
        self.overflows.fetch_add(for_lack_of_memory as u64, Relaxed);
    }

    pub(super) fn count_stack(&self) {
        self.unique_stacks.fetch_add(1, Relaxed);
    }

    pub(super) fn count_site(&self) {
        self.unique_sites.fetch_add(1, Relaxed);
    }

    /// Room for so many bytes, and its number, never 0. `None`: there is none.
    pub(super) fn room(&self, bytes: usize) -> Option<(u32, *mut u8)> {
        let bytes = bytes.next_multiple_of(UNIT);
        let at = self.used.fetch_add(bytes, Relaxed);
        if at + bytes > self.size {
            self.used.fetch_sub(bytes, Relaxed);
            return None;
        }
        Some((u32::try_from(at / UNIT).ok()?, (self.address() + at) as *mut u8))
    }

    fn address(&self) -> usize {
        &raw const *self as usize
    }

    pub(super) fn stack(&'static self, number: u32) -> &'static Stack {
        // SAFETY: published numbers are those of complete stacks, which stay as long as the run.
        unsafe { &*((self.address() + number as usize * UNIT) as *const Stack) }
    }

    pub(super) fn site(&self, number: u32) -> &Site {
        // SAFETY: as above, of sites.
        unsafe { &*((self.address() + number as usize * UNIT) as *const Site) }
    }

    pub(super) fn all_sites(&self) -> impl Iterator<Item = &Site> {
        self.sites.all().map(|number| self.site(number))
    }
}

/// From here on this is the present run. There is none at the moment.
pub(super) fn publish(run: &'static Run) {
    RUN.store((&raw const *run).cast_mut(), SeqCst);
}

/// There is no run any more. Its memory is given back as soon as nobody is at it; `waits` for that a little.
pub(super) fn end(waits: bool) {
    let run = RUN.swap(core::ptr::null_mut(), SeqCst);
    let mut left = WAITS;
    while !USERS.have_left() && waits && left != 0 {
        let never = AtomicU32::new(0);
        os::futex_wait(never.as_ptr(), 0);
        left -= 1;
    }
    if USERS.have_left() {
        unmap(run);
        unmap(LEFT_BEHIND.swap(core::ptr::null_mut(), AcqRel));
    } else if !run.is_null() {
        // Of two such runs the first is lost. In a forked child the users may be threads that it does not have.
        LEFT_BEHIND.store(run, Release);
    }
}

fn unmap(run: *mut Run) {
    if !run.is_null() {
        // SAFETY: nobody is at it, and nobody can find it any more.
        os::unmap(run.cast(), unsafe { (*run).size });
    }
}
