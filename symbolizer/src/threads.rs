//! Sharing work among as many threads as there are processors, at every level of the work.
//!
//! A batch has many modules, and a module many units; either may be one big item that should not keep all threads but
//! one waiting. So all levels draw on one number of [`Permits`]: whoever has items left asks for another thread before
//! each item, and gets one as soon as somebody else has run out.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::thread;

/// How many more threads may be started.
#[derive(Debug)]
pub(crate) struct Permits(AtomicIsize);

impl Permits {
    /// For `threads` threads together with the present one; 0 means as many as the machine runs at once.
    pub(crate) fn new(threads: usize) -> Self {
        let threads = if threads == 0 { thread::available_parallelism().map_or(1, usize::from) } else { threads };
        Permits(AtomicIsize::new(threads.saturating_sub(1).min(1024) as isize))
    }

    fn try_take(&self) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| (left > 0).then_some(left - 1)).is_ok()
    }

    fn add(&self, permits: isize) {
        self.0.fetch_add(permits, Relaxed);
    }
}

/// Does `work` for each of `items` and returns the results in the same order. Each thread makes its own worker.
pub(crate) fn for_each<T: Sync, W, R: Send>(
    items: &[T],
    permits: &Permits,
    new_worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, &T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    let take_one = |worker: &mut W| {
        let index = next.fetch_add(1, Relaxed);
        let Some(item) = items.get(index) else { return false };
        let result = work(worker, item);
        results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        true
    };
    thread::scope(|scope| {
        let mut worker = new_worker();
        loop {
            // Two left: one for this thread and one for another.
            if next.load(Relaxed).saturating_add(1) < items.len() && permits.try_take() {
                scope.spawn(|| {
                    let mut worker = new_worker();
                    while take_one(&mut worker) {}
                    permits.add(1);
                });
            }
            if !take_one(&mut worker) {
                break;
            }
        }
        drop(worker);
        // While this thread waits for the others, somebody else may run in its place.
        permits.add(1);
    });
    permits.add(-1);
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::{Permits, for_each};

    #[test]
    fn results_come_in_order_and_permits_come_back() {
        for threads in [1, 2, 5] {
            let permits = Permits::new(threads);
            let items: Vec<u32> = (0..100).collect();
            let results = for_each(
                &items,
                &permits,
                || (),
                |(), outer| {
                    let inner = for_each(&items, &permits, || 0, |_, inner| outer * inner);
                    inner.into_iter().sum::<u32>()
                },
            );
            assert_eq!(results, items.iter().map(|i| i * 4950).collect::<Vec<_>>());
            assert_eq!(permits.0.into_inner(), threads as isize - 1);
        }
        assert!(for_each(&[], &Permits::new(3), || (), |(), item: &u8| *item).is_empty());
    }
}
