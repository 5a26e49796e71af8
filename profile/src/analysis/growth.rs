//! What becomes of each row over many snapshots: which keep growing, how fast, and how steadily.

use std::cmp::Reverse;
use std::sync::Arc;

use super::diff::STANDARD_ERRORS;
use super::pairing::paired;
use super::{Row, Table, View, Weights};
use crate::model::{Profile, Unit};

/// Two snapshots are a difference, not a trend.
pub const LEAST_SNAPSHOTS: usize = 3;
/// More have no use that fewer do not have, and each costs a number for each row.
pub const MOST_SNAPSHOTS: usize = 4096;

/// What keeps growing goes up in at least nine tenths of all it moves.
const STEADY: f64 = 0.9;
/// What keeps growing has at least a quarter of its change in the second half of the time; a straight line has half of it there, and a
/// cache that fills up nothing.
const LATE: f64 = 0.25;
/// What keeps growing is more than one jump or two.
const RISES: usize = 3;

/// What a row does over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trend {
    /// It keeps growing: often a leak, or a cache without a limit.
    Grows,
    /// It has grown, and then (nearly) no more.
    LevelsOff,
    /// There is more than at first, after ups and downs or a jump.
    Rises,
    /// There is less than at first.
    Falls,
    /// No change, or one that may well be chance.
    Flat,
}

/// One row over all snapshots.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The function, file or library; an address where there is no name. Not escaped.
    pub name: Arc<str>,
    /// Its source place in the last snapshot that has it. Not escaped.
    pub place: Option<(Arc<str>, u32)>,
    /// The function is known by name; false for addresses.
    pub named: bool,
    /// What there was in each snapshot, in the unit of the view.
    pub values: Vec<u64>,
    /// The standard error of [`Series::change`]; 0 where every block was recorded.
    pub error: f64,
    /// How much more each second or, without times, each snapshot: the straight line nearest to the values.
    pub slope: f64,
    /// How much of all its movement is upwards, of 1; `None` where it does not move by more than chance.
    pub steadiness: Option<f64>,
    /// What it does.
    pub trend: Trend,
}

impl Series {
    /// Last less first.
    pub fn change(&self) -> i64 {
        let end = |value: Option<&u64>| i128::from(value.copied().unwrap_or(0));
        let change = end(self.values.last()) - end(self.values.first());
        change.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }
}

/// All rows over all snapshots.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// What keeps growing by falling slope; then the others by falling size of the change; then by name.
    pub rows: Vec<Series>,
    /// Everything.
    pub total: Series,
}

/// When snapshots were taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Times<'a> {
    /// Seconds, one for each and rising.
    Seconds(&'a [f64]),
    /// In this order.
    Order,
}

/// Takes one snapshot after the other; none is kept.
#[derive(Clone, Debug)]
pub struct Snapshots {
    view: View,
    taken: usize,
    rows: Vec<Known>,
    total: Vec<Moment>,
}

/// What a row, or everything, was in one snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Moment {
    value: u64,
    variance: f64,
    /// See [`Weights::with_turnover`].
    turnover: Option<f64>,
}

#[derive(Clone, Debug)]
struct Known {
    /// As it was last.
    row: Row,
    /// The number of the snapshot, and what there was. Not there is nothing.
    moments: Vec<(usize, Moment)>,
}

impl Snapshots {
    /// None yet.
    pub fn new(view: View) -> Self {
        Self { view, taken: 0, rows: Vec::new(), total: Vec::new() }
    }

    /// Takes the next snapshot.
    pub fn add(&mut self, profile: &Profile) {
        let Self { view, .. } = *self;
        let weights = Weights::of(profile, view.metric);
        let table = Table::of(profile, &view, &weights);
        // The same rows in the same order, since nothing but variances differs.
        let turnover = weights.with_turnover(profile, view.metric).map(|weights| Table::of(profile, &view, &weights));
        let of_row = |number: usize| {
            let turnover = turnover.as_ref().map(|table| &table.rows[number].flat);
            moment(&table.rows[number].flat, turnover, view.unit)
        };
        let known: Vec<&Row> = self.rows.iter().map(|known| &known.row).collect();
        let pairs = paired(&known, &table.rows.iter().collect::<Vec<_>>());
        for pair in pairs {
            let (place, number) = match pair {
                (_, None) => continue,
                (Some(place), Some(number)) => (place, number),
                (None, Some(number)) => {
                    self.rows.push(Known { row: table.rows[number].clone(), moments: Vec::new() });
                    (self.rows.len() - 1, number)
                }
            };
            let known = &mut self.rows[place];
            known.row = table.rows[number].clone();
            known.moments.push((self.taken, of_row(number)));
        }
        self.total.push(moment(&table.total, turnover.as_ref().map(|table| &table.total), view.unit));
        self.taken += 1;
    }

    /// Snapshots that were taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// What they show. `one_run` says that all are of one run of a process: what was sampled once and is still there is then in each
    /// of them, and only what was allocated or freed in between is subject to chance.
    pub fn finish(self, times: Times<'_>, one_run: bool) -> Growth {
        let order: Vec<f64> = (0..self.taken).map(|number| number as f64).collect();
        let times = match times {
            Times::Seconds(times) if times.len() == self.taken => times,
            _ => &order,
        };
        let total = Row {
            name: "total".into(),
            place: None,
            places: 0,
            module: None,
            named: false,
            flat: Default::default(),
            cumulative: Default::default(),
        };
        let total = series(total, &self.total, times, one_run);
        let taken = self.taken;
        let dense = |moments: &[(usize, Moment)]| {
            // Before it is seen first nothing has happened; after it has gone, nothing more.
            let mut all = vec![Moment { turnover: one_run.then_some(0.0), ..Moment::default() }; taken];
            let mut next = 0;
            let mut turnover = Some(0.0);
            for &(number, moment) in moments {
                all[next..number].iter_mut().for_each(|gap| gap.turnover = turnover);
                all[number] = moment;
                (next, turnover) = (number + 1, moment.turnover);
            }
            all[next..].iter_mut().for_each(|gap| gap.turnover = turnover);
            all
        };
        let mut rows: Vec<Series> = self
            .rows
            .into_iter()
            .map(|known| series(known.row, &dense(&known.moments), times, one_run))
            .filter(|series| series.values.iter().any(|&value| value > 0))
            .collect();
        rows.sort_by(|a, b| {
            let weight = |series: &Series| Reverse(series.change().unsigned_abs());
            let of_class = match (a.trend, b.trend) {
                (Trend::Grows, Trend::Grows) => b.slope.total_cmp(&a.slope),
                (a_trend, b_trend) => (a_trend != Trend::Grows).cmp(&(b_trend != Trend::Grows)),
            };
            of_class.then_with(|| (weight(a), &a.name, &a.place).cmp(&(weight(b), &b.name, &b.place)))
        });
        Growth { rows, total }
    }
}

fn moment(sum: &super::Sum, turnover: Option<&super::Sum>, unit: Unit) -> Moment {
    let variance = |sum: &super::Sum| match unit {
        Unit::Bytes => sum.bytes_variance,
        Unit::Blocks => sum.blocks_variance,
    };
    Moment { value: sum.value(unit), variance: variance(sum), turnover: turnover.map(variance) }
}

fn series(row: Row, moments: &[Moment], times: &[f64], one_run: bool) -> Series {
    let values: Vec<u64> = moments.iter().map(|moment| moment.value).collect();
    let last = moments.len().saturating_sub(1);
    let error = if moments.is_empty() { 0.0 } else { error(&moments[0], &moments[last], one_run) };
    let steadiness = steadiness(moments, one_run);
    let mut series = Series {
        name: row.name,
        place: row.place,
        named: row.named,
        values,
        error,
        slope: 0.0,
        steadiness,
        trend: Trend::Flat,
    };
    series.slope = slope(times, &series.values);
    series.trend = trend(&series, times);
    series
}

/// The standard error of the change from one moment to a later one.
fn error(from: &Moment, to: &Moment, one_run: bool) -> f64 {
    let of_both = from.variance + to.variance;
    let between = match (from.turnover, to.turnover) {
        // Less than before: sampling has begun anew.
        (Some(from), Some(to)) if one_run && to >= from => to - from,
        _ => of_both,
    };
    of_both.min(between).sqrt()
}

/// See [`Series::steadiness`]. Movements count once they are more than chance.
fn steadiness(moments: &[Moment], one_run: bool) -> Option<f64> {
    let (first, rest) = moments.split_first()?;
    let (mut from, mut up, mut down) = (first, 0.0, 0.0);
    for to in rest {
        let change = to.value as f64 - from.value as f64;
        if change != 0.0 && change.abs() >= STANDARD_ERRORS * error(from, to, one_run) {
            if change > 0.0 {
                up += change
            } else {
                down -= change
            }
            from = to;
        }
    }
    let all = up + down;
    (all > 0.0).then(|| up / all)
}

/// Of the straight line with the least squares; 0 if all times are one.
fn slope(times: &[f64], values: &[u64]) -> f64 {
    let count = values.len().max(1) as f64;
    let mean_time = times.iter().sum::<f64>() / count;
    let mean = values.iter().map(|&value| value as f64).sum::<f64>() / count;
    let pairs = times.iter().zip(values).map(|(time, &value)| (time - mean_time, value as f64 - mean));
    let (products, squares) =
        pairs.fold((0.0, 0.0), |(products, squares), (time, value)| (products + time * value, squares + time * time));
    if squares > 0.0 { products / squares } else { 0.0 }
}

fn trend(series: &Series, times: &[f64]) -> Trend {
    let change = series.change();
    if change == 0 || (change.unsigned_abs() as f64) < STANDARD_ERRORS * series.error {
        return Trend::Flat;
    }
    if change < 0 {
        return Trend::Falls;
    }
    let values = &series.values;
    if series.steadiness.is_none_or(|steadiness| steadiness < STEADY) {
        return Trend::Rises;
    }
    let (first, last) = (times.first().copied().unwrap_or(0.0), times.last().copied().unwrap_or(0.0));
    let half = first + (last - first) / 2.0;
    let middle = (0..times.len()).min_by(|&a, &b| (times[a] - half).abs().total_cmp(&(times[b] - half).abs()));
    let ends = (values.last().copied().unwrap_or(0), middle.map_or(0, |middle| values[middle]));
    if (ends.0 as f64 - ends.1 as f64) < LATE * change as f64 {
        return Trend::LevelsOff;
    }
    let rises = values.windows(2).filter(|pair| pair[1] > pair[0]).count();
    if rises >= RISES.min(values.len() - 1) { Trend::Grows } else { Trend::Rises }
}

#[cfg(test)]
#[path = "growth_tests.rs"]
mod tests;
