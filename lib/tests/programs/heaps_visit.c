/* Visits: at rest they see exactly what is live; beside running threads every block that stays, once. Each line of output is
 * a broken promise. */
#include <mimalloc-stats.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))
static unsigned next(unsigned *state) { return *state = *state * 1664525 + 1013904223, *state >> 8; }
static unsigned some_size(unsigned *state) { return 24 + next(state) % (next(state) % 40 ? 1500 : next(state) % 20 ? 60000 : 1500000); }

/* Blocks that stay carry a number and are marked when they are seen. Every other block has number 0 in that place. */
typedef struct { uint64_t number; unsigned size; } head_t;
enum { STAY = 3000 };
static head_t *stay[STAY];
static unsigned seen[STAY];

typedef struct { const mi_heap_t *heap; size_t areas, in_areas, blocks, stayed, stop_after; } visit_t;
static bool visit(const mi_heap_t *heap, const mi_heap_area_t *area, void *block, size_t size, void *arg) {
    visit_t *v = arg;
    if (v->heap != heap || area->block_size != size || area->full_block_size < size || area->committed > area->reserved) abort();
    if (!block) return v->areas++, v->in_areas += area->used, true;
    if ((char *)block < (char *)area->blocks || (char *)block + size > (char *)area->blocks + area->reserved) abort();
    if (((char *)block - (char *)area->blocks) % area->full_block_size) abort();
    head_t *head = block;
    uint64_t number = head->number; /* memory of blocks is always readable */
    if (number && number <= STAY && stay[number - 1] == block) {
        if (mi_usable_size(block) != size) abort();
        seen[number - 1]++, v->stayed++;
    }
    v->blocks++;
    free(malloc(next(&(unsigned){v->blocks}) % 300)); /* may allocate, also from the heap itself */
    if (v->blocks % 64 == 0) free(mi_heap_malloc((mi_heap_t *)heap, 100));
    return v->blocks != v->stop_after;
}
static visit_t look(mi_heap_t *heap, size_t stop_after) {
    visit_t v = {heap, 0, 0, 0, 0, stop_after};
    memset(seen, 0, sizeof seen);
    bool all = mi_heap_visit_blocks(heap, true, visit, &v);
    CHECK(all == (!stop_after || v.blocks != stop_after));
    return v;
}
static void fill(mi_heap_t *heap, unsigned seed) {
    static void *gone[STAY];
    for (int i = 0; i < STAY; i++) {
        unsigned n = some_size(&seed);
        stay[i] = mi_heap_malloc(heap, n);
        *stay[i] = (head_t){i + 1, n};
        gone[i] = mi_heap_zalloc(heap, some_size(&seed));
    }
    for (int i = 0; i < STAY; i++) mi_free(gone[i]);
}
static void empty(void) {
    for (int i = 0; i < STAY; i++) mi_free(stay[i]);
}

static void at_rest(mi_heap_t *heap) {
    visit_t before = look(heap, 0);
    fill(heap, 5);
    visit_t v = look(heap, 0);
    CHECK(v.blocks == before.blocks + STAY && v.stayed == STAY && v.in_areas == v.blocks && v.areas > before.areas);
    for (int i = 0; i < STAY; i++) CHECK(seen[i] == 1);
    mi_heap_collect(heap, true);
    v = look(heap, 0);
    CHECK(v.blocks == before.blocks + STAY && v.stayed == STAY);
    v = look(heap, 100);
    CHECK(v.blocks == 100);
    visit_t areas = {heap, 0, 0, 0, 0, 0};
    CHECK(mi_heap_visit_blocks(heap, false, visit, &areas) && areas.blocks == 0 && areas.in_areas == before.blocks + STAY);
    for (int i = 0; i < STAY; i += 2) mi_free(stay[i]), stay[i] = NULL;
    v = look(heap, 0);
    CHECK(v.blocks == before.blocks + STAY / 2 && v.stayed == STAY / 2);
    mi_stats_t_decl(stats);
    CHECK(mi_heap_stats_get(heap, &stats));
    long live = 0;
    for (int i = 0; i < MI_BIN_COUNT; i++) live += stats.malloc_bins[i].current;
    CHECK(live == (long)v.blocks);
    empty();
    CHECK(look(heap, 0).blocks == before.blocks);
}

static mi_heap_t *heap;
static atomic_int stop;
static _Atomic(void *) shared[2000];
static void *churn(void *arg) {
    unsigned state = (unsigned)(size_t)arg;
    while (!stop) {
        unsigned n = some_size(&state);
        void *p = next(&state) % 3 ? mi_heap_malloc(heap, n) : mi_malloc(n);
        memset(p, 0, sizeof(head_t));
        p = atomic_exchange(&shared[next(&state) % 2000], p);
        if (p) mi_free(p);
        if (next(&state) % 5000 == 0) mi_collect(true);
        if (next(&state) % 5000 == 0) mi_thread_done();
    }
    return NULL;
}
static void beside_threads(mi_heap_t *h) {
    fill(h, 7);
    stop = 0;
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++) pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    for (int round = 0; round < 12; round++) {
        visit_t v = look(h, 0);
        CHECK(v.stayed == STAY && v.blocks < STAY + 2000 + 4000);
        for (int i = 0; i < STAY; i++) CHECK(seen[i] == 1);
    }
    stop = 1;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 2000; i++) mi_free(shared[i]), shared[i] = NULL;
    empty();
}

static bool count(const mi_heap_t *h, const mi_heap_area_t *area, void *block, size_t size, void *arg) {
    return *(int *)arg += block != NULL, true;
}
static void small_things(void) {
    mi_heap_t *h = mi_heap_new();
    int n = 0;
    CHECK(mi_heap_visit_blocks(h, true, count, &n) && n == 0);
    void *p = mi_heap_malloc(h, 10), *large = mi_heap_malloc_aligned_at(h, 700000, 4096, 8);
    CHECK(mi_theap_visit_blocks(mi_heap_theap(h), true, count, &n) && n == 2);
    mi_free(large), n = 0;
    CHECK(mi_theap_visit_blocks(mi_heap_theap(h), true, count, &n) && n == 1);
    CHECK(mi_heap_visit_abandoned_blocks(h, true, count, &n) && n == 1);
    CHECK(!mi_heap_visit_blocks(h, true, NULL, NULL));
    void *blocks[400];
    for (int i = 0; i < 400; i++) blocks[i] = mi_heap_malloc(h, 1000);
    for (int i = 0; i < 400; i++)
        if (i != 5) mi_free(blocks[i]);
    mi_heap_collect(h, true);
    CHECK(mi_unsafe_heap_page_is_under_utilized(h, blocks[5], 50));
    CHECK(!mi_unsafe_heap_page_is_under_utilized(h, blocks[5], 0));
    CHECK(!mi_unsafe_heap_page_is_under_utilized(mi_heap_main(), blocks[5], 50));
    CHECK(!mi_unsafe_heap_page_is_under_utilized(h, &n, 50) && !mi_unsafe_heap_page_is_under_utilized(h, NULL, 50));
    mi_heap_destroy(h);
}

int main(void) {
    static char out[4096];
    setvbuf(stdout, out, _IOFBF, sizeof out);
    small_things();
    heap = mi_heap_new();
    at_rest(heap), at_rest(mi_heap_main());
    beside_threads(heap), beside_threads(mi_heap_main());
    at_rest(heap);
    mi_heap_destroy(heap);
    return broken;
}
