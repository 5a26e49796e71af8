//! Three sizes, of which a scattered 1 in 20 survives: the drain that memory return is measured with.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::Duration;

use super::Setting;
use super::caller::{Call, Caller};
use super::occupation::{Done, During, occupy};
use crate::driver::args::scaled;
use crate::driver::clock;
use crate::memory_return::link::Kind;
use crate::memory_return::purge::Purge;
use crate::memory_return::share::{Order, Share, Sizes};

/// Block sizes in bytes, and how many blocks of each there are at scale 1.
pub const MIX: [(u32, u64); 3] = [(512, 150_000), (1024, 100_000), (2048, 50_000)];
/// One block survives of each run of this many.
pub const SURVIVAL: usize = 20;

/// What differs between runs.
#[derive(Clone, Copy, Debug)]
pub struct Churn {
    /// In which order blocks are freed.
    pub order: Order,
    /// What workers do after the drain.
    pub during: During,
    /// Whether somebody asks for the return.
    pub call: Call,
    /// Time between two calls.
    pub every: Duration,
}

/// The share of worker `worker` of `workers`.
pub(super) fn share(setting: &Setting, worker: u32, workers: u32) -> Share {
    let (worker, workers) = (u64::from(worker), u64::from(workers));
    let groups = MIX.map(|(size, blocks)| {
        let blocks = scaled(blocks, setting.scale);
        (size, blocks / workers + u64::from(worker < blocks % workers))
    });
    Share::new(Sizes::Groups(groups), SURVIVAL, setting.seed, worker)
}

/// Runs it on `setting.threads` workers beside the first thread. Returns the damaged blocks.
pub fn run(churn: &Churn, setting: &Setting) -> u64 {
    let every = (churn.call == Call::Purge).then_some(churn.every);
    let caller = match churn.call {
        Call::None | Call::Own => None,
        Call::Purge | Call::Once => Caller::new(every, setting.link),
    };
    let result = match &caller {
        Some(caller) => caller.beside(|| with_workers(churn, setting, Some(caller))),
        None => with_workers(churn, setting, None),
    };
    if let Some(caller) = &caller {
        caller.tell();
    }
    result
}

fn with_workers(churn: &Churn, setting: &Setting, caller: Option<&Caller>) -> u64 {
    let workers = setting.threads;
    let shares: Vec<_> = (0..workers).map(|worker| Mutex::new(share(setting, worker, workers))).collect();
    let (barrier, stop) = (Barrier::new(workers as usize + 1), AtomicBool::new(false));
    let total = Mutex::new((Done::default(), 0u64, 0u64));
    let own = if churn.call == Call::Own { Purge::of_thread() } else { None };
    setting.start();
    let work = |share: &Mutex<Share>| {
        setting.link.thread();
        let mut share = share.lock().expect("nobody panics");
        share.allocate();
        share.choose(SURVIVAL, churn.order);
        barrier.wait();
        barrier.wait();
        let cpu = clock::thread_cpu();
        share.free();
        let drain = clock::thread_cpu() - cpu;
        barrier.wait();
        own.iter().for_each(|own| own.call());
        let done = occupy(churn.during, &stop);
        barrier.wait();
        let damaged = share.verify();
        let mut total = total.lock().expect("nobody panics");
        *total = (total.0.and(done), total.1 + drain, total.2 + damaged + done.damaged);
    };
    std::thread::scope(|scope| {
        let work = &work;
        shares.iter().for_each(|share| drop(scope.spawn(move || work(share))));
        barrier.wait();
        setting.link.ask(Kind::Peak, 0);
        barrier.wait();
        barrier.wait();
        setting.link.say(Kind::Drained, 0);
        if let Some(caller) = caller {
            caller.begin();
            // While system calls are counted nobody waits for the end of the watch.
            caller.wait_for_first();
        }
        setting.link.wait();
        stop.store(true, Ordering::Relaxed);
        barrier.wait();
    });
    let (done, drain, damaged) = *total.lock().expect("nobody panics");
    setting.link.figure("drain_cpu_ms", drain as f64 / 1e6);
    for (name, ns) in ["busy_first_second_ns", "busy_later_ns"].iter().zip(done.ns()) {
        if let Some(ns) = ns {
            setting.link.figure(name, ns);
        }
    }
    damaged
}
