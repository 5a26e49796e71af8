//! The scavenger's sleep (`heap/companion.rs`, called by `reclaim/scavenger.rs`): it says that it sleeps, looks again, and sleeps; who
//! gives memory back sets the flag of the region, then looks whether the scavenger sleeps, and wakes it.
//!
//! What has to be so: it never sleeps for ever while a flag is set.

use super::super::explore::{Fault, explore};
use super::{Kind, Machine, Order, Program, Test, Value, Weak};
use Order::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mutant {
    /// The code as it is.
    AsIs,
    /// It does not look again before it sleeps.
    NotLookedAgain,
    /// It looks before it says that it sleeps.
    LookedEarly,
    /// It forgets what it was woken for after it has said that it sleeps.
    ForgottenLate,
    /// It says so by a store that later loads may pass.
    SleepsRelaxed,
    /// The scavenger is noticed before the flag is set.
    NoticedEarly,
    /// Who gives back does not ask whether the scavenger sleeps.
    NotNoticed,
    /// The waker does not say what it wakes for.
    CallForgotten,
    /// It says so after it has woken.
    CallLate,
    /// A fence between the flag and the question, on either side: what a machine like ARM needs.
    Fenced,
    /// Only on the side of the scavenger.
    FencedThere,
    /// Only on the side of who gives back.
    FencedHere,
}
use Mutant::*;

const FLAG: i8 = 0;
const SLEEPS: i8 = 1;
const CALL: i8 = 2;
const WAIT: i8 = 0;
const NOTICED: i8 = 1;

/// `regions::touch`, then `notice`. `set`: it finds the flag clear. `notices`: it is asleep, as far as can be seen; `wakes`: and
/// nobody else has woken it; `calls`: and nobody has said so.
fn give_back(set: bool, notice: [bool; 3], mutant: Mutant) -> Program {
    let mut p = Program::default();
    if mutant == NoticedEarly {
        look(&mut p, notice, mutant);
    }
    let flag = p.load("touch: test", FLAG, Relaxed);
    p.only_if_is(flag, !set as i8);
    if set {
        p.exchange("touch: set", FLAG, 1, Relaxed);
    }
    if matches!(mutant, Fenced | FencedHere) {
        p.special("fence", Kind::Fence);
    }
    if !matches!(mutant, NoticedEarly | NotNoticed) {
        look(&mut p, notice, mutant);
    }
    p
}

fn look(p: &mut Program, [notices, wakes, calls]: [bool; 3], mutant: Mutant) {
    let sleeps = p.load("notice: sleeps?", SLEEPS, Relaxed);
    p.only_if_is(sleeps, notices as i8);
    if !notices {
        return;
    }
    if !wakes {
        // An exchange that changes nothing.
        let sleeps = p.load("wake: sleeps?", SLEEPS, Relaxed);
        return p.only_if_is(sleeps, 0);
    }
    let sleeps = p.exchange("wake: sleeps?", SLEEPS, 0, Relaxed);
    p.only_if_is(sleeps, 1);
    if mutant == CallLate {
        p.special("wake", Kind::Wake);
    }
    if mutant != CallForgotten {
        change(p, "wake: call", [WAIT, NOTICED], calls, Release);
    }
    if mutant != CallLate {
        p.special("wake", Kind::Wake);
    }
}

/// A compare-and-exchange of `CALL` that succeeds, or one that fails.
fn change(p: &mut Program, name: &'static str, [from, to]: [i8; 2], succeeds: bool, order: Order) {
    if succeeds {
        let old = p.exchange(name, CALL, to, order);
        p.only_if_is(old, from);
    } else {
        let old = p.load(name, CALL, Relaxed);
        p.only_if(old, Test::Not, Value::Number(from));
    }
}

/// One way through `sleep(None)`.
#[derive(Clone, Copy)]
struct Sleep {
    /// It forgets an old call before, and after.
    forgets: [bool; 2],
    wanted: bool,
}

/// `sleep`, and what a sweep does to the flag, again and again.
fn scavenge(sleeps: &[Sleep], mutant: Mutant) -> Program {
    let mut p = Program::default();
    for (round, &Sleep { forgets, wanted }) in sleeps.iter().enumerate() {
        if round != 0 {
            p.exchange("sweep: clear", FLAG, 0, AcqRel);
        }
        let is_wanted = |p: &mut Program| {
            let flag = p.load("sleep: wanted?", FLAG, Relaxed);
            p.only_if_is(flag, wanted as i8);
        };
        let forget = |p: &mut Program, succeeds| change(p, "forget the call", [NOTICED, WAIT], succeeds, AcqRel);
        if mutant == LookedEarly {
            is_wanted(&mut p);
        }
        if mutant != ForgottenLate {
            forget(&mut p, forgets[0]);
        }
        p.store("sleeps", SLEEPS, Value::Number(1), if mutant == SleepsRelaxed { Release } else { SeqCst });
        if matches!(mutant, Fenced | FencedThere) {
            p.special("fence", Kind::Fence);
        }
        if !matches!(mutant, LookedEarly | NotLookedAgain) {
            is_wanted(&mut p);
        }
        if mutant == ForgottenLate {
            forget(&mut p, forgets[0]);
        }
        if !wanted {
            p.wait(CALL, WAIT);
        }
        p.store("awake", SLEEPS, Value::Number(0), SeqCst);
        forget(&mut p, forgets[1]);
    }
    p
}

/// Two threads give memory back while the scavenger goes to sleep `rounds` times.
fn model(machine: Machine, rounds: usize, mutant: Mutant) -> Weak {
    let notices = [[false, false, false], [true, false, false], [true, true, false], [true, true, true]];
    let back: Vec<_> =
        [false, true].into_iter().flat_map(|set| notices.map(|notice| give_back(set, notice, mutant))).collect();
    let booleans = [false, true];
    let sleeps =
        booleans.iter().flat_map(|&a| booleans.map(|b| booleans.map(|wanted| Sleep { forgets: [a, b], wanted })));
    let sleeps: Vec<Sleep> = sleeps.flatten().collect();
    let scavengers = if rounds == 1 {
        sleeps.iter().map(|&sleep| scavenge(&[sleep], mutant)).collect()
    } else {
        let pairs = sleeps.iter().flat_map(|&first| sleeps.iter().map(move |&second| [first, second]));
        pairs.map(|pair| scavenge(&pair, mutant)).collect()
    };
    // Nobody sleeps at first; a call may be left from before.
    let memory = [WAIT, NOTICED].map(|call| [0, 0, call, 0, 0, 0, 0, 0]);
    Weak::new(machine, vec![back.clone(), back, scavengers], memory.to_vec(), |_, s| {
        if s.sleeps && s.memory[FLAG as usize] != 0 {
            return Err((Fault::Stuck, "the scavenger sleeps for ever, and something is to be had"));
        }
        Ok(())
    })
}

const LIMIT: usize = 2_000_000;

#[test]
fn it_does_not_sleep_for_ever() {
    explore(&model(Machine::X86, 2, AsIs), LIMIT).must_hold("scavenger, X86, twice");
    explore(&model(Machine::Arm, 1, Fenced), LIMIT).must_hold("scavenger, Arm, fenced");
}

#[test]
fn mutants_are_refuted() {
    let refute = |machine, mutant| {
        explore(&model(machine, 1, mutant), LIMIT).must_fail(&format!("scavenger, {machine:?}: {mutant:?}"));
    };
    for mutant in
        [NotLookedAgain, LookedEarly, ForgottenLate, SleepsRelaxed, NoticedEarly, NotNoticed, CallForgotten, CallLate]
    {
        refute(Machine::X86, mutant);
    }
    // The code is for x86-64, where each exchange and each sequentially consistent store is a fence.
    for mutant in [AsIs, FencedHere, FencedThere] {
        refute(Machine::Arm, mutant);
    }
}
