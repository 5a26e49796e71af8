//! As `profile_read`, with a beginning that makes a `profile.proto` of anything: every input reaches that reader.

#![no_main]

mod check;

use check::check;
use libfuzzer_sys::fuzz_target;
use mpp_profile::read;

/// Four types of values, by the numbers of their strings.
const TYPES: &[u8] = b"\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04\x0a\x04\x08\x05\x10\x02\x0a\x04\x08\x06\x10\x04";

fuzz_target!(|data: &[u8]| match read(&[TYPES, data].concat()[..], "input") {
    Ok(profile) => check(&profile),
    Err(error) => {
        let message = error.to_string();
        assert!(message.starts_with("input:") && !message.chars().any(char::is_control), "{message:?}");
    }
});
