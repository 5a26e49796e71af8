//! What the model remembers.

use std::fmt;

/// Threads, also the numbers of bits in sets of them. Lock words are one more; 0 = free.
pub(crate) const OWNER: usize = 0;
pub(crate) const OTHER: usize = 1;
pub(crate) const SWEEPER: usize = 2;
pub(crate) const THREADS: usize = 3;

/// Homes: the one that made the slab, and its heir where it is a zone.
pub(crate) const HOMES: usize = 2;
/// Slices of the slab.
pub(crate) const SLICES: usize = 2;

/// `trigger` of a slab that no returned block sets off.
pub(crate) const NO_TRIGGER: u8 = u8::MAX;

/// What the memory is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Memory {
    Slab,
    /// A free run of the arena.
    Free,
    /// Something else that the program has: no page of it may be discarded.
    Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Place {
    Unlisted,
    Current,
    Partial,
    Empty,
}

/// What a thread that takes and gives back blocks does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum At {
    Idle,
    // `slab::current` and `bits::take`.
    Current,
    TakeLoad,
    TakeStore,
    TakeCount,
    UsedUp,
    // `Open::put`.
    PutWait,
    TouchTest,
    TouchSet,
    PutLoad,
    PutStore,
    PutCount,
    PutList,
    // `slab::give_up_empty`.
    GiveUp,
    Unlock,
    // The end of a zone.
    EndPurge,
    EndRecords,
    EndLock,
    EndLeave,
    EndUnlock,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Thread {
    pub(crate) at: At,
    /// The home whose slabs it locks.
    pub(crate) home: u8,
    /// Blocks in its hands: taken and not out yet, or freed and not back yet.
    pub(crate) hand: u8,
    /// Registers: the blocks it is about to take or put, and the bitmap it has loaded.
    pub(crate) blocks: u8,
    pub(crate) word: u8,
    /// Taking: its stack is full, whatever the slab has left. Giving back: the flag was set before it had the lock.
    pub(crate) full: bool,
}

impl Thread {
    pub(crate) const IDLE: Thread = Thread { at: At::Idle, home: 0, hand: 0, blocks: 0, word: 0, full: false };
}

/// What the sweeper does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Step {
    Idle,
    /// The purge lock is held: give back the records that are found.
    Begin,
    Flag,
    Find,
    Lock,
    Look,
    Record,
    ClearFirst,
    Clear,
    Count,
    Unlock,
    Discard,
    Relock,
    Mark,
    SetFirst,
    Set,
    CountBack,
    Forget,
    List,
    UnlockEnd,
    ForgetLate,
    Leave,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Sweeper {
    pub(crate) at: Step,
    pub(crate) forced: bool,
    /// It gives back what another sweeper has left.
    pub(crate) recovers: bool,
    pub(crate) home: u8,
    /// Pages claimed, and those of them that are not looked at yet.
    pub(crate) pages: u8,
    pub(crate) left: u8,
    /// Of these, pages that the kernel took.
    pub(crate) done: u8,
    /// Blocks whose bits it has cleared and not set again.
    pub(crate) claimed: u8,
    pub(crate) word: u8,
    /// There is something for the next sweep.
    pub(crate) waits: bool,
}

impl Sweeper {
    pub(crate) const IDLE: Sweeper = Sweeper {
        at: Step::Idle,
        forced: false,
        recovers: false,
        home: 0,
        pages: 0,
        left: 0,
        done: 0,
        claimed: 0,
        word: 0,
        waits: false,
    };
}

/// How far the zone has got.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Zone {
    /// The home is no zone, or the zone has ended.
    None,
    InUse,
    Deleted,
    Destroyed,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) memory: Memory,
    pub(crate) owner: u8,
    pub(crate) zone: Zone,
    // The slab's metadata.
    pub(crate) bits: u8,
    pub(crate) free: u8,
    pub(crate) place: Place,
    pub(crate) trigger: u8,
    pub(crate) candidates: u8,
    pub(crate) returned: u8,
    /// Blocks from this number on were never handed out.
    pub(crate) fresh: u8,
    /// Of a free run: all of it is said to read zero.
    pub(crate) clean: bool,
    /// On which list of its home it really is.
    pub(crate) list: Place,
    // The region's flags.
    pub(crate) touched: bool,
    pub(crate) waiting: bool,
    // Locks.
    pub(crate) slabs: [u8; HOMES],
    pub(crate) purge: u8,
    /// Claimed pages, by slice.
    pub(crate) records: [u8; SLICES],
    pub(crate) threads: [Thread; 2],
    pub(crate) sweeper: Sweeper,
    // What is really so.
    /// Blocks that the program has, and has written.
    pub(crate) out: u8,
    /// Blocks that a vanished thread had in its hands.
    pub(crate) lost: u8,
    /// Pages in memory.
    pub(crate) resident: u8,
    /// Pages that were wholly free at the last sweep and of which nothing was taken since.
    pub(crate) quiet: u8,
    pub(crate) child: bool,
    /// A thread of the child that was interrupted by the signal handler which made it.
    pub(crate) interrupted: u8,
}

impl State {
    pub(crate) fn records(&self) -> u8 {
        self.records.iter().fold(0, |all, pages| all | pages)
    }

    /// Forget what is of no meaning where there is no slab.
    pub(crate) fn leave_slab(&mut self, clean: bool) {
        (self.memory, self.clean, self.fresh) = (Memory::Free, clean, 0);
        (self.bits, self.free, self.candidates, self.returned, self.quiet) = (0, 0, 0, 0, 0);
        (self.place, self.trigger, self.list) = (Place::Unlisted, NO_TRIGGER, Place::Unlisted);
        self.lost = 0;
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{:?}{} of {} bits {:b} fresh {} free {} {:?}/{:?} trigger {} candidates {:b} returned {:b}{}{} locks {:?} purge {} records {:?} | out {:b} lost {:b} resident {:b} quiet {:b}",
            if self.child { "child " } else { "" },
            self.memory,
            if self.clean { " clean" } else { "" },
            self.owner,
            self.bits,
            self.fresh,
            self.free,
            self.place,
            self.list,
            self.trigger,
            self.candidates,
            self.returned,
            if self.touched { " TOUCHED" } else { "" },
            if self.waiting { " WAITING" } else { "" },
            self.slabs,
            self.purge,
            self.records,
            self.out,
            self.lost,
            self.resident,
            self.quiet,
        )?;
        for (name, thread) in ["owner", "other"].iter().zip(&self.threads) {
            if thread.at != At::Idle {
                write!(f, " | {name} {:?} hand {:b} word {:b}", thread.at, thread.hand, thread.word)?;
            }
        }
        let s = &self.sweeper;
        if s.at != Step::Idle {
            write!(f, " | sweeper {:?} pages {:b} done {:b} claimed {:b}", s.at, s.pages, s.done, s.claimed)?;
        }
        Ok(())
    }
}
