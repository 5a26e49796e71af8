/* Process, options, hooks, text and statistics. Each line of output is a broken promise. */
#include <errno.h>
#include <mimalloc-stats.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))

static char text[100000];
static void keep(const char *msg, void *arg) {
    strcat(arg, msg);
    mi_free(mi_malloc(50)); /* may allocate */
}
static int last_error, errors;
static void error(int err, void *arg) { last_error = err, errors += *(int *)arg; }

static unsigned long long beats;
static int forced;
static void *put_off;
static void deferred(bool force, unsigned long long heartbeat, void *arg) {
    CHECK(heartbeat == beats + 1 && arg == &beats);
    beats = heartbeat, forced += force;
    mi_free(put_off), put_off = NULL;
    mi_collect(true); /* not from within itself */
}

static void process(void) {
    CHECK(mi_version() == MI_MALLOC_VERSION);
    CHECK(mi_is_redirected());
    mi_process_init(), mi_thread_init(), mi_thread_done(), mi_thread_set_in_threadpool(), mi_process_done();
    size_t v[8];
    memset(v, 0xff, sizeof v);
    char *touched = mi_malloc(50 << 20);
    memset(touched, 1, 50 << 20);
    mi_process_info(&v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]);
    CHECK(v[0] < 600000 && v[1] < 600000 && v[2] < 600000 && v[7] < 1000000);
    CHECK(v[3] > 50 << 20 && v[4] >= v[3] && v[5] > 50 << 20 && v[6] >= v[5] && v[3] < 1 << 30);
    mi_free(touched);
    mi_process_info(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

    mi_register_deferred_free(deferred, &beats);
    put_off = mi_malloc(10);
    mi_collect(false), mi_collect(true), mi_collect_reduce(1000);
    CHECK(beats == 3 && forced == 1 && put_off == NULL);
    mi_register_deferred_free(NULL, NULL);
    mi_collect(true);
    CHECK(beats == 3);

    int one = 1;
    mi_register_error(error, &one);
    CHECK(mi_malloc_aligned(10, 3) == NULL && last_error == EINVAL && errno == EINVAL);
    CHECK(mi_calloc(SIZE_MAX / 2, 3) == NULL && last_error == EOVERFLOW && errno == ENOMEM && errors == 2);
    mi_register_error(NULL, NULL);
}

static void options(void) {
    CHECK(_mi_option_last == 65 && mi_option_prof == 47 && mi_option_large_span_max == 64);
    CHECK(mi_option_get(mi_option_purge_delay) == 100 && mi_option_reset_delay == mi_option_purge_delay);
    /* from the environment, see tests/api.rs */
    CHECK(mi_option_get(mi_option_page_full_retain) == -3);
    CHECK(mi_option_get(mi_option_arena_reserve) == 2048 && mi_option_get_size(mi_option_arena_reserve) == 2 << 20);
    CHECK(mi_option_is_enabled(mi_option_pagemap_commit));
    mi_option_set_default(mi_option_page_full_retain, 9), mi_option_set_default(mi_option_generic_collect, 9);
    CHECK(mi_option_get(mi_option_page_full_retain) == -3 && mi_option_get(mi_option_generic_collect) == 9);
    CHECK(mi_option_get_size(mi_option_page_full_retain) == 0);
    CHECK(mi_option_get(mi_option_eager_region_commit) == 1); /* by its former name */
    CHECK(mi_option_get(mi_option_max_errors) == 32);         /* what was given is no number */
    CHECK(mi_option_get_clamp(mi_option_purge_delay, 1, 50) == 50);
    CHECK(mi_option_get_clamp(mi_option_purge_delay, 150, 500) == 150);
    mi_option_set(mi_option_purge_delay, -1);
    CHECK(mi_option_get(mi_option_purge_delay) == -1 && mi_option_is_enabled(mi_option_purge_delay));
    mi_option_disable(mi_option_purge_delay);
    CHECK(!mi_option_is_enabled(mi_option_purge_delay));
    mi_option_enable(mi_option_purge_delay);
    CHECK(mi_option_get(mi_option_purge_delay) == 1);
    mi_option_set_enabled(mi_option_scavenger, false), mi_option_set_enabled_default(mi_option_scavenger, true);
    CHECK(!mi_option_is_enabled(mi_option_scavenger));
    mi_option_set_enabled_default(mi_option_purge_holes, false);
    CHECK(!mi_option_is_enabled(mi_option_purge_holes));
    mi_option_set(-1, 5), mi_option_set(_mi_option_last, 5), mi_option_set_default(1000, 5);
    CHECK(mi_option_get(-1) == 0 && mi_option_get(_mi_option_last) == 0 && mi_option_get_size(1000) == 0);
}

static void printed(void) {
    text[0] = 0;
    mi_options_print_out(keep, text);
    CHECK(!strncmp(text, "v3.5.0\noption 'show_errors': 0 \n", 32));
    CHECK(strstr(text, "option 'arena_reserve': 2048 KiB\n") && strstr(text, "option 'large_span_max': 1024 \n"));
    CHECK(strstr(text, "mem tracking: none\n"));
    static char other[100000];
    mi_register_output(keep, other);
    mi_options_print();
    CHECK(!strcmp(text, other));
    other[0] = 0, mi_process_info_print();
    CHECK(strstr(other, "process: ") && strstr(other, " KiB resident"));
    other[0] = 0, mi_process_info_print_out(NULL, NULL);
    CHECK(strstr(other, "process: "));
    other[0] = 0, mi_stats_print(NULL);
    CHECK(strstr(other, "block size") && strstr(other, "larger") && strstr(other, "process: "));
    CHECK(strstr(other, "heap: ") && strstr(other, "free and in memory: ") && strstr(other, "holes: "));
    other[0] = 0, mi_stats_print_out(NULL, NULL);
    CHECK(strstr(other, "block size"));
    text[0] = 0, mi_thread_stats_print_out(keep, text);
    CHECK(strstr(text, "block size"));
    mi_register_output(NULL, NULL);
}

static void *work(void *arg) {
    for (int i = 0; i < 1000; i++) ((void **)arg)[i] = mi_malloc(5000);
    return NULL;
}

static void statistics(void) {
    mi_stats_t_decl(before);
    mi_stats_t_decl(after);
    CHECK(sizeof before == 4368 && mi_stats_get(&before));
    static void *blocks[1000];
    pthread_t thread;
    pthread_create(&thread, NULL, work, blocks);
    pthread_join(thread, NULL);
    for (int i = 0; i < 400; i++) mi_free(blocks[i]);
    void *large = mi_malloc(1000000), *gone = mi_malloc(700000);
    mi_free(gone);
    CHECK(mi_stats_get(&after));
    size_t block = mi_good_size(5000), bin = 0;
    while (mi_stats_get_bin_size(bin) < 5000) bin++;
    CHECK(mi_stats_get_bin_size(bin) == 5120 && mi_stats_get_bin_size(73) == 0 && mi_stats_get_bin_size(1000) == 0);
    CHECK(after.malloc_bins[bin].total - before.malloc_bins[bin].total == 1000);
    CHECK(after.malloc_bins[bin].current - before.malloc_bins[bin].current == 600);
    long normal = after.malloc_normal.current - before.malloc_normal.current;
    CHECK(normal >= 600 * (long)block && normal < 600 * (long)block + 20000);
    CHECK(after.malloc_normal_count.total - before.malloc_normal_count.total >= 1000);
    CHECK(after.malloc_huge.current - before.malloc_huge.current == (long)mi_usable_size(large));
    CHECK(after.malloc_bins[73].current - before.malloc_bins[73].current == 1);
    CHECK(after.malloc_huge_count.total - before.malloc_huge_count.total == 2);
    CHECK(after.reserved.current >= after.committed.current && after.committed.current >= normal);
    CHECK(after.mmap_calls.total > 0 && after.purged.total >= before.purged.total && after.arena_count.total == 0);
    mi_stats_t_decl(heap);
    CHECK(mi_heap_stats_get(mi_heap_main(), &heap) && heap.reserved.current == 0 && heap.purged.total == 0);
    char *freed = mi_malloc(20 << 20);
    memset(freed, 1, 20 << 20), mi_free(freed), mi_purge_all(true);
    mi_stats_t_decl(purged);
    CHECK(mi_stats_get(&purged) && purged.purged.total - before.purged.total >= 20 << 20);
    CHECK(purged.purge_calls.total > before.purge_calls.total && purged.committed.total >= purged.purged.total);
    mi_stats_reset(), mi_stats_merge();
    for (int i = 400; i < 1000; i++) mi_free(blocks[i]);
    mi_free(large);

    after.version++;
    CHECK(!mi_stats_get(&after) && mi_stats_as_json(&after, 0, NULL) == NULL && !mi_stats_get(NULL));
    char *json = mi_stats_get_json(0, NULL), small[20];
    CHECK(json && strlen(json) > 5000);
    puts(json);
    mi_free(json);
    CHECK(mi_stats_get_json(sizeof small, small) == small && strlen(small) == 19);
    CHECK(!strncmp(small, "{\n  \"stat_version\":", 19));
    CHECK(mi_stats_get_json(0, small) == NULL);
    json = mi_stats_as_json(&before, 0, NULL);
    char number[100];
    snprintf(number, sizeof number, "\"malloc_normal\": { \"total\": %ld, \"peak\": 0, \"current\": %ld }",
             (long)before.malloc_normal.total, (long)before.malloc_normal.current);
    CHECK(json && strstr(json, number)), mi_free(json);
}

int main(void) {
    process(), options(), printed(), statistics();
    return broken;
}
