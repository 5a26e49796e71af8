//! Where results go: standard output or a file, never half of it, and never over somebody's file by accident.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, bail};
use serde::Serialize;

use crate::args::{CommonArgs, ReportArgs};
use crate::exit::Failure;
use crate::render::style::Style;
use crate::render::{self, Report};

/// Writes a report to where the user wants it, in the format of his choice.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn report<D: Serialize>(
    report: &Report<'_, D>,
    args: &ReportArgs,
    common: CommonArgs,
) -> Result<(), Failure> {
    match args.output.output.as_deref().filter(|path| *path != Path::new("-")) {
        None => {
            let style = Style::of(common.color, &io::stdout());
            Ok(to_stdout(&render::render(report, args.format, style)?)?)
        }
        Some(path) => {
            let result = render::render(report, args.format, Style::PLAIN)?;
            Ok(to_file(path, &result, || args.output.force)?)
        }
    }
}

/// Writes a whole result to standard output. A reader that has gone away (`mpp top | head`) is no error.
///
/// # Errors
/// If it cannot be written, for example because the disk is full.
pub(crate) fn to_stdout(result: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(result).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Writes a whole result to `path`, under a temporary name that is then renamed. What exists is replaced only if
/// `may_replace` says so; what is not a regular file (a device, a FIFO) is simply written to.
///
/// # Errors
/// If the file exists and may not be replaced, or cannot be written.
pub(crate) fn to_file(path: &Path, result: &[u8], may_replace: impl FnOnce() -> bool) -> anyhow::Result<()> {
    write(path, result, 0o666, may_replace)
}

/// The same, readable by its owner alone.
///
/// # Errors
/// As [`to_file`].
pub(crate) fn to_private_file(path: &Path, result: &[u8], may_replace: impl FnOnce() -> bool) -> anyhow::Result<()> {
    write(path, result, 0o600, may_replace)
}

/// `mode` is that of a new file, less what the user's mask takes away.
fn write(path: &Path, result: &[u8], mode: u32, may_replace: impl FnOnce() -> bool) -> anyhow::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => bail!("{} is a folder; name a file", path.display()),
        Ok(metadata) if !metadata.is_file() => {
            let write = || OpenOptions::new().write(true).open(path)?.write_all(result);
            return write().with_context(|| format!("cannot write {}", path.display()));
        }
        Ok(_) if !may_replace() => {
            bail!("{} exists; use --force to replace it, or name another file with -o", path.display())
        }
        _ => {}
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let write = || -> io::Result<()> {
        OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?.write_all(result)?;
        fs::rename(&temporary, path)
    };
    write()
        .inspect_err(|_| drop(fs::remove_file(&temporary)))
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_only_what_it_may() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("result");
        to_file(&path, b"one", || unreachable!("there is nothing to replace"))?;
        assert!(to_file(&path, b"two", || false).is_err_and(|error| error.to_string().contains("--force")));
        assert_eq!(fs::read(&path)?, b"one");
        to_file(&path, b"two", || true)?;
        assert_eq!(fs::read(&path)?, b"two");
        assert_eq!(fs::read_dir(folder.path())?.count(), 1, "no temporary file stays");
        Ok(())
    }

    #[test]
    fn writes_to_devices_and_not_to_folders() -> anyhow::Result<()> {
        to_file(Path::new("/dev/null"), b"gone", || false)?;
        assert!(to_file(&std::env::temp_dir(), b"", || true).is_err());
        Ok(())
    }
}
