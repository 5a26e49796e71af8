//! What to do when a module has no names, or no lines.

use std::path::Path;

use super::{Places, by_build_id, hex, names_a_file, without_mark};
use crate::elf::Elf;
use crate::{DebuginfodMode, Error, ModuleReport, Options, SymbolSource};

/// Where files of the system are, which people do not build themselves.
const SYSTEM_FOLDERS: [&str; 8] =
    ["/usr/lib", "/usr/lib64", "/usr/bin", "/usr/sbin", "/lib", "/lib64", "/bin", "/sbin"];

/// Files of the C library, whose debug information Debian and Ubuntu have in their main archive.
const C_LIBRARY: [&str; 6] = ["libc.so", "libm.so", "libpthread.so", "ld-linux", "libdl.so", "librt.so"];

impl Places<'_> {
    /// What would give the module names and lines: a command, or flags of `mpp` with a comment. `elf` is the module's
    /// file, if it was found. `None` if nothing is missing or nothing would help.
    pub(crate) fn remedy(&self, elf: Option<&Elf<'_>>, report: &ModuleReport) -> Option<String> {
        let path = without_mark(&report.path).0;
        let id = report.wanted_build_id.as_deref().or(report.found_build_id.as_deref());
        if let Some((link, id)) = report.problems.iter().find_map(no_alt_file) {
            return Some(format!("--debug-dir DIR  # a folder with {link:?}, build id {id}"));
        }
        if let Some((path, first)) = report.problems.iter().find_map(no_split_file) {
            let mut package = path.file_name().unwrap_or_default().to_owned();
            package.push(".dwp");
            let first = first.file_name().unwrap_or_default();
            return Some(format!("--debug-dir DIR  # a folder with {package:?}, or with {first:?} and the like"));
        }
        if report.unresolved + report.with_name == 0 || matches!(report.source, SymbolSource::Dwarf { .. }) {
            return None;
        }
        // Quoted with escapes: people paste commands, and a line feed would end the comment.
        let name = path.file_name().unwrap_or(path.as_os_str());
        let Some(elf) = elf else {
            let id = report.wanted_build_id.as_deref().filter(|_| names_a_file(&report.path))?;
            return Some(fetch(self.options).unwrap_or_else(|| {
                format!("--debug-dir DIR  # a folder with the {name:?} that was profiled, build id {}", hex(id))
            }));
        };
        let is_system = SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder));
        if is_system && let Some(command) = self.install(path, id) {
            return Some(command);
        }
        if is_system && let Some(command) = id.and_then(|_| fetch(self.options)) {
            return Some(command);
        }
        if let Some((link, _)) = elf.debug_link() {
            return Some(format!("--debug-dir DIR  # a folder with {:?}", String::from_utf8_lossy(link)));
        }
        names_a_file(&report.path).then(|| {
            format!("rebuild {name:?} with debug information: -g for C and C++, debug = \"line-tables-only\" for Rust")
        })
    }

    /// The command that installs debug information with the system's own means, where it is certain that there is some.
    fn install(&self, path: &Path, id: Option<&[u8]>) -> Option<String> {
        if self.options.sysroot.is_some() || self.options.pid.is_some() {
            return None;
        }
        let name = path.file_name()?.to_str()?;
        let is_c_library = C_LIBRARY.iter().any(|start| name.starts_with(start));
        if is_c_library && Path::new("/var/lib/dpkg/status").exists() {
            return Some("apt-get install libc6-dbg".to_owned());
        }
        let is_red_hat = ["/etc/fedora-release", "/etc/redhat-release"].iter().any(|file| Path::new(file).exists());
        let file = id.filter(|_| is_red_hat).and_then(|id| by_build_id(id, ".debug"))?;
        Some(format!("dnf --enablerepo='*debug*' install /usr/lib/debug/{}", file.display()))
    }
}

/// What would fetch files by build id from a server, unless that was done.
fn fetch(options: &Options) -> Option<String> {
    match options.debuginfod.mode() {
        DebuginfodMode::Off | DebuginfodMode::Cache => Some("--debuginfod on".to_owned()),
        DebuginfodMode::On if options.debuginfod.has_servers() => None,
        DebuginfodMode::On => {
            Some("export DEBUGINFOD_URLS=URL  # the debuginfod server of the distribution".to_owned())
        }
    }
}

fn no_split_file(problem: &Error) -> Option<(&Path, &Path)> {
    match problem {
        Error::NoSplitFile { path, first, .. } => Some((path, first)),
        _ => None,
    }
}

fn no_alt_file(problem: &Error) -> Option<(&Path, &str)> {
    match problem {
        Error::NoAltFile { link, build_id, .. } => Some((link, build_id)),
        _ => None,
    }
}
