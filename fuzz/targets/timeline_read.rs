//! Any bytes are read as a timeline or refused, with their checksums made right: else hardly anything would be looked at.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpp_profile::formats::Limits;
use mpp_profile::formats::timeline::{self, Slice};
use mpp_profile::{Metric, Unit};

fuzz_target!(|data: &[u8]| {
    let mut file = data.to_vec();
    repair(&mut file);
    let slices = [Slice::ALL, Slice::at(1_000_000), Slice { from: 500_000, to: 2_000_000 }];
    for slice in slices {
        match timeline::profile(&file[..], "input", &Limits::default(), slice) {
            Ok(profile) => {
                let [live, allocated] = [Metric::Live, Metric::Allocated].map(|metric| profile.recorded(metric));
                assert!(live.objects <= allocated.objects && live.bytes <= allocated.bytes);
                assert!(profile.estimate(Metric::Allocated).standard_error(Unit::Bytes).is_finite());
            }
            Err(error) => {
                let message = error.to_string();
                assert!(message.starts_with("input") && !message.chars().any(char::is_control), "{message:?}");
            }
        }
    }
});

/// Make the checksums of header and blocks right.
fn repair(file: &mut [u8]) {
    if file.len() < 64 {
        return;
    }
    let sum = checksum(&file[..60], &[]).to_le_bytes();
    file[60..64].copy_from_slice(&sum);
    let mut at = 64;
    while at + 12 <= file.len() {
        let length = u32::from_le_bytes([file[at + 4], file[at + 5], file[at + 6], file[at + 7]]) as usize;
        let end = at + 12 + length;
        if end > file.len() {
            return;
        }
        let sum = checksum(&file[at..at + 8], &file[at + 12..end]).to_le_bytes();
        file[at + 8..at + 12].copy_from_slice(&sum);
        at = end;
    }
}

/// CRC-32, bit by bit.
fn checksum(one: &[u8], two: &[u8]) -> u32 {
    !one.iter().chain(two).fold(!0, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0xEDB8_8320 } else { 0 })
    })
}
