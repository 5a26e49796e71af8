use super::super::test_profile::profile;
use super::*;
use crate::model::Amount;

/// What one function does over time.
fn one(values: &[u64]) -> Series {
    let mut snapshots = Snapshots::new(View::default());
    for &value in values {
        let stacks: &[(&[&'static str], u64)] = if value == 0 { &[] } else { &[(&["f", "main"], value)] };
        snapshots.add(&profile(stacks));
    }
    let mut growth = snapshots.finish(Times::Order, true);
    assert_eq!(growth.total.values, values);
    growth.rows.pop().unwrap_or(growth.total)
}

#[test]
fn shapes() {
    let shapes: [(&[u64], Trend, Option<f64>); 10] = [
        (&[1, 2, 3, 4, 5, 6], Trend::Grows, Some(1.0)),
        (&[0, 10, 10, 20, 20, 30, 30, 40], Trend::Grows, Some(1.0)),
        (&[1, 5, 9, 10, 10, 10, 10], Trend::LevelsOff, Some(1.0)),
        (&[1, 1, 1, 1, 9, 9, 9], Trend::Rises, Some(1.0)),
        (&[1, 9, 2, 9, 2, 9], Trend::Rises, Some(22.0 / 36.0)),
        (&[9, 7, 5], Trend::Falls, Some(0.0)),
        (&[5, 5, 5], Trend::Flat, None),
        (&[5, 9, 5], Trend::Flat, Some(0.5)),
        (&[10, 20, 30], Trend::Grows, Some(1.0)),
        (&[0, 0, 0], Trend::Flat, None),
    ];
    for (values, trend, steadiness) in shapes {
        let found = one(values);
        assert_eq!((found.trend, found.steadiness), (trend, steadiness), "{values:?}");
    }
    assert_eq!(one(&[0, 10, 20, 30]).slope, 10.0);
}

#[test]
fn rows_come_and_go() {
    let mut snapshots = Snapshots::new(View::default());
    snapshots.add(&profile(&[(&["early"], 5), (&["leak"], 10)]));
    snapshots.add(&profile(&[(&["leak"], 20), (&["late"], 7)]));
    snapshots.add(&profile(&[(&["leak"], 30)]));
    snapshots.add(&profile(&[(&["leak"], 40), (&["late"], 100)]));
    assert_eq!(snapshots.taken(), 4);
    let growth = snapshots.finish(Times::Seconds(&[0.0, 2.0, 4.0, 6.0]), true);
    let rows: Vec<(&str, &[u64], Trend)> =
        growth.rows.iter().map(|row| (&*row.name, &*row.values, row.trend)).collect();
    let expected: [(&str, &[u64], Trend); 3] = [
        ("leak", &[10, 20, 30, 40], Trend::Grows),
        ("late", &[0, 7, 0, 100], Trend::Rises),
        ("early", &[5, 0, 0, 0], Trend::Falls),
    ];
    assert_eq!(rows, expected);
    assert_eq!((growth.rows[0].slope, growth.total.values.as_slice()), (5.0, &[15, 27, 30, 140][..]));
}

/// A large cache with a small leak beside it in one function. In one run, the samples of the cache are the same in each snapshot.
#[test]
fn what_stays_has_no_chance() {
    let growth = |one_run| {
        let mut snapshots = Snapshots::new(View::default());
        for leaked in [0, 10, 20, 30] {
            let mut snapshot = profile(&[(&["f"], 0)]);
            snapshot.sample_rate = 524_288;
            let amount = Amount { objects: 400 + leaked, bytes: (400 + leaked) * 4096 };
            snapshot.samples[0].block_size = 4096;
            (snapshot.samples[0].live, snapshot.samples[0].allocated) = (amount, amount);
            snapshots.add(&snapshot);
        }
        snapshots.finish(Times::Order, one_run)
    };
    assert_eq!(growth(true).rows[0].trend, Trend::Grows);
    assert_eq!(growth(false).rows[0].trend, Trend::Flat, "other runs could have sampled so by chance");
    assert!(growth(true).rows[0].error < growth(false).rows[0].error / 4.0);
}

#[test]
fn no_snapshot_is_no_trend() {
    let growth = Snapshots::new(View::default()).finish(Times::Order, true);
    assert_eq!((growth.rows.len(), growth.total.trend), (0, Trend::Flat));
}
