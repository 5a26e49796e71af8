//! Rounds of blocks, each round in a size class of its own, with survivors on every second page: how high does it pile up?

use std::sync::Barrier;
use std::time::Duration;

use super::Setting;
use crate::driver::args::scaled;
use crate::memory_return::link::Kind;
use crate::memory_return::share::{Order, Share, Sizes};

/// Bytes of all rounds together at scale 1: 400,000 blocks of 512 B.
const BYTES: u64 = 400_000 * 512;
/// The sizes of the rounds, in bytes: no two in one class of any allocator we know.
const SIZES: [u32; 12] = [192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280];
/// Two pages, of which one has a survivor.
const PAIR: usize = 8192;

/// Of so many blocks of the largest size one may be the first in a pair.
const SURVIVAL: usize = PAIR / 1280;

/// Runs it on one worker beside the first thread, with a pause after each round. Returns the damaged blocks.
pub fn run(order: Order, pause: Duration, setting: &Setting) -> u64 {
    let bytes = scaled(BYTES, setting.scale) / SIZES.len() as u64;
    let barrier = Barrier::new(2);
    setting.start();
    let rounds = || {
        setting.link.thread();
        let mut shares = SIZES.map(|size| {
            let sizes = Sizes::one(size, bytes / u64::from(size));
            let mut share = Share::new(sizes, SURVIVAL, setting.seed, u64::from(size));
            share.allocate();
            keep_one_of_two_pages(&mut share);
            share.order(order);
            share.free();
            share.forget_table();
            std::thread::sleep(pause);
            share
        });
        barrier.wait();
        barrier.wait();
        shares.iter_mut().map(Share::verify).sum()
    };
    std::thread::scope(|scope| {
        let worker = scope.spawn(rounds);
        barrier.wait();
        setting.link.ask(Kind::Peak, 0);
        setting.link.say(Kind::Drained, 0);
        setting.link.wait();
        barrier.wait();
        worker.join().expect("nobody panics")
    })
}

/// The first block that begins in a pair of pages stays: it ends in the first of the two, for blocks are smaller than half a page.
fn keep_one_of_two_pages(share: &mut Share) {
    let mut last = usize::MAX;
    share.choose_by_address(|address| {
        let is_new = address / PAIR != last;
        last = address / PAIR;
        is_new
    });
}
