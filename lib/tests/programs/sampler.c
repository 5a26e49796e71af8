/* What the sampler finds, for `lib/tests/sampler.rs`. */
#include <mimalloc/profile.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAIL(what) (printf("line %d: %s\n", __LINE__, what), exit(1))

/* ---- bias RATE SEED DUMP: prints the sampled live blocks of both sites. ---- */

enum { SMALL = 1000000, LARGE = 1000 };
static void *kept[SMALL + LARGE];

/* Its own frames tell the sites apart: the first differs. */
static __attribute__((noinline)) void small_blocks(void) { for (int i = 0; i < SMALL; i++) kept[i] = mi_malloc(64); }
static __attribute__((noinline)) void large_blocks(void) { for (int i = 0; i < LARGE; i++) kept[SMALL + i] = mi_malloc(1 << 20); }

static bool print_site(const mi_prof_sample_info_t *info, void *arg) {
    (void)arg;
    if (info->live_objects && info->live_bytes / info->live_objects == 64) printf("64 %zu %zu\n", info->live_objects, info->accum_objects);
    if (info->live_objects && info->live_bytes / info->live_objects == 1 << 20) printf("1048576 %zu %zu\n", info->live_objects, info->accum_objects);
    return true;
}

static void bias(size_t rate, uint64_t seed, const char *dump) {
    mi_prof_config_t_decl(config);
    config.mode = MI_PROF_CONFIG_OVERRIDE, config.sample_interval = rate, config.seed = seed, config.dump_at_exit = dump;
    if (!mi_prof_start_ex(&config)) FAIL("no start");
    small_blocks();
    large_blocks();
    mi_prof_visit(print_site, NULL);
}

/* ---- thief SEED MODE: the table of what four threads have allocated, with (1) or without (0) thefts. ---- */

enum { THREADS = 4, SIZES = 24, ROUNDS = 300 };
static atomic_int arrived, go, done;
static size_t counts[SIZES + 64][2];

/* A stack of its own for each size. */
static __attribute__((noinline)) void *at(unsigned depth, size_t size) {
    if (depth == 0) return mi_malloc(size);
    void *block = at(depth - 1, size);
    __asm__ volatile("" ::: "memory");
    return block;
}

static void *work(void *arg) {
    unsigned state = 77 + (unsigned)(size_t)arg;
    mi_free(mi_malloc(1)); /* gets its heap now */
    atomic_fetch_add(&arrived, 1);
    while (!atomic_load(&go)) usleep(100);
    static _Thread_local void *some[400], *stay[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        int count = (state = state * 1664525 + 1013904223) >> 8 & 255;
        for (int i = 0; i <= count; i++) {
            unsigned size = (state = state * 1664525 + 1013904223) >> 10 & 31;
            if (size >= SIZES) size = 0;
            some[i] = at(size, size == SIZES - 1 ? 600000 : 16 + size * size * 16);
        }
        stay[round] = some[count];
        for (int i = 0; i < count; i++) mi_free(some[i]);
    }
    atomic_fetch_add(&done, 1);
    while (atomic_load(&go) == 1) usleep(100);
    for (int round = 0; round < ROUNDS; round += 2) mi_free(stay[round]);
    return NULL;
}

static bool add_up(const mi_prof_sample_info_t *info, void *arg) {
    (void)arg;
    size_t depth = info->depth < SIZES + 64 ? info->depth : SIZES + 63;
    counts[depth][0] += info->live_objects, counts[depth][1] += info->accum_objects;
    return true;
}

static void thief(uint64_t seed, bool steals) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, (void *)i);
        while (atomic_load(&arrived) != (int)i + 1) usleep(100); /* heaps in this order */
    }
    if (!mi_prof_start_seeded(3000, seed)) FAIL("no start");
    atomic_store(&go, 1);
    mi_purge_all_report_t report;
    size_t thefts = 0;
    while (atomic_load(&done) != THREADS) {
        if (steals) mi_purge_all_ex(MI_PURGE_FORCE, 0, &report), thefts++;
        else usleep(100);
    }
    mi_prof_visit(add_up, NULL);
    for (int i = 0; i < SIZES + 64; i++) if (counts[i][1]) printf("%d %zu %zu\n", i, counts[i][0], counts[i][1]);
    atomic_store(&go, 2);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    if (steals && thefts < 3) FAIL("too few thefts");
}

/* ---- memory: what live samples take. ---- */

static void memory(void) {
    enum { COUNT = 100000 };
    size_t before, records, bytes, stacks;
    if (!mi_prof_start_seeded(1, 1)) FAIL("no start");
    mi_prof_debug_stats(&records, &before, &stacks);
    for (int i = 0; i < COUNT; i++) kept[i] = mi_malloc(64);
    mi_prof_debug_stats(&records, &bytes, &stacks);
    printf("%zu %zu\n", records, bytes);
    for (int i = 0; i < COUNT; i++) mi_free(kept[i]);
    mi_prof_debug_stats(&records, &bytes, &stacks);
    printf("%zu %zu\n", records, bytes - before);
    mi_prof_stop();
    mi_prof_debug_stats(&records, &bytes, &stacks);
    printf("%zu %zu\n", records, bytes);
}

/* ---- code: the library's code, as it is in memory, is the same whatever runs. ---- */

static uint64_t code_in_memory(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[5000];
    uint64_t hash = 1469598103934665603u;
    size_t bytes = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        char rights[8];
        if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) != 3 || rights[2] != 'x' || !strstr(line, "libmimalloc_pprof")) continue;
        if (rights[1] == 'w') FAIL("code that can be written");
        for (unsigned char *at = (unsigned char *)start; at < (unsigned char *)end; at++, bytes++) hash = (hash ^ *at) * 1099511628211u;
    }
    if (maps) fclose(maps);
    if (bytes < 50000) FAIL("no code");
    return hash;
}

static void code(void) {
    uint64_t off = code_in_memory();
    if (!mi_prof_start_seeded(100, 1)) FAIL("no start");
    for (int i = 0; i < 10000; i++) free(malloc(i)), mi_free(mi_malloc(i));
    uint64_t on = code_in_memory();
    mi_prof_stop();
    if (on != off || code_in_memory() != off) FAIL("the code has changed");
}

int main(int count, char **arguments) {
    (void)count;
    switch (arguments[1][0]) {
        case 'b': bias(strtoull(arguments[2], NULL, 10), strtoull(arguments[3], NULL, 10), arguments[4]); break;
        case 't': thief(strtoull(arguments[2], NULL, 10), arguments[3][0] == '1'); break;
        case 'm': memory(); break;
        case 'c': code(); break;
    }
    fflush(stdout);
    return 0;
}
