//! jemalloc's dialect: a line `@ 0xADDRESS…` for each stack, then `t*: LIVE: BYTES [ALLOCATED: BYTES]` for all threads
//! together and a line `tN: …` for each thread.
//!
//! The lines of single threads are checked and added up to nothing: the profile keeps the sums of all threads. They differ
//! from the sum of the single ones where the program went on while it was dumped.

use std::io::Read;

use super::super::lines::{Fault, Lines};
use super::builder::Builder;
use super::header::amounts;
use super::scan::Scan;
use super::stack_table::{addresses, check_ended, is_maps_start};
use crate::error::ReadError;
use crate::model::Amount;
use crate::text::excerpt;

/// Reads everything after the header.
pub(super) fn read<R: Read>(lines: &mut Lines<'_, R>, builder: &mut Builder) -> Result<(), ReadError> {
    let mut reader = Reader::default();
    while let Some(line) = lines.next()? {
        let outcome = reader.line(line.text, line.ended, builder);
        outcome.map_err(|fault| lines.error(fault))?;
    }
    reader.finish(builder).map_err(|fault| lines.error(fault))
}

#[derive(Default)]
struct Reader {
    in_maps: bool,
    /// The stack whose numbers are being read; `None` before the first.
    stack: Option<Vec<u64>>,
    /// The `t*` line of the stack or, before the first stack, of the whole.
    total: Option<(Amount, Amount)>,
    /// Live and allocated of the `tN` lines since the last `t*`.
    threads: (Amount, Amount),
    disagreements: u64,
}

impl Reader {
    fn line(&mut self, text: &[u8], ended: bool, builder: &mut Builder) -> Result<(), Fault> {
        if is_maps_start(text) {
            self.end_stack(builder)?;
            self.in_maps = true;
            return builder.start_maps(ended);
        }
        if self.in_maps {
            return builder.map_line(text, ended);
        }
        check_ended(ended)?;
        let mut scan = Scan::new(text);
        scan.spaces();
        match scan.rest().first() {
            None => Ok(()),
            Some(b'#') => builder.comment(text),
            Some(b'@') => {
                self.end_stack(builder)?;
                scan.expect("@")?;
                self.stack = Some(addresses(&mut scan, builder.limits().stack_depth)?);
                Ok(())
            }
            Some(b't') => Ok(self.numbers(&mut scan)?),
            Some(_) => Err(not_understood(text).into()),
        }
    }

    /// A line `t*: …` or `tN: …`. jemalloc writes the name of the thread after the numbers.
    fn numbers(&mut self, scan: &mut Scan<'_>) -> Result<(), String> {
        scan.expect("t")?;
        if scan.take(b"*").is_some() {
            scan.expect(":")?;
            if self.total.is_some() {
                return Err("a second \"t*:\" line; expected \"@ 0xADDRESS…\" before it".into());
            }
            self.total = Some(amounts(scan)?);
            return scan.end();
        }
        scan.number("the number of the thread")?;
        scan.expect(":")?;
        let (live, allocated) = amounts(scan)?;
        if self.total.is_none() {
            return Err("numbers of a thread; expected \"t*:\" before them".into());
        }
        let sum = self.threads.0.checked_add(live).zip(self.threads.1.checked_add(allocated));
        self.threads = sum.ok_or("the sum of the threads exceeds 64 bits")?;
        Ok(())
    }

    /// The lines of a stack are complete, or those of the whole, which are only checked.
    fn end_stack(&mut self, builder: &mut Builder) -> Result<(), Fault> {
        let threads = std::mem::take(&mut self.threads);
        let total = self.total.take();
        let Some(stack) = self.stack.take() else {
            return if total.is_some() { Ok(()) } else { Err(missing_total("the header").into()) };
        };
        let (live, allocated) = total.ok_or_else(|| missing_total("the stack"))?;
        if threads != (live, allocated) {
            self.disagreements += 1;
        }
        builder.sample(live, allocated, stack)
    }

    fn finish(mut self, builder: &mut Builder) -> Result<(), Fault> {
        if !self.in_maps {
            self.end_stack(builder)?;
        }
        if self.disagreements > 0 {
            builder.warn(format!(
                "of {} stacks the threads do not add up to the total: the program went on while it was dumped",
                self.disagreements
            ));
        }
        Ok(())
    }
}

fn missing_total(of: &str) -> String {
    format!("expected a line \"t*: OBJECTS: BYTES [OBJECTS: BYTES]\" for {of} before this")
}

fn not_understood(text: &[u8]) -> String {
    if text.starts_with(b"heap profile:") || text.starts_with(b"heap_v2/") {
        return "a second dump begins here; split the file".into();
    }
    let record = text.trim_ascii_start().first().is_some_and(u8::is_ascii_digit);
    let why = if record { "; this is a line of gperftools' form, under jemalloc's header" } else { "" };
    format!("expected \"@ 0xADDRESS…\", \"t*: …\", \"tN: …\" or MAPPED_LIBRARIES:, found {}{why}", excerpt(text))
}
