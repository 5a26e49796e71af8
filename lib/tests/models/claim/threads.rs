//! Threads that take blocks from the slab and give them back (`heap/bits.rs`), give the empty slab to the arena, and end the zone
//! (`heap/zone/end.rs`). Each has the slabs locked, so that only a fork can see what is between two of their stores.

use super::super::explore::{Bad, Fault, Steps};
use super::state::{At, Memory, NO_TRIGGER, OTHER, OWNER, Place, State, Step, Thread, Zone};
use super::{Claim, Mutant};

impl Claim {
    pub(super) fn is_zone(&self, s: &State) -> bool {
        self.zone && s.owner == 0
    }

    pub(super) fn thread(&self, s: &State, who: usize, steps: &mut Steps<State>) {
        let t = &s.threads[who];
        match t.at {
            At::Idle => self.begin(s, who, steps),
            At::TakeLoad => self.choose(s, who, steps),
            _ => {
                let mut next = *s;
                match self.thread_step(&mut next, who) {
                    Ok(None) => {}
                    Ok(Some(name)) => steps.to(name, next),
                    Err(bad) => steps.result("a thread", Err(bad)),
                }
            }
        }
    }

    /// Calls that a thread may make.
    fn begin(&self, s: &State, who: usize, steps: &mut Steps<State>) {
        let home = s.owner as usize;
        let (me, ends) = (who as u8 + 1, matches!(s.zone, Zone::Deleted | Zone::Destroyed) && s.owner == 0);
        let unlocked = s.slabs[home] == 0;
        let mut to = |name, at: At, change: &dyn Fn(&mut State)| {
            let mut next = *s;
            next.threads[who] = Thread { at, home: s.owner, ..Thread::IDLE };
            if at != At::EndPurge && at != At::PutWait {
                next.slabs[home] = me;
            }
            change(&mut next);
            steps.to(name, next);
        };
        // Z5: nobody allocates from a zone that is being ended.
        if who == OWNER && unlocked && !ends {
            match s.memory {
                Memory::Slab if s.list != Place::Unlisted => to("take: lock", At::Current, &|_| {}),
                Memory::Free => to("create: lock", At::Current, &|next| self.create(next)),
                _ => {}
            }
        }
        if s.memory == Memory::Slab && !(ends && s.zone == Zone::Destroyed) {
            for block in (0..self.blocks).map(|i| 1 << i).filter(|block| s.out & block != 0) {
                let waits = self.has(Mutant::TouchBeforeLock) || self.zone;
                if waits || unlocked {
                    let at = if waits { At::PutWait } else { At::TouchTest };
                    to("put: a block", at, &|next| {
                        next.out &= !block;
                        next.threads[who].hand = block;
                        next.threads[who].blocks = block;
                        next.threads[who].full = s.touched;
                    });
                }
            }
        }
        if who == OTHER && unlocked && s.list == Place::Empty && s.memory == Memory::Slab {
            to("give up: lock", At::GiveUp, &|_| {});
        }
        if who == OTHER && s.zone == Zone::InUse {
            to("end: delete", At::EndPurge, &|next| next.zone = Zone::Deleted);
            // Nobody uses a block any more: none is on its way back, none is in a stack.
            if s.threads[OWNER].at == At::Idle && s.memory == Memory::Slab {
                to("end: destroy", At::EndPurge, &|next| next.zone = Zone::Destroyed);
            }
        }
    }

    fn create(&self, s: &mut State) {
        s.memory = Memory::Slab;
        s.fresh = if std::mem::take(&mut s.clean) { 0 } else { self.blocks };
        s.bits = self.all();
        s.free = self.blocks;
        s.place = Place::Unlisted;
        (s.candidates, s.returned, s.quiet) = (0, 0, 0);
        s.list = Place::Partial; // `current` takes it from no list
        s.touched |= s.fresh != 0 && !self.has(Mutant::CreateForgets);
    }

    /// Load the bitmap; a stack has room for one block, or for all.
    fn choose(&self, s: &State, who: usize, steps: &mut Steps<State>) {
        let word = s.bits;
        let one = word & word.wrapping_neg();
        for (blocks, full) in [(one, true), (word, false)] {
            if (full && one == 0) || (!full && one == word && one != 0 && word.count_ones() == 1 && s.free > 1) {
                continue;
            }
            let mut next = *s;
            let t = &mut next.threads[who];
            (t.word, t.blocks, t.full, t.at) = (word, blocks, full, At::TakeStore);
            steps.to("take: load bits", next);
        }
    }

    /// Of blocks just taken: `used` are those that may have been handed out before.
    fn said_to_read_zero(&self, mut taken: u8, used: u8) -> u8 {
        if !self.has(Mutant::ClaimedCountAsFresh) {
            return taken & !used;
        }
        // So many of the last ones.
        let count = (8 - taken.leading_zeros()).saturating_sub(used.count_ones());
        for _ in count..taken.count_ones() {
            taken &= taken - 1;
        }
        taken
    }

    fn thread_step(&self, s: &mut State, who: usize) -> Result<Option<&'static str>, Bad> {
        let me = who as u8 + 1;
        let mut t = s.threads[who];
        let name = match t.at {
            At::Current => {
                s.touched |= s.list == Place::Empty && !self.has(Mutant::KeptForgotten);
                if s.list != Place::Current {
                    s.candidates &= !self.slices[0];
                }
                (s.list, s.place, s.trigger) = (Place::Current, Place::Current, NO_TRIGGER);
                t.at = At::TakeLoad;
                "take: current"
            }
            At::TakeStore => {
                if t.blocks & !t.word != 0 || t.blocks & (s.out | s.lost | s.threads[1 - who].hand) != 0 {
                    return Err((Fault::Twice, "a block is taken that somebody has"));
                }
                s.bits = t.word & !t.blocks;
                t.hand = t.blocks;
                t.at = At::TakeCount;
                "take: store bits"
            }
            At::TakeCount => {
                let used = (1 << s.fresh) - 1;
                if self.said_to_read_zero(t.blocks, used) & used != 0 {
                    return Err((Fault::Twice, "a block that was in use is said to read zero"));
                }
                s.free = s.free.wrapping_sub(t.blocks.count_ones() as u8);
                let pages = self.pages_of(t.blocks);
                if !self.has(Mutant::CandidateKept) {
                    s.candidates &= !pages;
                }
                s.returned &= !pages;
                s.fresh = s.fresh.max(8 - t.blocks.leading_zeros() as u8);
                s.quiet &= !pages;
                t.at = At::UsedUp;
                "take: count"
            }
            At::UsedUp => {
                if s.free == 0 && !t.full {
                    (s.list, s.place, s.trigger) = (Place::Unlisted, Place::Unlisted, 1);
                }
                t.at = At::Unlock;
                "take: used up?"
            }
            At::PutWait if s.slabs[t.home as usize] != 0 => return Ok(None),
            At::PutWait if t.home != s.owner => {
                t.home = s.owner;
                "put: another owner"
            }
            At::PutWait => {
                s.slabs[t.home as usize] = me;
                t.at = At::TouchTest;
                "put: lock"
            }
            At::TouchTest | At::TouchSet | At::PutLoad | At::PutStore | At::PutCount | At::PutList => {
                self.put(s, &mut t)?
            }
            At::GiveUp => {
                self.give_to_arena(s)?;
                t.at = At::Unlock;
                "give up: to the arena"
            }
            At::Unlock => {
                s.out |= t.hand;
                s.resident |= self.pages_of(t.hand);
                s.slabs[t.home as usize] = 0;
                t = Thread::IDLE;
                s.interrupted &= !(1 << who);
                "unlock"
            }
            _ => return self.end(s, who),
        };
        s.threads[who] = t;
        Ok(Some(name))
    }

    fn put(&self, s: &mut State, t: &mut Thread) -> Result<&'static str, Bad> {
        Ok(match t.at {
            At::TouchTest => {
                // Before the lock it would be too early.
                let seen = if self.has(Mutant::TouchBeforeLock) { t.full } else { s.touched };
                t.at = if seen { At::PutLoad } else { At::TouchSet };
                "put: look at the flag"
            }
            At::TouchSet => {
                s.touched = true;
                t.at = At::PutLoad;
                "put: set the flag"
            }
            At::PutLoad => {
                t.word = s.bits;
                if s.memory != Memory::Slab || t.word & t.blocks != 0 {
                    return Err((Fault::Twice, "a block comes back to a slab that is gone, or is free there"));
                }
                t.at = At::PutStore;
                "put: load bits"
            }
            At::PutStore => {
                s.bits = t.word | t.blocks;
                t.hand = 0;
                t.at = At::PutCount;
                "put: store bits"
            }
            At::PutCount => {
                s.free += 1;
                t.at = At::PutList;
                "put: count"
            }
            _ => {
                if s.free == s.trigger {
                    self.returned(s)?;
                }
                t.at = At::Unlock;
                "put: list"
            }
        })
    }

    /// `slab::returned`: the slab belongs on a list, or on another.
    pub(super) fn returned(&self, s: &mut State) -> Result<(), Bad> {
        if s.free == self.blocks && self.is_zone(s) {
            return self.give_to_arena(s);
        }
        let place = if s.free == self.blocks { Place::Empty } else { Place::Partial };
        (s.list, s.place) = (place, place);
        s.trigger = if place == Place::Empty { NO_TRIGGER } else { self.blocks };
        Ok(())
    }

    /// Where it belongs after a repair, or with a new owner: `slab::relist`.
    pub(super) fn relist(&self, s: &mut State) {
        s.free = s.bits.count_ones() as u8;
        (s.list, s.place, s.trigger) = (Place::Unlisted, Place::Unlisted, s.free + 1);
        if s.free == self.blocks && self.is_zone(s) {
            (s.list, s.place, s.trigger) = (Place::Partial, Place::Partial, self.blocks);
        } else if s.free != 0 {
            // `relist` never gives a slab back.
            let _ = self.returned(s);
        }
    }

    pub(super) fn give_to_arena(&self, s: &mut State) -> Result<(), Bad> {
        if s.out != 0 || s.threads.iter().any(|t| t.hand != 0) {
            return Err((Fault::Twice, "a slab with blocks out goes back to the arena"));
        }
        if s.sweeper.claimed != 0 || s.records() != 0 {
            return Err((Fault::Twice, "a slab with claimed blocks goes back to the arena"));
        }
        // `slab::residence`.
        let all_used = s.fresh == self.blocks && !self.has(Mutant::TailForgotten);
        let used = if all_used { self.all_pages() } else { self.used_pages(s.fresh) };
        s.leave_slab((s.returned | !used) & self.all_pages() == self.all_pages());
        s.touched |= !s.clean;
        Ok(())
    }

    /// `mi_heap_delete` and `mi_heap_destroy`: one slab leaves.
    fn end(&self, s: &mut State, who: usize) -> Result<Option<&'static str>, Bad> {
        let me = who as u8 + 1;
        let mut t = s.threads[who];
        let ignores = self.has(Mutant::EndIgnoresPurge);
        let name = match t.at {
            At::EndPurge if ignores => {
                t.at = At::EndLock;
                "end: do not wait for the sweep"
            }
            At::EndPurge if s.purge != 0 => return Ok(None),
            At::EndPurge => {
                s.purge = me;
                t.at = At::EndRecords;
                "end: purge lock"
            }
            At::EndRecords if s.records() == 0 || self.has(Mutant::EndKeepsRecords) => {
                t.at = At::EndLock;
                "end: no records"
            }
            At::EndRecords if s.slabs[s.owner as usize] != 0 => return Ok(None),
            At::EndRecords => {
                // Nobody can see this but a child, and that sets the bits again.
                self.set_records(s);
                self.relist(s);
                t.at = At::EndLock;
                "end: give back what a vanished sweeper has claimed"
            }
            At::EndLock if s.slabs[0] != 0 => return Ok(None),
            At::EndLock => {
                s.slabs[0] = me;
                t.at = At::EndLeave;
                "end: lock"
            }
            At::EndLeave if s.memory != Memory::Slab || s.owner != 0 => {
                t.at = At::EndUnlock;
                "end: nothing there"
            }
            At::EndLeave if s.zone == Zone::Deleted && s.slabs[1] != 0 => return Ok(None),
            At::EndLeave => {
                self.leave(s)?;
                t.at = At::EndUnlock;
                "end: the slab leaves"
            }
            _ => {
                s.slabs[0] = 0;
                s.zone = Zone::None;
                s.owner = 1;
                if s.purge == me {
                    s.purge = 0;
                }
                t = Thread::IDLE;
                s.interrupted &= !(1 << who);
                "end: unlock"
            }
        };
        s.threads[who] = t;
        Ok(Some(name))
    }

    /// `leave_one`, under the locks of both owners.
    pub(super) fn leave(&self, s: &mut State) -> Result<(), Bad> {
        if s.zone == Zone::Destroyed {
            s.out = 0;
            self.give_to_arena(s)?;
        } else if s.free == self.blocks {
            self.give_to_arena(s)?;
        } else {
            s.owner = 1;
            self.relist(s);
        }
        s.owner = 1;
        Ok(())
    }

    /// Bits of all records, which are cleared after that.
    pub(super) fn set_records(&self, s: &mut State) {
        s.bits |= self.blocks_in(s.records());
        s.records = [0; 2];
        s.sweeper.claimed = 0;
    }

    /// The sweeper is not in the middle of anything.
    pub(super) fn is_quiet(&self, s: &State) -> bool {
        s.sweeper.at == Step::Idle && s.threads.iter().all(|t| t.at == At::Idle)
    }
}
