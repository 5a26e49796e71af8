//! Any bytes are read as stored answers or refused, as they are and behind a header with the right checksum: else hardly
//! anything would be looked at. What was read can be used, written and read again.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mpp_symbolizer::StoredSymbols;

fuzz_target!(|data: &[u8]| {
    check(data);
    let mut bytes = HEADER.to_vec();
    bytes.extend_from_slice(&checksum(data).to_le_bytes());
    bytes.extend_from_slice(data);
    check(&bytes);
});

/// What comes before the checksum.
const HEADER: &[u8] = b"\xf0mppsy\r\n\x01\0\0\0";

fn check(bytes: &[u8]) {
    match StoredSymbols::from_bytes(Path::new("input"), bytes) {
        Ok(stored) => {
            let answers: Vec<_> = stored.answers().collect();
            assert_eq!(answers.len(), stored.len());
            assert!(answers.windows(2).all(|two| two[0].offset < two[1].offset));
            let again = stored.to_bytes().expect("it is not larger than it was");
            assert_eq!(StoredSymbols::from_bytes(Path::new("input"), &again).expect("just written"), stored);
            // Copies lose what nothing refers to, and tell the same.
            let copied = StoredSymbols::new(stored.path().into(), None, stored.source().clone(), answers.clone());
            assert!(copied.answers().eq(answers));
            assert_eq!(stored.with(&copied).len(), stored.len());
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains("input") && !message.chars().any(char::is_control), "{message:?}");
        }
    }
}

/// CRC-32, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0xEDB8_8320 } else { 0 })
    })
}
