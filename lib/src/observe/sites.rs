//! Sites: one for each different stack and block size that was sampled, with its counts.
//!
//! Lock-free and append-only: a site is written completely before its number is published in a hash table, and its counts
//! are atomic. So there is nothing to repair in a forked child, and nobody waits. The table is sized for the memory it
//! may use and never grows.

use super::unwind::End;
use crate::os;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// Bytes per number of a site: sites start at multiples of this.
const UNIT: usize = 16;
/// Room for a site with an ordinary stack, by which the hash table is sized.
const TYPICAL: usize = 128;

/// One site. Its frames follow it.
#[repr(C, align(16))]
pub(crate) struct Site {
    hash: u64,
    /// Usable bytes of each block.
    pub(crate) block_size: u64,
    /// Sampled blocks that are live.
    pub(crate) live: AtomicU64,
    /// Bytes that were asked for in those.
    pub(crate) live_requested: AtomicU64,
    /// Sampled blocks that were ever allocated.
    pub(crate) allocated: AtomicU64,
    /// The sampling run.
    pub(crate) epoch: u32,
    depth: u16,
    pub(crate) end: End,
}

/// What makes a site that site.
pub(crate) struct Key<'a> {
    pub(crate) frames: &'a [usize],
    pub(crate) block_size: u64,
    pub(crate) end: End,
    pub(crate) epoch: u32,
}

/// The memory: a hash table of `slots` numbers, then the sites.
struct Store {
    slots: usize,
    /// Bytes in all.
    size: usize,
    /// Bytes in use.
    used: AtomicUsize,
}

static STORE: AtomicPtr<Store> = AtomicPtr::new(core::ptr::null_mut());

/// Get memory for sites, at most `limit` bytes of address space; it is touched as sites come. False: no memory.
///
/// A second call changes nothing.
pub(crate) fn initialise(limit: usize) -> bool {
    if !STORE.load(Acquire).is_null() {
        return true;
    }
    let Some(store) = Store::map(limit) else { return false };
    let new = (&raw const *store).cast_mut();
    if STORE.compare_exchange(core::ptr::null_mut(), new, AcqRel, Acquire).is_err() {
        os::unmap(new.cast(), store.size);
    }
    true
}

const fn slots_offset() -> usize {
    size_of::<Store>().next_multiple_of(UNIT)
}

fn store() -> Option<&'static Store> {
    // SAFETY: published once, complete, never unmapped.
    unsafe { STORE.load(Acquire).as_ref() }
}

impl Store {
    /// Under an address-space limit it makes do with less than `limit`.
    fn map(limit: usize) -> Option<&'static Store> {
        let least = os::PAGE * 4;
        let mut size = limit.max(least).next_multiple_of(os::PAGE);
        let mut at = os::map(size);
        while at.is_null() && size > least {
            size = (size / 4).next_multiple_of(os::PAGE);
            at = os::map(size);
        }
        let slots = (size / TYPICAL).next_power_of_two();
        let used = (slots_offset() + slots * 4).next_multiple_of(UNIT);
        // SAFETY: fresh memory of ours; it is never unmapped once others know it.
        unsafe {
            let store = at.cast::<Store>();
            if !store.is_null() {
                store.write(Store { slots, size, used: AtomicUsize::new(used) });
            }
            store.as_ref()
        }
    }

    fn address(&self) -> usize {
        &raw const *self as usize
    }

    fn slot(&self, i: usize) -> &AtomicU32 {
        // SAFETY: the table has `slots` entries behind the store's head.
        unsafe { &*((self.address() + slots_offset()) as *const AtomicU32).add(i) }
    }

    fn site(&self, number: u32) -> &Site {
        // SAFETY: published numbers are those of complete sites.
        unsafe { &*((self.address() + number as usize * UNIT) as *const Site) }
    }

    fn create(&self, key: &Key<'_>, hash: u64) -> Option<u32> {
        let size = (size_of::<Site>() + size_of_val(key.frames)).next_multiple_of(UNIT);
        let at = self.used.fetch_add(size, Relaxed);
        if at + size > self.size {
            self.used.fetch_sub(size, Relaxed);
            return None;
        }
        // SAFETY: [at, at + size) was given to this thread alone.
        unsafe {
            let site = (self.address() + at) as *mut Site;
            site.write(Site {
                hash,
                block_size: key.block_size,
                live: AtomicU64::new(0),
                live_requested: AtomicU64::new(0),
                allocated: AtomicU64::new(0),
                epoch: key.epoch,
                depth: key.frames.len() as u16,
                end: key.end,
            });
            site.add(1).cast::<usize>().copy_from_nonoverlapping(key.frames.as_ptr(), key.frames.len());
        }
        Some((at / UNIT) as u32)
    }

    fn intern(&self, key: &Key<'_>) -> Option<u32> {
        let hash = hash(key);
        let mut made = None;
        for probe in 0..self.slots {
            let slot = self.slot((hash as usize).wrapping_add(probe) & (self.slots - 1));
            let mut number = slot.load(Acquire);
            if number == 0 {
                let new = match made {
                    Some(new) => new,
                    None => *made.insert(self.create(key, hash)?),
                };
                match slot.compare_exchange(0, new, AcqRel, Acquire) {
                    Ok(_) => return Some(new),
                    Err(now) => number = now, // ours, if another thread was first, is wasted
                }
            }
            if self.site(number).is(key, hash) {
                return Some(number);
            }
        }
        None
    }

    fn all(&self) -> impl Iterator<Item = &Site> {
        (0..self.slots).map(|i| self.slot(i).load(Acquire)).filter(|&n| n != 0).map(|n| self.site(n))
    }
}

impl Site {
    /// Return addresses, innermost first.
    pub(crate) fn frames(&self) -> &[usize] {
        // SAFETY: written behind the site before it was published.
        unsafe { core::slice::from_raw_parts((&raw const *self).add(1).cast(), self.depth as usize) }
    }

    fn is(&self, key: &Key<'_>, hash: u64) -> bool {
        self.hash == hash
            && (self.block_size, self.end, self.epoch) == (key.block_size, key.end, key.epoch)
            && self.frames() == key.frames
    }
}

/// The number of the site with this key, never 0. `None`: no memory is left for a new one.
pub(crate) fn intern(key: &Key<'_>) -> Option<u32> {
    store()?.intern(key)
}

/// A site by the number that [`intern`] gave.
pub(crate) fn site(number: u32) -> Option<&'static Site> {
    store().map(|store| store.site(number))
}

/// All sites of a sampling run, in no particular order.
pub(crate) fn all(epoch: u32) -> impl Iterator<Item = &'static Site> {
    store().into_iter().flat_map(Store::all).filter(move |site| site.epoch == epoch)
}

fn hash(key: &Key<'_>) -> u64 {
    let start = key.block_size ^ (key.epoch as u64) << 40 ^ (key.end as u64) << 32;
    key.frames.iter().fold(start, |hash, &frame| {
        // A multiplicative hash with the golden ratio; the fold brings the good high bits down.
        let hash = (hash ^ frame as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^ hash >> 29
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_stack_is_the_same_site_from_all_threads() {
        let store = Store::map(1 << 20).unwrap();
        let numbers: std::vec::Vec<std::vec::Vec<u32>> = std::thread::scope(|scope| {
            let workers: std::vec::Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..500usize)
                            .map(|i| {
                                let frames = [i, i * 3, 7];
                                let key = Key { frames: &frames, block_size: 64, end: End::Complete, epoch: 1 };
                                store.intern(&key).unwrap()
                            })
                            .collect()
                    })
                })
                .collect();
            workers.into_iter().map(|w| w.join().unwrap()).collect()
        });
        assert!(numbers.iter().all(|n| *n == numbers[0]));
        assert_eq!(store.all().count(), 500);
        assert_eq!(store.site(numbers[0][3]).frames(), [3, 9, 7]);
        for other in [
            Key { frames: &[3, 9, 7], block_size: 80, end: End::Complete, epoch: 1 },
            Key { frames: &[3, 9, 7], block_size: 64, end: End::BadFrame, epoch: 1 },
            Key { frames: &[3, 9, 7], block_size: 64, end: End::Complete, epoch: 3 },
            Key { frames: &[3, 9], block_size: 64, end: End::Complete, epoch: 1 },
        ] {
            assert_ne!(store.intern(&other), Some(numbers[0][3]));
        }
        // The memory is bounded: at some time there is no more, and what there was is still found.
        let full = (0..100_000usize).any(|i| {
            let key = Key { frames: &[i; 40], block_size: 1, end: End::Complete, epoch: 5 };
            store.intern(&key).is_none()
        });
        assert!(full);
        let key = Key { frames: &[3, 9, 7], block_size: 64, end: End::Complete, epoch: 1 };
        assert_eq!(store.intern(&key), Some(numbers[0][3]));
    }
}
