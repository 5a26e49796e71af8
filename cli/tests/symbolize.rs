//! `mpp symbolize`: addresses of a file, against binutils; profiles with names, against what other verbs show.

mod common;

use common::{Place, Ran, json, ran};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const SOURCE: &str = "\
int shared;
static inline __attribute__((always_inline)) int inlined(int x)
{
    shared += x;
    return shared * 3;
}
__attribute__((noinline)) int outer(int x)
{
    return inlined(x) + 1;
}
int main(int argc, char **argv)
{
    (void)argv;
    return outer(argc);
}
";

/// The program, and the addresses of all bytes of `outer`.
fn program(place: &Place) -> (std::path::PathBuf, Vec<u64>) {
    let program = place.compile("app", SOURCE, &["-g", "-O1"]);
    let table = Command::new("nm").arg("-S").arg(&program).output().expect("nm (binutils) runs");
    let table = String::from_utf8(table.stdout).expect("names");
    let line = table.lines().find(|line| line.ends_with(" T outer")).unwrap_or_else(|| panic!("no outer: {table}"));
    let hex = |word: &str| u64::from_str_radix(word, 16).expect("a number");
    let words: Vec<&str> = line.split(' ').collect();
    let addresses = (hex(words[0])..hex(words[0]) + hex(words[1])).collect();
    (program, addresses)
}

/// What binutils prints for the same, which leaves no blank line between addresses.
fn addr2line(program: &Path, addresses: &[u64]) -> String {
    let addresses = addresses.iter().map(|address| format!("{address:#x}"));
    let output = Command::new("addr2line").args(["-f", "-i", "-C", "-e"]).arg(program).args(addresses).output();
    let text = String::from_utf8(output.expect("addr2line (binutils) runs").stdout).expect("text");
    // ` (discriminator 2)` tells basic blocks of one line apart.
    text.lines().map(|line| line.split(" (discriminator").next().unwrap_or_default().to_owned() + "\n").collect()
}

fn with_input(place: &Place, arguments: &[&str], input: &str) -> Ran {
    let mut command = place.mpp();
    command.arg("symbolize").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("mpp starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("written input");
    let output = child.wait_with_output().expect("an end");
    Ran {
        status: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn answers_are_those_of_addr2line() {
    let place = Place::new();
    let (program, addresses) = program(&place);
    let expected = addr2line(&program, &addresses);
    assert!(expected.contains("inlined\n"), "the fixture has nothing inlined: {expected}");
    let words: Vec<String> = addresses.iter().map(|address| format!("{address:x}")).collect();

    let ran = ran(place.mpp().args(["symbolize", "-e", "app"]).args(&words)).exits(0);
    assert_eq!(ran.stdout.replace("\n\n", "\n"), expected);
    assert_eq!(ran.stdout.matches("\n\n").count(), addresses.len(), "a blank line after each");
    assert_eq!(ran.stderr, "");

    let from_input = with_input(&place, &["-e", "app"], &words.join("\n")).exits(0);
    assert_eq!(from_input.stdout, ran.stdout);
    let from_input = with_input(&place, &["-e", "app", "--threads", "1", "-"], &words.join("\n")).exits(0);
    assert_eq!(from_input.stdout, ran.stdout);

    let outer = place.run(["symbolize", "-a", "--no-inlines", "-e", "app", &words[0]]).exits(0);
    assert!(outer.stdout.starts_with(&format!("0x{}\nouter\n", words[0])), "{outer:?}");
    assert_eq!(outer.stdout.lines().count(), 4, "{outer:?}");
}

#[test]
fn what_is_not_known_has_question_marks() {
    let place = Place::new();
    program(&place);
    place.run(["symbolize", "-e", "app", "0", "0xffffffffffffffff"]).exits(0).prints("??\n??:0\n\n??\n??:0\n\n");
    assert_eq!(with_input(&place, &["-e", "app"], "").exits(0).stdout, "");
}

#[test]
fn json_has_the_frames_and_where_they_come_from() {
    let place = Place::new();
    let (program, addresses) = program(&place);
    let words: Vec<String> = addresses.iter().map(|address| format!("{address:x}")).collect();
    let ran = ran(place.mpp().args(["symbolize", "--format", "json", "-e", "app", "0"]).args(&words)).exits(0);
    let data = json(&ran.stdout);
    assert_eq!((data["schema"].as_str(), data["schema_version"].as_u64()), (Some("mpp-symbolize"), Some(1)));
    assert_eq!(data["source"], "dwarf");
    assert_eq!(data["source_file"], program.to_str().expect("a plain path"));
    let answers = data["addresses"].as_array().expect("answers");
    assert_eq!(answers.len(), addresses.len() + 1);
    assert_eq!((answers[0]["address"].as_u64(), answers[0]["quality"].as_str()), (Some(0), Some("nothing")));
    let deepest = answers.iter().max_by_key(|answer| answer["frames"].as_array().map(Vec::len)).expect("one");
    let frame = &deepest["frames"][0];
    assert_eq!((frame["function"].as_str(), frame["inlined"].as_bool()), (Some("inlined"), Some(true)));
    assert!(frame["line"].as_u64().is_some_and(|line| (2..=6).contains(&line)), "{frame}");
    assert_eq!(deepest["frames"][1]["function"], "outer");
    assert_eq!(deepest["quality"], "lines");
}

#[test]
fn names_come_in_the_style_that_is_asked_for() {
    let place = Place::new();
    let source = place.write(
        "box.cc",
        "template <typename T> struct Box { T value; T twice(); };\n\
         template <typename T> __attribute__((noinline)) T Box<T>::twice() { return value * 2; }\n\
         template struct Box<long>;\nint main() { return 0; }\n",
    );
    let output = Command::new("c++").arg("-g").arg("-o").arg(place.path("box")).arg(source).output();
    assert!(output.expect("a C++ compiler called `c++` runs").status.success());
    let table = Command::new("nm").arg(place.path("box")).output().expect("nm (binutils) runs");
    let table = String::from_utf8(table.stdout).expect("names");
    let line = table.lines().find(|line| line.ends_with("_ZN3BoxIlE5twiceEv")).expect("the function");
    let address = line.split(' ').next().expect("an address");
    let styles = [
        ("full", "Box<long>::twice()"),
        ("normal", "Box<long>::twice"),
        ("short", "Box::twice"),
        ("raw", "_ZN3BoxIlE5twiceEv"),
    ];
    for (style, expected) in styles {
        let ran = place.run(["symbolize", "-e", "box", "--names", style, address]).exits(0);
        assert_eq!(ran.stdout.lines().next(), Some(expected), "{style}");
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let place = Place::new();
    program(&place);
    place.write("text", "plain");
    std::fs::create_dir(place.path("folder")).expect("a folder");
    place.run(["symbolize", "-e", "missing", "1"]).exits(13).says("missing").says("No such file");
    place.run(["symbolize", "-e", "text", "1"]).exits(13).says("text");
    place.run(["symbolize", "-e", "folder", "1"]).exits(13).says("folder").says("not a regular file");
    let usage = place.run(["symbolize", "-e", "app", "main"]).exits(2);
    usage.says("expected a hexadecimal address of up to 64 bits, found \"main\"");
    with_input(&place, &["-e", "app"], "10\n\nsix\n").exits(13).says("standard input, line 3").says("\"six\"");
    place.run(["symbolize", "1"]).exits(13).says("1: No such file");
    place.run(["symbolize", "1", "2"]).exits(2).says("-e");
    place.run(["symbolize", "-e", "app", "--format", "proto", "1"]).exits(2).says("text or json");
    place.run(["symbolize", "-e", "app", "--threads", "0", "1"]).exits(2);
}

#[test]
fn answers_go_to_a_file_that_is_not_replaced() {
    let place = Place::new();
    program(&place);
    place.run(["symbolize", "-e", "app", "-o", "answers", "0"]).exits(0);
    assert_eq!(std::fs::read_to_string(place.path("answers")).expect("a file"), "??\n??:0\n\n");
    place.run(["symbolize", "-e", "app", "-o", "answers", "0"]).exits(1).says("--force");
}

/// Keeps 1000 blocks of 16 KiB in a function that is inlined into another, of a class in C++.
const KEEPER: &str = "\
#include <cstdlib>
#include <cstring>
namespace shop {
template <typename T> struct Keeper {
    void *kept[1000];
    __attribute__((noinline)) void keep();
};
static inline __attribute__((always_inline)) void *take(size_t size)
{
    void *block = malloc(size);
    memset(block, 1, size);
    return block;
}
template <typename T> void Keeper<T>::keep()
{
    for (int i = 0; i < 1000; i++)
        kept[i] = take(sizeof(T) * 4096);
}
}
int main()
{
    static shop::Keeper<int> keeper;
    keeper.keep();
    return keeper.kept[999] == nullptr;
}
";

/// A recording of that program in the folder `out`, and the program.
fn recording(place: &Place) -> std::path::PathBuf {
    let (source, program) = (place.write("keeper.cc", KEEPER), place.path("keeper"));
    let output = Command::new("c++").args(["-g", "-O1", "-fno-builtin", "-o"]).arg(&program).arg(source).output();
    let output = output.expect("a C++ compiler called `c++` runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    place.run(["run", "-q", "-o", "out", "--sample", "4KiB", "--", "./keeper"]).exits(0);
    program
}

/// The lines, flat: name, file, line, bytes.
fn rows(place: &Place, input: &str, names: &str) -> Vec<serde_json::Value> {
    let arguments = ["top", "-q", "--format", "json", "--group", "line", "--runtime", "show", "--names", names, input];
    let data = json(&place.run(arguments).exits(0).stdout);
    let keys = ["name", "file", "line", "resolved", "flat_bytes", "cum_bytes"];
    data["rows"].as_array().expect("rows").iter().map(|row| keys.map(|key| row[key].clone()).into()).collect()
}

#[test]
fn a_symbolized_profile_keeps_its_names_without_the_program() {
    let place = Place::new();
    let program = recording(&place);
    let before: Vec<_> = ["short", "normal", "full", "raw"].map(|style| rows(&place, "out", style)).into();
    assert!(before[2].iter().any(|row| row[0] == "shop::Keeper<int>::keep()" && row[2] == 17), "{:?}", before[2]);
    assert!(before[3].iter().any(|row| row[0] == "_ZN4shop6KeeperIiE4keepEv"), "{:?}", before[3]);

    let ran = place.run(["symbolize", "out"]).exits(0).says("symbols: 100% with lines");
    assert_eq!(ran.stdout, "symbolized.pb.gz\n");
    place.run(["symbolize", "out", "--format", "proto", "-o", "plain.pb"]).exits(0);
    place.run(["symbolize", "out"]).exits(1).says("--force");
    std::fs::remove_file(program).expect("the program was there");
    for (style, before) in ["short", "normal", "full", "raw"].iter().zip(&before) {
        for file in ["symbolized.pb.gz", "plain.pb"] {
            let after = rows(&place, file, style);
            let named =
                |rows: &[serde_json::Value]| -> Vec<_> { rows.iter().filter(|row| row[3] == true).cloned().collect() };
            assert_eq!(named(&after), named(before), "{file}, {style}");
            assert!(named(&after).len() > 2);
        }
    }
}

#[test]
fn other_programs_read_a_symbolized_profile() {
    let place = Place::new();
    recording(&place);
    place.run(["symbolize", "-q", "out", "--format", "proto", "-o", "plain.pb"]).exits(0);
    let content = std::fs::File::open(place.path("plain.pb")).expect("the profile");
    let output = Command::new("protoc").arg("--decode_raw").stdin(content).output();
    let output = output.expect("protoc is needed for this test (Debian package protobuf-compiler)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    // Messages of the outermost level by their field, and the strings.
    let count = |field: &str| text.lines().filter(|line| *line == format!("{field} {{")).count();
    let strings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("6: \"")?.strip_suffix('"')).collect();
    let number = |string: &str| strings.iter().position(|known| *known == string).expect(string);
    let file = place.path("keeper.cc");
    let file = number(file.to_str().expect("a plain path"));
    let keep = (number("shop::Keeper<int>::keep()"), number("_ZN4shop6KeeperIiE4keepEv"));
    assert_eq!(strings[0], "");
    assert_eq!(strings.len(), strings.iter().collect::<std::collections::HashSet<_>>().len(), "each once");
    assert!(count("2") > 0 && count("4") > 2, "samples and locations");
    let functions: Vec<&str> = text.split("\n5 {\n").skip(1).collect();
    let function = functions.iter().find(|function| function.contains(&format!("\n  2: {}\n", keep.0)));
    let function = function.expect("the function");
    assert!(function.contains(&format!("\n  3: {}\n  4: {file}\n", keep.1)), "{function}");
    let id = function.trim_start().lines().next().expect("a line").trim_start_matches("1: ").to_owned();
    // The last line of the location of the call in it, after that of the inlined function.
    let locations: Vec<&str> = text.split("\n4 {\n").skip(1).collect();
    let line = format!("    1: {id}\n    2: 17\n");
    let location = locations.iter().find(|location| location.contains(&line));
    let location = location.unwrap_or_else(|| panic!("no line 17 of function {id}: {text}"));
    assert_eq!(location.split("\n5 {").next().expect("one").matches("  4 {").count(), 2, "{location}");
}

#[test]
fn source_files_are_shown_where_they_are_now() {
    let place = Place::new();
    recording(&place);
    let folder = place.path("");
    let from = folder.to_str().expect("a plain path").trim_end_matches('/');
    let moved = format!("{from}=/home/me/shop");
    let top = place.run(["top", "-q", "--group", "line", "out", "--source-dir", &moved]).exits(0);
    top.prints("/home/me/shop/keeper.cc:10");
    place.run(["top", "out", "--source-dir", "nowhere"]).exits(2).says("two folders");
    place.run(["symbolize", "-q", "out", "--source-dir", &moved]).exits(0);
    let rows = rows(&place, "symbolized.pb.gz", "full");
    assert!(rows.iter().any(|row| row[1] == "/home/me/shop/keeper.cc"), "{rows:?}");
}
