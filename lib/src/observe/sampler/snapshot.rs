//! What was sampled, by stack, as it was at one moment: in memory of its own, so that it outlives the run.

use super::run::{Hold, hold};
use crate::os;

/// What is known of a stack: numbers of sampled blocks and their usable bytes, not estimates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled {
    /// Return addresses, innermost first, and how many there are.
    pub(crate) frames: *const usize,
    pub(crate) depth: usize,
    pub(crate) live: usize,
    pub(crate) live_bytes: usize,
    /// Since the start or the last reset.
    pub(crate) allocated: usize,
    pub(crate) allocated_bytes: usize,
}

/// The head of a mapping; the stacks follow, and behind those their frames.
pub(crate) struct Snapshot {
    /// Bytes of the mapping.
    size: usize,
    stacks: usize,
}

/// One site, before those of a stack are added up.
#[derive(Clone, Copy)]
struct Part {
    stack: u32,
    info: Sampled,
}

impl Snapshot {
    /// What the present run has found; nothing if there is none. `None`: no memory.
    pub(crate) fn take() -> Option<&'static mut Snapshot> {
        let Some(held) = hold() else { return Snapshot::map(0, 0) };
        // Others may add sites meanwhile: those come too late.
        let most = held.sites().count();
        let mut memory = Parts::map(most)?;
        let parts = memory.fill(&held);
        parts.sort_unstable_by_key(|part| part.stack);
        let stacks = merge(parts);
        let parts = &parts[..stacks];
        let snapshot = Snapshot::map(stacks, parts.iter().map(|part| part.info.depth).sum())?;
        snapshot.fill(parts);
        Some(snapshot)
    }

    fn map(stacks: usize, frames: usize) -> Option<&'static mut Snapshot> {
        let size = size_of::<Snapshot>() + stacks * size_of::<Sampled>() + frames * size_of::<usize>();
        let at = os::map(size).cast::<Snapshot>();
        if at.is_null() {
            return None;
        }
        // SAFETY: fresh memory of this size.
        unsafe {
            at.write(Snapshot { size, stacks });
            Some(&mut *at)
        }
    }

    fn fill(&mut self, parts: &[Part]) {
        let infos = self.infos_at();
        // SAFETY: the mapping has room for all of them, and for their frames behind them.
        unsafe {
            let mut frames = infos.add(self.stacks).cast::<usize>();
            for (i, part) in parts.iter().enumerate() {
                frames.copy_from_nonoverlapping(part.info.frames, part.info.depth);
                infos.add(i).write(Sampled { frames, ..part.info });
                frames = frames.add(part.info.depth);
            }
        }
    }

    fn infos_at(&self) -> *mut Sampled {
        // SAFETY: only an address is formed.
        unsafe { (&raw const *self).add(1).cast_mut().cast() }
    }

    /// All stacks, in no particular order.
    pub(crate) fn stacks(&self) -> &[Sampled] {
        // SAFETY: written by `fill`.
        unsafe { core::slice::from_raw_parts(self.infos_at(), self.stacks) }
    }

    /// Give the memory back.
    ///
    /// # Safety
    /// It comes from [`take`](Self::take), and is used no more.
    pub(crate) unsafe fn free(snapshot: *mut Snapshot) {
        // SAFETY: the caller's promise.
        unsafe { os::unmap(snapshot.cast(), (*snapshot).size) };
    }
}

/// Memory for parts, until it is dropped.
struct Parts {
    at: *mut Part,
    most: usize,
}

impl Parts {
    fn map(most: usize) -> Option<Parts> {
        let at = os::map(most.max(1) * size_of::<Part>()).cast::<Part>();
        (!at.is_null()).then_some(Parts { at, most })
    }

    /// One for each site that has anything.
    fn fill(&mut self, held: &Hold) -> &mut [Part] {
        let mut count = 0;
        for site in held.sites().take(self.most) {
            let (counts, size) = (site.counts(), site.block_size() as usize);
            if counts.live == 0 && counts.allocated == 0 {
                continue;
            }
            let info = Sampled {
                frames: site.frames().as_ptr(),
                depth: site.frames().len(),
                live: counts.live as usize,
                live_bytes: counts.live as usize * size,
                allocated: counts.allocated as usize,
                allocated_bytes: counts.allocated as usize * size,
            };
            // SAFETY: at most as many as there is room for.
            unsafe { self.at.add(count).write(Part { stack: site.stack(), info }) };
            count += 1;
        }
        // SAFETY: these were written, and nobody else knows them.
        unsafe { core::slice::from_raw_parts_mut(self.at, count) }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        os::unmap(self.at.cast(), self.most.max(1) * size_of::<Part>());
    }
}

/// Add up what has the same stack, and stands together. Returns how many there are then.
fn merge(parts: &mut [Part]) -> usize {
    let mut stacks = 0;
    for i in 0..parts.len() {
        let part = parts[i];
        match parts[..stacks].last_mut().filter(|last| last.stack == part.stack) {
            Some(last) => {
                last.info.live += part.info.live;
                last.info.live_bytes += part.info.live_bytes;
                last.info.allocated += part.info.allocated;
                last.info.allocated_bytes += part.info.allocated_bytes;
            }
            None => {
                parts[stacks] = part;
                stacks += 1;
            }
        }
    }
    stacks
}
