//! Timelines: what was sampled and when, and how much memory the process had meanwhile, as the library streams it into
//! `timeline.bin`. `docs/formats.md` describes the file.
//!
//! A [`Timeline`] is read as a stream: an iterator of [`Item`]s, with [`Tables`] that explain the sites they name. Memory is
//! needed for the tables only, however long the recording is. [`profile`] makes a heap profile of a stretch of it.
//!
//! A file that ends in the middle of a block is no error: its process was killed, or still runs. What is whole is read, and
//! [`Timeline::ending`] tells the rest. Damage in the middle is an error with its offset.

mod blocks;
mod curve;
mod numbers;
mod replay;
mod tables;

use std::io::Read;

use super::Limits;
use crate::error::{Position, ReadError};
use blocks::Blocks;
use numbers::Numbers;

pub use blocks::Header;
pub use curve::{Curve, Moment};
pub use replay::{Slice, profile};
pub use tables::{Run, Site, SiteId, Stack, StackNumber, Tables, Thread};

/// The first bytes of every timeline.
pub const MAGIC: &[u8; 8] = b"\xf0mpptl\r\n";

/// What has happened to a sampled block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Happening {
    /// It was allocated.
    Allocated,
    /// It was freed.
    Freed,
    /// Its content has moved to another block.
    Moved,
    /// It has another requested size, in place.
    Resized,
}

/// An event of a sampled block. Each stands for [`Header::weight`] such blocks, times what the sampling rate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub happening: Happening,
    /// Where the block was allocated.
    pub site: SiteId,
    /// When it happened, in microseconds since the start. Events of one thread are in order; those of several are nearly.
    pub time: u64,
    /// When the block was allocated, in microseconds since the start.
    pub birth: u64,
    /// Bytes that are asked for; `None` where a block ends.
    pub requested: Option<u64>,
    /// The number of the thread that did it.
    pub thread: u32,
}

/// What was measured of the process at one time. Bytes, but for the blocks. What a file does not tell is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// Microseconds since the start.
    pub time: u64,
    /// In memory, as the kernel counts it.
    pub resident: u64,
    /// The most that ever was.
    pub peak_resident: u64,
    /// Of the allocator's memory, what was handed out since it came from the kernel or was given back to it.
    pub committed: u64,
    /// Usable bytes of blocks that the program holds: counted, not estimated.
    pub live: u64,
    /// Those blocks.
    pub live_blocks: u64,
    /// Usable bytes that were ever allocated.
    pub allocated: u64,
    /// Given back to the kernel and not handed out again.
    pub purged: u64,
    /// Ever given back.
    pub purged_total: u64,
}

/// One thing that a timeline tells, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Of a sampled block.
    Event(Event),
    /// A measurement.
    Tick(Tick),
    /// What somebody had to say about a moment. Comes from the input: escape the text before it is printed.
    Mark {
        /// Microseconds since the start.
        time: u64,
        /// The text; bytes that are not UTF-8 were replaced.
        text: String,
    },
}

/// How a recording ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With the process.
    Exit,
    /// It was stopped.
    Stopped,
    /// Without a word: the process was killed, has executed another program, or still runs.
    Open,
    /// As [`Ending::Open`], and a last block that is not whole was left out.
    Cut {
        /// Where that block begins.
        offset: u64,
        /// Bytes that were left out.
        bytes: u64,
    },
}

/// A timeline that is being read.
#[derive(Debug)]
pub struct Timeline<'a, R> {
    blocks: Blocks<'a, R>,
    tables: Tables,
    /// The events of the block that was read last, and how far they were told.
    events: Vec<u8>,
    told: usize,
    last_time: u64,
    /// Where the payload of that block begins in the file.
    events_offset: u64,
    ending: Ending,
    latest: u64,
    lost: u64,
    older: u64,
}

/// Reads a timeline. `name` is what errors call the input.
///
/// # Errors
/// When the input cannot be read, does not begin like a timeline, or is of a later version.
pub fn open<'a, R: Read>(input: R, name: &'a str, limits: &Limits) -> Result<Timeline<'a, R>, ReadError> {
    let blocks = Blocks::open(input, name)?;
    Ok(Timeline {
        blocks,
        tables: Tables::new(limits),
        events: Vec::new(),
        told: 0,
        last_time: 0,
        events_offset: 0,
        ending: Ending::Open,
        latest: 0,
        lost: 0,
        older: 0,
    })
}

/// Contents of blocks. Others are of a later writer and are skipped.
mod content {
    pub(super) const DEFINITIONS: u8 = 1;
    pub(super) const EVENTS: u8 = 2;
    pub(super) const TICK: u8 = 3;
    pub(super) const MODULES: u8 = 4;
    pub(super) const MARK: u8 = 5;
    pub(super) const STATE: u8 = 6;
}

impl<R: Read> Timeline<'_, R> {
    /// What the first bytes say.
    pub fn header(&self) -> &Header {
        &self.blocks.header
    }

    /// What the items told so far refer to.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// How the recording ends, once all items were told.
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// The latest time that was told so far, in microseconds since the start.
    pub fn latest(&self) -> u64 {
        self.latest
    }

    /// Events that the recorder could not keep, as far as it could say so.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Ends of blocks that were allocated before the start, which are not told one by one.
    pub fn older(&self) -> u64 {
        self.older
    }

    /// The next item; `None` at the end.
    ///
    /// # Errors
    /// When the input cannot be read, or is damaged before its end.
    pub fn next_item(&mut self) -> Result<Option<Item>, ReadError> {
        loop {
            if self.told < self.events.len() {
                let event = self.event().map_err(|message| self.damaged(message))?;
                self.latest = self.latest.max(event.time);
                return Ok(Some(Item::Event(event)));
            }
            if !self.blocks.advance(&mut self.ending)? {
                return Ok(None);
            }
            if let Some(item) = self.block().map_err(|message| self.damaged(message))? {
                return Ok(Some(item));
            }
        }
    }

    fn damaged(&self, message: String) -> ReadError {
        let offset =
            if self.told < self.events.len() { self.events_offset + self.told as u64 } else { self.blocks.offset };
        ReadError::Damaged { name: self.blocks.name.to_owned(), position: Position::Offset(offset), message }
    }

    /// Take a block; its item, if it is one.
    fn block(&mut self) -> Result<Option<Item>, String> {
        let mut payload = Numbers::new(&self.blocks.payload);
        match self.blocks.content {
            content::DEFINITIONS => self.tables.define(payload)?,
            content::MODULES => self.tables.add_modules(&self.blocks.payload)?,
            content::EVENTS => {
                self.last_time = payload.number("the time of a block")?;
                self.told = payload.position();
                self.events_offset = self.blocks.payload_offset();
                // Swapped, not copied: the block's memory is filled anew by the next one.
                std::mem::swap(&mut self.events, &mut self.blocks.payload);
            }
            content::TICK => {
                let time = payload.number("the time of a tick")?;
                self.latest = self.latest.max(time);
                return Ok(Some(Item::Tick(tick(time, &mut payload)?)));
            }
            content::MARK => {
                let time = payload.number("the time of a mark")?;
                self.latest = self.latest.max(time);
                let text = String::from_utf8_lossy(payload.rest()).into_owned();
                return Ok(Some(Item::Mark { time, text }));
            }
            content::STATE => {
                let mut numbers = [0; 4];
                for number in &mut numbers {
                    *number = payload.number("the state of the recording")?;
                }
                let [time, lost, older, end] = numbers;
                self.latest = self.latest.max(time);
                (self.lost, self.older) = (lost, older);
                self.ending = match end {
                    0 => Ending::Open,
                    1 => Ending::Exit,
                    _ => Ending::Stopped,
                };
            }
            _ => {}
        }
        Ok(None)
    }

    fn event(&mut self) -> Result<Event, String> {
        let mut numbers = Numbers::at(&self.events, self.told);
        let head = numbers.number("an event")?;
        let site = u32::try_from(head >> 2).ok().map(SiteId).filter(|&id| self.tables.site(id).is_some());
        let site = site.ok_or_else(|| format!("an event of site {}, which was not explained before", head >> 2))?;
        let known = self.tables.known(site);
        let time = numbers.difference(self.last_time, "the time of an event")?;
        let (happening, requested, thread, age) = match head & 3 {
            0 => {
                let requested = numbers.difference_down(known.block_size, "a requested size")?;
                (Happening::Allocated, Some(requested), known.thread, 0)
            }
            3 => {
                let age = numbers.number("the age of a block")?;
                let requested = numbers.difference_down(known.block_size, "a requested size")?;
                (Happening::Resized, Some(requested), known.thread, age)
            }
            end => {
                let age = numbers.number("the age of a block")?;
                let thread = numbers.number("the number of a thread")?;
                let thread = match thread.checked_sub(1) {
                    None => known.thread,
                    Some(number) => u32::try_from(number).map_err(|_| format!("a thread with number {number}"))?,
                };
                (if end == 1 { Happening::Freed } else { Happening::Moved }, None, thread, age)
            }
        };
        let birth = time.checked_sub(age).ok_or_else(|| format!("a block of age {age} at time {time}"))?;
        self.told = numbers.position();
        self.last_time = time;
        Ok(Event { happening, site, time, birth, requested, thread })
    }
}

impl<R: Read> Iterator for Timeline<'_, R> {
    type Item = Result<Item, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_item().transpose()
    }
}

fn tick(time: u64, payload: &mut Numbers<'_>) -> Result<Tick, String> {
    let count = payload.number("the number of measurements")?;
    let mut values = [0u64; 8];
    for at in 0..count {
        let value = payload.number("a measurement")?;
        if let Some(known) = usize::try_from(at).ok().and_then(|at| values.get_mut(at)) {
            *known = value;
        }
    }
    let [resident, peak_resident, committed, live, live_blocks, allocated, purged, purged_total] = values;
    Ok(Tick { time, resident, peak_resident, committed, live, live_blocks, allocated, purged, purged_total })
}

#[cfg(test)]
mod tests;
