//! Time of this thread on a processor, and the least of many measurements of it.

/// Measurements of each row.
const TIMES: usize = 12;
/// Nanoseconds that one measurement is to take.
const LONG_ENOUGH: f64 = 8e6;

fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn timed(work: &mut impl FnMut(u64), repetitions: u64) -> f64 {
    let begin = now();
    work(repetitions);
    (now() - begin) as f64
}

/// Nanoseconds of one operation: the least of several measurements. `work` repeats something as often as it is told, and
/// `operations` is how many of them are in one repetition.
pub fn least(operations: u32, mut work: impl FnMut(u64)) -> f64 {
    let mut repetitions = 1;
    let mut took = timed(&mut work, repetitions);
    while took < LONG_ENOUGH / 4.0 {
        assert!(repetitions < 1 << 40, "the compiler has left nothing to measure");
        repetitions *= 2;
        took = timed(&mut work, repetitions);
    }
    let repetitions = ((repetitions as f64 * LONG_ENOUGH / took) as u64).max(1);
    let least = (0..TIMES).map(|_| timed(&mut work, repetitions)).fold(f64::INFINITY, f64::min);
    least / repetitions as f64 / f64::from(operations)
}
