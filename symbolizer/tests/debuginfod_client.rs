//! What the client of debuginfod asks, whom, how often, and what it keeps.

mod common;
#[path = "common/fetching.rs"]
mod fetching;
#[path = "common/web.rs"]
mod web;

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use common::run;
use fetching::Fixture;
use mpp_symbolizer::{Debuginfod, DebuginfodFile, DebuginfodMode, DebuginfodSettings, NotFetched};
use web::{Web, ok, stall, status};

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
