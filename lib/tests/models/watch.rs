//! `heap/watch.rs`: somebody begins and ceases to watch while the owner of a heap allocates and frees, and a thief comes by.
//!
//! Each call of the owner that begins after `begin` has returned is told, once; none that begins after `end` has returned is; no
//! block is lost or handed out twice; and when nobody watches, the stacks open again. What the watcher stores becomes visible in order, but
//! late, as on x86-64. A second, small model: a heap that is made meanwhile.

use super::explore::{Bad, Fault, Model, Steps, explore};

/// Blocks in all.
const BLOCKS: u8 = 3;

const OWNER: u8 = 1;
const WATCHER: u8 = 2;
const THIEF: u8 = 3;

/// What the watcher has done, as everybody who has heard from it knows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Off,
    Changing,
    On,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Idle,
    // `malloc`
    LoadBottom,
    Undo,
    /// Before the lock; a mutant has read the word already.
    Lock(Option<bool>),
    Swap(bool),
    Refill(bool),
    Pop(bool),
    // `free`
    Push,
    FreeSlow,
    PushAgain,
    LockToPush,
    PushLocked,
    ReadWord,
    // `open`, with this word, and the end of the call
    OpenBottom(bool),
    OpenLimit(bool),
    Unlock(bool),
    Tell(bool),
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Store {
    Bottom,
    Limit,
    Unlock,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State {
    /// The bit in the word.
    watched: bool,
    /// `bottom` is poison; `free_limit` is 0.
    poison: bool,
    shut: bool,
    lock: u8,
    real_bottom: u8,
    top: u8,
    frees: u8,
    slab: u8,
    /// With the program, and in the hands of owner and thief.
    program: u8,
    hand: u8,
    loot: u8,
    at: At,
    is_malloc: bool,
    told: u8,
    /// The phase when the call began, if it has not changed since.
    began: Option<Phase>,
    calls: u8,
    phase: Phase,
    watcher: u8,
    buffer: [Option<Store>; 3],
    thief: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    None,
    /// The stacks are shut before the word says so.
    WordLast,
    /// The stacks are shut without the lock.
    Unlocked,
    /// `begin` returns before what it stored is there.
    NoFence,
    /// Only pops are stopped.
    FreesPass,
    /// An owner that has seen the bit leaves its free stack open.
    OpensLimit,
    /// The thief opens the stack as if nobody watched.
    ThiefOpens,
    /// The owner reads the word before it takes the lock.
    ReadEarly,
    /// A free is told where it is pushed, too.
    ToldAgain,
    /// A stack that was shut stays so when nobody watches.
    StaysShut,
    /// A push under the lock opens without a look at the word.
    PushOpens,
}

struct Watch {
    mutant: Mutant,
    with_thief: bool,
    calls: u8,
}

impl Watch {
    fn has(&self, mutant: Mutant) -> bool {
        self.mutant == mutant
    }

    fn owner(&self, s: &mut State) -> Option<Result<&'static str, Bad>> {
        s.at = match s.at {
            At::Idle => return None,
            At::LoadBottom => {
                // `top` was lowered: the pop is good if that is not below the bottom.
                if !s.poison && s.top > s.real_bottom {
                    s.top -= 1;
                    s.program += 1;
                    At::Done
                } else {
                    At::Undo
                }
            }
            At::Undo => At::Lock(self.has(Mutant::ReadEarly).then_some(s.watched)),
            At::Lock(early) => {
                if s.lock != 0 {
                    return None;
                }
                s.lock = OWNER;
                (s.poison, s.shut) = (true, true); // `close`
                let word = early.unwrap_or(s.watched);
                if s.top > s.real_bottom {
                    At::Pop(word)
                } else if s.frees != 0 {
                    At::Swap(word)
                } else {
                    At::Refill(word)
                }
            }
            At::Swap(word) => {
                (s.real_bottom, s.top, s.frees) = (0, s.frees, 0);
                At::Pop(word)
            }
            At::Refill(word) => {
                let taken = s.slab.min(1);
                (s.real_bottom, s.top, s.slab) = (0, taken, s.slab - taken);
                At::Pop(word)
            }
            At::Pop(word) => {
                if s.top > s.real_bottom {
                    s.top -= 1;
                    s.program += 1;
                }
                At::OpenBottom(word)
            }
            At::Push if s.shut => At::FreeSlow,
            At::Push => {
                s.frees += 1;
                s.hand -= 1;
                At::Done
            }
            At::FreeSlow => {
                s.told += s.watched as u8;
                At::PushAgain
            }
            At::PushAgain if s.shut => At::LockToPush,
            At::PushAgain => {
                s.frees += 1;
                s.hand -= 1;
                At::Done
            }
            At::LockToPush => {
                if s.lock != 0 {
                    return None;
                }
                s.lock = OWNER;
                At::PushLocked
            }
            At::PushLocked => {
                s.frees += 1;
                s.hand -= 1;
                if self.has(Mutant::StaysShut) { At::Unlock(false) } else { At::ReadWord }
            }
            At::ReadWord => {
                let word = s.watched && !self.has(Mutant::PushOpens);
                At::OpenBottom(word)
            }
            At::OpenBottom(word) => {
                s.poison = word;
                At::OpenLimit(word)
            }
            At::OpenLimit(word) => {
                s.shut = word && !self.has(Mutant::OpensLimit);
                At::Unlock(word)
            }
            At::Unlock(word) => {
                s.lock = 0;
                let told = word && (s.is_malloc || self.has(Mutant::ToldAgain));
                At::Tell(told)
            }
            At::Tell(told) => {
                s.told += told as u8;
                At::Done
            }
            At::Done => {
                let result = self.finished(s);
                (s.at, s.told, s.began) = (At::Idle, 0, None);
                return Some(result.map(|()| "the call returns"));
            }
        };
        Some(Ok("the owner goes on"))
    }

    fn finished(&self, s: &State) -> Result<(), Bad> {
        match (s.began, s.told) {
            (Some(Phase::On), 0) => Err((Fault::Lost, "a call is not told")),
            (Some(Phase::Off), 1..) => Err((Fault::Twice, "a call is told though nobody watches")),
            (_, 2..) => Err((Fault::Twice, "a call is told twice")),
            (Some(Phase::Off), _) if (s.is_malloc && s.poison || !s.is_malloc && s.shut) && s.lock == 0 => {
                Err((Fault::Stuck, "a stack stays shut"))
            }
            _ => Ok(()),
        }
    }

    fn put(&self, s: &mut State, store: Store) {
        let place = s.buffer.iter_mut().find(|place| place.is_none());
        *place.expect("room for what it stores under one lock") = Some(store);
    }

    /// One step of `begin`, `end` and `begin`.
    fn watcher(&self, s: &mut State) -> Option<&'static str> {
        let empty = s.buffer[0].is_none();
        let (set, shut) = if self.has(Mutant::WordLast) { (4, [0, 1, 2, 3]) } else { (0, [1, 2, 3, 4]) };
        let step = s.watcher % 7;
        if s.watcher >= 14 || (s.watcher >= 7 && step == 6) {
            return None;
        }
        if step == 0 {
            s.phase = Phase::Changing;
            s.began = None;
        }
        if step == set {
            s.watched = true;
        } else if step == shut[0] {
            if !self.has(Mutant::Unlocked) {
                if s.lock != 0 || !empty {
                    return None;
                }
                s.lock = WATCHER;
            }
        } else if step == shut[1] {
            self.put(s, Store::Bottom);
        } else if step == shut[2] {
            if !self.has(Mutant::FreesPass) {
                self.put(s, Store::Limit);
            }
        } else if step == shut[3] {
            if !self.has(Mutant::Unlocked) {
                self.put(s, Store::Unlock);
            }
        } else if step == 5 {
            if !empty && !self.has(Mutant::NoFence) {
                return None;
            }
            s.phase = Phase::On;
        } else {
            // `end`
            s.phase = Phase::Off;
            s.began = None;
            s.watched = false;
        }
        s.watcher += 1;
        Some("the watcher goes on")
    }

    fn thief(&self, s: &mut State) -> Option<&'static str> {
        match s.thief {
            0 if s.lock == 0 => s.lock = THIEF,
            1 => {
                s.loot += s.frees;
                s.frees = 0;
            }
            // Claim. The fence is as good as at once here: `steal` looks at that.
            2 => s.poison = true,
            // While the owner has lowered `top` for a pop that will fail, that slot stays.
            3 => {
                let top = s.top - (matches!(s.at, At::LoadBottom | At::Undo) && s.top > s.real_bottom) as u8;
                s.loot += top - s.real_bottom;
                s.real_bottom = top;
            }
            4 => s.poison = s.watched && !self.has(Mutant::ThiefOpens),
            5 => s.lock = 0,
            6 => {
                s.slab += s.loot;
                s.loot = 0;
            }
            _ => return None,
        }
        s.thief += 1;
        Some("the thief goes on")
    }
}

impl Model for Watch {
    type State = State;

    fn initial(&self) -> Vec<State> {
        vec![State {
            watched: false,
            poison: false,
            shut: false,
            lock: 0,
            real_bottom: 0,
            top: 1,
            frees: 0,
            slab: BLOCKS - 2,
            program: 1,
            hand: 0,
            loot: 0,
            at: At::Idle,
            is_malloc: true,
            told: 0,
            began: None,
            calls: self.calls,
            phase: Phase::Off,
            watcher: 0,
            buffer: [None; 3],
            thief: if self.with_thief { 0 } else { u8::MAX },
        }]
    }

    fn steps(&self, s: &State, steps: &mut Steps<State>) {
        if s.at == At::Idle && s.calls != 0 {
            let began = (s.phase != Phase::Changing).then_some(s.phase);
            let next = State { calls: s.calls - 1, began, ..*s };
            steps.to("malloc", State { at: At::LoadBottom, is_malloc: true, ..next });
            if s.program != 0 {
                let next = State { program: s.program - 1, hand: 1, ..next };
                steps.to("free", State { at: At::Push, is_malloc: false, ..next });
            }
        }
        let mut next = *s;
        if let Some(result) = self.owner(&mut next) {
            match result {
                Ok(name) => steps.to(name, next),
                Err(bad) => steps.result("the call returns", Err(bad)),
            }
        }
        let mut next = *s;
        if let Some(name) = self.watcher(&mut next) {
            steps.to(name, next);
        }
        if let Some(store) = s.buffer[0] {
            let mut next = State { buffer: [s.buffer[1], s.buffer[2], None], ..*s };
            match store {
                Store::Bottom => next.poison = true,
                Store::Limit => next.shut = true,
                Store::Unlock => next.lock = 0,
            }
            steps.to("a store of the watcher is seen", next);
        }
        let mut next = *s;
        if let Some(name) = self.thief(&mut next) {
            steps.to(name, next);
        }
    }

    fn check(&self, s: &State, last: bool) -> Result<(), Bad> {
        let all = s.top - s.real_bottom + s.frees + s.slab + s.program + s.hand + s.loot;
        if all < BLOCKS {
            return Err((Fault::Lost, "a block is gone"));
        }
        if all > BLOCKS {
            return Err((Fault::Twice, "a block is there twice"));
        }
        if last && (s.calls != 0 || s.watcher < 13) {
            return Err((Fault::Stuck, "somebody waits for ever"));
        }
        Ok(())
    }
}

#[test]
fn every_call_is_told_once() {
    for with_thief in [false, true] {
        let model = Watch { mutant: Mutant::None, with_thief, calls: if with_thief { 3 } else { 4 } };
        explore(&model, 20_000_000).must_hold(&format!("watch, thief {with_thief}"));
    }
}

#[test]
fn mutants_are_refuted() {
    use Mutant::*;
    for mutant in
        [WordLast, Unlocked, NoFence, FreesPass, OpensLimit, ThiefOpens, ReadEarly, ToldAgain, StaysShut, PushOpens]
    {
        let model = Watch { mutant, with_thief: mutant == ThiefOpens, calls: 3 };
        explore(&model, 20_000_000).must_fail(&format!("watch, {mutant:?}"));
    }
}

/// A heap that is made while somebody begins to watch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct New {
    watched: bool,
    published: bool,
    shut: bool,
    read: bool,
    maker: u8,
    watcher: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Made {
    AsItIs,
    /// The maker does not look again.
    NotAgain,
    /// The maker looks again before others can find the heap.
    AgainEarly,
    /// The watcher looks for heaps before the word says that it watches.
    WalkFirst,
}

impl Model for Made {
    type State = New;

    fn initial(&self) -> Vec<New> {
        vec![New { watched: false, published: false, shut: false, read: false, maker: 0, watcher: 0 }]
    }

    fn steps(&self, s: &New, steps: &mut Steps<New>) {
        let order = if *self == Made::AgainEarly { [0, 1, 3, 4, 2] } else { [0, 1, 2, 3, 4] };
        let mut next = *s;
        match order.get(s.maker as usize) {
            Some(0) => next.read = s.watched,
            Some(1) => next.shut = s.read,
            Some(2) => next.published = true,
            Some(3) if *self == Made::NotAgain => next.read = false,
            Some(3) => next.read = s.watched,
            Some(_) => next.shut |= s.read,
            None => {}
        }
        next.maker += 1;
        if s.maker < 5 {
            steps.to("the maker goes on", next);
        }
        let mut next = *s;
        match (s.watcher, *self == Made::WalkFirst) {
            (0, false) | (1, true) => next.watched = true,
            (1, false) | (0, true) => next.shut |= s.published,
            _ => return,
        }
        next.watcher += 1;
        steps.to("the watcher goes on", next);
    }

    fn check(&self, s: &New, _: bool) -> Result<(), Bad> {
        if s.watcher == 2 && s.maker == 5 && !s.shut {
            return Err((Fault::Lost, "a new heap is open"));
        }
        Ok(())
    }
}

#[test]
fn a_new_heap_is_shut_too() {
    explore(&Made::AsItIs, 1000).must_hold("watch, a new heap");
    for mutant in [Made::NotAgain, Made::AgainEarly, Made::WalkFirst] {
        explore(&mutant, 1000).must_fail(&format!("watch, a new heap, {mutant:?}"));
    }
}
