//! Where the memory of a program is, as its dumps tell it, against a program that knows.

mod common;

use std::path::PathBuf;

use common::{Place, ran};
use mpp_profile::{Profile, read};

const MIB: u64 = 1 << 20;

/// 50 MiB from malloc, 30 MiB of anonymous memory of its own, 20 MiB of a file, and 16 threads with 300 KiB on each stack.
const PROGRAM: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static pthread_barrier_t ready;
static void *work(void *unused) {
    volatile char deep[300 << 10];
    memset((char *)deep, 1, sizeof deep);
    free(malloc(100));
    pthread_barrier_wait(&ready);
    pause();
    return (void *)(long)deep[7];
}
int main(int argc, char **argv) {
    pthread_barrier_init(&ready, 0, 17);
    for (int i = 0; i < 16; i++) { pthread_t thread; pthread_create(&thread, 0, work, 0); }
    memset(malloc(50 << 20), 1, 50 << 20);
    memset(mmap(0, 30 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 30 << 20);
    int file = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (ftruncate(file, 20 << 20)) return 1;
    memset(mmap(0, 20 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), 1, 20 << 20);
    pthread_barrier_wait(&ready);
    return 0;
}
"#;

fn recorded(place: &Place, mode: &[&str], dump: &str) -> Profile {
    let program = place.compile("known", PROGRAM, &["-pthread"]);
    let mut command = place.mpp();
    let status = command.args(["run", "-q", "-o", "rec"]).args(mode).arg("--").arg(program).arg(place.path("file"));
    ran(status).exits(0);
    let folders = std::fs::read_dir(place.path("rec")).expect("the recording").flatten();
    let dumps: Vec<PathBuf> = folders.map(|entry| entry.path().join(dump)).filter(|path| path.is_file()).collect();
    assert_eq!(dumps.len(), 1, "{dumps:?}");
    read(std::fs::File::open(&dumps[0]).expect("the dump"), dump).expect("a profile")
}

#[track_caller]
fn assert_facts(profile: &Profile) {
    let fact = |key: &str| -> u64 {
        profile.comment(key).unwrap_or_else(|| panic!("no {key}: {:?}", profile.comments)).parse().expect("a number")
    };
    let is_near = |key: &str, expected: u64, more: u64| {
        let found = fact(key);
        assert!((expected..expected + more).contains(&found), "{key}: {found}, expected {expected} and a little more");
        found
    };
    let parts = is_near("rss_allocator_bytes", 50 * MIB, 4 * MIB)
        + is_near("rss_file_bytes", 20 * MIB, 8 * MIB)
        + is_near("rss_stack_bytes", (16 * 300) << 10, 2 * MIB)
        + is_near("rss_profiler_bytes", 64 << 10, 8 * MIB);
    // What the program has mapped by itself is in no part.
    let whole = fact("rss_bytes");
    assert!((29 * MIB..34 * MIB).contains(&(whole - parts)), "{whole} - {parts}: {:?}", profile.comments);
    is_near("exact_live_bytes", 50 * MIB, MIB);
    assert!(fact("committed_bytes") >= 50 * MIB && fact("purged_bytes") < MIB);
}

#[test]
fn a_sampled_dump_tells_where_the_memory_is() {
    let place = Place::new();
    assert_facts(&recorded(&place, &[], "heap.prof"));
}

#[test]
fn the_packed_dump_tells_the_same() {
    let place = Place::new();
    assert_facts(&recorded(&place, &[], "heap.pb.gz"));
}

#[test]
fn an_exact_recording_tells_it_too() {
    let place = Place::new();
    assert_facts(&recorded(&place, &["--mode", "exact"], "dhat.json"));
}
