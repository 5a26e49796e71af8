//! What changed from one profile to another: grown, shrunk, new and gone.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::moment::of_one_run;
use super::pairing::{Pair, paired};
use super::{Folded, Row, Sum, Table, View, Weights};
use crate::model::{Profile, Unit};

/// Differences of less than this many standard errors are taken for chance: about 5 of 100 that are nothing are larger.
pub const STANDARD_ERRORS: f64 = 2.0;

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// There is more than before.
    Grown,
    /// There is less than before.
    Shrunk,
    /// There was nothing before.
    New,
    /// There is nothing any more.
    Gone,
    /// The same, or a difference that may well be chance ([`STANDARD_ERRORS`]).
    Same,
}

/// A row that is in one of the profiles, or in both.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The function, file or library; an address where there is no name. Not escaped.
    pub name: Arc<str>,
    /// Its source place, in the new profile if it is there. Not escaped.
    pub place: Option<(Arc<str>, u32)>,
    /// The function is known by name; false for addresses.
    pub named: bool,
    /// What there was; scaled, if [`Difference::scale`] is not 1.
    pub old: Sum,
    /// What there is.
    pub new: Sum,
    /// The standard error of the change, in the unit of the view; 0 when every block of both was recorded. Of two profiles of one run
    /// of a process, only what was allocated or freed in between is subject to chance.
    pub error: f64,
    /// What became of it.
    pub status: Status,
}

impl Change {
    /// New less old. Amounts are below 2^63, or at the end of what can be counted.
    pub fn change(&self, unit: Unit) -> i64 {
        difference(self.new.value(unit), self.old.value(unit))
    }
}

/// Two profiles, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// By falling size of the change, then name.
    pub rows: Vec<Change>,
    /// The sum of the old profile, scaled.
    pub old: Sum,
    /// The sum of the new profile.
    pub new: Sum,
    /// The standard error of the change of everything; see [`Change::error`].
    pub error: f64,
    /// What the old profile was multiplied by.
    pub scale: f64,
}

/// Which sums of a row are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compared {
    /// What was allocated in the row itself.
    #[default]
    Flat,
    /// That, and what everything called from there allocated.
    Cumulative,
}

impl Difference {
    /// Compares two profiles. Rows are the same if name, file (and line, where the view tells lines apart) and module are; what is
    /// left, if its name occurs once in each: so a program that was built elsewhere compares as well.
    ///
    /// With `normalize` the old profile is scaled to the total of the new one, so that only its composition counts.
    pub fn build(old: &Profile, new: &Profile, view: &View, compared: Compared, normalize: bool) -> Self {
        let one_run = !normalize && of_one_run(old, new);
        let (old, new) = (Side::of(old, view, compared, one_run), Side::of(new, view, compared, one_run));
        let (old_total, new_total) = (old.total.value(view.unit), new.total.value(view.unit));
        let scale = if normalize && old_total > 0 { new_total as f64 / old_total as f64 } else { 1.0 };
        let change = |(before, after): Pair| {
            let (before, after) = (before.map(|number| &old.rows[number]), after.map(|number| &new.rows[number]));
            let row = after.or(before)?.row.clone();
            let amount = |side: Option<&SideRow>| side.map(|side| side.amount).unwrap_or_default();
            let turnover = |side: Option<&SideRow>| side.map(|side| side.turnover).unwrap_or_default();
            let (before_amount, after_amount) = (scaled(amount(before), scale), amount(after));
            let between = one_run.then(|| (turnover(before), turnover(after)));
            let error = error(&before_amount, &after_amount, between, view.unit);
            let status = status(&before_amount, &after_amount, error, view.unit);
            let Row { name, place, named, .. } = row;
            Some(Change { name, place, named, old: before_amount, new: after_amount, error, status })
        };
        let pairs = paired(
            &old.rows.iter().map(|side| &side.row).collect::<Vec<_>>(),
            &new.rows.iter().map(|side| &side.row).collect::<Vec<_>>(),
        );
        let mut rows: Vec<Change> = pairs.into_iter().filter_map(change).collect();
        rows.sort_by(|a, b| {
            let weight = |change: &Change| Reverse(change.change(view.unit).unsigned_abs());
            (weight(a), &a.name, &a.place).cmp(&(weight(b), &b.name, &b.place))
        });
        let (old_sum, between) = (scaled(old.total, scale), one_run.then_some((old.turnover, new.turnover)));
        let error = error(&old_sum, &new.total, between, view.unit);
        Self { rows, old: old_sum, new: new.total, error, scale }
    }

    /// New less old, of everything.
    pub fn change(&self, unit: Unit) -> i64 {
        difference(self.new.value(unit), self.old.value(unit))
    }
}

/// Every stack of two profiles as [`Folded`] names it, outermost frame first, with what there was (times `scale`) and what there is.
/// In the order of names.
pub fn stacks(old: &Profile, new: &Profile, view: &View, scale: f64) -> Vec<(Vec<String>, u64, u64)> {
    let mut stacks: BTreeMap<Vec<String>, (u64, u64)> = BTreeMap::new();
    let folded = Folded::build(old, view);
    for (frames, weight) in folded.stacks() {
        let entry = stacks.entry(frames.map(str::to_owned).collect()).or_default();
        entry.0 = entry.0.saturating_add((weight as f64 * scale).round() as u64);
    }
    let folded = Folded::build(new, view);
    for (frames, weight) in folded.stacks() {
        let entry = stacks.entry(frames.map(str::to_owned).collect()).or_default();
        entry.1 = entry.1.saturating_add(weight);
    }
    stacks.into_iter().map(|(stack, (old, new))| (stack, old, new)).collect()
}

/// What is compared of one profile.
struct Side {
    rows: Vec<SideRow>,
    total: Sum,
    turnover: Option<Sum>,
}

struct SideRow {
    row: Row,
    amount: Sum,
    /// See [`Weights::with_turnover`].
    turnover: Option<Sum>,
}

impl Side {
    fn of(profile: &Profile, view: &View, compared: Compared, one_run: bool) -> Self {
        let weights = Weights::of(profile, view.metric);
        let table = Table::of(profile, view, &weights);
        let turnover = if one_run { weights.with_turnover(profile, view.metric) } else { None };
        // The same rows in the same order, since nothing but variances differs.
        let turnover = turnover.map(|weights| Table::of(profile, view, &weights));
        let amount = |row: &Row| match compared {
            Compared::Flat => row.flat,
            Compared::Cumulative => row.cumulative,
        };
        let of_row = |(number, row): (usize, Row)| {
            let turnover = turnover.as_ref().map(|table| amount(&table.rows[number]));
            SideRow { amount: amount(&row), row, turnover }
        };
        let rows = table.rows.into_iter().enumerate().map(of_row).filter(|side| side.amount != Sum::default());
        Self { rows: rows.collect(), total: table.total, turnover: turnover.as_ref().map(|table| table.total) }
    }
}

fn status(old: &Sum, new: &Sum, error: f64, unit: Unit) -> Status {
    let change = difference(new.value(unit), old.value(unit));
    if change == 0 || (change.unsigned_abs() as f64) < STANDARD_ERRORS * error {
        return Status::Same;
    }
    match (old.value(unit), new.value(unit)) {
        (0, _) => Status::New,
        (_, 0) => Status::Gone,
        _ if change > 0 => Status::Grown,
        _ => Status::Shrunk,
    }
}

fn scaled(sum: Sum, scale: f64) -> Sum {
    if scale == 1.0 {
        return sum;
    }
    Sum {
        bytes: (sum.bytes as f64 * scale).round() as u64,
        blocks: (sum.blocks as f64 * scale).round() as u64,
        bytes_variance: sum.bytes_variance * scale * scale,
        blocks_variance: sum.blocks_variance * scale * scale,
    }
}

fn difference(new: u64, old: u64) -> i64 {
    let change = i128::from(new) - i128::from(old);
    change.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

/// `between` has the turnover of both, if they are of one run. What one of them does not have has not been sampled there.
fn error(old: &Sum, new: &Sum, between: Option<(Option<Sum>, Option<Sum>)>, unit: Unit) -> f64 {
    let of_both = old.standard_error(unit).hypot(new.standard_error(unit));
    let variance = |sum: &Sum| sum.standard_error(unit).powi(2);
    match between {
        None | Some((None, None)) => of_both,
        Some((old, new)) => {
            let of = |sum: Option<Sum>| sum.map_or(0.0, |sum| variance(&sum));
            of_both.min((of(new) - of(old)).abs().sqrt())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Amount;

    use super::super::test_profile::{profile, stacks as any_profile};
    use super::*;
    use proptest::prelude::*;

    fn rows(difference: &Difference) -> Vec<(&str, i64, Status)> {
        difference.rows.iter().map(|row| (&*row.name, row.change(Unit::Bytes), row.status)).collect()
    }

    #[test]
    fn all_kinds_of_change() {
        let old = profile(&[(&["grows", "main"], 4), (&["shrinks", "main"], 9), (&["goes"], 1), (&["stays"], 2)]);
        let new = profile(&[(&["grows", "main"], 6), (&["shrinks", "main"], 2), (&["comes"], 3), (&["stays"], 2)]);
        let found = Difference::build(&old, &new, &View::default(), Compared::Flat, false);
        let expected = [
            ("shrinks", -7, Status::Shrunk),
            ("comes", 3, Status::New),
            ("grows", 2, Status::Grown),
            ("goes", -1, Status::Gone),
            ("stays", 0, Status::Same),
        ];
        assert_eq!(rows(&found), expected);
        assert_eq!((found.change(Unit::Bytes), found.error), (-3, 0.0));
        let cumulative = Difference::build(&old, &new, &View::default(), Compared::Cumulative, false);
        assert_eq!(rows(&cumulative)[1], ("main", -5, Status::Shrunk));
    }

    #[test]
    fn chance_is_no_change() {
        let mut old = profile(&[(&["a"], 4096)]);
        let mut new = profile(&[(&["a"], 4096), (&["a"], 4096)]);
        (old.sample_rate, new.sample_rate) = (524_288, 524_288);
        let found = Difference::build(&old, &new, &View::default(), Compared::Flat, false);
        assert_eq!(found.rows[0].status, Status::Same, "two samples are not more than one");
        assert!(found.rows[0].error > 500_000.0);
    }

    /// A large cache, and beside it in one function a small leak.
    #[test]
    fn what_stays_has_no_chance() {
        let taken = |blocks: u64, seconds: u64| {
            let mut taken = profile(&[(&["f"], 0)]);
            taken.sample_rate = 524_288;
            let facts = [("time_nanos", 1000 + seconds), ("duration_nanos", seconds)];
            taken.comments = facts.map(|(key, value)| (key.to_owned(), format!("{value}000000000"))).to_vec();
            let amount = Amount { objects: blocks, bytes: blocks * 4096 };
            taken.samples[0].block_size = 4096;
            (taken.samples[0].live, taken.samples[0].allocated) = (amount, amount);
            taken
        };
        let found = |old: &Profile, new: &Profile| {
            Difference::build(old, new, &View::default(), Compared::Flat, false).rows[0].clone()
        };
        assert_eq!(found(&taken(400, 10), &taken(430, 70)).status, Status::Grown);
        assert_eq!(found(&taken(430, 70), &taken(400, 10)).status, Status::Shrunk);
        assert_eq!(found(&taken(400, 10), &taken(400, 10)).error, 0.0, "the same is the same for sure");
        let mut other = taken(430, 70);
        other.comments.clear();
        assert_eq!(found(&taken(400, 10), &other).status, Status::Same, "another run could have been sampled so");
    }

    #[test]
    fn composition_alone() {
        let old = profile(&[(&["a"], 10), (&["b"], 10)]);
        let new = profile(&[(&["a"], 30), (&["b"], 10)]);
        let found = Difference::build(&old, &new, &View::default(), Compared::Flat, true);
        assert_eq!((found.scale, found.change(Unit::Bytes)), (2.0, 0));
        assert_eq!(rows(&found), [("a", 10, Status::Grown), ("b", -10, Status::Shrunk)]);
    }

    #[test]
    fn stacks_are_compared_too() {
        let old = profile(&[(&["a", "main"], 10)]);
        let new = profile(&[(&["a", "main"], 30), (&["b"], 1)]);
        let found = stacks(&old, &new, &View::default(), 1.0);
        let path = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(found, [(path(&["b"]), 0, 1), (path(&["main", "a"]), 10, 30)]);
    }

    proptest! {
        #[test]
        fn rows_add_up_to_the_totals(old in any_profile(), new in any_profile()) {
            let found = Difference::build(&old, &new, &View::default(), Compared::Flat, false);
            let sum = |side: fn(&Change) -> u64| found.rows.iter().map(side).sum::<u64>();
            prop_assert_eq!(sum(|row| row.old.bytes), found.old.bytes);
            prop_assert_eq!(sum(|row| row.new.bytes), found.new.bytes);
            let same = Difference::build(&old, &old, &View::default(), Compared::Flat, false);
            prop_assert!(same.rows.iter().all(|row| row.status == Status::Same));
        }
    }
}
