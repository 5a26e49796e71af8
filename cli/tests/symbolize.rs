//! `mpp symbolize`: addresses of a file, against binutils.

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
    for (style, expected) in [("full", "Box<long>::twice()"), ("raw", "_ZN3BoxIlE5twiceEv"), ("short", "Box::twice")] {
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
    place.run(["symbolize", "1"]).exits(2).says("--exe");
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
