//! The dialects with one line for each record: `LIVE: BYTES [ALLOCATED: BYTES] @ 0xADDRESS…`.

use std::io::Read;

use super::super::lines::{Fault, Lines};
use super::builder::Builder;
use super::header::amounts;
use super::scan::Scan;
use crate::error::ReadError;
use crate::text::excerpt;

/// Begins the mapping table. The second form is of Google's servers.
const MAPS: [&[u8]; 2] = [b"MAPPED_LIBRARIES:", b"--- Memory map: ---"];

/// Reads everything after the header.
pub(super) fn read<R: Read>(lines: &mut Lines<'_, R>, builder: &mut Builder) -> Result<(), ReadError> {
    let mut in_maps = false;
    while let Some(line) = lines.next()? {
        let outcome = read_line(line.text, line.ended, &mut in_maps, builder);
        outcome.map_err(|fault| lines.error(fault))?;
    }
    Ok(())
}

fn read_line(text: &[u8], ended: bool, in_maps: &mut bool, builder: &mut Builder) -> Result<(), Fault> {
    if is_maps_start(text) {
        *in_maps = true;
        return builder.start_maps(ended);
    }
    if text.starts_with(b"#") && (ended || !*in_maps) {
        check_ended(ended)?;
        return builder.comment(text);
    }
    if *in_maps {
        return builder.map_line(text, ended);
    }
    check_ended(ended)?;
    if text.trim_ascii().is_empty() {
        return builder.flush();
    }
    record(text, builder)
}

fn record(text: &[u8], builder: &mut Builder) -> Result<(), Fault> {
    let mut scan = Scan::new(text);
    scan.spaces();
    let first = scan.rest().first().copied().unwrap_or(b' ');
    if !first.is_ascii_digit() && first != b'-' {
        return Err(not_a_record(text).into());
    }
    let (live, allocated) = amounts(&mut scan)?;
    scan.expect("@")?;
    let addresses = addresses(&mut scan, builder.limits().stack_depth)?;
    builder.sample(live, allocated, addresses)
}

/// All addresses up to the end of the line.
pub(super) fn addresses(scan: &mut Scan<'_>, most: usize) -> Result<Vec<u64>, Fault> {
    let mut addresses = Vec::new();
    while let Some(address) = scan.address()? {
        if addresses.len() >= most {
            return Err(Fault::TooLarge(format!("a stack of more than {most} addresses")));
        }
        addresses.push(address);
    }
    Ok(addresses)
}

/// The mapping table begins in this line.
pub(super) fn is_maps_start(text: &[u8]) -> bool {
    MAPS.contains(&text.trim_ascii())
}

pub(super) fn check_ended(ended: bool) -> Result<(), Fault> {
    if ended { Ok(()) } else { Err(super::CUT_OFF.to_owned().into()) }
}

fn not_a_record(text: &[u8]) -> String {
    if text.starts_with(b"heap profile:") || text.starts_with(b"heap_v2/") {
        return "a second dump begins here; split the file".into();
    }
    let jemalloc = text.starts_with(b"@") || text.trim_ascii_start().starts_with(b"t");
    let why = if jemalloc { "; this is a line of jemalloc's form, under the header of another" } else { "" };
    format!(
        "expected \"OBJECTS: BYTES [OBJECTS: BYTES] @ 0xADDRESS…\" or MAPPED_LIBRARIES:, found {}{why}",
        excerpt(text)
    )
}
