//! From events that wait to blocks in the file. All of it under one lock, by whoever drains.

use super::block::{Block, Content, Encoded, LONGEST_VARINT, MOST_EVENT, MOST_PAYLOAD, ROOM, RUN, SITE, STACK, THREAD};
use super::disk::{Disk, Header, Trouble};
use super::event::{Event, Kind, is_kept};
use super::numbering::Numbering;
use super::shards::{self, EVENTS, SHARDS};
use super::source::{self, Held, Source};
use super::tick::Tick;
use crate::os::{self, File};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The least budget: a few blocks must fit in any case.
pub(super) const LEAST_BUDGET: u64 = 512 * 1024;

/// Why a file ends. The numbers are those in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum End {
    /// It goes on.
    Not = 0,
    /// The process ends.
    Exit = 1,
}

/// The recording of this process.
pub(super) struct Journal {
    pub(super) disk: Disk,
    pub(super) header: Header,
    /// Bytes that the file may have, and that the file and a thinned copy of it may have together.
    pub(super) budget: u64,
    pub(super) sites: Numbering,
    pub(super) stacks: Numbering,
    pub(super) threads: Numbering,
    pub(super) definitions: Block,
    pub(super) events: Block,
    /// Room for what a thinned copy is made from.
    pub(super) spare: *mut u8,
    scratch: *mut Event,
    /// The sampling run that was told last; 0 = none.
    run: u32,
    /// Stacks were explained since the modules were written.
    pub(super) new_code: bool,
    /// When these are to be written again.
    pub(super) next_modules: u64,
    /// Events that are missing, and ends of blocks that are older than the file: as the file says.
    told: (u64, u64),
    /// Ends of blocks that were allocated before the start.
    older: u64,
}

impl Journal {
    pub(super) const NONE: Journal = Journal {
        disk: Disk::NONE,
        header: Header { level: 0, process: 0, wall: 0, start: 0, interval: 0 },
        budget: 0,
        sites: Numbering::NONE,
        stacks: Numbering::NONE,
        threads: Numbering::NONE,
        definitions: Block::NONE,
        events: Block::NONE,
        spare: core::ptr::null_mut(),
        scratch: core::ptr::null_mut(),
        run: 0,
        new_code: false,
        next_modules: 0,
        told: (0, 0),
        older: 0,
    };

    /// Begin a file. Memory is kept from the one before.
    pub(super) fn begin(&mut self, header: Header, budget: u64) -> Result<(), Trouble> {
        if self.scratch.is_null() {
            let waiting = EVENTS * size_of::<Event>();
            let memory = os::map(waiting + 3 * ROOM);
            if memory.is_null() {
                return Err(Trouble::Memory);
            }
            self.scratch = memory.cast();
            let block = |number: usize| memory.wrapping_add(waiting + number * ROOM);
            // SAFETY: fresh memory, of which each block gets a part of its own.
            (self.definitions, self.events) = unsafe { (Block::new(block(0)), Block::new(block(1))) };
            self.spare = block(2);
        }
        self.definitions.clear();
        self.events.clear();
        [&mut self.sites, &mut self.stacks, &mut self.threads].into_iter().for_each(Numbering::forget);
        (self.run, self.new_code, self.next_modules, self.told, self.older) = (0, false, 0, (0, 0), 0);
        self.header = header;
        self.budget = budget.max(LEAST_BUDGET);
        self.disk.create(&header)
    }

    /// Microseconds since the start.
    pub(super) fn micros(&self, time: u64) -> u64 {
        time.saturating_sub(self.header.start) / 1000
    }

    /// Write what waits.
    pub(super) fn drain(&mut self, lost: &AtomicU64) -> Result<(), Trouble> {
        (0..SHARDS).try_for_each(|place| self.drain_place(place, lost))
    }

    /// Write what waits in one place.
    pub(super) fn drain_place(&mut self, place: usize, lost: &AtomicU64) -> Result<(), Trouble> {
        // SAFETY: the scratch memory has room for that many and is used under the lock alone.
        let events = unsafe {
            let number = shards::take(place, self.scratch);
            core::slice::from_raw_parts(self.scratch, number)
        };
        if events.is_empty() {
            return Ok(());
        }
        let Some(held) = Held::now() else {
            lost.fetch_add(events.len() as u64, Relaxed);
            return Ok(());
        };
        if held.run() != self.run {
            [&mut self.sites, &mut self.stacks, &mut self.threads].into_iter().for_each(Numbering::forget_keys);
        }
        let mut file = self.disk.open()?;
        for event in events {
            if !self.event(event, &held, &mut file)? {
                lost.fetch_add(1, Relaxed);
            }
        }
        self.flush(&mut file)
    }

    /// Put an event into its block. False: it cannot be explained.
    fn event(&mut self, event: &Event, held: &Held, file: &mut File) -> Result<bool, Trouble> {
        let Event { time, birth, site, thread, .. } = *event;
        if time < self.header.start {
            return Ok(true); // of the process that this one was forked from
        }
        let kind = event.kind();
        if birth < self.header.start {
            self.older += u64::from(matches!(kind, Kind::Freed | Kind::Moved));
            return Ok(true);
        }
        let (time, birth) = (self.micros(time), self.micros(birth));
        if !is_kept(birth, self.header.level) {
            return Ok(true);
        }
        if !event.is_of(held.run()) {
            return Ok(false);
        }
        let source = held.site(site);
        let Some(number) = self.explain(site, &source, held, file)? else { return Ok(false) };
        if self.events.room() < MOST_EVENT {
            self.flush(file)?;
            // The file may have been thinned: without this one, or without its site.
            return self.event(event, held, file);
        }
        let slack = source.block_size.wrapping_sub(event.requested()) as i64;
        self.events.event(&Encoded {
            kind,
            site: number,
            time,
            age: if kind == Kind::Allocated { 0 } else { time.saturating_sub(birth) },
            slack: (slack << 1 ^ slack >> 63) as u64,
            thread: if thread == source.thread { 0 } else { u64::from(thread) + 1 },
        });
        Ok(true)
    }

    /// The number of a site in the file, after it, its stack and its thread were explained. `None`: no memory, or a stack too long for a
    /// block.
    fn explain(
        &mut self,
        site: u32,
        source: &Source<'_>,
        held: &Held,
        file: &mut File,
    ) -> Result<Option<u32>, Trouble> {
        let Some(known) = self.sites.number(site) else { return Ok(None) };
        if known.is_explained() {
            return Ok(Some(known.number()));
        }
        let needed = MOST_SITE + source.frames.len() * LONGEST_VARINT;
        if needed > MOST_PAYLOAD {
            return Ok(None);
        }
        if self.definitions.room() < needed {
            self.flush(file)?;
            return self.explain(site, source, held, file);
        }
        if self.run != held.run() {
            self.run = held.run();
            let numbers = [RUN, u64::from(self.run), self.micros(held.started()), held.rate()];
            numbers.into_iter().for_each(|n| self.definitions.number(n));
        }
        self.explain_thread(source.thread, false);
        let Some(stack) = self.explain_stack(source) else { return Ok(None) };
        let Some(mut known) = self.sites.number(site) else { return Ok(None) };
        let number = known.number();
        known.set_explained(true);
        let thread = u64::from(source.thread);
        let numbers = [SITE, u64::from(number), u64::from(stack), source.block_size, thread, u64::from(self.run)];
        numbers.into_iter().for_each(|n| self.definitions.number(n));
        Ok(Some(number))
    }

    fn explain_stack(&mut self, source: &Source<'_>) -> Option<u32> {
        let mut known = self.stacks.number(source.stack)?;
        let number = known.number();
        if !known.is_explained() {
            known.set_explained(true);
            self.new_code = true;
            let block = &mut self.definitions;
            [STACK, u64::from(number), source.end as u64, source.frames.len() as u64]
                .into_iter()
                .for_each(|n| block.number(n));
            let mut last = 0;
            for &frame in source.frames {
                block.difference(last, frame as u64);
                last = frame as u64;
            }
        }
        Some(number)
    }

    /// `again`: its name may have changed.
    fn explain_thread(&mut self, thread: u32, again: bool) {
        // The table has no key 0.
        let Some(mut known) = self.threads.number(thread + 1) else { return };
        if known.is_explained() && !again {
            return;
        }
        known.set_explained(true);
        let Some(about) = source::thread(thread) else { return };
        let name = about.name();
        let block = &mut self.definitions;
        [THREAD, u64::from(thread), u64::from(about.tid), name.len() as u64].into_iter().for_each(|n| block.number(n));
        block.bytes(name);
    }

    /// Write both blocks, and thin the file if it comes to its end.
    fn flush(&mut self, file: &mut File) -> Result<(), Trouble> {
        if !self.definitions.is_empty() {
            self.disk.write(file, self.definitions.sealed(Content::Definitions))?;
            self.definitions.clear();
        }
        if !self.events.is_empty() {
            self.disk.write(file, self.events.sealed(Content::Events))?;
            self.events.clear();
        }
        if self.disk.extent.size > self.most() {
            self.thin()?;
            *file = self.disk.open()?;
        }
        Ok(())
    }

    /// Bytes of the file before it is thinned: it and its copy are within the budget together.
    fn most(&self) -> u64 {
        let budget = self.budget.min(os::file_size_limit());
        budget / 5 * 3
    }

    /// Add a tick, and what has changed about the recording itself.
    pub(super) fn tick(&mut self, now: u64, tick: &Tick, lost: u64) -> Result<(), Trouble> {
        let mut file = self.disk.open()?;
        let time = self.micros(now);
        let numbers = tick.numbers();
        self.events.number(time);
        self.events.number(numbers.len() as u64);
        numbers.into_iter().for_each(|n| self.events.number(n));
        self.disk.write(&file, self.events.sealed(Content::Tick))?;
        self.events.clear();
        if self.told != (lost, self.older) {
            self.state(&file, now, lost, End::Not)?;
        }
        self.tell_modules(&file, now, false)?;
        self.flush(&mut file)
    }

    /// Add what people have to say about this moment.
    pub(super) fn mark(&mut self, now: u64, text: &[u8]) -> Result<(), Trouble> {
        let file = self.disk.open()?;
        let text = &text[..text.len().min(MOST_PAYLOAD - LONGEST_VARINT)];
        self.events.number(self.micros(now));
        self.events.bytes(text);
        self.disk.write(&file, self.events.sealed(Content::Mark))?;
        self.events.clear();
        Ok(())
    }

    pub(super) fn state(&mut self, file: &File, now: u64, lost: u64, end: End) -> Result<(), Trouble> {
        let numbers = [self.micros(now), lost, self.older, end as u64];
        numbers.into_iter().for_each(|n| self.events.number(n));
        self.disk.write(file, self.events.sealed(Content::State))?;
        self.events.clear();
        self.told = (lost, self.older);
        Ok(())
    }

    /// The last that is written.
    pub(super) fn end(&mut self, now: u64, lost: u64, end: End) -> Result<(), Trouble> {
        let mut file = self.disk.open()?;
        // Names that threads have got since they were met.
        for slot in 0..self.threads.slots() {
            if let Some(key) = self.threads.key_at(slot) {
                if self.definitions.room() < MOST_SITE {
                    self.flush(&mut file)?;
                }
                self.explain_thread(key - 1, true);
            }
        }
        self.flush(&mut file)?;
        self.tell_modules(&file, now, true)?;
        self.state(&file, now, lost, end)
    }
}

/// Bytes for a run, a thread, a site, and a stack without its frames.
const MOST_SITE: usize = (4 + 4 + 6 + 4) * LONGEST_VARINT + source::NAME;
