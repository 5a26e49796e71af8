//! `mpp tree`, `mpp peek` and `mpp list` on committed profiles.

mod common;

use common::{Place, Ran, data, json};

/// Runs a verb on a fixture under its plain name, without the lines above the table.
fn table(place: &Place, arguments: &[&str]) -> String {
    std::fs::copy(data("names.heap"), place.path("names.heap")).expect("the fixture");
    let ran = place.run([&["-q"], arguments].concat()).exits(0);
    ran.stdout.split_once("\n\n").map_or(ran.stdout.clone(), |(_, table)| table.to_owned())
}

#[test]
fn tree_from_the_start_down() {
    let expected = "     cum   cum%      flat  call tree                file:line
3.50 KiB   100%            app.main                 /src/app/main.go:3
1.50 KiB  42.9%  1.50 KiB  ├─ app.grow              /src/app/grow.go:25
1.50 KiB  42.9%  1.50 KiB  ├─ app.parse > app.grow  /src/app/grow.go:21
   512 B  14.3%     512 B  └─ lib.table             /src/lib/table.go:9
";
    assert_eq!(table(&Place::new(), &["tree", "names.heap"]), expected);
}

#[test]
fn tree_of_callers() {
    let expected = "     cum   cum%      flat  call tree                file:line
3.00 KiB  85.7%            app.grow                 /src/app/grow.go:21
1.50 KiB  42.9%  1.50 KiB  ├─ app.main              /src/app/main.go:3
1.50 KiB  42.9%  1.50 KiB  └─ app.parse > app.main  /src/app/main.go:3
   512 B  14.3%     512 B  lib.table > app.main     /src/app/main.go:3
";
    assert_eq!(table(&Place::new(), &["tree", "--inverted", "names.heap"]), expected);
}

#[test]
fn small_parts_are_added_up_and_depth_ends_somewhere() {
    let expected = "     cum   cum%  flat  call tree      file:line
3.50 KiB   100%        app.main       /src/app/main.go:3
3.50 KiB   100%        └─ (3 others)
";
    let place = Place::new();
    assert_eq!(
        table(&place, &["tree", "--min-percent", "50", "names.heap"]),
        expected.replace("  100%", " 100%").replace("  cum%", " cum%")
    );
    assert_eq!(table(&place, &["tree", "--depth", "0", "names.heap"]).lines().count(), 2);
    assert_eq!(table(&place, &["tree", "--full", "names.heap"]).lines().count(), 6);
    assert!(
        table(&place, &["tree", "--limit", "2", "names.heap"])
            .ends_with("2 more lines (see --limit, --min-percent, --depth)\n")
    );
}

#[test]
fn tree_for_programs() {
    let expected = "\
depth,cum_bytes,cum_percent,flat_bytes,function,file,line
0,3584,100.0000,,app.main,/src/app/main.go,3
1,1536,42.8571,1536,app.grow,/src/app/grow.go,25
1,1536,42.8571,,app.parse,/src/app/parse.go,7
2,1536,42.8571,1536,app.grow,/src/app/grow.go,21
1,512,14.2857,512,lib.table,/src/lib/table.go,9
";
    let place = Place::new();
    assert_eq!(table(&place, &["tree", "--format", "csv", "names.heap"]), expected);
    let found = json(&table(&place, &["tree", "--format", "json", "names.heap"]));
    assert_eq!((&found["schema"], &found["total_bytes"]), (&"mpp-tree".into(), &3584.into()));
    let flats: u64 =
        found["nodes"].as_array().expect("nodes").iter().filter_map(|node| node["flat_bytes"].as_u64()).sum();
    assert_eq!(flats, 3584);
}

/// A tree as deep as the format allows is walked without the machine's stack.
#[test]
fn very_deep_stacks_are_shown() {
    let place = Place::new();
    let frames: String = (0..16_000).map(|index| format!(" {:#x}", 0x1000 + index * 16)).collect();
    place.write(
        "deep.heap",
        format!("heap profile: 1: 64 [1: 64] @ heap_v2/1\n1: 64 [1: 64] @{frames}\nMAPPED_LIBRARIES:\n"),
    );
    for format in ["text", "json", "csv", "md"] {
        place.run(["tree", "deep.heap", "--full", "--limit", "0", "--format", format]).exits(0).prints("0xfff");
    }
    place.run(["peek", "^0xfff$", "deep.heap"]).exits(0).prints("(itself)");
}

#[test]
fn neighbours_of_a_function() {
    let expected = "             bytes  share  function     file
caller    1.50 KiB  50.0%    app.main
caller    1.50 KiB  50.0%    app.parse
function  3.00 KiB  85.7%  app.grow     /src/app/grow.go
callee    3.00 KiB   100%    (itself)
";
    let place = Place::new();
    assert_eq!(table(&place, &["peek", "grow", "names.heap"]), expected);
    let expected = "\
of,relation,bytes,percent,function,file
app.parse,caller,1536,100.0000,app.main,
app.parse,function,1536,42.8571,app.parse,/src/app/parse.go
app.parse,callee,1536,100.0000,app.grow,
";
    assert_eq!(table(&place, &["peek", "parse", "--format", "csv", "names.heap"]), expected);
    place.run(["peek", "nobody", "names.heap"]).exits(14).says("no function with live memory matches nobody");
    place.run(["peek", "grow", "names.heap", "--group", "thread"]).exits(2).says("mpp tree --group thread");
}

#[test]
fn source_with_what_its_lines_allocated() {
    let place = Place::new();
    let source: String = (1..=40).map(|line| format!("\tline{line}()\n")).collect();
    place.write("moved/app/grow.go", source);
    let list = |place: &Place, more: &[&str]| -> Ran {
        std::fs::copy(data("names.heap"), place.path("names.heap")).expect("the fixture");
        place.run([&["-q", "list", "grow", "names.heap"], more].concat()).exits(0)
    };
    let found = list(&place, &["--source-dir", "/src=moved", "--context", "1"]);
    let expected = "    flat       cum  line  source
3.00 KiB                  == app.grow in moved/app/grow.go
                      20      line20()
1.50 KiB  1.50 KiB    21      line21()
                      22      line22()
                          ...
                      24      line24()
1.50 KiB  1.50 KiB    25      line25()
                      26      line26()
";
    assert!(found.stdout.ends_with(expected), "{}", found.stdout);
    let without = list(&place, &[]);
    assert!(
        without
            .stdout
            .ends_with("no source: /src/app/grow.go: No such file or directory (os error 2) (see --source-dir)\n")
    );
    assert!(without.stdout.contains("1.50 KiB  1.50 KiB    25\n"), "{}", without.stdout);
    let found = json(&list(&place, &["--format", "json", "--source-dir", "/src=moved"]).stdout);
    assert_eq!(found["functions"][0]["lines"][1]["source"], "    line25()");
    place.run(["list", "nobody", "names.heap"]).exits(14).says("no function with live memory and lines matches nobody");
}
