//! Packing rules.

use super::super::x86_64::{Base, Packed, Plain, Rule, SavedPointer};
use super::Random;

fn base(random: &mut Random) -> Base {
    if random.below(2) == 0 { Base::StackPointer } else { Base::FramePointer }
}

fn any(random: &mut Random) -> Rule {
    match random.below(9) {
        0 => Rule::Unknown,
        8 => Rule::Unsupported,
        1 => Rule::Outermost,
        2 => Rule::Signal,
        3 => Rule::LinkageTable { threshold: random.below(16) as u8 },
        4 | 5 => Rule::Plain(Plain {
            base: base(random),
            interrupted: random.below(2) == 0,
            cfa: 1 + random.below(0xffff) as u16,
            saved: random.below(1 << 11) as u16,
        }),
        _ => Rule::Dereference {
            base: base(random),
            at: random.below(1 << 12) as i16 - (1 << 11),
            add: random.below(1 << 7) as u8,
            saved: match random.below(3) {
                0 => SavedPointer::Same,
                1 => SavedPointer::BelowCfa(1 + random.below(63) as u8),
                _ => SavedPointer::AboveFramePointer(random.below(64) as u8),
            },
        },
    }
}

#[test]
fn a_rule_survives_packing() {
    let mut random = Random(7);
    for _ in 0..200_000 {
        let rule = any(&mut random);
        let packed = rule.pack();
        assert_ne!(packed.bits(), 0, "{rule:?}");
        assert!(packed.bits() < 1 << Packed::BITS, "{rule:?}");
        assert_eq!(packed.unpack(), rule);
        assert_eq!(Packed::from_bits(packed.bits() | random.next() << Packed::BITS), packed);
    }
}

#[test]
fn the_edges_survive_packing() {
    let plain = Plain { base: Base::FramePointer, interrupted: true, cfa: 0xffff, saved: 0x7ff };
    assert_eq!(Rule::Plain(plain).pack().unpack(), Rule::Plain(plain));
    for at in [-2048, -1, 0, 2047] {
        let saved = SavedPointer::AboveFramePointer(63);
        let rule = Rule::Dereference { base: Base::StackPointer, at, add: 127, saved };
        assert_eq!(rule.pack().unpack(), rule);
    }
}
