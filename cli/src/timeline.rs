//! The timeline of one process, read once: its measurements, its marks, and how far it can be trusted.

use std::io::{BufReader, Read};
use std::path::Path;

use mpp_profile::formats::Limits;
use mpp_profile::formats::timeline::{self, Curve, Ending, Header, Item, Moment, Tick};
use mpp_profile::units::{bytes, count};

use crate::exit::{Code, Failure, OrExit};
use crate::{bundle, input};

/// What a timeline tells besides its samples.
#[derive(Debug)]
pub(crate) struct Measured {
    /// What its first bytes say.
    pub(crate) header: Header,
    /// In the order of the file.
    pub(crate) ticks: Vec<Tick>,
    /// Time and text, not escaped.
    pub(crate) marks: Vec<(u64, String)>,
    /// Events of sampled blocks.
    pub(crate) events: u64,
    /// Of those, allocations.
    pub(crate) allocations: u64,
    /// Live memory, also between ticks.
    pub(crate) curve: Curve,
    pub(crate) ending: Ending,
    /// Events that the recorder could not keep.
    pub(crate) lost: u64,
    /// The latest time, in microseconds since the start.
    pub(crate) latest: u64,
}

/// Reads a timeline, or that of a process in a bundle; `-` is standard input.
///
/// # Errors
/// If it cannot be read, or is none.
pub(crate) fn read(path: &Path, pid: Option<u32>) -> Result<Measured, Failure> {
    let opened = input::open_file(path)?;
    let name = opened.name.clone();
    if opened.is_bundle() {
        return measured(&bundle::timeline(opened, pid)?[..], &name);
    }
    measured(BufReader::with_capacity(1 << 18, opened.reader()), &name)
}

fn measured(input: impl Read, name: &str) -> Result<Measured, Failure> {
    let mut timeline = timeline::open(input, name, &Limits::default()).or_exit(Code::Input)?;
    let (mut ticks, mut marks, mut events, mut allocations) = (Vec::new(), Vec::new(), 0, 0);
    let mut curve = Curve::new(timeline.header());
    while let Some(item) = timeline.next_item().or_exit(Code::Input)? {
        match item {
            Item::Tick(tick) => {
                curve.tick(&tick);
                ticks.push(tick);
            }
            Item::Mark { time, text } => marks.push((time, text)),
            Item::Event(event) => {
                curve.event(&event, timeline.tables());
                events += 1;
                allocations += u64::from(event.happening == timeline::Happening::Allocated);
            }
        }
    }
    Ok(Measured {
        header: *timeline.header(),
        ticks,
        marks,
        events,
        allocations,
        curve,
        ending: timeline.ending(),
        lost: timeline.lost(),
        latest: timeline.latest(),
    })
}

impl Measured {
    /// The tick where something was largest; the first of several.
    pub(crate) fn highest(&self, what: impl Fn(&Tick) -> u64) -> Option<&Tick> {
        self.ticks.iter().rev().max_by_key(|tick| what(tick))
    }

    /// `peak: RSS 62.5 MiB at 1.20 s, live 48.0 MiB at 1.10 s`; `None` without a measurement.
    pub(crate) fn peaks(&self) -> Option<String> {
        let resident = self.highest(|tick| tick.resident)?;
        let live = self.highest(|tick| tick.live)?;
        // What came and went between two ticks has no time.
        let most = self.ticks.iter().map(|tick| tick.peak_resident).max().unwrap_or(0);
        let between = if most > resident.resident + resident.resident / 50 {
            format!(" ({} for a moment)", bytes(most))
        } else {
            String::new()
        };
        let unseen = self.unseen_peak().map_or_else(String::new, |moment| {
            let (most, time) = (bytes(moment.live), seconds(moment.time));
            format!(", and about {most} at {time}, between two measurements, as the samples tell")
        });
        Some(format!(
            "peak: RSS {}{between} at {}, live {} at {}{unseen}",
            bytes(resident.resident),
            seconds(resident.time),
            bytes(live.live),
            seconds(live.time)
        ))
    }

    /// An estimate of live memory that is clearly higher than all that was measured: what came and went between two ticks.
    pub(crate) fn unseen_peak(&self) -> Option<Moment> {
        let measured = self.ticks.iter().map(|tick| tick.live).max()?;
        self.curve.highest().filter(|moment| moment.live > measured.saturating_add(measured / 10))
    }

    /// What stands between the timeline and the whole truth.
    pub(crate) fn oddities(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match self.ending {
            Ending::Exit | Ending::Stopped => {}
            Ending::Open => lines.push("it has no end: its process was killed, or still runs".to_owned()),
            Ending::Cut { offset, bytes } => lines.push(format!(
                "it has no end, and its last block, {bytes} bytes from byte {offset} on, is not whole and was left out"
            )),
        }
        if self.lost > 0 {
            lines.push(format!(
                "{} events of sampled blocks were lost, so what is made from them is wrong",
                count(self.lost)
            ));
        }
        if self.header.level > 0 {
            let weight = count(self.header.weight());
            lines.push(format!("it was thinned to its limit: each event stands for {weight}, and old ticks are rarer"));
        }
        lines
    }
}

/// Microseconds as seconds with three decimals.
pub(crate) fn seconds(micros: u64) -> String {
    format!("{}.{:03} s", micros / 1_000_000, micros / 1000 % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(ticks: &[(u64, u64, u64, u64)]) -> Measured {
        let tick = |&(time, resident, peak_resident, live): &(u64, u64, u64, u64)| Tick {
            time,
            resident,
            peak_resident,
            live,
            ..Tick::default()
        };
        let header = Header { level: 0, process: 1, wall_start: 0, monotonic_start: 0, interval: 100_000 };
        Measured {
            curve: Curve::new(&header),
            header,
            ticks: ticks.iter().map(tick).collect(),
            marks: Vec::new(),
            events: 0,
            allocations: 0,
            ending: Ending::Exit,
            lost: 0,
            latest: 0,
        }
    }

    #[test]
    fn peaks_have_their_times() {
        assert_eq!(measured(&[]).peaks(), None);
        let mib = 1 << 20;
        let steady =
            measured(&[(100_000, mib, mib, 7), (1_200_000, 4 * mib, 4 * mib, 9), (1_300_000, 4 * mib, 4 * mib, 8)]);
        assert_eq!(steady.peaks().unwrap(), "peak: RSS 4.00 MiB at 1.200 s, live 9 B at 1.200 s");
        let spike = measured(&[(100_000, mib, 8 * mib, 7)]);
        assert_eq!(
            spike.peaks().unwrap(),
            "peak: RSS 1.00 MiB (8.00 MiB for a moment) at 0.100 s, live 7 B at 0.100 s"
        );
    }
}
