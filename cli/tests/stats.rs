//! `mpp stats` on a program whose allocations are known.

mod common;

use common::{Place, data, json, ran};
use serde_json::Value;

const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char *blocks[100];
int main(void) {
    for (int i = 0; i < 100; i++) blocks[i] = memset(malloc(100000), 1, 100000);
    usleep(200 * 1000);
    for (int i = 0; i < 100; i++) free(blocks[i]);
    for (int i = 0; i < 50; i++) memset(malloc(3000), 1, 3000);
    return 0;
}
"#;

fn line<'a>(stats: &'a Value, section: &str, name: &str) -> &'a Value {
    let lines = stats["sections"][section].as_array().unwrap_or_else(|| panic!("no {section}: {stats:#}"));
    lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("no {name} in {section}: {stats:#}"))
}

#[test]
fn a_program_in_numbers() {
    let place = Place::new();
    let program = place.compile("known", PROGRAM, &["-g", "-O1"]);
    ran(place.mpp().args(["run", "-q", "--sample", "1", "-o", "rec", "--"]).arg(program)).exits(0);
    let stats = |more: &[&str]| json(&place.run([&["stats", "-q", "--format", "json"], more].concat()).exits(0).stdout);
    let live = stats(&["rec"]);
    assert_eq!(line(&live, "totals", "live")["blocks"], 50);
    assert_eq!(line(&live, "totals", "allocated")["blocks"], 150);
    assert_eq!(line(&live, "totals", "at the peak")["blocks"], 100);
    let sizes = live["sections"]["sizes"].as_array().expect("sizes");
    assert_eq!((sizes.len(), &sizes[0]["blocks"], &sizes[0]["percent"]), (1, &50.into(), &100.0.into()));
    assert!(line(&live, "libraries", "known")["bytes"].as_u64() >= Some(150_000));
    let memory = &live["memory"];
    let parts = ["live", "retained", "profiler", "files", "stacks", "other"];
    let sum: u64 = parts.iter().map(|part| memory[part].as_u64().expect("bytes")).sum();
    assert_eq!(Some(sum), memory["resident"].as_u64());
    place.run(["stats", "rec"]).exits(0).prints("RSS: ").prints("totals");

    let allocated = stats(&["rec", "--metric", "alloc"]);
    assert_eq!(allocated["sections"]["sizes"].as_array().map(Vec::len), Some(2));
    // Two thirds of the blocks lived for 200 ms at least, the others shortly.
    let folder =
        std::fs::read_dir(place.path("rec")).expect("the recording").flatten().find(|entry| entry.path().is_dir());
    let timeline = folder.expect("a process").path().join("timeline.bin");
    let timeline = stats(&[timeline.to_str().expect("a path")]);
    assert_eq!(timeline["time_unit"], "µs");
    assert!(timeline["mean_lifetime"].as_f64() >= Some(133_000.0), "{timeline:#}");
}

#[test]
fn profiles_that_tell_little() {
    let place = Place::new();
    std::fs::copy(data("names.heap"), place.path("names.heap")).expect("the fixture");
    let stats = json(&place.run(["stats", "-q", "names.heap", "--format", "json"]).exits(0).stdout);
    assert_eq!(stats["sections"]["totals"].as_array().map(Vec::len), Some(3), "{stats:#}");
    assert_eq!(
        (&stats["mean_lifetime"], stats["sections"]["threads"].as_array().map(Vec::len)),
        (&Value::Null, Some(0))
    );
    let csv = place.run(["stats", "-q", "names.heap", "--format", "csv"]).exits(0).stdout;
    assert!(csv.starts_with("section,name,bytes,percent,blocks\ntotals,live,3584,70.0000,7\n"), "{csv}");
}
