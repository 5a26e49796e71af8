//! Two threads use memory, free it, and then nobody does anything: does the process ever wake up?

use std::sync::{Barrier, Mutex};

use super::Setting;
use super::churn::{self, SURVIVAL};
use crate::memory_return::link::Kind;
use crate::memory_return::share::Order;

/// Runs it on one worker beside the first thread, both of which allocate. Returns the damaged blocks.
pub fn run(setting: &Setting) -> u64 {
    let shares = [0, 1].map(|worker| Mutex::new(churn::share(setting, worker, 2)));
    let barrier = Barrier::new(2);
    setting.start();
    let work = |number: usize| {
        let mut share = shares[number].lock().expect("nobody panics");
        share.allocate();
        share.choose(SURVIVAL, Order::Sequential);
        barrier.wait();
        if number == 0 {
            setting.link.ask(Kind::Peak, 0);
        }
        barrier.wait();
        share.free();
        barrier.wait();
        if number == 0 {
            setting.link.say(Kind::Drained, 0);
            setting.link.wait();
        }
        barrier.wait();
        share.verify()
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            setting.link.thread();
            work(1)
        });
        work(0) + other.join().expect("nobody panics")
    })
}
