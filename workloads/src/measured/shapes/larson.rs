//! A server with sessions: random blocks are replaced, and when a thread's time is over, a new one inherits its blocks.

use std::ffi::CStr;

use crate::driver::seed::{SplitMix64, derive};
use crate::measured::block::{Block, Tally, stamp_of};
use crate::measured::crew;
use crate::measured::sizes::Sizes;
use crate::measured::timing::Settings;

/// Live blocks of a thread.
const PLACES: usize = 1_000;
/// Threads that follow each other in a pass.
const GENERATIONS: u64 = 8;
const SIZES: Sizes = Sizes::even(8, 1_000);

/// How blocks are had and given back.
pub trait Heap: Copy + Send + Sync + 'static {
    /// A block of `size` bytes.
    fn take(self, size: usize) -> Block;
    /// Frees `block` of `size` bytes.
    fn give(self, block: Block, size: usize);
}

/// `malloc` and `free`.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl Heap for Plain {
    #[inline(always)]
    fn take(self, size: usize) -> Block {
        Block::new(size)
    }
    #[inline(always)]
    fn give(self, block: Block, _: usize) {
        block.free();
    }
}

/// C++'s `new`, and the `delete` that is told the size, from whatever library the program finds them in.
#[derive(Clone, Copy, Debug)]
pub struct Sized {
    new: unsafe extern "C" fn(usize) -> *mut libc::c_void,
    delete: unsafe extern "C" fn(*mut libc::c_void, usize),
}

impl Sized {
    /// Looks the two operators up: a preloaded allocator's come first, else those of the C++ library, which is loaded.
    /// `None` if there are none.
    #[must_use]
    pub fn find() -> Option<Self> {
        // SAFETY: the names are C strings. Loading the C++ library runs no code but its own constructors.
        let look_up = |name: &CStr| unsafe {
            let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
            if !found.is_null() {
                return found;
            }
            libc::dlopen(c"libstdc++.so.6".as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
            libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr())
        };
        let (new, delete) = (look_up(c"_Znwm"), look_up(c"_ZdlPvm"));
        if new.is_null() || delete.is_null() {
            return None;
        }
        // SAFETY: the mangled names say which functions these are: `operator new(unsigned long)` and
        // `operator delete(void*, unsigned long)`.
        unsafe {
            Some(Self {
                new: std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn(usize) -> *mut libc::c_void>(new),
                delete: std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn(*mut libc::c_void, usize)>(
                    delete,
                ),
            })
        }
    }
}

impl Heap for Sized {
    #[inline(always)]
    fn take(self, size: usize) -> Block {
        // SAFETY: `new` gives `size` bytes or does not come back.
        unsafe { Block::adopt((self.new)(size)) }
    }
    #[inline(always)]
    fn give(self, block: Block, size: usize) {
        // SAFETY: the block came from `take` with this size.
        unsafe { (self.delete)(block.into_raw(), size) };
    }
}

type Session = Vec<(Block, u32)>;

/// `settings.threads` lines of threads; each thread replaces `rounds / GENERATIONS` blocks. An operation is an allocation or
/// a free.
#[must_use]
pub fn pass(heap: impl Heap, rounds: u64, settings: &Settings) -> (u64, Tally) {
    let ended = crew::on_threads(settings, |line| {
        let mut tally = Tally::default();
        let mut random = SplitMix64::new(derive(settings.seed, &[u64::from(line)]));
        let mut session: Session = (0..PLACES).map(|place| fresh(heap, place, &mut random)).collect();
        for generation in 0..GENERATIONS {
            let seed = derive(settings.seed, &[u64::from(line), generation]);
            let next = std::thread::spawn(move || serve(heap, session, rounds / GENERATIONS, seed));
            let (back, more) = next.join().expect("a worker does not panic");
            session = back;
            tally.merge(more);
        }
        for (place, (block, size)) in session.into_iter().enumerate() {
            tally.add(block.read(), stamp_of(place as u64));
            heap.give(block, size as usize);
        }
        (2 * (rounds / GENERATIONS * GENERATIONS + PLACES as u64), tally)
    });
    crew::sum(ended)
}

fn fresh(heap: impl Heap, place: usize, random: &mut SplitMix64) -> (Block, u32) {
    let size = SIZES.draw(random);
    let mut block = heap.take(size);
    block.mark(stamp_of(place as u64));
    (block, size as u32)
}

fn serve(heap: impl Heap, mut session: Session, rounds: u64, seed: u64) -> (Session, Tally) {
    let mut tally = Tally::default();
    let mut random = SplitMix64::new(seed);
    for _ in 0..rounds {
        let place = random.below(PLACES as u64) as usize;
        let (block, size) = std::mem::replace(&mut session[place], fresh(heap, place, &mut random));
        tally.add(block.read(), stamp_of(place as u64));
        heap.give(block, size as usize);
    }
    (session, tally)
}
