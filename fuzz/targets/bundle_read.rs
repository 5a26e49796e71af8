//! Any bytes are read as a bundle or refused, with the checksums of their headers made right. What was read is within the
//! limits, and can be written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mpp_profile::formats::Limits;
use mpp_profile::formats::bundle::{HEAD, is_bundle, open, write};

/// Small, so that inputs reach them.
const MOST: u64 = 4096;

const BLOCK: usize = 512;

fuzz_target!(|data: &[u8]| {
    check(data);
    let mut file = data.to_vec();
    file.chunks_exact_mut(BLOCK).filter(|block| &block[257..262] == b"ustar").for_each(repair);
    check(&file);
});

fn check(file: &[u8]) {
    let known = is_bundle(&file[..file.len().min(HEAD)]);
    let limits = Limits { input_bytes: MOST, ..Limits::default() };
    let read = open(file, "input", &limits).and_then(|reader| {
        assert!(known, "what can be read is known by its beginning");
        let manifest = reader.manifest().clone();
        Ok((manifest, reader.read(|name| !name.starts_with('x'))?))
    });
    match read {
        Ok((manifest, files)) => {
            assert!(files.values().map(|content| content.len() as u64).sum::<u64>() <= MOST);
            let mut again = Vec::new();
            let all = files.iter().map(|(name, content)| (name.as_str(), content.as_slice()));
            // Some names are longer than those that are written.
            if write(&manifest, all, &mut again).is_ok() {
                let limits = Limits { input_bytes: 1 << 30, ..limits };
                let reader = open(&again[..], "written", &limits).expect("a bundle");
                assert_eq!(reader.manifest(), &manifest);
                let read = reader.read(|_| true).expect("it was just written");
                assert!(files.iter().all(|(name, content)| read.get(name).is_none_or(|read| read == content)));
            }
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("input") && !message.chars().any(char::is_control), "{message:?}");
        }
    }
}

/// Makes the checksum of a header right.
fn repair(block: &mut [u8]) {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}
