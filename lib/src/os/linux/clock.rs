//! What time it is, and how much of it was spent computing. By system calls: what the kernel maps into the process for this would have
//! to be looked up, and a clock is read a few times in a sweep, not in a block.

use super::syscall::{CLOCK_GETTIME, syscall};

const REALTIME: usize = 0;
const MONOTONIC: usize = 1;
const PROCESS_CPUTIME: usize = 2;
const THREAD_CPUTIME: usize = 3;

/// Nanoseconds since some moment before the process began; never goes back, stands still while the machine sleeps.
pub(crate) fn now() -> u64 {
    read(MONOTONIC)
}

/// Nanoseconds since the beginning of 1970, by the machine's calendar, which may be set forward and back.
pub(crate) fn calendar_time() -> u64 {
    read(REALTIME)
}

/// Nanoseconds that all threads of the process, also those that have ended, have run on a processor.
pub(crate) fn process_cpu_time() -> u64 {
    read(PROCESS_CPUTIME)
}

/// Nanoseconds that the calling thread has run on a processor.
pub(crate) fn thread_cpu_time() -> u64 {
    read(THREAD_CPUTIME)
}

/// The processor's own count, at its own rate (about one a nanosecond or faster), some 20 cycles to read. Nothing waits for it and it
/// waits for nothing: good for stretches of a microsecond and more.
#[inline]
pub(crate) fn cycles() -> u64 {
    // SAFETY: every x86-64 has the counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Whether [`cycles`] count at one rate whatever the processor does, and the same on all processors, as far as they say.
pub(crate) fn cycles_are_steady() -> bool {
    use core::arch::x86_64::__cpuid;
    const HIGHEST: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    __cpuid(HIGHEST).eax >= POWER && __cpuid(POWER).edx & INVARIANT != 0
}

fn read(clock: usize) -> u64 {
    let mut time = [0u64; 2];
    // SAFETY: the kernel writes two words.
    unsafe { syscall(CLOCK_GETTIME, [clock, time.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_on() {
        let (start, process, thread, counted) = (now(), process_cpu_time(), thread_cpu_time(), cycles());
        while thread_cpu_time() < thread + 2_000_000 {}
        assert!(now() > start && cycles() > counted);
        // A thread's share is in that of the process.
        assert!(process_cpu_time() >= process + 2_000_000);
        assert!(thread_cpu_time() <= process_cpu_time());
    }

    #[test]
    fn sleep_is_no_work() {
        let (start, thread) = (now(), thread_cpu_time());
        std::thread::sleep(std::time::Duration::from_millis(60));
        assert!(now() - start >= 60_000_000);
        assert!(thread_cpu_time() - thread < 60_000_000);
    }
}
