//! The owner: `Magazine::pop`, `Magazine::push`, `allocate_slow` and `release_slow`, one load or store at a time, and its signal
//! handler, which makes the same calls in between.

use super::super::explore::{Bad, Fault, Steps};
use super::state::{BOTTOM, FREE, FREE_TOP, Frame, OWNER, State, TOP, bit};
use super::thief::Step;
use super::{Code, Forker, Mutant, Steal};

/// What a call does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub(crate) enum At {
    Idle,
    // The pop.
    LoadTop,
    StoreTop,
    LoadBottom,
    ReadSlot,
    // The slow path of malloc, up to the lock.
    Entry,
    Slow,
    UndoLoad,
    UndoStore,
    // Under the lock: `settle_pop`.
    SettleBottom,
    SettleTop,
    SettleStore,
    Settled,
    // `enter`.
    CloseBottom,
    CloseLimit,
    // The change.
    ReadEpoch,
    Event,
    Fill,
    SwapTop,
    RefillTop,
    FlushBlock,
    Pop,
    // `leave`.
    OpenBottom,
    OpenLimit,
    Unbusy,
    Unlock,
    Return,
    // The push.
    LoadFree,
    StoreSlot,
    StoreFree,
    // The slow path of free.
    FreeSlow,
    RoomLock,
}

impl At {
    /// All of them, for looking at each.
    pub(crate) fn all() -> impl Iterator<Item = At> {
        use At::*;
        [
            Idle,
            LoadTop,
            StoreTop,
            LoadBottom,
            ReadSlot,
            Entry,
            Slow,
            UndoLoad,
            UndoStore,
            SettleBottom,
            SettleTop,
            SettleStore,
            Settled,
            CloseBottom,
            CloseLimit,
            ReadEpoch,
            Event,
            Fill,
            SwapTop,
            RefillTop,
            FlushBlock,
            Pop,
            OpenBottom,
            OpenLimit,
            Unbusy,
            Unlock,
            Return,
            LoadFree,
            StoreSlot,
            StoreFree,
            FreeSlow,
            RoomLock,
        ]
        .into_iter()
    }

    pub(crate) fn mask(self) -> u64 {
        1 << self as u8
    }
}

impl Steal {
    /// Stores of the owner become visible: in order, or, where memory is weak, in any order that respects a release and the
    /// order of stores to one word.
    pub(crate) fn drains(&self, state: &State, steps: &mut Steps<State>) {
        let stores = state.owner.stores();
        for (i, &(word, _)) in stores.iter().enumerate() {
            let releases = word == FREE_TOP && !self.has(Mutant::NoRelease);
            let waits = if self.weak { releases || stores[..i].iter().any(|store| store.0 == word) } else { true };
            if i == 0 || !waits {
                let mut next = *state;
                let store = next.owner.remove(i);
                next.set_memory(store);
                steps.to("a store of the owner becomes visible", next);
            }
        }
        let at = state.frames[0].at;
        if self.weak && state.early.is_none() && matches!(at, At::Idle | At::LoadTop | At::StoreTop) {
            steps.to("the owner loads bottom early", State { early: Some(state.load(BOTTOM)), ..*state });
        }
    }

    /// A signal interrupts the owner.
    pub(crate) fn signal(&self, state: &State, steps: &mut Steps<State>) {
        if state.signals == 0 || state.depth != 0 || self.interrupted_at & state.frames[0].at.mask() == 0 {
            return;
        }
        let mut next = *state;
        next.signals = 0;
        next.depth = 1;
        next.frames[1] = Frame { calls: self.handler_calls, ..Frame::IDLE };
        steps.to("a signal", next);
    }

    pub(crate) fn owner(&self, state: &State, steps: &mut Steps<State>) {
        let frame = &state.frames[state.depth as usize];
        if frame.at == At::Idle {
            self.begin(state, steps);
        } else if frame.at == At::Event {
            self.event(state, steps);
        } else if !state.owner.is_full() {
            let mut next = *state;
            match self.step(&mut next) {
                Ok(None) => {}
                Ok(Some(name)) => steps.to(name, next),
                Err(bad) => steps.result("the owner", Err(bad)),
            }
        }
    }

    /// Begin a call; at the end of the last one a handler returns.
    fn begin(&self, state: &State, steps: &mut Steps<State>) {
        let depth = state.depth as usize;
        if depth == 1 {
            let mut next = *state;
            next.depth = 0;
            next.frames[1] = Frame::IDLE;
            steps.to("the handler returns", next);
        }
        // A child made by the thief has no other thread before the theft is over.
        let too_early = state.child && state.thief.at != Step::Idle;
        if state.frames[depth].calls == 0 || (too_early && self.forker == Forker::Thief) {
            return;
        }
        let mut next = *state;
        let frame = &mut next.frames[depth];
        let on = state.switch.started & 1 == 1;
        *frame = Frame {
            at: At::LoadTop,
            calls: frame.calls - 1,
            begun_under: if on { state.switch.started } else { 0 },
            ..Frame::IDLE
        };
        steps.to("malloc", next);
        if state.program != 0 {
            let mut next = *state;
            let frame = &mut next.frames[depth];
            let block = state.program.trailing_zeros() as u8 + 1;
            *frame = Frame { at: At::LoadFree, calls: frame.calls - 1, block, tries: 1, ..Frame::IDLE };
            next.program &= !bit(block);
            steps.to("free", next);
        }
    }

    /// A pop has succeeded.
    pub(super) fn popped(&self, s: &mut State) -> Result<(), Bad> {
        s.pops += 1;
        s.since += 1;
        if self.handler_calls == 0 && !s.child && s.epoch & 1 == 1 && s.since > s.drawn {
            return Err((Fault::Inexact, "a due sample was skipped"));
        }
        Ok(())
    }

    /// One step of the call in progress; `None`: it has to wait.
    fn step(&self, s: &mut State) -> Result<Option<&'static str>, Bad> {
        let depth = s.depth as usize;
        let mut f = s.frames[depth];
        let name = match f.at {
            At::LoadTop | At::StoreTop | At::LoadBottom | At::ReadSlot => self.pop(s, &mut f)?,
            At::LoadFree | At::StoreSlot | At::StoreFree => self.push(s, &mut f)?,
            At::Entry => {
                if !self.has(Mutant::NoUndo) {
                    s.store(TOP, s.load(TOP) + 1);
                }
                f.at = At::Slow;
                "take the failed pop back"
            }
            At::Slow if s.lock == OWNER => {
                f.at = if self.code == Code::Now { At::Idle } else { At::UndoLoad };
                "the lock is held by me"
            }
            At::FreeSlow if s.lock == OWNER => {
                s.deferred |= bit(f.block);
                f.at = At::Idle;
                "the lock is held by me: defer"
            }
            At::FreeSlow => {
                f.tries = 2;
                f.at = At::LoadFree;
                "no room"
            }
            At::Slow | At::RoomLock => {
                if s.lock != FREE {
                    return Ok(None);
                }
                s.drain();
                s.early = None;
                s.lock = OWNER;
                f.at = At::SettleBottom;
                "lock"
            }
            At::UndoLoad => {
                f.top = s.load(TOP);
                f.at = At::UndoStore;
                "undo: load top"
            }
            At::UndoStore => {
                s.store(TOP, f.top + 1);
                f.at = At::Idle; // served by another heap
                "undo: store top"
            }
            _ => self.locked(s, &mut f)?,
        };
        s.frames[depth] = if f.at == At::Idle { Frame { calls: f.calls, ..Frame::IDLE } } else { f };
        Ok(Some(name))
    }

    fn pop(&self, s: &mut State, f: &mut Frame) -> Result<&'static str, Bad> {
        let check_first = self.has(Mutant::CheckFirst);
        Ok(match f.at {
            At::LoadTop => {
                f.top = s.load(TOP);
                f.at = if check_first { At::LoadBottom } else { At::StoreTop };
                "pop: load top"
            }
            At::StoreTop => {
                s.store(TOP, f.top - 1);
                f.at = if check_first { At::ReadSlot } else { At::LoadBottom };
                "pop: store top"
            }
            At::LoadBottom => {
                let early = s.early.take();
                f.bottom = early.unwrap_or_else(|| s.load(BOTTOM));
                if f.top - 1 < f.bottom {
                    let early = self.code == Code::Now && !check_first;
                    f.at = if early { At::Entry } else { At::Slow };
                    return Ok("pop: load bottom: fail");
                }
                if f.begun_under != 0 && f.begun_under == s.now && s.epoch != s.now && early.is_none() && !s.child {
                    return Err((Fault::Inexact, "an allocation begun after a start was complete does not notice it"));
                }
                self.popped(s)?;
                f.at = if check_first { At::StoreTop } else { At::ReadSlot };
                "pop: load bottom"
            }
            _ => {
                let block = s.slot(f.top - 1);
                s.claim(block)?;
                s.program |= bit(block);
                f.at = At::Idle;
                "pop: read slot"
            }
        })
    }

    fn push(&self, s: &mut State, f: &mut Frame) -> Result<&'static str, Bad> {
        Ok(match f.at {
            At::LoadFree => {
                f.top = s.load(FREE_TOP);
                if f.top < s.free_limit {
                    f.at = At::StoreSlot;
                    return Ok("push: load free_top");
                }
                f.at = match f.tries {
                    1 => At::FreeSlow,
                    2 => At::RoomLock,
                    _ if self.code == Code::Now => At::RoomLock,
                    _ => return Err((Fault::Lost, "no room for a freed block after room was made")),
                };
                "push: fail"
            }
            At::StoreSlot if self.has(Mutant::NoRelease) && self.weak => {
                // With no order between the two, this is the worst one.
                s.store(FREE_TOP, f.top + 1);
                f.at = At::StoreFree;
                "push: store free_top"
            }
            At::StoreSlot => {
                if !(0..2 * self.capacity).contains(&f.top) {
                    return Err((Fault::Twice, "a push outside the stacks"));
                }
                s.store(f.top as u8, f.block as i8);
                f.at = At::StoreFree;
                "push: store slot"
            }
            _ => {
                if self.has(Mutant::NoRelease) && self.weak {
                    s.store(f.top as u8, f.block as i8);
                } else {
                    s.store(FREE_TOP, f.top + 1);
                }
                s.pushes += 1;
                f.at = At::Idle;
                "push: store free_top"
            }
        })
    }
}
