//! Real dumps in every format and back: what the format has a place for is the same afterwards.

mod support;

use mpp_profile::analysis::Weights;
use mpp_profile::formats::{Options, Target, write};
use mpp_profile::{Metric, Profile, WriteError, read};
use proptest::prelude::*;
use support::all_data;

/// The profile in the format; `None` if the format cannot express it.
fn converted(profile: &Profile, target: Target) -> Option<(Vec<u8>, Vec<String>)> {
    let mut content = Vec::new();
    match write(profile, target, Options::default(), &mut content) {
        Ok(losses) => Some((content, losses)),
        Err(WriteError::Inexpressible { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn totals(profile: &Profile, metric: Metric) -> (u64, u64) {
    let total = Weights::of(profile, metric).total();
    (total.bytes, total.blocks)
}

fn metrics(target: Target) -> &'static [Metric] {
    if target == Target::Folded { &[Metric::Live] } else { target.metrics() }
}

fn check(name: &str, profile: &Profile, target: Target) -> bool {
    let Some((content, _)) = converted(profile, target) else { return false };
    let back = read(&content[..], name).unwrap_or_else(|error| panic!("{target:?}: {error}"));
    for &metric in metrics(target) {
        let (before, after) = (totals(profile, metric), totals(&back, metric));
        assert_eq!(before.0, after.0, "{name} as {target:?}: bytes, {metric:?}");
        if target != Target::Folded {
            assert_eq!(before.1, after.1, "{name} as {target:?}: blocks, {metric:?}");
        }
    }
    true
}

#[test]
fn totals_of_real_dumps_come_back() {
    let mut written = 0;
    for (name, content) in all_data() {
        // Some are there to be refused.
        let Ok(profile) = read(&content[..], &name) else { continue };
        // Rounded estimates of single samples may have one more live than allocated, which is made whole.
        let is_exact = !profile.is_sampled();
        for target in Target::ALL {
            if is_exact || !matches!(target, Target::Gperftools | Target::Dhat) {
                written += usize::from(check(&name, &profile, target));
            }
        }
    }
    assert!(written > 50, "{written}");
}

const SMALL: &str = "heap profile: 7: 3584 [10: 5120] @ heap/2
3: 1536 [3: 1536] @ 0x1001 0x2001 0x3001
#\t0x1000\tapp.grow+0x10\t/src/app/grow.go:21
#\t0x2000\tapp.parse+0x20\t/src/app/parse.go:7
#\t0x3000\tapp.main+0x30\t/src/app/main.go:3

3: 1536 [6: 3072] @ 0x1101 0x3001
#\t0x1100\tapp, \"gr;ow\\+0x90\t/src/app/grow.go:25
#\t0x3000\tapp.main+0x30\t/src/app/main.go:3

1: 512 [1: 512] @ 0x4001 0x3001
#\t0x4000\tlib.table+0x40\t/src/lib/table.go:9
#\t0x3000\tapp.main+0x30\t/src/app/main.go:3
";

fn small() -> Profile {
    read(SMALL.as_bytes(), "small").expect("a profile")
}

/// The stacks as names and places, with live and allocated, in order.
fn stacks(profile: &Profile) -> Vec<(Vec<String>, [u64; 4])> {
    let stack = |sample: &mpp_profile::Sample| {
        let frames = profile.stack(sample.stack).locations.iter().flat_map(|&id| &profile.location(id).frames);
        frames.map(|frame| format!("{} {:?}:{}", frame.function, frame.file, frame.line)).collect()
    };
    let numbers = |sample: &mpp_profile::Sample| {
        [sample.live.bytes, sample.live.objects, sample.allocated.bytes, sample.allocated.objects]
    };
    let mut all: Vec<_> = profile.samples.iter().map(|sample| (stack(sample), numbers(sample))).collect();
    all.sort();
    all
}

#[test]
fn stacks_names_and_places_come_back() {
    let profile = small();
    for target in [Target::Csv, Target::Speedscope, Target::Firefox, Target::Dhat, Target::Proto, Target::ProtoGz] {
        let (content, _) = converted(&profile, target).expect("it can be written");
        assert_eq!(stacks(&read(&content[..], "x").expect("it is read")), stacks(&profile), "{target:?}");
    }
}

/// Functions without addresses stay functions of their own: none is taken for one that was inlined into another.
#[test]
fn places_without_addresses_stay_apart() {
    let (content, _) = converted(&small(), Target::Csv).expect("it can be written");
    let profile = read(&content[..], "csv").expect("it is read");
    for target in [Target::Csv, Target::Speedscope, Target::Firefox, Target::Dhat, Target::Proto] {
        let (content, _) = converted(&profile, target).expect("it can be written");
        let back = read(&content[..], "x").expect("it is read");
        assert_eq!(stacks(&back), stacks(&profile), "{target:?}");
        assert!(back.locations.iter().all(|location| location.frames.len() == 1), "{target:?}");
        let depths = |profile: &Profile| -> usize { profile.stacks.iter().map(|stack| stack.locations.len()).sum() };
        assert_eq!(depths(&back), depths(&profile), "{target:?}");
    }
}

#[test]
fn losses_are_told() {
    let profile = small();
    let losses = |target| converted(&profile, target).expect("it can be written").1.join("\n");
    assert!(losses(Target::HeapV2).contains("names, files and lines"));
    assert!(losses(Target::Folded).contains("metrics other than the one chosen"));
    assert!(losses(Target::Callgrind).contains("callers and callees"));
    assert!(!losses(Target::Proto).contains("names"));
    let sampled = read(SMALL.replace("heap/2", "heap/1048576").as_bytes(), "sampled").expect("a profile");
    let told = |target| converted(&sampled, target).expect("it can be written").1.join("\n").contains("estimates");
    assert_eq!(
        [Target::Csv, Target::Speedscope, Target::Dhat, Target::Gperftools].map(told),
        [false, true, true, true]
    );
}

#[test]
fn names_without_addresses_are_not_written_as_addresses() {
    let profile = read(&b"main;grow 4096\n"[..], "folded").expect("a profile");
    for target in [Target::HeapV2, Target::Gperftools, Target::Jemalloc] {
        assert!(converted(&profile, target).is_none(), "{target:?}");
    }
    assert!(check("folded", &profile, Target::Csv) && check("folded", &profile, Target::ProtoGz));
}

#[test]
fn a_cut_at_any_byte_is_refused_or_ends_a_line() {
    for target in [Target::Folded, Target::Csv, Target::Speedscope, Target::Firefox, Target::Callgrind, Target::Dhat] {
        let (content, _) = converted(&small(), target).expect("it can be written");
        // The last byte is a line end that JSON does not need.
        for end in 0..content.len() - 1 {
            let Err(error) = read(&content[..end], "cut") else {
                let by_lines = matches!(target, Target::Folded | Target::Csv);
                assert!(by_lines && content[end - 1] == b'\n', "{target:?} cut at {end} of {}", content.len());
                continue;
            };
            let message = error.to_string();
            assert!(message.starts_with("cut") && !message.chars().any(char::is_control), "{message:?}");
        }
    }
}

#[test]
fn other_writers_files() {
    let speedscope = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"main"},{"name":"grow","file":"a.c","line":3}]},
        "profiles":[{"type":"sampled","name":"t","unit":"bytes","startValue":0,"endValue":9,"samples":[[0,1],[0]],"weights":[4.0,5]}]}"#;
    let profile = read(speedscope.as_bytes(), "s").expect("a profile");
    assert_eq!((totals(&profile, Metric::Live), profile.threads[0].to_string()), ((9, 0), "t".to_owned()));
    for wrong in
        [speedscope.replace("[0,1]", "[0,7]"), speedscope.replace("[4.0,5]", "[4.0]"), speedscope.replace("4.0", "-4")]
    {
        assert!(read(wrong.as_bytes(), "s").is_err());
    }
    assert!(read(speedscope.replace("\"bytes\"", "\"seconds\"").as_bytes(), "s").is_err());
    // Valgrind's execution trees, with names told once and positions relative to the last one.
    let tree = "# callgrind format\nversion: 1\ncreator: xtree-1\npositions: line\nevents: curB curBk\n\nfl=(1) a.c\nfn=(1) grow\n\
        10 4096 1\n+2 100 2\nfn=(2) main\n* 0 0\ncfi=(1)\ncfn=(1)\ncalls=3 10\n20 4196 3\n\ntotals: 4196 3\n";
    assert_eq!(totals(&read(tree.as_bytes(), "c").expect("a profile"), Metric::Live), (4196, 3));
    assert!(read(tree.replace("curB curBk", "Ir").as_bytes(), "c").is_err());
    assert!(read(tree.replace("4196 3\n\n", "1 1\n\n").replace("4196 3\n", "4197 3\n").as_bytes(), "c").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any names and numbers: those that a format holds come back.
    #[test]
    fn all_that_a_format_holds_comes_back(
        rows in prop::collection::vec((prop::collection::vec("\\PC{1,6}", 1..5), 1u64..1 << 40, 1u64..1 << 20), 1..12),
    ) {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let mut csv = "stack,places,thread,thread_number,block_size,sample_rate,live_bytes,live_blocks\n".to_owned();
        for (frames, bytes, blocks) in &rows {
            let list: Vec<String> =
                frames.iter().map(|name| name.replace('\\', "\\\\").replace(';', "\\;")).collect();
            let places = ";".repeat(frames.len() - 1);
            csv.push_str(&format!("{},{places},,,0,1,{bytes},{blocks}\n", quoted(&list.join(";"))));
        }
        let profile = read(csv.as_bytes(), "csv").expect("our own rows");
        let bytes = rows.iter().map(|row| row.1).sum::<u64>();
        prop_assert_eq!(totals(&profile, Metric::Live).0, bytes);
        for target in [Target::Csv, Target::Speedscope, Target::Firefox, Target::Callgrind] {
            prop_assert!(check("rows", &profile, target));
        }
        let (content, _) = converted(&profile, Target::Csv).expect("it can be written");
        let names = |profile: &Profile| stacks(profile).into_iter().map(|(stack, _)| stack).collect::<Vec<_>>();
        let visible = |profile: &Profile| names(profile).concat().iter().all(|name| mpp_profile::text::escaped(name).to_string() == *name);
        if visible(&profile) {
            prop_assert_eq!(names(&read(&content[..], "again").expect("it is read")), names(&profile));
        }
    }
}

const EXACT: &str = r#"{"dhatFileVersion":2,"mode":"heap","verb":"Allocated","bklt":true,"bkacc":false,"tu":"instrs","Mtu":"Minstr","tuth":500,
"cmd":"app","pid":7,"tg":50,"te":90,"pps":[
{"tb":300,"tbk":3,"tl":40,"mb":200,"mbk":2,"gb":200,"gbk":2,"eb":100,"ebk":1,"fs":[0,1]},
{"tb":64,"tbk":1,"tl":5,"mb":64,"mbk":1,"gb":0,"gbk":0,"eb":0,"ebk":0,"fs":[2]}],
"ftbl":["0x1001: grow (app.c:3)","0x2001: main (app.c:9)","0x3001: ???"]}"#;

#[test]
fn peaks_and_lifetimes_come_back() {
    let profile = read(EXACT.as_bytes(), "exact").expect("a recording");
    assert_eq!(totals(&profile, Metric::Peak), (200, 2));
    for target in Target::ALL {
        assert!(check("exact", &profile, target), "{target:?}");
        let (content, losses) = converted(&profile, target).expect("it can be written");
        let back = read(&content[..], "x").expect("it is read");
        let lived = |profile: &Profile| profile.samples.iter().map(|sample| sample.lived).sum::<u64>();
        assert_eq!(lived(&back) == lived(&profile), target == Target::Dhat, "{target:?}");
        assert_eq!(losses.iter().any(|loss| loss == "how long blocks lived"), target != Target::Dhat, "{target:?}");
        if target != Target::Folded {
            let told = losses.iter().any(|loss| loss == "what was live at the peak");
            assert_eq!(told, !target.metrics().contains(&Metric::Peak), "{target:?}");
        }
    }
}

#[test]
fn threads_come_back_in_csv() {
    let csv = "stack,places,thread,thread_number,block_size,sample_rate,live_bytes,live_blocks\n\
        main;grow,a.c:1;,\"a,b\",12,64,524288,1000,5\nmain,;,,,0,524288,1,1\n";
    assert!(read(csv.as_bytes(), "csv").is_err(), "two places and one function");
    let profile = read(csv.replace(",;,", ",,").as_bytes(), "csv").expect("rows");
    let (content, _) = converted(&profile, Target::Csv).expect("it can be written");
    let back = read(&content[..], "again").expect("it is read");
    assert_eq!(back, profile);
    assert_eq!(back.threads[0].to_string(), "a,b (12)");
    assert_eq!((back.sample_rate, back.samples[0].block_size), (524_288, 64));
}
