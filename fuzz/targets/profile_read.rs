//! Any bytes are read as a profile or refused; what was read has views that add up and can be written and read again.

#![no_main]

mod check;

use check::check;
use libfuzzer_sys::fuzz_target;
use mpp_profile::read;

fuzz_target!(|data: &[u8]| match read(data, "input") {
    Ok(profile) => check(&profile),
    Err(error) => {
        let message = error.to_string();
        assert!(message.starts_with("input") && !message.chars().any(char::is_control), "{message:?}");
    }
});
