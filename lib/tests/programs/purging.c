/* Functions that return memory: their results, and that they can be called anywhere. Each line of output is a broken promise. */
#define _GNU_SOURCE
#include <malloc.h>
#include <mimalloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))
#define AT(type, field, offset) _Static_assert(offsetof(type, field) == offset, #field);

_Static_assert(sizeof(mi_purge_flags_t) == 4 && MI_PURGE_FORCE == 1 && MI_PURGE_RECLAIM == 2, "flags");
_Static_assert(MI_PURGE_ALL_OK == 0 && MI_PURGE_ALL_PARTIAL == 1 && MI_PURGE_ALL_BUSY == 2, "results");
_Static_assert(sizeof(mi_purge_all_report_t) == 88 && sizeof(mi_purge_holes_stats_t) == 128, "sizes");
AT(mi_purge_all_report_t, arena_bytes, 0) AT(mi_purge_all_report_t, hole_bytes, 8)
AT(mi_purge_all_report_t, theaps_swept, 16) AT(mi_purge_all_report_t, theaps_pending, 24)
AT(mi_purge_all_report_t, theaps_orphaned, 32) AT(mi_purge_all_report_t, gated, 40)
AT(mi_purge_all_report_t, complete, 41) AT(mi_purge_all_report_t, arenas_reclaimed, 48)
AT(mi_purge_all_report_t, arena_reclaim_bytes, 56) AT(mi_purge_all_report_t, arenas_kept, 64)
AT(mi_purge_all_report_t, subprocs_pending, 72) AT(mi_purge_all_report_t, reclaimed, 80)
AT(mi_purge_holes_stats_t, purged_bytes, 0) AT(mi_purge_holes_stats_t, purged_blocks, 8)
AT(mi_purge_holes_stats_t, purged_bytes_total, 16) AT(mi_purge_holes_stats_t, discard_calls, 24)
AT(mi_purge_holes_stats_t, reuse_calls, 32) AT(mi_purge_holes_stats_t, pages_freed, 40)
AT(mi_purge_holes_stats_t, ineligible_pages, 48) AT(mi_purge_holes_stats_t, ineligible_bytes, 56)
AT(mi_purge_holes_stats_t, ineligible_free_bytes, 64) AT(mi_purge_holes_stats_t, unformed_bytes, 72)
AT(mi_purge_holes_stats_t, unformed_bytes_total, 80) AT(mi_purge_holes_stats_t, unformed_discard_calls, 88)
AT(mi_purge_holes_stats_t, unformed_reuse_calls, 96) AT(mi_purge_holes_stats_t, pages_skipped, 104)
AT(mi_purge_holes_stats_t, blocks_visited, 112) AT(mi_purge_holes_stats_t, full_sweeps, 120)

#define LONG 30000 /* milliseconds: for ever */

static int all_zero(const void *p, size_t n) {
    const char *bytes = p;
    while (n && !*bytes) bytes++, n--;
    return n == 0;
}

/* The report goes where it should, and who reads it may allocate and report, too. */
static char text[60000];
static int nested;
static void keep(const char *msg, void *arg) {
    strncat(text, msg, sizeof text - strlen(text) - 1);
    mi_free(mi_malloc(3000));
    if (!nested++) mi_purge_holes_report(), mi_purge_all(true);
}
static void report_is_read(void) {
    text[0] = 0, nested = 0;
    mi_register_output(keep, NULL);
    mi_purge_holes_report();
    mi_register_output(NULL, NULL);
    const char *lines[] = {"slabs: ", "caches: ", "free runs: ", "free and in memory: ", "4 KiB: ", "64 KiB: ", "pages of slabs that live blocks keep: ", "block size", "holes: ", "sweeps: "};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) CHECK(strstr(text, lines[i]));
}

/* Every function, in whatever state the process and the thread are. */
static void everything(void) {
    mi_purge_all_report_t report;
    memset(&report, 0xff, sizeof report);
    CHECK(mi_purge_all_ex(MI_PURGE_FORCE, LONG, &report) == MI_PURGE_ALL_OK);
    CHECK(report.complete == 1 && report.gated == 0 && report.reclaimed == 0 && report.theaps_pending == 0);
    CHECK(report.theaps_orphaned == 0 && report.subprocs_pending == 0 && report.arenas_reclaimed == 0);
    CHECK(mi_purge_all_ex(MI_PURGE_FORCE | MI_PURGE_RECLAIM, LONG, &report) == MI_PURGE_ALL_OK && report.reclaimed == 1);
    CHECK(mi_purge_all_ex(0, LONG, &report) == MI_PURGE_ALL_OK && report.complete == 1 && report.reclaimed == 0);
    CHECK(mi_purge_all_ex((mi_purge_flags_t)0xfff0, LONG, &report) == MI_PURGE_ALL_OK && report.reclaimed == 0);
    CHECK(mi_purge_all_ex(MI_PURGE_FORCE, LONG, NULL) == MI_PURGE_ALL_OK);
    mi_purge_all(true), mi_purge_all(false), report_is_read();
    mi_on_thread_idle(), mi_on_thread_idle();
    mi_on_thread_idle_end();
    mi_on_thread_idle_start(), mi_on_thread_idle_start(), mi_on_thread_idle();
    mi_on_thread_idle_end(), mi_on_thread_idle_end();
    mi_purge_holes_stats_t stats, later;
    memset(&stats, 0xff, sizeof stats);
    mi_purge_holes_stats_get(NULL), mi_purge_holes_stats_get(&stats);
    CHECK(stats.purged_bytes <= stats.purged_bytes_total && stats.purged_bytes % 4096 == 0);
    CHECK(all_zero(&stats.unformed_bytes, 4 * sizeof(size_t)));
    mi_collect(true), mi_collect(false), mi_collect_reduce(0), mi_collect_reduce(SIZE_MAX);
    CHECK(malloc_trim(0) >> 1 == 0);
    mi_purge_holes_stats_get(&later);
    CHECK(later.purged_bytes_total >= stats.purged_bytes_total && later.discard_calls >= stats.discard_calls);
    CHECK(later.blocks_visited >= stats.blocks_visited && later.pages_freed >= stats.pages_freed);
}

/* Blocks of many sizes that keep what was written to them. */
#define BLOCKS 3000
static void blocks(bool idle) {
    unsigned char **p = calloc(BLOCKS, sizeof *p);
    for (int round = 0; round < 3; round++) {
        if (idle) mi_on_thread_idle_start();
        for (int i = 0; i < BLOCKS; i++) {
            size_t size = 1 + i * 7919 % 9000;
            if (p[i] && i % 3 == round) {
                CHECK(p[i][0] == i % 251 && p[i][size - 1] == i % 251);
                free(p[i]), p[i] = NULL;
            }
            if (!p[i]) p[i] = malloc(size), memset(p[i], i % 251, size);
        }
        for (int i = round; i < BLOCKS; i += 2) free(p[i]), p[i] = NULL;
        if (idle) mi_on_thread_idle_end();
        else mi_purge_all(true);
    }
    for (int i = 0; i < BLOCKS; i++) CHECK(!p[i] || p[i][0] == i % 251), free(p[i]);
    free(p);
}

static void *without_a_heap(void *unused) {
    everything();
    return unused;
}

static void *in_a_thread(void *unused) {
    blocks(true), everything(), blocks(false);
    return unused;
}

static void run(void *(*work)(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
}

/* The deferred free holds the purge that has called it. */
static sem_t inside, go_on;
static int calls;
static void waits(bool force, unsigned long long heartbeat, void *arg) {
    if (calls++) return;
    /* from within itself */
    mi_purge_all_report_t report;
    memset(&report, 0xff, sizeof report);
    CHECK(force && mi_purge_all_ex(MI_PURGE_FORCE, SIZE_MAX, &report) == MI_PURGE_ALL_BUSY);
    CHECK(all_zero(&report, sizeof report));
    mi_purge_all(true), mi_collect(true);
    sem_post(&inside), sem_wait(&go_on);
}
static void *purges(void *unused) {
    CHECK(mi_purge_all_ex(MI_PURGE_FORCE, 0, NULL) == MI_PURGE_ALL_OK);
    return unused;
}

static void child(void) {
    everything(), blocks(false), run(in_a_thread), everything();
    fflush(stdout);
    _exit(broken);
}
static void forked(void) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) child();
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void busy(void) {
    sem_init(&inside, 0, 0), sem_init(&go_on, 0, 0);
    mi_register_deferred_free(waits, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, purges, NULL);
    sem_wait(&inside);
    mi_purge_all_report_t report;
    memset(&report, 0xff, sizeof report);
    CHECK(mi_purge_all_ex(MI_PURGE_FORCE, 0, &report) == MI_PURGE_ALL_BUSY && all_zero(&report, sizeof report));
    CHECK(mi_purge_all_ex(0, 20, NULL) == MI_PURGE_ALL_BUSY);
    CHECK(mi_purge_all_ex(MI_PURGE_RECLAIM, 1, NULL) == MI_PURGE_ALL_BUSY);
    mi_purge_all(false); /* gives up */
    mi_on_thread_idle(), mi_collect(true);
    forked(); /* the purging thread is not there */
    sem_post(&go_on), pthread_join(thread, NULL);
    mi_register_deferred_free(NULL, NULL);
    CHECK(mi_purge_all_ex(MI_PURGE_FORCE, 0, &report) == MI_PURGE_ALL_OK);
}

/* Forks in the middle of a purge; the child's purge goes on. */
static int forks;
static pid_t forking_pid;
static void forks_itself(bool force, unsigned long long heartbeat, void *arg) {
    if (!forks++) fflush(stdout), forking_pid = fork();
}
static void forked_inside(void) {
    mi_register_deferred_free(forks_itself, NULL);
    CHECK(mi_purge_all_ex(MI_PURGE_FORCE, LONG, NULL) == MI_PURGE_ALL_OK);
    mi_register_deferred_free(NULL, NULL);
    if (forking_pid == 0) child();
    int status = -1;
    CHECK(waitpid(forking_pid, &status, 0) == forking_pid && status == 0);
}

static volatile int signals, results;
static void on_signal(int number) {
    int result = mi_purge_all_ex(signals % 2 ? MI_PURGE_FORCE : 0, 0, NULL);
    results |= 1 << result;
    mi_on_thread_idle_start(), mi_on_thread_idle_end(), mi_on_thread_idle();
    signals++;
}
static void in_signal_handlers(void) {
    signal(SIGALRM, on_signal);
    struct itimerval timer = {{0, 0}, {0, 700}}, none = {{0, 0}, {0, 0}};
    for (int last = 0, i = 0; i < 60; last = signals, i++) {
        setitimer(ITIMER_REAL, &timer, NULL);
        while (signals == last) free(malloc(i * 1000)), mi_purge_all(true), free(malloc(100));
    }
    /* in the midst of a pop or a push */
    static char *p[64];
    timer.it_value.tv_usec = 150;
    for (int last = signals, i = 0; i < 1000; last = signals, i++) {
        setitimer(ITIMER_REAL, &timer, NULL);
        while (signals == last)
            for (int k = 0; k < 64; k++) {
                CHECK(!p[k] || *p[k] == k);
                free(p[k]), p[k] = malloc(100), *p[k] = k;
            }
    }
    setitimer(ITIMER_REAL, &none, NULL);
    for (int k = 0; k < 64; k++) free(p[k]);
    CHECK(results != 0 && results < 8);
}

static size_t resident(void) {
    size_t rss = 0;
    mi_process_info(NULL, NULL, NULL, &rss, NULL, NULL, NULL, NULL);
    return rss;
}

/* What is free between blocks that stay comes back, and can be used again. */
#define MANY 120000
static void holes(void) {
    static unsigned char *p[MANY];
    mi_purge_all_ex(MI_PURGE_FORCE, LONG, NULL);
    size_t before = resident(), freed = 0;
    for (int i = 0; i < MANY; i++) memset(p[i] = malloc(600), i % 251, 600);
    size_t full = resident();
    for (int i = 0; i < MANY; i++)
        if (i * 7919u % 1000 >= 40) free(p[i]), p[i] = NULL, freed += 600;
    mi_purge_all_report_t report;
    CHECK(mi_purge_all_ex(MI_PURGE_FORCE, LONG, &report) == MI_PURGE_ALL_OK);
    size_t after = resident();
    mi_purge_holes_stats_t stats, later;
    mi_purge_holes_stats_get(&stats);
    if (mi_option_get(mi_option_purge_holes)) {
        CHECK(full - before > 55u << 20 && full > after && (full - after) * 10 > freed * 6);
        CHECK(stats.purged_bytes > 20u << 20 && stats.purged_blocks > stats.purged_bytes / 624);
        CHECK(stats.blocks_visited > MANY && stats.discard_calls > 0);
        if (mi_option_get(mi_option_purge_delay) < 0) CHECK(report.hole_bytes + report.arena_bytes > full - after - (8 << 20));
    } else {
        CHECK(stats.purged_bytes == 0 && stats.purged_blocks == 0 && report.hole_bytes == 0);
    }
    for (int i = 0; i < MANY; i++) {
        if (p[i]) CHECK(p[i][0] == i % 251 && p[i][599] == i % 251);
        else p[i] = calloc(1, 600), CHECK(all_zero(p[i], 600)), memset(p[i], i % 251, 600);
    }
    mi_purge_holes_stats_get(&later);
    if (stats.purged_bytes) CHECK(later.purged_bytes < stats.purged_bytes && later.reuse_calls > stats.reuse_calls);
    for (int i = 0; i < MANY; i++) CHECK(p[i][0] == i % 251 && p[i][599] == i % 251), free(p[i]);
    if (mi_option_get(mi_option_purge_delay) < 0) CHECK(malloc_trim(0) == 1 && malloc_trim(0) == 0);
    else malloc_trim(0);
    CHECK(resident() < full - (30u << 20));
}

/* Pages that the program has handed over are left alone. */
static void handed_over(void) {
    size_t size = 8 << 20;
    char *memory = mmap(NULL, size + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    mi_arena_id_t id;
    CHECK(mi_manage_os_memory_ex(memory, size + 65536, true, false, true, -1, true, &id));
    size_t usable;
    char *start = mi_arena_area(id, &usable);
    memset(start, 1, usable);
    mi_heap_t *heap = mi_heap_new_in_arena(id);
    static void *p[5000];
    for (int i = 0; i < 5000; i++) CHECK(p[i] = mi_heap_malloc(heap, 600)), memset(p[i], 1, 600);
    mi_purge_holes_stats_t stats;
    mi_purge_holes_stats_get(&stats);
    CHECK(stats.ineligible_pages >= 5000 * 600 / 65536 && stats.ineligible_bytes >= 5000 * 600);
    for (int i = 0; i < 5000; i++)
        if (i % 40) mi_free(p[i]);
    mi_heap_collect(heap, true), mi_purge_all_ex(MI_PURGE_FORCE | MI_PURGE_RECLAIM, LONG, NULL);
    static unsigned char there[4096];
    CHECK(mincore(start, usable, there) == 0);
    size_t pages = 0;
    for (size_t i = 0; i < usable / 4096; i++) pages += there[i] & 1;
    CHECK(pages == usable / 4096);
    mi_purge_holes_stats_get(&stats);
    CHECK(stats.ineligible_free_bytes >= 4800 * 600);
    mi_heap_destroy(heap);
}

int main(void) {
    everything(); /* before anything was allocated by this program */
    run(without_a_heap), everything();
    blocks(false), blocks(true), run(in_a_thread);
    mi_heap_t *heap = mi_heap_new();
    char *kept = mi_heap_malloc(heap, 5000);
    memset(kept, 7, 5000);
    for (int i = 0; i < 10000; i++) mi_free(mi_heap_malloc(heap, 100 + i));
    mi_heap_collect(heap, true), mi_heap_collect(heap, false), mi_theap_collect(mi_heap_theap(heap), true), everything();
    CHECK(kept[0] == 7 && kept[4999] == 7);
    holes(), forked(), busy(), forked_inside(), in_signal_handlers(), handed_over();
    mi_scavenger_stop(), mi_scavenger_stop();
    CHECK(!mi_on_thread_idle_start());
    mi_on_thread_idle_end();
    everything(), blocks(true), run(in_a_thread), forked();
    CHECK(kept[0] == 7 && kept[4999] == 7);
    mi_heap_destroy(heap), everything();
    return broken;
}
