//! `mpp flame` on committed profiles.

mod common;

use common::{Place, Ran, data, ran};

fn flame(place: &Place, name: &str, arguments: &[&str]) -> Ran {
    std::fs::copy(data(name), place.path(name)).expect("the fixture");
    ran(place.mpp().args(["flame", "-q"]).args(arguments).arg(name))
}

#[test]
fn draws_into_this_folder_and_says_where() {
    let place = Place::new();
    assert_eq!(flame(&place, "app.heap", &[]).exits(0).stdout, "flame.svg\n");
    let svg = std::fs::read_to_string(place.path("flame.svg")).expect("the graph");
    assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>"));
    for text in [
        "live heap: app.heap",
        "9.64 MiB ± 1.90 MiB; estimated from 15 samples, one per 512 KiB",
        "[truncated: no unwind info] (1,115,477 bytes, 11.04%)",
        "libshapes.so.2+0x11ff (4,461,908 bytes, 44.14%)",
    ] {
        assert!(svg.contains(text), "{text} is not in the graph");
    }
}

#[test]
fn the_same_profile_gives_the_same_graph() {
    let place = Place::new();
    let one = flame(&place, "app.heap", &["-o", "-"]).exits(0).stdout;
    assert_eq!(one, flame(&place, "app.heap", &["-o", "-"]).exits(0).stdout);
    assert!(one.starts_with("<?xml"));
    assert!(!place.path("flame.svg").exists());
    let inverted = flame(&place, "app.heap", &["-o", "-", "--inverted"]).exits(0).stdout;
    let flipped = flame(&place, "app.heap", &["-o", "-", "--flip"]).exits(0).stdout;
    assert!(one != inverted && one != flipped && inverted != flipped);
}

#[test]
fn folded_stacks() {
    let place = Place::new();
    let expected = "app.main;app.grow 1536\napp.main;app.parse;app.grow 1536\napp.main;lib.table 512\n";
    assert_eq!(flame(&place, "names.heap", &["--format", "folded"]).exits(0).stdout, expected);
    let expected = "app.grow;app.main 1536\napp.grow;app.parse;app.main 1536\nlib.table;app.main 512\n";
    assert_eq!(flame(&place, "names.heap", &["--format", "folded", "--inverted"]).exits(0).stdout, expected);
    let expected = "app.main;app.parse;app.grow 3\n";
    let arguments = ["--format", "folded", "--unit", "blocks", "--focus", "parse"];
    assert_eq!(flame(&place, "names.heap", &arguments).exits(0).stdout, expected);
}

#[test]
fn only_our_own_graphs_are_replaced() {
    let place = Place::new();
    flame(&place, "app.heap", &[]).exits(0);
    flame(&place, "names.heap", &[]).exits(0);
    assert!(std::fs::read_to_string(place.path("flame.svg")).expect("the graph").contains("names.heap"));
    place.write("flame.svg", "<?xml version=\"1.0\"?><svg>drawn by hand</svg>");
    flame(&place, "app.heap", &[]).exits(1).says("--force");
    assert!(std::fs::read_to_string(place.path("flame.svg")).expect("the graph").contains("by hand"));
    flame(&place, "app.heap", &["--force"]).exits(0);
}

#[test]
fn an_empty_profile_is_not_drawn() {
    let place = Place::new();
    let empty = place.write("empty", "heap profile: 0: 0 [0: 0] @ heap_v2/524288\nMAPPED_LIBRARIES:\n");
    place.run(["flame".as_ref(), empty.as_os_str()]).exits(14).says("nothing to draw");
    assert!(!place.path("flame.svg").exists());
    place.run(["top".as_ref(), empty.as_os_str()]).exits(0).prints("live: no samples");
}
