//! A fork at any instant, and what the child repairs.

use super::super::explore::{Bad, Fault, Steps};
use super::state::{At, HOMES, OTHER, Place, SWEEPER, State, Step, Sweeper, THREADS, Thread, Zone};
use super::{Claim, Mutant};

impl Claim {
    /// The child has one of our threads, interrupted where it is by the signal handler that forks, or none of them; other threads of
    /// its own come later.
    pub(super) fn forks(&self, s: &State, steps: &mut Steps<State>) {
        if s.child || !self.forks {
            return;
        }
        for forker in [None, Some(0), Some(1), Some(SWEEPER)] {
            let idle = match forker {
                None => false,
                Some(SWEEPER) => s.sweeper.at == Step::Idle,
                Some(who) => s.threads[who].at == At::Idle,
            };
            if !idle {
                steps.result("fork", self.fork(*s, forker));
            }
        }
    }

    fn fork(&self, mut s: State, forker: Option<usize>) -> Result<State, Bad> {
        let vanished = |word: u8| word != 0 && forker != Some(word as usize - 1);
        s.child = true;
        s.interrupted = forker.map_or(0, |who| 1 << who);
        let purge_vanished = vanished(s.purge);
        let swept = s.purge == SWEEPER as u8 + 1;
        let mut damaged: [bool; HOMES] = s.slabs.map(vanished);
        for who in 0..THREADS - 1 {
            if forker != Some(who) {
                s.lost |= s.threads[who].hand;
                s.threads[who] = Thread::IDLE;
            }
        }
        if forker != Some(SWEEPER) {
            s.sweeper = Sweeper::IDLE;
        }
        if purge_vanished {
            let mine = !vanished(s.slabs[s.owner as usize]) && s.slabs[s.owner as usize] != 0;
            let keeps = mine && !self.has(Mutant::RepairSetsLocked);
            if s.records() != 0 && !keeps && !self.has(Mutant::RepairForgetsRecords) {
                self.set_records(&mut s);
                damaged[s.owner as usize] = true;
            }
            if self.has(Mutant::RepairForgetsRecords) {
                s.records = [0; 2];
            }
            // What the vanished sweeper has taken notice of, nobody knows.
            if swept && !self.has(Mutant::RepairForgetsFlag) {
                s.touched = true;
            }
            s.purge = 0;
        }
        for (home, damaged) in damaged.into_iter().enumerate() {
            if damaged && s.owner as usize == home && s.memory == super::state::Memory::Slab {
                self.relist(&mut s);
            }
            if vanished(s.slabs[home]) {
                s.slabs[home] = 0;
            }
        }
        self.finish_zone(&mut s, forker)?;
        self.accounted(&s)?;
        Ok(s)
    }

    /// `finish_vanished`.
    fn finish_zone(&self, s: &mut State, forker: Option<usize>) -> Result<(), Bad> {
        if !matches!(s.zone, Zone::Deleted | Zone::Destroyed) || forker == Some(OTHER) {
            return Ok(());
        }
        let busy = s.purge != 0 && !self.has(Mutant::FinishIgnoresPurge);
        if s.owner == 0 && s.memory == super::state::Memory::Slab {
            if busy || s.slabs[0] != 0 {
                // Later: when this thread has left the section, or the sweep.
                s.threads[OTHER] = Thread { at: At::EndPurge, ..Thread::IDLE };
                return Ok(());
            }
            self.leave(s)?;
        }
        (s.zone, s.owner) = (Zone::None, 1);
        Ok(())
    }

    /// Every block is somewhere.
    pub(super) fn accounted(&self, s: &State) -> Result<(), Bad> {
        let hands = s.threads[0].hand | s.threads[1].hand;
        let sweeps = s.sweeper.at != Step::Idle;
        let claimed = if sweeps { s.sweeper.claimed } else { 0 } | self.blocks_in(s.records());
        let known = s.bits | s.out | s.lost | hands | claimed;
        if s.memory == super::state::Memory::Slab && known != self.all() {
            return Err((Fault::Lost, "a block is nowhere"));
        }
        Ok(())
    }

    /// What holds whenever nobody is in the slabs of the slab's home.
    pub(super) fn lists(&self, s: &State) -> Result<(), Bad> {
        if s.free as u32 != s.bits.count_ones() {
            return Err((Fault::Inexact, "H1: the count is not the number of bits"));
        }
        if s.list != s.place {
            return Err((Fault::Stuck, "the slab is on another list than it says"));
        }
        if s.place == Place::Unlisted && (s.free != 0 || s.trigger != 1) {
            return Err((Fault::Lost, "a slab with free blocks is on no list"));
        }
        if (s.place == Place::Empty) != (s.free == self.blocks && s.place != Place::Current) && !self.is_zone(s) {
            return Err((Fault::Stuck, "a wholly free slab is on the wrong list"));
        }
        Ok(())
    }
}
