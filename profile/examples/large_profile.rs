//! Writes large profiles, to measure readers with: `large_profile FORMAT STACKS DEPTH REPEATS > FILE`.
//!
//! FORMAT is `text` (heap_v2) or `proto`. STACKS distinct stacks of DEPTH frames; each is written REPEATS times, with blocks of three sizes. Stacks
//! share their outer frames, as those of programs do. The same arguments give the same bytes.

use std::io::{self, BufWriter, Write};

/// Block sizes of each stack.
const SIZES: u64 = 3;
/// Functions of the program that is made up.
const FUNCTIONS: u64 = 40_000;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<u64>().ok());
    let (Some(format), Some(stacks), Some(depth), Some(repeats)) = (arguments.first(), number(1), number(2), number(3))
    else {
        eprintln!("usage: large_profile text|proto STACKS DEPTH REPEATS > FILE");
        std::process::exit(2);
    };
    let output = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    match format.as_str() {
        "text" => text(output, stacks, depth, repeats),
        _ => proto(output, stacks, depth, repeats),
    }
}

/// The frames of a stack as numbers of functions, innermost first: its number in a mixed radix, so that no two are the same.
fn frames(stack: u64, depth: u64) -> impl Iterator<Item = u64> {
    // The inner frames differ most; from some depth on all stacks are the same.
    (0..depth).map(move |level| {
        let variety = stack / 7_u64.pow(level.min(9) as u32);
        (variety.wrapping_mul(0x9e37_79b9) ^ level.wrapping_mul(7919)) % FUNCTIONS
    })
}

fn text(mut output: impl Write, stacks: u64, depth: u64, repeats: u64) -> io::Result<()> {
    let lines = stacks * repeats;
    writeln!(output, "heap profile: {lines}: {0} [{lines}: {0}] @ heap_v2/524288", total(stacks, repeats))?;
    for repeat in 0..repeats {
        for stack in 0..stacks {
            let size = 64 * (repeat % SIZES + 1);
            write!(output, "1: {size} [1: {size}] @")?;
            for frame in frames(stack, depth) {
                write!(output, " {:#x}", 0x5555_0000_1001 + frame * 64)?;
            }
            writeln!(output)?;
        }
    }
    writeln!(output, "# stacks_marked = 1\nMAPPED_LIBRARIES:\n555500000000-555600000000 r-xp 00000000 08:01 7 /opt/app")
}

fn total(stacks: u64, repeats: u64) -> u64 {
    (0..repeats).map(|repeat| 64 * (repeat % SIZES + 1) * stacks).sum()
}

fn proto(mut output: impl Write, stacks: u64, depth: u64, repeats: u64) -> io::Result<()> {
    let mut strings: Vec<String> =
        ["", "alloc_objects", "count", "alloc_space", "bytes", "inuse_objects", "inuse_space", "space", "/opt/app"]
            .map(str::to_owned)
            .to_vec();
    for (kind, unit) in [(1, 2), (3, 4), (5, 2), (6, 4)] {
        message(&mut output, 1, &[number(1, kind), number(2, unit)].concat())?;
    }
    for repeat in 0..repeats {
        for stack in 0..stacks {
            let size = 64 * (repeat % SIZES + 1);
            let locations: Vec<u8> = frames(stack, depth).flat_map(|frame| varint(frame + 1)).collect();
            let values: Vec<u8> = [1, size, 1, size].into_iter().flat_map(varint).collect();
            message(&mut output, 2, &[bytes(1, &locations), bytes(2, &values)].concat())?;
        }
    }
    message(
        &mut output,
        3,
        &[number(1, 1), number(2, 0x5555_0000_0000), number(3, 0x5556_0000_0000), number(5, 8)].concat(),
    )?;
    for function in 0..FUNCTIONS {
        let line = [number(1, function + 1), number(2, 10 + function % 500)].concat();
        let place =
            [number(1, function + 1), number(2, 1), number(3, 0x5555_0000_1000 + function * 64), bytes(4, &line)];
        message(&mut output, 4, &place.concat())?;
        let name = strings.len() as u64;
        strings.push(format!("app::module_{}::function_{function}", function % 100));
        strings.push(format!("/src/app/module_{}.rs", function % 100));
        message(
            &mut output,
            5,
            &[number(1, function + 1), number(2, name), number(3, name), number(4, name + 1)].concat(),
        )?;
    }
    for string in &strings {
        message(&mut output, 6, string.as_bytes())?;
    }
    message(&mut output, 11, &[number(1, 7), number(2, 4)].concat())?;
    output.write_all(&number(12, 524_288))?;
    output.flush()
}

fn message(output: &mut impl Write, field: u64, content: &[u8]) -> io::Result<()> {
    output.write_all(&bytes(field, content))
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}
