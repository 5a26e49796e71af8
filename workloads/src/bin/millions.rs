//! Eight million small allocations that are freed at once, among other things: what exact recorders are slow at.
//!
//! It prints what it has allocated, to compare a recording with: its own blocks only, not those of the standard library.

use std::hint::black_box;
use std::process::ExitCode;
use std::thread;

use clap::Parser;

/// Allocates millions of small blocks for a moment each in some threads, and some large ones for longer, and leaks 1,000 of 64 KiB.
#[derive(Parser)]
#[command(name = "millions", version)]
struct Args {
    /// Threads that share the small blocks
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,
    /// Small blocks in all
    #[arg(long, default_value_t = 8_000_000)]
    blocks: u64,
}

const LEAKED: u64 = 1000;
const LEAK: usize = 64 << 10;
const STRINGS: u64 = 400_000;
const MIDDLE: u64 = 96;
const DEPTH: u32 = 200;

/// Blocks and bytes.
type Amount = (u64, u64);

#[inline(never)]
fn leak() -> Amount {
    for i in 0..LEAKED {
        Vec::leak(black_box(vec![i as u8; LEAK]));
    }
    (LEAKED, LEAKED * LEAK as u64)
}

/// Alive in the middle of the run only.
#[inline(never)]
fn middle() -> Vec<Vec<u8>> {
    (0..MIDDLE).map(|i| vec![i as u8; 1 << 20]).collect()
}

#[inline(always)]
fn innermost() -> Box<[u64; 8]> {
    black_box(Box::new([7; 8]))
}

#[inline(never)]
fn recurse(depth: u32) -> u64 {
    if depth == 0 { innermost()[3] } else { black_box(recurse(depth - 1)) + 1 }
}

#[inline(never)]
fn strings() -> Amount {
    let mut bytes = 0;
    let all: Vec<String> = (0..STRINGS)
        .map(|i| {
            let text = "x".repeat(1 + i as usize % 40);
            bytes += text.len() as u64;
            text
        })
        .collect();
    black_box(&all);
    (STRINGS, bytes)
}

/// Two places, some sizes.
#[inline(never)]
fn short_lived(blocks: u64) -> Amount {
    let mut bytes = 0;
    for i in 0..blocks {
        if i % 4 == 0 {
            black_box(Box::new([i; 8]));
            bytes += 64;
        } else {
            let size = 16 + (i % 15) as usize * 16;
            black_box(Vec::<u8>::with_capacity(size));
            bytes += size as u64;
        }
    }
    (blocks, bytes)
}

fn main() -> ExitCode {
    let Args { threads, blocks } = Args::parse();
    let add = |sum: Amount, more: Amount| (sum.0 + more.0, sum.1 + more.1);
    let mut total = leak();
    let middle = middle();
    total = add(total, (MIDDLE, MIDDLE << 20));
    black_box(recurse(DEPTH));
    total = add(total, (1, 64));
    total = add(total, strings());
    let start = |number: u64| {
        let share = blocks / threads + u64::from(number < blocks % threads);
        thread::Builder::new().name(format!("worker-{number}")).spawn(move || short_lived(share))
    };
    let mut workers = Vec::new();
    for number in 0..threads {
        match start(number) {
            Ok(worker) => workers.push(worker),
            Err(error) => {
                eprintln!("millions: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    drop(middle);
    for worker in workers {
        match worker.join() {
            Ok(amount) => total = add(total, amount),
            Err(_) => return ExitCode::FAILURE,
        }
    }
    println!("allocated {} blocks, {} bytes; leaked {LEAKED} blocks, {} bytes", total.0, total.1, LEAKED * LEAK as u64);
    ExitCode::SUCCESS
}
