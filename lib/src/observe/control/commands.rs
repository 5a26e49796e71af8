//! What can be asked for, and the answers.

use super::super::dump::Format;
use super::super::heapdump;
use super::super::marks;
use super::super::path::Path;
use super::super::sampler::Options;
use super::super::settings::{self, Named};
use super::super::{files, life, sampler, values};
use super::json::Answer;
use super::request::{Word, Words};
use crate::heap::{guarded, statistics};
use crate::options::{self, COUNT, Name, Unit};
use crate::{os, reclaim};

/// With the two words that may follow it.
type Command = fn(&mut Answer<'_>, Option<Word<'_>>, Option<Word<'_>>);

/// Answer a line.
pub(super) fn answer(line: &[u8], answer: &mut Answer<'_>) {
    let mut words = Words::of(line);
    let Some(command) = words.next() else { return refuse(answer, b"no command") };
    let mut next = || words.next();
    let (first, second, third) = (next(), next(), next());
    let known: [(&[u8], usize, Command); 10] = [
        (b"status", 0, |answer, _, _| status(answer)),
        (b"start", 1, |answer, rate, _| start(answer, rate)),
        (b"stop", 0, |answer, _, _| stop(answer)),
        (b"dump", 2, dump),
        (b"snapshot", 1, |answer, path, _| snapshot(answer, path)),
        (b"reset", 0, |answer, _, _| reset(answer)),
        (b"mark", 1, |answer, name, _| mark(answer, name)),
        (b"purge", 0, |answer, _, _| purge(answer)),
        (b"stats", 0, |answer, _, _| stats(answer)),
        (b"options", 1, |answer, option, _| self::options(answer, option)),
    ];
    match known.into_iter().find(|(name, ..)| *name == command.plain()) {
        None => {
            let known =
                b"unknown command; known are status, start, stop, dump, snapshot, reset, mark, purge, stats, options";
            refuse(answer, known)
        }
        Some((_, most, _)) if [first, second, third].iter().flatten().count() > most => {
            refuse(answer, b"too many words");
        }
        Some((_, _, run)) => os::on_large_stack(|| run(answer, first, second)),
    }
}

/// Something is wrong with what was asked.
pub(super) fn refuse(answer: &mut Answer<'_>, why: &[u8]) {
    answer.boolean("ok", false);
    answer.text("error", why);
}

fn agree(answer: &mut Answer<'_>) {
    answer.boolean("ok", true);
}

fn status(answer: &mut Answer<'_>) {
    agree(answer);
    answer.number("pid", os::process_id());
    answer.text("version", env!("CARGO_PKG_VERSION").as_bytes());
    answer.number("observed_ms", life::age() / 1_000_000);
    let run = sampler::hold();
    answer.boolean("sampling", run.is_some());
    if let Some(run) = run {
        answer.number("sample_rate", run.rate());
        answer.number("sampled_ms", os::now().saturating_sub(run.started()) / 1_000_000);
        answer.number("estimated_live_bytes", run.live_bytes());
        answer.number("estimated_peak_bytes", run.highest_bytes());
        answer.number("estimated_allocated_bytes", run.allocated_bytes());
        answer.number("stacks", run.unique_stacks());
        answer.number("memory_bytes", run.memory());
        answer.number("dropped_samples", run.dropped());
    }
    files::facts(|key, value| answer.number(key, value));
    answer.number("dumps", files::written());
}

fn start(answer: &mut Answer<'_>, rate: Option<Word<'_>>) {
    let wanted = match rate {
        None => None,
        Some(rate) => match values::size(rate.plain()) {
            None | Some(0) => return refuse(answer, b"the rate is not a size such as 512KiB"),
            size => size,
        },
    };
    let present = sampler::hold().map(|run| run.rate());
    let is_there = present.is_some() && (wanted.is_none() || wanted == present);
    if !is_there {
        sampler::stop();
        let set = Options::as_set();
        if !sampler::start(&Options { rate: wanted.unwrap_or(set.rate), ..set }) {
            return refuse(answer, b"no memory for the profiler");
        }
    }
    agree(answer);
    answer.boolean("sampling", true);
    answer.boolean("began", !is_there);
    answer.number("sample_rate", sampler::hold().map_or(0, |run| run.rate()));
}

/// What was found so far goes into the file that would be written at exit, which then stands.
fn stop(answer: &mut Answer<'_>) {
    let was = sampler::hold().is_some();
    let kept = was && files::write_last_of_run();
    sampler::stop();
    agree(answer);
    answer.boolean("sampling", false);
    answer.boolean("was_sampling", was);
    answer.boolean("written", kept);
}

fn dump(answer: &mut Answer<'_>, path: Option<Word<'_>>, format: Option<Word<'_>>) {
    if sampler::hold().is_none() {
        return refuse(answer, b"not sampling, so there is nothing to write; see start");
    }
    let named;
    if let Some(path) = path {
        let Some(path) = absolute(path) else { return refuse(answer, NO_PATH) };
        named = path;
        let by_name = settings::format_of(named.as_bytes());
        let Some(format) = format.map_or(Some(by_name), |format| Format::named(format.plain())) else {
            return refuse(answer, b"the format is none of text, proto, proto-gz");
        };
        if let Err(why) = files::write_to(&named, format) {
            return refuse(answer, why.words().as_bytes());
        }
        agree(answer);
    } else {
        if !settings::is_named(Named::Dump) {
            return refuse(answer, b"no path given, and MIMALLOC_PROF_DUMP names none");
        }
        let Some(number) = files::write_next() else { return refuse(answer, b"the file cannot be written") };
        agree(answer);
        answer.number("number", number);
        named = files::path(Named::Dump, number).unwrap_or(Path::EMPTY);
    }
    answer.text("path", named.as_bytes());
}

const NO_PATH: &[u8] = b"the path is not absolute, or too long";

fn absolute(word: Word<'_>) -> Option<Path> {
    let mut path = Path::EMPTY;
    (word.pieces().all(|piece| path.push(piece)) && path.as_bytes().starts_with(b"/")).then_some(path)
}

/// Which blocks there are, and what is free between them; also of a process that samples nothing.
fn snapshot(answer: &mut Answer<'_>, path: Option<Word<'_>>) {
    let Some(path) = path else { return refuse(answer, b"a snapshot needs a path") };
    let Some(path) = absolute(path) else { return refuse(answer, NO_PATH) };
    if heapdump::to_file(path.as_c_str(), heapdump::BLOCKS | heapdump::VERSION2).is_err() {
        return refuse(answer, b"the file cannot be written");
    }
    agree(answer);
    answer.text("path", path.as_bytes());
}

fn reset(answer: &mut Answer<'_>) {
    if sampler::hold().is_none() {
        return refuse(answer, b"not sampling");
    }
    sampler::reset();
    agree(answer);
}

fn mark(answer: &mut Answer<'_>, name: Option<Word<'_>>) {
    let Some(name) = name.filter(|name| !name.plain().is_empty()) else {
        return refuse(answer, b"a mark needs a name");
    };
    let marks = marks::mark(name.pieces().flatten().copied());
    agree(answer);
    answer.number("marks", marks);
    answer.number("observed_ms", life::age() / 1_000_000);
}

fn purge(answer: &mut Answer<'_>) {
    let Some(report) = reclaim::purge_all(true, false) else {
        return refuse(answer, b"another purge is on its way");
    };
    agree(answer);
    answer.number("bytes", report.bytes());
    answer.number("arena_bytes", report.arena_bytes);
    answer.number("hole_bytes", report.hole_bytes);
    answer.boolean("complete", report.complete);
}

fn stats(answer: &mut Answer<'_>) {
    let (exact, usage, holes) = (statistics::totals(), os::usage(), reclaim::holes_stats());
    agree(answer);
    answer.object("heap", |answer| {
        answer.number("live_bytes", exact.allocated_bytes.saturating_sub(exact.freed_bytes));
        answer.number("live_blocks", exact.allocated_blocks.saturating_sub(exact.freed_blocks));
        answer.number("allocated_bytes", exact.allocated_bytes);
        answer.number("allocated_blocks", exact.allocated_blocks);
        answer.number("freed_bytes", exact.freed_bytes);
        answer.number("freed_blocks", exact.freed_blocks);
        answer.number("threads", crate::heap::threads(usize::MAX));
    });
    answer.object("process", |answer| {
        answer.number("resident_bytes", usage.resident);
        answer.number("peak_resident_bytes", usage.peak_resident);
        answer.number("committed_bytes", usage.committed);
        answer.number("elapsed_ms", usage.elapsed);
        answer.number("user_ms", usage.user);
        answer.number("system_ms", usage.system);
        answer.number("major_faults", usage.major_faults);
    });
    answer.object("returned", |answer| {
        answer.number("inside_slabs_now_bytes", holes.purged_bytes);
        answer.number("inside_slabs_total_bytes", holes.purged_bytes_total);
        answer.number("calls", holes.discard_calls);
    });
}

fn options(answer: &mut Answer<'_>, option: Option<Word<'_>>) {
    let Some(option) = option else {
        agree(answer);
        return answer.object("options", |answer| (0..COUNT).for_each(|number| one(answer, number)));
    };
    let text = option.plain();
    let (name, value) = match text.iter().position(|&byte| byte == b'=') {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let is = |number: &usize| options::definition(*number).is_some_and(|known| known.name.as_bytes() == name);
    let Some(number) = (0..COUNT).find(is) else { return refuse(answer, b"unknown option") };
    if let Some(value) = value {
        let unit = options::definition(number).map_or(Unit::Plain, |known| known.unit);
        let Some(value) = options::parse(value, unit) else {
            return refuse(answer, b"that is no value for the option");
        };
        options::set_number(number, value);
        if (Name::GuardedMin as usize..=Name::GuardedSampleSeed as usize).contains(&number) {
            guarded::options_changed();
        }
    }
    agree(answer);
    answer.object("options", |answer| one(answer, number));
}

fn one(answer: &mut Answer<'_>, number: usize) {
    if let Some(known) = options::definition(number) {
        answer.number(known.name, options::get_number(number));
    }
}
