//! Reading tables.

use super::super::cursor::{Cursor, Window};
use super::super::x86_64::{Base, Plain, Rule, SavedPointer};
use super::Random;
use super::std::vec;
use super::std::vec::Vec;
use super::written::{Function, Tables, function};

fn sp(cfa: u16, saved: u16) -> Rule {
    Rule::Plain(Plain { base: Base::StackPointer, interrupted: false, cfa, saved })
}

fn fp(cfa: u16, saved: u16) -> Rule {
    Rule::Plain(Plain { base: Base::FramePointer, interrupted: false, cfa, saved })
}

/// The rule at `at` in a function of 0x100000 bytes with these instructions.
fn rule(instructions: &[u8], at: usize) -> Rule {
    Tables::new(&[function(0, 0x10_0000, instructions)], true).rule(at)
}

/// `push rbp; mov rbp, rsp` ... `leave`
const WITH_FRAME_POINTER: &[u8] = &[
    0x41, 0x0e, 16, 0x86, 2, // advance 1, def_cfa_offset 16, rbp at CFA - 16
    0x43, 0x0d, 6, // advance 3, def_cfa_register rbp
    0x50, 0x0a, // advance 16, remember_state
    0xc6, 0x0c, 7, 8, // restore rbp, def_cfa rsp + 8
    0x41, 0x0b, // advance 1, restore_state
];

#[test]
fn follows_a_prologue_and_an_exit_in_the_middle() {
    let expected = [(0, sp(1, 0)), (1, sp(2, 2)), (3, sp(2, 2)), (4, fp(2, 2)), (19, fp(2, 2)), (20, sp(1, 0))];
    for (at, expected) in expected.into_iter().chain([(21, fp(2, 2)), (0xf_ffff, fp(2, 2))]) {
        assert_eq!(rule(WITH_FRAME_POINTER, at), expected, "at {at}");
    }
}

#[test]
fn every_form_of_advance_counts_in_bytes() {
    let advances: [(&[u8], usize); 4] =
        [(&[0x45], 5), (&[0x02, 200], 200), (&[0x03, 0x10, 0x27], 10_000), (&[0x04, 0x20, 0xa1, 0x07, 0], 500_000)];
    for (advance, length) in advances {
        let mut instructions = advance.to_vec();
        instructions.extend([0x0e, 64]);
        assert_eq!(rule(&instructions, length - 1), sp(1, 0), "before {length}");
        assert_eq!(rule(&instructions, length), sp(8, 0), "at {length}");
    }
}

#[test]
fn every_form_of_offset_says_the_same() {
    let forms: [&[u8]; 4] = [
        &[0x0e, 48, 0x86, 3],               // offset
        &[0x0e, 48, 0x05, 6, 3],            // offset_extended
        &[0x13, 0x7a, 0x11, 6, 3],          // def_cfa_offset_sf -6, offset_extended_sf 3
        &[0x12, 7, 0x7a, 0x86, 3, 0x2e, 8], // def_cfa_sf, offset, args_size
    ];
    for form in forms {
        assert_eq!(rule(form, 0), sp(6, 3), "{form:x?}");
    }
}

#[test]
fn registers_are_restored_to_what_the_cie_says() {
    for restore in [&[0xc6][..], &[0x06, 6], &[0x08, 6]] {
        let instructions = [&[0x0e, 16, 0x86, 2, 0x41], restore].concat();
        assert_eq!(rule(&instructions, 0), sp(2, 2));
        assert_eq!(rule(&instructions, 1), sp(2, 0), "{restore:x?}");
    }
}

#[test]
fn states_nest_eight_deep_and_no_deeper() {
    for (depth, expected) in [(8, sp(5, 0)), (9, Rule::Unsupported)] {
        let mut instructions = vec![0x0e, 40];
        instructions.extend(vec![0x0a; depth]);
        instructions.extend([0x0e, 80]);
        instructions.extend(vec![0x0b; depth]);
        assert_eq!(rule(&instructions, 0), expected, "{depth}");
    }
    assert_eq!(rule(&[0x0b], 0), Rule::Unsupported, "nothing to restore");
}

#[test]
fn realigned_stacks_are_understood() {
    // What GCC writes: CFA = *(rbp - 8), rbp saved at rbp + 0.
    let drap = [0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 0x06];
    let expected =
        Rule::Dereference { base: Base::FramePointer, at: -1, add: 0, saved: SavedPointer::AboveFramePointer(0) };
    assert_eq!(rule(&drap, 0), expected);
    // What hand-written code has: CFA = *(rsp + 160) + 8, rbp saved at CFA - 24.
    let own_slot = [0x0f, 6, 0x77, 0xa0, 0x01, 0x06, 0x23, 8, 0x86, 3];
    let expected = Rule::Dereference { base: Base::StackPointer, at: 20, add: 1, saved: SavedPointer::BelowCfa(3) };
    assert_eq!(rule(&own_slot, 0), expected);
    // An expression that only adds is the plain form.
    assert_eq!(rule(&[0x0f, 2, 0x76, 16, 0x86, 2], 0), fp(2, 2));
}

#[test]
fn linkage_tables_are_understood() {
    for threshold in [11, 9] {
        let instructions = [0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30 + threshold, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(rule(&instructions, 7), Rule::LinkageTable { threshold });
        let mut other = instructions;
        other[10] = 0x34; // lit4 for lit3: another slot size
        assert_eq!(rule(&other, 7), Rule::Unsupported);
    }
}

/// The kernel's frame as glibc describes it, with the offsets given.
fn signal_frame(sp: u8, fp: u8, pc: u8) -> Function {
    let mut instructions = vec![0x0f, 4, 0x77, sp, 1, 0x06];
    for (register, offset) in [(6, fp), (16, pc)] {
        let leb = [offset | 0x80, 0];
        instructions.extend([0x10, register, 3, 0x77, leb[0], leb[1]]);
    }
    // 160 and 168 need a second byte that is 1; 120 one that is 0.
    let second = instructions.len() - 1;
    instructions[second] = 1;
    Function { at: 0, length: 16, augmentation: "zRS", instructions }
}

#[test]
fn signal_frames_are_checked_against_the_kernels_layout() {
    let rule = |function| Tables::new(&[function], true).rule(3);
    assert_eq!(rule(signal_frame(0xa0, 0x78, 0xa8)), Rule::Signal);
    assert_eq!(rule(signal_frame(0xa0, 0x70, 0xa8)), Rule::Unsupported);
    assert_eq!(rule(signal_frame(0xa8, 0x78, 0xa8)), Rule::Unsupported);
    // A frame with the mark and a plain rule: its caller was interrupted and did not call.
    let plain = Function { at: 0, length: 16, augmentation: "zRS", instructions: vec![0x0c, 7, 24, 0x90, 1] };
    let expected = Rule::Plain(Plain { base: Base::StackPointer, interrupted: true, cfa: 3, saved: 0 });
    assert_eq!(rule(plain), expected);
}

#[test]
fn an_undefined_return_address_is_the_end() {
    assert_eq!(rule(&[0x07, 16], 0), Rule::Outermost);
    assert_eq!(rule(&[0x44, 0x07, 16], 3), sp(1, 0));
}

#[test]
fn what_is_not_followed_is_unsupported() {
    let cases: [&[u8]; 11] = [
        &[0x0c, 10, 0],         // CFA in r10
        &[0x09, 16, 5],         // return address in rdi
        &[0x90, 3],             // return address elsewhere in the frame
        &[0x14, 6, 2],          // rbp is a value
        &[0x16, 6, 2, 0x76, 0], // rbp is computed
        &[0x10, 6, 2, 0x76, 0], // rbp behind an expression, in a plain frame
        &[0x86, 0x80, 0x80, 1], // rbp too far away
        &[0x0e, 12],            // half a word
        &[0x0e, 0],             // a frame without a return address
        &[0x0f, 2, 0x08, 5],    // a constant
        &[0x3c],                // no such instruction
    ];
    for instructions in cases {
        assert_eq!(rule(instructions, 0), Rule::Unsupported, "{instructions:x?}");
    }
    // After the address it does not matter.
    assert_eq!(rule(&[0x41, 0x3c], 0), sp(1, 0));
}

fn three_functions() -> Vec<Function> {
    let with_personality = Function { augmentation: "zPLR", ..function(0x200, 0x40, &[0x0e, 32]) };
    vec![function(0x300, 0x10, &[0x0e, 24]), function(0x100, 0x80, &[0x0e, 16]), with_personality]
}

#[test]
fn the_function_is_found_with_an_index_and_without() {
    for with_index in [true, false] {
        let tables = Tables::new(&three_functions(), with_index);
        let expected = [
            (0xff, Rule::Unknown),
            (0x100, sp(2, 0)),
            (0x17f, sp(2, 0)),
            (0x180, Rule::Unknown),
            (0x200, sp(4, 0)),
            (0x23f, sp(4, 0)),
            (0x240, Rule::Unknown),
            (0x300, sp(3, 0)),
            (0x310, Rule::Unknown),
        ];
        for (at, expected) in expected {
            assert_eq!(tables.rule(at), expected, "{at:#x}, index {with_index}");
        }
    }
}

#[test]
fn unknown_augmentations_are_refused() {
    for augmentation in ["zRX", "eh", ""] {
        let function = Function { augmentation, ..function(0, 16, &[]) };
        assert_eq!(Tables::new(&[function], true).rule(0), Rule::Unknown, "{augmentation}");
    }
}

/// The memory behind and before the tables is unreadable: a read outside would kill the test.
#[test]
fn broken_tables_are_never_left() {
    let mut random = Random(0x5eed);
    let mut functions = three_functions();
    functions.push(function(0x400, 0x400, WITH_FRAME_POINTER));
    functions.push(function(0x900, 0x100, &[0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 0x06]));
    functions.push(Function { at: 0xa00, ..signal_frame(0xa0, 0x78, 0xa8) });
    let mut known = 0;
    for round in 0..4000 {
        let mut tables = Tables::new(&functions, round % 4 != 0);
        let bytes = tables.bytes();
        for _ in 0..1 + random.below(6) {
            let at = random.below(bytes.len() as u64) as usize;
            // Large lengths and pointers are what goes wrong, so favour extreme bytes.
            bytes[at] = match random.below(4) {
                0 => 0xff,
                1 => 0x7f,
                2 => 0,
                _ => random.next() as u8,
            };
        }
        for _ in 0..24 {
            let at = 0xf0 + random.below(0xa20) as usize;
            known += usize::from(!matches!(tables.rule(at), Rule::Unknown | Rule::Unsupported));
        }
    }
    assert!(known > 1000, "most tables are only slightly broken: {known}");
}

#[test]
fn numbers_end_with_the_window() {
    let cursor = |bytes: &[u8]| -> Cursor {
        let start = bytes.as_ptr().expose_provenance();
        // SAFETY: window invariant: the slice outlives the cursors that are made of it.
        unsafe { Window::new(start, start + bytes.len()) }.cursor(start).unwrap()
    };
    assert_eq!(cursor(&[0xe5, 0x8e, 0x26]).uleb(), Some(624_485));
    assert_eq!(cursor(&[0xc0, 0xbb, 0x78]).sleb(), Some(-123_456));
    assert_eq!(cursor(&[0x3f]).sleb(), Some(63));
    assert_eq!(cursor(&[0xe5, 0x8e]).uleb(), None);
    assert_eq!(cursor(&[0xff; 9]).sleb(), None);
    // Too many digits are read and dropped.
    let long = [&[0x81][..], &[0x80; 20], &[0]].concat();
    assert_eq!(cursor(&long).uleb(), Some(1));
    assert_eq!(cursor(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).uleb(), Some(u64::MAX));
    assert_eq!(cursor(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f]).sleb(), Some(i64::MIN));
    for length in 0..8 {
        assert_eq!(cursor(&[1; 8][..length]).u64(), None);
    }
    assert_eq!(cursor(&[1; 8]).u64(), Some(0x0101_0101_0101_0101));
    assert!(cursor(&[0; 4]).split(5).is_none());
}

#[test]
fn pointers_are_read_in_every_encoding() {
    let bytes = [0xfeu8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    let start = bytes.as_ptr().expose_provenance();
    let read = |encoding| {
        // SAFETY: window invariant: the array outlives the cursor.
        unsafe { Window::new(start, start + bytes.len()) }.cursor(start).unwrap().pointer(encoding, 1000)
    };
    assert_eq!(read(0x00), Some(usize::MAX - 1));
    assert_eq!(read(0x03), Some(0xffff_fffe));
    assert_eq!(read(0x0b), Some(usize::MAX - 1));
    assert_eq!(read(0x02), Some(0xfffe));
    assert_eq!(read(0x0a), Some(usize::MAX - 1));
    assert_eq!(read(0x1b), Some(start - 2));
    assert_eq!(read(0x3b), Some(998));
    assert_eq!(read(0xff), Some(0));
    assert_eq!(read(0x2b), None, "relative to the text: nobody does that");
    assert_eq!(read(0x07), None);
}
