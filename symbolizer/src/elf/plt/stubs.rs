//! The stubs of a procedure linkage table, by their instructions.
//!
//! A stub loads an address from a slot of the global offset table and jumps there. How long it is and what else it does
//! differs between linkers and their flags, and section headers often do not tell; but the load and the slot it reads
//! are the same everywhere, and relocations say for which function each slot is.

use std::ops::Range;

use object::elf;

/// The code of a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code<'c> {
    /// Virtual address of the first byte.
    pub(super) address: u64,
    pub(super) bytes: &'c [u8],
    /// Size of an entry as the section header has it; 0 and wrong values are common.
    pub(super) entry_size: u64,
    pub(super) align: u64,
}

/// A stub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stub {
    /// Its addresses.
    pub(super) range: Range<u64>,
    pub(super) way: Way,
}

/// How a stub finds its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// By the slot at this address.
    Slot(u64),
    /// By the number of the relocation in `.rela.plt`, which it hands to the dynamic linker.
    Number(u32),
}

/// The stubs of `code`, ascending. What only looks like one has a slot without a relocation.
pub(super) fn find(machine: elf::Machine, code: &Code<'_>) -> Vec<Stub> {
    match machine {
        elf::EM_X86_64 => x86_64(code),
        elf::EM_AARCH64 => aarch64(code),
        _ => Vec::new(),
    }
}

/// `jmp *slot(%rip)`, after `endbr64`, `bnd` or whatever else; and with a second table for branch protection, stubs in
/// the first one of `endbr64; push $number; jmp first`.
fn x86_64(code: &Code<'_>) -> Vec<Stub> {
    /// `ff 25` and the distance.
    const JUMP: usize = 6;
    const PUSH: [u8; 5] = [0xf3, 0x0f, 0x1e, 0xfa, 0x68];
    let is_jump = |at: &usize| code.bytes[*at..].starts_with(&[0xff, 0x25]);
    let last = code.bytes.len().saturating_sub(JUMP - 1);
    let jumps: Vec<usize> = (0..last).filter(is_jump).collect();
    let are_short = match code.entry_size {
        8 => true,
        16 => false,
        _ => code.align <= 8 || jumps.windows(2).any(|pair| pair[1] - pair[0] == 8),
    };
    let size = if are_short { 8 } else { 16 };
    let stub = |at: usize, way| {
        let start = code.address.wrapping_add((at - at % size) as u64);
        Stub { range: start..start.wrapping_add(size as u64), way }
    };
    let by_slot = jumps.into_iter().filter_map(|at| {
        let distance = i32::from_le_bytes(*code.bytes.get(at + 2..)?.first_chunk()?);
        let after = code.address.wrapping_add((at + JUMP) as u64);
        Some(stub(at, Way::Slot(after.wrapping_add_signed(distance.into()))))
    });
    let by_number = (0..code.bytes.len()).step_by(size).filter_map(|at| {
        let number = code.bytes[at..].strip_prefix(&PUSH)?.first_chunk()?;
        Some(stub(at, Way::Number(u32::from_le_bytes(*number))))
    });
    let mut stubs: Vec<Stub> = by_slot.chain(by_number).collect();
    stubs.sort_by_key(|stub| stub.range.start);
    stubs
}

/// `adrp x16, page; ldr x17, [x16, offset]`, up to `br x17`; before it `bti c` with branch protection.
fn aarch64(code: &Code<'_>) -> Vec<Stub> {
    const BTI_C: u32 = 0xd503_245f;
    const NOP: u32 = 0xd503_201f;
    const BR_X17: u32 = 0xd61f_0220;
    /// Most instructions from the load to the jump.
    const LONGEST: usize = 6;
    let (words, _) = code.bytes.as_chunks::<4>();
    let word = |at: usize| words.get(at).map(|bytes| u32::from_le_bytes(*bytes));
    let address_of = |at: usize| code.address.wrapping_add(4 * at as u64);
    let mut stubs = Vec::new();
    for at in 0..words.len() {
        let (Some(page), Some(load)) = (word(at), word(at + 1)) else { break };
        if page & 0x9f00_001f != 0x9000_0010 || load & 0xffc0_03ff != 0xf940_0211 {
            continue;
        }
        // A number of 21 bits with sign, counted in pages: bits 5 to 23 are its upper part, 29 and 30 its lower one.
        let pages = (((page >> 3) & 0x1f_fffc) | ((page >> 29) & 3)) << 11;
        let page = (address_of(at) & !0xfff).wrapping_add_signed(i64::from(pages.cast_signed() >> 11) << 12);
        let slot = page.wrapping_add(u64::from((load >> 10) & 0xfff) * 8);
        let Some(jump) = (at + 2..at + 2 + LONGEST).find(|&at| word(at) == Some(BR_X17)) else { continue };
        let start = if at > 0 && word(at - 1) == Some(BTI_C) { at - 1 } else { at };
        let end = (jump + 1..).find(|&at| word(at) != Some(NOP)).unwrap_or(jump + 1);
        stubs.push(Stub { range: address_of(start)..address_of(end), way: Way::Slot(slot) });
    }
    stubs
}

#[cfg(test)]
mod tests {
    use super::{Code, Stub, Way, find};
    use object::elf;

    fn slot(start: u64, end: u64, slot: u64) -> Stub {
        Stub { range: start..end, way: Way::Slot(slot) }
    }

    #[test]
    fn x86_64_in_every_size() {
        // The head of the table, then two stubs.
        let mut bytes = vec![0xff, 0x35, 0xca, 0x2f, 0, 0, 0xff, 0x25, 0xcc, 0x2f, 0, 0, 0x0f, 0x1f, 0x40, 0];
        for number in [0, 1] {
            bytes.extend([0xff, 0x25, 0xca - 8 * number, 0x2f, 0, 0, 0x68, number, 0, 0, 0, 0xe9, 0, 0, 0, 0]);
        }
        let mut code = Code { address: 0x1020, bytes: &bytes, entry_size: 0, align: 16 };
        let stubs = [slot(0x1020, 0x1030, 0x3ff8), slot(0x1030, 0x1040, 0x4000), slot(0x1040, 0x1050, 0x4008)];
        assert_eq!(find(elf::EM_X86_64, &code), stubs);
        code.entry_size = 16;
        assert_eq!(find(elf::EM_X86_64, &code), stubs);
        // Of eight bytes, as in static programs and in `.plt.got`.
        let bytes = [0xff, 0x25, 0xe2, 0x9f, 0x0a, 0, 0x66, 0x90].repeat(2);
        let code = Code { address: 0x40_1018, bytes: &bytes, entry_size: 0, align: 8 };
        let stubs = [slot(0x40_1018, 0x40_1020, 0x4a_b000), slot(0x40_1020, 0x40_1028, 0x4a_b008)];
        assert_eq!(find(elf::EM_X86_64, &code), stubs);
        assert!(find(elf::EM_386, &code).is_empty());
    }

    #[test]
    fn x86_64_with_branch_protection() {
        let bytes = [0xf3, 0x0f, 0x1e, 0xfa, 0x68, 7, 0, 0, 0, 0xe9, 0xe2, 0xff, 0xff, 0xff, 0x66, 0x90];
        let code = Code { address: 0x1030, bytes: &bytes, entry_size: 16, align: 16 };
        let stub = Stub { range: 0x1030..0x1040, way: Way::Number(7) };
        assert_eq!(find(elf::EM_X86_64, &code), [stub]);
        let bytes = [0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xf6, 0xff, 0xff, 0xff, 0x66, 0x0f, 0x1f, 0x44, 0, 0];
        let code = Code { address: 0x1030, bytes: &bytes, entry_size: 16, align: 16 };
        assert_eq!(find(elf::EM_X86_64, &code), [slot(0x1030, 0x1040, 0x1030)]);
    }

    #[test]
    fn aarch64_with_and_without_branch_protection() {
        let words: [u32; 6] = [
            0xd503_245f, // bti c
            0x9000_0110, // adrp x16, 0x20 pages further
            0xf940_0e11, // ldr x17, [x16, #24]
            0x9100_6210, // add x16, x16, #24
            0xd61f_0220, // br x17
            0xd503_201f, // nop
        ];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let code = Code { address: 0x1_0234, bytes: &bytes, entry_size: 0, align: 16 };
        assert_eq!(find(elf::EM_AARCH64, &code), [slot(0x1_0234, 0x1_024c, 0x3_0018)]);
        let code = Code { address: 0x1_0238, bytes: &bytes[4..20], ..code };
        assert_eq!(find(elf::EM_AARCH64, &code), [slot(0x1_0238, 0x1_0248, 0x3_0018)]);
        // One page back.
        let back: Vec<u8> = [0xf0ff_fff0_u32, 0xf940_0211, 0xd61f_0220].iter().flat_map(|w| w.to_le_bytes()).collect();
        let code = Code { address: 0x1_0000, bytes: &back, ..code };
        assert_eq!(find(elf::EM_AARCH64, &code), [slot(0x1_0000, 0x1_000c, 0xf000)]);
    }

    #[test]
    fn bytes_cut_anywhere() {
        for machine in [elf::EM_X86_64, elf::EM_AARCH64] {
            for fill in
                [&[0xff, 0x25, 0xff][..], &[0xf3, 0x0f, 0x1e, 0xfa, 0x68], &[0x10, 0x01, 0x00, 0x90, 0x11, 0x0e]]
            {
                let bytes = fill.repeat(9);
                for length in 0..bytes.len() {
                    let code = Code { address: u64::MAX - 3, bytes: &bytes[..length], entry_size: 0, align: 0 };
                    find(machine, &code);
                }
            }
        }
    }
}
