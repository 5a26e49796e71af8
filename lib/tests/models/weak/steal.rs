//! The alloc stack (`heap/magazine.rs`) and a thief (`heap/steal.rs`): what is in `steal/` with a store buffer, here with loads and
//! stores out of order, so that a slot may be loaded before it is known to be the owner's.
//!
//! Two blocks; the owner calls `malloc` twice, and refills when nothing is left. Signals, forks, counts and samples are in `steal/`
//! only.

use super::super::explore::{Bad, Fault, explore};
use super::machine::State;
use super::{Kind, Machine, Order, Program, Test, Value, Weak};
use Order::*;
use Value::Number;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    /// The code as it is.
    AsIs,
    /// The thief does not fence the process.
    NoFence,
    /// It fences itself only.
    FenceHere,
    /// It believes the `top` that it read before the fence.
    TopBeforeFence,
    /// The owner compares with `bottom` before it stores the lowered `top`.
    CheckFirst,
    /// A failed pop is not taken back.
    NoUndo,
    /// The thief leaves its claim.
    ClaimLeft,
    /// The thief opens the stack again as it was.
    ClaimForgotten,
    /// A push does not release.
    PushRelaxed,
    /// The thief of a free stack does not acquire.
    TakeRelaxed,
}
use Mutant::*;

const TOP: i8 = 0;
const BOTTOM: i8 = 1;
const LOCK: i8 = 2;
const REAL: i8 = 3;
const SLOTS: i8 = 4;
const POISON: i8 = i8::MAX;

/// How a `malloc` goes.
#[derive(Clone, Copy)]
enum Malloc {
    Pops,
    /// The pop fails; under the lock there is a block.
    Fails,
    /// The pop fails, and the stack is empty; `below`: its `top` is below its bottom.
    Refills {
        below: bool,
    },
}

fn malloc(p: &mut Program, way: Malloc, call: i8, mutant: Mutant) {
    let top = p.load("pop: top", TOP, Relaxed).plus(-1);
    let pops = matches!(way, Malloc::Pops);
    let test = if pops { Test::From } else { Test::Below };
    if mutant == CheckFirst {
        let bottom = p.load("pop: bottom", BOTTOM, Relaxed);
        p.only_if(top, test, bottom);
        p.store("pop: lower top", TOP, top, Relaxed);
    } else {
        p.store("pop: lower top", TOP, top, Relaxed);
        let bottom = p.load("pop: bottom", BOTTOM, Relaxed);
        p.only_if(top, test, bottom);
    }
    if pops {
        let block = p.load_at("pop: slot", top.plus(SLOTS), Relaxed);
        return p.has.push(block);
    }
    if mutant != NoUndo {
        let top = p.load("undo", TOP, Relaxed);
        p.store("undo", TOP, top.plus(1), Relaxed);
    }
    p.lock(LOCK, Acquire);
    p.store("close", BOTTOM, Number(POISON), Relaxed);
    let (top, real) = (p.load("settle: top", TOP, Relaxed), p.load("settle: real bottom", REAL, Relaxed));
    let Malloc::Refills { below } = way else {
        p.only_if(real, Test::Below, top);
        p.store("locked: lower top", TOP, top.plus(-1), Relaxed);
        let block = p.load_at("locked: slot", top.plus(SLOTS - 1), Relaxed);
        p.has.push(block);
        p.store("open", BOTTOM, real, Relaxed);
        return p.unlock(LOCK, Release);
    };
    p.only_if(top, if below { Test::Below } else { Test::Is }, real);
    if below {
        p.store("settle", TOP, real, Relaxed);
    }
    p.store("refill: slot", SLOTS, Number(made_by(call)), Relaxed);
    p.store("refill: slot", SLOTS + 1, Number(made_by(call) + 1), Relaxed);
    p.store("refill: real bottom", REAL, Number(0), Relaxed);
    p.store("refill: top", TOP, Number(2), Relaxed);
    p.store("locked: lower top", TOP, Number(1), Relaxed);
    p.has.push(Number(made_by(call) + 1));
    p.store("open", BOTTOM, Number(0), Relaxed);
    p.unlock(LOCK, Release);
}

/// The first of two blocks that a refill brings.
fn made_by(call: i8) -> i8 {
    10 * (call + 1)
}

/// `claim`, the fence, `take_claimed`, and then the slots. `finds`: so many blocks, `None`: nothing at the first look.
fn steal(finds: Option<i8>, mutant: Mutant) -> Program {
    let mut p = Program::default();
    p.lock(LOCK, Acquire);
    let (before, real) = (p.load("claim: top", TOP, Relaxed), p.load("claim: real bottom", REAL, Relaxed));
    p.only_if(real, if finds.is_some() { Test::Below } else { Test::From }, before);
    if let Some(count) = finds {
        p.store("claim", BOTTOM, Number(POISON), Relaxed);
        match mutant {
            NoFence => {}
            FenceHere => p.special("fence", Kind::Fence),
            _ => p.special("fence all", Kind::FenceAll),
        }
        let top = if mutant == TopBeforeFence { before } else { p.load("take: top", TOP, Relaxed) };
        p.only_if(top, if count == 0 { Test::Below } else { Test::Is }, Number(count.max(1)));
        if mutant == ClaimForgotten {
            p.store("take: open", BOTTOM, Number(0), Relaxed);
        } else {
            p.store("take: real bottom", REAL, Number(count), Relaxed);
            if mutant != ClaimLeft {
                p.store("take: open", BOTTOM, Number(count), Relaxed);
            }
        }
        for slot in 0..count {
            let block = p.load("take: slot", SLOTS + slot, Relaxed);
            p.has.push(block);
        }
    }
    p.unlock(LOCK, Release);
    p
}

fn each_block_is_in_one_place(model: &Weak, s: &State) -> Result<(), Bad> {
    let mut made = vec![1, 2];
    let owner = model.has(s, 0);
    made.extend((0..2).map(made_by).filter(|made| owner.contains(&(made + 1))).flat_map(|made| [made, made + 1]));
    let mut found = owner;
    found.extend(model.has(s, 1));
    found.extend((s.memory[REAL as usize]..s.memory[TOP as usize]).map(|slot| s.memory[(SLOTS + slot) as usize]));
    found.sort_unstable();
    if found.windows(2).any(|pair| pair[0] == pair[1]) || found.iter().any(|block| !made.contains(block)) {
        return Err((Fault::Twice, "a block is in two places, or is none"));
    }
    if found != made {
        return Err((Fault::Lost, "a block is nowhere"));
    }
    if s.memory[BOTTOM as usize] != s.memory[REAL as usize] {
        return Err((Fault::Inexact, "M3: the stack is open down to another place than its bottom"));
    }
    Ok(())
}

fn model(machine: Machine, mutant: Mutant) -> Weak {
    use Malloc::*;
    let ways = [Pops, Fails, Refills { below: false }, Refills { below: true }];
    let owner = |first, second| {
        let mut p = Program::default();
        malloc(&mut p, first, 0, mutant);
        malloc(&mut p, second, 1, mutant);
        p
    };
    let owners = ways.iter().flat_map(|&first| ways.map(|second| owner(first, second))).collect();
    let thieves = [None, Some(0), Some(1), Some(2)].map(|finds| steal(finds, mutant)).to_vec();
    Weak::new(machine, vec![owners, thieves], vec![[2, 0, 0, 0, 1, 2, 0, 0]], each_block_is_in_one_place)
}

/// The free stack: two pushes, and a thief that takes what is there.
fn free_stack(machine: Machine, mutant: Mutant) -> Weak {
    let mut owner = Program::default();
    for slot in 0..2 {
        owner.store("push: slot", SLOTS + slot, Number(slot + 1), Relaxed);
        owner.store("push: free top", TOP, Number(slot + 1), if mutant == PushRelaxed { Relaxed } else { Release });
    }
    let take = |count: i8| {
        let mut p = Program::default();
        let top = p.load("take: free top", TOP, if mutant == TakeRelaxed { Relaxed } else { Acquire });
        p.only_if_is(top, count);
        for slot in 0..count {
            let block = p.load("take: slot", SLOTS + slot, Relaxed);
            p.has.push(block);
        }
        p
    };
    Weak::new(machine, vec![vec![owner], [0, 1, 2].map(take).to_vec()], vec![[0; 8]], |model, s| {
        if model.has(s, 1).contains(&0) {
            return Err((Fault::Twice, "a slot is taken that has no block yet"));
        }
        Ok(())
    })
}

const LIMIT: usize = 2_000_000;

#[test]
fn each_block_is_had_once() {
    for machine in [Machine::X86, Machine::Arm] {
        explore(&model(machine, AsIs), LIMIT).must_hold(&format!("theft, {machine:?}"));
        explore(&free_stack(machine, AsIs), LIMIT).must_hold(&format!("free stack, {machine:?}"));
    }
}

#[test]
fn mutants_are_refuted() {
    let refute = |machine, mutant| {
        explore(&model(machine, mutant), LIMIT).must_fail(&format!("theft, {machine:?}: {mutant:?}"));
    };
    for mutant in [NoFence, FenceHere, TopBeforeFence, CheckFirst, NoUndo, ClaimLeft, ClaimForgotten] {
        refute(Machine::X86, mutant);
    }
    for mutant in [FenceHere, TopBeforeFence, CheckFirst] {
        refute(Machine::Arm, mutant);
    }
    for mutant in [PushRelaxed, TakeRelaxed] {
        explore(&free_stack(Machine::Arm, mutant), LIMIT).must_fail(&format!("free stack, Arm: {mutant:?}"));
    }
}
