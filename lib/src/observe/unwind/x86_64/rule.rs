//! The forms that a rule can have, and how they are packed into 30 bits.

use super::super::eh_frame::Described;
use super::super::expression::Form;
use super::super::program::{Cfa, Saved};
use super::{FRAME_POINTER, STACK_POINTER};

/// How to get from a frame to its caller.
///
/// Lengths are in words of 8 bytes. The fields are as wide as is needed for every row that compilers write: frames up to
/// 512 KiB, a frame pointer saved within 16 KiB of the CFA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Rule {
    /// There is no table entry.
    Unknown,
    /// There is a table entry, but not one of the forms below.
    Unsupported,
    /// The outermost frame: its return address is undefined.
    Outermost,
    /// The kernel's frame for a signal: the interrupted registers are in a `ucontext` at the stack pointer.
    Signal,
    /// See [`Form::LinkageTable`].
    LinkageTable { threshold: u8 },
    /// 99.9 % of all rows.
    Plain(Plain),
    /// CFA = *(`base` + `at`) + `add`. The return address is right below it.
    Dereference { base: Base, at: i16, add: u8, saved: SavedPointer },
}

/// CFA = `base` + `cfa`; the return address is right below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Plain {
    pub(in super::super) base: Base,
    /// That address is not a return address but where to go on.
    pub(in super::super) interrupted: bool,
    pub(in super::super) cfa: u16,
    /// How far below the CFA the frame pointer is saved; 0 when it is not.
    pub(in super::super) saved: u16,
}

/// The register that a CFA is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Base {
    StackPointer,
    FramePointer,
}

/// Where the caller's frame pointer is, in frames whose CFA is read from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum SavedPointer {
    Same,
    BelowCfa(u8),
    AboveFramePointer(u8),
}

const WORD: i64 = 8;
/// What every caller pushes: the return address is the word below the CFA.
const RETURN_ADDRESS_AT: Saved = Saved::AtCfa(-8);

/// Offsets in the kernel's `struct ucontext` (`asm/ucontext.h`, `asm/sigcontext.h`), where a signal's restorer has its
/// stack pointer. The C library describes them with expressions, which [`Rule::from_row`] compares with these.
pub(super) const SIGNAL_FP: i64 = 120;
pub(super) const SIGNAL_SP: i64 = 160;
pub(super) const SIGNAL_PC: i64 = 168;

// Plain: kind 0 and 1 in bits 0-1, `interrupted` 2, `cfa` 3-18, `saved` 19-29.
// Dereference: kind 2, base 2, `at` 3-14, `add` 15-21, `saved` 22-29: 6 bits of words, 2 of which place.
// Others: kind 3, which 2-3, detail 4-7.
const PLAIN_SP: u32 = 0;
const PLAIN_FP: u32 = 1;
const DEREFERENCE: u32 = 2;
const OTHER: u32 = 3;

/// A rule as a number that is never 0 and less than `1 << BITS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Packed(u32);

const fn field(bits: u32, from: u32, width: u32) -> u32 {
    bits >> from & ((1 << width) - 1)
}

impl Packed {
    /// How many bits are used.
    pub(in super::super) const BITS: u32 = 30;

    /// What [`Packed::bits`] gave before; other bits are ignored.
    #[inline(always)]
    pub(in super::super) fn from_bits(bits: u64) -> Packed {
        Packed(bits as u32 & ((1 << Self::BITS) - 1))
    }

    pub(in super::super) fn bits(self) -> u64 {
        self.0.into()
    }

    /// The usual case, apart from the others so that it stays short.
    #[inline(always)]
    pub(super) fn plain(self) -> Option<Plain> {
        let kind = self.0 & 3;
        (kind <= PLAIN_FP).then_some(Plain {
            base: if kind == PLAIN_FP { Base::FramePointer } else { Base::StackPointer },
            interrupted: field(self.0, 2, 1) != 0,
            cfa: field(self.0, 3, 16) as u16,
            saved: field(self.0, 19, 11) as u16,
        })
    }

    /// The reverse of [`Rule::pack`].
    pub(in super::super) fn unpack(self) -> Rule {
        if let Some(plain) = self.plain() {
            return Rule::Plain(plain);
        }
        let bits = self.0;
        if bits & 3 == DEREFERENCE {
            let words = field(bits, 24, 6) as u8;
            return Rule::Dereference {
                base: if field(bits, 2, 1) == 0 { Base::StackPointer } else { Base::FramePointer },
                at: (field(bits, 3, 12) << 4) as u16 as i16 >> 4,
                add: field(bits, 15, 7) as u8,
                saved: match field(bits, 22, 2) {
                    1 => SavedPointer::BelowCfa(words),
                    2 => SavedPointer::AboveFramePointer(words),
                    _ => SavedPointer::Same,
                },
            };
        }
        match field(bits, 2, 2) {
            1 => Rule::Outermost,
            2 => Rule::Signal,
            3 => Rule::LinkageTable { threshold: field(bits, 4, 4) as u8 },
            _ if field(bits, 4, 1) != 0 => Rule::Unsupported,
            _ => Rule::Unknown,
        }
    }
}

impl Rule {
    pub(in super::super) fn pack(self) -> Packed {
        Packed(match self {
            Rule::Unknown => OTHER,
            Rule::Unsupported => OTHER | 1 << 4,
            Rule::Outermost => OTHER | 1 << 2,
            Rule::Signal => OTHER | 2 << 2,
            Rule::LinkageTable { threshold } => OTHER | 3 << 2 | u32::from(threshold) << 4,
            Rule::Plain(Plain { base, interrupted, cfa, saved }) => {
                let kind = if base == Base::FramePointer { PLAIN_FP } else { PLAIN_SP };
                kind | u32::from(interrupted) << 2 | u32::from(cfa) << 3 | u32::from(saved) << 19
            }
            Rule::Dereference { base, at, add, saved } => {
                let saved = match saved {
                    SavedPointer::Same => 0,
                    SavedPointer::BelowCfa(words) => 1 | u32::from(words) << 2,
                    SavedPointer::AboveFramePointer(words) => 2 | u32::from(words) << 2,
                };
                let base = u32::from(base == Base::FramePointer);
                DEREFERENCE | base << 2 | (at as u32 & 0xfff) << 3 | u32::from(add) << 15 | saved << 22
            }
        })
    }

    /// The rule that a row stands for; `None` when it has no such form.
    pub(in super::super) fn from_row(described: &Described) -> Option<Rule> {
        let row = &described.row;
        if row.return_address == Saved::Undefined {
            return Some(Rule::Outermost);
        }
        match row.cfa {
            Cfa::Unset => None,
            Cfa::Register { register, offset } => plain(described, register, offset.into()),
            Cfa::Expression(at) => match described.form(at)? {
                Form::Offset { register, offset } => plain(described, register, offset),
                Form::Dereference { register, offset, addend } => {
                    if described.signal_frame && register == STACK_POINTER && offset == SIGNAL_SP && addend == 0 {
                        return signal(described);
                    }
                    dereference(described, register, offset, addend)
                }
                Form::LinkageTable { threshold } => (row.return_address == RETURN_ADDRESS_AT
                    && row.frame_pointer == Saved::Same)
                    .then_some(Rule::LinkageTable { threshold }),
            },
        }
    }
}

fn base(register: u8) -> Option<Base> {
    match register {
        STACK_POINTER => Some(Base::StackPointer),
        FRAME_POINTER => Some(Base::FramePointer),
        _ => None,
    }
}

/// A number of bytes as whole words.
fn words(bytes: i64) -> Option<i64> {
    (bytes % WORD == 0).then_some(bytes / WORD)
}

/// How many words below the CFA a register is saved, when that is less than `limit`.
fn words_below(offset: i32, limit: i64) -> Option<i64> {
    words(-i64::from(offset)).filter(|words| (1..limit).contains(words))
}

fn plain(described: &Described, register: u8, offset: i64) -> Option<Rule> {
    let row = &described.row;
    if row.return_address != RETURN_ADDRESS_AT {
        return None;
    }
    let saved = match row.frame_pointer {
        Saved::Same => 0,
        Saved::AtCfa(offset) => words_below(offset, 1 << 11)? as u16,
        _ => return None,
    };
    // A frame holds its return address at least: a rule is never 0.
    let cfa = u16::try_from(words(offset)?).ok().filter(|words| *words > 0)?;
    Some(Rule::Plain(Plain { base: base(register)?, interrupted: described.signal_frame, cfa, saved }))
}

fn dereference(described: &Described, register: u8, offset: i64, addend: u64) -> Option<Rule> {
    let row = &described.row;
    if row.return_address != RETURN_ADDRESS_AT || described.signal_frame {
        return None;
    }
    let at = words(offset).filter(|words| (-(1 << 11)..1 << 11).contains(words))? as i16;
    let add = words(i64::try_from(addend).ok()?).filter(|words| *words < 1 << 7)? as u8;
    let saved = match row.frame_pointer {
        Saved::Same => SavedPointer::Same,
        Saved::AtCfa(offset) => SavedPointer::BelowCfa(words_below(offset, 1 << 6)? as u8),
        Saved::Expression(at) => match described.form(at)? {
            Form::Offset { register: FRAME_POINTER, offset } => {
                let words = words(offset).filter(|words| (0..1 << 6).contains(words))?;
                SavedPointer::AboveFramePointer(words as u8)
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(Rule::Dereference { base: base(register)?, at, add, saved })
}

/// A signal frame, if the other two registers are where the kernel puts them.
fn signal(described: &Described) -> Option<Rule> {
    let is_at = |saved: Saved, offset: i64| {
        let Saved::Expression(at) = saved else {
            return false;
        };
        described.form(at) == Some(Form::Offset { register: STACK_POINTER, offset })
    };
    let row = &described.row;
    (is_at(row.frame_pointer, SIGNAL_FP) && is_at(row.return_address, SIGNAL_PC)).then_some(Rule::Signal)
}
