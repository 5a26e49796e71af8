//! Memory comes back: real workloads under the real library, watched from outside.
//!
//! Every bound is checked in both directions: with returning switched off (or under an allocator that does the wrong thing) the
//! same check must fail. Most workloads are smaller than those of the tables, and the share is then that of what the program has
//! allocated: the program itself would be a large part of it. What spends its time waiting runs side by side. None of these is about
//! how fast something is: `scripts/memory-return` has the times.

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::thread;

use mpp_workloads::memory_return::calls::{Calls, about_memory};
use mpp_workloads::memory_return::record::Record;
use serde_json::Value;
use support::{built, library};

/// The program, and our library.
static BUILT: LazyLock<(PathBuf, PathBuf)> = LazyLock::new(|| {
    let workload = built("mpp-workloads", "workloads").join("mpp-workload");
    (workload, built("mimalloc-pprof-preload", "preload").join("libmimalloc_pprof.so"))
});

/// What is preloaded, and the variables it is used with.
#[derive(Clone, Debug)]
struct Under {
    library: Option<PathBuf>,
    settings: Vec<(&'static str, &'static str)>,
}

impl Under {
    fn ours(settings: &[(&'static str, &'static str)]) -> Self {
        Self { library: Some(BUILT.1.clone()), settings: settings.to_vec() }
    }

    fn glibc(settings: &[(&'static str, &'static str)]) -> Self {
        Self { library: None, settings: settings.to_vec() }
    }

    /// Runs a line of `mpp-workload return` to its good end and reads what it prints.
    fn lines(&self, line: &str) -> Vec<Value> {
        let mut command = Command::new(&BUILT.0);
        command.arg("return").args(line.split(' ')).env_remove("LD_PRELOAD").envs(self.settings.iter().copied());
        if let Some(library) = &self.library {
            command.env("LD_PRELOAD", library);
        }
        let output = command.output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), words.as_str()), (Some(0), ""), "{line} under {self:?}");
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn record(&self, line: &str) -> Record {
        let record: Record = serde_json::from_value(self.lines(line).remove(0)).unwrap();
        let expected =
            self.library.as_ref().map_or("libc.so.6".into(), |library| library.file_name().unwrap().to_owned());
        assert!(record.malloc_from.ends_with(expected.to_str().unwrap()), "{}", record.malloc_from);
        record
    }

    /// Calls about memory that `line` makes beyond those of an empty run.
    fn calls_above_empty(&self, line: &str) -> i64 {
        let lines = self.lines(&format!("{line} --trace"));
        let [run, empty] = lines.as_slice() else { panic!("{lines:?}") };
        let count = |line: &Value| about_memory(&calls(&line["calls"])) as i64;
        count(run) - count(empty)
    }
}

fn calls(value: &Value) -> Calls {
    serde_json::from_value::<BTreeMap<String, u64>>(value.clone()).unwrap_or_else(|error| panic!("{value}: {error}"))
}

/// Our library as it is, and with returning switched off.
fn on_and_off() -> [Under; 2] {
    [Under::ours(&[]), Under::ours(&[("MIMALLOC_PURGE_DELAY", "-1")])]
}

/// Runs all of these side by side.
fn together<T: Sync>(all: &[T], run: impl Fn(&T) + Sync) {
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = all.iter().map(|one| scope.spawn(move || run(one))).collect();
        threads.into_iter().for_each(|thread| {
            thread.join().unwrap_or_else(|failure| std::panic::resume_unwind(failure));
        });
    });
}

const MIB: f64 = 1_048_576.0;

/// At least `share` of what was allocated came back by the end of the watch, and it is really free for others.
fn came_back(record: &Record, share: f64) -> Result<(), String> {
    let returned = record.rss.returned_of_growth();
    if returned < share {
        return Err(format!("{}: {:.1} % came back: {:?}", record.command, returned * 100.0, record.rss));
    }
    match record.own_charge().map(|charged| charged.returned_of_growth()) {
        Some(charged) if charged < share => Err(format!(
            "{}: {:.1} % came back, but only {:.1} % are free: {:?}",
            record.command,
            returned * 100.0,
            charged * 100.0,
            record.truth
        )),
        _ => Ok(()),
    }
}

impl Under {
    /// Runs `line` with a watch of two seconds, and checks. A machine that has other things to do gets a second chance, with more time.
    fn comes_to(&self, line: &str, check: impl Fn(&Record) -> Result<(), String>) {
        let result = check(&self.record(&format!("{line} --watch 2s")));
        let result = result.or_else(|_| check(&self.record(&format!("{line} --watch 15s"))));
        result.unwrap_or_else(|message| panic!("{message}"));
    }
}

/// The bound holds, and does not without returning.
fn holds(line: &str, check: impl Fn(&Record) -> Result<(), String> + Sync) {
    let on_and_off = on_and_off();
    together(&[0, 1], |&at| match (at, &on_and_off[at]) {
        (0, on) => on.comes_to(line, &check),
        (_, off) => {
            let result = check(&off.record(&format!("{line} --watch 1s")));
            assert!(result.is_err(), "{line}: holds with returning off, too");
        }
    });
}

/// The library's threads.
fn helpers(record: &Record, wanted: usize) -> Result<(), String> {
    let names: Vec<_> = record.helpers.iter().map(|helper| &helper.name).collect();
    if names.len() == wanted { Ok(()) } else { Err(format!("{}: threads: {names:?}", record.command)) }
}

/// Of a workload of a third of the usual size, three quarters and more.
const THIRD: &str = "--scale 0.33";
const SHARE: f64 = 0.74;

#[test]
fn busy_threads_get_memory_back_without_a_call() {
    for line in ["churn --during busy --threads 4", "churn --during busy --threads 1 --order random"] {
        holds(&format!("{line} {THIRD}"), |record| came_back(record, SHARE));
    }
}

#[test]
fn threads_busy_in_the_same_classes_get_memory_back_without_a_call() {
    for line in ["churn --during same --threads 4", "churn --during same --threads 1"] {
        holds(&format!("{line} {THIRD}"), |record| came_back(record, SHARE));
    }
}

#[test]
fn sleeping_threads_get_memory_back_without_a_call() {
    together(&["churn --during asleep --threads 4 --order random", "churn --during asleep --threads 1"], |line| {
        holds(&format!("{line} {THIRD}"), |record| came_back(record, SHARE));
    });
}

#[test]
fn one_thread_of_the_library_does_it() {
    let lines = ["churn --during asleep --threads 4", "idle"];
    together(&lines, |line| {
        let record = Under::ours(&[]).record(&format!("{line} --scale 0.05 --watch 300ms"));
        helpers(&record, 1).unwrap_or_else(|message| panic!("{message}"));
    });
}

#[test]
fn a_thread_that_allocates_nothing_gets_everything_back_with_one_call() {
    // Nobody else gives anything back.
    let off = &on_and_off()[1];
    together(&["busy", "same", "asleep"], |during| {
        let line = format!("churn --during {during} --threads 2 {THIRD}");
        off.comes_to(&format!("{line} --call once"), |asked| {
            assert_eq!(asked.purge.as_deref(), Some("mi_purge_all(true)"));
            came_back(asked, SHARE)
        });
        assert!(came_back(&off.record(&format!("{line} --watch 1s")), SHARE).is_err());
    });
}

#[test]
fn threads_that_say_that_they_will_be_idle_get_theirs_back() {
    let off = &on_and_off()[1];
    together(&["churn --threads 4 --call own", "alone --asks"], |line| {
        off.comes_to(&format!("{line} {THIRD}"), |asked| {
            assert_eq!(asked.purge.as_deref(), Some("mi_on_thread_idle"));
            came_back(asked, SHARE)
        });
    });
}

#[test]
fn a_full_purge_takes_few_system_calls() {
    let off = &on_and_off()[1];
    let lines = off.lines("churn --threads 4 --call once --trace");
    let marked = calls(&lines[0]["marked"]);
    assert!((1..=40).contains(&marked.values().sum::<u64>()) && about_memory(&marked) > 0, "{marked:?}");
    // The C library's makes one call for each hole.
    let lines = Under::glibc(&[]).lines("churn --threads 4 --call once --trace --scale 0.1");
    assert!(calls(&lines[0]["marked"]).values().sum::<u64>() > 40, "{lines:?}");
}

#[test]
fn a_process_with_one_thread_gets_memory_back_and_no_second_thread() {
    // What it keeps when it falls silent does not become less with the scale.
    let lines = [
        ("alone --then pairs --scale 0.33", SHARE),
        ("alone --then block", 0.6),
        ("alone --then block --order random", 0.6),
    ];
    together(&lines, |(line, share)| holds(line, |record| came_back(record, *share)));
    let record = Under::ours(&[]).record("alone --then pairs --scale 0.1 --watch 300ms");
    helpers(&record, 0).unwrap_or_else(|message| panic!("{message}"));
}

#[test]
fn the_scavenger_can_be_had_by_a_process_with_one_thread() {
    let ours = Under::ours(&[("MIMALLOC_SCAVENGER", "2")]);
    together(&["alone --then block", "alone --then pairs"], |line| {
        ours.comes_to(&format!("{line} {THIRD}"), |record| came_back(record, SHARE).and(helpers(record, 1)));
    });
}

#[test]
fn the_caches_of_sleeping_threads_are_emptied() {
    holds("threads --threads 64", |record| {
        let left = record.rss.end as f64 / MIB;
        if left <= 15.0 { Ok(()) } else { Err(format!("{left:.1} MiB are left of {}", record.rss.peak as f64 / MIB)) }
    });
}

#[test]
fn bursts_in_many_classes_do_not_pile_up() {
    let settings: [&[(&str, &str)]; 3] = [&[], &[("MIMALLOC_PURGE_HOLES", "0")], &[("MIMALLOC_PURGE_DELAY", "-1")]];
    let peaks = thread::scope(|scope| {
        let peak = |settings: &'static [(&str, &str)]| {
            let record = Under::ours(settings).record("burst --scale 0.4 --watch 0 --pause 400ms");
            (record.rss.peak - record.rss.start) as f64 / MIB
        };
        settings.map(|settings| scope.spawn(move || peak(settings))).map(|thread| thread.join().unwrap())
    });
    let [on, no_holes, never] = peaks;
    // The survivors hold half of all pages, and the last round has all of its own: 6.5 of 12 parts.
    assert!(on <= no_holes * 0.62 && never > no_holes * 0.62, "{on:.1} MiB, {no_holes:.1}, {never:.1}");
}

/// A library with a thread that wakes up ten times a second.
const RESTLESS: &str = "
    #include <pthread.h>
    #include <unistd.h>
    static void *wake(void *none) { for (;;) usleep(100000); return none; }
    __attribute__((constructor)) static void start(void) { pthread_t thread; pthread_create(&thread, NULL, wake, NULL); }
";

#[test]
fn an_idle_process_never_wakes_up() {
    let line = "idle --scale 0.2 --settle 3s --watch 6s";
    let record = Under::ours(&[]).record(line);
    assert_eq!((record.switches.voluntary, record.switches.involuntary), (0, 0), "{:?}", record.helpers);
    assert_eq!(record.helpers.len(), 1, "{:?}", record.helpers);

    let folder = tempfile::tempdir().unwrap();
    let restless = library(folder.path(), "restless", RESTLESS).display().to_string();
    let under = Under { library: None, settings: vec![("LD_PRELOAD", restless.leak())] };
    let record = under.record("idle --scale 0.01 --settle 100ms --watch 600ms");
    assert!(record.switches.voluntary >= 2 && record.helpers.len() == 1, "{record:?}");
}

#[test]
fn draining_to_zero_asks_the_system_for_nothing() {
    let lines = [
        "turnover --size 64 --rounds 200000",
        "turnover --size 4096 --rounds 200000",
        "turnover --size 65536 --rounds 200000",
        "turnover --size 1048576 --rounds 200000",
        "turnover --size 16777216 --rounds 2000",
        "turnover --size 512 --batch 1000 --rounds 200",
        "turnover --size 4096 --batch 1000 --rounds 200",
    ];
    for line in lines {
        let more = Under::ours(&[]).calls_above_empty(line);
        assert!(more <= 10, "{line}: {more} calls above an empty run");
    }
    // An allocator that gives back each time is found out.
    let eager = Under::glibc(&[("MALLOC_MMAP_THRESHOLD_", "65536")]);
    assert_eq!(eager.calls_above_empty("turnover --size 1048576 --rounds 100"), 200);
}
