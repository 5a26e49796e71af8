//! Timelines of real programs: what they tell agrees with the dump of the same process, and survives what may come.

mod common;

use std::fs::File;
use std::path::{Path, PathBuf};

use common::{Place, json};
use mpp_profile::formats::Limits;
use mpp_profile::formats::timeline::{self, Ending, Happening, Item, Slice, Tick};
use mpp_profile::{Metric, Profile, Unit};

/// Threads that allocate, free, grow, and free what others have allocated; a little stays. Then, by its argument: exit, be killed, or fork
/// a child that does the same.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *shared[64];
static void *kept[4][128];

static void *work(void *argument) {
    long me = (long)argument;
    unsigned state = 77 * me + 5;
    pthread_setname_np(pthread_self(), "worker");
    for (int i = 0; i < 60000; i++) {
        state = state * 1103515245u + 12345u;
        unsigned random = state >> 8, place = random % 128;
        size_t size = 1 + random % (random % 500 == 1 ? 600000 : 3000);
        if (random % 7 == 0) {
            kept[me][place] = realloc(kept[me][place], size);
        } else if (random % 5 == 0) {
            pthread_mutex_lock(&lock);
            void *other = shared[place % 64];
            shared[place % 64] = malloc(size);
            pthread_mutex_unlock(&lock);
            free(other);
        } else {
            free(kept[me][place]);
            kept[me][place] = malloc(size);
        }
    }
    return 0;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int count, char **arguments) {
    const char *end = count > 1 ? arguments[1] : "exit";
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    if (!strcmp(end, "fork")) {
        pid_t child = fork();
        if (!child) {
            memset(kept, 0, sizeof kept);
            work((void *)1);
            exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        return status != 0;
    }
    if (!strcmp(end, "kill")) {
        double until = now() + 1.0;
        while (now() < until) work((void *)2);
        raise(SIGKILL);
    }
    return 0;
}
"#;

struct Recorded {
    place: Place,
    stderr: String,
}

impl Recorded {
    /// Runs the program under `mpp run` with more arguments.
    fn new(arguments: &[&str], end: &str, status: i32) -> Recorded {
        let place = Place::new();
        let program = place.compile("program", PROGRAM, &["-pthread", "-O1"]);
        let mut command = place.mpp();
        command.args(["run", "-o", "out"]).args(arguments).arg("--").arg(program).arg(end);
        let ran = common::ran(&mut command).exits(status);
        Recorded { stderr: ran.stderr, place }
    }

    /// Process ids, in order.
    fn processes(&self) -> Vec<u32> {
        let entries = std::fs::read_dir(self.place.path("out")).unwrap();
        let mut pids: Vec<u32> =
            entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok()).collect();
        pids.sort_unstable();
        pids
    }

    fn file(&self, pid: u32, name: &str) -> PathBuf {
        self.place.path("out").join(pid.to_string()).join(name)
    }

    fn dump(&self, pid: u32) -> Profile {
        mpp_profile::read(File::open(self.file(pid, "heap.prof")).unwrap(), "dump").unwrap()
    }

    fn slice(&self, pid: u32, slice: Slice) -> Profile {
        let file = File::open(self.file(pid, "timeline.bin")).unwrap();
        timeline::profile(file, "timeline", &Limits::default(), slice).unwrap()
    }
}

/// Ticks, number of events, ending, weight, and whether threads have their names.
fn told(path: &Path) -> (Vec<Tick>, [u64; 4], Ending, u64, bool) {
    let mut timeline = timeline::open(File::open(path).unwrap(), "timeline", &Limits::default()).unwrap();
    let (mut ticks, mut events) = (Vec::new(), [0u64; 4]);
    while let Some(item) = timeline.next_item().unwrap() {
        match item {
            Item::Tick(tick) => ticks.push(tick),
            Item::Event(event) => {
                let place = match event.happening {
                    Happening::Allocated => 0,
                    Happening::Freed => 1,
                    Happening::Moved => 2,
                    Happening::Resized => 3,
                };
                events[place] += 1;
                assert!(event.birth <= event.time);
            }
            Item::Mark { .. } => {}
        }
    }
    assert_eq!(timeline.lost(), 0);
    let named = timeline.tables().threads().values().any(|thread| thread.name == "worker");
    (ticks, events, timeline.ending(), timeline.header().weight(), named)
}

fn sums(profile: &Profile) -> [(u64, u64); 2] {
    [Metric::Live, Metric::Allocated].map(|metric| {
        let amount = profile.recorded(metric);
        (amount.objects, amount.bytes)
    })
}

#[test]
fn the_end_of_the_timeline_is_the_dump() {
    let recorded = Recorded::new(&["--sample", "2KiB"], "exit", 0);
    let [pid] = recorded.processes()[..] else { panic!("one process") };
    let (ticks, events, ending, weight, named) = told(&recorded.file(pid, "timeline.bin"));
    assert_eq!((ending, weight), (Ending::Exit, 1));
    assert!(named && events[..3].iter().all(|&number| number > 100), "{events:?}");
    let (dump, all) = (recorded.dump(pid), recorded.slice(pid, Slice::ALL));
    assert_eq!(sums(&all), sums(&dump));
    assert_eq!(all.sample_rate, dump.sample_rate);
    assert!(all.warnings.is_empty(), "{:?}", all.warnings);
    // The same stacks, in the same modules.
    let stack_sums = |profile: &Profile| {
        let mut sums = std::collections::BTreeMap::new();
        for sample in &profile.samples {
            let addresses: Vec<u64> =
                profile.stack(sample.stack).locations.iter().map(|&id| profile.location(id).address).collect();
            *sums.entry((addresses, sample.block_size)).or_insert(0) += sample.allocated.objects;
        }
        sums
    };
    assert_eq!(stack_sums(&all), stack_sums(&dump));
    assert!(all.locations.iter().all(|location| location.module.is_some()));
    // What the allocator counted itself, at the last tick.
    let last = ticks.last().unwrap();
    let exact: u64 = dump.comment("exact_live_bytes").unwrap().parse().unwrap();
    assert!(last.live.abs_diff(exact) < 1 << 16, "{} and {exact}", last.live);
    assert!(last.resident > 1 << 20 && last.peak_resident >= last.resident && last.allocated > last.live);
    assert!(ticks.windows(2).all(|pair| pair[0].time < pair[1].time && pair[0].allocated <= pair[1].allocated));
    // Two halves of the time have together what was allocated in all of it.
    let middle = all.comment("timeline_end_us").unwrap().parse::<u64>().unwrap() / 2;
    let first = recorded.slice(pid, Slice::at(middle)).recorded(Metric::Allocated).objects;
    let second = recorded.slice(pid, Slice { from: middle + 1, to: u64::MAX }).recorded(Metric::Allocated).objects;
    assert_eq!(first + second, all.recorded(Metric::Allocated).objects);

    assert!(recorded.stderr.contains("peak: RSS "), "{}", recorded.stderr);
    let report = recorded.place.run(["timeline", "out", "--format", "json"]).exits(0);
    let report = json(&report.stdout);
    assert_eq!((report["schema"].as_str(), report["is_complete"].as_bool()), (Some("mpp-timeline"), Some(true)));
    assert_eq!(report["ticks"].as_array().unwrap().len(), ticks.len());
    recorded.place.run(["timeline", "out", "--limit", "3"]).exits(0).prints("committed");
    recorded.place.run(["timeline", "out", "--format", "svg", "-o", "chart.svg"]).exits(0);
    assert!(std::fs::read_to_string(recorded.place.path("chart.svg")).unwrap().ends_with("</svg>\n"));
    let top = recorded.place.run(["top", &format!("out/{pid}/timeline.bin"), "--metric", "alloc"]).exits(0);
    top.prints("work");
}

#[test]
fn what_is_killed_has_a_timeline() {
    let recorded = Recorded::new(&["--sample", "16KiB", "--rss", "20ms"], "kill", 128 + 9);
    let [pid] = recorded.processes()[..] else { panic!("one process") };
    let (ticks, events, ending, ..) = told(&recorded.file(pid, "timeline.bin"));
    assert!(matches!(ending, Ending::Open | Ending::Cut { .. }), "{ending:?}");
    assert!(events[0] > 1000 && ticks.len() > 3, "{events:?}, {} ticks", ticks.len());
    // Nearly all of it: what waited in the last moment is gone.
    let all = recorded.slice(pid, Slice::ALL);
    let (estimate, counted) = (all.estimate(Metric::Allocated), ticks.last().unwrap().allocated as f64);
    let error = estimate.value(Unit::Bytes) - counted;
    assert!(error.abs() < counted / 4.0, "{error} of {counted}");
    recorded.place.run(["timeline", "out"]).exits(0).says("it has no end");
}

#[test]
fn a_budget_thins_and_does_not_cut() {
    let recorded = Recorded::new(&["--sample", "512", "--max-disk", "512KiB"], "exit", 0);
    let [pid] = recorded.processes()[..] else { panic!("one process") };
    let path = recorded.file(pid, "timeline.bin");
    assert!(std::fs::metadata(&path).unwrap().len() <= 512 << 10);
    let (_, events, ending, weight, _) = told(&path);
    assert!(weight > 1 && ending == Ending::Exit && events[0] > 500, "{weight}, {events:?}");
    // Blocks are kept by chance: about root of n of them more or less, and each is of another size.
    let (dump, all) = (recorded.dump(pid), recorded.slice(pid, Slice::ALL));
    let [thinned, whole] = [&all, &dump].map(|profile| profile.recorded(Metric::Allocated));
    let error = thinned.objects as f64 - whole.objects as f64;
    let expected = weight as f64 * (events[0] as f64).sqrt();
    assert!(error.abs() < 6.0 * expected, "{} for {}: {error} with {expected}", thinned.objects, whole.objects);
    assert!(all.warnings.iter().any(|warning| warning.contains("thinned")), "{:?}", all.warnings);
    assert!(recorded.stderr.contains("thinned"), "{}", recorded.stderr);
}

#[test]
fn a_forked_child_has_its_own() {
    let recorded = Recorded::new(&["--sample", "4KiB", "--follow", "all"], "fork", 0);
    let pids = recorded.processes();
    assert_eq!(pids.len(), 2, "{pids:?}");
    for pid in pids {
        let (_, events, ending, ..) = told(&recorded.file(pid, "timeline.bin"));
        assert!(ending == Ending::Exit && events[0] > 1000, "{pid}: {events:?}");
        let mut timeline =
            timeline::open(File::open(recorded.file(pid, "timeline.bin")).unwrap(), "t", &Limits::default()).unwrap();
        assert_eq!(timeline.header().process, pid);
        assert!(timeline.next_item().unwrap().is_some());
    }
}

#[test]
fn a_disk_that_is_full_harms_nobody() {
    let recorded = Recorded::new(&["--sample", "4KiB", "--env", "MIMALLOC_TIMELINE=/dev/full"], "exit", 0);
    let told = "the timeline ends: cannot write to /dev/full";
    assert_eq!(recorded.stderr.matches(told).count(), 1, "{}", recorded.stderr);
    let recorded = Recorded::new(&["--env", "MIMALLOC_TIMELINE=/no/such/folder/t.bin"], "exit", 0);
    assert!(recorded.stderr.contains("cannot create or open /no/such/folder/t.bin"), "{}", recorded.stderr);
}

#[test]
fn a_limit_on_the_size_of_files_is_a_budget() {
    let place = Place::new();
    let program = place.compile("program", PROGRAM, &["-pthread", "-O1"]);
    // 2048 blocks of 512 bytes.
    let script = format!("ulimit -f 2048; exec {} exit", program.display());
    common::ran(place.mpp().args(["run", "-o", "out", "--sample", "256", "--", "sh", "-c", &script])).exits(0);
    let report = place.run(["timeline", "out", "--format", "json"]).exits(0);
    let report = json(&report.stdout);
    assert!(report["weight"].as_u64() > Some(1) && report["is_complete"].as_bool() == Some(true), "{report}");
}

#[test]
fn none_is_written_unasked() {
    let recorded = Recorded::new(&["--no-timeline"], "exit", 0);
    let [pid] = recorded.processes()[..] else { panic!("one process") };
    assert!(!recorded.file(pid, "timeline.bin").exists());
    recorded.place.run(["timeline", "out"]).exits(13).says("holds no timeline");
    recorded.place.run(["timeline", "nowhere.bin"]).exits(13);
    recorded.place.write("other.bin", "heap profile: 1: 2 [3: 4] @ heap_v2/1\n");
    recorded.place.run(["timeline", "other.bin"]).exits(13).says("expected the first bytes of a timeline");
}

/// A program of one thread is measured in passing: never while it sleeps with all its memory in hand.
const BURSTS: &str = r#"
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    static void *blocks[2000];
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 2000; i++) blocks[i] = malloc(16 << 10);
        usleep(150000);
        for (int i = 0; i < 2000; i++) free(blocks[i]);
    }
    return 0;
}
"#;

#[test]
fn the_samples_see_what_comes_and_goes_between_measurements() {
    let place = Place::new();
    let program = place.compile("bursts", BURSTS, &["-O1"]);
    common::ran(place.mpp().args(["run", "-q", "--sample", "64KiB", "-o", "out", "--"]).arg(program)).exits(0);
    let value = json(&place.run(["timeline", "out", "--format", "json"]).exits(0).stdout);
    let measured = value["ticks"].as_array().unwrap().iter().map(|tick| tick["live_bytes"].as_u64().unwrap()).max();
    let peak = value["unseen_peak"]["live_bytes_estimated"].as_u64().expect("a peak that no measurement has seen");
    assert!(measured.unwrap() < 16 << 20, "{value:#}");
    // 31 MiB in 500 samples: within six standard errors.
    assert!((20 << 20..42 << 20).contains(&peak), "{peak}");
    let found = place.run(["timeline", "out"]).exits(0);
    found.prints("between two measurements").prints("█ live").prints("MiB ┤");
    place.run(["timeline", "out", "--format", "svg"]).exits(0).prints("live, from the samples");
}
