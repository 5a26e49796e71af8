//! What the figures were measured on.

use std::fs::read_to_string;

use serde::{Deserialize, Serialize};

/// A machine, as far as it matters to figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Processors that may be used.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// The C library's version.
    pub libc: String,
    /// When anonymous memory gets huge pages: `always`, `madvise`, `never`.
    pub huge_pages: String,
    /// Load averages over one minute: before and after the run.
    pub load: [f64; 2],
}

impl Machine {
    /// This machine. What it does not tell is empty.
    #[must_use]
    pub fn this() -> Self {
        let read = |path| read_to_string(path).unwrap_or_default();
        let load = load();
        Self {
            processor: processor(&read("/proc/cpuinfo")),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            libc: libc_version(),
            huge_pages: chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled")),
            load: [load, load],
        }
    }

    /// Notes the load after the run.
    pub fn ends(&mut self) {
        self.load[1] = load();
    }

    /// One line about it.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { processor, cores, kernel, libc, huge_pages, load } = self;
        format!(
            "{processor}, {cores} cores; Linux {kernel}; glibc {libc}; huge pages: {huge_pages}; load average {:.1} before, {:.1} after",
            load[0], load[1]
        )
    }
}

fn load() -> f64 {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

fn processor(cpuinfo: &str) -> String {
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

/// The word in brackets.
fn chosen(choices: &str) -> String {
    let inside = choices.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or_else(|| "unknown".to_owned(), |(word, _)| word.to_owned())
}

fn libc_version() -> String {
    // SAFETY: the function returns a static string.
    unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_understood() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: A CPU @ 2 GHz\nflags: x\n"), "A CPU @ 2 GHz");
        assert_eq!(processor(""), std::env::consts::ARCH);
        assert_eq!((chosen("always [madvise] never\n"), chosen("")), ("madvise".to_owned(), "unknown".to_owned()));
        let machine = Machine::this();
        assert!(machine.line().contains(&machine.kernel) && machine.cores > 0 && machine.libc.starts_with("2."));
    }
}
