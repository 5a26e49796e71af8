//! What holds, what does not, and which mutants are refuted.

use super::super::explore::{Fault, Outcome, explore};
use super::owner::At;
use super::{Code, Forker, Mutant, Steal};

/// An exploration that needs more is made smaller: the tests are to stay quick.
const LIMIT: usize = 6_000_000;

const CODES: [Code; 2] = [Code::Earlier, Code::Now];

#[test]
fn no_block_is_taken_twice_or_lost() {
    for code in CODES {
        let model = Steal { code, thefts: 2, refusable: true, ..Steal::BASE };
        explore(&model, LIMIT).must_hold(&format!("{code:?}: owner and two thefts, the fence may be refused"));
        let model = Steal { code, calls: 7, blocks: 6, ..Steal::BASE };
        explore(&model, LIMIT).must_hold(&format!("{code:?}: owner, seven calls, and one theft"));
    }
}

#[test]
fn a_start_is_noticed() {
    for code in CODES {
        let model = Steal { code, switches: 2, ..Steal::BASE };
        explore(&model, LIMIT).must_hold(&format!("{code:?}: owner, theft, start and stop"));
    }
}

#[test]
fn the_drawn_allocation_is_the_sampled_one() {
    for code in CODES {
        let model = Steal { code, switches: 2, sampling: true, calls: 3, ..Steal::BASE };
        explore(&model, LIMIT).must_hold(&format!("{code:?}: owner, theft, sampling on, stop and start"));
    }
}

#[test]
fn the_fence_is_enough_where_memory_is_weak() {
    for code in CODES {
        let model = Steal { code, weak: true, thefts: 2, refusable: true, calls: 3, ..Steal::BASE };
        explore(&model, LIMIT).must_hold(&format!("{code:?}: weak memory, two thefts"));
        let model = Steal { code, weak: true, switches: 1, calls: 3, ..Steal::BASE };
        explore(&model, LIMIT).must_hold(&format!("{code:?}: weak memory, theft and start"));
    }
}

#[test]
fn mutants_are_refuted() {
    use Mutant::*;
    let base = Steal::BASE;
    let started = Steal { switches: 1, ..base };
    let sampling = Steal { sampling: true, ..base };
    let weak = Steal { weak: true, ..base };
    let now = Steal { code: Code::Now, ..base };
    for (mutant, model) in [
        (NoFence, base),
        (NoFence, now),
        (NoFence, weak),
        (CheckFirst, base),
        (CheckFirst, now),
        (CheckFirst, weak),
        (TopBeforeFence, base),
        (TopBeforeFence, weak),
        (NoUndo, base),
        (NoUndo, Steal { switches: 1, ..now }),
        (ClaimForgotten, base),
        (StolenCount, base),
        (NoRelease, weak),
    ] {
        let name = format!("{mutant:?} ({:?}{})", model.code, if model.weak { ", weak memory" } else { "" });
        let bad = explore(&Steal { mutant, ..model }, LIMIT).must_fail(&name);
        assert!(bad.0 >= Fault::Lost || mutant == StolenCount);
    }
    for (mutant, model) in
        [(LimitForgotten, sampling), (ThiefOpensPoison, started), (RoomOpensPoison, started), (NoPoison, started)]
    {
        let bad = explore(&Steal { mutant, ..model }, LIMIT).must_fail(&format!("{mutant:?}"));
        assert_eq!(bad.0, Fault::Inexact);
    }
}

/// Where a signal handler that allocates and frees does harm: in the fast paths, which know nothing of signals.
const FAST_PATHS: [At; 5] = [At::StoreTop, At::LoadBottom, At::ReadSlot, At::StoreSlot, At::StoreFree];

/// A signal interrupts the owner at one of these places, once; its handler makes two calls.
fn interrupted(code: Code, at: u64) -> Steal {
    Steal { code, calls: 3, thefts: 0, handler_calls: 2, interrupted_at: at, ..Steal::BASE }
}

const SURROUNDINGS: [(&str, u8, u8); 3] = [("alone", 0, 0), ("with a theft", 1, 0), ("with a start", 0, 1)];

/// Places at which a signal does harm, and the worst of it.
fn harmful(code: Code, thefts: u8, switches: u8) -> Vec<(At, Fault)> {
    let worst = |at: At| {
        let model = Steal { thefts, switches, ..interrupted(code, at.mask()) };
        [Fault::Twice, Fault::Lost, Fault::Stuck].into_iter().find_map(|least| {
            match explore(&Steal { least, ..model }, LIMIT) {
                Outcome::Violated { bad, .. } => Some((at, bad.0)),
                Outcome::Holds { .. } => None,
            }
        })
    };
    At::all().filter_map(worst).collect()
}

#[test]
fn signal_handlers_in_the_earlier_code() {
    for (name, thefts, switches) in SURROUNDINGS {
        let mut found = harmful(Code::Earlier, thefts, switches);
        println!("a signal does harm ({name}) at {found:?}");
        found.retain(|(at, _)| !FAST_PATHS.contains(at));
        let mut expected = vec![(At::SettleStore, Fault::Twice)];
        if name != "alone" {
            expected.insert(0, (At::Slow, Fault::Twice));
        }
        // A handler that frees as many blocks as a stack has slots.
        let full = [(At::Unbusy, Fault::Lost), (At::Unlock, Fault::Lost), (At::LoadFree, Fault::Lost)];
        expected.extend(full);
        expected.push((At::RoomLock, Fault::Lost));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn signal_handlers() {
    let mut unsafe_places = FAST_PATHS.to_vec();
    unsafe_places.push(At::Entry);
    let safe = At::all().filter(|at| !unsafe_places.contains(at)).map(At::mask).sum();
    for (name, thefts, switches) in SURROUNDINGS {
        let model = Steal { thefts, switches, ..interrupted(Code::Now, safe) };
        explore(&model, LIMIT).must_hold(&format!("Now: a signal anywhere but in the fast paths, {name}"));
    }
    for at in unsafe_places {
        let bad = explore(&interrupted(Code::Now, at.mask()), LIMIT).must_fail(&format!("Now: a signal at {at:?}"));
        assert!(bad.0 >= Fault::Inexact);
    }
    for mutant in [Mutant::OpenBeforeTop, Mutant::NotClosed] {
        let model = Steal { mutant, ..interrupted(Code::Now, safe) };
        explore(&model, LIMIT).must_fail(&format!("{mutant:?} (Now, signals)"));
    }
    let model = Steal { mutant: Mutant::UndoAlways, ..interrupted(Code::Earlier, At::Slow.mask()) };
    explore(&model, LIMIT).must_fail("UndoAlways (Earlier, signals)");
}

fn forked(code: Code, forker: Forker, switches: u8) -> Steal {
    Steal { code, thefts: 2 - switches, switches, calls: 2, child_calls: 2, forker, ..Steal::BASE }
}

#[test]
fn a_child_repairs() {
    for forker in [Forker::Another, Forker::Owner, Forker::Thief] {
        for switches in [0, 1] {
            let model = forked(Code::Now, forker, switches);
            let with = if switches == 0 { "two thefts" } else { "theft and start" };
            explore(&model, LIMIT).must_hold(&format!("Now: {forker:?} forks, {with}"));
        }
    }
    use Mutant::*;
    for mutant in [BusyClearedEarly, BusyNotSet, ChildKeepsLock, ChildKeepsBusy] {
        let model = Steal { mutant, calls: 3, ..forked(Code::Now, Forker::Another, 0) };
        explore(&model, LIMIT).must_fail(&format!("{mutant:?} (Now)"));
    }
}

#[test]
fn a_child_of_the_earlier_code() {
    // The child drops the claims of a vanished thief, but does not take back a failed pop of the vanished owner; and `settle` may
    // leave `top` below `limit`.
    for (forker, switches, fault) in [
        (Forker::Another, 0, Some(Fault::Twice)),
        (Forker::Another, 1, Some(Fault::Twice)),
        (Forker::Owner, 0, None),
        (Forker::Owner, 1, Some(Fault::Lost)),
        (Forker::Thief, 0, None),
        (Forker::Thief, 1, Some(Fault::Twice)),
    ] {
        let outcome = explore(&forked(Code::Earlier, forker, switches), LIMIT);
        let name = format!("Earlier: {forker:?} forks");
        match fault {
            None => drop(outcome.must_hold(&name)),
            Some(fault) => assert_eq!(outcome.must_fail(&name).0, fault),
        }
    }
}
