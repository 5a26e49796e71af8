//! The inventory as JSON, in the shape that mimalloc-pprof's users know.

use super::ids::Ids;
use super::inventory::{Heap, Inventory};
use core::ffi::c_char;

/// What to tell.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    /// Every live block, too.
    pub(crate) blocks: bool,
    /// Ids that say nothing of where things are.
    pub(crate) hashed: bool,
}

/// Writes into room of a given size, or only counts what would be written.
struct Out {
    at: *mut u8,
    used: usize,
}

impl Out {
    fn bytes(&mut self, bytes: &[u8]) {
        if !self.at.is_null() {
            // SAFETY: the room was counted with the same calls.
            unsafe { self.at.add(self.used).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        self.used += bytes.len();
    }

    fn number(&mut self, mut number: u64) {
        let mut digits = [0u8; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return self.bytes(&digits[first..]);
            }
        }
    }

    /// A name and its number.
    fn field(&mut self, name: &str, number: u64) {
        self.bytes(b"\"");
        self.bytes(name.as_bytes());
        self.bytes(b"\": ");
        self.number(number);
    }
}

/// The heaps of this thread's sub-process as they are now, as a C string in memory that `allocate` gives. Null: no memory. With no lock held.
pub(crate) fn dump(options: Options, allocate: impl FnOnce(usize) -> *mut u8) -> *mut c_char {
    let Some(inventory) = Inventory::take() else {
        return core::ptr::null_mut();
    };
    let ids = Ids::new(options.hashed);
    let mut counted = Out { at: core::ptr::null_mut(), used: 0 };
    write(&mut counted, &inventory, options, &ids);
    let block = allocate(counted.used + 1);
    if !block.is_null() {
        let mut out = Out { at: block, used: 0 };
        write(&mut out, &inventory, options, &ids);
        debug_assert_eq!(out.used, counted.used);
        // SAFETY: there is one byte more than was counted.
        unsafe { block.add(out.used).write(0) };
    }
    block.cast()
}

fn write(out: &mut Out, inventory: &Inventory, options: Options, ids: &Ids) {
    out.bytes(b"{ \"heaps\": [\n");
    let mut first = true;
    for heap in inventory.heaps().filter(|heap| heap.is_current()) {
        out.bytes(if first { b"" } else { b",\n" });
        first = false;
        write_heap(out, heap, options, ids);
    }
    out.bytes(b"\n], \"complete\": ");
    out.bytes(if inventory.is_complete() { b"true" } else { b"false" });
    out.bytes(b", ");
    out.field("skipped_pages", inventory.skipped as u64);
    out.bytes(b", ");
    out.field("busy_theaps", inventory.busy as u64);
    out.bytes(b" }\n");
}

fn write_heap(out: &mut Out, heap: &Heap, options: Options, ids: &Ids) {
    out.bytes(b"  { ");
    out.field("seq", heap.is.number);
    out.bytes(b", \"pages\": [");
    for (at, run) in heap.runs().enumerate() {
        out.bytes(if at == 0 { b"\n    { " } else { b",\n    { " });
        let fields = [
            ("id", ids.of(run.start)),
            ("block_size", run.block_size as u64),
            ("used", run.used as u64),
            ("reserved", run.blocks as u64),
            ("thread_id", ids.of_thread(run.thread)),
        ];
        for (at, (name, number)) in fields.into_iter().enumerate() {
            out.bytes(if at == 0 { b"" } else { b", " });
            out.field(name, number);
        }
        out.bytes(b" }");
    }
    out.bytes(b"\n    ]");
    if options.blocks {
        write_blocks(out, heap, ids);
    }
    out.bytes(b" }");
}

fn write_blocks(out: &mut Out, heap: &Heap, ids: &Ids) {
    out.bytes(b", \"blocks\": [");
    let mut first = true;
    for run in heap.runs().filter(|run| run.used != 0) {
        out.bytes(if first { b"\n      " } else { b",\n      " });
        let mut first_of_run = true;
        run.each_live(|address| {
            out.bytes(if first_of_run { b"[" } else { b",[" });
            first_of_run = false;
            out.number(ids.of(address));
            out.bytes(b",");
            out.number(run.block_size as u64);
            out.bytes(b"]");
        });
        first = false;
    }
    out.bytes(b"\n    ]");
}
