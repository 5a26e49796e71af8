//! Any bytes are read as stored answers or refused, with their checksum made right: else hardly anything would be looked
//! at. What was read can be used, written and read again.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mpp_symbolizer::StoredSymbols;

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    if bytes.len() >= 16 {
        let sum = checksum(&bytes[16..]).to_le_bytes();
        bytes[12..16].copy_from_slice(&sum);
    }
    match StoredSymbols::from_bytes(Path::new("input"), &bytes) {
        Ok(stored) => {
            let answers: Vec<_> = stored.answers().collect();
            assert_eq!(answers.len(), stored.len());
            assert!(answers.windows(2).all(|two| two[0].offset < two[1].offset));
            let again = stored.to_bytes().expect("it is not larger than it was");
            assert_eq!(StoredSymbols::from_bytes(Path::new("input"), &again).expect("just written"), stored);
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains("input") && !message.chars().any(char::is_control), "{message:?}");
        }
    }
});

/// CRC-32, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0xEDB8_8320 } else { 0 })
    })
}
