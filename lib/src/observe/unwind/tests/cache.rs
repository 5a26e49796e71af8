//! The rule cache. It is one for the whole process, so these tests use addresses of their own and one lock.

use super::super::rule_cache::{get, invalidate, put};
use super::super::x86_64::{Base, Packed, Plain, Rule};
use super::Random;
use super::std::sync::{Mutex, MutexGuard, PoisonError};
use super::std::thread;
use super::std::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A rule that tells which address it was made for, as far as a rule can.
fn rule_of(pc: usize) -> Packed {
    let mixed = (pc as u64).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32;
    let (cfa, saved) = (1 + (mixed as u16 >> 1), (mixed >> 16) as u16 & 0x7ff);
    Rule::Plain(Plain { base: Base::StackPointer, interrupted: false, cfa, saved }).pack()
}

#[test]
fn keeps_what_was_put_in() {
    let _alone = alone();
    for pc in (0x1000_0000..0x1000_4000).step_by(16) {
        put(pc, rule_of(pc));
        assert_eq!(get(pc), Some(rule_of(pc)));
        assert_eq!(get(pc + 1), None);
    }
    // 1,024 addresses in 16,384 places: nearly all are still there.
    let kept = (0x1000_0000..0x1000_4000).step_by(16).filter(|pc| get(*pc) == Some(rule_of(*pc))).count();
    assert!(kept > 900, "{kept} of 1024");
    invalidate();
    assert!((0x1000_0000..0x1000_4000).all(|pc| get(pc).is_none()));
}

#[test]
fn addresses_never_stand_for_each_other() {
    let _alone = alone();
    let mut random = Random(99);
    for round in 0..200_000 {
        let pc = (random.next() >> 17) as usize;
        put(pc, rule_of(pc));
        // Every other bit pattern near it, and a random one.
        for other in [pc ^ 1 << (round % 47), pc ^ (random.next() >> 17) as usize] {
            if other != pc {
                assert!(get(other).is_none_or(|rule| rule == rule_of(other)), "{pc:#x} {other:#x}");
            }
        }
    }
    // Outside the address space nothing is kept, also not for the address with the same low bits.
    put(1 << 47 | 0x1234, rule_of(0x1234));
    assert_eq!(get(1 << 47 | 0x1234), None);
    assert!(get(0).is_none());
    invalidate();
}

#[test]
fn racing_writers_never_pair_an_address_with_anothers_rule() {
    let _alone = alone();
    // Many addresses for few sets, so that entries are replaced all the time.
    let addresses: Vec<usize> = (0..1 << 21).map(|i| 0x5555_0000_0000 + i).filter(|pc| set_of(*pc) < 4).collect();
    assert!(addresses.len() > 200);
    let hits = AtomicUsize::new(0);
    thread::scope(|scope| {
        for seed in 1..=4 {
            let (addresses, hits) = (&addresses, &hits);
            scope.spawn(move || {
                let mut random = Random(seed);
                for _ in 0..200_000 {
                    let pc = addresses[random.below(addresses.len() as u64) as usize];
                    match get(pc) {
                        Some(rule) => {
                            assert_eq!(rule, rule_of(pc), "{pc:#x}");
                            hits.fetch_add(1, Relaxed);
                        }
                        None => put(pc, rule_of(pc)),
                    }
                    if random.below(10_000) == 0 {
                        invalidate();
                    }
                }
            });
        }
    });
    assert!(hits.load(Relaxed) > 100);
    invalidate();
}

/// The set of an address, by the rule in the module's documentation.
fn set_of(pc: usize) -> u64 {
    (pc as u64).wrapping_mul(0x4f1b_bcdc_bfa5) >> 34 & 0x1fff
}
