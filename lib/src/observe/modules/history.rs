//! Modules that were unloaded since: a stack that was taken while one was there still means that one, whatever is mapped at its addresses
//! later.
//!
//! Each unloading has a number, from 1 on. A stack keeps the number of the last one that took away what any of its frames lies in, the
//! [`generation`]; 0, as a rule. So a frame means what was taken away by the first *later* unloading at its address, or, if there is none,
//! what is mapped there now. The generation is a part of a stack's identity: the same addresses in another module are another stack.
//! A module that comes back to the very same place, as plugins do that are loaded again and again, takes its unloading back,
//! unless a stack has counted it already.
//!
//! Unloadings are seen where the program calls `dlclose` and our library is in between. Where it is not (a part of the program itself, or
//! the C library's own plugins), a module is known by the first stack that has a frame in it, and that it is gone is
//! noticed when a dump is written: it keeps its name, but another one that has taken its very place is not told from it.
//!
//! The table is written under a lock; sampling never waits for that. What is there without it is complete before it is counted.

use super::build_id::{self, BuildId, Memory};
use super::{Map, Mapping, without_deleted};
use crate::observe::unwind;
use crate::os::lock::Lock;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};

/// Executable mappings that can be known, and unloadings.
const MOST: usize = 1024;
/// Bytes for the paths of those that may go.
const TEXT: usize = 128 * 1024;

/// An executable mapping of a file.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) offset: usize,
    /// What tells the file from others.
    file: u64,
    /// Where in the text its path is.
    path: (usize, usize),
    pub(super) build_id: BuildId,
    /// The number of its unloading; 0 = it is there.
    pub(super) gone: u32,
    /// It was there from the start, and stays.
    stays: bool,
}

impl Known {
    const NONE: Known =
        Known { start: 0, end: 0, offset: 0, file: 0, path: (0, 0), build_id: BuildId::NONE, gone: 0, stays: false };

    /// Whether a mapping, or a part of one, is this.
    fn is(&self, mapping: &Mapping<'_>) -> bool {
        let bias = |start: usize, offset: usize| start.wrapping_sub(offset);
        mapping.executable
            && mapping.range.contains(&self.start)
            && bias(mapping.range.start, mapping.offset) == bias(self.start, self.offset)
            && identity(mapping) == self.file
    }

    fn is_in(&self, map: &Map) -> bool {
        map.mappings().any(|mapping| self.is(&mapping))
    }
}

struct Table {
    known: [Known; MOST],
    text: [u8; TEXT],
    text_used: usize,
}

struct Guarded(UnsafeCell<Table>);
// SAFETY: only touched under LOCK.
unsafe impl Sync for Guarded {}

static TABLE: Guarded = Guarded(UnsafeCell::new(Table { known: [Known::NONE; MOST], text: [0; TEXT], text_used: 0 }));
static LOCK: Lock = Lock::new();

/// How many are known, and where each of them is: start and end.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static RANGES: [[AtomicUsize; 2]; MOST] = [const { [const { AtomicUsize::new(0) }; 2] }; MOST];
/// Unloadings, and which mapping each was, plus one; 0 = it was taken back.
static UNLOADINGS: AtomicU32 = AtomicU32::new(0);
static UNLOADED: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
/// A stack has counted this unloading.
static COUNTED: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];
/// Modules that the program wanted to load, and as many when it was last looked whether one has come back.
static LOADS: AtomicU32 = AtomicU32::new(0);
static LOOKED: AtomicU32 = AtomicU32::new(0);
/// What there was no room for.
static FORGOTTEN: AtomicU32 = AtomicU32::new(0);

/// What tells a file from others: device, inode and path.
fn identity(mapping: &Mapping<'_>) -> u64 {
    let bytes = mapping.file.iter().chain(without_deleted(mapping.path));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ byte as u64).wrapping_mul(0x100_0000_01b3))
}

/// Do something with the table, unless this thread is at it already, or another one is and `waits` is false.
pub(super) fn with<R>(waits: bool, work: impl FnOnce(&mut View<'_>) -> R) -> Option<R> {
    if LOCK.held_by_me() || (!waits && !LOCK.try_lock()) {
        return None;
    }
    if waits {
        LOCK.lock();
    }
    // SAFETY: the lock is held.
    let result = work(&mut View(unsafe { &mut *TABLE.0.get() }));
    LOCK.unlock();
    Some(result)
}

/// In a forked child. Whatever was being added is not counted yet.
pub(crate) fn repair() {
    if LOCK.held_by_vanished() {
        LOCK.reset();
    }
}

/// The table, while the lock is held.
pub(super) struct View<'a>(&'a mut Table);

impl View<'_> {
    pub(super) fn known(&self) -> &[Known] {
        &self.0.known[..COUNT.load(Relaxed)]
    }

    pub(super) fn path(&self, known: &Known) -> &[u8] {
        &self.0.text[known.path.0..known.path.0 + known.path.1]
    }

    /// Get to know what is mapped. What is there before anybody can unload something stays (`stays`), and needs no name here.
    fn learn(&mut self, map: &Map, stays: bool) {
        let memory = Memory::open();
        let mut head: Option<(&[u8], usize)> = None;
        for mapping in map.mappings() {
            if mapping.offset == 0 {
                head = Some((mapping.file, mapping.range.start));
            }
            if !mapping.executable || mapping.path.is_empty() || self.is_known(&mapping) {
                continue;
            }
            let start = head.filter(|&(file, _)| file == mapping.file && !stays).map(|(_, start)| start);
            let build_id = start.map_or(BuildId::NONE, |start| build_id::build_id(&memory, start));
            if !self.add(&mapping, build_id, stays) {
                FORGOTTEN.fetch_add(1, Relaxed);
                return;
            }
        }
    }

    fn is_known(&self, mapping: &Mapping<'_>) -> bool {
        self.known().iter().any(|known| {
            known.gone == 0
                && (known.is(mapping)
                    || (known.file == identity(mapping)
                        && known.start <= mapping.range.start
                        && mapping.range.end <= known.end))
        })
    }

    fn add(&mut self, mapping: &Mapping<'_>, build_id: BuildId, stays: bool) -> bool {
        let count = COUNT.load(Relaxed);
        let path = if stays { b"" } else { without_deleted(mapping.path) };
        let text = (self.0.text_used, path.len());
        let (Some(slot), Some(room)) = (self.0.known.get_mut(count), self.0.text.get_mut(text.0..text.0 + text.1))
        else {
            return false;
        };
        room.copy_from_slice(path);
        let (start, end, file) = (mapping.range.start, mapping.range.end, identity(mapping));
        *slot = Known { start, end, offset: mapping.offset, file, path: text, build_id, gone: 0, stays };
        self.0.text_used += path.len();
        RANGES[count][0].store(start, Relaxed);
        RANGES[count][1].store(end, Relaxed);
        COUNT.store(count + 1, Release);
        true
    }

    /// Give a number to the unloading of all that is not mapped any more.
    fn part_with_what_is_gone(&mut self, map: &Map) {
        for index in 0..COUNT.load(Relaxed) {
            let known = &mut self.0.known[index];
            if known.stays || known.gone != 0 || known.is_in(map) {
                continue;
            }
            let number = UNLOADINGS.load(Relaxed) as usize;
            let Some(slot) = UNLOADED.get(number) else {
                FORGOTTEN.fetch_add(1, Relaxed);
                return;
            };
            known.gone = number as u32 + 1;
            COUNTED[number].store(false, Relaxed);
            slot.store(index + 1, Relaxed);
            UNLOADINGS.store(known.gone, Release);
        }
    }

    /// Take the unloadings back of what is there again, in the very same place, if no stack has counted them.
    fn welcome_back(&mut self, map: &Map) {
        let memory = Memory::open();
        for number in (0..UNLOADINGS.load(Relaxed) as usize).rev() {
            let Some(index) = UNLOADED[number].load(Relaxed).checked_sub(1) else { continue };
            let known = self.0.known[index];
            let same_place = |&later: &usize| {
                let later = UNLOADED[later].load(Relaxed).checked_sub(1).map(|later| self.0.known[later]);
                later.is_some_and(|later| later.start < known.end && known.start < later.end)
            };
            let is_last = !(number + 1..UNLOADINGS.load(Relaxed) as usize).any(|later| same_place(&later));
            let head = map.mappings().filter(|m| m.offset == 0 && m.range.start <= known.start).last();
            let same_id = |head: Mapping<'_>| build_id::build_id(&memory, head.range.start) == known.build_id;
            if is_last && !COUNTED[number].load(Relaxed) && known.is_in(map) && head.is_some_and(same_id) {
                // A stack may be counting it in this moment: one of the two sees the other.
                UNLOADED[number].store(0, SeqCst);
                if COUNTED[number].load(SeqCst) {
                    UNLOADED[number].store(index + 1, SeqCst);
                } else {
                    self.0.known[index].gone = 0;
                }
            }
        }
        // Numbers at the end that mean nothing can be given again.
        let mut count = UNLOADINGS.load(Relaxed);
        while count > 0 && UNLOADED[count as usize - 1].load(Relaxed) == 0 {
            count -= 1;
        }
        UNLOADINGS.store(count, Release);
    }
}

/// What is mapped at the start stays.
pub(crate) fn begin(map: &Map) {
    with(true, |view| view.learn(map, true));
}

/// The program is about to load a module.
pub(crate) fn loading() {
    LOADS.fetch_add(1, Relaxed);
}

/// The program is about to unload a module, if nobody else uses it.
pub(crate) fn unloading() {
    if let Ok(map) = Map::read() {
        with(true, |view| view.learn(&map, false));
    }
}

/// It may be gone now.
pub(crate) fn unloaded() {
    if let Some(map) = Map::read().ok().filter(|map| !map.text().is_empty()) {
        with(true, |view| view.part_with_what_is_gone(&map));
    }
}

/// What a dump has to know: all that is gone now, and `look` at it.
pub(super) fn settle<R>(map: &Map, look: impl FnOnce(&View<'_>) -> R) -> Option<R> {
    with(true, |view| {
        if COUNT.load(Relaxed) > 0 && !map.text().is_empty() {
            view.part_with_what_is_gone(map);
            view.learn(map, false);
        }
        look(view)
    })
}

/// How many modules there was no room for.
pub(crate) fn forgotten() -> u32 {
    FORGOTTEN.load(Relaxed)
}

/// The number of the last unloading that matters to these frames: see above. Never waits, and is nothing where nothing was unloaded.
#[inline]
pub(crate) fn generation(frames: &[usize]) -> u32 {
    if UNLOADINGS.load(Acquire) == 0 { 0 } else { find_generation(frames) }
}

#[cold]
fn find_generation(frames: &[usize]) -> u32 {
    let mut number = last_unloading(frames);
    let loads = LOADS.load(Relaxed);
    if number > 0 && loads != LOOKED.load(Relaxed) && !COUNTED[number as usize - 1].load(Relaxed) {
        // A module has come to where another one was, or the same again. It is there, as it has a frame on this stack.
        if let Ok(map) = Map::read()
            && with(false, |view| view.welcome_back(&map)).is_some()
        {
            LOOKED.store(loads, Relaxed);
            number = last_unloading(frames);
        }
    }
    while number > 0 {
        COUNTED[number as usize - 1].store(true, SeqCst);
        if UNLOADED[number as usize - 1].load(SeqCst) != 0 {
            break;
        }
        number = last_unloading(frames); // it was taken back in this moment
    }
    number
}

fn last_unloading(frames: &[usize]) -> u32 {
    let is_of = |index: usize| {
        let [start, end] = [0, 1].map(|i| RANGES[index][i].load(Relaxed));
        // Return addresses: the call is before them.
        frames.iter().any(|&frame| (start..end).contains(&frame.wrapping_sub(1)))
    };
    let unloaded = |number: &u32| UNLOADED[*number as usize - 1].load(Relaxed).checked_sub(1).is_some_and(is_of);
    (1..=UNLOADINGS.load(Acquire)).rev().find(unloaded).unwrap_or(0)
}

/// A new stack: get to know the modules that its frames lie in, while they are there.
pub(crate) fn meet(frames: &[usize]) {
    let count = COUNT.load(Acquire);
    let mut last = 0..0;
    for &frame in frames {
        let address = frame.wrapping_sub(1);
        if last.contains(&address) {
            continue;
        }
        let ranges = RANGES[..count].iter().map(|range| range[0].load(Relaxed)..range[1].load(Relaxed));
        match { ranges }.find(|range| range.contains(&address)) {
            Some(range) => last = range,
            None if FORGOTTEN.load(Relaxed) == 0 && unwind::is_in_module(address) => {
                if let Ok(map) = Map::read() {
                    with(false, |view| view.learn(&map, false));
                }
                return;
            }
            None => {}
        }
    }
}
