//! The rules that were needed before, shared by all threads without a lock.
//!
//! An entry is one 64-bit word: a packed rule and the part of the program counter that its place does not tell. A word is
//! written and read in one piece, so an entry can never pair one address with another's rule, however many threads write.
//!
//! To make that fit, a program counter (47 bits) is multiplied with an odd number modulo 2^47. This loses nothing, and mixes
//! low bits into high ones: the upper 13 bits choose a set, the lower 34 are kept in the entry beside the 30 of the rule.
//!
//! 8,192 sets of two are 128 KiB, of which only touched pages become memory.

use super::arch::{ADDRESS_BITS, Packed};
use core::array;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

const SET_BITS: u32 = 13;
const TAG_BITS: u32 = ADDRESS_BITS - SET_BITS;
const _: () = assert!(TAG_BITS + Packed::BITS <= u64::BITS);

/// Odd, and near 2^47 divided by the golden ratio: neighbouring addresses go far apart.
const MULTIPLIER: u64 = 0x4f1b_bcdc_bfa5;

/// Two entries, the newer first. 0 is no entry, as no rule is 0.
#[repr(align(16))]
struct Set([AtomicU64; 2]);

static SETS: [Set; 1 << SET_BITS] = [const { Set([const { AtomicU64::new(0) }; 2]) }; 1 << SET_BITS];

/// Changes whenever rules that were known may no longer be true.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// What is known by rules holds as long as this stays the same.
#[inline(always)]
pub(super) fn generation() -> u32 {
    GENERATION.load(Acquire)
}

/// Where an address belongs, and what its entry begins with; `None` outside a program's address space.
#[inline(always)]
fn place(pc: usize) -> Option<(&'static Set, u64)> {
    if pc >> ADDRESS_BITS != 0 {
        return None;
    }
    let mixed = (pc as u64).wrapping_mul(MULTIPLIER) & ((1 << ADDRESS_BITS) - 1);
    let set = SETS.get((mixed >> TAG_BITS) as usize)?;
    Some((set, mixed & ((1 << TAG_BITS) - 1)))
}

/// The rule for an address, if it is known.
#[inline(always)]
pub(super) fn get(pc: usize) -> Option<Packed> {
    let (set, tag) = place(pc)?;
    for slot in &set.0 {
        // Relaxed: the word is the whole message.
        let entry = slot.load(Relaxed);
        if entry >> Packed::BITS == tag && entry != 0 {
            return Some(Packed::from_bits(entry));
        }
    }
    None
}

/// Keep the rule for an address, in the place of the older one of its set.
pub(super) fn put(pc: usize, rule: Packed) {
    if let Some((set, tag)) = place(pc) {
        let [newer, older] = array::from_fn(|i| &set.0[i]);
        older.store(newer.load(Relaxed), Relaxed);
        newer.store(tag << Packed::BITS | rule.bits(), Relaxed);
    }
}

/// Forget all rules. To be called after a module was unloaded (`dlclose` returned): another may come to the same addresses.
///
/// What was in flight does not bring old rules back: rules are put in for frames that their thread is in, and a module that
/// a thread has a frame in is not unloaded. Rules that are out of date all the same, because this was not called, or not
/// yet, give wrong frames but no wild reads: each read of a walk is checked by itself.
///
/// Costs about 10 us, takes no lock and may be called at any moment.
pub(crate) fn invalidate() {
    for slot in SETS.iter().flat_map(|set| &set.0) {
        // Reading first leaves pages untouched that never held a rule.
        if slot.load(Relaxed) != 0 {
            slot.store(0, Relaxed);
        }
    }
    // Last: who reads the new generation finds no old rule any more.
    GENERATION.fetch_add(1, Release);
}
