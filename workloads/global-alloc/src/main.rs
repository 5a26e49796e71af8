//! Rows of what Rust programs do with an allocator, in nanoseconds of processor time per operation, one a line.
//! The allocator is the one that the features name, else that of the system. An argument picks the rows whose names contain it.

mod clock;

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;

#[cfg(feature = "ours")]
#[global_allocator]
static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn layout(size: usize, alignment: usize) -> Layout {
    Layout::from_size_align(size, alignment).expect("rows have sensible layouts")
}

/// Allocate, write a byte and free. Inlined, so that the layout may be a constant.
#[inline(always)]
fn pair(layout: Layout) {
    // SAFETY: the layout has a size, and the block is freed with it.
    unsafe {
        let block = alloc(layout);
        *block = 1;
        dealloc(black_box(block), layout);
    }
}

/// From 64 bytes to 4096 by doubling.
fn grow() {
    // SAFETY: the block has the layout that is said each time.
    unsafe {
        let (mut block, mut size) = (alloc(layout(64, 8)), 64);
        while size < 4096 {
            block = black_box(realloc(block, layout(size, 8), size * 2));
            size *= 2;
            *block = 1;
        }
        dealloc(block, layout(size, 8));
    }
}

/// The same numbers in every run: a linear congruence modulo 2^64, whose high bits are good enough for sizes and places.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize
    }
}

fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    let row = |name: &str, operations: u32, work: &mut dyn FnMut()| {
        if name.contains(&only) {
            let least = clock::least(operations, |repetitions| (0..repetitions).for_each(|_| work()));
            println!("{name} {least:.3}");
        }
    };
    let each = |name: &str, mut one: Box<dyn FnMut(u64)>| {
        if name.contains(&only) {
            println!("{name} {:.3}", clock::least(1, &mut *one));
        }
    };
    for size in [16, 64, 256, 1024, 8192] {
        let looped = move |n| (0..n).for_each(|_| pair(layout(black_box(size), 8)));
        each(&format!("pair-{size}"), Box::new(looped));
    }
    each("box-48", Box::new(|n| (0..n).for_each(|_| drop(black_box(Box::new([1u64; 6]))))));
    each("align-64-200", Box::new(|n| (0..n).for_each(|_| pair(layout(black_box(200), 64)))));
    row("vec-push-1000", 1000, &mut || {
        let mut numbers = Vec::new();
        (0..1000u64).for_each(|i| numbers.push(i));
        black_box(numbers);
    });
    row("realloc-64-4096", 7, &mut grow);

    let mut numbers = Numbers(1);
    let mut words: Vec<String> = (0..1000).map(|i: u32| i.to_string()).collect();
    row("string-replace-1000", 1, &mut || words[numbers.next() % 1000] = "x".repeat(8 + numbers.next() % 200));
    row("hashmap-string-2000", 2000, &mut || {
        let map: HashMap<String, Vec<u32>> = (0..2000u32).map(|i| (i.to_string(), vec![i; i as usize % 7])).collect();
        black_box(map);
    });
    row("btree-2000", 2000, &mut || {
        let mut numbers = Numbers(3);
        let map: BTreeMap<usize, Box<u64>> = (0..2000).map(|i| (numbers.next() % 5000, Box::new(i))).collect();
        black_box(map);
    });
    row("box-list-10000", 10_000, &mut || {
        black_box((0..10_000).map(|i| Box::new([i; 4])).collect::<Vec<Box<[u64; 4]>>>());
    });
}
