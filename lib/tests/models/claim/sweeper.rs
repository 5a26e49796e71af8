//! The sweeper: claim wholly free pages under the slabs' lock, have the kernel discard them without it, give the blocks back.

use super::super::explore::{Bad, Fault, Steps};
use super::state::{HOMES, Memory, Place, SLICES, SWEEPER, State, Step, Sweeper};
use super::{Claim, Mutant};

const ME: u8 = SWEEPER as u8 + 1;

/// What the kernel or chance decides, besides when.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The kernel discards; an empty slab goes to the arena.
    Plain,
    /// The kernel refuses; an empty slab is kept.
    Refuse,
    /// The home is locked by this thread, which a signal handler has interrupted there.
    Skip,
}

impl Claim {
    pub(super) fn sweeper(&self, s: &State, steps: &mut Steps<State>) {
        if s.sweeper.at == Step::Idle {
            for forced in [false, true] {
                if s.purge == 0 && !(forced && self.has(Mutant::CandidateKept)) {
                    let mut next = *s;
                    next.purge = ME;
                    next.sweeper = Sweeper { at: Step::Begin, forced, ..Sweeper::IDLE };
                    steps.to(if forced { "sweep: forced" } else { "sweep: aged" }, next);
                }
            }
            return;
        }
        for choice in [Choice::Plain, Choice::Refuse, Choice::Skip] {
            let mut next = *s;
            match self.sweep_step(&mut next, choice) {
                Ok(None) => {}
                Ok(Some(name)) => steps.to(name, next),
                Err(bad) => steps.result("the sweeper", Err(bad)),
            }
        }
    }

    /// One step; `None`: it has to wait, or there is no such choice.
    pub(super) fn sweep_step(&self, s: &mut State, choice: Choice) -> Result<Option<&'static str>, Bad> {
        let mut w = s.sweeper;
        let chooses = match w.at {
            Step::Lock | Step::Relock => choice == Choice::Skip,
            Step::Discard => choice == Choice::Refuse,
            Step::Look => choice == Choice::Refuse && s.list == Place::Empty,
            _ => false,
        };
        if choice != Choice::Plain && !chooses {
            return Ok(None);
        }
        let name = match w.at {
            Step::Begin => {
                w.pages = if self.has(Mutant::RecordsNotFound) { 0 } else { s.records() };
                w.recovers = w.pages != 0;
                w.left = w.pages;
                w.at = if w.recovers { Step::Relock } else { Step::Flag };
                if w.recovers {
                    w.claimed = self.blocks_in(w.pages);
                }
                "sweep: records found?"
            }
            Step::Flag => {
                let wanted = w.forced || s.touched || s.waiting;
                if !self.has(Mutant::FlagAfterLook) {
                    (s.touched, s.waiting) = (false, false);
                }
                w.at = if wanted { Step::Find } else { Step::Leave };
                "sweep: take the flags"
            }
            Step::Find => {
                w.home = s.owner;
                w.at = if s.memory == Memory::Slab { Step::Lock } else { Step::Leave };
                w.waits = false;
                if self.has(Mutant::ClaimUnlocked) && w.at == Step::Lock {
                    w.at = Step::Look;
                }
                "sweep: find the slab"
            }
            Step::Lock | Step::Relock => return self.sweep_lock(s, choice),
            Step::Look => {
                s.sweeper = w;
                return self.look(s, choice).map(Some);
            }
            Step::Record | Step::ClearFirst | Step::Clear | Step::Count | Step::Unlock => self.claim(s, &mut w),
            Step::Discard => {
                let page = w.left & w.left.wrapping_neg();
                w.left &= !page;
                if choice == Choice::Plain {
                    self.discard(s, page)?;
                    w.done |= page;
                }
                if w.left == 0 {
                    w.at = if self.has(Mutant::MadviseFirst) { Step::Record } else { Step::Relock };
                    w.left = w.pages;
                }
                if choice == Choice::Plain { "sweep: discard" } else { "sweep: the kernel refuses" }
            }
            _ => return self.give_back(s),
        };
        s.sweeper = w;
        Ok(Some(name))
    }

    fn sweep_lock(&self, s: &mut State, choice: Choice) -> Result<Option<&'static str>, Bad> {
        let w = &mut s.sweeper;
        let first = w.at == Step::Lock;
        if !first {
            w.home = s.owner; // looked up again
        }
        let lock = s.slabs[w.home as usize];
        if choice == Choice::Skip {
            // By the thread that sweeps now, in its signal handler. Not while it has claims itself.
            let mine = s.interrupted & lock.checked_sub(1).map_or(0, |who| 1 << who) != 0;
            if !mine || !(first || w.recovers) {
                return Ok(None);
            }
            w.waits = !self.has(Mutant::SkipForgets);
            w.claimed = 0; // the records that it leaves are nobody's
            w.at = Step::Leave;
            if self.has(Mutant::RecordsOverwritten) && w.recovers {
                s.records = [0; SLICES];
            }
            return Ok(Some("sweep: locked by me, skip"));
        }
        if lock != 0 {
            return Ok(None);
        }
        s.slabs[w.home as usize] = ME;
        w.at = if first { Step::Look } else { Step::Mark };
        Ok(Some("sweep: lock"))
    }

    /// Under the lock: which pages are wholly free, and which of them are to be discarded?
    fn look(&self, s: &mut State, choice: Choice) -> Result<&'static str, Bad> {
        let mut w = s.sweeper;
        w.word = s.bits;
        w.at = Step::UnlockEnd;
        if s.memory != Memory::Slab || s.owner != w.home {
            w.waits = true; // it changed hands just now: next time
            s.sweeper = w;
            return Ok("sweep: another owner");
        }
        let quiet = s.quiet;
        s.quiet = self.free_pages(s.bits);
        if s.list == Place::Empty && !self.has(Mutant::EmptyClaimed) {
            let aged = s.candidates == self.all_pages();
            if w.forced || aged {
                if choice == Choice::Plain || w.forced {
                    s.sweeper = w;
                    self.give_to_arena(s)?;
                    return Ok("sweep: the empty slab goes to the arena");
                }
            } else {
                s.candidates = self.all_pages();
                w.waits = true;
            }
            s.sweeper = w;
            return Ok("sweep: the empty slab stays");
        }
        let free = s.quiet & self.used_pages(s.fresh) & !s.returned;
        w.pages = if w.forced { free } else { free & s.candidates };
        if w.pages & !quiet != 0 && !w.forced {
            return Err((Fault::Inexact, "an aged sweep discards a page that was not quiet since the last one"));
        }
        s.candidates = free & !w.pages;
        w.waits = s.candidates != 0;
        (w.left, w.done) = (w.pages, 0);
        if w.pages != 0 {
            w.at = match self.mutant {
                Mutant::RecordAfterClear => Step::ClearFirst,
                Mutant::MadviseFirst => Step::Discard,
                _ => Step::Record,
            };
            if self.has(Mutant::MadviseFirst) {
                s.slabs[w.home as usize] = 0; // and it looks no more
            }
        }
        s.sweeper = w;
        Ok("sweep: look")
    }

    fn claim(&self, s: &mut State, w: &mut Sweeper) -> &'static str {
        let blocks = self.blocks_in(w.pages);
        match w.at {
            Step::Record => {
                if self.has(Mutant::MadviseFirst) {
                    s.slabs[w.home as usize] = ME;
                    w.word = s.bits;
                }
                let next = (0..SLICES).find(|&slice| w.pages & self.slices[slice] & !s.records[slice] != 0);
                if let Some(slice) = next {
                    s.records[slice] = w.pages & self.slices[slice];
                    return "sweep: record";
                }
                w.at = if self.has(Mutant::RecordAfterClear) { Step::Count } else { Step::ClearFirst };
                "sweep: recorded"
            }
            Step::ClearFirst => {
                let first = blocks & blocks.wrapping_neg();
                s.bits = w.word & !first;
                w.word = s.bits;
                w.claimed = first;
                w.at = Step::Clear;
                "sweep: clear the first bits"
            }
            Step::Clear => {
                s.bits = w.word & !blocks;
                w.claimed = blocks;
                w.at = if self.has(Mutant::RecordAfterClear) { Step::Record } else { Step::Count };
                "sweep: clear the other bits"
            }
            Step::Count => {
                if !self.has(Mutant::CountedEarly) {
                    s.free = s.free.wrapping_sub(blocks.count_ones() as u8);
                }
                w.at = Step::Unlock;
                "sweep: count"
            }
            _ => {
                if !self.has(Mutant::ClaimUnlocked) {
                    s.slabs[w.home as usize] = 0;
                }
                w.at = if self.has(Mutant::MadviseFirst) { Step::Relock } else { Step::Discard };
                "sweep: unlock"
            }
        }
    }

    fn discard(&self, s: &mut State, page: u8) -> Result<(), Bad> {
        if s.memory != Memory::Slab {
            return Err((Fault::Twice, "a page is discarded that is something else by now"));
        }
        if (0..self.blocks).any(|i| s.out & 1 << i != 0 && self.overlap[i as usize] & page != 0) {
            return Err((Fault::Twice, "a page under a live block is discarded"));
        }
        s.resident &= !page;
        Ok(())
    }

    fn give_back(&self, s: &mut State) -> Result<Option<&'static str>, Bad> {
        let mut w = s.sweeper;
        let of_slice = |pages: u8| if self.has(Mutant::SliceBySlice) { pages & self.first_slice(pages) } else { pages };
        let name = match w.at {
            Step::Mark => {
                w.pages = of_slice(w.left);
                let refused = w.pages & !w.done;
                s.returned |=
                    if self.has(Mutant::ReturnedThoughRefused) && !w.recovers { w.pages } else { w.pages & w.done };
                if !self.has(Mutant::RefusedForgotten) {
                    s.candidates |= refused;
                    w.waits |= refused != 0;
                }
                w.at = Step::SetFirst;
                "give back: returned"
            }
            Step::SetFirst => {
                w.word = s.bits;
                w.at = Step::Set;
                if self.has(Mutant::RecordClearedFirst) {
                    s.records = [0; SLICES];
                } else {
                    let blocks = self.blocks_in(w.pages) & !w.word;
                    let first = blocks & blocks.wrapping_neg();
                    s.bits = w.word | first;
                    w.claimed &= !first;
                }
                "give back: set the first bits"
            }
            Step::Set => {
                let blocks = self.blocks_in(w.pages);
                if blocks & (s.out | s.lost | s.threads[0].hand | s.threads[1].hand) != 0 {
                    return Err((Fault::Twice, "a block is given back that somebody has"));
                }
                s.bits = w.word | blocks;
                w.claimed &= !blocks;
                w.at = Step::CountBack;
                "give back: set the other bits"
            }
            Step::CountBack => {
                if !self.has(Mutant::CountedEarly) {
                    s.free += (self.blocks_in(w.pages) & !w.word).count_ones() as u8;
                }
                w.at = match self.mutant {
                    Mutant::RecordClearedLate => Step::List,
                    Mutant::UnlockBeforeList => Step::UnlockEnd,
                    _ => Step::Forget,
                };
                if self.has(Mutant::UnlockBeforeList) {
                    s.records = [0; SLICES];
                }
                "give back: count"
            }
            Step::Forget | Step::ForgetLate => {
                let next = (0..SLICES).find(|&slice| s.records[slice] & w.pages != 0);
                if let Some(slice) = next {
                    s.records[slice] = 0;
                } else if w.at == Step::ForgetLate {
                    w.at = Step::Leave;
                } else {
                    w.at = Step::List;
                }
                "give back: clear the record"
            }
            Step::List => {
                let moves = match s.place {
                    Place::Unlisted => s.free != 0 && !self.has(Mutant::NotListed),
                    Place::Partial => s.free == self.blocks,
                    _ => false,
                };
                if moves {
                    self.returned(s)?;
                }
                w.at = if self.has(Mutant::UnlockBeforeList) { Step::Leave } else { Step::UnlockEnd };
                "give back: list"
            }
            Step::UnlockEnd => {
                for home in 0..HOMES {
                    if s.slabs[home] == ME {
                        s.slabs[home] = 0;
                    }
                }
                w.at = self.after_unlock(&mut w);
                "sweep: unlock, done with the slab"
            }
            _ => {
                if w.forced && self.has(Mutant::FlagAfterLook) || w.at == Step::Leave && self.has(Mutant::FlagAfterLook)
                {
                    (s.touched, s.waiting) = (false, false);
                }
                s.waiting |= w.waits;
                s.purge = 0;
                w = Sweeper::IDLE;
                s.interrupted &= !(1 << SWEEPER);
                "sweep: end"
            }
        };
        s.sweeper = w;
        Ok(Some(name))
    }

    fn after_unlock(&self, w: &mut Sweeper) -> Step {
        if self.has(Mutant::SliceBySlice) && w.pages != 0 && w.left & !w.pages != 0 {
            w.left &= !w.pages;
            return Step::Relock;
        }
        if std::mem::take(&mut w.recovers) {
            (w.pages, w.left, w.done) = (0, 0, 0);
            return Step::Flag;
        }
        match self.mutant {
            Mutant::UnlockBeforeList if w.pages != 0 => Step::List,
            Mutant::RecordClearedLate if w.pages != 0 => Step::ForgetLate,
            _ => Step::Leave,
        }
    }

    fn first_slice(&self, pages: u8) -> u8 {
        self.slices.into_iter().find(|slice| slice & pages != 0).unwrap_or(0)
    }

    /// A whole sweep, with nobody else about and a kernel that agrees.
    pub(super) fn sweep_alone(&self, s: &mut State) -> Result<(), Bad> {
        s.purge = ME;
        s.sweeper = Sweeper { at: Step::Begin, ..Sweeper::IDLE };
        while s.sweeper.at != Step::Idle {
            self.sweep_step(s, Choice::Plain)?.ok_or((Fault::Stuck, "a sweep waits for ever"))?;
        }
        Ok(())
    }
}
