//! `mpp growth` on committed profiles and on a real program that leaks.

mod common;

use common::{Place, json, ran};
use serde_json::Value;

/// A profile with names, in which every block was recorded: bytes of functions that `main` calls.
fn snapshot(place: &Place, name: &str, functions: &[(&str, u64)]) {
    let total: u64 = functions.iter().map(|(_, bytes)| bytes).sum();
    let mut text = format!("heap profile: {0}: {total} [{0}: {total}] @ heap/2\n", functions.len());
    for (function, bytes) in functions {
        let number = function.bytes().fold(7_u64, |sum, byte| (sum * 31 + u64::from(byte)) % 0xff_ffff) * 16;
        text.push_str(&format!("1: {bytes} [1: {bytes}] @ {:#x}\n", number + 1));
        text.push_str(&format!("#\t{number:#x}\t{function}+0x1\t/src/{function}.go:7\n\n"));
    }
    place.write(name, text);
}

const FILES: [&str; 5] = ["1.heap", "2.heap", "3.heap", "4.heap", "5.heap"];

fn week(place: &Place) {
    let leak = [1000, 2000, 3000, 4000, 5000];
    let cache = [500, 8000, 9000, 9000, 9000];
    let busy = [100, 900, 200, 900, 300];
    let gone = [70, 60, 0, 0, 0];
    for (day, file) in FILES.iter().enumerate() {
        let all = [("leak", leak[day]), ("cache", cache[day]), ("busy", busy[day]), ("gone", gone[day]), ("same", 64)];
        snapshot(place, file, &all);
    }
}

#[test]
fn leaks_are_told_from_caches() {
    let place = Place::new();
    week(&place);
    let expected = "\
live: +12.3 KiB, +2.75 KiB per snapshot: 1.69 KiB at first, 14.0 KiB at last
from: 5 files; the last: every block was recorded
stacks: the file does not say whether they are complete; symbols: 100% with lines, 0% names only, 0% unknown

         per step     change   first      last  upwards  over time  function  file:line
grows     +1000 B  +3.91 KiB  1000 B  4.88 KiB  100%     ▂▄▅▇█      leak      /src/leak.go:7
levels  +1.76 KiB  +8.30 KiB   500 B  8.79 KiB  100%     ▁████      cache     /src/cache.go:7
rises       +40 B     +200 B   100 B     300 B  53.6%    ▁█▂█▃      busy      /src/busy.go:7
functions: 1 keeps growing (+3.91 KiB), 1 levels off (+8.30 KiB), 1 rises (+200 B), 1 falls (-70 B), 1 flat (0 B)
";
    let arguments = |more: &[&'static str]| [&["growth", "-q"], &FILES[..], more].concat();
    assert_eq!(place.run(arguments(&[])).exits(0).stdout, expected);
    let rows = place.run(arguments(&["--all-rows", "--format", "csv"])).exits(0).stdout;
    let expected = "\
trend,slope,change_bytes,error,first_bytes,last_bytes,upwards,name,file,line,values
grows,1000.000,4000,0,1000,5000,1.0000,leak,/src/leak.go,7,1000 2000 3000 4000 5000
levels,1800.000,8500,0,500,9000,1.0000,cache,/src/cache.go,7,500 8000 9000 9000 9000
rises,40.000,200,0,100,300,0.5357,busy,/src/busy.go,7,100 900 200 900 300
falls,-20.000,-70,0,70,0,0.0000,gone,/src/gone.go,7,70 60 0 0 0
flat,0.000,0,0,64,64,,same,/src/same.go,7,64 64 64 64 64
";
    assert_eq!(rows, expected);
    let found = json(&place.run(arguments(&["--format", "json", "--focus", "leak|busy"])).exits(0).stdout);
    assert_eq!(found["total"]["values"], serde_json::json!([1100, 2900, 3200, 4900, 5300]));
    assert_eq!((&found["rows"][0]["trend"], &found["rows"][0]["slope"]), (&"grows".into(), &1000.0.into()));
    let narrow = ran(place.mpp().env("COLUMNS", "40").env("TERM", "dumb").args(arguments(&[]))).exits(0).stdout;
    let table = narrow.split_once("\n\n").expect("a table").1;
    let longest = table.lines().filter(|line| !line.starts_with("functions")).map(|line| line.chars().count()).max();
    assert!(longest.is_some_and(|longest| longest <= 40) && table.contains("leak"), "{narrow}");
}

#[test]
fn two_are_a_difference() {
    let place = Place::new();
    week(&place);
    place.run(["growth", "1.heap", "2.heap"]).exits(2).says("2 snapshots are too few").says("mpp diff OLD NEW");
    place.run(["growth", "1.heap"]).exits(2).says("1.heap: is one profile");
    place.run(["growth", "-"]).exits(2).says("name a recording");
    place.run(["growth", "1.heap", "2.heap", "3.heap", "--slices", "9"]).exits(2).says("for one recording");
    place.run(["growth", "1.heap", "none.heap", "3.heap"]).exits(13).says("none.heap");
    place.run(["growth"]).exits(13).says("no recording below this folder");
}

/// What a program keeps for good, what it keeps at first, and what it only uses, seen in its dumps and in its timeline.
#[test]
fn a_program_that_leaks() {
    let place = Place::new();
    let program = place.compile(
        "server",
        "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>
        __attribute__((noinline)) void *leak(void) { return memset(malloc(3000), 1, 3000); }
        __attribute__((noinline)) void *cache(void) { return memset(malloc(2000), 1, 2000); }
        __attribute__((noinline)) void use(void) {
            for (int i = 0; i < 900; i++) { void *p = memset(malloc(700), 1, 700); free(p); }
        }
        int main(void) {
            for (int step = 0; step < 40; step++) {
                for (int i = 0; i < 300; i++) leak();
                for (int i = 0; step < 10 && i < 900; i++) cache();
                use();
                usleep(25000);
            }
            return 0;
        }",
        &["-g", "-O1"],
    );
    let options = ["run", "-q", "--sample", "16KiB", "--seed", "1", "--every", "5MiB", "-o", "rec", "--"];
    ran(place.mpp().args(options).arg(&program)).exits(0);
    for more in [&[][..], &["--slices", "20"]] {
        let found: Value =
            json(&place.run([&["growth", "-q", "rec", "--format", "json"], more].concat()).exits(0).stdout);
        let trend = |name: &str| {
            let row = found["rows"].as_array().expect("rows").iter().find(|row| row["name"] == name)?;
            row["trend"].as_str().map(str::to_owned)
        };
        assert_eq!((&found["one_run"], &found["rows"][0]["name"]), (&true.into(), &"leak".into()), "{found:#}");
        assert_eq!(trend("leak").as_deref(), Some("grows"), "{found:#}");
        assert_eq!(trend("cache").as_deref(), Some("levels"), "{found:#}");
        assert_ne!(trend("use").as_deref(), Some("grows"), "{found:#}");
        let times: Vec<f64> = found["snapshots"]
            .as_array()
            .expect("snapshots")
            .iter()
            .filter_map(|one| one["seconds"].as_f64())
            .collect();
        assert!(times.len() >= 3 && times.is_sorted(), "{found:#}");
    }
    let unknown = place.run(["growth", "rec", "--pid", "1"]).exits(13).says("has no profile of process 1, but of");
    assert_eq!(unknown.stderr.matches(',').count(), 1, "{unknown:?}");
    place.run(["growth", "rec", "--metric", "peak", "--slices", "3"]).exits(2).says("--metric");
}
