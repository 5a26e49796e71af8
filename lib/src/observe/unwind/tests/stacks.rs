//! Finding out what can be read.

use super::super::probe;
use super::super::stack::{Stack, StackBounds};
use super::std::thread;
use super::{Guarded, PAGE};

fn here() -> usize {
    let local = 0u8;
    (&raw const local).expose_provenance() & !7
}

#[test]
fn the_kernel_knows_what_can_be_read() {
    let memory = Guarded::new(2);
    for by_copy in [false, true] {
        let is_readable = |page: usize| {
            if by_copy { probe::by_copy(page) == 1 } else { probe::is_readable(page) }
        };
        assert!(is_readable(here() & !(PAGE - 1)));
        assert!(is_readable(memory.start()));
        assert!(is_readable(memory.end() - PAGE));
        assert!(!is_readable(memory.end()), "a guard page");
        assert!(!is_readable(memory.start() - PAGE), "a guard page");
        assert!(!is_readable(PAGE), "near null");
        assert!(!is_readable(usize::MAX << 12), "the kernel's");
    }
}

#[test]
fn a_threads_own_stack_is_known_and_remembered() {
    thread::spawn(|| {
        let mut bounds = StackBounds::default();
        let sp = here();
        let mut stack = Stack::of_caller(sp, &mut bounds);
        assert!(stack.holds(sp) && stack.read(sp).is_some());
        assert!(!stack.holds(sp + 1), "not aligned");
        // The control block is the end.
        let top: usize;
        // SAFETY: reads the word that the ABI puts at fs:0.
        unsafe { core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) top) };
        assert!(stack.holds(top - 8) && stack.read(top - 8).is_some());
        assert!(!stack.holds(top) && stack.read(top).is_none());
        assert!(!stack.holds(sp - 2 * PAGE), "below the page of the frame");
        assert_eq!(bounds.range(), (sp & !(PAGE - 1), top));
        deeper(&mut bounds, top);
    })
    .join()
    .unwrap();
}

#[inline(never)]
fn deeper(bounds: &mut StackBounds, top: usize) {
    let room = core::hint::black_box([0u8; 5 * PAGE]);
    let sp = room.as_ptr().expose_provenance() & !7;
    let mut stack = Stack::of_caller(sp, bounds);
    assert!(stack.read(sp).is_some() && stack.read(top - 8).is_some());
    assert_eq!(bounds.range(), (sp & !(PAGE - 1), top));
}

/// A thread that ended may have had its stack around ours.
#[test]
fn anothers_bounds_are_not_believed() {
    let sp = here();
    let beyond = sp + (1 << 30);
    let mut bounds = StackBounds::of_range(sp & !(PAGE - 1), beyond);
    let mut stack = Stack::of_caller(sp, &mut bounds);
    assert!(stack.read(sp).is_some());
    assert!(!stack.holds(beyond - 8));
    assert_ne!(bounds.range().1, beyond);
}

#[test]
fn an_unknown_stack_ends_where_it_cannot_be_read() {
    let memory = Guarded::new(8);
    let mut bounds = StackBounds::default();
    let sp = memory.start() + PAGE + 512;
    let mut stack = Stack::of_caller(sp, &mut bounds);
    assert!(stack.read(sp).is_some());
    assert!(stack.read(memory.end() - 8).is_some());
    assert!(stack.read(memory.end()).is_none());
    assert!(stack.read(memory.end() + 64 * PAGE).is_none());
    assert!(stack.read(memory.start()).is_none(), "below");
    assert!(stack.read(memory.end() - 4).is_none(), "not aligned");
    assert_eq!(bounds.range(), (0, 0), "nothing to remember");
}

#[test]
fn a_walk_can_move_to_another_stack_and_back() {
    let memory = Guarded::new(2);
    let mut bounds = StackBounds::default();
    let sp = here();
    let mut stack = Stack::of_caller(sp, &mut bounds);
    assert!(stack.move_to(memory.start() + 64));
    assert!(stack.read(memory.end() - 8).is_some() && stack.read(sp).is_none());
    assert!(stack.move_to(sp));
    assert!(stack.read(sp).is_some() && !stack.holds(memory.start()));
    assert!(!stack.move_to(memory.end()), "a guard page");
    assert!(!stack.move_to(0) && !stack.move_to(sp + 4) && !stack.move_to(usize::MAX - 7));
    assert!(stack.read(sp).is_some(), "a refused move changes nothing");
    let moves = (0..100).take_while(|i| stack.move_to(if i % 2 == 0 { memory.start() } else { sp })).count();
    assert!(moves < 20, "there is an end to it");
}
