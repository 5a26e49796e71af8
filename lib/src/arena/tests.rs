use super::*;
use crate::heap;
use crate::os;
use std::{sync::MutexGuard, vec::Vec};

/// The arena is ready once somebody has allocated.
fn ready() -> MutexGuard<'static, ()> {
    let alone = heap::tests::alone();
    // SAFETY: a block is allocated and freed.
    unsafe { heap::release::release(heap::allocate::allocate(1)) }
    alone
}

#[test]
fn a_pool_gives_what_it_has_and_no_more() {
    let _alone = ready();
    let arena = reserve(24 * SLICE, false, true).unwrap();
    let (start, length) = arena.area();
    assert!(start.is_multiple_of(SLICE) && length == 24 * SLICE);
    let pool = arena.pool();
    for round in 0..20 {
        let mut runs = Vec::new();
        for slices in (1..=5).cycle().skip(round) {
            let Some(run) = allocate_in(pool, slices, 1) else { break };
            assert_eq!(pool_of(run), pool);
            // SAFETY: the run was just handed out to us.
            let length = unsafe { (*slice(run)).length() };
            assert!(length == slices && address_of(run) >= start && address_of(run + slices) <= start + 24 * SLICE);
            runs.push((run, slices));
        }
        runs.sort();
        assert!(runs.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        assert!(runs.iter().map(|run| run.1).sum::<usize>() > 24 - 5);
        let middle = round % runs.len();
        runs.rotate_left(middle);
        runs.iter().for_each(|&(run, _)| free(run, Residence::UNKNOWN));
        // All of it is one run again, also for those who want an alignment.
        let whole = allocate_in(pool, 24, 1).unwrap();
        assert_eq!(address_of(whole), start);
        assert!(allocate_in(pool, 1, 1).is_none());
        free(whole, Residence::UNKNOWN);
    }
    let near = allocate_in(pool, 3, 1).unwrap();
    // SAFETY: the run is ours; behind it 21 slices are free.
    unsafe {
        assert!(!extend(near, 25) && extend(near, 24) && (*slice(near)).length() == 24);
    }
    free(near, Residence::UNKNOWN);
}

#[test]
fn common_runs_do_not_come_from_an_exclusive_arena() {
    let _alone = ready();
    let arena = reserve(8 * SLICE, false, true).unwrap();
    let (start, length) = arena.area();
    let runs: Vec<_> = (0..200).map(|_| allocate(1, 1).unwrap()).collect();
    for run in runs {
        assert!(pool_of(run) == Pool::COMMON && !(start..start + length).contains(&address_of(run)));
        free(run, Residence::UNKNOWN);
    }
}

#[test]
fn the_window_goes_on_behind_foreign_mappings() {
    let _alone = ready();
    // Other tests may make the window grow meanwhile.
    let obstacle = loop {
        let end = window::end_of_mapped();
        if os::map_at(address_of(end), os::PAGE).is_ok() {
            break end;
        }
    };
    let run = (0..1000).map(|_| allocate(300, 1).unwrap()).find(|&run| run > obstacle).unwrap();
    assert!(!is_ours(obstacle) && is_ours(obstacle - 1) && is_ours(run));
    let mut heads = Vec::new();
    walk(|run, kind| heads.push((run, kind)));
    assert!(heads.contains(&(obstacle, Kind::Foreign)) && heads.contains(&(run, Kind::Transit)), "{heads:?}");
    free(run, Residence::fresh(300));
    assert!((0..100).all(|_| allocate(1, 1).unwrap() != obstacle));
}
