//! `mpp leaks` on a program that leaks.

mod common;

use common::{Place, json, ran};

const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) char *forget(void) { return memset(malloc(5000), 1, 5000); }
__attribute__((noinline)) char *keep_for_good(void) { return memset(malloc(3000), 1, 3000); }
__attribute__((noinline)) void request(void) { forget(); free(malloc(700)); }
int main(void) { for (int i = 0; i < 1000; i++) request(); for (int i = 0; i < 100; i++) keep_for_good(); return 0; }
"#;

fn recorded(place: &Place) {
    let program = place.compile("leaking", PROGRAM, &["-g", "-O1"]);
    ran(place.mpp().args(["run", "-q", "--sample", "1", "-o", "rec", "--"]).arg(program)).exits(0);
}

#[test]
fn leaks_are_told_with_their_callers_and_can_be_known() {
    let place = Place::new();
    recorded(&place);
    let found = json(&place.run(["leaks", "-q", "rec", "--format", "json"]).exits(0).stdout);
    let rows = found["rows"].as_array().expect("rows");
    assert_eq!((rows.len(), &rows[0]["name"], &rows[0]["blocks"]), (2, &"forget".into(), &1000.into()), "{found:#}");
    assert!(rows[0]["callers"].as_array().expect("callers").starts_with(&["request".into(), "main".into()]));
    let total = found["total_bytes"].as_u64().expect("bytes");
    let text = place.run(["leaks", "-q", "rec"]).exits(0).stdout;
    assert!(text.contains("request < main") && text.contains("leaking.c:4"), "{text}");

    place.run(["leaks", "-q", "rec", "--fail"]).exits(10).says("not freed in 2 places; most by forget");
    place
        .run(["leaks", "-q", "rec", "--fail", "--min-bytes", "100MiB"])
        .exits(0)
        .prints("no leak of 100 MiB or more was found");
    place.write("known.txt", "# for ever\nleak:keep_for*good\n\nleak:nobody\n");
    let rest = place.run(["leaks", "-q", "rec", "--suppressions", "known.txt"]).exits(0);
    assert!(rest.stdout.contains("suppressed: ") && !rest.stdout.contains("keep_for_good  "), "{}", rest.stdout);
    assert!(rest.stdout.ends_with("suppresses nothing: leak:nobody (known.txt:4)\n"), "{}", rest.stdout);
    let rest =
        json(&place.run(["leaks", "-q", "rec", "--suppressions", "known.txt", "--format", "json"]).exits(0).stdout);
    let sum = rest["total_bytes"].as_u64().zip(rest["suppressed_bytes"].as_u64()).map(|(left, gone)| left + gone);
    assert_eq!((sum, &rest["rows_total"]), (Some(total), &1.into()));

    place.run(["leaks", "-q", "rec", "--write-suppressions", "all.txt"]).exits(0);
    place.run(["leaks", "-q", "rec", "--suppressions", "all.txt", "--fail"]).exits(0).prints("no leak was found");
    place.run(["leaks", "-q", "rec", "--write-suppressions", "all.txt"]).exits(1).says("--force");
}

#[test]
fn suppressions_that_do_nothing_are_mistakes() {
    let place = Place::new();
    recorded(&place);
    place.write("bad.txt", "leak:ok\nrace:x\n");
    place.run(["leaks", "rec", "--suppressions", "bad.txt"]).exits(2).says("bad.txt:2: expected `leak:PATTERN`");
    place.run(["leaks", "rec", "--suppressions", "gone.txt"]).exits(2).says("gone.txt: No such file");
}
