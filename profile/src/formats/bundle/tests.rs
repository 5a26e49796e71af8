use super::*;
use crate::formats::Limits;

fn manifest() -> Manifest {
    Manifest { pid: Some(7), recording: Some("recording.json".to_owned()), ..Manifest::new("0.1.0") }
}

fn bundle(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&manifest(), files.iter().copied(), &mut bytes).expect("memory takes everything");
    bytes
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes).expect("it is packed");
    bytes
}

fn refused(bytes: &[u8], limits: &Limits) -> String {
    let read = open(bytes, "b", limits).and_then(|reader| reader.read(|_| true));
    read.expect_err("it is refused").to_string()
}

#[test]
fn files_come_back() {
    let (empty, long) = (&b""[..], vec![7; 100_000]);
    let packed = bundle(&[("7/heap.prof", b"one"), ("empty", empty), ("long", &long)]);
    assert_eq!(packed, bundle(&[("7/heap.prof", b"one"), ("empty", empty), ("long", &long)]), "no time is in it");
    for bytes in [&packed, &unpacked(&packed)] {
        assert!(is_bundle(&bytes[..bytes.len().min(HEAD)]));
        let reader = open(&bytes[..], "b", &Limits::default()).expect("a bundle");
        assert_eq!(reader.manifest(), &manifest());
        let files = reader.read(|name| name != "7/heap.prof").expect("it is whole");
        assert_eq!(files.keys().collect::<Vec<_>>(), ["empty", "long"]);
        assert_eq!((files["empty"].len(), &files["long"]), (0, &long));
    }
}

#[test]
fn tar_reads_it_and_what_tar_writes_is_read() {
    let folder = std::env::temp_dir().join(format!("mpp-bundle-{}", std::process::id()));
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new("tar").current_dir(&folder).args(arguments).output();
        let output = output.expect("this test needs tar");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("b.tar.gz"), bundle(&[("7/heap.prof", b"one")])).expect("it can be written");
    assert_eq!(run(&["-tzf", "b.tar.gz"]), format!("{MANIFEST}\n7/heap.prof\n"));
    run(&["-xzf", "b.tar.gz"]);
    assert_eq!(std::fs::read(folder.join("7/heap.prof")).expect("unpacked"), b"one");
    for format in ["ustar", "gnu", "pax"] {
        run(&["--format", format, "-czf", "again.tar.gz", MANIFEST, "./7"]);
        let bytes = std::fs::read(folder.join("again.tar.gz")).expect("it was made");
        assert!(is_bundle(&bytes), "{format}");
        let reader = open(&bytes[..], "b", &Limits::default()).expect("a bundle");
        assert_eq!(reader.read(|_| true).expect("it is whole")["7/heap.prof"], b"one", "{format}");
    }
    std::fs::remove_dir_all(folder).expect("it is ours");
}

#[test]
fn damage_is_noticed() {
    let packed = bundle(&[("7/heap.prof", b"one"), ("x", &[9; 600])]);
    let bytes = unpacked(&packed);
    let limits = Limits::default();
    // The second block of zeroes at the end may be missing.
    for end in (0..bytes.len() - 512).step_by(7) {
        let message = refused(&bytes[..end], &limits);
        assert!(message.starts_with("b:byte "), "{message}");
    }
    for end in 0..packed.len() {
        refused(&packed[..end], &limits);
    }
    for at in 0..packed.len() {
        let mut changed = packed.clone();
        changed[at] ^= 0x10;
        // A few bits say nothing: a time, a system, what fills up the last byte.
        if let Ok(reader) = open(&changed[..], "b", &limits) {
            let same = reader.manifest() == &manifest();
            if let Ok(files) = reader.read(|_| true) {
                assert!(same && files["7/heap.prof"] == b"one" && files["x"] == [9; 600], "byte {at}");
            }
        }
    }
    let name = bytes.windows(9).position(|window| window == b"heap.prof").expect("the name");
    let mut changed = bytes.clone();
    changed[name] ^= 1;
    assert!(refused(&changed, &limits).contains("damaged"), "the name of a file");
}

#[test]
fn what_is_no_bundle_is_refused() {
    let limits = Limits::default();
    assert!(!is_bundle(b"heap profile:"));
    assert!(!is_bundle(b""));
    assert!(!is_bundle(b"\x1f\x8b\x08"));
    let packed = bundle(&[("a", b"1"), ("a", b"2")]);
    assert!(refused(&packed, &limits).contains("a is there twice"));
    assert!(refused(b"heap profile:", &limits).contains("cut off"));
    let mut later = Vec::new();
    write(&Manifest { schema_version: 2, ..manifest() }, [], &mut later).expect("memory takes everything");
    assert!(refused(&later, &limits).contains("expected up to mpp-bundle 1"));
    let link = {
        let mut bytes = unpacked(&bundle(&[("a", b"1")]));
        let at = bytes.windows(3).rposition(|window| window == b"a\0\0").expect("the name") & !511;
        bytes[at + 156] = b'2';
        let sum: u64 = bytes[at..at + 512]
            .iter()
            .enumerate()
            .map(|(i, &b)| if (148..156).contains(&i) { 32 } else { u64::from(b) })
            .sum();
        bytes[at + 148..at + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes
    };
    assert!(refused(&link, &limits).contains("no links"));
}

#[test]
fn limits_hold() {
    let packed = bundle(&[("a", &[0; 60_000]), ("b", &[0; 60_000])]);
    let small = Limits { input_bytes: 100_000, ..Limits::default() };
    assert!(refused(&packed, &small).contains("more than 100000 bytes"));
    let reader = open(&packed[..], "b", &small).expect("a bundle");
    assert_eq!(reader.read(|name| name == "a").expect("one fits").len(), 1);
    let smaller = Limits { input_bytes: 20_000, ..Limits::default() };
    let reader = open(&packed[..], "b", &smaller).expect("a bundle");
    assert!(reader.read(|_| false).expect_err("too much to pass over").to_string().contains("more than 80000 bytes"));
    let names = ["x".repeat(100), String::new()];
    for name in &names {
        let error = write(&manifest(), [(name.as_str(), &b""[..])], std::io::sink()).expect_err("it does not fit");
        assert!(error.to_string().contains("does not fit in"), "{error}");
    }
}
