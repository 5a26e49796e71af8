//! The rows of the performance table: a name, and the command line of `mpp-workload` that it stands for.

/// A group of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// One thread, one way of using the allocator.
    Micro,
    /// Threads with a pattern each.
    Scaling,
    /// Threads that come, go, or idle.
    Threads,
    /// Shapes of well-known benchmarks.
    Shapes,
}

impl Group {
    /// Its name on the command line and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Micro => "micro",
            Self::Scaling => "scaling",
            Self::Threads => "threads",
            Self::Shapes => "shapes",
        }
    }
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name; unique.
    pub name: String,
    /// Its group.
    pub group: Group,
    /// The arguments of `mpp-workload`.
    pub arguments: Vec<String>,
}

/// Rows of one thread.
const MICRO: &[(&str, &str)] = &[
    ("pair-16", "pair --size 16"),
    ("pair-64", "pair --size 64"),
    ("pair-256", "pair --size 256"),
    ("pair-1024", "pair --size 1024"),
    ("pair-8192", "pair --size 8192"),
    ("pairmix-16-1024", "pairmix --low 16 --high 1024"),
    ("calloc-64", "calloc --size 64"),
    ("calloc-4096", "calloc --size 4096"),
    ("aligned-64-128", "aligned --alignment 64 --size 128"),
    ("aligned-4096-4096", "aligned --alignment 4096 --size 4096"),
    ("batch-fifo-1000", "batch --order fifo --count 1000 --low 16 --high 256"),
    ("batch-lifo-1000", "batch --order lifo --count 1000 --low 16 --high 256"),
    ("batch-rand-1000", "batch --order random --count 1000 --low 16 --high 256"),
    ("batch-fifo-100000", "batch --order fifo --count 100000 --low 16 --high 512"),
    ("batch-lifo-100000", "batch --order lifo --count 100000 --low 16 --high 512"),
    ("batch-rand-100000", "batch --order random --count 100000 --low 16 --high 512"),
    ("window-1000", "window --count 1000 --low 16 --high 4096"),
    ("window-100000", "window --count 100000 --low 16 --high 1024"),
    ("window-20000-big", "window --count 20000 --low 1024 --high 32768"),
    ("grow-1048576", "grow --limit 1048576"),
    ("grow15-65536", "grow15 --limit 65536"),
    ("big-32768", "big --size 32768"),
    ("big-131072", "big --size 131072"),
    ("big-1048576", "big --size 1048576"),
    ("big-4194304", "big --size 4194304"),
];

/// Patterns that run on 1, 2, 4 and 8 threads.
const SCALING: &[&str] = &["tiny", "general", "large", "handoff", "batches"];
const SCALING_THREADS: [u32; 4] = [1, 2, 4, 8];

/// Rows about threads themselves.
const THREADS: &[(&str, &str)] = &[
    ("threads-100", "threads --each 100"),
    ("threads-2000", "threads --each 2000"),
    ("idle-threads-64", "idle --threads 64"),
];

/// Shapes of well-known benchmarks.
const SHAPES: &[(&str, &str)] = &[
    ("cache-scratch-2", "cache-scratch --threads 2"),
    ("cache-thrash-2", "cache-thrash --threads 2"),
    ("larson-2", "larson --threads 2"),
    ("larson-sized-2", "larson-sized --threads 2"),
    ("xmalloc-test-2", "xmalloc-test --threads 2"),
    ("mstress-2", "mstress --threads 2"),
    ("sh6bench-1", "sh6bench --threads 1"),
    ("sh8bench-2", "sh8bench --threads 2"),
    ("alloc-test-1", "alloc-test --threads 1"),
    ("alloc-test-2", "alloc-test --threads 2"),
    ("glibc-simple", "glibc-simple"),
    ("glibc-thread-2", "glibc-thread --threads 2"),
    ("espresso", "espresso"),
    ("malloc-large", "malloc-large"),
    ("mleak-2", "mleak --threads 2"),
];

/// All rows, in the order of the table.
#[must_use]
pub fn rows() -> Vec<Row> {
    let row = |group, name: &str, line: &str| Row {
        name: name.to_owned(),
        group,
        arguments: line.split(' ').map(str::to_owned).collect(),
    };
    let mut rows: Vec<_> = MICRO.iter().map(|(name, line)| row(Group::Micro, name, line)).collect();
    for pattern in SCALING {
        for threads in SCALING_THREADS {
            let line = format!("{pattern} --threads {threads} --pin spread");
            rows.push(row(Group::Scaling, &format!("{pattern}-t{threads}"), &line));
        }
    }
    for threads in [2, 4] {
        let line = format!("handoff --threads {threads} --pin one");
        rows.push(row(Group::Scaling, &format!("handoff-1core-t{threads}"), &line));
    }
    rows.extend(THREADS.iter().map(|(name, line)| row(Group::Threads, name, line)));
    rows.extend(SHAPES.iter().map(|(name, line)| row(Group::Shapes, name, line)));
    rows
}
