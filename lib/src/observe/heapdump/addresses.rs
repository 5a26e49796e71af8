//! The blocks that no bit of their slabs tells to be free, and that the program does not hold either.

use crate::heap::look;
use crate::os;

/// Bytes of a piece of memory.
const PIECE: usize = 256 * 1024;
const ROOM: usize = PIECE / 8 - 2;
/// Blocks are aligned to 16 bytes, so there is a place for this.
const PARKED: usize = 1;

#[repr(C)]
struct Piece {
    next: *mut Piece,
    count: usize,
    addresses: [usize; ROOM],
}

/// Addresses of blocks, in memory of our own.
pub(super) struct Addresses {
    first: *mut Piece,
    complete: bool,
}

impl Addresses {
    /// All blocks that some thread has cached at this moment, one thread after the other, and all that stand in for sampled or guarded
    /// ones. `None`: no memory. With no lock held.
    pub(super) fn collect() -> Option<Addresses> {
        let mut list = Addresses { first: core::ptr::null_mut(), complete: true };
        look::each_cached(|_, block| list.push(block));
        look::each_parked(|block| list.push(block | PARKED));
        list.complete.then_some(list)
    }

    /// May be called with a heap locked.
    fn push(&mut self, address: usize) {
        // SAFETY: pieces are ours.
        unsafe {
            if self.first.is_null() || (*self.first).count == ROOM {
                let piece = os::map(PIECE).cast::<Piece>();
                if piece.is_null() {
                    self.complete = false;
                    return;
                }
                (*piece).next = self.first;
                self.first = piece;
            }
            let piece = &mut *self.first;
            piece.addresses[piece.count] = address;
            piece.count += 1;
        }
    }

    /// Each address, and whether it is that of a stand-in.
    pub(super) fn each(&self, mut visit: impl FnMut(usize, bool)) {
        let mut piece = self.first;
        while !piece.is_null() {
            // SAFETY: as above.
            let of = unsafe { &*piece };
            of.addresses[..of.count].iter().for_each(|address| visit(address & !PARKED, address & PARKED != 0));
            piece = of.next;
        }
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        while !self.first.is_null() {
            // SAFETY: as above.
            let next = unsafe { (*self.first).next };
            os::unmap(self.first.cast(), PIECE);
            self.first = next;
        }
    }
}

const _: () = assert!(size_of::<Piece>() == PIECE);
