//! The others: a thief (`steal.rs`), somebody who starts and stops sampling (`interval.rs`), and a fork with the child's repair
//! (`repair.rs`).

use super::super::explore::{Bad, Fault, Steps};
use super::owner::At;
use super::state::{CLASS, FREE, Frame, OWNER, POISON, SWITCH, State, THEFT, THIEF, bit};
use super::{Code, Forker, Mutant, Steal};

/// What the thief does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Step {
    Idle,
    TakeFrees,
    Claim,
    FenceHere,
    FenceOwner,
    TakeClaimed,
    Arm,
    Copy,
    DropClaim,
    GiveBack,
    Unlock,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Thief {
    pub(crate) at: Step,
    pub(crate) top: i8,
    pub(crate) start: i8,
    /// Thefts still to be made.
    pub(crate) left: u8,
}

/// What is next in a start of sampling; a stop is one step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Turn {
    Idle,
    Lock,
    Poison,
    Unlock,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Switch {
    pub(crate) at: Turn,
    pub(crate) left: u8,
    /// The epoch of the last start, once it is complete.
    pub(crate) started: u8,
}

impl Steal {
    pub(crate) fn thief(&self, state: &State, steps: &mut Steps<State>) {
        if state.thief_pending > 0 {
            let mut next = *state;
            next.drain_thief(1);
            steps.to("a store of the thief becomes visible", next);
        }
        let mut s = *state;
        match self.thief_step(&mut s) {
            Ok(None) => {}
            Ok(Some(name)) => steps.to(name, s),
            Err(bad) => steps.result("the thief", Err(bad)),
        }
        if self.refusable && state.thief.at == Step::FenceHere {
            let mut s = *state;
            s.thief.at = Step::DropClaim;
            steps.to("thief: the fence is refused", s);
        }
    }

    fn thief_step(&self, s: &mut State) -> Result<Option<&'static str>, Bad> {
        let (at, name) = match s.thief.at {
            Step::Idle => {
                if s.thief.left == 0 || s.lock != FREE {
                    return Ok(None);
                }
                s.thief.left -= 1;
                s.lock = THIEF;
                s.busy = THEFT;
                (Step::TakeFrees, "thief: lock")
            }
            Step::TakeFrees => {
                let (start, top) = (s.free_bottom, s.free_top);
                s.free_bottom = top;
                self.copy(s, start, top)?;
                (Step::Claim, "thief: take frees")
            }
            Step::Claim if s.top <= s.real_bottom => (Step::GiveBack, "thief: nothing to claim"),
            Step::Claim => {
                s.claimed = true;
                s.thief.top = s.top;
                s.store_thief(POISON);
                (Step::FenceHere, "thief: claim")
            }
            Step::FenceHere => {
                if !self.has(Mutant::NoFence) {
                    s.drain_thief(2);
                }
                (Step::FenceOwner, "thief: fence here")
            }
            Step::FenceOwner => {
                if !self.has(Mutant::NoFence) {
                    s.drain();
                    s.early = None;
                }
                (Step::TakeClaimed, "thief: fence in the owner")
            }
            Step::TakeClaimed => {
                let top = if self.has(Mutant::TopBeforeFence) { s.thief.top } else { s.top };
                s.thief.start = s.real_bottom;
                s.real_bottom = top.max(s.real_bottom);
                if self.has(Mutant::StolenCount) {
                    let moved = s.real_bottom - s.thief.start;
                    s.limit = (s.limit + moved).min(top);
                    s.allocated += moved;
                }
                (Step::Arm, "thief: load top, raise the real bottom")
            }
            Step::Arm => {
                s.store_thief(self.thief_arms(s));
                (Step::Copy, "thief: open bottom")
            }
            Step::Copy => {
                self.copy(s, s.thief.start, s.real_bottom)?;
                (Step::GiveBack, "thief: copy")
            }
            Step::DropClaim => {
                s.store_thief(s.armed(s.now));
                (Step::GiveBack, "thief: drop the claim")
            }
            Step::GiveBack => {
                s.busy = 0;
                let loot = s.loot;
                for block in (1..=8).filter(|&block| loot & bit(block) != 0) {
                    s.put(block)?;
                }
                s.loot = 0;
                (Step::Unlock, "thief: give back")
            }
            Step::Unlock => {
                s.drain_thief(2);
                s.lock = FREE;
                s.thief = Thief { at: Step::Idle, top: 0, start: 0, left: s.thief.left };
                return Ok(Some("thief: unlock"));
            }
        };
        s.thief.at = at;
        Ok(Some(name))
    }

    fn thief_arms(&self, s: &State) -> i8 {
        let (seen, limit) = (!self.has(Mutant::ThiefOpensPoison), !self.has(Mutant::LimitForgotten));
        match s.armed(if seen { s.now } else { s.epoch }) {
            bottom if bottom != POISON && !limit => s.real_bottom,
            bottom => bottom,
        }
    }

    fn copy(&self, s: &mut State, from: i8, to: i8) -> Result<(), Bad> {
        for slot in from..to {
            let block = s.slots[slot as usize];
            s.claim(block)?;
            s.loot |= bit(block);
        }
        Ok(())
    }

    /// Start and stop.
    pub(crate) fn switch(&self, state: &State, steps: &mut Steps<State>) {
        let mut s = *state;
        let name = match s.switch.at {
            Turn::Idle if s.switch.left > 0 => {
                s.switch.left -= 1;
                s.now += 1;
                s.switch.started = 0;
                if s.now & 1 == 1 {
                    s.switch.at = Turn::Lock;
                }
                "switch: raise the epoch"
            }
            Turn::Lock if s.lock == FREE => {
                s.lock = SWITCH;
                s.switch.at = Turn::Poison;
                "switch: lock"
            }
            Turn::Poison => {
                if !self.has(Mutant::NoPoison) {
                    s.bottom = POISON;
                }
                s.switch.at = Turn::Unlock;
                "switch: poison"
            }
            Turn::Unlock => {
                s.lock = FREE;
                s.switch.at = Turn::Idle;
                s.switch.started = s.now;
                "switch: unlock"
            }
            _ => return,
        };
        steps.to(name, s);
    }

    /// A child is made, and repairs: what its memory is like, and from then on only that process is looked at.
    ///
    /// A fork copies a causal cut: as if the other threads had stopped between two instructions. Stores that were still on
    /// their way belong to a thread that stopped before them, which is a state of its own: so here all have arrived.
    pub(crate) fn fork(&self, state: &State, steps: &mut Steps<State>) {
        let busy_here = state.thief.at != Step::Idle;
        let now = match self.forker {
            Forker::Nobody => false,
            Forker::Another | Forker::Owner => true,
            Forker::Thief => busy_here,
        };
        if now && !state.child && state.depth == 0 {
            steps.result("fork", self.repaired(*state));
        }
    }

    fn repaired(&self, mut s: State) -> Result<State, Bad> {
        let (owner_lives, thief_lives) = (self.forker == Forker::Owner, self.forker == Forker::Thief);
        s.child = true;
        s.drain();
        s.drain_thief(2);
        s.early = None;
        s.switch = Switch { at: Turn::Idle, left: 0, started: 0 };
        let damaged = match s.lock {
            FREE => false,
            OWNER => !owner_lives,
            THIEF => !thief_lives,
            _ => true,
        };
        let dropped_class = damaged && s.busy == CLASS;
        self.repair_stacks(&mut s, damaged, owner_lives);
        if damaged && !self.has(Mutant::ChildKeepsLock) {
            s.lock = FREE;
        }
        // Who is lost, and with it what it had in hand.
        let taken = if s.thief.at == Step::Arm || s.thief.at == Step::Copy {
            (s.thief.start..s.real_bottom).map(|slot| bit(s.slots[slot as usize])).fold(0, |a, b| a | b)
        } else {
            0
        };
        let loot = s.loot | taken;
        if !thief_lives {
            s.loot = 0;
            s.thief = Thief { at: Step::Idle, top: 0, start: 0, left: 0 };
        } else {
            s.thief.left = 0;
        }
        if owner_lives {
            s.frames[0].calls = s.frames[0].calls.min(self.child_calls);
            s.lost = loot;
            return Ok(s);
        }
        s.frames[0] = Frame { at: At::Idle, calls: self.child_calls, ..Frame::IDLE };
        let cached = (s.real_bottom..s.top).chain(s.free_bottom..s.free_top).map(|slot| bit(s.slots[slot as usize]));
        let known = cached.fold(s.program | s.slab | s.deferred, |all, block| all | block);
        let everything = ((1u16 << self.blocks) - 1) as u8;
        s.lost = everything & !known & !(if thief_lives { loot } else { 0 });
        let undocumented = (s.lost & !loot).count_ones();
        if undocumented > 1 && !dropped_class {
            return Err((Fault::Lost, "more is lost than the block in a vanished thread's registers"));
        }
        Ok(s)
    }

    /// `repair_stacks`.
    fn repair_stacks(&self, s: &mut State, damaged: bool, mine: bool) {
        if damaged && s.busy == CLASS && !self.has(Mutant::ChildKeepsBusy) {
            s.alloc_base = 0;
            s.free_bottom = s.free_base();
            s.real_bottom = 0;
            s.set_top(0);
            s.set_free_top(s.free_base());
            s.drain();
            s.bottom = s.armed(s.now);
            s.free_limit = s.free_base() + self.capacity;
        } else {
            let dropped = damaged && s.busy == THEFT;
            if dropped {
                s.bottom = s.armed(s.now);
            }
            let now = self.code == Code::Now;
            if !mine && (!dropped || now) {
                if now {
                    s.top = s.top.max(s.limit);
                } else if s.bottom != POISON && !s.claimed {
                    s.top = s.top.max(s.bottom);
                }
                s.claimed = false;
                s.top = s.top.max(s.real_bottom);
            }
        }
        if damaged {
            s.busy = 0;
        }
    }
}

impl State {
    /// The thief's store to `bottom`; it waits in the thief's store buffer.
    fn store_thief(&mut self, bottom: i8) {
        self.thief_stores[self.thief_pending as usize] = bottom;
        self.thief_pending += 1;
    }

    pub(crate) fn drain_thief(&mut self, count: u8) {
        for _ in 0..count.min(self.thief_pending) {
            self.bottom = self.thief_stores[0];
            self.thief_stores = [self.thief_stores[1], 0];
            self.thief_pending -= 1;
        }
    }
}
