//! The truth: what each site allocated and what of it is live, as text or as JSON lines.

use std::io::{self, Write};

use serde::Serialize;

use super::site::{Module, Site};
use super::stream::Tally;
use crate::driver::report::Schema;

/// The schema of the JSON lines.
pub const SCHEMA: Schema = Schema { name: "leaky-truth", version: 1 };

/// The first line: what was run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The process id.
    pub pid: u32,
    /// The seed that the order of operations follows from.
    pub seed: u64,
    /// What the counts were multiplied with.
    pub scale: f64,
    /// The number of worker threads.
    pub threads: u32,
    /// How often the temporary allocations were repeated.
    pub cycles: u32,
    /// The deepest recursion of the site `recursive`.
    pub depth: u32,
    /// The path of the plugin, if one was loaded.
    pub plugin: Option<String>,
    /// Folds the order of all operations of all threads: equal for equal runs.
    pub order: u64,
}

/// One line for each site and thread.
///
/// Bytes are bytes of blocks as asked for, which are also usable bytes under an allocator that has these sizes as classes.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The short name of the site.
    pub site: &'static str,
    /// The function that allocates, innermost of the program's own: the demangled symbol starts with it
    /// (see `Place::function`).
    pub function: String,
    /// The source file, relative to the root of the repository: the path in the debug information ends with it.
    pub file: String,
    /// The line of the allocating call.
    pub line: u32,
    /// What that line holds.
    pub call: &'static str,
    /// Whether `function` exists in the debug information only.
    pub inlined: bool,
    /// The module that holds the code.
    pub module: Module,
    /// The name of the thread; `main` for the main thread.
    pub thread: String,
    /// The size of each block, in bytes.
    pub block_size: u64,
    /// Blocks that are live at exit.
    pub blocks_live: u64,
    /// Bytes that are live at exit.
    pub bytes_live: u64,
    /// Blocks that were ever allocated. A block that grows (site `std-grown`) counts once for each size it had; under an
    /// allocator that grows blocks in place a profiler may see fewer.
    pub blocks_allocated: u64,
    /// Bytes that were ever allocated, counted in the same way.
    pub bytes_allocated: u64,
}

impl Row {
    pub(super) fn new(site: &Site, thread: &str, tally: &Tally) -> Option<Self> {
        let at = tally.at?;
        Some(Self {
            site: site.id,
            function: at.function().to_owned(),
            file: at.file.to_owned(),
            line: at.line,
            call: site.call,
            inlined: site.inlined,
            module: site.module,
            thread: thread.to_owned(),
            block_size: site.block_size,
            blocks_live: tally.kept,
            bytes_live: tally.kept * site.block_size,
            blocks_allocated: tally.blocks,
            bytes_allocated: tally.bytes,
        })
    }
}

/// The last line: sums over all rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Total {
    /// Blocks that are live at exit.
    pub blocks_live: u64,
    /// Bytes that are live at exit.
    pub bytes_live: u64,
    /// Blocks that were ever allocated.
    pub blocks_allocated: u64,
    /// Bytes that were ever allocated.
    pub bytes_allocated: u64,
}

/// What a run of `leaky` did.
#[derive(Clone, Debug)]
pub struct Truth {
    /// What was run.
    pub run: Run,
    /// One for each site and thread.
    pub rows: Vec<Row>,
}

impl Truth {
    /// The sums over all rows.
    #[must_use]
    pub fn total(&self) -> Total {
        self.rows.iter().fold(Total::default(), |sum, row| Total {
            blocks_live: sum.blocks_live + row.blocks_live,
            bytes_live: sum.bytes_live + row.bytes_live,
            blocks_allocated: sum.blocks_allocated + row.blocks_allocated,
            bytes_allocated: sum.bytes_allocated + row.bytes_allocated,
        })
    }

    /// Writes JSON lines: `kind` is `run`, then `site` for each row, then `total`.
    ///
    /// # Errors
    /// When `to` cannot be written.
    pub fn write_json(&self, to: &mut impl Write) -> io::Result<()> {
        SCHEMA.line(to, "run", &self.run)?;
        self.rows.iter().try_for_each(|row| SCHEMA.line(to, "site", row))?;
        SCHEMA.line(to, "total", &self.total())
    }

    /// Writes a table for people.
    ///
    /// # Errors
    /// When `to` cannot be written.
    pub fn write_text(&self, to: &mut impl Write) -> io::Result<()> {
        let (run, total) = (&self.run, self.total());
        writeln!(to, "leaky, seed {}, scale {}, {} threads: live at exit", run.seed, run.scale, run.threads)?;
        writeln!(
            to,
            "{:>12} {:>9} {:>7}  {:9} {:8} function, file:line",
            "bytes", "blocks", "size", "thread", "inlined"
        )?;
        for row in &self.rows {
            writeln!(
                to,
                "{:>12} {:>9} {:>7}  {:9} {:8} {}  {}:{}",
                row.bytes_live,
                row.blocks_live,
                row.block_size,
                row.thread,
                if row.inlined { "inlined" } else { "" },
                row.function,
                row.file,
                row.line
            )?;
        }
        writeln!(to, "{:>12} {:>9}  total", total.bytes_live, total.blocks_live)?;
        writeln!(to, "{:>12} {:>9}  allocated in all", total.bytes_allocated, total.blocks_allocated)
    }
}
