//! Where what is written goes: a file that takes its place only when it is complete, or a function of the program's.

pub(crate) use super::path::Path;
use crate::os::{self, File, libc};
use core::fmt;

const SUFFIX: &[u8] = b".tmp";

/// Why something could not be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    /// As `errno` has it.
    pub(crate) cause: i32,
}

impl Failure {
    pub(crate) const NO_MEMORY: Failure = Failure { cause: libc::ENOMEM };
    /// The receiver wants no more.
    pub(crate) const REFUSED: Failure = Failure { cause: libc::ECANCELED };

    /// The cause in words. Empty for one that is not expected: the number has to do.
    pub(crate) fn words(self) -> &'static str {
        match self.cause {
            1 => "not permitted",
            6 => "nobody reads the pipe",
            libc::EINVAL => "no place for files",
            libc::ENOENT => "no such folder",
            5 => "input/output error",
            libc::ENOMEM => "no memory",
            13 => "permission denied",
            libc::EBUSY => "too many at a time",
            20 => "a part of the path is no folder",
            21 => "is a folder",
            23 | 24 => "too many open files",
            27 => "larger than the limit on file sizes",
            libc::ENOSPC => "no space left on the device",
            30 => "the file system is read-only",
            libc::EDEADLK => "called again by what is called while writing",
            libc::ENAMETOOLONG => "the path is too long",
            40 => "is a symbolic link",
            122 => "the disk quota is used up",
            libc::ECANCELED => "the receiver refused it",
            _ => "",
        }
    }
}

impl From<i32> for Failure {
    fn from(cause: i32) -> Failure {
        Failure { cause }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            "" => write!(f, "error {}", self.cause),
            words => f.write_str(words),
        }
    }
}

/// Takes bytes, or says why not.
pub(crate) type Sink<'a> = dyn FnMut(&[u8]) -> Result<(), Failure> + 'a;

/// A buffer before a sink. The first failure is remembered; what comes after it is thrown away.
pub(crate) struct Output<'a> {
    sink: &'a mut Sink<'a>,
    buffer: &'a mut [u8],
    used: usize,
    failure: Option<Failure>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(sink: &'a mut Sink<'a>, buffer: &'a mut [u8]) -> Output<'a> {
        Output { sink, buffer, used: 0, failure: None }
    }

    /// Append bytes. Failures are remembered and told at the end.
    pub(crate) fn bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.used == self.buffer.len() {
                self.flush();
            }
            let n = bytes.len().min(self.buffer.len() - self.used);
            self.buffer[self.used..self.used + n].copy_from_slice(&bytes[..n]);
            self.used += n;
            bytes = &bytes[n..];
        }
    }

    /// What was written is worth nothing, for this reason.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Write what is left, and tell how it went.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.flush();
        self.failure.map_or(Ok(()), Err)
    }

    fn flush(&mut self) {
        if self.failure.is_none() && self.used > 0 {
            self.failure = (self.sink)(&self.buffer[..self.used]).err();
        }
        self.used = 0;
    }
}

impl fmt::Write for Output<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}

/// Write a file: `fill` gets a sink for its content, and what it says counts. The file is there under another name before
/// `fill` is called and takes its place afterwards, so that nobody ever sees half of one. The folder is made if only the last part of it
/// is missing. Nothing is left behind when the file cannot be written.
///
/// Devices and pipes are written to, not replaced: `/dev/null` would be lost to all. Nobody waits until somebody reads a pipe.
pub(crate) fn to_file(path: &Path, fill: impl FnOnce(&mut Sink<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
    os::without_write_signals(|| {
        if let Some((_file, special)) = os::open_special(path.as_c_str(), false)? {
            return fill(&mut |bytes| Ok(special.write_all(bytes)?));
        }
        if names_a_descriptor(path) {
            return Err(libc::EINVAL.into());
        }
        write_and_rename(path, fill)
    })
}

/// In these folders are names for what processes have opened, and no files: `/dev/stdout` is one more of them.
fn names_a_descriptor(path: &Path) -> bool {
    let path = path.as_bytes();
    let is_one = |folder: &[u8]| path.strip_prefix(folder).is_some_and(|name| !name.contains(&b'/'));
    path.starts_with(b"/dev/fd/") || is_one(b"/dev/")
}

fn write_and_rename(path: &Path, fill: impl FnOnce(&mut Sink<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
    let temporary = temporary(path)?;
    let temporary = temporary.as_c_str();
    let file = match (File::create(temporary), path.folder()) {
        (Err(libc::ENOENT), Some(folder)) => os::make_folder(folder.as_c_str()).and_then(|()| File::create(temporary)),
        (created, _) => created,
    }?;
    let filled = fill(&mut |bytes| Ok(file.write_all(bytes)?));
    drop(file);
    let done = filled.and_then(|()| Ok(os::rename(temporary, path.as_c_str())?));
    if done.is_err() {
        os::remove(temporary);
    }
    done
}

/// The name until the file is complete: one of its own for each thread, so that two that write the same file at the same time do not
/// mix, and the later one wins.
fn temporary(path: &Path) -> Result<Path, Failure> {
    let mut temporary = path.clone();
    let whole =
        temporary.push(b".") && temporary.push_number(os::kernel_thread_id() as u64, 1) && temporary.push(SUFFIX);
    if whole { Ok(temporary) } else { Err(libc::ENAMETOOLONG.into()) }
}

/// [`to_file`] through a buffer.
pub(crate) fn write(path: &Path, buffer: &mut [u8], fill: impl FnOnce(&mut Output<'_>)) -> Result<(), Failure> {
    to_file(path, |sink| {
        let mut sink = |bytes: &[u8]| sink(bytes);
        let mut output = Output::new(&mut sink, buffer);
        fill(&mut output);
        output.finish()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::path::PATH;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path as StdPath;

    fn path(at: &StdPath) -> Path {
        let mut path = Path::EMPTY;
        assert!(path.push(at.to_str().unwrap().as_bytes()));
        path
    }

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(std::format!("mpp-output-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    fn put(at: &StdPath, content: &[u8]) -> Result<(), Failure> {
        write(&path(at), &mut [0; 8], |output| output.bytes(content))
    }

    #[test]
    fn a_file_takes_its_place_when_it_is_complete() {
        let folder = folder("complete");
        let file = folder.join("x");
        // The last folder is made.
        assert_eq!(put(&file, b"first"), Ok(()));
        let mut seen = 0;
        let during = to_file(&path(&file), |sink| {
            sink(b"sec")?;
            seen = fs::read_dir(&folder).unwrap().count();
            assert_eq!(fs::read(&file).unwrap(), b"first");
            sink(b"ond")
        });
        assert_eq!((during, seen), (Ok(()), 2));
        assert_eq!(fs::read(&file).unwrap(), b"second");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        // A failure of the content leaves what was there.
        assert_eq!(to_file(&path(&file), |_| Err(Failure::NO_MEMORY)), Err(Failure::NO_MEMORY));
        assert_eq!(fs::read(&file).unwrap(), b"second");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn why_not() {
        let folder = folder("why");
        assert_eq!(put(&folder.join("a/b"), b""), Err(libc::ENOENT.into()));
        assert_eq!(put(StdPath::new("/proc/self/x"), b""), Err(libc::ENOENT.into()));
        fs::create_dir(&folder).unwrap();
        fs::create_dir(folder.join("taken")).unwrap();
        assert_eq!(put(&folder.join("taken"), b""), Err(21.into()));
        // A link in the way is replaced, not followed.
        symlink("/etc/hostname", folder.join("link")).unwrap();
        assert_eq!(put(&folder.join("link"), b"mine"), Ok(()));
        assert!(fs::symlink_metadata(folder.join("link")).unwrap().is_file());
        let mut long = Path::EMPTY;
        assert!(long.push(&[b'a'; PATH - 5]));
        assert_eq!(write(&long, &mut [0; 8], |_| ()), Err(libc::ENAMETOOLONG.into()));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(
            std::format!("{} / {}", Failure::from(28), Failure::from(99)),
            "no space left on the device / error 99"
        );
    }

    #[test]
    fn after_a_failure_nothing_is_written() {
        let mut calls = 0;
        let mut sink = |_: &[u8]| {
            calls += 1;
            if calls == 2 { Err(Failure::REFUSED) } else { Ok(()) }
        };
        let mut buffer = [0u8; 4];
        let mut output = Output::new(&mut sink, &mut buffer);
        output.bytes(&[0; 40]);
        assert_eq!(output.finish(), Err(Failure::REFUSED));
        assert_eq!(calls, 2);
    }
}
