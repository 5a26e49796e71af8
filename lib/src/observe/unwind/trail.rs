//! Walks that are known already: if nothing has changed that the last walk from here depended on, its answer still holds.
//!
//! A walk is a function of the registers that it begins with, of the words of memory that it reads, and of the rules for the addresses that
//! it comes to. The first frame's registers and the words decide the first step and so the second frame's registers, these and the words the
//! second step, and so on. So a walk is remembered as its *trail*: where the words are that it read, and what was in them. If the same registers
//! meet the same words, all steps are the same, as long as the rules are; and those only change when modules come and go, which makes
//! all trails invalid ([`rule_cache::generation`]). Checking a word takes a nanosecond, a step about six.
//!
//! Only what decides is part of a trail. Every function that uses the frame pointer's register saves it, and mostly for something of its own
//! that is different each time: such a word belongs to the trail only if a later step begins at the frame pointer.
//!
//! Walks are remembered if they stay on the thread's own stack ([`StackBounds`]) and take plain steps only: a signal's frame, code without
//! tables and the like are walked anew each time.

use super::arch::{self, Packed, Registers, Rule, Tracked};
use super::stack::{Stack, StackBounds};
use super::walk::rule_at;
use super::{End, Walk, foreign, rule_cache};
use core::ptr::with_exposed_provenance;

/// Words of a trail; longer walks are not remembered.
const MOST_WORDS: usize = 112;
const SETS: usize = 16;
const WAYS: usize = 8;

/// The words are at `sp + offset * 8`.
#[repr(C)]
struct Trail {
    pc: usize,
    fp: usize,
    number: u32,
    generation: u32,
    words: u32,
    /// The farthest offset.
    farthest: u32,
    /// The walk depends on `fp`.
    needs_fp: bool,
    offsets: [u32; MOST_WORDS],
    values: [usize; MOST_WORDS],
}

#[repr(C)]
struct Set {
    /// Where the trails begin; 0 = there is none.
    sp: [usize; WAYS],
    next: usize,
    trails: [Trail; WAYS],
}

/// What one thread remembers. Memory that is all zero is a valid value: nothing yet.
#[repr(C)]
pub(crate) struct Trails([Set; SETS]);

/// The trail of a walk that was just made, for [`Trails::remember`].
#[derive(Clone, Copy)]
pub(crate) struct Place {
    sp: usize,
    way: usize,
}

/// What [`recall`] found.
pub(crate) enum Recalled {
    /// This number was remembered for the very stack.
    Known(u32),
    /// The stack was walked. Without a place it cannot be remembered.
    Walked(Walk, Option<Place>),
}

impl Trails {
    /// The stack that was walked has this number.
    pub(crate) fn remember(&mut self, place: Place, number: u32) {
        let set = self.set(place.sp);
        set.trails[place.way].number = number;
        set.sp[place.way] = place.sp;
    }

    /// Remember nothing.
    pub(crate) fn forget(&mut self) {
        self.0.iter_mut().for_each(|set| set.sp = [0; WAYS]);
    }

    #[inline(always)]
    fn set(&mut self, sp: usize) -> &mut Set {
        let hash = (sp >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - SETS.ilog2());
        &mut self.0[hash % SETS]
    }
}

/// What [`arch::enter_recalling`] passes on.
#[repr(C)]
pub(super) struct Request {
    out: *mut usize,
    length: usize,
    bounds: *mut StackBounds,
    trails: *mut Trails,
    result: Recalled,
}

/// As [`capture`](super::capture), or the number that is remembered for this stack.
///
/// # Safety
/// As for [`capture`](super::capture). `trails` are of this thread alone, and what is remembered in them was found with an `out` of this length.
#[inline(always)]
pub(crate) unsafe fn recall(out: &mut [usize], bounds: &mut StackBounds, trails: &mut Trails) -> Recalled {
    let result = Recalled::Walked(Walk { frames: 0, end: End::BadFrame }, None);
    let mut request = Request { out: out.as_mut_ptr(), length: out.len(), bounds, trails, result };
    // SAFETY: everything in the request is exclusive for the time of the call. The barrier is as in `capture`: no tail call.
    unsafe {
        arch::enter_recalling(&raw mut request);
        core::arch::asm!("/* {0} */", in(reg) &raw mut request, options(nostack, preserves_flags));
    }
    request.result
}

/// The second half of [`recall`].
pub(super) unsafe extern "C" fn recall_from(request: *mut Request, return_address: usize, sp: usize, fp: usize) {
    // SAFETY: the caller's request, whose parts are exclusive.
    let (request, bounds, trails) = unsafe { (&mut *request, &mut *(*request).bounds, &mut *(*request).trails) };
    let registers = Registers { pc: return_address.wrapping_sub(1), sp, fp };
    let set = trails.set(sp);
    let mut stack = Stack::of_caller(sp, bounds);
    let generation = rule_cache::generation();
    for (way, _) in set.sp.iter().enumerate().filter(|(_, known)| **known == sp) {
        if set.trails[way].holds(registers, generation, &stack) {
            request.result = Recalled::Known(set.trails[way].number);
            return;
        }
    }
    let way = set.next % WAYS;
    set.sp[way] = 0;
    let mut writer = Writer::new(&mut set.trails[way], registers, generation, !stack.may_grow());
    let (out, length, mut frames) = (request.out, request.length, 0);
    let end = walk(registers, &mut stack, &mut writer, |address| {
        if frames == length {
            return Err(End::DepthLimit);
        }
        // SAFETY: `frames < length`, and `out` points to that many words.
        unsafe { out.add(frames).write(address) };
        frames += 1;
        Ok(())
    });
    let is_whole = writer.is_whole;
    set.next += usize::from(is_whole);
    request.result = Recalled::Walked(Walk { frames, end }, is_whole.then_some(Place { sp, way }));
}

impl Trail {
    /// Whether a walk from these registers, on this stack, is the one that is remembered.
    #[inline(always)]
    fn holds(&self, registers: Registers, generation: u32, stack: &Stack<'_>) -> bool {
        let sp = registers.sp;
        let begins =
            self.generation == generation && self.pc == registers.pc && (!self.needs_fp || self.fp == registers.fp);
        if !begins || stack.may_grow() || !stack.holds(sp.wrapping_add(self.farthest as usize * 8)) {
            return false;
        }
        let words = (self.words as usize).min(MOST_WORDS);
        self.offsets[..words].iter().zip(&self.values[..words]).all(|(&offset, &value)| {
            let address = sp + offset as usize * 8;
            // SAFETY: stack invariant: from the stack pointer up to the farthest word everything lies on the stack.
            unsafe { with_exposed_provenance::<usize>(address).read_volatile() == value }
        })
    }
}

/// Where the frame pointer of the present frame comes from.
enum Source {
    Register,
    Slot(usize, usize),
    /// That is in the trail already.
    Noted,
}

/// Writes a trail while its walk is made.
struct Writer<'a> {
    trail: &'a mut Trail,
    sp: usize,
    source: Source,
    is_whole: bool,
}

impl<'a> Writer<'a> {
    fn new(trail: &'a mut Trail, registers: Registers, generation: u32, is_whole: bool) -> Writer<'a> {
        (trail.pc, trail.fp, trail.generation) = (registers.pc, registers.fp, generation);
        (trail.words, trail.farthest, trail.needs_fp) = (0, 0, false);
        Writer { trail, sp: registers.sp, source: Source::Register, is_whole }
    }

    fn note(&mut self, address: usize, value: usize) {
        let at = self.trail.words as usize;
        let offset = u32::try_from(address.wrapping_sub(self.sp) / 8);
        match (offset, self.trail.offsets.get_mut(at)) {
            (Ok(offset), Some(to)) if address >= self.sp => {
                *to = offset;
                self.trail.values[at] = value;
                self.trail.words += 1;
                self.trail.farthest = self.trail.farthest.max(offset);
            }
            _ => self.is_whole = false,
        }
    }

    fn step(&mut self, step: &Tracked) {
        if step.reads_fp {
            match core::mem::replace(&mut self.source, Source::Noted) {
                Source::Register => self.trail.needs_fp = true,
                Source::Slot(address, value) => self.note(address, value),
                Source::Noted => {}
            }
        }
        self.note(step.return_slot.0, step.return_slot.1);
        if let Some((address, value)) = step.saved_fp {
            self.source = Source::Slot(address, value);
        }
    }
}

/// As [`super::walk::walk`], leaving a trail.
fn walk(
    mut registers: Registers,
    stack: &mut Stack<'_>,
    writer: &mut Writer<'_>,
    mut found: impl FnMut(usize) -> Result<(), End>,
) -> End {
    loop {
        let rule = rule_at(registers.pc);
        registers = match arch::step_tracked(rule, registers, stack) {
            Some(step) => {
                writer.step(&step);
                match step.caller {
                    Some(caller) => caller,
                    None => return End::Complete,
                }
            }
            None => {
                writer.is_whole &= rule.unpack() == Rule::Outermost;
                match step(rule, registers, stack) {
                    Ok(caller) => caller,
                    Err(end) => return end,
                }
            }
        };
        if let Err(end) = found(registers.pc.wrapping_add(1)) {
            return end;
        }
    }
}

#[cold]
#[inline(never)]
fn step(rule: Packed, registers: Registers, stack: &mut Stack<'_>) -> Result<Registers, End> {
    match arch::step(rule, registers, stack) {
        Err(End::NoUnwindInfo) => foreign::step(registers, stack),
        step => step,
    }
}
