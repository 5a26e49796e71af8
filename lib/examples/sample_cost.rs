//! What a sampled allocation costs more than one that is not: a block of 64 bytes, allocated under a stack of 30 frames and freed.
//!
//! ```sh
//! cargo run --release -p mimalloc-pprof --example sample_cost
//! ```
//!
//! With a rate of one byte every allocation is sampled. *Warm*: the same stack each time, freed at once. *Kept*: 1,000 blocks are live.
//! *Spread*: the same under 1,000 stacks in turn.

use mimalloc_pprof::api::c;
use std::hint::black_box;
use std::time::Instant;

#[global_allocator]
static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;

const FRAMES: u32 = 30;
const PAIRS: u32 = 200_000;

/// So many frames, of which some number tells one stack from another.
#[inline(never)]
fn under(frames: u32, which: u32, work: &mut dyn FnMut()) {
    if frames == 0 {
        work();
    } else if which & 1 == 0 {
        under(frames - 1, which >> 1, work);
        black_box(());
    } else {
        under(frames - 1, which >> 1, work);
        black_box(1);
    }
}

/// Nanoseconds for each pair.
fn pairs(which: u32, kept: &mut [*mut u8]) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..7 {
        let mut spent = 0.0;
        let mut pair = 0;
        while pair < PAIRS {
            // A thousand at a time, so that the frames themselves cost nothing.
            let mut some = || {
                let start = Instant::now();
                for i in 0..1000 {
                    // SAFETY: each is freed once, and null may be freed.
                    unsafe {
                        let place = i % kept.len();
                        c::free(kept[place]);
                        kept[place] = black_box(c::malloc(64));
                    }
                }
                spent += start.elapsed().as_nanos() as f64;
            };
            under(FRAMES, if which == 0 { 0 } else { pair / 1000 % which }, &mut some);
            pair += 1000;
        }
        best = best.min(spent / PAIRS as f64);
    }
    for block in kept {
        // SAFETY: as above.
        unsafe { c::free(core::mem::replace(block, core::ptr::null_mut())) };
    }
    best
}

fn main() {
    let nothing = core::ptr::null_mut();
    for (name, which, kept) in [("warm", 0, 1), ("kept", 0, 1000), ("spread", 1000, 1000)] {
        let plain = pairs(which, &mut vec![nothing; kept]);
        assert!(c::prof_start_seeded(1, 1));
        let sampled = pairs(which, &mut vec![nothing; kept]);
        c::prof_stop();
        println!("{name:6}: {plain:6.1} ns a pair, sampled {sampled:6.0}: {:5.0} ns for a sample", sampled - plain);
    }
}
