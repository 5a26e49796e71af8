//! What can be known before the start: will the dynamic loader put the library into this program, and will the program
//! use it?
//!
//! A profiler that finds out afterwards has wasted the run, so everything certain is refused here: the program is not
//! started, and the exit code is 14 (127 and 126, as in a shell, if it does not exist or cannot be executed).

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::elf::{self, Elf};
use crate::exit::{Code, Failure};
use crate::preload;
use crate::sys::files;

/// A program that the library can be loaded into, as far as one can tell from its file.
#[derive(Debug)]
pub(crate) struct Target {
    /// The file to execute.
    pub(crate) program: PathBuf,
    /// Whether it is a Go program, whose own heap does not go through `malloc`.
    pub(crate) is_go: bool,
}

/// The kernel follows a chain of scripts no deeper than this.
const MAX_SCRIPTS: usize = 4;
/// The kernel looks at no more of the first line of a script.
const SHEBANG_LENGTH: u64 = 256;

/// Finds `program` as a shell does, and follows scripts to the interpreter that will run.
///
/// # Errors
/// A failure that says which file, why, and what to do.
pub(crate) fn check(program: &OsStr, path: Option<&OsStr>) -> Result<Target, Failure> {
    let found = find_program(program, path)?;
    let mut file = found.clone();
    for _ in 0..=MAX_SCRIPTS {
        let Some(head) = executable_head(&file)? else {
            return Ok(Target { program: found, is_go: false });
        };
        let Some(interpreter) = interpreter_of(&head) else {
            let is_go = check_binary(&file, &head)?;
            return Ok(Target { program: found, is_go });
        };
        file = follow(&file, &interpreter, path)?;
    }
    Err(Failure::new(Code::NotExecutable, format!("{}: too many scripts that start scripts", found.display())))
}

/// A name with a slash is a path; any other is looked for in the folders of PATH.
fn find_program(program: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Failure> {
    if program.is_empty() {
        return Err(Failure::new(Code::NotFound, "the command is an empty word"));
    }
    if program.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(program));
    }
    // What the C library searches when there is no PATH.
    let path = path.unwrap_or(OsStr::new("/bin:/usr/bin"));
    let candidates = std::env::split_paths(path).map(|folder| match folder.as_os_str().is_empty() {
        true => Path::new(".").join(program),
        false => folder.join(program),
    });
    let mut forbidden = None;
    for candidate in candidates.filter(|candidate| candidate.is_file()) {
        if files::may_execute(&candidate) {
            return Ok(candidate);
        }
        forbidden.get_or_insert(candidate);
    }
    // Let the caller find out what is wrong with the one that is there.
    forbidden.ok_or_else(|| Failure::new(Code::NotFound, format!("{}: command not found", program.display())))
}

/// The first bytes of a file that may be executed; `None` if it may not be read, so that nothing is known about it.
fn executable_head(file: &Path) -> Result<Option<Vec<u8>>, Failure> {
    let refuse = |code, why: &str| Err(Failure::new(code, format!("{}: {why}", file.display())));
    match fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return refuse(Code::NotFound, "no such file or directory");
        }
        Err(error) => return refuse(Code::NotExecutable, &error.to_string()),
        Ok(metadata) if metadata.is_dir() => return refuse(Code::NotExecutable, "is a directory"),
        Ok(metadata) if !metadata.is_file() => return refuse(Code::NotExecutable, "is not a regular file"),
        Ok(_) if !files::may_execute(file) => {
            return refuse(Code::NotExecutable, "permission denied (is it executable? try chmod +x)");
        }
        Ok(_) => {}
    }
    let mut head = Vec::new();
    match File::open(file).and_then(|opened| opened.take(SHEBANG_LENGTH).read_to_end(&mut head)) {
        Ok(_) => Ok(Some(head)),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(None),
        Err(error) => refuse(Code::NotExecutable, &error.to_string()),
    }
}

/// What the first line of a script asks for: the interpreter and the one argument the kernel gives it.
#[derive(Debug, PartialEq, Eq)]
struct Interpreter {
    program: OsString,
    argument: Vec<u8>,
}

fn interpreter_of(head: &[u8]) -> Option<Interpreter> {
    let line = head.strip_prefix(b"#!")?;
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (program, argument) = line.split_at(end);
    Some(Interpreter { program: OsStr::from_bytes(program).to_owned(), argument: argument.trim_ascii().to_vec() })
}

/// The program that will run the script; looks through `env`.
fn follow(script: &Path, interpreter: &Interpreter, path: Option<&OsStr>) -> Result<PathBuf, Failure> {
    let bad = |why: String| Failure::new(Code::NotExecutable, format!("{}: {why}", script.display()));
    if interpreter.program.is_empty() {
        return Err(bad("names no interpreter after #!".to_owned()));
    }
    let program = PathBuf::from(&interpreter.program);
    if !program.is_file() {
        return Err(bad(format!("its interpreter {} does not exist", program.display())));
    }
    if program.file_name() == Some(OsStr::new("env"))
        && let Some(name) = program_of_env(&interpreter.argument)
    {
        return find_program(name, path).map_err(|_| bad(format!("its interpreter {} is not in PATH", name.display())));
    }
    Ok(program)
}

/// The program that `#!/usr/bin/env ARGUMENT` runs. Options of `env` and assignments can stand before it, but only
/// `-S` makes more than one word of the argument.
fn program_of_env(argument: &[u8]) -> Option<&OsStr> {
    let split = [&b"-S"[..], b"-vS", b"--split-string="].into_iter().find_map(|option| argument.strip_prefix(option));
    let word = match split {
        None => Some(argument),
        Some(words) => words
            .split(u8::is_ascii_whitespace)
            .find(|word| !word.is_empty() && !word.starts_with(b"-") && !word.contains(&b'=')),
    };
    word.filter(|word| !word.is_empty() && !word.starts_with(b"-") && !word.contains(&b'=')).map(OsStr::from_bytes)
}

/// Checks the binary at the end of the chain; returns whether it is a Go program.
fn check_binary(file: &Path, head: &[u8]) -> Result<bool, Failure> {
    let name = file.display();
    let nothing = |why: String| Err(Failure::new(Code::NothingCaptured, format!("{name}: {why}")));
    if !head.starts_with(elf::MAGIC) {
        let why = "is neither a program of this system (ELF) nor a script with a #! line";
        return Err(Failure::new(Code::NotExecutable, format!("{name}: exec format error: {why}")));
    }
    if let Some((theirs, ours)) = elf::foreign_architecture(head, preload::library()) {
        return nothing(format!("is a program for {theirs}, but the allocator of this mpp is for {ours}"));
    }
    let elf = match File::open(file).map_err(anyhow::Error::from).and_then(Elf::read) {
        Ok(elf) => elf,
        Err(error) => {
            return Err(Failure::new(Code::NotExecutable, format!("{name}: exec format error: {error:#}")));
        }
    };
    match &elf.interpreter {
        None if is_dynamic_loader(file) => {}
        None if elf.is_go => {
            return nothing(
                "is a statically linked Go program, into which nothing can be preloaded, and whose heap is its own. \
                 Use Go's runtime/pprof; `mpp top` reads its heap profiles"
                    .to_owned(),
            );
        }
        None => {
            return nothing(
                "is statically linked, so there is no dynamic loader that could preload the allocator. Link it \
                 dynamically"
                    .to_owned(),
            );
        }
        Some(loader) if loader_is_musl(loader) => {
            return nothing(format!(
                "uses the musl C library ({}), but the allocator needs glibc. Build the program for a -gnu target",
                loader.display()
            ));
        }
        Some(loader) if !loader.is_file() => {
            let why = format!("its dynamic loader {} does not exist", loader.display());
            return Err(Failure::new(Code::NotExecutable, format!("{name}: {why}")));
        }
        Some(_) => {}
    }
    if let Some(why) = elevated_rights(file) {
        return nothing(format!("{why}, and for such a program the dynamic loader ignores preloads. {COPY_HINT}"));
    }
    if elf.exports_malloc {
        return nothing(
            "has an allocator of its own linked in (it exports malloc, which takes precedence over a preload). \
             Build it without that allocator to profile it"
                .to_owned(),
        );
    }
    Ok(elf.is_go)
}

const COPY_HINT: &str = "Profile a copy of it without these rights, or run mpp as the user that it changes to";

fn loader_is_musl(loader: &Path) -> bool {
    loader.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ld-musl"))
}

/// The dynamic loader started by hand (`ld-linux-x86-64.so.2 ./program`) is static itself and yet does preload.
fn is_dynamic_loader(file: &Path) -> bool {
    file.file_name().is_some_and(|name| {
        let name = name.as_bytes();
        name == b"ld.so" || (name.starts_with(b"ld-") && name.windows(3).any(|part| part == b".so"))
    })
}

/// Why the kernel will mark the process as "secure" (AT_SECURE). It does so when the program gains rights, which is less
/// often than when the bits are set: root gains nothing from a file of root, and a nosuid mount gives nothing.
fn elevated_rights(file: &Path) -> Option<String> {
    let metadata = fs::metadata(file).ok()?;
    if files::mount_of(file).is_ok_and(|mount| mount.nosuid) {
        return None;
    }
    let ids = files::ids();
    if gains_user(&metadata, ids) {
        return Some(format!("is set-user-id (it would run as user {})", metadata.uid()));
    }
    if gains_group(&metadata, ids) {
        return Some(format!("is set-group-id (it would run with group {})", metadata.gid()));
    }
    let has_capabilities = ids.real_user != 0 && files::has_file_capabilities(file);
    has_capabilities.then(|| "has file capabilities".to_owned())
}

fn gains_user(metadata: &Metadata, ids: files::Ids) -> bool {
    metadata.mode() & libc::S_ISUID != 0 && metadata.uid() != ids.real_user
}

/// Without the execute bit of the group, the set-group-id bit meant mandatory locking, not a change of group.
fn gains_group(metadata: &Metadata, ids: files::Ids) -> bool {
    let bits = libc::S_ISGID | libc::S_IXGRP;
    metadata.mode() & bits == bits && metadata.gid() != ids.real_group
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interpreter(line: &str) -> Option<(String, String)> {
        interpreter_of(line.as_bytes()).map(|found| {
            (found.program.to_string_lossy().into_owned(), String::from_utf8_lossy(&found.argument).into_owned())
        })
    }

    fn pair(program: &str, argument: &str) -> Option<(String, String)> {
        Some((program.to_owned(), argument.to_owned()))
    }

    #[test]
    fn reads_the_first_line_as_the_kernel_does() {
        assert_eq!(interpreter("#!/bin/sh\necho"), pair("/bin/sh", ""));
        assert_eq!(interpreter("#! /usr/bin/env  python3 -u \n"), pair("/usr/bin/env", "python3 -u"));
        assert_eq!(interpreter("#!"), pair("", ""));
        assert_eq!(interpreter("\u{7f}ELF"), None);
    }

    #[test]
    fn looks_through_env() {
        let program = |argument: &'static str| program_of_env(argument.as_bytes()).and_then(OsStr::to_str);
        assert_eq!(program("python3"), Some("python3"));
        assert_eq!(program("-S A=1 perl -w"), Some("perl"));
        assert_eq!(program("-Sperl"), Some("perl"));
        assert_eq!(program("-i"), None);
        assert_eq!(program(""), None);
    }

    #[test]
    fn knows_loaders() {
        assert!(loader_is_musl(Path::new("/lib/ld-musl-x86_64.so.1")));
        assert!(!loader_is_musl(Path::new("/lib64/ld-linux-x86-64.so.2")));
        assert!(is_dynamic_loader(Path::new("/lib64/ld-linux-x86-64.so.2")));
        assert!(!is_dynamic_loader(Path::new("/bin/ld-gold")));
    }
}
