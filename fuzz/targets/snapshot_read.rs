//! Any bytes are read as a snapshot of a heap or refused; what was read is consistent.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpp_profile::analysis::occupancy::Occupancy;
use mpp_profile::formats::snapshot::read;

fuzz_target!(|data: &[u8]| match read(data, "input") {
    Ok(snapshot) => {
        for slab in Occupancy::of(&snapshot).slabs {
            let mut sum = slab.bytes.kept().saturating_add(slab.bytes.returned);
            sum = sum.saturating_add(slab.bytes.unused);
            assert_eq!(sum, slab.bytes.space);
        }
        for page in &snapshot.pages {
            assert!(page.used <= page.reserved);
            if page.live.is_some() {
                assert_eq!(page.live_blocks().count(), page.used as usize);
            }
        }
    }
    Err(error) => {
        let message = error.to_string();
        assert!(message.starts_with("input") && !message.chars().any(char::is_control), "{message:?}");
    }
});
