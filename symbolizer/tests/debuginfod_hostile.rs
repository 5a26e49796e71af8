//! Debuginfod servers that are broken or mean harm. None may get a file into the cache that was not asked for, hold up
//! the client without end, fill memory or disk, or make it panic.

mod common;
#[path = "common/fetching.rs"]
mod fetching;
#[path = "common/web.rs"]
mod web;

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use fetching::Fixture;
use mpp_symbolizer::{Debuginfod, DebuginfodFile, DebuginfodSettings};
use object::read::elf::{FileHeader as _, SectionHeader as _};
use object::{Endianness, elf};
use web::{Web, ok, stall, status};

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
fn the_fuzz_target_starts_from_sound_answers() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/seeds/debuginfod_answer");
    for name in ["whole", "chunked"] {
        let fixture = Fixture::new();
        let web = Web::saying(fs::read(format!("{seeds}/{name}")).expect("the seed"));
        let id = 0x0123_4567_89ab_cdef_u64.to_be_bytes();
        let found = Debuginfod::new(fixture.settings(&[&web])).find(&id, &DebuginfodFile::Debuginfo);
        assert!(found.is_ok(), "{name}: {found:?}");
    }
}
