//! Many threads that fill memory, free everything in random order, and sleep: what do their caches keep?

use std::sync::{Barrier, Mutex};

use super::Setting;
use crate::driver::args::scaled;
use crate::memory_return::link::Kind;
use crate::memory_return::share::{Order, Share, Sizes};

/// Blocks of each thread at scale 1.
const EACH: u64 = 4000;
/// The largest of them in bytes; the least is 16.
const LARGEST: u32 = 1024;

/// Runs it on `setting.threads` threads beside the first. Returns the damaged blocks.
pub fn run(setting: &Setting) -> u64 {
    let sizes = Sizes::UpTo(LARGEST, scaled(EACH, setting.scale));
    let shares: Vec<_> =
        (0..setting.threads).map(|thread| Mutex::new(Share::new(sizes, 0, setting.seed, u64::from(thread)))).collect();
    let barrier = Barrier::new(shares.len() + 1);
    let damaged = Mutex::new(0);
    setting.start();
    let work = |share: &Mutex<Share>| {
        setting.link.thread();
        let mut share = share.lock().expect("nobody panics");
        share.allocate();
        share.order(Order::Random);
        barrier.wait();
        barrier.wait();
        share.free();
        share.forget_table();
        barrier.wait();
        barrier.wait();
        *damaged.lock().expect("nobody panics") += share.verify();
    };
    std::thread::scope(|scope| {
        let work = &work;
        shares.iter().for_each(|share| drop(scope.spawn(move || work(share))));
        barrier.wait();
        setting.link.ask(Kind::Peak, 0);
        barrier.wait();
        barrier.wait();
        setting.link.say(Kind::Drained, 0);
        setting.link.wait();
        barrier.wait();
    });
    damaged.into_inner().expect("nobody panics")
}
