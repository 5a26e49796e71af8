//! The stacks of cached blocks of one class (`heap/magazine.rs`), their owner (`allocate.rs`, `release.rs`, `refill.rs`), signal
//! handlers of the owner, a thief (`steal.rs`), and somebody who starts and stops sampling (`interval.rs`).
//!
//! One class, one heap, one slab. Each load and each store of the owner is a step; what other threads see of its stores goes
//! through a store buffer. Slots are numbered, the two arrays are `0..capacity` and `capacity..2 * capacity`.

mod locked;
pub(crate) mod owner;
pub(crate) mod state;
mod tests;
mod thief;

use super::explore::{Bad, Fault, Model, Steps};
use owner::At;
use state::{Buffer, FREE, Frame, NEVER, State, bit};

/// A small mistake in the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mutant {
    None,
    /// The thief does not fence the process.
    NoFence,
    /// The owner compares with `bottom` before it stores the lowered `top`.
    CheckFirst,
    /// A failed pop is not taken back.
    NoUndo,
    /// After a claim `top` is set to `bottom` as if the stack had been empty.
    ClaimForgotten,
    /// The thief opens the stack down to what is left, not to the next sample.
    LimitForgotten,
    /// Stolen blocks count as allocated.
    StolenCount,
    /// The thief opens a stack that a start has poisoned.
    ThiefOpensPoison,
    /// The swap in `free` opens a stack that a start has poisoned.
    RoomOpensPoison,
    /// The thief believes the `top` that it read before the fence.
    TopBeforeFence,
    /// The stack is opened when its new bottom is set, before its top is.
    OpenBeforeTop,
    /// The stacks are not closed while they are changed.
    NotClosed,
    /// A failed pop is always taken back by one slot, whatever a signal handler did since.
    UndoAlways,
    /// A pushed block becomes visible to others after the raised `free_top`.
    NoRelease,
    /// A start does not poison.
    NoPoison,
    /// `busy` is cleared before the stacks are valid.
    BusyClearedEarly,
    /// `busy` is not set.
    BusyNotSet,
    /// The child leaves lock words of vanished threads alone.
    ChildKeepsLock,
    /// The child keeps the stacks that a vanished thread was changing.
    ChildKeepsBusy,
}

/// Which code is modelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    /// As it was before this model found mistakes in it: it must go on finding them.
    Earlier,
    /// As it is. A slow path takes a failed pop back as the first thing it does, in one instruction, and under the lock
    /// `top` is raised to `max(real_bottom, limit)` if it is below; nothing else is settled, so `popped` and `claimed` are not
    /// needed. `make_room` looks again whether the alloc stack is empty after each time it had no lock, and tries to push until it
    /// can. The child settles in the same way, after dropped claims as well.
    Now,
}

/// Who makes a child, at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Forker {
    Nobody,
    /// A thread that is in none of our steps.
    Another,
    /// The owner, in a signal handler; it goes on in the child.
    Owner,
    /// The thief, in a signal handler; it goes on in the child.
    Thief,
}

#[derive(Clone, Copy)]
pub(crate) struct Steal {
    pub(crate) capacity: i8,
    pub(crate) blocks: u8,
    /// Calls of `malloc` and `free` that the owner makes, in any order.
    pub(crate) calls: u8,
    pub(crate) thefts: u8,
    /// Starts and stops of sampling, in turn.
    pub(crate) switches: u8,
    /// Sampling is on at first.
    pub(crate) sampling: bool,
    /// Calls that a signal handler makes; 0 = no signals.
    pub(crate) handler_calls: u8,
    /// Where a signal may interrupt the owner: a bit for each [`At`].
    pub(crate) interrupted_at: u64,
    /// Loads may be early and stores late, but for what the fence and the lock order.
    pub(crate) weak: bool,
    /// The kernel may refuse the fence.
    pub(crate) refusable: bool,
    pub(crate) code: Code,
    pub(crate) forker: Forker,
    /// Calls of the child's first thread.
    pub(crate) child_calls: u8,
    pub(crate) mutant: Mutant,
    pub(crate) least: Fault,
}

impl Steal {
    pub(crate) const BASE: Steal = Steal {
        capacity: 2,
        blocks: 5,
        calls: 4,
        thefts: 1,
        switches: 0,
        sampling: false,
        handler_calls: 0,
        interrupted_at: 0,
        weak: false,
        refusable: false,
        code: Code::Earlier,
        forker: Forker::Nobody,
        child_calls: 0,
        mutant: Mutant::None,
        least: Fault::Stuck,
    };

    /// Distances to the next sample that may be drawn.
    pub(crate) const DRAWS: [i8; 3] = [0, 1, 2];

    pub(crate) fn has(&self, mutant: Mutant) -> bool {
        self.mutant == mutant
    }

    /// `cached` blocks on the alloc stack, `freed` on the free stack, the program has one, the others are in the slab.
    fn start(&self, cached: i8, freed: i8, distance: i8) -> State {
        let mut state = State {
            capacity: self.capacity,
            top: cached,
            bottom: 0,
            free_top: self.capacity + freed,
            free_limit: 2 * self.capacity,
            slots: [0; 6],
            alloc_base: 0,
            real_bottom: 0,
            free_bottom: self.capacity,
            limit: cached - distance,
            allocated: cached,
            freed: self.capacity + freed,
            epoch: self.sampling as u8,
            claimed: false,
            batch: 1,
            busy: 0,
            lock: FREE,
            now: self.sampling as u8,
            program: 0,
            slab: 0,
            loot: 0,
            deferred: 0,
            lost: 0,
            owner: Buffer::EMPTY,
            thief_stores: [0; 2],
            thief_pending: 0,
            early: None,
            frames: [Frame { calls: self.calls, ..Frame::IDLE }, Frame::IDLE],
            depth: 0,
            signals: (self.handler_calls != 0) as u8,
            thief: thief::Thief { at: thief::Step::Idle, top: 0, start: 0, left: self.thefts },
            switch: thief::Switch { at: thief::Turn::Idle, left: self.switches, started: 0 },
            since: 0,
            drawn: distance,
            pops: 0,
            pushes: 0,
            child: false,
        };
        let mut next = 0..self.blocks;
        let places = (0..cached).chain(self.capacity..self.capacity + freed);
        places.for_each(|slot| state.slots[slot as usize] = next.next().expect("enough blocks") + 1);
        if let Some(block) = next.next() {
            state.program = bit(block + 1);
        }
        state.slab = next.map(|block| bit(block + 1)).sum();
        state.bottom = state.real_bottom.max(state.limit);
        state
    }
}

impl Model for Steal {
    type State = State;

    fn initial(&self) -> Vec<State> {
        let distances: &[i8] = if self.sampling { &Self::DRAWS } else { &[NEVER] };
        let mut all = Vec::new();
        for cached in 0..=self.capacity {
            for freed in 0..=self.capacity {
                all.extend(distances.iter().map(|distance| self.start(cached, freed, *distance)));
            }
        }
        all
    }

    fn steps(&self, state: &State, steps: &mut Steps<State>) {
        // Whoever holds the lock without a signal handler to see it is alone with all it touches: no other order matters.
        let alone = state.lock == state::OWNER && self.handler_calls == 0 && self.forker == Forker::Nobody;
        if !alone || state.frames[0].at == At::ReadEpoch {
            self.drains(state, steps);
            self.thief(state, steps);
            self.switch(state, steps);
            self.signal(state, steps);
            self.fork(state, steps);
        }
        self.owner(state, steps);
    }

    fn check(&self, s: &State, last: bool) -> Result<(), Bad> {
        let idle = s.frames[0].at == At::Idle && s.depth == 0 && s.lock == FREE && s.owner.is_empty();
        let idle = idle && s.thief.at == thief::Step::Idle && s.thief_pending == 0;
        if last {
            let over = s.frames[0].calls == 0 && s.thief.left == 0 && s.switch.left == 0;
            if !(idle && over) {
                return Err((Fault::Stuck, "somebody waits for ever"));
            }
        }
        if idle { self.at_rest(s) } else { Ok(()) }
    }

    fn least(&self) -> Fault {
        self.least
    }
}

impl Steal {
    /// Nobody is in the middle of anything: each block is in one place, counts are exact, M3 holds.
    fn at_rest(&self, s: &State) -> Result<(), Bad> {
        if (s.top < s.real_bottom && !s.child) || s.free_top < s.free_bottom {
            return Err((Fault::Twice, "a stack has less than no blocks"));
        }
        let mut seen = 0u8;
        let cached = (s.real_bottom..s.top).chain(s.free_bottom..s.free_top).map(|slot| s.slots[slot as usize]);
        let all = cached.map(bit).chain([s.program, s.slab, s.loot, s.deferred, s.lost]);
        for blocks in all {
            if seen & blocks != 0 {
                return Err((Fault::Twice, "a block is in two places"));
            }
            seen |= blocks;
        }
        if seen.count_ones() != self.blocks as u32 {
            return Err((Fault::Lost, "a block is in no place"));
        }
        if s.child {
            return Ok(()); // counts may be off by what was lost
        }
        if s.allocated - s.top != s.pops || s.free_top - s.freed != s.pushes {
            return Err((Fault::Inexact, "positions do not count what was done"));
        }
        let armed = s.bottom == s.real_bottom.max(s.limit) && s.limit <= s.top;
        if !armed && s.bottom != state::POISON {
            return Err((Fault::Inexact, "M3: the bottom is neither real, limit nor poison"));
        }
        Ok(())
    }
}
