//! Rows with threads: workers that live through all repeats, or passes that make and end their own threads.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};

use super::block::Tally;
use super::timing::{Budget, Figures, Pin, Repeat, Settings};
use crate::driver::clock;

/// What one thread does in each pass.
pub trait Worker {
    /// Does one pass and returns its operations.
    fn pass(&mut self) -> u64;

    /// Comes after each of this worker's passes, again and again until all workers have done theirs; not measured. Returns
    /// whether there was anything to do.
    fn meanwhile(&mut self) -> bool {
        false
    }

    /// Processor time of the last pass that was waiting, not work, in nanoseconds.
    fn waited(&self) -> u64 {
        0
    }

    /// Comes once after each pass, when no worker is in it any more; not measured. Returns what the pass read back.
    fn settle(&mut self) -> Tally;
}

/// One pass of all workers, as they add to it.
#[derive(Debug, Default)]
struct Pass {
    operations: AtomicU64,
    cpu: AtomicU64,
    wall: AtomicU64,
    tally: Mutex<Tally>,
    done: AtomicU32,
}

impl Pass {
    fn result(&self) -> (Repeat, Tally) {
        let [operations, cpu, wall] = [&self.operations, &self.cpu, &self.wall].map(|sum| sum.load(Ordering::Relaxed));
        (Repeat { operations, cpu, wall }, *self.tally.lock().expect("nobody panics"))
    }

    /// The part of one worker, until all have done theirs.
    fn work(&self, worker: &mut impl Worker, threads: u32) {
        let (wall, start) = (clock::wall(), clock::thread_cpu());
        let did = worker.pass();
        let took = (clock::thread_cpu() - start).saturating_sub(worker.waited());
        self.wall.fetch_max(clock::wall() - wall, Ordering::Relaxed);
        self.operations.fetch_add(did, Ordering::Relaxed);
        self.cpu.fetch_add(took, Ordering::Relaxed);
        self.done.fetch_add(1, Ordering::AcqRel);
        while self.done.load(Ordering::Acquire) < threads {
            if !worker.meanwhile() {
                std::thread::yield_now();
            }
        }
        self.tally.lock().expect("nobody panics").merge(worker.settle());
    }
}

/// Runs `settings.threads` workers, each made on its own thread, for one pass to warm up and `settings.repeats` more.
pub fn with_workers<W: Worker>(settings: &Settings, make: impl Fn(u32) -> W + Sync) -> Figures {
    let threads = settings.threads;
    let barrier = Barrier::new(threads as usize);
    let passes: Vec<Pass> = (0..=settings.repeats).map(|_| Pass::default()).collect();
    let goes_on = AtomicBool::new(true);
    let work = |number: u32| {
        pin(settings.pin, number);
        let mut worker = make(number);
        let budget = Budget::start(settings);
        for (at, pass) in passes.iter().enumerate() {
            // The first worker decides before this barrier, and all read after it: it cannot decide anew before all of them
            // have done their part of the pass.
            if number == 0 && at >= 2 && !budget.is_left() {
                goes_on.store(false, Ordering::Relaxed);
            }
            barrier.wait();
            if !goes_on.load(Ordering::Relaxed) {
                break;
            }
            pass.work(&mut worker, threads);
        }
    };
    std::thread::scope(|scope| {
        let work = &work;
        (0..threads).for_each(|number| drop(scope.spawn(move || work(number))));
    });
    let done: Vec<_> =
        passes.iter().skip(1).map(Pass::result).take_while(|(repeat, _)| repeat.operations > 0).collect();
    Figures::of_passes(&done)
}

/// Measures whole passes on the processor time of the process, so threads may come and go in them. `pass` returns its
/// operations and what it read back. One more pass warms up.
pub fn with_passes(settings: &Settings, mut pass: impl FnMut() -> (u64, Tally)) -> Figures {
    let budget = Budget::start(settings);
    let mut passes = Vec::with_capacity(settings.repeats as usize + 1);
    while passes.len() < 2 || (passes.len() <= settings.repeats as usize && budget.is_left()) {
        let (wall, cpu) = (clock::wall(), clock::process_cpu());
        let (operations, tally) = pass();
        let (cpu, wall) = (clock::process_cpu() - cpu, clock::wall() - wall);
        passes.push((Repeat { operations, cpu, wall }, tally));
    }
    Figures::of_passes(&passes[1..])
}

/// Runs `work` on `settings.threads` new threads, and waits for them.
pub fn on_threads<T: Send>(settings: &Settings, work: impl Fn(u32) -> T + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..settings.threads)
            .map(|number| {
                scope.spawn(move || {
                    pin(settings.pin, number);
                    work(number)
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().expect("a worker does not panic")).collect()
    })
}

/// Adds up what threads did: operations and what they read back.
#[must_use]
pub fn sum(ended: Vec<(u64, Tally)>) -> (u64, Tally) {
    ended.into_iter().fold((0, Tally::default()), |(operations, mut tally), (more, other)| {
        tally.merge(other);
        (operations + more, tally)
    })
}

/// Ties the calling thread to a processor. Where that is not allowed it runs anywhere.
fn pin(pin: Pin, number: u32) {
    // SAFETY: an all-zero set is the empty set, and the pointers are to it.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if pin == Pin::No || libc::sched_getaffinity(0, size_of_val(&allowed), &raw mut allowed) != 0 {
            return;
        }
        let mut processors = (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &allowed));
        let chosen = match pin {
            Pin::One => processors.next_back(),
            _ => processors.nth(number as usize % (libc::CPU_COUNT(&allowed).max(1) as usize)),
        };
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        if let Some(processor) = chosen {
            libc::CPU_SET(processor, &mut one);
            libc::sched_setaffinity(0, size_of_val(&one), &raw const one);
        }
    }
}
