//! This machine.

use std::ffi::CStr;
use std::path::Path;

use mpp_profile::units::bytes;

use super::Finding;
use crate::preload;
use crate::settings::Settings;

/// The oldest C library that the preload library runs with, and that is tried.
const OLDEST_GLIBC: (u32, u32) = (2, 35);

pub(super) fn look() -> Vec<Finding> {
    let mut findings = vec![library(), c_library(), kernel()];
    findings.extend([recordings(), symbols(), settings()]);
    findings.extend(memory_limit());
    findings
}

fn library() -> Finding {
    match preload::unpack() {
        Ok(path) => Finding::ok("preload library", path.display().to_string()),
        Err(error) => {
            Finding::bad("preload library", format!("{error:#}"), "set XDG_CACHE_HOME or TMPDIR to a folder of yours")
        }
    }
}

fn c_library() -> Finding {
    // SAFETY: the C library returns a string of its own that never changes.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy().into_owned();
    let mut numbers = version.split('.').filter_map(|part| part.parse::<u32>().ok());
    let known = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let found = format!("GNU C library {version}");
    match known >= OLDEST_GLIBC {
        true => Finding::ok("C library", found),
        false => {
            Finding::hint("C library", found, "versions before 2.35 are not tried; run the program on a newer system")
        }
    }
}

fn kernel() -> Finding {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_else(|_| "unknown".to_owned());
    Finding::ok("kernel", format!("Linux {} on {}", release.trim(), std::env::consts::ARCH))
}

fn recordings() -> Finding {
    let folder = std::env::current_dir().map_or_else(|_| ".".to_owned(), |folder| folder.display().to_string());
    // Nothing is left behind; a name of our own so that nobody's file is touched.
    let probe = Path::new(".").join(format!(".mpp-doctor-{}", std::process::id()));
    match std::fs::create_dir(&probe) {
        Ok(()) => {
            let _ = std::fs::remove_dir(&probe);
            Finding::ok("recordings", format!("go to {folder}"))
        }
        Err(error) => Finding::hint(
            "recordings",
            format!("cannot be made in {folder}: {error}"),
            "name another folder: mpp run -o DIR",
        ),
    }
}

fn symbols() -> Finding {
    let cache = preload::cache_folder().map(|folder| folder.join("mpp/symbols"));
    let kept =
        cache.map_or_else(|| "not kept (no home folder)".to_owned(), |folder| format!("kept in {}", folder.display()));
    match std::env::var("DEBUGINFOD_URLS") {
        Ok(urls) if !urls.trim().is_empty() => {
            Finding::ok("symbols", format!("{kept}; --debuginfod on asks {}", urls.trim()))
        }
        _ => Finding::hint(
            "symbols",
            format!("{kept}; no debuginfod server is set"),
            "to have lines of distribution packages: export DEBUGINFOD_URLS=https://debuginfod.elfutils.org/ and give --debuginfod on",
        ),
    }
}

fn settings() -> Finding {
    match Settings::read() {
        Ok(settings) => {
            let files: Vec<String> = settings.files().map(|path| path.display().to_string()).collect();
            let found = if files.is_empty() { "no mpp.toml".to_owned() } else { files.join(", ") };
            Finding::ok("settings", found)
        }
        Err(error) => Finding::bad("settings", format!("{error:#}"), "repair the file"),
    }
}

/// A container with little memory kills programs that a profile makes a little larger.
fn memory_limit() -> Option<Finding> {
    let text = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok()?;
    let limit = text.trim().parse::<u64>().ok()?;
    Some(Finding::ok("memory limit", format!("{} for this container", bytes(limit))))
}
