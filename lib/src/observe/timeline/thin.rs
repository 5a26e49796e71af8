//! A file that comes to its end is thinned: of the blocks that it tells of a half is left, chosen by chance, each standing for twice as
//! many, and every second tick. So sums stay unbiased, and a recording never ends too early.
//!
//! A copy is written and takes the place of the file. In it is what is left of the events, the sites and stacks that these need, all
//! runs, threads and marks, and the last table of modules.

use super::block::{
    Block, Content, FRAME, LONGEST_VARINT, MOST_EVENT, MOST_PAYLOAD, Numbers, RUN, SITE, STACK, THREAD, checksum,
};
use super::code::is_first;
use super::disk::{Extent, HEADER, Header, Trouble};
use super::event::is_kept;
use super::journal::Journal;
use crate::os::{self, File};

/// As often a copy that is still too large is thinned once more, before the recording ends.
const ATTEMPTS: u32 = 6;

impl Journal {
    /// Halve the file, or more if that is not enough. Both blocks are empty before and after.
    #[cold]
    #[inline(never)]
    pub(super) fn thin(&mut self) -> Result<(), Trouble> {
        let sites = Bits::new(self.sites.given())?;
        let stacks = Bits::new(self.stacks.given())?;
        let mut done = Err(Trouble::Budget);
        for raised in 1..=ATTEMPTS {
            let level = self.header.level + raised;
            self.look(level, &sites, &stacks)?;
            if self.copy(level, raised, &sites, &stacks)? {
                self.header.level = level;
                done = Ok(());
                break;
            }
        }
        if done.is_ok() {
            self.sites
                .each()
                .filter(|(_, known)| !sites.get(known.number()))
                .for_each(|(_, mut k)| k.set_explained(false));
            self.stacks.each().filter(|(_, k)| !stacks.get(k.number())).for_each(|(_, mut k)| k.set_explained(false));
        } else {
            os::remove(self.disk.temporary.as_c_str());
        }
        done
    }

    /// Note which sites and stacks are needed for what is left at this level.
    fn look(&mut self, level: u32, sites: &Bits, stacks: &Bits) -> Result<(), Trouble> {
        sites.clear();
        stacks.clear();
        let mut blocks = Blocks::open(self.disk.path.as_c_str(), self.spare)?;
        while let Some((content, payload)) = blocks.next()? {
            if content == Content::Events as u8 {
                each_event(payload, |event, birth| {
                    if is_kept(birth, level) {
                        sites.set(event.site);
                    }
                })?;
            }
        }
        // A site may be explained after it was last needed at the level before, so this is known only now.
        let mut blocks = Blocks::open(self.disk.path.as_c_str(), self.spare)?;
        while let Some((content, payload)) = blocks.next()? {
            if content == Content::Definitions as u8 {
                each_definition(payload, |tag, numbers, _| {
                    if tag == SITE && sites.get(numbers[0] as u32) {
                        stacks.set(numbers[1] as u32);
                    }
                })?;
            }
        }
        Ok(())
    }

    /// Write the copy and put it in the place of the file. False: it would be too large.
    fn copy(&mut self, level: u32, raised: u32, sites: &Bits, stacks: &Bits) -> Result<bool, Trouble> {
        let last_modules = count_modules(self.disk.path.as_c_str(), self.spare)?;
        let header = Header { level, ..self.header };
        let temporary = self.disk.temporary.as_c_str();
        let file = File::create(temporary).map_err(|_| Trouble::Open)?;
        let mut copy = Extent::of(header.process);
        copy.write(&file, &header.bytes())?;
        let most = self.budget / 5 * 2;
        let (mut ticks, mut modules) = (0u32, 0);
        let mut blocks = Blocks::open(self.disk.path.as_c_str(), self.spare)?;
        while let Some((content, payload)) = blocks.next()? {
            let (definitions, events) = (&mut self.definitions, &mut self.events);
            if content == Content::Definitions as u8 {
                copy_definitions(payload, definitions, sites, stacks, |block| copy.write(&file, block))?;
            } else if content == Content::Events as u8 {
                copy_events(payload, level, events, |block| {
                    // What events need stands before them.
                    if !definitions.is_empty() {
                        copy.write(&file, definitions.sealed(Content::Definitions))?;
                        definitions.clear();
                    }
                    copy.write(&file, block)
                })?;
            } else {
                let is_left = match content {
                    _ if content == Content::Tick as u8 => {
                        ticks += 1;
                        ticks % (1 << raised) == 0
                    }
                    _ if content == Content::Modules as u8 => {
                        modules += u64::from(is_first(payload));
                        modules == last_modules
                    }
                    _ => content == Content::Mark as u8,
                };
                if is_left {
                    copy.write(&file, blocks.whole())?;
                }
            }
            if copy.size > most {
                self.definitions.clear();
                self.events.clear();
                return Ok(false);
            }
        }
        for (block, content) in [(&mut self.definitions, Content::Definitions), (&mut self.events, Content::Events)] {
            if !block.is_empty() {
                copy.write(&file, block.sealed(content))?;
                block.clear();
            }
        }
        if os::rename(temporary, self.disk.path.as_c_str()).is_err() {
            return Err(Trouble::Open);
        }
        self.disk.extent = copy;
        Ok(true)
    }
}

fn count_modules(path: &core::ffi::CStr, spare: *mut u8) -> Result<u64, Trouble> {
    let mut modules = 0;
    let mut blocks = Blocks::open(path, spare)?;
    while let Some((content, payload)) = blocks.next()? {
        modules += u64::from(content == Content::Modules as u8 && is_first(payload));
    }
    Ok(modules)
}

pub(super) fn each_event(payload: &[u8], mut visit: impl FnMut(&super::block::Encoded, u64)) -> Result<(), Trouble> {
    let mut numbers = Numbers(payload);
    let mut last = numbers.number().ok_or(Trouble::Read)?;
    while !numbers.0.is_empty() {
        let event = numbers.event(last).ok_or(Trouble::Read)?;
        last = event.time;
        visit(&event, event.time.saturating_sub(event.age));
    }
    Ok(())
}

/// Tag, its first numbers, and all of its bytes.
pub(super) fn each_definition(payload: &[u8], mut visit: impl FnMut(u64, [u64; 5], &[u8])) -> Result<(), Trouble> {
    let mut rest = Numbers(payload);
    while !rest.0.is_empty() {
        let start = rest.0;
        let (tag, numbers) = definition(&mut rest).ok_or(Trouble::Read)?;
        visit(tag, numbers, &start[..start.len() - rest.0.len()]);
    }
    Ok(())
}

fn definition(rest: &mut Numbers<'_>) -> Option<(u64, [u64; 5])> {
    let tag = rest.number()?;
    let count = match tag {
        RUN | THREAD | STACK => 3,
        SITE => 5,
        _ => return None,
    };
    let mut numbers = [0; 5];
    for number in &mut numbers[..count] {
        *number = rest.number()?;
    }
    match tag {
        THREAD => _ = rest.bytes(numbers[2])?,
        STACK => {
            for _ in 0..numbers[2] {
                rest.number()?;
            }
        }
        _ => {}
    }
    Some((tag, numbers))
}

fn copy_definitions(
    payload: &[u8],
    into: &mut Block,
    sites: &Bits,
    stacks: &Bits,
    mut write: impl FnMut(&[u8]) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let mut outcome = Ok(());
    each_definition(payload, |tag, numbers, bytes| {
        let is_left = match tag {
            SITE => sites.get(numbers[0] as u32),
            STACK => stacks.get(numbers[0] as u32),
            _ => true,
        };
        if !is_left || outcome.is_err() {
            return;
        }
        if into.room() < bytes.len() {
            outcome = write(into.sealed(Content::Definitions));
            into.clear();
        }
        into.bytes(bytes);
    })?;
    outcome
}

fn copy_events(
    payload: &[u8],
    level: u32,
    into: &mut Block,
    mut write: impl FnMut(&[u8]) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let mut outcome = Ok(());
    each_event(payload, |event, birth| {
        if !is_kept(birth, level) || outcome.is_err() {
            return;
        }
        if into.room() < MOST_EVENT {
            outcome = write(into.sealed(Content::Events));
            into.clear();
        }
        into.event(event);
    })?;
    outcome
}

/// Reads a file of ours block by block.
pub(super) struct Blocks {
    file: File,
    block: *mut u8,
    length: usize,
}

impl Blocks {
    /// `memory` has room for a block.
    pub(super) fn open(path: &core::ffi::CStr, memory: *mut u8) -> Result<Blocks, Trouble> {
        let file = File::open(path).ok_or(Trouble::Read)?;
        let mut blocks = Blocks { file, block: memory, length: 0 };
        blocks.fill(0, HEADER)?;
        Ok(blocks)
    }

    fn memory(&mut self) -> &mut [u8] {
        // SAFETY: room for a block, which the journal's lock makes ours.
        unsafe { core::slice::from_raw_parts_mut(self.block, FRAME + MOST_PAYLOAD) }
    }

    /// True when there was something to read.
    fn fill(&mut self, from: usize, length: usize) -> Result<bool, Trouble> {
        let mut filled = 0;
        while filled < length {
            let buffer = &mut self.memory()[from + filled..from + length] as *mut [u8];
            // SAFETY: the file reads into this memory and knows nothing else of it.
            match self.file.read(unsafe { &mut *buffer }) {
                Some(0) if filled == 0 => return Ok(false),
                None | Some(0) => return Err(Trouble::Read),
                Some(more) => filled += more,
            }
        }
        Ok(true)
    }

    /// Content and payload of the next block.
    pub(super) fn next(&mut self) -> Result<Option<(u8, &[u8])>, Trouble> {
        if !self.fill(0, FRAME)? {
            return Ok(None);
        }
        let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let (length, sum) = (word(&self.memory()[4..8]) as usize, word(&self.memory()[8..12]));
        if length > MOST_PAYLOAD || (length > 0 && !self.fill(FRAME, length)?) {
            return Err(Trouble::Read);
        }
        self.length = FRAME + length;
        let whole = self.whole();
        if checksum(&[&whole[..8], &whole[FRAME..]]) != sum {
            return Err(Trouble::Read);
        }
        Ok(Some((whole[0], &whole[FRAME..])))
    }

    /// The block that was read last, with its frame.
    fn whole(&mut self) -> &[u8] {
        let length = self.length;
        &self.memory()[..length]
    }
}

/// A bit for each number.
struct Bits {
    words: *mut u64,
    length: usize,
}

impl Bits {
    fn new(length: usize) -> Result<Bits, Trouble> {
        let length = length.div_ceil(64).max(1);
        let words = os::map(length * 8).cast::<u64>();
        if words.is_null() { Err(Trouble::Memory) } else { Ok(Bits { words, length }) }
    }

    fn clear(&self) {
        // SAFETY: the mapping is ours and has that many words.
        unsafe { self.words.write_bytes(0, self.length) };
    }

    fn word(&self, number: u32) -> Option<*mut u64> {
        let word = number as usize / 64;
        (word < self.length).then(|| self.words.wrapping_add(word))
    }

    fn set(&self, number: u32) {
        if let Some(word) = self.word(number) {
            // SAFETY: inside the mapping, which is ours.
            unsafe { *word |= 1 << (number % 64) };
        }
    }

    fn get(&self, number: u32) -> bool {
        // SAFETY: as above.
        self.word(number).is_some_and(|word| unsafe { *word } >> (number % 64) & 1 == 1)
    }
}

impl Drop for Bits {
    fn drop(&mut self) {
        os::unmap(self.words.cast(), self.length * 8);
    }
}

const _: () = assert!(MOST_EVENT + LONGEST_VARINT < MOST_PAYLOAD && HEADER < MOST_PAYLOAD);
