//! Tables written by hand: an assembler for `.eh_frame_hdr` and `.eh_frame` in guarded memory.

use super::super::cursor::Window;
use super::super::module::Module;
use super::super::x86_64::Rule;
use super::super::{eh_frame, module};
use super::std::vec::Vec;
use super::{Guarded, PAGE};

/// Pointers relative to themselves, 4 bytes, signed: what compilers write.
const PCREL_SDATA4: u8 = 0x1b;
/// The first function begins this far above the tables; nothing is there.
pub(super) const CODE: usize = 0x10_0000;

/// Room for all tables of a test; they lie at its end, so that the first byte too many kills the test.
const PAGES: usize = 4;

pub(super) struct Function {
    /// Address above [`CODE`], and length.
    pub(super) at: usize,
    pub(super) length: usize,
    pub(super) augmentation: &'static str,
    pub(super) instructions: Vec<u8>,
}

pub(super) fn function(at: usize, length: usize, instructions: &[u8]) -> Function {
    Function { at, length, augmentation: "zR", instructions: instructions.to_vec() }
}

/// What every CIE on x86-64 begins with: CFA = rsp + 8, return address at CFA - 8.
const INITIAL: &[u8] = &[0x0c, 7, 8, 0x90, 1];

pub(super) struct Tables {
    memory: Guarded,
    length: usize,
}

impl Tables {
    /// With an index that is sorted, or without an index.
    pub(super) fn new(functions: &[Function], with_index: bool) -> Tables {
        let mut bytes = Vec::new();
        write(&mut bytes, functions, with_index);
        let mut tables = Tables { memory: Guarded::new(PAGES), length: bytes.len() };
        tables.bytes().copy_from_slice(&bytes);
        tables
    }

    fn start(&self) -> usize {
        self.memory.end() - self.length
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        let from = PAGES * PAGE - self.length;
        &mut self.memory.bytes()[from..]
    }

    /// The rule for an address above [`CODE`].
    pub(super) fn rule(&self, at: usize) -> Rule {
        eh_frame::rule_for(&self.module(), self.start() + CODE + at)
    }

    fn module(&self) -> Module {
        // SAFETY: window invariant: this memory, which lives as long as `self`.
        let window = unsafe { Window::new(self.start(), self.memory.end()) };
        module::Module { window, index: self.start() }
    }
}

fn write(out: &mut Vec<u8>, functions: &[Function], with_index: bool) {
    let (count_encoding, table_encoding) = if with_index { (0x03, 0x3b) } else { (0xff, 0xff) };
    out.extend([1, PCREL_SDATA4, count_encoding, table_encoding]);
    let index_length = if with_index { 12 + functions.len() * 8 } else { 8 };
    out.extend((index_length as i32 - 4).to_le_bytes());
    let mut frames = Vec::new();
    let mut pairs = Vec::new();
    for function in functions {
        let cie = index_length + frames.len();
        write_cie(&mut frames, function.augmentation);
        let fde = index_length + frames.len();
        pairs.push(((CODE + function.at) as i32, fde as i32));
        write_fde(&mut frames, index_length, cie, function);
    }
    if with_index {
        pairs.sort();
        out.extend((pairs.len() as u32).to_le_bytes());
        for (start, entry) in pairs {
            out.extend(start.to_le_bytes());
            out.extend(entry.to_le_bytes());
        }
    }
    out.extend(frames);
    out.extend(0u32.to_le_bytes());
}

fn write_cie(frames: &mut Vec<u8>, augmentation: &str) {
    let mut body = Vec::new();
    body.extend(0u32.to_le_bytes());
    body.push(1);
    body.extend(augmentation.bytes());
    body.extend([0, 1, 0x78, 16]); // code alignment 1, data alignment -8, return address in column 16
    if augmentation.starts_with('z') {
        let mut data = Vec::new();
        for letter in augmentation.bytes().skip(1) {
            match letter {
                b'R' | b'L' => data.push(PCREL_SDATA4),
                b'P' => data.extend([0x9b, 1, 2, 3, 4]),
                _ => {}
            }
        }
        body.push(data.len() as u8);
        body.extend(data);
    }
    if !augmentation.contains('S') {
        body.extend(INITIAL);
    }
    finish(frames, body);
}

fn write_fde(frames: &mut Vec<u8>, frames_at: usize, cie: usize, function: &Function) {
    let at = frames_at + frames.len() + 4;
    let mut body = Vec::new();
    body.extend(((at - cie) as u32).to_le_bytes());
    if function.augmentation.is_empty() {
        // No augmentation: absolute addresses, which are not known here; such a function covers nothing.
        body.extend(u64::MAX.to_le_bytes());
        body.extend(0u64.to_le_bytes());
    } else {
        body.extend(((CODE + function.at) as i32 - (at as i32 + 4)).to_le_bytes());
        body.extend((function.length as u32).to_le_bytes());
        body.push(0);
    }
    body.extend(&function.instructions);
    finish(frames, body);
}

/// Pad to 8 bytes with `nop` and put the length in front.
fn finish(frames: &mut Vec<u8>, mut body: Vec<u8>) {
    while !(body.len() + 4).is_multiple_of(8) {
        body.push(0);
    }
    frames.extend((body.len() as u32).to_le_bytes());
    frames.extend(body);
}
