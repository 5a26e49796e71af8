//! `mpp diff` on committed profiles and on a real program in two versions.

mod common;

use common::{Place, json, ran};
use serde_json::Value;

/// A profile in which every block was recorded: lines of bytes and functions, innermost first. The form is Go's, which has names.
fn profile(place: &Place, name: &str, stacks: &[(u64, &[&str])]) {
    let total: u64 = stacks.iter().map(|(bytes, _)| bytes).sum();
    let mut text = format!("heap profile: {0}: {total} [{0}: {total}] @ heap/2\n", stacks.len());
    for (bytes, functions) in stacks {
        // Any numbers will do, as long as they are those of the functions.
        let number = |name: &str| name.bytes().fold(7_u64, |sum, byte| (sum * 31 + u64::from(byte)) % 0xff_ffff) * 16;
        let addresses: String = functions.iter().map(|name| format!(" {:#x}", number(name) + 1)).collect();
        text.push_str(&format!("1: {bytes} [1: {bytes}] @{addresses}\n"));
        for name in *functions {
            text.push_str(&format!("#\t{:#x}\t{name}+0x1\t/src/{name}.go:7\n", number(name)));
        }
        text.push('\n');
    }
    place.write(name, text);
}

fn two(place: &Place) {
    let old: &[(u64, &[&str])] =
        &[(4096, &["grow", "main"]), (9000, &["shrink", "main"]), (100, &["gone", "main"]), (64, &["same", "main"])];
    let new: &[(u64, &[&str])] =
        &[(8192, &["grow", "main"]), (1000, &["shrink", "main"]), (300, &["fresh", "main"]), (64, &["same", "main"])];
    profile(place, "old.heap", old);
    profile(place, "new.heap", new);
}

#[test]
fn kinds_of_change() {
    let place = Place::new();
    two(&place);
    let expected = "\
live: -3.62 KiB (-27.9% of the old total): 12.9 KiB before, 9.33 KiB now
old: old.heap (Go heap profile text); every block was recorded
new: new.heap (Go heap profile text); every block was recorded
old stacks: the file does not say whether they are complete; symbols: 100% with lines, 0% names only, 0% unknown
new stacks: the file does not say whether they are complete; symbols: 100% with lines, 0% names only, 0% unknown

   change               old       new  function  file:line
-7.81 KiB  shrunk  8.79 KiB    1000 B  shrink    /src/shrink.go:7
+4.00 KiB  grown   4.00 KiB  8.00 KiB  grow      /src/grow.go:7
   +300 B  new                  300 B  fresh     /src/fresh.go:7
   -100 B  gone       100 B            gone      /src/gone.go:7
functions: 1 grown (+4.00 KiB), 1 shrunk (-7.81 KiB), 1 new (+300 B), 1 gone (-100 B), 1 the same
";
    assert_eq!(place.run(["diff", "-q", "old.heap", "new.heap"]).exits(0).stdout, expected);
    let rows = place.run(["diff", "-q", "old.heap", "new.heap", "--all-rows", "--format", "csv"]).exits(0).stdout;
    let expected = "\
change_bytes,error,status,old_bytes,new_bytes,function,file,line
-8000,0,shrunk,9000,1000,shrink,/src/shrink.go,7
4096,0,grown,4096,8192,grow,/src/grow.go,7
300,0,new,,300,fresh,/src/fresh.go,7
-100,0,gone,100,,gone,/src/gone.go,7
0,0,same,64,64,same,/src/same.go,7
";
    assert_eq!(rows, expected);
    let cumulative =
        json(&place.run(["diff", "-q", "old.heap", "new.heap", "--cum", "--format", "json"]).exits(0).stdout);
    let main = cumulative["rows"].as_array().expect("rows").iter().find(|row| row["name"] == "main").expect("main");
    assert_eq!((&main["change_bytes"], &main["status"]), (&(-3704).into(), &"shrunk".into()));
}

#[test]
fn composition_and_nothing() {
    let place = Place::new();
    two(&place);
    let found = place.run(["diff", "-q", "old.heap", "new.heap", "--normalize", "--format", "json"]).exits(0).stdout;
    assert_eq!(json(&found)["change_bytes"], 0);
    place
        .run(["diff", "-q", "old.heap", "new.heap", "--normalize"])
        .exits(0)
        .prints("old numbers are multiplied by 0.7207");
    profile(&place, "none.heap", &[]);
    place
        .run(["diff", "-q", "none.heap", "new.heap"])
        .exits(0)
        .prints("live: +9.33 KiB (there was nothing): 0 B before");
    place
        .run(["diff", "-q", "none.heap", "none.heap"])
        .exits(0)
        .prints("live: 0 B: 0 B before, 0 B now")
        .prints("nothing to compare");
    let same = place.run(["diff", "-q", "old.heap", "old.heap"]).exits(0);
    assert!(same.stdout.ends_with("functions: 4 the same\n"), "{}", same.stdout);
}

#[test]
fn growth_fails_a_build() {
    let place = Place::new();
    two(&place);
    let over = |limit: &str| place.run(["diff", "-q", "new.heap", "old.heap", "--fail-over", limit]);
    over("38%").exits(10).says("more than --fail-over allows: +3.62 KiB (38.8% of what there was)");
    over("1KiB").exits(10);
    over("40%").exits(0);
    over("4KiB").exits(0);
    over("many").exits(2).says("does not start with a number");
    place.run(["diff", "gone.heap", "old.heap"]).exits(12).says("gone.heap: no such file or folder to compare");
}

#[test]
fn pictures_and_folded_stacks() {
    let place = Place::new();
    two(&place);
    place.run(["diff", "-q", "old.heap", "new.heap", "--format", "svg"]).exits(0).prints("diff.svg");
    let svg = std::fs::read_to_string(place.path("diff.svg")).expect("a picture");
    for part in [
        "grow (8,192 bytes, 85.73%; +42.86%)",
        "Red allocates more itself, blue less",
        "100 B of stacks that are gone have no width",
        "rgb(255,",
    ] {
        assert!(svg.contains(part), "no {part}: {svg}");
    }
    place.run(["diff", "-q", "old.heap", "new.heap", "--format", "svg"]).exits(0);
    place.write("precious.svg", "<svg/>");
    place.run(["diff", "old.heap", "new.heap", "--format", "svg", "-o", "precious.svg"]).exits(1).says("--force");
    let folded = place.run(["diff", "-q", "old.heap", "new.heap", "--format", "folded"]).exits(0).stdout;
    let expected = "main;fresh 0 300\nmain;gone 100 0\nmain;grow 4096 8192\nmain;same 64 64\nmain;shrink 9000 1000\n";
    assert_eq!(folded, expected);
}

/// Two builds of one program, at other addresses and in other folders: the function that keeps more is told, and chance is not.
#[test]
fn two_builds_of_a_program() {
    let place = Place::new();
    let source = |blocks: u32, more: &str| {
        format!(
            "#include <stdlib.h>\n#include <string.h>\n{more}
            __attribute__((noinline)) void *keep(void) {{ return memset(malloc(8000), 1, 8000); }}
            __attribute__((noinline)) void *steady(void) {{ return memset(malloc(3000), 1, 3000); }}
            int main(void) {{ for (int i = 0; i < {blocks}; i++) keep(); for (int i = 0; i < 9000; i++) steady(); return 0; }}"
        )
    };
    std::fs::create_dir_all(place.path("b")).expect("a folder");
    let before = place.compile("a", &source(1000, ""), &["-g", "-O1"]);
    let after = place.compile("b/a", &source(3000, "int padding(int x) { return x * 77 + 1; }"), &["-g", "-O1"]);
    for (program, recording) in [(before, "old"), (after, "new")] {
        ran(place.mpp().args(["run", "-q", "--sample", "16KiB", "--seed", "1", "-o", recording, "--"]).arg(program))
            .exits(0);
    }
    let found: Value = json(&place.run(["diff", "-q", "old", "new", "--format", "json"]).exits(0).stdout);
    let rows = found["rows"].as_array().expect("rows");
    assert_eq!((&rows[0]["name"], &rows[0]["status"]), (&"keep".into(), &"grown".into()), "{found:#}");
    let noise = rows[1..].iter().map(|row| row["change_bytes"].as_f64().expect("a number").abs()).sum::<f64>();
    assert!(noise < 4_000_000.0, "{found:#}");
    let change = rows[0]["change_bytes"].as_f64().expect("a number");
    let error = rows[0]["change_error"].as_f64().expect("a number");
    assert!((change - 2000.0 * 8000.0).abs() < 5.0 * error.max(400_000.0), "{found:#}");
    place.run(["diff", "old", "new", "--fail-over", "5%"]).exits(10);
    // The same dump is the same for sure; another run is not.
    place.run(["diff", "old", "old", "--fail-over", "0.1%"]).exits(0);
    ran(place.mpp().args(["run", "-q", "--sample", "16KiB", "--seed", "1", "-o", "again", "--"]).arg(place.path("a")))
        .exits(0);
    place.run(["diff", "old", "again", "--fail-over", "0.1%"]).exits(11).says("inconclusive").says("--mode exact");
}
