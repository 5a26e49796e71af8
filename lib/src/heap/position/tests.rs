use super::*;
use crate::heap::allocate::allocate;
use crate::heap::release::release;
use crate::heap::tests::alone;

#[test]
fn each_allocation_moves_it_and_no_free_does() {
    let _alone = alone();
    assert!(crate::observe::sampler::restart(&crate::heap::tests::options(1 << 30, 1)));
    for size in [16, 300, 20_000, 3 << 20] {
        let kept: std::vec::Vec<_> = (0..500)
            .map(|_| {
                let before = here(1);
                // SAFETY: freed once.
                let block = unsafe { allocate(size) };
                assert!(!is_here(before, 1), "{size}");
                block
            })
            .collect();
        let (before, of_others) = (here(1), here(0));
        // SAFETY: as above.
        kept.into_iter().for_each(|block| unsafe { release(block) });
        assert!(is_here(before, 1) && is_here(of_others, 0), "{size}");
        assert!(!std::thread::spawn(move || is_here(before, 1)).join().unwrap());
    }
    assert!(!is_here(NOWHERE, 0));
    crate::observe::sampler::stop();
}
