//! Resident memory of a running process.

use std::path::Path;

pub use mpp_workloads::driver::memory::Memory;

use crate::BenchError;

/// Reads `VmRSS` and `VmHWM` of process `pid`, in bytes, from `/proc/<pid>/status`.
///
/// The kernel keeps these counters per processor and sums them lazily, so they may be off by some dozens of pages
/// (proc_pid_status(5) calls them inaccurate).
///
/// # Errors
/// [`BenchError::Memory`] when there is no such process, it may not be looked at, or it has no memory any more.
pub fn of_process(pid: u32) -> Result<Memory, BenchError> {
    let path = format!("/proc/{pid}/status");
    Memory::read(Path::new(&path)).map_err(|source| BenchError::Memory { pid, path, source })
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_child_is_seen_and_a_dead_one_is_not() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let memory = of_process(child.id()).unwrap();
        assert!(memory.rss > 0 && memory.rss <= memory.peak_rss, "{memory:?}");

        // Without input `cat` ends. Until it is waited for it is a zombie, which has a status file but no memory.
        drop(child.stdin.take());
        let error = loop {
            match of_process(child.id()) {
                Ok(_) => std::thread::yield_now(),
                Err(error) => break error,
            }
        };
        assert!(
            matches!(&error, BenchError::Memory { source, .. } if source.kind() == ErrorKind::InvalidData),
            "{error}"
        );
        child.wait().unwrap();
        let error = of_process(child.id()).unwrap_err();
        assert!(matches!(&error, BenchError::Memory { source, .. } if source.kind() == ErrorKind::NotFound), "{error}");
        assert!(error.to_string().contains(&child.id().to_string()));
    }
}
