//! A process that has one thread and never another: who gives its memory back?

use std::time::Duration;

use super::Setting;
use super::churn::{self, SURVIVAL};
use crate::driver::args::scaled;
use crate::driver::clock;
use crate::measured::block::Block;
use crate::memory_return::link::Kind;
use crate::memory_return::purge::Purge;
use crate::memory_return::share::{Order, Share, Sizes};

/// What comes after the drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Then {
    /// A pair of malloc and free each millisecond.
    Pairs,
    /// It blocks, without another call to the allocator.
    Block,
    /// Instead of one drain: grow and drain over and over, each time at another moment of a policy's clock.
    Loop,
}

/// The size of the blocks of [`Then::Loop`].
const LOOP_SIZE: u32 = 512;
/// How much a cycle of the loop allocates at scale 1.
const LOOP_BYTES: u64 = 100_000_000;

/// What differs between runs.
#[derive(Clone, Copy, Debug)]
pub struct Alone {
    /// What comes after the drain.
    pub then: Then,
    /// In which order blocks are freed.
    pub order: Order,
    /// Whether the thread asks for the return, once, right after the drain.
    pub asks: bool,
    /// How long a loop goes on.
    pub time: Duration,
    /// How long a loop pauses after each cycle.
    pub pause: Duration,
}

/// Runs it. Returns the damaged blocks.
pub fn run(alone: &Alone, setting: &Setting) -> u64 {
    let Alone { then, order, asks, time, pause } = *alone;
    if then == Then::Loop {
        return cycles(order, time, pause, setting);
    }
    let own = if asks { Purge::of_thread() } else { None };
    let mut share = churn::share(setting, 0, 1);
    setting.start();
    share.allocate();
    share.choose(SURVIVAL, order);
    setting.link.ask(Kind::Peak, 0);
    let cpu = clock::thread_cpu();
    share.free();
    let drain = clock::thread_cpu() - cpu;
    setting.link.say(Kind::Drained, 0);
    own.iter().for_each(|own| own.call());
    if then == Then::Pairs {
        while !setting.link.is_answered() {
            let mut block = Block::new(64);
            block.touch();
            block.free();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    setting.link.wait();
    setting.link.figure("drain_cpu_ms", drain as f64 / 1e6);
    share.verify()
}

fn cycles(order: Order, time: Duration, pause: Duration, setting: &Setting) -> u64 {
    let blocks = scaled(LOOP_BYTES / u64::from(LOOP_SIZE), setting.scale);
    let mut share = Share::new(Sizes::one(LOOP_SIZE, blocks), 0, setting.seed, 0).with_heads();
    setting.start();
    let (start, cpu) = (clock::wall(), clock::thread_cpu());
    let mut cycles = 0u64;
    let mut least = u64::MAX;
    while cycles < 2 || clock::wall() - start < time.as_nanos() as u64 {
        let before = clock::thread_cpu();
        share.allocate();
        if cycles == 0 {
            setting.link.ask(Kind::Peak, 0);
        }
        share.order(order);
        share.free();
        least = least.min(clock::thread_cpu() - before);
        cycles += 1;
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }
    let each = (clock::thread_cpu() - cpu) as f64 / cycles as f64;
    setting.link.say(Kind::Drained, 0);
    setting.link.wait();
    setting.link.figure("cycles", cycles as f64);
    setting.link.figure("cycle_cpu_ms", each / 1e6);
    setting.link.figure("cycle_least_cpu_ms", least as f64 / 1e6);
    share.verify()
}
