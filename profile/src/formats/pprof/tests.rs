use std::io::Write;

use flate2::{Compression, write::GzEncoder};

use super::super::Limits;
use crate::{Amount, Amounts, Format, Frame, Metric, Profile, ReadError, StackEnd, read, read_with};

/// A message under construction.
#[derive(Clone, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    fn number(self, field: u64, value: u64) -> Self {
        self.varint(field << 3).varint(value)
    }

    fn bytes(self, field: u64, content: &[u8]) -> Self {
        let mut message = self.varint(field << 3 | 2).varint(content.len() as u64);
        message.0.extend_from_slice(content);
        message
    }

    fn numbers(self, field: u64, values: &[u64]) -> Self {
        let packed = values.iter().fold(Message::default(), |packed, &value| packed.varint(value));
        self.bytes(field, &packed.0)
    }

    fn fields(self, field: u64, values: &[u64]) -> Self {
        let inner =
            values.iter().zip(1..).fold(Message::default(), |inner, (&value, number)| inner.number(number, value));
        self.bytes(field, &inner.0)
    }
}

/// The text form of [`own`].
const TEXT: &str = "\
heap profile:      5:    18944 [    11:    44032] @ heap_v2/524288
     3:     1536 [     5:     2560] @ 0x7f1000001010 0x401100 0x7f1000002020
     0:        0 [     2:    32768] @ 0x401200 0x7f1000002020
     2:    17408 [     4:     8704] @ 0x401300
# stack truncated: no unwind info at 0x401300
# mimalloc heap stats
# sample_rate = 524288
# stacks_marked = 1
# dropped_samples = 3
# build_id 00ff10 /opt/my app/bin/server
MAPPED_LIBRARIES:
00401000-00402000 r-xp 00001000 fe:00 7                       /opt/my app/bin/server
7f1000000000-7f1000003000 r-xp 00028000 fe:00 9               /usr/lib/libc.so.6
";

fn text() -> Profile {
    let text = TEXT.replace("4:     8704]", "4:    34816]").replace("44032", "70144");
    read(text.as_bytes(), "text").expect("the text form")
}

/// Numbers of strings.
const STRINGS: [&str; 16] = [
    "",
    "alloc_objects",
    "count",
    "alloc_space",
    "bytes",
    "inuse_objects",
    "inuse_space",
    "space",
    "stack_truncated",
    "no unwind info",
    "stacks_marked = 1",
    "sample_rate = 524288",
    "dropped_samples = 3",
    "/opt/my app/bin/server",
    "00ff10",
    "/usr/lib/libc.so.6",
];

/// What a number of recorded blocks stands for: blocks and bytes.
fn estimate(recorded: u64, size: u64) -> [u64; 2] {
    let probability = -(-(size as f64) / 524_288.0).exp_m1();
    [recorded as f64 / probability, (recorded * size) as f64 / probability].map(|estimate| estimate.round() as u64)
}

fn sample(locations: &[u64], allocated: u64, live: u64, size: u64, truncated: bool) -> Message {
    let values = [estimate(allocated, size), estimate(live, size)].concat();
    let sample = Message::default().numbers(1, locations).numbers(2, &values).bytes(3, &label(4, 0, size).0);
    if truncated { sample.bytes(3, &label(8, 9, 0).0) } else { sample }
}

fn label(key: u64, string: u64, number: u64) -> Message {
    Message::default().number(1, key).number(2, string).number(3, number).number(4, 4)
}

/// The parts of a dump as our library writes it.
fn parts() -> Vec<Message> {
    let message = Message::default;
    let mut parts = vec![
        message().fields(1, &[1, 2]).fields(1, &[3, 4]).fields(1, &[5, 2]).fields(1, &[6, 4]),
        message().bytes(2, &sample(&[1, 2, 3], 5, 3, 512, false).0),
        message().bytes(2, &sample(&[4, 3], 2, 0, 16_384, false).0),
        message().bytes(2, &sample(&[5], 4, 2, 8704, true).0),
        message().fields(3, &[1, 0x401000, 0x402000, 0x1000, 13, 14]),
        message().fields(3, &[2, 0x7f1000000000, 0x7f1000003000, 0x28000, 15]),
    ];
    for (id, mapping, address) in
        [(1, 2, 0x7f100000100f), (2, 1, 0x4010ff), (3, 2, 0x7f100000201f), (4, 1, 0x4011ff), (5, 1, 0x4012ff)]
    {
        parts.push(message().fields(4, &[id, mapping, address]));
    }
    parts
        .push(message().number(9, 77).fields(11, &[7, 4]).number(12, 524_288).numbers(13, &[11, 10, 12]).number(14, 6));
    parts.extend(STRINGS.iter().map(|string| message().bytes(6, string.as_bytes())));
    parts
}

fn join(parts: &[Message]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.0.clone()).collect()
}

fn own() -> Vec<u8> {
    join(&parts())
}

fn packed(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

fn message(content: &[u8]) -> String {
    read(content, "dump").expect_err("an error").to_string()
}

#[test]
fn our_own_dumps_are_the_same_in_both_forms() {
    let expected = Profile { format: Format::Pprof, ..text() };
    for content in [own(), packed(&own()), [packed(b""), packed(&own())].concat()] {
        assert_eq!(read(&content[..], "dump").unwrap(), expected);
    }
    // The order of fields does not matter.
    let mut parts = parts();
    parts.reverse();
    parts[..STRINGS.len()].reverse();
    let reversed = read(&join(&parts)[..], "dump").unwrap();
    assert_eq!(reversed.estimate(Metric::Live), expected.estimate(Metric::Live));
    assert_eq!(reversed.comments, expected.comments);
    // Nor does the packing of text.
    assert_eq!(
        read(&packed(TEXT.replace("8704]", "34816]").replace("44032", "70144").as_bytes())[..], "x").unwrap(),
        text()
    );
}

#[test]
fn what_other_programs_have_added_up_stays_an_estimate() {
    let mut parts = parts();
    let mut values = [estimate(5, 512), estimate(3, 512)].concat();
    values[3] += 3000;
    let changed = Message::default().numbers(1, &[1, 2, 3]).numbers(2, &values).bytes(3, &label(4, 0, 512).0);
    parts[1] = Message::default().bytes(2, &changed.0);
    let profile = read(&join(&parts)[..], "dump").unwrap();
    assert_eq!((profile.format, profile.amounts), (Format::PprofForeign, Amounts::Estimated));
    assert!(profile.warnings[0].contains("changed"), "{:?}", profile.warnings);
    assert_eq!(profile.samples[0].live.bytes, values[3]);
    let written = crate::formats::heap_text::write(&profile, std::io::sink());
    assert!(written.is_err_and(|error| error.to_string().contains("estimates")));
}

#[test]
fn what_was_live_at_the_peak_is_read() {
    let types = Message::default().fields(1, &[16, 2]).fields(1, &[17, 4]);
    let mut parts = parts();
    parts[0] = Message([parts[0].0.clone(), types.0].concat());
    for (part, [allocated, live, peak, size]) in
        parts[1..4].iter_mut().zip([[5, 3, 4, 512], [2, 0, 1, 16_384], [4, 2, 2, 8704]])
    {
        let values = [estimate(allocated, size), estimate(live, size), estimate(peak, size)].concat();
        *part = Message::default().bytes(2, &Message::default().numbers(2, &values).bytes(3, &label(4, 0, size).0).0);
    }
    parts.extend(["peak_objects", "peak_space"].map(|string| Message::default().bytes(6, string.as_bytes())));
    let profile = read(&join(&parts)[..], "dump").unwrap();
    assert_eq!(profile.amounts, Amounts::Recorded);
    assert_eq!(profile.recorded(Metric::Peak), Amount { objects: 7, bytes: 4 * 512 + 16_384 + 2 * 8704 });
}

#[test]
fn profiles_of_others_bring_their_names() {
    let mut parts = parts();
    let first = parts.len() as u64;
    let more = ["main", "inlined", "main.c"];
    // Not ours any more.
    let comments = parts.iter().position(|part| part.0.starts_with(&[9 << 3])).unwrap();
    parts[comments] = Message::default().fields(11, &[7, 4]).number(12, 524_288);
    parts[6] = Message::default()
        .bytes(4, &Message::default().number(1, 1).number(3, 0x7f100000100f).fields(4, &[8, 5]).fields(4, &[7, 300]).0);
    parts.push(Message::default().fields(5, &[7, 16, 99, 18]));
    parts.push(Message::default().fields(5, &[8, 17]));
    parts.extend(more.iter().map(|string| Message::default().bytes(6, string.as_bytes())));
    // Field 3 of a function is its name in the file's own language; field 4 is the file.
    let place = parts.len() - more.len() - 2;
    parts[place] = Message::default().bytes(5, &Message::default().number(1, 7).number(2, 16).number(4, 18).0);
    assert!(first > 0);
    let profile = read(&join(&parts)[..], "dump").unwrap();
    assert_eq!((profile.format, profile.amounts), (Format::PprofForeign, Amounts::Estimated));
    let frames = &profile.locations[0].frames;
    assert_eq!(frames[0], Frame { inlined: true, line: 5, ..Frame::named("inlined") });
    assert_eq!(frames[1], Frame::named("main").at("main.c", 300));
    assert_eq!(profile.module_of(&profile.locations[0]).unwrap().path, "/usr/lib/libc.so.6");
    assert_eq!(profile.stacks[0].end, StackEnd::Unknown);
    // Of two words for what was recorded, those that are there.
    assert_eq!(profile.recorded_blocks(Metric::Live), 5);
}

#[test]
fn every_cut_is_an_error_with_a_place() {
    for content in [own(), packed(&own())] {
        for cut in 0..content.len() {
            let error = message(&content[..cut]);
            assert!(cut < 8 || error.contains("dump:byte "), "{cut} of {}: {error}", content.len());
        }
    }
}

#[test]
fn every_changed_byte_ends_well() {
    for content in [own(), packed(&own())] {
        for at in 0..content.len() {
            for change in [1, 0x80, 0xff] {
                let mut content = content.clone();
                content[at] ^= change;
                if let Err(error) = read(&content[..], "dump") {
                    assert!(error.to_string().starts_with("dump:"), "{error}");
                }
            }
        }
    }
}

#[test]
fn what_does_not_make_sense_is_refused() {
    let with = |index: usize, part: Message| {
        let mut parts = parts();
        parts[index] = part;
        message(&join(&parts))
    };
    let part = Message::default;
    let wrong_count = part().bytes(2, &part().numbers(1, &[1]).numbers(2, &[1, 2, 3]).0);
    let negative = part().bytes(2, &part().numbers(1, &[1]).numbers(2, &[1, 2, 3, u64::MAX]).0);
    let nowhere = part().bytes(2, &part().numbers(1, &[9]).numbers(2, &[1, 2, 3, 4]).0);
    let large = 1 << 62;
    let one = part().numbers(2, &[large, large, large, large]);
    let huge = part().bytes(2, &one.0).bytes(2, &one.0);
    for (index, part, expected) in [
        (1, wrong_count, "3 values; expected 4"),
        (1, negative, "negative value"),
        (1, nowhere, "location 9, which is not there"),
        (1, huge, "2^63"),
        (4, part().fields(3, &[2, 1, 2]), "number of its own"),
        (6, part().fields(4, &[1, 9, 1]), "mapping 9, which is not there"),
        (6, part().fields(4, &[2, 1, 1]), "number of its own"),
        (5, part().fields(3, &[2, 1, 2, 3, 99]), "string 99"),
        (0, part().fields(1, &[1, 2]).fields(1, &[6, 4]).fields(1, &[6, 4]), "occurs twice"),
        (6, part().varint(4 << 3), "cut off or damaged"),
        (6, part().varint(4 << 3 | 3), "kind is 3"),
        (6, part().varint(0), "number is 0"),
        (6, part().bytes(4, b"\x08\xff"), "number of at most 64 bits"),
        (6, part().bytes(4, b"\x0a\xff\x01"), "does not end before its message"),
    ] {
        let error = with(index, part);
        assert!(
            error.starts_with("dump:byte ") && error.contains(expected) || error.contains("kind"),
            "{expected}: {error}"
        );
    }
    // The table of strings begins with an empty one.
    let nameless: Vec<_> = parts().into_iter().filter(|part| part.0 != [6 << 3 | 2, 0]).collect();
    assert!(message(&join(&nameless)).contains("table of strings"));
    // Two dumps in one file.
    assert!(message(&[own(), own()].concat()).contains("joined"));
    assert!(message(&[packed(&own()), packed(&own())].concat()).contains("joined"));
    assert!(message(&[packed(&own()), b"rest".to_vec()].concat()).contains("gzip"));
    assert!(message(&packed(&packed(&own()))).contains("gzip data in gzip data"));
}

#[test]
fn profiles_of_other_things_are_named() {
    for (kind, expected) in
        [("cpu", "CPU"), ("contentions", "contention"), ("goroutine", "goroutine"), ("x", "other than")]
    {
        let mut content = Message::default().fields(1, &[1, 2]).0;
        for string in ["", kind, "count"] {
            content.extend(Message::default().bytes(6, string.as_bytes()).0);
        }
        let error = read(&content[..], "dump").unwrap_err();
        assert!(matches!(error, ReadError::Unsupported { .. }) && error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn bombs_are_refused() {
    // A field that is announced, and is not there.
    let announced = Message::default().varint(2 << 3 | 2).varint(u64::MAX).0;
    assert!(message(&[own(), announced].concat()).contains("not read"));
    let announced = Message::default().varint(2 << 3 | 2).varint(1 << 20).0;
    assert!(message(&[own(), announced].concat()).contains("cut off"));
    // A megabyte of packed nothing would be a gigabyte.
    let limits = Limits { input_bytes: 1 << 20, samples: 1000, ..Limits::default() };
    let strings = Message::default().bytes(6, &[b'x'; 1000]).0.repeat(2000);
    let empty_samples = Message::default().bytes(2, b"").0.repeat(2000);
    for (content, expected) in [(strings, "larger than"), (empty_samples, "more than 1000 samples")] {
        for content in [[own(), content.clone()].concat(), packed(&[own(), content].concat())] {
            let error = read_with(&content[..], "dump", &limits).unwrap_err();
            assert!(matches!(error, ReadError::TooLarge { .. }) && error.to_string().contains(expected), "{error}");
        }
    }
}

/// In a file with many samples, those that say the same of the same become one, and others do not.
#[test]
fn many_samples_of_the_same_become_one() {
    let mut file = Vec::new();
    let field = |number: u64, content: &[u8], file: &mut Vec<u8>| {
        file.extend([(number << 3 | 2) as u8, content.len() as u8]);
        file.extend(content);
    };
    field(1, &[8, 1, 16, 2], &mut file);
    field(1, &[8, 3, 16, 4], &mut file);
    const SAMPLES: usize = 1_200_000;
    for index in 0..SAMPLES {
        // One block of 8 bytes, or two: the same size; every fourth is one of 9 bytes.
        let values = [[1, 8], [2, 16], [1, 8], [1, 9]][index % 4];
        field(2, &[10, 1, 1, 18, 2, values[0], values[1]], &mut file);
    }
    field(4, &[8, 1, 24, 64], &mut file);
    for string in ["", "inuse_objects", "count", "inuse_space", "bytes"] {
        field(6, string.as_bytes(), &mut file);
    }
    let profile = crate::read(&file[..], "test").expect("a profile");
    let expected = Amount { objects: (SAMPLES / 4 * 5) as u64, bytes: (SAMPLES / 4 * 41) as u64 };
    assert_eq!(profile.recorded(Metric::Live), expected);
    assert_eq!((profile.samples.len(), profile.stacks.len()), (1 << 16, 1));
    let of_nine: u64 =
        profile.samples.iter().filter(|sample| sample.block_size == 9).map(|sample| sample.live.objects).sum();
    assert_eq!(of_nine, SAMPLES as u64 / 4);
}
