//! Recognising calls.

use super::super::arch::{Call, call_before, recognise};
use super::Guarded;

/// The call that these bytes, right before address 0x1000, are.
fn call(bytes: &[u8]) -> Option<Call> {
    let mut all = [0x90; 8];
    all[8 - bytes.len()..].copy_from_slice(bytes);
    recognise(all, 0x1000)
}

#[test]
fn calls_are_recognised() {
    assert_eq!(call(&[0xe8, 0xfb, 0xff, 0xff, 0xff]), Some(Call::Direct(0xffb)));
    assert_eq!(call(&[0xe8, 0, 1, 0, 0]), Some(Call::Direct(0x1100)));
    let indirect: [&[u8]; 9] = [
        &[0xff, 0xd0],                         // call rax
        &[0x41, 0xff, 0xd3],                   // call r11
        &[0xff, 0x10],                         // call [rax]
        &[0xff, 0x50, 0x18],                   // call [rax + 24]
        &[0xff, 0x54, 0x24, 0x08],             // call [rsp + 8]
        &[0xff, 0x14, 0xc8],                   // call [rax + rcx * 8]
        &[0xff, 0x90, 0, 1, 0, 0],             // call [rax + 256]
        &[0xff, 0x15, 0x12, 0x34, 0, 0],       // call [rip + ...]
        &[0x41, 0xff, 0x94, 0x24, 0, 1, 0, 0], // call [r12 + 256]
    ];
    for bytes in indirect {
        assert_eq!(call(bytes), Some(Call::Indirect), "{bytes:x?}");
    }
    let others: [&[u8]; 5] = [
        &[0x90; 8],
        &[0xff, 0xe0],       // jmp rax
        &[0xff, 0x50],       // call [rax + ...], cut short
        &[0xff, 0xd0, 0x90], // something after the call
        &[0xe9, 0, 1, 0, 0], // jmp
    ];
    for bytes in others {
        assert_eq!(call(bytes), None, "{bytes:x?}");
    }
}

#[test]
fn what_cannot_be_read_is_no_call() {
    let mut memory = Guarded::new(1);
    memory.bytes().fill(0xff);
    memory.bytes()[6..8].copy_from_slice(&[0xff, 0xd0]);
    let start = memory.start();
    assert_eq!(call_before(start + 8), Some(Call::Indirect));
    assert_eq!(call_before(start + 7), None, "begins in the guard page");
    assert_eq!(call_before(memory.end() + 1), None, "ends in the guard page");
    assert_eq!(call_before(3), None);
    assert_eq!(call_before(usize::MAX), None);
}
