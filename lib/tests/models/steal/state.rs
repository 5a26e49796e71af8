//! What the model remembers.

use super::super::explore::{Bad, Fault};
use super::owner::At;
use super::thief::{Switch, Thief};
use std::fmt;

/// A `bottom` that no pop can pass.
pub(crate) const POISON: i8 = i8::MAX;
/// A distance that the few calls here do not reach.
pub(crate) const NEVER: i8 = 60;

/// Words that other threads read without the lock; slots have numbers below.
pub(crate) const TOP: u8 = 100;
pub(crate) const BOTTOM: u8 = 101;
pub(crate) const FREE_TOP: u8 = 102;

/// Lock words.
pub(crate) const FREE: u8 = 0;
pub(crate) const OWNER: u8 = 1;
pub(crate) const THIEF: u8 = 2;
pub(crate) const SWITCH: u8 = 3;

/// Values of `busy`.
pub(crate) const CLASS: u8 = 1;
pub(crate) const THEFT: u8 = 2;

/// Sets of blocks are bits; block 0 is none.
pub(crate) fn bit(block: u8) -> u8 {
    if block == 0 { 0 } else { 1 << (block - 1) }
}

/// Stores of the owner that others do not see yet, in program order.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Buffer {
    stores: [(u8, i8); Buffer::ROOM],
    len: u8,
}

impl Buffer {
    const ROOM: usize = 4;
    pub(crate) const EMPTY: Buffer = Buffer { stores: [(0, 0); Buffer::ROOM], len: 0 };

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len as usize == Self::ROOM
    }

    pub(crate) fn stores(&self) -> &[(u8, i8)] {
        &self.stores[..self.len as usize]
    }

    fn push(&mut self, word: u8, value: i8) {
        self.stores[self.len as usize] = (word, value);
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, i: usize) -> (u8, i8) {
        let store = self.stores[i];
        self.stores.copy_within(i + 1.., i);
        self.len -= 1;
        self.stores[self.len as usize] = (0, 0);
        store
    }
}

/// A call of `malloc` or `free` in progress: of the owner, or of its signal handler.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) at: At,
    /// Registers.
    pub(crate) top: i8,
    pub(crate) bottom: i8,
    pub(crate) block: u8,
    pub(crate) epoch: u8,
    pub(crate) due: bool,
    /// It is a `free`, and how often it has tried to push; 0 = it is a `malloc`.
    pub(crate) tries: u8,
    /// The epoch of a start that was complete when this call began.
    pub(crate) begun_under: u8,
    /// Calls still to be made.
    pub(crate) calls: u8,
}

impl Frame {
    pub(crate) const IDLE: Frame =
        Frame { at: At::Idle, top: 0, bottom: 0, block: 0, epoch: 0, due: false, tries: 0, begun_under: 0, calls: 0 };
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) capacity: i8,
    pub(crate) top: i8,
    pub(crate) bottom: i8,
    pub(crate) free_top: i8,
    pub(crate) free_limit: i8,
    pub(crate) slots: [u8; 6],
    // What `ClassState` has.
    pub(crate) alloc_base: i8,
    pub(crate) real_bottom: i8,
    pub(crate) free_bottom: i8,
    pub(crate) limit: i8,
    pub(crate) allocated: i8,
    pub(crate) freed: i8,
    pub(crate) epoch: u8,
    pub(crate) claimed: bool,
    /// Blocks to take at the next refill.
    pub(crate) batch: u8,
    pub(crate) busy: u8,
    pub(crate) lock: u8,
    /// The global epoch.
    pub(crate) now: u8,
    // Where blocks are that are on no stack.
    pub(crate) program: u8,
    pub(crate) slab: u8,
    pub(crate) loot: u8,
    pub(crate) deferred: u8,
    pub(crate) lost: u8,
    pub(crate) owner: Buffer,
    /// Values of `bottom` that the thief has stored and others do not see yet.
    pub(crate) thief_stores: [i8; 2],
    pub(crate) thief_pending: u8,
    /// A value of `bottom` that the owner has loaded early.
    pub(crate) early: Option<i8>,
    /// The owner, and its signal handler.
    pub(crate) frames: [Frame; 2],
    /// 1: the signal handler runs.
    pub(crate) depth: u8,
    pub(crate) signals: u8,
    pub(crate) thief: Thief,
    pub(crate) switch: Switch,
    // What really happened.
    /// Pops since the distance to the next sample was drawn, and that distance.
    pub(crate) since: i8,
    pub(crate) drawn: i8,
    pub(crate) pops: i8,
    pub(crate) pushes: i8,
    pub(crate) child: bool,
}

impl State {
    /// What the owner reads: its own last store, or memory.
    pub(crate) fn load(&self, word: u8) -> i8 {
        let own = self.owner.stores().iter().rev().find(|store| store.0 == word);
        own.map_or_else(|| self.memory(word), |store| store.1)
    }

    pub(crate) fn memory(&self, word: u8) -> i8 {
        match word {
            TOP => self.top,
            BOTTOM => self.bottom,
            FREE_TOP => self.free_top,
            slot => self.slots[slot as usize] as i8,
        }
    }

    pub(crate) fn set_memory(&mut self, (word, value): (u8, i8)) {
        match word {
            TOP => self.top = value,
            BOTTOM => self.bottom = value,
            FREE_TOP => self.free_top = value,
            slot => self.slots[slot as usize] = value as u8,
        }
    }

    /// A store of the owner. Under the lock nobody else looks, so there it need not wait.
    pub(crate) fn store(&mut self, word: u8, value: i8) {
        if self.lock == OWNER {
            self.drain();
            self.set_memory((word, value));
        } else {
            self.owner.push(word, value);
        }
    }

    pub(crate) fn drain(&mut self) {
        while !self.owner.is_empty() {
            let store = self.owner.remove(0);
            self.set_memory(store);
        }
    }

    /// A slot that may not be one: a wild address reads nothing that is a block.
    pub(crate) fn slot(&self, slot: i8) -> u8 {
        if (0..2 * self.capacity).contains(&slot) { self.load(slot as u8) as u8 } else { 0 }
    }

    pub(crate) fn free_base(&self) -> i8 {
        self.capacity - self.alloc_base
    }

    pub(crate) fn set_top(&mut self, top: i8) {
        let moved = top - self.load(TOP);
        self.limit += moved;
        self.allocated += moved;
        self.store(TOP, top);
    }

    pub(crate) fn set_free_top(&mut self, free_top: i8) {
        self.freed += free_top - self.load(FREE_TOP);
        self.store(FREE_TOP, free_top);
    }

    /// The bottom of an open stack.
    pub(crate) fn armed(&self, epoch: u8) -> i8 {
        if self.epoch == epoch { self.real_bottom.max(self.limit) } else { POISON }
    }

    /// A block comes to the program, or to a thief: it must be a block and nowhere else.
    pub(crate) fn claim(&self, block: u8) -> Result<(), Bad> {
        if block == 0 {
            return Err((Fault::Twice, "what is handed out is no block"));
        }
        let elsewhere = self.program | self.slab | self.loot | self.deferred;
        if elsewhere & bit(block) != 0 {
            return Err((Fault::Twice, "a block is handed out that is elsewhere, too"));
        }
        Ok(())
    }

    /// A block goes back to its slab.
    pub(crate) fn put(&mut self, block: u8) -> Result<(), Bad> {
        if block == 0 || (self.slab | self.program | self.deferred) & bit(block) != 0 {
            return Err((Fault::Twice, "a block goes back to its slab that is elsewhere, too"));
        }
        self.slab |= bit(block);
        Ok(())
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frame = |frame: &Frame| format!("{:?}(t{} b{} #{})", frame.at, frame.top, frame.bottom, frame.block);
        write!(
            f,
            "top {} bottom {} [real {} limit {}{}] free {}..{} slots {:?} epoch {}/{} lock {} busy {} | program {:b} slab {:b} loot {:b} lost {:b}",
            self.top,
            self.bottom,
            self.real_bottom,
            self.limit,
            if self.claimed { " claimed" } else { "" },
            self.free_bottom,
            self.free_top,
            &self.slots[..2 * self.capacity as usize],
            self.epoch,
            self.now,
            self.lock,
            self.busy,
            self.program,
            self.slab,
            self.loot,
            self.lost
        )?;
        write!(f, " | owner {} buffer {:?}", frame(&self.frames[0]), self.owner.stores())?;
        if self.depth == 1 {
            write!(f, " handler {}", frame(&self.frames[1]))?;
        }
        write!(f, " thief {:?} switch {:?}", self.thief.at, self.switch.at)
    }
}
