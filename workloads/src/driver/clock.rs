//! Processor time as the kernel counts it (clock_gettime(2)); it does not run while a thread waits for a processor, so it
//! says more than the wall clock on a machine that does other things too.

/// Nanoseconds of processor time that the calling thread has used.
#[must_use]
pub fn thread_cpu() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Nanoseconds of processor time that all threads of this process have used, ended ones included.
#[must_use]
pub fn process_cpu() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Nanoseconds on a clock that only goes forward.
#[must_use]
pub fn wall() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer. These clocks exist on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_on_every_clock_and_sleep_on_one() {
        let before = (thread_cpu(), process_cpu(), wall());
        let mut sum = 0u64;
        while thread_cpu() < before.0 + 2_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(process_cpu() >= before.1 + 1_000_000 && wall() >= before.2 + 1_000_000);
        let (cpu, start) = (thread_cpu(), wall());
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(wall() - start >= 50_000_000 && thread_cpu() - cpu < 40_000_000);
    }
}
