//! The rows of the memory-return tables: a name, and the command line of `mpp-workload` that it stands for.

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name; unique.
    pub name: &'static str,
    /// The table it belongs to.
    pub group: Group,
    /// The arguments of `mpp-workload`.
    pub arguments: Vec<&'static str>,
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Threads, and nobody asks.
    Automatic,
    /// A thread asks.
    Asked,
    /// A process with one thread.
    Alone,
    /// What piles up.
    Peaks,
    /// Drain to zero.
    Turnover,
    /// What owners notice, and what an idle process does.
    Owners,
}

impl Group {
    /// Its name on the command line and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::Asked => "asked",
            Self::Alone => "alone",
            Self::Peaks => "peaks",
            Self::Turnover => "turnover",
            Self::Owners => "owners",
        }
    }
}

/// All rows, in the order of the tables. Every line comes behind `return`.
const ROWS: &[(&str, Group, &str)] = &[
    ("busy-1", Group::Automatic, "churn --during busy --threads 1"),
    ("busy-4", Group::Automatic, "churn --during busy --threads 4"),
    ("busy-4-random", Group::Automatic, "churn --during busy --threads 4 --order random"),
    ("same-1", Group::Automatic, "churn --during same --threads 1"),
    ("same-4", Group::Automatic, "churn --during same --threads 4"),
    ("asleep-1", Group::Automatic, "churn --during asleep --threads 1"),
    ("asleep-4", Group::Automatic, "churn --during asleep --threads 4"),
    ("asleep-4-random", Group::Automatic, "churn --during asleep --threads 4 --order random"),
    ("asked-busy-4", Group::Asked, "churn --during busy --threads 4 --call purge"),
    ("asked-asleep-1", Group::Asked, "churn --during asleep --threads 1 --call once"),
    ("asked-asleep-4", Group::Asked, "churn --during asleep --threads 4 --call once"),
    ("asked-same-4", Group::Asked, "churn --during same --threads 4 --call once"),
    ("own-asleep-4", Group::Asked, "churn --during asleep --threads 4 --call own"),
    ("own-alone-pairs", Group::Asked, "alone --then pairs --asks"),
    ("own-alone-block", Group::Asked, "alone --then block --asks"),
    ("alone-pairs", Group::Alone, "alone --then pairs"),
    ("alone-pairs-random", Group::Alone, "alone --then pairs --order random"),
    ("alone-block", Group::Alone, "alone --then block"),
    ("alone-block-random", Group::Alone, "alone --then block --order random"),
    ("alone-loop", Group::Alone, "alone --then loop --watch 500ms"),
    ("threads-64", Group::Peaks, "threads --threads 64"),
    ("burst", Group::Peaks, "burst --watch 500ms"),
    ("pairs-64", Group::Turnover, "turnover --size 64 --rounds 200000 --watch 0"),
    ("pairs-4096", Group::Turnover, "turnover --size 4096 --rounds 200000 --watch 0"),
    ("pairs-64k", Group::Turnover, "turnover --size 65536 --rounds 200000 --watch 0"),
    ("pairs-1m", Group::Turnover, "turnover --size 1048576 --rounds 200000 --watch 0"),
    ("pairs-16m", Group::Turnover, "turnover --size 16777216 --rounds 2000 --watch 0"),
    ("sawtooth-512", Group::Turnover, "turnover --size 512 --batch 1000 --rounds 200 --watch 0"),
    ("sawtooth-4096", Group::Turnover, "turnover --size 4096 --batch 1000 --rounds 200 --watch 0"),
    ("latency", Group::Owners, "latency --watch 0"),
    ("latency-purged", Group::Owners, "latency --purged --watch 0"),
    ("busy-long", Group::Owners, "churn --during busy --threads 4 --watch 20s"),
    ("same-long", Group::Owners, "churn --during same --threads 4 --watch 20s"),
    ("idle", Group::Owners, "idle --scale 0.3 --watch 65s"),
];

/// All rows.
#[must_use]
pub fn rows() -> Vec<Row> {
    let row = |&(name, group, line): &(&'static str, Group, &'static str)| Row {
        name,
        group,
        arguments: std::iter::once("return").chain(line.split(' ')).collect(),
    };
    ROWS.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = rows().into_iter().map(|row| row.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(all, names.len());
    }
}
