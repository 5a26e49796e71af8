//! The flags of a region (`arena/regions.rs`): who gives memory back tests, then sets; the sweeper clears, then takes the lock and
//! looks.

use super::super::explore::{Bad, Fault, explore};
use super::{Machine, Order, Program, Test, Value, Weak};
use Order::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    /// The code as it is.
    AsIs,
    /// The flag is cleared after the look.
    ClearedLate,
    /// The flag is tested before the lock is taken, and set under it.
    TestedEarly,
    /// Taking the lock does not acquire.
    LockRelaxed,
    /// Giving it back does not release.
    UnlockRelaxed,
    /// The flag is cleared by a relaxed exchange.
    ClearRelaxed,
    /// It is set by a relaxed exchange where there is no lock in common.
    MarkRelaxed,
    /// It is tested first there, too.
    MarkTested,
}
use Mutant::*;

const FLAG: i8 = 0;
const LOCK: i8 = 1;
/// What came back and was not looked at; one place for each thread that gives back.
const BACK: i8 = 2;
/// The slab has an owner.
const OWNER: i8 = 2;

/// `Open::new` (which calls `regions::touch`) and `put`, by thread `number`. `set`: it finds the flag clear.
fn give_back(number: i8, set: bool, mutant: Mutant) -> Program {
    let mut p = Program::default();
    let early = (mutant == TestedEarly).then(|| p.load("touch: test", FLAG, Relaxed));
    p.lock(LOCK, if mutant == LockRelaxed { Relaxed } else { Acquire });
    let flag = early.unwrap_or_else(|| p.load("touch: test", FLAG, Relaxed));
    p.only_if_is(flag, !set as i8);
    if set {
        p.exchange("touch: set", FLAG, 1, Relaxed);
    }
    p.store("put", BACK + number, Value::Number(1), Relaxed);
    p.unlock(LOCK, if mutant == UnlockRelaxed { Relaxed } else { Release });
    p
}

/// `regions::next`, `regions::clear`, then a look under the lock, at `found` of what two threads may have given back.
fn sweep(found: Option<[bool; 2]>, mutant: Mutant) -> Program {
    let mut p = Program::default();
    let flag = p.load("next", FLAG, Relaxed);
    p.only_if_is(flag, found.is_some() as i8);
    let Some(found) = found else { return p };
    let order = if mutant == ClearRelaxed { Relaxed } else { AcqRel };
    if mutant != ClearedLate {
        p.exchange("clear", FLAG, 0, order);
    }
    p.lock(LOCK, if mutant == LockRelaxed { Relaxed } else { Acquire });
    for (number, found) in (0..).zip(found) {
        let back = p.load("look", BACK + number, Relaxed);
        p.only_if_is(back, found as i8);
        if found {
            p.store("claim", BACK + number, Value::Number(0), Relaxed);
        }
    }
    p.unlock(LOCK, if mutant == UnlockRelaxed { Relaxed } else { Release });
    if mutant == ClearedLate {
        p.exchange("clear", FLAG, 0, order);
    }
    p
}

fn under_the_lock(machine: Machine, mutant: Mutant) -> Weak {
    let back = |number| [false, true].map(|set| give_back(number, set, mutant)).to_vec();
    let founds = [None, Some([false, false]), Some([false, true]), Some([true, false]), Some([true, true])];
    let sweeps = founds.map(|found| sweep(found, mutant)).to_vec();
    let memory = [0, 1].map(|flag| [flag, 0, 0, 0, 0, 0, 0, 0]);
    Weak::new(machine, vec![back(0), back(1), sweeps], memory.to_vec(), |_, s| {
        let forgotten = s.memory[FLAG as usize] == 0 && s.memory[BACK as usize..BACK as usize + 2] != [0, 0];
        nothing_is_forgotten(!forgotten)
    })
}

fn nothing_is_forgotten(so: bool) -> Result<(), Bad> {
    if so { Ok(()) } else { Err((Fault::Stuck, "something came back, nobody has seen it, and the flag is clear")) }
}

/// A slab is made of memory that was in use (`slab::create`), while the sweeper looks who has it, with no lock.
fn without_lock(machine: Machine, mutant: Mutant) -> Weak {
    let create = |set: bool| {
        let mut p = Program::default();
        p.store("owner", OWNER, Value::Number(1), Relaxed);
        if mutant == MarkTested {
            let flag = p.load("mark: test", FLAG, Relaxed);
            p.only_if_is(flag, !set as i8);
        }
        if set {
            p.exchange("mark", FLAG, 1, if mutant == MarkRelaxed { Relaxed } else { Release });
        }
        p
    };
    let creates = if mutant == MarkTested { vec![create(true), create(false)] } else { vec![create(true)] };
    let mut idle = Program::default();
    let flag = idle.load("next", FLAG, Relaxed);
    idle.only_if_is(flag, 0);
    idle.has.push(Value::Number(0));
    let mut sweep = Program::default();
    let flag = sweep.load("next", FLAG, Relaxed);
    sweep.only_if(flag, Test::Not, Value::Number(0));
    sweep.exchange("clear", FLAG, 0, if mutant == ClearRelaxed { Relaxed } else { AcqRel });
    let owner = sweep.load("who has it?", OWNER, Relaxed);
    sweep.has.push(owner);
    let memory = [0, 1].map(|flag| [flag, 0, 0, 0, 0, 0, 0, 0]);
    Weak::new(machine, vec![creates, vec![idle, sweep]], memory.to_vec(), |model, s| {
        nothing_is_forgotten(s.memory[FLAG as usize] != 0 || model.has(s, 1) == [1])
    })
}

const LIMIT: usize = 1_000_000;

#[test]
fn what_comes_back_is_seen() {
    for machine in [Machine::X86, Machine::Arm] {
        explore(&under_the_lock(machine, AsIs), LIMIT).must_hold(&format!("flags, {machine:?}"));
        explore(&without_lock(machine, AsIs), LIMIT).must_hold(&format!("flags, no lock, {machine:?}"));
    }
    // There the lock orders it anyway.
    explore(&under_the_lock(Machine::Arm, ClearRelaxed), LIMIT).must_hold("flags, cleared by a relaxed exchange");
}

#[test]
fn mutants_are_refuted() {
    let refute = |model: &Weak, what: &str| explore(model, LIMIT).must_fail(what);
    for machine in [Machine::X86, Machine::Arm] {
        for mutant in [ClearedLate, TestedEarly] {
            refute(&under_the_lock(machine, mutant), &format!("flags, {machine:?}: {mutant:?}"));
        }
        refute(&without_lock(machine, MarkTested), &format!("flags, no lock, {machine:?}: MarkTested"));
    }
    for mutant in [LockRelaxed, UnlockRelaxed] {
        refute(&under_the_lock(Machine::Arm, mutant), &format!("flags, Arm: {mutant:?}"));
    }
    for mutant in [ClearRelaxed, MarkRelaxed] {
        refute(&without_lock(Machine::Arm, mutant), &format!("flags, no lock, Arm: {mutant:?}"));
    }
}
