//! Discarding pages inside of slabs (`heap/holes.rs`): the sweeper *claims* wholly free pages, which takes the blocks there away from
//! everybody, has the kernel discard them without holding the slabs' lock, and gives the blocks back.
//!
//! One slab of few pages and blocks. One thread takes blocks and gives them back, another gives back, hands the empty slab to the
//! arena, where it becomes something else, and ends the zone that the slab belongs to; a sweeper, aged or forced, with a kernel
//! that may refuse; a fork at any instant. Calls are not counted: each thread goes on for ever.

mod repair;
mod state;
mod sweeper;
mod tests;
mod threads;

use super::explore::{Bad, Fault, Model, Steps};
use state::{Memory, Place, SLICES, State, Sweeper, Thread, Zone};

/// A small mistake in the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mutant {
    None,
    /// The claim is recorded after its bits are cleared.
    RecordAfterClear,
    /// The record is cleared before the bits are set again.
    RecordClearedFirst,
    /// The record is cleared after the slabs are unlocked.
    RecordClearedLate,
    /// Bits are cleared without the slabs' lock.
    ClaimUnlocked,
    /// Pages are discarded before their bits are cleared.
    MadviseFirst,
    /// Pages count as returned that the kernel refused.
    ReturnedThoughRefused,
    /// Pages that the kernel refused are not left for the next sweep.
    RefusedForgotten,
    /// Taking a block does not make its pages young.
    CandidateKept,
    /// All blocks from the first one that was never used to the last one taken count as never used, though some may be claimed.
    ClaimedCountAsFresh,
    /// Claimed blocks count as free.
    CountedEarly,
    /// A slab on the list of empty ones is claimed and stays there.
    EmptyClaimed,
    /// A slab that has nothing but what is given back is not listed.
    NotListed,
    /// The slabs are unlocked before the lists are up to date.
    UnlockBeforeList,
    /// The flags are cleared after the look.
    FlagAfterLook,
    /// Who gives back looks at the flag before the lock.
    TouchBeforeLock,
    /// A slab that is made of memory which was in use does not set the flag.
    CreateForgets,
    /// Using an empty slab that the last sweep has kept does not set the flag.
    KeptForgotten,
    /// Pages behind the last block count as never used, though the slab is made of memory which was.
    TailForgotten,
    /// The slices of a slab are given back in sections of their own.
    SliceBySlice,
    /// A sweep that skips a slab does not leave it for the next one.
    SkipForgets,
    /// The child forgets the records.
    RepairForgetsRecords,
    /// The child sets bits of a home that this thread was interrupted in.
    RepairSetsLocked,
    /// The child does not set the flags that a vanished sweeper had cleared.
    RepairForgetsFlag,
    /// A sweep that cannot give back a record goes on, and uses its place for another claim.
    RecordsOverwritten,
    /// A sweep does not give back the records that it finds.
    RecordsNotFound,
    /// The end of a zone does not wait for the sweep.
    EndIgnoresPurge,
    /// The end of a zone does not give back the records that it finds.
    EndKeepsRecords,
    /// The child ends a zone while this thread has pages claimed.
    FinishIgnoresPurge,
}

#[derive(Clone, Copy)]
pub(crate) struct Claim {
    pub(crate) blocks: u8,
    pub(crate) pages: u8,
    /// The pages that each block is in.
    pub(crate) overlap: [u8; 4],
    /// The pages of each slice.
    pub(crate) slices: [u8; SLICES],
    /// The slab belongs to a zone at first.
    pub(crate) zone: bool,
    pub(crate) forks: bool,
    pub(crate) mutant: Mutant,
    pub(crate) least: Fault,
}

impl Claim {
    /// Two pages and three blocks; the second is in both.
    pub(crate) const STRADDLE: Claim = Claim {
        blocks: 3,
        pages: 2,
        overlap: [0b01, 0b11, 0b10, 0],
        slices: [0b11, 0],
        zone: false,
        forks: false,
        mutant: Mutant::None,
        least: Fault::Stuck,
    };
    /// The same, where each page is one of a slice of its own.
    pub(crate) const SLICED: Claim = Claim { slices: [0b01, 0b10], ..Self::STRADDLE };
    /// Two pages of a block each.
    pub(crate) const SMALL: Claim = Claim { blocks: 2, overlap: [0b01, 0b10, 0, 0], ..Self::STRADDLE };
    /// The same, with a page behind the last block.
    pub(crate) const TAIL: Claim = Claim { pages: 3, slices: [0b111, 0], ..Self::SMALL };
    /// Two blocks in the middle share a page.
    pub(crate) const SHARED: Claim =
        Claim { blocks: 4, pages: 3, overlap: [0b001, 0b010, 0b010, 0b100], slices: [0b111, 0], ..Self::STRADDLE };

    fn has(&self, mutant: Mutant) -> bool {
        self.mutant == mutant
    }

    fn all(&self) -> u8 {
        (1 << self.blocks) - 1
    }

    fn all_pages(&self) -> u8 {
        (1 << self.pages) - 1
    }

    /// The pages that these blocks are in.
    fn pages_of(&self, blocks: u8) -> u8 {
        (0..self.blocks).filter(|i| blocks & 1 << i != 0).fold(0, |all, i| all | self.overlap[i as usize])
    }

    /// The blocks that are in these pages, wholly or in part.
    fn blocks_in(&self, pages: u8) -> u8 {
        (0..self.blocks).filter(|&i| self.overlap[i as usize] & pages != 0).fold(0, |all, i| all | 1 << i)
    }

    /// The pages of which no block has lost its bit. What is behind the last block is not looked at.
    fn free_pages(&self, bits: u8) -> u8 {
        self.pages_of(self.all()) & !self.pages_of(!bits)
    }

    /// The pages of blocks that may have been handed out.
    fn used_pages(&self, fresh: u8) -> u8 {
        self.pages_of((1 << fresh) - 1)
    }

    /// Two sweeps later every wholly free page has been returned, unless its slab is kept, and no block is claimed.
    fn returns_all(&self, s: &State) -> Result<(), Bad> {
        let mut later = *s;
        for _ in 0..2 {
            self.sweep_alone(&mut later)?;
            self.accounted(&later)?;
        }
        if later.records() != 0 {
            return Err((Fault::Lost, "blocks stay claimed"));
        }
        if later.memory == Memory::Slab
            && self.free_pages(later.bits) & self.used_pages(later.fresh) & !later.returned != 0
        {
            // A policy may keep an empty slab; but nothing else keeps a page.
            if s.list != Place::Empty {
                return Err((Fault::Stuck, "a free page is not returned by two sweeps"));
            }
        }
        Ok(())
    }
}

impl Model for Claim {
    type State = State;

    fn initial(&self) -> Vec<State> {
        let zone = if self.zone { Zone::InUse } else { Zone::None };
        let mut s = State {
            memory: Memory::Free,
            owner: 0,
            zone,
            bits: 0,
            free: 0,
            place: Place::Unlisted,
            trigger: 0,
            candidates: 0,
            returned: 0,
            fresh: 0,
            clean: true,
            list: Place::Unlisted,
            touched: false,
            waiting: false,
            slabs: [0; 2],
            purge: 0,
            records: [0; SLICES],
            threads: [Thread::IDLE; 2],
            sweeper: Sweeper::IDLE,
            out: 0,
            lost: 0,
            resident: 0,
            quiet: 0,
            child: false,
            interrupted: 0,
        };
        s.leave_slab(true);
        vec![s]
    }

    fn steps(&self, s: &State, steps: &mut Steps<State>) {
        for who in 0..2 {
            self.thread(s, who, steps);
        }
        self.sweeper(s, steps);
        if s.memory != Memory::Slab && s.slabs[s.owner as usize] == 0 {
            if s.memory == Memory::Free {
                let span = State { memory: Memory::Span, clean: false, resident: self.all_pages(), ..*s };
                steps.to("the run becomes something else", span);
                steps.to("the run is discarded", State { clean: true, resident: 0, ..*s });
            } else {
                steps.to("the run is free again", State { memory: Memory::Free, touched: true, ..*s });
            }
        }
        self.forks(s, steps);
    }

    fn least(&self) -> Fault {
        self.least
    }

    fn check(&self, s: &State, last: bool) -> Result<(), Bad> {
        if last {
            return Err((Fault::Stuck, "nobody can go on"));
        }
        if s.memory != Memory::Slab {
            if s.clean && s.resident != 0 {
                return Err((Fault::Twice, "a run that is said to read zero does not"));
            }
            return Ok(());
        }
        if s.bits & (s.out | s.lost | s.threads[0].hand) != 0 {
            return Err((Fault::Twice, "a block that somebody has is free"));
        }
        self.accounted(s)?;
        if s.returned & s.resident != 0 {
            return Err((Fault::Inexact, "a page that counts as returned is in memory"));
        }
        if s.slabs[s.owner as usize] == 0 {
            self.lists(s)?;
        }
        if self.is_quiet(s) {
            self.returns_all(s)?;
        }
        Ok(())
    }
}
