//! What is left of an allocation whose layout the compiler knows: look at the machine code of these functions.
//!
//! ```sh
//! cargo build --release -p mimalloc-pprof --example layouts
//! objdump -d -M intel --disassemble=boxed target/release/examples/layouts
//! ```

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::hint::black_box;

#[global_allocator]
static GLOBAL: mimalloc_pprof::MiMalloc = mimalloc_pprof::MiMalloc;

const LINE: Layout = match Layout::from_size_align(200, 64) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};

/// 48 bytes.
#[inline(never)]
#[unsafe(no_mangle)]
fn boxed(value: u64) -> Box<[u64; 6]> {
    Box::new([value; 6])
}

#[inline(never)]
#[unsafe(no_mangle)]
fn dropped(value: Box<[u64; 6]>) {
    drop(value);
}

/// 200 bytes at a multiple of 64.
#[inline(never)]
#[unsafe(no_mangle)]
fn aligned() -> *mut u8 {
    // SAFETY: the layout has a size.
    unsafe { alloc(LINE) }
}

/// 32 zeroed bytes.
#[inline(never)]
#[unsafe(no_mangle)]
fn zeroed() -> *mut u8 {
    // SAFETY: the layout has a size.
    unsafe { alloc_zeroed(Layout::new::<[u128; 2]>()) }
}

fn main() {
    let value = boxed(black_box(7));
    assert_eq!(value[5], 7);
    dropped(black_box(value));
    let (line, zero) = (aligned(), zeroed());
    if line.is_null() || zero.is_null() {
        handle_alloc_error(LINE);
    }
    // SAFETY: the blocks have the layouts they are freed with; the second one is zeroed.
    unsafe {
        assert!((line as usize).is_multiple_of(64) && zero.cast::<u128>().read() == 0);
        dealloc(line, LINE);
        dealloc(zero, Layout::new::<[u128; 2]>());
    }
}
