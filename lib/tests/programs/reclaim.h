/* Shared by the programs that attack the return of memory: random numbers, blocks that know what is in them, a look at the process,
 * and the allocator's own functions, where it has them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t seed = 1;

/* Whatever is wrong ends the program. No allocation, no stream: the heap may be damaged. */
#define WRONG(...)                                                                                                        \
    do {                                                                                                                  \
        char text_[400];                                                                                                  \
        int n_ = snprintf(text_, sizeof text_, "%s:%d (seed %llu, process %d): ", __FILE__, __LINE__, (unsigned long long)seed, (int)getpid()); \
        n_ += snprintf(text_ + n_, sizeof text_ - n_, __VA_ARGS__);                                                       \
        text_[n_++] = '\n';                                                                                               \
        (void)!write(2, text_, n_);                                                                                       \
        if (getenv("RECLAIM_ABORT")) abort();                                                                             \
        _exit(1);                                                                                                         \
    } while (0)
#define CHECK(x) ((x) ? (void)0 : ({ WRONG("%s (errno %d)", #x, errno); }))

static inline uint64_t next(uint64_t *state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
    x = (x ^ x >> 29) * 0xd6e8feb86659fd93;
    return x ^ x >> 32;
}
static inline void nap(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }
static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* A block with a stamp in its first, its last and every 32nd word, so that a page that was wiped, or has a second owner, is seen. */
typedef struct { uint64_t *at, stamp; size_t size; } block;

static inline size_t words(const block *b) { return b->size / 8; }
static inline void stamp(block *b) {
    for (size_t i = 0; i < words(b); i += 32) b->at[i] = b->stamp;
    b->at[words(b) - 1] = b->stamp;
}
static inline void verify_part(const block *b, size_t size) {
    for (size_t i = 0; i < size / 8; i += 32)
        if (b->at[i] != b->stamp)
            WRONG("block of %zu bytes at %p: word %zu is %llx instead of %llx", b->size, (void *)b->at, i, (unsigned long long)b->at[i], (unsigned long long)b->stamp);
}
static inline void verify(const block *b) {
    verify_part(b, b->size);
    if (b->at[words(b) - 1] != b->stamp) WRONG("block of %zu bytes at %p: its last word is %llx", b->size, (void *)b->at, (unsigned long long)b->at[words(b) - 1]);
}
static inline void all_zero(const block *b) {
    for (size_t i = 0; i < words(b); i++)
        if (b->at[i]) WRONG("zeroed block of %zu bytes at %p: word %zu is %llx", b->size, (void *)b->at, i, (unsigned long long)b->at[i]);
}
/* False: no memory. */
static inline bool make(block *b, size_t size, uint64_t *state) {
    uint64_t draw = next(state);
    *b = (block){.size = size < 16 ? 16 : size, .stamp = draw | 1};
    if (draw >> 60 == 0) {
        if ((b->at = calloc(1, b->size))) all_zero(b);
    } else
        b->at = malloc(b->size);
    if (b->at) stamp(b);
    return b->at;
}
static inline void drop(block *b) {
    if (!b->at) return;
    verify(b);
    b->at[0] = b->at[words(b) - 1] = 0; /* a second owner sees this */
    free(b->at);
    b->at = NULL;
}
/* Mostly small, some of every kind: slabs, large slabs, spans. */
static inline size_t some_size(uint64_t *state) {
    uint64_t draw = next(state), kind = draw >> 32 & 1023;
    return kind < 2 ? 16 + draw % (4 << 20) : kind < 12 ? 16 + draw % 200000 : kind < 60 ? 16 + draw % 20000 : 16 + draw % 2500;
}

/* The allocator's functions. Those that it does not have are null. */
typedef struct {
    size_t arena_bytes, hole_bytes, swept, pending, orphaned;
    bool gated, complete;
    size_t arenas_reclaimed, arena_reclaim_bytes, arenas_kept, subprocs_pending;
    bool reclaimed;
} purge_report;
typedef struct {
    size_t purged_bytes, purged_blocks, purged_bytes_total, discard_calls, reuse_calls, pages_freed, ineligible_pages, ineligible_bytes,
        ineligible_free_bytes, unformed_bytes, unformed_bytes_total, unformed_discard_calls, unformed_reuse_calls, pages_skipped,
        blocks_visited, full_sweeps;
} holes_stats;
enum { PURGE_FORCE = 1, PURGE_RECLAIM = 2, PURGE_OK = 0, PURGE_PARTIAL = 1, PURGE_BUSY = 2 };

static void (*mi_collect)(bool);
static void (*mi_purge_all)(bool);
static int (*mi_purge_all_ex)(int, size_t, purge_report *);
static void (*mi_purge_holes_stats_get)(holes_stats *);
static void (*mi_purge_holes_report)(void);
static void (*mi_on_thread_idle)(void);
static bool (*mi_on_thread_idle_start)(void);
static void (*mi_on_thread_idle_end)(void);
static void (*mi_scavenger_stop)(void);

__attribute__((constructor)) static void find_functions(void) {
#define FIND(name) (name = (__typeof__(name))dlsym(RTLD_DEFAULT, #name))
    FIND(mi_collect), FIND(mi_purge_all), FIND(mi_purge_all_ex), FIND(mi_purge_holes_stats_get), FIND(mi_purge_holes_report);
    FIND(mi_on_thread_idle), FIND(mi_on_thread_idle_start), FIND(mi_on_thread_idle_end), FIND(mi_scavenger_stop);
}
static inline void purge(void) {
    if (mi_purge_all) mi_purge_all(true);
    else if (mi_collect) mi_collect(true);
}

/* A number of the process, as the line `name:` of /proc/self/status has it; no stream. */
static inline long status(const char *name) {
    char text[4096], line[64];
    int file = open("/proc/self/status", O_RDONLY);
    if (file < 0) return -1;
    ssize_t n = read(file, text, sizeof text - 1);
    close(file);
    text[n < 0 ? 0 : n] = 0;
    snprintf(line, sizeof line, "\n%s:", name);
    char *found = strstr(text, line);
    return found ? atol(found + strlen(line)) : -1;
}
static inline long resident(void) { return status("VmRSS") / 1024; } /* MiB */
static inline long tasks(void) { return status("Threads"); }

/* Fill a table, keep one in `every`, check the rest while freeing it. The blocks that stay are in the table. */
static inline void fill(block *table, size_t count, size_t (*size)(uint64_t *), uint64_t *state) {
    for (size_t i = 0; i < count; i++) make(&table[i], size(state), state);
}
static inline void thin(block *table, size_t count, unsigned every, uint64_t *state) {
    for (size_t i = 0; i < count; i++)
        if (next(state) % every) drop(&table[i]);
}
static inline void check(const block *table, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (table[i].at) verify(&table[i]);
}
static inline void clear(block *table, size_t count) {
    for (size_t i = 0; i < count; i++) drop(&table[i]);
}
