/* What threads have of heaps, sub-processes, and counts of both. Each line of output is a broken promise. */
#include <errno.h>
#include <mimalloc-stats.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))
static int zero(const unsigned char *p, size_t n) {
    while (n && !*p) p++, n--;
    return n == 0;
}

static void theaps(void) {
    mi_heap_t *h = mi_heap_new();
    mi_theap_t *t = mi_heap_theap(h), *own = mi_theap_get_default();
    CHECK(t && own && t != own && mi_heap_theap(h) == t && mi_heap_theap(mi_heap_main()) == own);
    for (size_t n = 1; n < 2000000; n = n * 5 + 3) {
        unsigned char *p = mi_theap_malloc(t, n), *q;
        CHECK(mi_heap_of(p) == h), memset(p, 0xa5, n), mi_free(p);
        p = mi_theap_zalloc(t, n), CHECK(mi_heap_of(p) == h && zero(p, n)), memset(p, 0xa5, n), mi_free(p);
        p = mi_theap_calloc(t, n, 2), CHECK(mi_heap_of(p) == h && zero(p, 2 * n)), memset(p, 0xa5, n), mi_free(p);
        p = mi_theap_malloc_aligned(t, n, 512), CHECK(mi_heap_of(p) == h && (size_t)p % 512 == 0), mi_free(p);
        p = mi_theap_zalloc_aligned(t, n, 512), CHECK(mi_heap_of(p) == h && (size_t)p % 512 == 0 && zero(p, n));
        q = mi_theap_realloc(own, p, n), CHECK(q != p && mi_heap_of(q) == mi_heap_main());
        size_t before = mi_usable_size(q);
        q = mi_theap_rezalloc(t, q, 3 * n);
        CHECK(mi_heap_of(q) == h && (before >= 3 * n || zero(q + before, 3 * n - before)));
        mi_free(q);
        mi_free(mi_theap_malloc_csize(t, n)), mi_free(mi_theap_zalloc_csize(NULL, n));
    }
    mi_free(mi_theap_malloc_small(t, 10)), mi_free(mi_theap_zalloc_small(t, 10));
    CHECK(mi_theap_malloc(t, SIZE_MAX / 2) == NULL && errno == ENOMEM && mi_theap_calloc(t, SIZE_MAX, 3) == NULL);

    /* as the default: plain calls allocate there, frees of others' blocks stay out of it */
    static void *others[1000], *blocks[1000];
    for (int i = 0; i < 1000; i++) others[i] = mi_malloc(100);
    CHECK(mi_theap_set_default(t) == own && mi_theap_get_default() == t);
    CHECK(mi_theap_set_default(NULL) == t && mi_theap_get_default() == t);
    for (int i = 0; i < 1000; i++) {
        blocks[i] = i % 5 ? malloc(100) : mi_malloc(i * 3000);
        CHECK(mi_heap_of(blocks[i]) == h);
        mi_free(others[i]);
        void *main_block = mi_heap_malloc(mi_heap_main(), 100);
        CHECK(mi_heap_of(main_block) == mi_heap_main());
        free(main_block);
    }
    for (int i = 0; i < 1000; i += 2) mi_free(blocks[i]);
    mi_theap_collect(t, true);
    CHECK(mi_theap_set_default(own) == t);
    for (int i = 0; i < 1000; i++) {
        void *p = mi_malloc(100);
        CHECK(mi_heap_of(p) == mi_heap_main()), others[i] = p;
    }
    for (int i = 0; i < 1000; i++) mi_free(others[i]);
    mi_theap_collect(NULL, false);

    /* the default loses its heap */
    mi_theap_set_default(t);
    mi_heap_destroy(h);
    for (int i = 0; i < 300; i++) {
        void *p = i % 2 ? mi_malloc(100) : mi_malloc(1000000);
        CHECK(p && mi_heap_of(p) == mi_heap_main()), mi_free(p);
    }
    CHECK(mi_theap_get_default() == own);
}

static mi_theap_t *of_thread;
static void *another(void *arg) {
    mi_theap_t *t = mi_heap_theap(arg), *own = mi_theap_get_default();
    CHECK(t != of_thread && mi_theap_set_default(of_thread) == own && mi_theap_get_default() == own);
    mi_theap_set_default(t);
    void *p = mi_malloc(77);
    CHECK(mi_heap_of(p) == arg);
    return p;
}
static void other_threads(void) {
    mi_heap_t *h = mi_heap_new();
    of_thread = mi_heap_theap(h);
    void *p;
    for (int i = 0; i < 20; i++) {
        pthread_t t;
        pthread_create(&t, NULL, another, h);
        pthread_join(t, &p);
        CHECK(mi_heap_of(p) == h);
        if (i % 2) mi_free(p);
    }
    mi_heap_delete(h);
}

static bool count(mi_heap_t *heap, void *arg) { return heap && ++*(int *)arg < 4; }
static bool end(mi_heap_t *heap, void *arg) {
    if (heap != arg) mi_heap_destroy(heap);
    return true;
}
static mi_subproc_id_t sub;
static void *in_sub(void *arg) {
    mi_subproc_add_current_thread(sub);
    CHECK(mi_subproc_current()._mi_subproc_id == sub._mi_subproc_id);
    mi_heap_t *main_heap = mi_heap_main(), *h = mi_heap_new();
    void *p = mi_malloc(100), *q = mi_heap_malloc(h, 2000000);
    CHECK(mi_heap_of(p) == main_heap && mi_heap_of(q) == h && mi_heap_contains(NULL, p));
    *(mi_heap_t **)arg = main_heap;
    mi_heap_t *gone = mi_heap_new();
    void *r = mi_heap_malloc(gone, 500), *large = mi_heap_malloc(gone, 900000);
    mi_heap_delete(gone);
    CHECK(mi_heap_of(r) == main_heap && mi_heap_of(large) == main_heap);
    mi_free(r), mi_free(large);
    mi_heap_delete(main_heap), mi_heap_destroy(main_heap); /* no effect */
    int heaps = 0;
    CHECK(mi_subproc_visit_heaps(sub, count, &heaps) && heaps == 2);
    mi_stats_t_decl(stats);
    CHECK(mi_subproc_stats_get(sub, &stats) && stats.heaps.current == 2 && stats.threads.current == 1);
    CHECK(stats.malloc_huge.current == (long)mi_usable_size(q) && stats.malloc_huge_count.total == 2);
    CHECK(mi_subproc_stats_get_exclusive(sub, &stats) && stats.malloc_normal.total == 0 && stats.heaps.current == 0);
    return p;
}
static void sub_processes(void) {
    mi_subproc_id_t first = mi_subproc_main();
    CHECK(first._mi_subproc_id && mi_subproc_current()._mi_subproc_id == first._mi_subproc_id);
    int heaps = 0;
    CHECK(mi_subproc_visit_heaps(first, count, &heaps) && heaps == 1);
    for (int i = 0; i < 5; i++) CHECK(mi_heap_new() != NULL);
    heaps = 0;
    CHECK(!mi_subproc_visit_heaps(first, count, &heaps) && heaps == 4);
    CHECK(mi_subproc_visit_heaps(first, end, mi_heap_main()));
    heaps = 0;
    CHECK(mi_subproc_visit_heaps(first, count, &heaps) && heaps == 1);
    mi_stats_t_decl(before);
    mi_stats_t_decl(after);
    for (int i = 0; i < 3000; i++) {
        if (i == 10) mi_stats_get(&before);
        sub = mi_subproc_new();
        CHECK(sub._mi_subproc_id && sub._mi_subproc_id != first._mi_subproc_id);
        if (i % 100 == 0) {
            pthread_t t;
            mi_heap_t *main_heap;
            void *p;
            pthread_create(&t, NULL, in_sub, &main_heap);
            pthread_join(t, &p);
            CHECK(mi_heap_of(p) == main_heap && main_heap != mi_heap_main());
        }
        mi_subproc_destroy(sub);
    }
    mi_stats_get(&after);
    CHECK(after.malloc_normal.current < before.malloc_normal.current + 20000);
    CHECK(after.malloc_huge.current == before.malloc_huge.current && after.heaps.current == before.heaps.current);
    CHECK(after.pages.current < before.pages.current + 20 && after.theaps.current == before.theaps.current);
    mi_subproc_destroy(first);
    mi_subproc_add_current_thread(first);
    void *p = mi_malloc(10);
    CHECK(mi_heap_of(p) == mi_heap_main()), mi_free(p);
}

static void *fill(void *arg) {
    void **blocks = arg;
    mi_heap_t *h = blocks[0];
    for (int i = 0; i < 1000; i++) blocks[i] = mi_heap_malloc(h, 5000);
    for (int i = 0; i < 100; i++) mi_free(blocks[i]); /* by this thread */
    return NULL;
}
static char text[100000];
static void keep(const char *msg, void *arg) { strcat(arg, msg); }
static void statistics(void) {
    mi_heap_t *h = mi_heap_new();
    static void *blocks[1000];
    blocks[0] = h;
    mi_stats_t_decl(all);
    mi_stats_t_decl(stats);
    mi_stats_get(&all);
    long live = all.malloc_normal.current, huge = all.malloc_huge.current;
    pthread_t t;
    pthread_create(&t, NULL, fill, blocks);
    pthread_join(t, NULL);
    for (int i = 100; i < 400; i++) mi_free(blocks[i]); /* by one that has no part of the heap */
    void *large = mi_heap_malloc(h, 1000000);
    mi_free(mi_heap_malloc(h, 700000));
    size_t bin = 0, size = mi_good_size(5000);
    while (mi_stats_get_bin_size(bin) < 5000) bin++;
    CHECK(mi_heap_stats_get(h, &stats));
    CHECK(stats.malloc_bins[bin].total == 1000 && stats.malloc_bins[bin].current == 600);
    CHECK(stats.malloc_normal.current == 600 * (long)size && stats.malloc_normal_count.total == 1000);
    CHECK(stats.malloc_huge.current == (long)mi_usable_size(large) && stats.malloc_huge_count.total == 2);
    CHECK(stats.pages.current >= 600 * size >> 16 && stats.page_bins[bin].current >= 600 * size >> 16 && stats.heaps.current == 1);
    mi_heap_collect(h, true);
    mi_stats_t_decl(again);
    CHECK(mi_heap_stats_get(h, &again) && again.malloc_normal.current == stats.malloc_normal.current);
    CHECK(mi_stats_get(&all) && all.malloc_normal.current >= live + 600 * (long)size && all.malloc_normal.current < live + 600 * (long)size + 20000);
    CHECK(mi_heap_stats_get(mi_heap_main(), &again) && again.malloc_normal.current < live + 20000);
    CHECK(again.malloc_huge.current == huge);

    char *json = mi_heap_stats_get_json(h, 0, NULL), number[100];
    snprintf(number, sizeof number, "\"malloc_normal\": { \"total\": %ld, \"peak\": 0, \"current\": %ld }",
             (long)stats.malloc_normal.total, (long)stats.malloc_normal.current);
    CHECK(strstr(json, number)), mi_free(json);
    mi_heap_stats_merge_to_subproc(h);
    mi_heap_stats_print_out(h, keep, text);
    CHECK(strstr(text, "block size") && strstr(text, "larger")), text[0] = 0;
    json = mi_subproc_stats_get_json(mi_subproc_main(), 0, NULL);
    CHECK(json && strstr(json, "malloc_bins")), mi_free(json);
    mi_subproc_stats_print_out(mi_subproc_main(), keep, text);
    CHECK(strstr(text, "block size")), text[0] = 0;
    mi_subproc_heap_stats_print_out(mi_subproc_main(), keep, text);
    CHECK(strstr(text, "heap 0\n") && strstr(strstr(text, "heap 0\n") + 1, "heap ")), text[0] = 0;

    /* deleted: they are the main heap's; destroyed: freed */
    mi_heap_delete(h);
    CHECK(mi_heap_stats_get(mi_heap_main(), &again) && again.malloc_normal.current >= live + 600 * (long)size);
    CHECK(again.malloc_huge.current == huge + (long)mi_usable_size(large));
    for (int i = 400; i < 1000; i++) mi_free(blocks[i]);
    mi_free(large);
    h = mi_heap_new();
    for (int i = 0; i < 1000; i++) (void)!mi_heap_malloc(h, 5000), (void)!mi_heap_malloc(h, 600000);
    mi_heap_destroy(h);
    CHECK(mi_stats_get(&all) && all.malloc_normal.current < live + 20000 && all.malloc_huge.current == huge);
    CHECK(all.malloc_huge_count.total >= 1000);
}

static void *works_in_parts(void *arg) {
    mi_heap_t *h = arg;
    void *kept = NULL;
    for (int i = 0; i < 30; i++) {
        void *p = mi_malloc(100), *q = mi_heap_malloc(h, 100);
        memset(p, i, 100), memset(q, i, 100);
        mi_thread_done();
        CHECK(((char *)p)[50] == i && ((char *)q)[50] == i);
        mi_free(q), mi_free(kept), kept = p;
        if (i % 3 == 0) mi_thread_done(), mi_thread_done();
    }
    mi_free(kept);
    return NULL;
}
static void thread_done(void) {
    mi_heap_t *h = mi_heap_new();
    mi_stats_t_decl(stats);
    for (int i = 0; i < 10; i++) {
        pthread_t t;
        pthread_create(&t, NULL, works_in_parts, h);
        pthread_join(t, NULL);
    }
    works_in_parts(h);
    CHECK(mi_heap_stats_get(h, &stats) && stats.malloc_normal.current == 0 && stats.theaps.current <= 1);
    mi_heap_destroy(h);
}

static int calls;
static void deferred(bool force, unsigned long long heartbeat, void *arg) {
    CHECK(!force && arg == &calls), calls++;
    mi_free(mi_malloc(100));
}
static void *allocates(void *arg) {
    for (int i = 0; i < 20000; i++) (void)!mi_heap_malloc(arg, 3000);
    return NULL;
}
static void deferred_free(void) {
    mi_option_set(mi_option_generic_collect, 50);
    mi_register_deferred_free(deferred, &calls);
    mi_heap_t *h = mi_heap_new();
    pthread_t t;
    pthread_create(&t, NULL, allocates, h); /* with stacks that are small yet */
    pthread_join(t, NULL);
    CHECK(calls > 0);
    mi_option_set(mi_option_generic_collect, 0);
    pthread_create(&t, NULL, allocates, h);
    pthread_join(t, NULL);
    int before = calls;
    pthread_create(&t, NULL, allocates, h);
    pthread_join(t, NULL);
    CHECK(calls == before);
    mi_register_deferred_free(NULL, NULL);
    mi_heap_destroy(h);
}

int main(void) {
    theaps(), other_threads(), sub_processes(), statistics(), thread_done(), deferred_free();
    return broken;
}
