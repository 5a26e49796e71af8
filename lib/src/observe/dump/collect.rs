//! What a dump is made of, at one moment.

use super::estimates::Column;
use crate::heap::interval;
use crate::observe::files;
use crate::observe::footprint::Footprint;
use crate::observe::modules::{self, Modules};
use crate::observe::output::Failure;
use crate::observe::room::Room;
use crate::observe::sampler::sites::{self, Counts, Site};
use crate::observe::sampler::{self, Hold, scale};
use crate::observe::unwind::End;
use crate::os;
use core::fmt;

/// Estimates in the order in which they are written: of objects and of bytes, allocated, in use, in use at the peak, temporary.
pub(super) const COLUMNS: usize = 8;

/// One line: sampled blocks of one size, from one stack and one thread.
#[derive(Clone, Copy)]
pub(super) struct Line {
    /// It stays where it is as long as [`Collected`] holds the run.
    site: &'static Site,
    pub(super) live: u64,
    live_requested: u64,
    pub(super) allocated: u64,
    peak: u64,
    temporary: u64,
}

impl Line {
    /// `None` where nothing is to be told.
    fn of(site: &'static Site) -> Option<Line> {
        let Counts { live, live_requested, allocated, peak, temporary, .. } = site.counts();
        // After a reset less may have been allocated than is live; readers take that for damage.
        let allocated = allocated.max(live);
        (allocated != 0 || peak != 0).then_some(Line { site, live, live_requested, allocated, peak, temporary })
    }

    pub(super) fn block_size(&self) -> u64 {
        self.site.block_size()
    }

    /// Return addresses as they are to be written, innermost first.
    pub(super) fn frames<'a>(&'a self, modules: &'a Modules) -> impl Iterator<Item = usize> + 'a {
        let generation = self.site.generation();
        self.site.frames().iter().map(move |&frame| modules.place(frame, generation))
    }

    pub(super) fn end(&self) -> End {
        self.site.end()
    }

    /// The number of the thread, 0 for none in particular.
    pub(super) fn thread(&self) -> u32 {
        self.site.thread()
    }

    /// The estimates for this line, given how many blocks a sampled one stands for.
    pub(super) fn estimates(&self, rate: u64) -> [f64; COLUMNS] {
        // At a rate of 1 readers take it that every block was sampled: it nearly is.
        let scale = if rate <= 1 { 1.0 } else { scale(self.block_size(), rate) };
        let mut estimates = [0.0; COLUMNS];
        let sampled = [self.allocated, self.live, self.peak, self.temporary];
        for (pair, sampled) in estimates.chunks_exact_mut(2).zip(sampled) {
            pair[0] = sampled as f64 * scale;
            pair[1] = (sampled * self.block_size()) as f64 * scale;
        }
        estimates
    }
}

/// Sums over all lines, of sampled blocks, not estimates.
#[derive(Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) live: u64,
    pub(super) live_bytes: u64,
    pub(super) live_requested: u64,
    pub(super) allocated: u64,
    pub(super) allocated_bytes: u64,
    pub(super) truncated: u64,
}

/// See above.
pub(super) struct Collected {
    /// Mean distance between samples, in bytes.
    pub(super) rate: u64,
    pub(super) lines: Room<Line>,
    pub(super) totals: Totals,
    pub(super) estimates: [u64; COLUMNS],
    pub(super) modules: Modules,
    /// Nanoseconds since 1970, and since the start of the run.
    pub(super) time: u64,
    pub(super) duration: u64,
    /// Lines are of this run. `None`: there is none, and there are no lines.
    _run: Option<Hold>,
    dropped: [u64; 2],
    footprint: Footprint,
}

impl Collected {
    pub(super) fn now() -> Result<Collected, Failure> {
        // Before there are lists for the dump.
        let footprint = Footprint::now();
        let mut modules = Modules::read()?;
        let run = sampler::hold();
        let rate = run.as_ref().map_or_else(interval::rate, Hold::rate).max(1);
        let (mut lines, mut totals, mut columns) = (Room::new(), Totals::default(), [Column::default(); COLUMNS]);
        for line in run.iter().flat_map(|run| sites::all(run.number())).filter_map(Line::of) {
            lines.push(line)?;
            totals.add(&line);
            modules.note(line.site.frames(), line.site.generation());
            columns.iter_mut().zip(line.estimates(rate)).for_each(|(column, estimate)| _ = column.next(estimate));
        }
        Ok(Collected {
            rate,
            lines,
            totals,
            estimates: columns.map(|column| column.total()),
            modules,
            time: os::calendar_time(),
            duration: run.as_ref().map_or(0, |run| os::now().saturating_sub(run.started())),
            dropped: run.as_ref().map_or([0; 2], |run| [run.dropped(), run.overflows()]),
            footprint,
            _run: run,
        })
    }

    /// What is told besides the lines, the same in each format: names and values.
    pub(super) fn for_each_fact(&self, mut tell: impl FnMut(&str, fmt::Arguments<'_>)) {
        let Collected { totals, footprint, estimates, .. } = self;
        for (key, value) in [
            ("sample_rate", self.rate),
            ("stacks_marked", 1),
            ("time_nanos", self.time),
            ("duration_nanos", self.duration),
            ("requested_live", totals.live_requested),
            ("dropped_samples", self.dropped[0]),
            ("dropped_for_memory", self.dropped[1]),
            ("truncated_lines", totals.truncated),
            ("unloaded_modules", self.modules.gone().count() as u64),
            ("forgotten_modules", modules::forgotten().into()),
            ("estimated_peak_blocks", estimates[4]),
            ("estimated_peak_bytes", estimates[5]),
            ("estimated_temporary_blocks", estimates[6]),
            ("estimated_temporary_bytes", estimates[7]),
        ] {
            tell(key, format_args!("{value}"));
        }
        footprint.for_each_fact(|key, value| tell(key, format_args!("{value}")));
        files::remarks(tell);
    }
}

impl Totals {
    fn add(&mut self, line: &Line) {
        self.live += line.live;
        self.live_bytes += line.live * line.block_size();
        self.live_requested += line.live_requested;
        self.allocated += line.allocated;
        self.allocated_bytes += line.allocated * line.block_size();
        self.truncated += u64::from(line.end() != End::Complete);
    }
}

/// The words for a stack that is not whole.
pub(super) fn truncation(end: End) -> Option<&'static str> {
    match end {
        End::Complete => None,
        End::DepthLimit => Some("depth limit"),
        End::NoUnwindInfo => Some("no unwind info"),
        End::BadFrame => Some("bad frame"),
    }
}
