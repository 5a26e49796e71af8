//! What the tests of the real binary share.

// Each test file uses a part of it.
#![allow(dead_code, unreachable_pub, missing_docs)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder that goes away with the test, and `mpp` run in it.
pub struct Place {
    folder: tempfile::TempDir,
}

/// What came out of one run.
#[derive(Debug)]
pub struct Ran {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Place {
        Place { folder: tempfile::Builder::new().prefix("mpp-test-").tempdir().expect("a temporary folder") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(&path, content).expect("a written file");
        path
    }

    /// A file that may be executed.
    pub fn script(&self, name: &str, content: &str) -> PathBuf {
        let path = self.write(name, content);
        set_mode(&path, 0o755);
        path
    }

    /// `mpp` in this folder, in an environment that says nothing to it, with its cache in this folder.
    pub fn mpp(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mpp"));
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("MPP_") || name.starts_with("MIMALLOC_") {
                command.env_remove(&*name);
            }
        }
        for name in ["NO_COLOR", "CLICOLOR_FORCE", "LD_PRELOAD", "TMPDIR"] {
            command.env_remove(name);
        }
        // Outside this folder, which some tests expect to be empty at the end; shared, so that it is unpacked once.
        command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
        command
    }

    pub fn run<I: IntoIterator<Item = A>, A: AsRef<OsStr>>(&self, arguments: I) -> Ran {
        ran(self.mpp().args(arguments))
    }

    /// The names in this folder that start with `mpp-`: recordings.
    pub fn recordings(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("the folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("mpp-")).collect()
    }

    /// Compiles a C program. Without a C compiler the tests cannot run, and say so.
    /// The one process of a recording, as soon as it is there.
    pub fn recorded_process(&self, recording: &str) -> String {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while std::time::Instant::now() < until {
            let entries = std::fs::read_dir(self.path(recording)).into_iter().flatten().flatten();
            let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
            if let Some(pid) = names.find(|name| name.parse::<u32>().is_ok()) {
                return pid;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("{recording} has no process");
    }

    pub fn compile(&self, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        let source = self.write(&format!("{name}.c"), source);
        let program = self.path(name);
        let output = Command::new("cc")
            .arg("-o")
            .arg(&program)
            .arg(&source)
            .args(flags)
            .output()
            .unwrap_or_else(|error| panic!("these tests need a C compiler called `cc`: {error}"));
        assert!(output.status.success(), "cc {flags:?}: {}", String::from_utf8_lossy(&output.stderr));
        program
    }
}

pub fn ran(command: &mut Command) -> Ran {
    let output: Output = command.output().expect("mpp starts");
    Ran {
        status: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Ran {
    /// Asserts the exit status, and shows everything if it is another.
    #[track_caller]
    pub fn exits(self, status: i32) -> Ran {
        assert_eq!(self.status, Some(status), "{self:#?}");
        self
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Ran {
        assert!(self.stderr.contains(text), "expected {text:?} in {self:#?}");
        self
    }

    #[track_caller]
    pub fn prints(self, text: &str) -> Ran {
        assert!(self.stdout.contains(text), "expected {text:?} in {self:#?}");
        self
    }
}

pub fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a changed mode");
}

/// A committed input.
pub fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// One JSON value.
pub fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON ({error}): {text}"))
}

/// A program of `workloads`, built as users build it, with its plugin beside it.
pub fn workload(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("workloads");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--offline", "-p", "mpp-workloads", "-p", "mpp-workloads-plugin"])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml")])
        .arg("--target-dir")
        .arg(&target)
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .status();
    assert!(status.expect("cargo runs").success(), "the workloads do not build");
    target.join("release").join(name)
}
