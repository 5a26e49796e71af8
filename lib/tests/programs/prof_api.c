/* The profiler's functions. Each line of output is a broken promise. `environment`: MIMALLOC_PROF_SAMPLE_RATE is 3000. */
#include <mimalloc/profile.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : (void)printf("line %d: %s\n", __LINE__, #x))
enum { COUNT = 200, SIZE = 5120 };
static void *blocks[COUNT];
static bool resets; /* others reset in between: then more may be live than allocated */

static void allocate(void) { for (int i = 0; i < COUNT; i++) blocks[i] = mi_malloc(SIZE - 20); }
static void release(void) { for (int i = 0; i < COUNT; i++) mi_free(blocks[i]); }
static mi_prof_stats_t stats(void) {
    mi_prof_stats_t_decl(s);
    CHECK(mi_prof_stats_get(&s));
    return s;
}

typedef struct { size_t stacks, live, live_bytes, accum, accum_bytes, stop_after; const void *const *last; bool start, stop; } sum_t;
static bool add(const mi_prof_sample_info_t *info, void *arg) {
    sum_t *sum = arg;
    sum->stacks++;
    sum->live += info->live_objects, sum->live_bytes += info->live_bytes;
    sum->accum += info->accum_objects, sum->accum_bytes += info->accum_bytes;
    CHECK(info->depth > 0 && info->stack && info->stack[0] && (resets || info->live_objects <= info->accum_objects));
    CHECK(sum->last != info->stack);
    sum->last = info->stack;
    if (sum->start) CHECK(!mi_prof_start(1) && !mi_prof_start_seeded(1, 1) && !mi_prof_start_ex(NULL));
    mi_free(mi_malloc(SIZE)); /* may allocate */
    if (sum->stop && sum->stacks == 1) mi_prof_stop(), CHECK(!mi_prof_start(1));
    return sum->stacks != sum->stop_after;
}

static void write_nothing(void *arg, const char *text, size_t length) {
    CHECK(text && length && !mi_prof_start(1) && !mi_prof_start_ex(NULL));
    ++*(int *)arg;
}

static void life(void) {
    CHECK(!mi_prof_is_enabled() && !stats().enabled && stats().accum_samples == 0);
    sum_t none = {0};
    CHECK(mi_prof_visit(add, &none) && none.stacks == 0);
    CHECK(mi_prof_start_seeded(1, 7) && mi_prof_is_enabled());
    CHECK(!mi_prof_start(0) && !mi_prof_start_seeded(1, 1) && !mi_prof_start_ex(NULL));
    allocate();
    mi_prof_stats_t s = stats();
    CHECK(s.enabled && s.accum && s.sample_rate == 1 && s.live_samples >= COUNT && s.live_bytes >= (size_t)COUNT * SIZE);
    CHECK(s.dropped_samples == 0 && s.stack_table_overflows == 0 && s.unique_stacks > 0 && s.arena_committed > COUNT * 40);
    CHECK(s.heap_committed > s.live_bytes && s.heap_reserved >= s.heap_committed && s.heap_pages && s.heap_count && s.theap_count);
    size_t records = 0, bytes = 0, unique = 0;
    mi_prof_debug_stats(&records, &bytes, &unique);
    mi_prof_debug_stats(NULL, NULL, NULL);
    CHECK(records >= COUNT && bytes >= s.arena_committed && unique >= s.unique_stacks);
    sum_t sum = {.start = true};
    CHECK(mi_prof_visit(add, &sum) && sum.live >= COUNT && sum.stacks <= unique);
    s = stats();
    /* The visitor allocates from a place of its own, once for each stack. */
    CHECK(s.live_samples == sum.live && s.live_bytes == sum.live_bytes && s.accum_samples == sum.accum + sum.stacks);
    sum_t first = {.stop_after = 1};
    CHECK(!mi_prof_visit(add, &first) && first.stacks == 1);
    CHECK(!mi_prof_visit(NULL, NULL));
    int pieces = 0;
    CHECK(mi_prof_dump_writer(write_nothing, &pieces) && pieces > 0);
    release();
    CHECK(stats().live_samples < COUNT && stats().accum_samples >= COUNT);
    mi_prof_stop();
    CHECK(!mi_prof_is_enabled() && stats().accum_samples == 0 && stats().sample_rate == 1);
    mi_prof_stop();
}

/* What was live stays live; what was allocated is forgotten. */
static void reset(void) {
    CHECK(mi_prof_start(1));
    allocate();
    size_t live = stats().live_samples;
    mi_prof_reset();
    CHECK(stats().live_samples == live && stats().accum_samples == 0);
    release();
    allocate();
    CHECK(stats().live_samples == live && stats().accum_samples == COUNT);
    release();
    mi_prof_stop();
    mi_prof_reset();
}

/* Blocks that were sampled in one run and are freed in another, or moved, change nothing there. */
static void runs(void) {
    CHECK(mi_prof_start(1));
    allocate();
    mi_prof_stop();
    void *between = mi_malloc(SIZE);
    CHECK(mi_prof_start(1));
    void *kept = mi_malloc(SIZE);
    size_t live = stats().live_samples;
    for (int i = 0; i < COUNT; i += 2) {
        blocks[i] = mi_realloc(blocks[i], SIZE);
        CHECK(mi_usable_size(blocks[i]) >= SIZE);
    }
    release();
    mi_free(between);
    CHECK(stats().live_samples == live && live >= 1);
    mi_free(kept);
    CHECK(stats().live_samples == live - 1);
    mi_prof_stop();
}

static void snapshots(void) {
    CHECK(mi_prof_start(1));
    allocate();
    mi_prof_snapshot_t *snapshot = mi_prof_snapshot_new();
    CHECK(snapshot);
    release();
    sum_t before = {0}, after = {0}, stopped = {.stop = true};
    CHECK(mi_prof_snapshot_visit(snapshot, add, &before) && before.live >= COUNT);
    CHECK(mi_prof_visit(add, &stopped) && stopped.stacks >= before.stacks && !mi_prof_is_enabled());
    CHECK(mi_prof_snapshot_visit(snapshot, add, &after) && after.live == before.live && after.stacks == before.stacks);
    CHECK(!mi_prof_snapshot_visit(snapshot, NULL, NULL) && !mi_prof_snapshot_visit(NULL, add, &after));
    mi_prof_snapshot_free(snapshot);
    mi_prof_snapshot_free(NULL);
    snapshot = mi_prof_snapshot_new();
    CHECK(snapshot && mi_prof_snapshot_visit(snapshot, add, &(sum_t){0}));
    mi_prof_snapshot_free(snapshot);
    CHECK(mi_prof_start(1)); /* not in a visit any more */
    mi_prof_stop();
}

static void versions(void) {
    mi_prof_stats_t s;
    struct { int version; size_t size; bool good; } cases[] = {
        {1, offsetof(mi_prof_stats_t, dropped_samples), true}, {2, offsetof(mi_prof_stats_t, heap_committed), true}, {3, sizeof s, true},
        {1, sizeof s, false}, {2, sizeof s, false}, {3, sizeof s - 8, false}, {0, sizeof s, false}, {4, sizeof s, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(&s, 0x5a, sizeof s);
        s.size = cases[i].size, s.version = cases[i].version;
        CHECK(mi_prof_stats_get(&s) == cases[i].good);
        CHECK(s.size == cases[i].size && s.version == cases[i].version);
        size_t written = cases[i].good ? cases[i].size : offsetof(mi_prof_stats_t, enabled);
        for (size_t at = written; at < sizeof s; at++) CHECK(((unsigned char *)&s)[at] == 0x5a);
        if (cases[i].good) CHECK(s.live_samples == 0);
    }
    CHECK(!mi_prof_stats_get(NULL));
}

static bool is_shallow(const mi_prof_sample_info_t *info, void *arg) { return (void)arg, info->depth == 2; }
static void configurations(bool environment) {
    mi_prof_config_t_decl(config);
    config.sample_interval = 5000, config.seed = 3, config.max_stack_depth = 2, config.max_profiler_bytes = 1 << 20, config.accum = true;
    mi_prof_config_t bad = config;
    bad.size--;
    CHECK(!mi_prof_start_ex(&bad));
    bad = config, bad.version = 2;
    CHECK(!mi_prof_start_ex(&bad));
    bad = config, bad.mode = 2;
    CHECK(!mi_prof_start_ex(&bad));
    static char too_long[5000];
    memset(too_long, 'x', sizeof too_long - 1);
    bad = config, bad.dump_at_exit = too_long;
    CHECK(!mi_prof_start_ex(&bad));
    bad = config, bad.dump_format = 9;
    CHECK(!mi_prof_start_ex(&bad) && !mi_prof_is_enabled());

    CHECK(mi_prof_start_ex(&config) && !mi_prof_start_ex(&config));
    CHECK(stats().sample_rate == (environment ? 3000 : 5000));
    CHECK(mi_option_get(mi_option_prof_sample_rate) == (environment ? 3000 : 524288)); /* only for this run */
    mi_prof_stop();
    CHECK(mi_prof_start_ex(NULL) && stats().sample_rate == (environment ? 3000 : 524288));
    mi_prof_stop();

    config.mode = MI_PROF_CONFIG_OVERRIDE;
    CHECK(mi_prof_start_ex(&config) && stats().sample_rate == 5000);
    CHECK(mi_option_get(mi_option_prof_sample_rate) == 5000 && mi_option_get(mi_option_prof_seed) == 3);
    CHECK(mi_option_get(mi_option_prof_bt_max) == 2 && mi_option_get_size(mi_option_prof_max_bytes) == 1 << 20);
    CHECK(mi_option_is_enabled(mi_option_prof_accum));
    mi_prof_stop();
    CHECK(mi_prof_start(0) && stats().sample_rate == 5000);
    allocate();
    size_t first = stats().accum_samples;
    CHECK(mi_prof_visit(is_shallow, NULL)); /* our own frames do not count */
    release();
    mi_prof_stop();
    /* The same seed, the same samples. */
    CHECK(mi_prof_start_ex(&config));
    allocate();
    CHECK(stats().accum_samples == first && first > COUNT / 4 && first < COUNT * 9 / 10);
    release();
    mi_prof_stop();
}

/* Everything at once from several threads. */
static void *storm(void *arg) {
    unsigned state = (unsigned)(size_t)arg;
    for (int i = 0; i < 400; i++) {
        void *some[64];
        for (int j = 0; j < 64; j++) some[j] = mi_malloc(16 + (state = state * 1664525 + 1013904223) % 3000);
        switch (state >> 8 & 7) {
            case 0: mi_prof_start(1 + (state >> 12 & 1023)); break;
            case 1: mi_prof_stop(); break;
            case 2: mi_prof_reset(); break;
            case 3: mi_prof_visit(add, &(sum_t){.start = true}); break;
            case 4: mi_prof_snapshot_free(mi_prof_snapshot_new()); break;
            default: stats();
        }
        for (int j = 0; j < 64; j++) mi_free(some[j]);
    }
    return NULL;
}

int main(int count, char **arguments) {
    bool environment = count > 1 && !strcmp(arguments[1], "environment");
    life();
    reset();
    runs();
    snapshots();
    versions();
    configurations(environment);
    resets = true;
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, storm, (void *)(i + 1));
    for (size_t i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    mi_prof_stop();
    resets = false;
    life();
    return 0;
}
