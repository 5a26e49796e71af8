//! What the machines do is known for small programs: each outcome here is possible on ARM, or on x86-64, or is not.

use super::super::explore::{Fault, Outcome, explore};
use super::{Kind, Machine, Order, Program, Value};
use super::{Order::*, Weak};

const X: i8 = 1;
const Y: i8 = 2;

/// Whether the threads can end so that each `has` what is written there last: all ones.
fn possible(machine: Machine, threads: &[Program]) -> bool {
    let threads = threads.iter().map(|program| vec![program.clone()]).collect();
    let model = Weak::new(machine, threads, vec![[0; 8]], |model, s| {
        let all = (0..model.threads()).flat_map(|thread| model.has(s, thread)).all(|value| value == 1);
        if all { Err((Fault::Twice, "the outcome")) } else { Ok(()) }
    });
    matches!(explore(&model, 100_000), Outcome::Violated { .. })
}

fn program(build: impl FnOnce(&mut Program)) -> Program {
    let mut program = Program::default();
    build(&mut program);
    program
}

/// Write one place, with something in between, and then find the other one unwritten.
fn store_then_load(here: i8, there: i8, order: Order, fence: Option<Kind>) -> Program {
    program(|p| {
        p.store("store", here, Value::Number(1), order);
        if let Some(kind) = fence {
            p.special("fence", kind);
        }
        let seen = p.load("load", there, if order == SeqCst { Acquire } else { order });
        p.only_if_is(seen, 0);
        p.has.push(Value::Number(1));
    })
}

/// Write X, then Y.
fn message(release: Order) -> Program {
    program(|p| {
        p.store("message", X, Value::Number(1), Relaxed);
        p.store("flag", Y, Value::Number(1), release);
    })
}

/// Find Y written, and then X not.
fn receive(acquire: Order, branch: bool, address: bool) -> Program {
    program(|p| {
        let flag = p.load("flag", Y, acquire);
        if branch {
            p.only_if_is(flag, 1);
        }
        let at = if address { flag.plus(X - 1) } else { Value::Number(X) };
        let found = p.load_at("message", at, Relaxed);
        p.only_if_is(flag, 1);
        p.only_if_is(found, 0);
        p.has.push(Value::Number(1));
    })
}

/// Load one place, then store to the other.
fn load_then_store(from: i8, to: i8, branch: bool) -> Program {
    program(|p| {
        let seen = p.load("load", from, Relaxed);
        if branch {
            p.only_if_is(seen, 1);
        }
        p.store("store", to, Value::Number(1), Relaxed);
        p.has.push(seen);
    })
}

#[test]
fn the_machines_do_what_is_known_of_them() {
    use Machine::*;
    let none = None;
    let stores =
        |order, fence: Option<Kind>| [store_then_load(X, Y, order, fence), store_then_load(Y, X, order, fence)];
    let one_sided = [store_then_load(X, Y, Relaxed, Some(Kind::FenceAll)), store_then_load(Y, X, Relaxed, none)];
    let messages = |release, receiver: Program| [message(release), receiver];
    let loads = |branch| [load_then_store(X, Y, branch), load_then_store(Y, X, branch)];
    // The second load of a place finds what is older than what the first has found.
    let twice = program(|p| {
        let (first, second) = (p.load("first", X, Relaxed), p.load("second", X, Relaxed));
        p.only_if_is(second, 0);
        p.has.push(first);
    });
    let once = program(|p| p.store("store", X, Value::Number(1), Relaxed));
    // Two see two stores of others in different order.
    let sees = |first, second| {
        program(|p| {
            let (new, old) = (p.load("new", first, Acquire), p.load("old", second, Acquire));
            p.only_if_is(old, 0);
            p.has.push(new);
        })
    };
    let independent = [message(Release), sees(X, Y), sees(Y, X)];
    for (what, threads, on_arm, on_x86) in [
        ("SB", &stores(Relaxed, none)[..], true, true),
        ("SB, a fence each", &stores(Relaxed, Some(Kind::Fence)), false, false),
        ("SB, sequentially consistent", &stores(SeqCst, none), false, false),
        ("SB, a fence of all in one", &one_sided, false, false),
        ("MP", &messages(Relaxed, receive(Relaxed, false, false)), true, false),
        ("MP, release", &messages(Release, receive(Relaxed, false, false)), true, false),
        ("MP, release and a branch", &messages(Release, receive(Relaxed, true, false)), true, false),
        ("MP, acquire", &messages(Relaxed, receive(Acquire, false, false)), true, false),
        ("MP, release and acquire", &messages(Release, receive(Acquire, false, false)), false, false),
        ("MP, release and an address", &messages(Release, receive(Relaxed, false, true)), false, false),
        ("LB", &loads(false), true, false),
        ("LB, branches", &loads(true), false, false),
        ("CoRR", &[once, twice], false, false),
        ("independent readers", &independent, false, false),
    ] {
        assert_eq!(possible(Arm, threads), on_arm, "{what}, ARM");
        assert_eq!(possible(X86, threads), on_x86, "{what}, x86-64");
    }
}
