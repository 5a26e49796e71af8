//! Is the truth of `leaky` true? An allocator that takes a backtrace of every allocation attributes each live byte to the
//! innermost function of the program itself, by debug information alone, and must arrive at the same table.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use mpp_workloads::leaky::{self, Chain, Options, Plugin, Row};

/// A function, a file and a line, as the debug information names them.
type Site = (String, String, u32);

#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    blocks_live: u64,
    bytes_live: u64,
    blocks_allocated: u64,
    bytes_allocated: u64,
}

#[derive(Default)]
struct Ledger {
    live: BTreeMap<usize, (Site, usize)>,
    sites: BTreeMap<Site, Counts>,
}

static LEDGER: Mutex<Option<Ledger>> = Mutex::new(None);

thread_local! {
    /// Set while this thread works for the ledger, whose own allocations do not count.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

struct Attributing;

impl Attributing {
    fn note(record: impl FnOnce(&mut Ledger)) {
        // A panic prints a backtrace under a lock that taking another backtrace would wait for.
        if std::thread::panicking() {
            return;
        }
        let busy = BUSY.try_with(|busy| busy.replace(true)).unwrap_or(true);
        if !busy {
            if let Some(ledger) = LEDGER.lock().unwrap().as_mut() {
                record(ledger);
            }
            BUSY.with(|busy| busy.set(false));
        }
    }

    fn allocated(memory: *mut u8, size: usize) {
        Self::note(|ledger| {
            let Some(site) = innermost(&format!("{:?}", Backtrace::force_capture())) else { return };
            let counts = ledger.sites.entry(site.clone()).or_default();
            counts.blocks_live += 1;
            counts.bytes_live += size as u64;
            counts.blocks_allocated += 1;
            counts.bytes_allocated += size as u64;
            ledger.live.insert(memory.addr(), (site, size));
        });
    }

    fn freed(memory: *mut u8) {
        Self::note(|ledger| {
            if let Some((site, size)) = ledger.live.remove(&memory.addr()) {
                let counts = ledger.sites.get_mut(&site).unwrap();
                counts.blocks_live -= 1;
                counts.bytes_live -= size as u64;
            }
        });
    }
}

// SAFETY: all memory comes from System; the notes about it do not touch it.
unsafe impl GlobalAlloc for Attributing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        let memory = unsafe { System.alloc(layout) };
        Self::allocated(memory, layout.size());
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        Self::freed(memory);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        let memory = unsafe { System.alloc_zeroed(layout) };
        Self::allocated(memory, layout.size());
        memory
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        Self::freed(memory);
        // SAFETY: the caller's promise is passed on.
        let memory = unsafe { System.realloc(memory, layout, new_size) };
        Self::allocated(memory, new_size);
        memory
    }
}

#[global_allocator]
static ATTRIBUTING: Attributing = Attributing;

/// The innermost frame in a site's source file of a backtrace in its `Debug` form: `{ fn: "...", file: "...", line: 1 }, ...`.
fn innermost(backtrace: &str) -> Option<Site> {
    backtrace.split("{ fn: \"").skip(1).find_map(|frame| {
        let (function, rest) = frame.split_once("\", file: \"")?;
        let (file, rest) = rest.split_once("\", line: ")?;
        let line = rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
        let file = file.rsplit_once("workloads/").map(|(_, file)| format!("workloads/{file}"))?;
        (file.starts_with("workloads/src/leaky/") || file == "workloads/plugin/src/lib.rs")
            .then(|| (function.to_owned(), file, line))
    })
}

/// Whether what follows the truth's `function` in a symbol is only what `Place::function` says may follow.
fn is_function(symbol: &str, function: &str) -> bool {
    symbol.strip_prefix(function).is_some_and(|rest| {
        rest.is_empty()
            || rest.starts_with("::<")
            || rest.starts_with('<')
            || rest.starts_with("::{")
            || rest.starts_with("::h")
    })
}

#[test]
fn debug_information_attributes_every_block_as_the_truth_says() {
    static KEPT: Chain = Chain::new();
    // A backtrace shortens paths below the current folder.
    std::env::set_current_dir("/").unwrap();
    // SAFETY: the interface is a constant of the crate that this test is linked with.
    let plugin =
        unsafe { Plugin::from_interface(leaky_plugin::leaky_plugin_interface(), Path::new("linked")) }.unwrap();
    let options = Options { scale: 0.001, seed: 5, threads: 3, plugin: Some(plugin), ..Options::default() };

    *LEDGER.lock().unwrap() = Some(Ledger::default());
    let truth = leaky::run(&options, &KEPT).unwrap();
    let ledger = LEDGER.lock().unwrap().take().unwrap();

    let mut lines: BTreeMap<(&str, u32), Vec<&Row>> = BTreeMap::new();
    truth.rows.iter().for_each(|row| lines.entry((&row.file, row.line)).or_default().push(row));
    for ((file, line), rows) in lines {
        let found: Vec<_> = ledger.sites.iter().filter(|((_, f, l), _)| f == file && *l == line).collect();
        assert!(!found.is_empty(), "{file}:{line}: nothing was attributed to this line");
        let sum = |value: fn(&Counts) -> u64| found.iter().map(|(_, counts)| value(counts)).sum::<u64>();
        let told = |value: fn(&Row) -> u64| rows.iter().map(|row| value(row)).sum::<u64>();
        let place = format!("{}, {file}:{line}", rows[0].function);
        assert_eq!(sum(|counts| counts.blocks_live), told(|row| row.blocks_live), "live blocks of {place}");
        assert_eq!(sum(|counts| counts.bytes_live), told(|row| row.bytes_live), "live bytes of {place}");
        assert_eq!(sum(|counts| counts.blocks_allocated), told(|row| row.blocks_allocated), "blocks of {place}");
        assert_eq!(sum(|counts| counts.bytes_allocated), told(|row| row.bytes_allocated), "bytes of {place}");
        for ((symbol, ..), _) in found {
            assert!(is_function(symbol, &rows[0].function), "{symbol} is not {place}");
        }
    }
    let bytes_in_sites: u64 = truth.total().bytes_live;
    let all: u64 = ledger.sites.values().map(|counts| counts.bytes_live).sum();
    assert!(all - bytes_in_sites < 16 << 10, "bookkeeping of {} bytes is live at exit", all - bytes_in_sites);
}
