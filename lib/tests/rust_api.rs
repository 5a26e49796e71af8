//! The crate as the global allocator of a program: this one.

use mimalloc_pprof::options::{self, Opt};
use mimalloc_pprof::{
    MiMalloc, PurgeFlags, PurgeStatus, expand, good_size, on_thread_idle, park_while_idle, purge_all, purge_all_ex,
    purge_holes_report_to, purge_holes_stats, recalloc, rezalloc, stats, usable_size,
};
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, realloc};
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};

#[global_allocator]
static GLOBAL: MiMalloc = MiMalloc;

/// xorshift; every test has its own.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    /// Mostly small, sometimes up to 2 MiB; alignments up to 64 KiB.
    fn layout(&mut self) -> Layout {
        let bits = [4, 6, 8, 10, 12, 16, 21][self.below(100).min(6 * 16) / 16];
        let alignment = if self.below(4) == 0 { 1 << self.below(17) } else { 8 };
        Layout::from_size_align(1 + self.below(1 << bits), alignment).unwrap()
    }
}

/// A block with a stamp at its first and its last byte, which its layout and its own address decide.
struct Block {
    at: *mut u8,
    layout: Layout,
    stamp: u8,
}

// SAFETY: the block has one owner.
unsafe impl Send for Block {}

impl Block {
    fn new(layout: Layout, stamp: u8, zeroed: bool) -> Block {
        // SAFETY: layouts have a size.
        let at = unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
        assert!(!at.is_null() && (at as usize).is_multiple_of(layout.align()), "{layout:?}");
        let block = Block { at, layout, stamp };
        if zeroed {
            assert!(block.bytes().iter().all(|&byte| byte == 0), "{layout:?}");
        }
        block.fill();
        block
    }

    #[allow(clippy::mut_from_ref, reason = "one owner; see above")]
    fn bytes(&self) -> &mut [u8] {
        // SAFETY: the block has these bytes.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.layout.size()) }
    }

    fn fill(&self) {
        self.bytes().fill(self.stamp);
    }

    fn check(&self, size: usize) {
        assert!(self.bytes()[..size].iter().all(|&byte| byte == self.stamp), "{:?} at {:p}", self.layout, self.at);
    }

    fn resize(&mut self, size: usize) {
        let kept = size.min(self.layout.size());
        // SAFETY: the block has this layout.
        let at = unsafe { realloc(self.at, self.layout, size) };
        assert!(!at.is_null() && (at as usize).is_multiple_of(self.layout.align()), "{:?} to {size}", self.layout);
        (self.at, self.layout) = (at, Layout::from_size_align(size, self.layout.align()).unwrap());
        self.check(kept);
        self.fill();
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check(self.layout.size());
        }
        // SAFETY: the block has this layout.
        unsafe { dealloc(self.at, self.layout) }
    }
}

#[test]
fn blocks_of_all_layouts_go_from_thread_to_thread() {
    const THREADS: usize = 8;
    const STEPS: usize = 4000;
    let shared: Arc<Vec<Mutex<Option<Block>>>> = Arc::new((0..64).map(|_| Mutex::new(None)).collect());
    let work = |thread: usize, shared: &[Mutex<Option<Block>>]| {
        let mut random = Random(thread as u64 * 77 + 1);
        let mut own: Vec<Block> = Vec::new();
        for step in 0..STEPS {
            match random.below(4) {
                0 => drop((!own.is_empty()).then(|| own.swap_remove(random.below(own.len())))),
                1 if !own.is_empty() => {
                    let size = random.layout().size();
                    let at = random.below(own.len());
                    own[at].resize(size);
                }
                2 => {
                    let place = &shared[random.below(shared.len())];
                    let given = own.pop();
                    let got = std::mem::replace(&mut *place.lock().unwrap(), given);
                    own.extend(got);
                }
                _ => own.push(Block::new(random.layout(), (thread * STEPS + step) as u8, step % 3 == 0)),
            }
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let shared = Arc::clone(&shared);
            // Each lives twice: the second one takes over what the first one left.
            scope.spawn(move || {
                work(thread, &shared);
                std::thread::spawn(move || work(thread + THREADS, &shared)).join().unwrap();
            });
        }
    });
}

#[test]
fn growth_and_shrinking_keep_what_is_there() {
    for alignment in [1, 16, 64, 4096, 1 << 17] {
        for start in [1, 24, 1000, 300_000] {
            let mut block = Block::new(Layout::from_size_align(start, alignment).unwrap(), 0x5a, false);
            let mut size = start;
            while size < 3 << 20 {
                size += size / 2 + 1;
                block.resize(size);
            }
            while size > 1 {
                size = size * 2 / 5;
                block.resize(size.max(1));
            }
        }
    }
    let (mut numbers, mut text) = (Vec::new(), String::new());
    for i in 0..200_000u32 {
        numbers.push(i);
        text.push(char::from(b'a' + (i % 26) as u8));
    }
    numbers.shrink_to_fit();
    assert!(numbers.iter().enumerate().all(|(i, &number)| i as u32 == number));
    assert!(text.bytes().enumerate().all(|(i, letter)| letter == b'a' + (i % 26) as u8));
}

#[test]
fn a_size_that_nearly_fits_stays_where_it_is() {
    for size in [48, 1000, 1024, 5000, 100_000, 600_000] {
        let mut block = Block::new(Layout::from_size_align(size, 8).unwrap(), 3, false);
        let at = block.at;
        block.resize(good_size(size));
        block.resize(good_size(size) / 2);
        assert_eq!(block.at, at, "{size}");
    }
}

/// What was there before is not.
#[test]
fn zeroed_blocks_are_zero() {
    for alignment in [1, 16, 64, 4096, 1 << 16, 1 << 18] {
        for size in [1, 8, 100, 1000, 1024, 1025, 40_000, 524_288, 524_289, 3_000_000] {
            let layout = Layout::from_size_align(size, alignment).unwrap();
            for _ in 0..3 {
                drop(Block::new(layout, 0xff, false));
                drop(Block::new(layout, 0xff, true));
            }
        }
    }
}

#[test]
fn what_cannot_be_had_is_null() {
    let most = isize::MAX as usize;
    for (size, alignment) in [(most - 15, 1), (most / 2, 64), (8, 1 << 62), (1 << 46, 4096)] {
        let layout = Layout::from_size_align(size, alignment).unwrap();
        // SAFETY: layouts have a size.
        let blocks = unsafe { [alloc(layout), alloc_zeroed(layout)] };
        // The compiler takes it for granted that allocations it can do without succeed.
        assert!(black_box(blocks).iter().all(|block| block.is_null()), "{layout:?}");
    }
    let block = Block::new(Layout::new::<[u8; 100]>(), 9, false);
    // SAFETY: the block has this layout, and keeps it.
    assert!(black_box(unsafe { realloc(block.at, block.layout, most - 15) }).is_null());
}

#[test]
fn collections_outlive_the_threads_that_made_them() {
    let (sender, receiver) = mpsc::channel();
    for thread in 0..6u32 {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let words: HashMap<String, Vec<u32>> = (0..2000).map(|i| (format!("{thread}-{i}"), vec![i; 7])).collect();
            let tree: BTreeMap<u32, Arc<[u32]>> = (0..2000).map(|i| (i * 7 % 1999, vec![i; 9].into())).collect();
            sender.send((thread, words, tree)).unwrap();
        });
    }
    drop(sender);
    for (thread, words, tree) in receiver {
        assert_eq!(words[&format!("{thread}-1234")], [1234; 7]);
        assert!(tree.values().all(|values| values.iter().all(|value| *value == values[0])));
    }
}

#[test]
fn destructors_of_threads_may_allocate() {
    struct Late(Vec<u8>);
    impl Drop for Late {
        fn drop(&mut self) {
            let more: Vec<Vec<u8>> = (1..100).map(|size| vec![1; size * 100]).collect();
            assert_eq!(more.iter().map(|bytes| bytes.len()).sum::<usize>(), 495_000);
            self.0.extend(&more[50]);
        }
    }
    thread_local!(static LATE: Late = const { Late(Vec::new()) });
    for _ in 0..20 {
        std::thread::spawn(|| LATE.with(|late| assert!(late.0.is_empty()))).join().unwrap();
    }
}

#[test]
fn statistics_balance() {
    if again("statistics_balance", &[]).is_some() {
        return;
    }
    // Nothing else runs meanwhile, and nothing else in this program has this size.
    const SIZE: usize = 425_000;
    let bin = (0..stats::BINS).find(|&bin| stats::bin_size(bin) >= SIZE).unwrap();
    let now = || stats::get().unwrap().malloc_bins[bin];
    let before = now();
    let layout = Layout::from_size_align(SIZE, 8).unwrap();
    let blocks: Vec<Vec<Block>> = std::thread::scope(|scope| {
        let made =
            [1, 2, 3, 4].map(|count| scope.spawn(move || (0..count).map(|_| Block::new(layout, 1, false)).collect()));
        made.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!((now().total - before.total, now().current - before.current), (10, 10));
    std::thread::spawn(move || drop(blocks)).join().unwrap();
    assert_eq!((now().total - before.total, now().current - before.current), (10, 0));

    let huge = || stats::get().unwrap().malloc_huge.total;
    let before = huge();
    drop(Block::new(Layout::from_size_align(7 << 20, 8).unwrap(), 1, false));
    assert!(huge() - before >= 7 << 20);
}

#[test]
fn statistics_of_the_main_sub_process() {
    use stats::Subproc::{Current, Main};
    let kept = vec![1u8; 9 << 20];
    for which in [Main, Current] {
        let counts = stats::subproc_get(which).unwrap();
        assert!(counts.malloc_huge.current >= kept.len() as i64 && counts.malloc_normal_count.total > 0, "{counts:?}");
        assert_eq!(stats::subproc_get_exclusive(which).unwrap().malloc_huge.total, 0);
        let json: String = stats::subproc_json(which).unwrap();
        assert!(json.contains("\"malloc_huge\": {"), "{json}");
    }
}

#[test]
fn statistics_as_text() {
    let json: String = stats::json().unwrap();
    let balanced = |open, close| json.matches(open).count() == json.matches(close).count();
    assert!(json.contains("\"malloc_normal\": {") && balanced('{', '}') && balanced('[', ']'), "{json}");
    assert_eq!(stats::get().unwrap().as_raw().version, stats::STAT_VERSION);
    let mut text = String::new();
    stats::write_to(&mut text).unwrap();
    assert!(text.contains("block size") && text.contains("KiB resident"), "{text}");

    /// Has room for nothing.
    #[derive(Default)]
    struct Full;
    impl std::fmt::Write for Full {
        fn write_str(&mut self, _: &str) -> std::fmt::Result {
            Err(std::fmt::Error)
        }
    }
    assert!(stats::json_as::<Full>().is_none() && stats::write_to(&mut Full).is_err());
}

#[test]
fn sizes_and_zeroed_growth() {
    // SAFETY: the blocks are used within their sizes, and freed with layouts that suit them.
    unsafe {
        for size in [1, 16, 100, 1000, 5000, 600_000] {
            let block = Block::new(Layout::from_size_align(size, 8).unwrap(), 1, false);
            assert_eq!(usable_size(block.at), good_size(size), "{size}");
            assert_eq!(expand(block.at, good_size(size)), block.at);
        }
        assert_eq!((usable_size(std::ptr::null()), expand(std::ptr::null_mut(), 1)), (0, std::ptr::null_mut()));

        let mut block = rezalloc(std::ptr::null_mut(), 20);
        for (before, size) in [(20, 500), (500, 70_000), (70_000, 2_000_000)] {
            block.write_bytes(7, before);
            let usable = usable_size(block);
            block = recalloc(block, size / 10, 10);
            let bytes = std::slice::from_raw_parts(block, size);
            assert!(bytes[..before].iter().all(|&byte| byte == 7) && bytes[usable..].iter().all(|&byte| byte == 0));
        }
        assert!(recalloc(block, usize::MAX / 2, 3).is_null());
        dealloc(block, Layout::from_size_align(2_000_000, 1).unwrap());
    }
}

/// What is free comes back, from this thread's caches too, and what is not stays.
#[test]
fn memory_is_returned() {
    let mut random = Random(5);
    let mut blocks: Vec<Block> =
        (0..60_000).map(|i| Block::new(Layout::from_size_align(600, 8).unwrap(), i as u8, false)).collect();
    blocks.retain(|_| random.below(20) == 0);
    let (status, report) = purge_all_ex(PurgeFlags::FORCE_RECLAIM, 60_000);
    assert!(status == PurgeStatus::Ok && report.complete && report.reclaimed && !report.gated, "{report:?}");
    let holes = purge_holes_stats();
    // Other tests use memory again, and the allocator gives some back by itself.
    assert!(
        holes.purged_bytes_total >= report.hole_bytes && holes.purged_bytes_total > 10 << 20,
        "{holes:?} {report:?}"
    );
    assert!(holes.discard_calls > 0 && holes.blocks_visited > 60_000 && holes.full_sweeps > 0, "{holes:?}");
    blocks.iter().for_each(|block| block.check(600));
    let zeroed: Vec<Block> =
        (0..60_000).map(|i| Block::new(Layout::from_size_align(600, 8).unwrap(), i as u8, true)).collect();
    assert!(purge_holes_stats().reuse_calls > 0);
    blocks.iter().chain(&zeroed).for_each(|block| block.check(600));
    drop((blocks, zeroed));

    on_thread_idle();
    drop(park_while_idle());
    assert!(purge_all(false).theaps_pending == 0);
    mimalloc_pprof::collect(true);
    let mut text = String::new();
    purge_holes_report_to(&mut text).unwrap();
    assert!(text.contains("free and in memory: ") && text.contains("block size") && text.contains("holes: "), "{text}");
    let memory = stats::get().unwrap();
    assert!(
        memory.purged.total > 10 << 20 && memory.purge_calls.total > 0 && memory.pages_retire.total > 0,
        "{memory:?}"
    );
    assert!(memory.reserved.current >= memory.committed.current && memory.committed.total > memory.committed.current);
}

#[test]
fn options_are_numbers() {
    let option = Opt::from_raw(Opt::OS_TAG.as_raw()).unwrap();
    assert_eq!((option, option.name(), options::get(option)), (Opt::OS_TAG, "os_tag", 240));
    options::set_default(option, 5);
    assert_eq!(options::get(option), 5);
    options::set(option, 6);
    options::set_default(option, 7);
    assert_eq!((options::get(option), options::get_clamp(option, 10, 20)), (6, 10));
    options::disable(option);
    assert!(!options::is_enabled(option));
    options::set_enabled(option, true);
    options::set_enabled_default(option, false);
    assert!(options::is_enabled(option) && options::all().len() == 65);
    assert_eq!(options::get_size(Opt::ARENA_MAX_OBJECT_SIZE), 2 << 30);
    let mut text = String::new();
    options::write_to(&mut text).unwrap();
    assert_eq!(text.lines().count(), options::all().len());
}

/// Run this test again in a process of its own, with something in the environment; what it has written. `None`: this is that process.
fn again(test: &str, environment: &[(&str, &str)]) -> Option<(String, String)> {
    const MARK: &str = "RUST_API_AGAIN";
    if std::env::var_os(MARK).is_some() {
        return None;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .envs(environment.iter().copied())
        .env(MARK, "1")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, error) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{error}");
    Some((out, error))
}

#[test]
fn the_environment_sets_options() {
    let environment = [("MIMALLOC_PAGE_FULL_RETAIN", "9"), ("MIMALLOC_SHOW_STATS", "1")];
    let Some((out, error)) = again("the_environment_sets_options", &environment) else {
        return println!("retains {}", options::get(Opt::PAGE_FULL_RETAIN));
    };
    assert!(out.contains("retains 9"), "{out}");
    assert!(error.contains("block size") && error.matches("KiB resident").count() == 1, "{error}");
}

#[test]
fn the_environment_starts_the_profiler() {
    let dump = std::env::temp_dir().join(format!("rust_api.{}.heap", std::process::id()));
    let environment = [
        ("MIMALLOC_PROF", "1"),
        ("MIMALLOC_PROF_SAMPLE_RATE", "4096"),
        ("MIMALLOC_PROF_DUMP_AT_EXIT", dump.to_str().unwrap()),
    ];
    if again("the_environment_starts_the_profiler", &environment).is_none() {
        return std::mem::forget((0..4000).map(|_| vec![0u8; 1000]).collect::<Vec<_>>());
    }
    let text = std::fs::read_to_string(&dump).unwrap();
    std::fs::remove_file(&dump).unwrap();
    assert!(text.starts_with("heap profile:") && text.contains("@ heap_v2/4096"), "{text}");
    // 4 MB at a sample for each 4 KiB: about a thousand samples; a fifth of that is far off already.
    let samples: u64 = text["heap profile:".len()..].split(':').next().unwrap().trim().parse().unwrap();
    assert!(samples > 200, "{text}");
}
