//! Where the code of the stacks lies: the table of modules.

use super::block::Content;
use super::disk::Trouble;
use super::journal::Journal;
use crate::observe::modules::{DIGITS, Modules, without_deleted};
use crate::os::{self, File};

/// Nanoseconds between two tables, at least; the last one stands at the end. What is killed before has the one before.
const REST: u64 = 10_000_000_000;
/// Bits of the byte before a part of a table.
const FIRST: u8 = 1;
const LAST: u8 = 2;

/// Whether a part is the first of its table.
pub(super) fn is_first(payload: &[u8]) -> bool {
    payload.first().is_some_and(|flags| flags & FIRST != 0)
}

impl Journal {
    /// Write a table if there are stacks that the last one may not explain, and it is time. The block of events is empty before and after.
    pub(super) fn tell_modules(&mut self, file: &File, now: u64, at_once: bool) -> Result<(), Trouble> {
        if !self.new_code || !(at_once || now >= self.next_modules) {
            return Ok(());
        }
        (self.new_code, self.next_modules) = (false, now.saturating_add(REST));
        // Without memory or `/proc` there is none.
        let Ok(modules) = os::on_large_stack(Modules::read) else { return Ok(()) };
        self.events.bytes(&[FIRST]);
        for module in modules.all().iter().filter(|module| !module.build_id.as_bytes().is_empty()) {
            let mut digits = DIGITS;
            let hex = module.build_id.hex(&mut digits);
            let path = without_deleted(modules.path(module));
            for part in [b"# build_id ".as_slice(), hex, b" ", path, b"\n"] {
                self.add_text(file, part)?;
            }
        }
        self.add_text(file, modules.map().text())?;
        let flags = self.events.first() | LAST;
        self.events.set_first(flags);
        self.disk.write(file, self.events.sealed(Content::Modules))?;
        self.events.clear();
        Ok(())
    }

    fn add_text(&mut self, file: &File, mut text: &[u8]) -> Result<(), Trouble> {
        while !text.is_empty() {
            if self.events.room() == 0 {
                self.disk.write(file, self.events.sealed(Content::Modules))?;
                self.events.clear();
                self.events.bytes(&[0]);
            }
            let (part, rest) = text.split_at(text.len().min(self.events.room()));
            self.events.bytes(part);
            text = rest;
        }
        Ok(())
    }
}
