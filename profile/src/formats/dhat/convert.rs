//! From the file to the model.

use std::collections::HashMap;

use super::super::Limits;
use super::super::lines::Fault;
use super::super::maps::without_deleted;
use super::file::{File, Own, OwnModule, Point};
use super::frame::{self, Parsed};
use crate::model::{
    Amount, BuildId, Format, Location, LocationId, Module, Profile, Sample, Stack, StackEnd, StackId, Truncation,
    TruncationReason, lookup_address, module_at,
};

/// Sums from here on are refused: 2^63, so that every later sum of two of them fits into 64 bits.
const ABSURD: u64 = 1 << 63;
/// Facts that are kept of a file; ours has a dozen.
const MOST_FACTS: usize = 256;
/// Marks of our own library, in place of the outermost frame.
const GOES_ON: &str = "[the stack goes on: ";
const NO_STACK: &str = "[no stack: ";

pub(super) fn convert(file: File, limits: &Limits) -> Result<Profile, Fault> {
    let is_own = file.mpp.is_some();
    let mut profile = Profile::new(if is_own { Format::Dhat } else { Format::DhatForeign }, 1);
    if let Some(own) = &file.mpp {
        profile.modules = modules(own, limits)?;
    }
    if file.ftbl.len() > limits.locations {
        return Err(Fault::TooLarge(format!("more than {} frames", limits.locations)));
    }
    if file.pps.len() > limits.samples {
        return Err(Fault::TooLarge(format!("more than {} program points", limits.samples)));
    }
    remarks(&file, &mut profile);
    let mut stacks = Stacks {
        frames: file.ftbl.iter().map(|text| frame::parse(text)).collect(),
        is_own,
        limits,
        entries: 0,
        locations: HashMap::new(),
        profile,
    };
    stacks.profile.time_unit = file.tu.as_str().into();
    let mut sums = [Amount::default(); 3];
    for (number, point) in file.pps.iter().enumerate() {
        let at = |message: String| Fault::Damaged(format!("program point {number}: {message}"));
        let amounts = amounts(point).map_err(at)?;
        for (sum, amount) in sums.iter_mut().zip(amounts) {
            let total = sum.checked_add(amount).filter(|sum| sum.bytes < ABSURD && sum.objects < ABSURD);
            *sum = total.ok_or_else(|| at("the sums up to here exceed 2^63".into()))?;
        }
        stacks.add(point, amounts).map_err(|fault| match fault {
            Fault::Damaged(message) => at(message),
            large => large,
        })?;
    }
    Ok(stacks.profile)
}

/// Live, allocated, at the peak.
fn amounts(point: &Point) -> Result<[Amount; 3], String> {
    let live = Amount { objects: point.ebk, bytes: point.eb };
    let allocated = Amount { objects: point.tbk, bytes: point.tb };
    let peak = Amount { objects: point.gbk, bytes: point.gb };
    for (amount, what) in [(live, "at the end"), (allocated, "in all"), (peak, "at the peak")] {
        if amount.objects == 0 && amount.bytes > 0 {
            return Err(format!("{} bytes {what} in 0 blocks", amount.bytes));
        }
        if amount.exceeds(allocated) {
            return Err(format!("more {what} than was ever allocated"));
        }
    }
    Ok([live, allocated, peak])
}

struct Stacks<'a> {
    frames: Vec<Parsed>,
    is_own: bool,
    limits: &'a Limits,
    /// Locations of all stacks.
    entries: usize,
    /// By the frames that are at one address.
    locations: HashMap<Vec<u32>, LocationId>,
    profile: Profile,
}

impl Stacks<'_> {
    fn add(&mut self, point: &Point, [live, allocated, peak]: [Amount; 3]) -> Result<(), Fault> {
        if point.fs.len() > self.limits.stack_depth {
            return Err(Fault::TooLarge(format!("a stack of more than {} frames", self.limits.stack_depth)));
        }
        let mut numbers = point.fs.as_slice();
        let end = self.end(&mut numbers);
        let mut locations = Vec::new();
        while let Some(&first) = numbers.first() {
            let address = self.frame(first)?.address;
            let is_here = |&&number: &&u32| {
                address.is_some() && self.frames.get(number as usize).is_some_and(|frame| frame.address == address)
            };
            let length = numbers.iter().take_while(is_here).count().max(1);
            locations.push(self.location(&numbers[..length], address)?);
            numbers = &numbers[length..];
        }
        self.entries += locations.len();
        if self.entries > self.limits.stack_entries {
            return Err(Fault::TooLarge(format!("stacks of more than {} frames together", self.limits.stack_entries)));
        }
        if allocated.is_zero() {
            return Ok(());
        }
        let sized = if live.objects > 0 { live } else { allocated };
        let block_size = sized.bytes.checked_div(sized.objects).unwrap_or(0);
        let stack = StackId(self.profile.stacks.len() as u32);
        self.profile.stacks.push(Stack { locations: locations.into(), end });
        self.profile.samples.push(Sample { live, allocated, peak, lived: point.tl, ..Sample::new(stack, block_size) });
        Ok(())
    }

    fn frame(&self, number: u32) -> Result<&Parsed, String> {
        let count = self.frames.len();
        self.frames.get(number as usize).ok_or_else(|| format!("frame {number} of a list of {count}"))
    }

    /// Whether the stack is complete; a mark is taken away.
    fn end(&self, numbers: &mut &[u32]) -> StackEnd {
        if !self.is_own {
            return StackEnd::Unknown;
        }
        let text = numbers.last().and_then(|&last| self.frames.get(last as usize)).and_then(|frame| {
            let named = frame.address.is_none().then_some(frame.frame.as_ref()?)?;
            named.function.strip_prefix(GOES_ON).or(named.function.strip_prefix(NO_STACK))?.strip_suffix(']')
        });
        let Some(text) = text else { return StackEnd::Complete };
        *numbers = &numbers[..numbers.len() - 1];
        StackEnd::Truncated(Truncation { reason: TruncationReason::from_text(text), at: None })
    }

    /// The location of frames at one address, innermost first.
    fn location(&mut self, numbers: &[u32], address: Option<u64>) -> Result<LocationId, Fault> {
        if let Some(&known) = self.locations.get(numbers) {
            return Ok(known);
        }
        let id = LocationId(self.profile.locations.len() as u32);
        if id.index() >= self.limits.locations {
            return Err(Fault::TooLarge(format!("more than {} different places", self.limits.locations)));
        }
        let mut frames = Vec::new();
        for &number in numbers {
            frames.extend(self.frame(number)?.frame.clone());
        }
        let inlined = frames.len().saturating_sub(1);
        frames[..inlined].iter_mut().for_each(|frame| frame.inlined = true);
        let address = address.unwrap_or(0);
        let module = module_at(&self.profile.modules, lookup_address(address));
        self.profile.locations.push(Location { address, module, file_address: None, frames });
        self.locations.insert(numbers.to_vec(), id);
        Ok(id)
    }
}

fn modules(own: &Own, limits: &Limits) -> Result<Vec<Module>, Fault> {
    if own.modules.len() > limits.modules {
        return Err(Fault::TooLarge(format!("more than {} modules", limits.modules)));
    }
    let read = |(number, module)| self::module(module).ok_or_else(|| format!("module {number} makes no sense").into());
    let mut modules = own.modules.iter().enumerate().map(read).collect::<Result<Vec<Module>, Fault>>()?;
    modules.sort_by_key(|module| module.start);
    Ok(modules)
}

fn module(module: &OwnModule) -> Option<Module> {
    let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let (start, end, file_offset) = (number(&module.start)?, number(&module.end)?, number(&module.offset)?);
    let (path, deleted) = without_deleted(&module.path);
    let build_id = match module.build_id.as_str() {
        "" => None,
        hex => Some(BuildId::from_hex(hex.as_bytes())?),
    };
    let path = path.to_owned();
    (start < end).then_some(Module { start, end, file_offset, path, build_id, executable: true, deleted })
}

fn remarks(file: &File, profile: &mut Profile) {
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let own = file.mpp.as_ref();
    for (key, value) in [
        ("command", (!file.cmd.is_empty()).then(|| file.cmd.clone())),
        ("pid", number(file.pid)),
        ("ppid", number(own.and_then(|own| own.ppid))),
        ("time_unit", (!file.tu.is_empty()).then(|| file.tu.clone())),
        ("peak_at", number(file.tg)),
        ("ended_at", number(file.te)),
        ("known_before_freed", number(own.map(|own| own.unknown))),
    ] {
        let plain = value.map(|value| value.replace(['\n', '\r'], " "));
        profile.comments.extend(plain.map(|value| (key.to_owned(), value)));
    }
    let facts = own.into_iter().flat_map(|own| &own.facts).take(MOST_FACTS);
    profile.comments.extend(facts.map(|(key, value)| (key.replace(['\n', '\r'], " "), value.to_string())));
    let (without_stack, lost) = own.map_or((0, 0), |own| (own.without_stack, own.lost));
    if without_stack > 0 {
        profile
            .warnings
            .push(format!("{without_stack} allocations are counted without their stack: no memory was left for it"));
    }
    if lost > 0 {
        profile.warnings.push(format!("{lost} allocations or frees are in no count: no memory was left for them"));
    }
    if file.incomplete && without_stack == 0 && lost == 0 {
        profile.warnings.push("the recorder ran out of memory: what came later is missing".into());
    }
}
