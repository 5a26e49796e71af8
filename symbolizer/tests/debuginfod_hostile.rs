//! Debuginfod servers that are broken or mean harm. None may get a file into the cache that was not asked for, hold up
//! the client without end, fill memory or disk, or make it panic.

mod common;
#[path = "common/web.rs"]
mod web;

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use common::{Folder, build_id, run};
use mpp_symbolizer::{Debuginfod, DebuginfodFile, DebuginfodMode, DebuginfodSettings, NotFetched};
use object::read::elf::{FileHeader as _, SectionHeader as _};
use object::{Endianness, elf};
use web::{Web, ok, stall, status};

/// A small program, and a cache to fetch it into.
struct Fixture {
    folder: Folder,
    bytes: Vec<u8>,
    id: Vec<u8>,
}

impl Fixture {
    fn new() -> Self {
        let folder = Folder::new();
        let source = folder.write("small.c", "int main(void) { return 0; }\n");
        let program = folder.compile(&source, "small", &["-g", "-Wl,--build-id"]);
        Fixture { bytes: fs::read(&program).expect("the program"), id: build_id(&program), folder }
    }

    fn settings(&self, servers: &[&Web]) -> DebuginfodSettings {
        DebuginfodSettings {
            mode: DebuginfodMode::On,
            servers: servers.iter().map(|web| web.url()).collect(),
            cache_dir: Some(self.folder.path("cache")),
            timeout: Duration::from_secs(30),
            max_size: 1 << 20,
            ..DebuginfodSettings::default()
        }
    }

    /// With as little patience as the system needs to run the server at all.
    fn impatient(&self, servers: &[&Web]) -> DebuginfodSettings {
        DebuginfodSettings { timeout: Duration::from_secs(1), ..self.settings(servers) }
    }

    fn find(&self, servers: &[&Web]) -> Result<PathBuf, NotFetched> {
        Debuginfod::new(self.settings(servers)).find(&self.id, &DebuginfodFile::Debuginfo)
    }

    fn id_text(&self) -> String {
        self.id.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn cached(&self) -> PathBuf {
        self.folder.path("cache").join(self.id_text()).join("debuginfo")
    }

    /// Everything in the cache but its settings.
    fn stored(&self) -> Vec<PathBuf> {
        let list = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        list(self.folder.path("cache")).filter(|path| path.is_dir()).flat_map(list).collect()
    }

    /// The server is refused for a reason with these words, and leaves nothing behind.
    #[track_caller]
    fn assert_refused(&self, web: &Web, words: &str) {
        self.assert_refused_with(self.settings(&[web]), web, words);
    }

    #[track_caller]
    fn assert_refused_with(&self, settings: DebuginfodSettings, web: &Web, words: &str) {
        let error = Debuginfod::new(settings).find(&self.id, &DebuginfodFile::Debuginfo).expect_err(words);
        assert!(matches!(error, NotFetched::Failed { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(words), "{text:?}, expected {words:?}");
        assert!(text.contains(&web.url()) && !text.chars().any(char::is_control), "{text:?}");
        assert_eq!(self.stored(), Vec::<PathBuf>::new());
        assert!(!web.paths().is_empty());
    }

    #[track_caller]
    fn assert_found(&self, servers: &[&Web]) {
        let path = self.find(servers).expect("the file");
        assert_eq!(path, self.cached());
        assert!(fs::read(&path).expect("the file") == self.bytes);
        assert_eq!(self.stored(), [path]);
    }
}

#[test]
fn what_is_sound_is_found() {
    let fixture = Fixture::new();
    let web = Web::saying(ok(&fixture.bytes));
    fixture.assert_found(&[&web]);
    assert_eq!(web.paths(), [format!("/buildid/{}/debuginfo", fixture.id_text())]);
    // From the cache, now.
    fixture.assert_found(&[&web]);
    assert_eq!(web.paths().len(), 1);
    // In pieces, and ended by the end of the connection.
    for (name, headers) in [("chunked", "Transfer-Encoding: chunked\r\n"), ("until the end", "")] {
        let fixture = Fixture::new();
        let mut answer = format!("HTTP/1.1 200 OK\r\n{headers}\r\n").into_bytes();
        match name {
            "chunked" => {
                for chunk in fixture.bytes.chunks(1000) {
                    answer.extend(format!("{:x}\r\n", chunk.len()).bytes());
                    answer.extend(chunk.iter().chain(b"\r\n"));
                }
                answer.extend(b"0\r\n\r\n");
            }
            _ => answer.extend(&fixture.bytes),
        }
        fixture.assert_found(&[&Web::saying(answer)]);
    }
}

#[test]
fn servers_that_stall() {
    let half = {
        let fixture = Fixture::new();
        let mut half = ok(&fixture.bytes);
        half.truncate(half.len() / 2);
        half
    };
    for said in [&b""[..], b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n", &half] {
        let said = said.to_vec();
        let web = Web::new(move |_, stream| {
            _ = stream.write_all(&said);
            stall(stream);
        });
        let fixture = Fixture::new();
        fixture.assert_refused_with(fixture.impatient(&[&web]), &web, "sends nothing for 1 s");
    }
}

/// Sends `bytes` again and again, with pauses, until the other side has had enough, or half a minute has passed.
fn trickle(stream: &mut TcpStream, bytes: &[u8]) {
    for _ in 0..1500 {
        if stream.write_all(bytes).is_err() {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn servers_that_trickle() {
    let fixture = Fixture::new();
    let in_headers = Web::new(|_, stream| {
        _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ");
        trickle(stream, b"x");
    });
    fixture.assert_refused_with(fixture.impatient(&[&in_headers]), &in_headers, "sends nothing for 1 s");
    let in_body = Web::new(|_, stream| {
        _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        trickle(stream, b"x");
    });
    fixture.assert_refused_with(fixture.impatient(&[&in_body]), &in_body, "sends too slowly");
    // Fast enough, but it never comes to an end.
    let without_end = Web::new(|_, stream| {
        _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        trickle(stream, &[0; 100 << 10]);
    });
    let settings = DebuginfodSettings {
        max_time: Duration::from_secs(1),
        max_size: u64::MAX,
        ..fixture.settings(&[&without_end])
    };
    let error = Debuginfod::new(settings).find(&fixture.id, &DebuginfodFile::Executable).expect_err("no file");
    assert!(error.to_string().contains("took more than 1 s"), "{error}");
    assert_eq!(fixture.stored(), Vec::<PathBuf>::new());
}

/// Sends `bytes` until the other side has had enough; or, if it never has, a thousand times, for the sake of the disk.
fn repeat(stream: &mut TcpStream, bytes: &[u8]) {
    for _ in 0..1000 {
        if stream.write_all(bytes).is_err() {
            break;
        }
    }
}

#[test]
fn files_without_end() {
    let fixture = Fixture::new();
    let huge = Web::saying("HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n");
    fixture.assert_refused(&huge, "1099511627776 bytes, more than the limit of 1048576");
    let told = Web::saying("HTTP/1.1 200 OK\r\nX-DEBUGINFOD-SIZE: 1099511627776\r\n\r\n");
    fixture.assert_refused(&told, "1099511627776 bytes, more than the limit of 1048576");
    let endless = Web::new(|_, stream| {
        _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        repeat(stream, &[b'E'; 64 << 10]);
    });
    fixture.assert_refused(&endless, "more than the limit of 1048576");
    let chunks = Web::new(|_, stream| {
        _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        repeat(stream, format!("10000\r\n{}\r\n", "E".repeat(0x10000)).as_bytes());
    });
    fixture.assert_refused(&chunks, "more than the limit of 1048576");
}

#[test]
fn files_that_are_not_what_was_asked_for() {
    let fixture = Fixture::new();
    let other = {
        let source = fixture.folder.write("other.c", "int main(void) { return 1; }\n");
        fs::read(fixture.folder.compile(&source, "other", &["-Wl,--build-id"])).expect("the program")
    };
    let without = {
        let program = fixture.folder.compile(&fixture.folder.path("small.c"), "without", &["-Wl,--build-id=none"]);
        fs::read(program).expect("the program")
    };
    fixture.assert_refused(&Web::saying(ok(&other)), "instead of");
    fixture.assert_refused(&Web::saying(ok(&without)), "its build id is none");
    fixture.assert_refused(&Web::saying(ok(b"<html>Please log in</html>")), "not an ELF file");
    fixture.assert_refused(&Web::saying(ok(b"")), "refused");
    // Cut short at every kind of place, with nothing to tell how long it should be.
    for length in (1..64).map(|part| fixture.bytes.len() * part / 64).chain([fixture.bytes.len() - 1]) {
        let answer = [b"HTTP/1.1 200 OK\r\n\r\n", &fixture.bytes[..length]].concat();
        fixture.assert_refused(&Web::saying(answer), "refused");
    }
    // All headers are there, but the content of a section is not.
    let mut longer = fixture.bytes.clone();
    let header = elf::FileHeader64::<Endianness>::parse(&*longer).expect("an ELF file");
    let (endian, table) = (header.endian().expect("a byte order"), header.e_shoff(Endianness::Little) as usize);
    let sections = header.section_headers(endian, &*longer).expect("sections");
    let notes = sections.iter().rposition(|section| section.sh_type(endian) == elf::SHT_PROGBITS).expect("a section");
    let place = table + notes * 64 + 24;
    let end = (longer.len() as u64).to_le_bytes();
    longer[place..place + 8].copy_from_slice(&end);
    longer[place + 8..place + 16].copy_from_slice(&1000_u64.to_le_bytes());
    longer.extend([0; 999]);
    let web = Web::saying([b"HTTP/1.1 200 OK\r\n\r\n", &*longer].concat());
    fixture.assert_refused(&web, "it is cut short");
    longer.push(0);
    let found = fixture.find(&[&Web::saying([b"HTTP/1.1 200 OK\r\n\r\n", &*longer].concat())]).expect("it is whole");
    fs::remove_dir_all(found.parent().expect("a folder")).expect("removed");

    let mut short = ok(&fixture.bytes);
    short.truncate(short.len() - 100);
    let web = Web::saying(short);
    let error = fixture.find(&[&web]).expect_err("no file");
    assert!(error.is_problem(), "{error:?}");
    assert_eq!(web.paths().len(), 2, "a broken connection is tried once more");
    assert_eq!(fixture.stored(), Vec::<PathBuf>::new());
}

#[test]
fn sizes_that_are_told_must_be_right() {
    let fixture = Fixture::new();
    let source = DebuginfodFile::Source("/a.c".into());
    for (told, is_right) in
        [("Content-Length: 9", true), ("X-DEBUGINFOD-SIZE: 9", true), ("X-DEBUGINFOD-SIZE: 10", false)]
    {
        let web = Web::saying(format!("HTTP/1.1 200 OK\r\n{told}\r\nConnection: close\r\n\r\nint main;"));
        let found = Debuginfod::new(fixture.settings(&[&web])).find(&fixture.id, &source);
        assert_eq!(found.is_ok(), is_right, "{told}: {found:?}");
        _ = fs::remove_dir_all(fixture.folder.path("cache"));
    }
}

#[test]
fn redirects() {
    let fixture = Fixture::new();
    let good = Web::saying(ok(&fixture.bytes));
    let there = good.url();
    let elsewhere = Web::new(move |_, stream| _ = stream.write_all(&status(302, &format!("Location: {there}/x\r\n"))));
    fixture.assert_found(&[&elsewhere]);
    assert_eq!(good.paths(), ["/x"]);

    let fixture = Fixture::new();
    let body = fixture.bytes.clone();
    let same_host = Web::new(move |path, stream| {
        let answer = if path == "/other" { ok(&body) } else { status(307, "Location: /other\r\n") };
        _ = stream.write_all(&answer);
    });
    fixture.assert_found(&[&same_host]);

    let fixture = Fixture::new();
    let round = Web::new(|path, stream| _ = stream.write_all(&status(301, &format!("Location: {path}\r\n"))));
    fixture.assert_refused(&round, "redirects too often");
    assert_eq!(round.paths().len(), 6);
    let addresses = [
        "file:///etc/passwd",
        "//",
        "///",
        "http://",
        "https://",
        "http:///x",
        "http://@/",
        "http://[::1",
        "http://h:99999/",
        "x/y",
        "..",
        "",
        "ftp://h/",
        "javascript:x",
        ":",
        "?",
        "#",
    ];
    for address in addresses {
        let web = Web::saying(status(302, &format!("Location: {address}\r\n")));
        fixture.assert_refused(&web, "redirects to");
    }
    let web = Web::saying(status(302, "Location: http://\u{1b}[2J/\r\n"));
    fixture.assert_refused(&web, "invalid header value");
    fixture.assert_refused(&Web::saying(status(302, "")), "redirects to nowhere");
    let web =
        Web::saying(b"HTTP/1.1 302 \r\nLocation: /\xff\xfe\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec());
    fixture.assert_refused(&web, "redirects to");
}

#[test]
fn answers_that_are_not_http() {
    let fixture = Fixture::new();
    let long_header = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let many_headers = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(10_000));
    let many = (0..3000).map(|i| format!("X{i}: y\r\n")).collect::<String>();
    let answers: Vec<Vec<u8>> = [
        "",
        "\r\n\r\n",
        "HTTP",
        "HTTP/0.9 200 OK\r\n\r\n",
        "HTTP/2 200\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "HTTP/1.1 99 x\r\n\r\n",
        "HTTP/1.1 1000 x\r\n\r\n",
        "HTTP/1.1 -1 x\r\n\r\n",
        "HTTP/1.1 200 \u{1b}[2J\r\nX\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
        "HTTP/1.1 204 No\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999999\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcdeXX5\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\n no: colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX\0: x\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 3\n\nabc",
        "HTTP/1.1 500 x\r\n\r\n",
        "HTTP/1.1 401 x\r\nWWW-Authenticate: Basic\r\n\r\n",
        &long_header,
        &many_headers,
        &format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
    ]
    .iter()
    .map(|answer| answer.as_bytes().to_vec())
    .chain([vec![0; 100_000], vec![0xff; 100_000], (0..=255).cycle().take(5000).collect()])
    .collect();
    for answer in answers {
        let shown = String::from_utf8_lossy(&answer[..answer.len().min(80)]).into_owned();
        let error = fixture.find(&[&Web::saying(answer)]).expect_err(&shown);
        let text = error.to_string();
        assert!(error.is_problem() && text.len() < 600 && !text.chars().any(char::is_control), "{shown:?}: {text:?}");
        assert_eq!(fixture.stored(), Vec::<PathBuf>::new(), "{shown:?}");
    }
}

#[test]
fn a_sound_answer_with_changed_bytes() {
    let fixture = Fixture::new();
    let answer = ok(&fixture.bytes);
    let headers = answer.len() - fixture.bytes.len();
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    for at in 0..headers {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut changed = answer.clone();
        changed[at] ^= 1 << (seed >> 61);
        // Found or not; but if so, it is the right one.
        if let Ok(path) = fixture.find(&[&Web::saying(changed)]) {
            assert!(fs::read(&path).expect("the file") == fixture.bytes);
            fs::remove_dir_all(fixture.folder.path("cache")).expect("removed");
        }
    }
}

#[test]
fn only_what_every_server_denies_is_remembered() {
    let fixture = Fixture::new();
    let (without, broken) = (Web::saying(status(404, "")), Web::saying(status(500, "")));
    assert!(matches!(fixture.find(&[&without, &broken]), Err(NotFetched::Failed { .. })));
    assert!(matches!(fixture.find(&[&without, &broken]), Err(NotFetched::Failed { .. })));
    assert_eq!((without.paths().len(), broken.paths().len()), (2, 2));
    assert_eq!(fixture.find(&[&without]), Err(NotFetched::NotThere));
    assert_eq!(without.paths().len(), 3);
    assert_eq!(fs::metadata(fixture.cached()).expect("a note").len(), 0);
    // Another client does not ask again.
    assert_eq!(fixture.find(&[&without]), Err(NotFetched::NotThere));
    assert_eq!(without.paths().len(), 3);
    // When the note is too old, it does.
    fs::write(fixture.folder.path("cache/cache_miss_s"), "0").expect("written");
    fixture.assert_found(&[&without, &broken, &Web::saying(ok(&fixture.bytes))]);
}

#[test]
fn dead_servers_are_not_asked_again() {
    let fixture = Fixture::new();
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
    let dead = format!("http://user:secret@127.0.0.1:{port}");
    let slow = Web::new(|_, stream| stall(stream));
    let refusing = Web::saying(status(503, ""));
    let mut settings = fixture.impatient(&[&slow, &refusing]);
    settings.servers.insert(0, dead);
    let debuginfod = Debuginfod::new(settings);
    assert!(!format!("{debuginfod:?}").contains("secret"));
    for number in 0..8_u8 {
        let id = [number; 20];
        let error = debuginfod.find(&id, &DebuginfodFile::Debuginfo).expect_err("no file").to_string();
        assert!(!error.contains("secret"), "{error}");
        assert_eq!(error.contains("cannot be reached"), number == 0, "{error}");
    }
    assert_eq!((slow.paths().len(), refusing.paths().len()), (2, 4));
}

#[test]
fn time_for_everything_together_is_limited() {
    let fixture = Fixture::new();
    let slow = Web::new(|_, stream| {
        thread::sleep(Duration::from_millis(200));
        _ = stream.write_all(&status(404, ""));
    });
    let settings = DebuginfodSettings { max_total_time: Duration::from_millis(500), ..fixture.settings(&[&slow]) };
    let debuginfod = Debuginfod::new(settings);
    for number in 0..8_u8 {
        debuginfod.find(&[number; 20], &DebuginfodFile::Debuginfo).expect_err("no file");
    }
    assert!(slow.paths().len() <= 3, "{:?}", slow.paths());
    let error = debuginfod.find(&[99; 20], &DebuginfodFile::Debuginfo).expect_err("no file");
    assert!(error.to_string().contains("not asked: fetching files took"), "{error}");
}

#[test]
fn what_is_in_the_cache_is_checked() {
    let fixture = Fixture::new();
    let web = Web::saying(ok(&fixture.bytes));
    let only_cache = || {
        let settings = DebuginfodSettings { mode: DebuginfodMode::Cache, ..fixture.settings(&[&web]) };
        Debuginfod::new(settings).find(&fixture.id, &DebuginfodFile::Debuginfo)
    };
    // Nothing is written when only the cache may be used.
    assert_eq!(only_cache(), Err(NotFetched::NotCached));
    assert!(!fixture.folder.path("cache").exists());
    fs::create_dir_all(fixture.cached().parent().expect("a folder")).expect("a folder");
    let source = fixture.folder.write("other.c", "int main(void) { return 1; }\n");
    let other = fixture.folder.compile(&source, "other", &["-Wl,--build-id"]);
    fs::copy(other, fixture.cached()).expect("copied");
    let error = only_cache().expect_err("another program").to_string();
    assert!(error.contains("in the cache is refused") && error.contains("instead of"), "{error}");
    assert_eq!(web.paths().len(), 0);
    fixture.assert_found(&[&web]);
    assert_eq!(only_cache(), Ok(fixture.cached()));

    let replace = |make: &dyn Fn()| {
        fs::remove_file(fixture.cached()).or_else(|_| fs::remove_dir_all(fixture.cached())).expect("removed");
        make();
        assert_eq!(only_cache(), Err(NotFetched::NotCached));
    };
    replace(&|| drop(run(Command::new("mkfifo").arg(fixture.cached()))));
    fixture.assert_found(&[&web]);
    replace(&|| symlink(fixture.cached(), fixture.cached()).expect("a link"));
    fixture.assert_found(&[&web]);
    replace(&|| symlink("/dev/zero", fixture.cached()).expect("a link"));
    fixture.assert_found(&[&web]);
    replace(&|| fs::write(fixture.cached(), "").expect("written"));
    assert_eq!(fixture.find(&[&web]), Err(NotFetched::NotThere));
    replace(&|| fs::create_dir(fixture.cached()).expect("a folder"));
    let error = fixture.find(&[&web]).expect_err("in the way").to_string();
    assert!(error.contains("cannot write"), "{error}");
}

#[test]
fn a_cache_that_cannot_be_written() {
    let fixture = Fixture::new();
    let web = Web::saying(ok(&fixture.bytes));
    let in_a_file = Some(fixture.folder.path("small.c").join("cache"));
    let settings = DebuginfodSettings { cache_dir: in_a_file, ..fixture.settings(&[&web]) };
    let error = Debuginfod::new(settings).find(&fixture.id, &DebuginfodFile::Debuginfo).expect_err("no folder");
    assert!(error.to_string().contains("DEBUGINFOD_CACHE_PATH"), "{error}");
    for cache_dir in [None, Some("relative/cache".into())] {
        let settings = DebuginfodSettings { cache_dir, ..fixture.settings(&[&web]) };
        let found = Debuginfod::new(settings).find(&fixture.id, &DebuginfodFile::Debuginfo);
        assert_eq!(found, Err(NotFetched::NoCache));
    }
    assert_eq!(web.paths().len(), 0);
}

#[test]
fn ids_that_tell_nothing_and_no_servers() {
    let fixture = Fixture::new();
    let web = Web::saying(ok(&fixture.bytes));
    let debuginfod = Debuginfod::new(fixture.settings(&[&web]));
    for length in [0, 1, 7, 65, 1000] {
        let found = debuginfod.find(&vec![1; length], &DebuginfodFile::Debuginfo);
        assert_eq!(found, Err(NotFetched::BadBuildId { length }));
    }
    assert_eq!(fixture.find(&[]), Err(NotFetched::NoServers));
    assert_eq!(Debuginfod::default().find(&fixture.id, &DebuginfodFile::Debuginfo), Err(NotFetched::Off));
    assert_eq!(web.paths().len(), 0);
}

#[test]
fn many_threads_that_want_the_same_file_ask_once() {
    let fixture = Fixture::new();
    let bytes = fixture.bytes.clone();
    let web = Web::new(move |_, stream| {
        thread::sleep(Duration::from_millis(50));
        _ = stream.write_all(&ok(&bytes));
    });
    let calls = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&calls);
    let settings = DebuginfodSettings {
        progress: Some(Arc::new(move |download| {
            told.lock().expect("a lock").push((download.url.to_owned(), download.received, download.is_done));
        })),
        ..fixture.settings(&[&web])
    };
    let debuginfod = Debuginfod::new(settings);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let found = debuginfod.clone().find(&fixture.id, &DebuginfodFile::Debuginfo);
                assert_eq!(found, Ok(fixture.cached()));
            });
        }
    });
    assert_eq!(web.paths().len(), 1);
    let calls = calls.lock().expect("a lock");
    let url = format!("{}{}", web.url(), web.paths()[0]);
    assert_eq!(calls.first(), Some(&(url.clone(), 0, false)));
    assert_eq!(calls.last(), Some(&(url, fixture.bytes.len() as u64, true)));
}

#[test]
fn source_files_stay_in_their_folder() {
    let fixture = Fixture::new();
    let web = Web::saying(ok(b"int main;"));
    let debuginfod = Debuginfod::new(fixture.settings(&[&web]));
    let long = format!("/{}", "../".repeat(2000));
    for path in ["/a/b.c", "/../../../../etc/passwd", "../x", "", "/", ".", &long, "/a b?c#d%\u{1b}\n\0.c"] {
        let found = debuginfod.find(&fixture.id, &DebuginfodFile::Source(path.into())).expect("a file");
        assert_eq!(found.parent(), fixture.cached().parent(), "{found:?}");
        assert_eq!(fs::read(&found).expect("the file"), b"int main;");
    }
    assert!(web.paths().iter().all(|path| path.starts_with("/buildid/") && path.contains("/source/")));
}

/// `openssl` serving whole answers from a folder by https, with a certificate that nobody has heard of.
struct SecureServer {
    child: Child,
    port: u16,
}

impl SecureServer {
    fn new(fixture: &Fixture) -> Self {
        let (key, certificate) = (fixture.folder.path("key.pem"), fixture.folder.path("certificate.pem"));
        let subject = [
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ];
        run(Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
            .args(subject)
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate));
        let file = fixture.folder.path("buildid").join(fixture.id_text()).join("debuginfo");
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, ok(&fixture.bytes)).expect("written");
        let away = status(302, "Location: http://127.0.0.1:1/\r\n");
        fs::write(file.with_file_name("executable"), away).expect("written");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
        let child = Command::new("openssl")
            .args(["s_server", "-HTTP", "-quiet", "-accept", &format!("127.0.0.1:{port}"), "-key"])
            .arg(&key)
            .arg("-cert")
            .arg(&certificate)
            .current_dir(fixture.folder.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl starts");
        let server = SecureServer { child, port };
        for _ in 0..1000 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return server;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("openssl does not listen");
    }
}

impl Drop for SecureServer {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("openssl can be ended");
    }
}

/// Which authorities are trusted is read from the environment, so the test runs itself with another one.
const TRUSTING: &str = "MPP_TEST_TRUSTED_SERVER";

#[test]
fn only_trusted_servers_over_https() {
    if let Ok(server) = std::env::var(TRUSTING) {
        let (url, id) = server.split_once(' ').expect("two words");
        let id: Vec<u8> = (0..id.len() / 2).map(|i| u8::from_str_radix(&id[2 * i..][..2], 16).expect("hex")).collect();
        let fixture = Fixture::new();
        let with = |url: &str| DebuginfodSettings { servers: vec![url.to_owned()], ..fixture.settings(&[]) };
        let path = Debuginfod::new(with(url)).find(&id, &DebuginfodFile::Debuginfo).expect("the file");
        assert!(fs::metadata(path).expect("the file").len() > 1000);
        let error = Debuginfod::new(with(url)).find(&id, &DebuginfodFile::Executable).expect_err("not by http");
        assert!(error.to_string().contains("from https to http"), "{error}");
        // The right certificate for another name.
        let other = url.replace("127.0.0.1", "localhost");
        let error = Debuginfod::new(with(&other)).find(&id, &DebuginfodFile::Executable).expect_err("another name");
        assert!(error.to_string().contains("certificate"), "{error}");
        return;
    }
    let fixture = Fixture::new();
    let server = SecureServer::new(&fixture);
    let url = format!("https://127.0.0.1:{}", server.port);
    let settings =
        DebuginfodSettings { servers: vec![url.clone()], timeout: Duration::from_secs(20), ..fixture.settings(&[]) };
    let error = Debuginfod::new(settings).find(&fixture.id, &DebuginfodFile::Debuginfo).expect_err("not trusted");
    assert!(error.to_string().contains("cannot be reached") && error.to_string().contains("certificate"), "{error}");
    assert_eq!(fixture.stored(), Vec::<PathBuf>::new());
    run(Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "only_trusted_servers_over_https"])
        .env(TRUSTING, format!("{url} {}", fixture.id_text()))
        .env("SSL_CERT_FILE", fixture.folder.path("certificate.pem"))
        .env_remove("SSL_CERT_DIR"));
}
