/* Memory events, kind by kind. Each line of output is a broken promise. */
#include <errno.h>
#include <mimalloc/memory-events.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))

/* What a callback has heard last. */
struct heard {
    int counts[MI_MEMORY_CHANGE_COUNT];
    mi_memory_change_t last;
};

static void hear(const mi_memory_change_t *change, void *arg) {
    struct heard *heard = arg;
    heard->counts[change->kind]++;
    heard->last = *change;
}

static void listen_to(mi_memory_change_fun *f, void *arg) {
    mi_memory_callbacks_t callbacks;
    for (int kind = 0; kind < MI_MEMORY_CHANGE_COUNT; kind++) callbacks.handlers[kind] = f, callbacks.args[kind] = arg;
    CHECK(mi_memory_set_callbacks(&callbacks));
}

static mi_memory_snapshot_t totals(void) {
    mi_memory_snapshot_t now; /* with what is between the fields: they are compared as bytes */
    memset(&now, 0, sizeof now);
    now.size = sizeof now, now.version = MI_MEMORY_SNAPSHOT_VERSION;
    CHECK(mi_memory_snapshot(&now));
    return now;
}

static struct heard heard;
static mi_memory_snapshot_t before;

static void begin(void) {
    memset(&heard, 0, sizeof heard);
    before = totals();
}

/* One event since `begin`, with this change of bytes, blocks and bytes ever allocated. */
#define ONE(kind_, delta, request, blocks, ever, ever_blocks)                                                          \
    do {                                                                                                               \
        mi_memory_snapshot_t now = totals();                                                                           \
        CHECK(heard.counts[0] + heard.counts[1] + heard.counts[2] == 1 && heard.counts[kind_] == 1);                   \
        CHECK(heard.last.kind == kind_ && heard.last.delta_bytes == (int64_t)(delta));                                 \
        CHECK(heard.last.request_size == (request) && heard.last.total_bytes == now.live_bytes);                       \
        CHECK(now.live_bytes - before.live_bytes == (uint64_t)(delta));                                                \
        CHECK(now.live_count - before.live_count == (uint64_t)(blocks));                                               \
        CHECK(now.accum_bytes - before.accum_bytes == (uint64_t)(ever));                                               \
        CHECK(now.accum_count - before.accum_count == (uint64_t)(ever_blocks));                                        \
    } while (0)

static void none(int line) {
    mi_memory_snapshot_t now = totals();
    if (heard.counts[0] + heard.counts[1] + heard.counts[2] != 0 || memcmp(&now, &before, sizeof now) != 0)
        broken = 1, printf("line %d: something was told, or has changed\n", line);
}

static void a_block(void *p, size_t size) {
    CHECK(p != NULL);
    if (heard.last.request_size != size) printf("%zu, not %zu: ", (size_t)heard.last.request_size, size);
    ONE(MI_MEMORY_ALLOCATE, mi_usable_size(p), size, 1, mi_usable_size(p), 1);
    size_t usable = mi_usable_size(p);
    begin();
    mi_free(p);
    ONE(MI_MEMORY_FREE, -usable, 0, -1, 0, 0);
}

static void each_kind(void) {
    listen_to(hear, &heard);
    static const size_t sizes[] = {0, 1, 16, 17, 100, 1000, 1024, 1025, 5000, 70000, 400000, 524288, 524289, 3000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        for (int again = 0; again < 3; again++) {
            begin(), a_block(mi_malloc(size), size);
            begin(), a_block(mi_zalloc(size), size);
            begin(), a_block(mi_calloc(1, size), size);
        }
        begin(), a_block(mi_malloc_aligned_at(size, 256, 40), size ? size : 1);
    }
    begin(), a_block(mi_malloc_aligned(100, 64), 100);
    begin(), a_block(mi_zalloc_aligned(100, 4096), 100);
    begin(), a_block(mi_zalloc_aligned(100000, 4096), 100000);
    begin(), a_block(mi_malloc_aligned(1 << 20, 1 << 20), 1 << 20);

    static const size_t steps[] = {8,      30,     33,      28,     100,     5000,    4000,  900,    40000,  300000, 600000,
                                   700000, 350000, 1000000, 200000, 1 << 20, 5 << 20, 65536, 65537, 1 << 20, 8};
    void *p = mi_malloc(24);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int64_t usable = mi_usable_size(p);
        begin();
        p = mi_realloc(p, steps[i]);
        int64_t change = (int64_t)mi_usable_size(p) - usable;
        ONE(MI_MEMORY_RESIZE, change, steps[i], 0, change > 0 ? change : 0, 0);
    }
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int64_t usable = mi_usable_size(p);
        begin();
        p = i % 2 ? mi_rezalloc_aligned_at(p, steps[i], 64, 24) : mi_rezalloc(p, steps[i]);
        int64_t change = (int64_t)mi_usable_size(p) - usable;
        ONE(MI_MEMORY_RESIZE, change, steps[i], 0, change > 0 ? change : 0, 0);
    }
    begin();
    void *grown = mi_expand(p, 1);
    CHECK(grown == p);
    ONE(MI_MEMORY_RESIZE, 0, 1, 0, 0, 0);

    begin();
    CHECK(mi_malloc(SIZE_MAX / 2) == NULL && mi_calloc(SIZE_MAX, 16) == NULL);
    CHECK(mi_realloc(p, SIZE_MAX / 2) == NULL && mi_expand(p, SIZE_MAX / 4) == NULL);
    CHECK(mi_malloc_aligned(8, 3) == NULL);
    mi_free(NULL);
    none(__LINE__);
    mi_free(p);

    /* realloc to nothing frees; what is null is allocated. */
    p = malloc(50);
    size_t usable = mi_usable_size(p);
    begin();
    CHECK(realloc(p, 0) == NULL);
    ONE(MI_MEMORY_FREE, -usable, 0, -1, 0, 0);
    begin();
    p = realloc(NULL, 50);
    usable = mi_usable_size(p);
    ONE(MI_MEMORY_ALLOCATE, usable, 50, 1, usable, 1);
    begin();
    CHECK(mi_reallocf(p, SIZE_MAX / 2) == NULL);
    ONE(MI_MEMORY_FREE, -usable, 0, -1, 0, 0);
}

static void heaps(void) {
    mi_heap_t *heap = mi_heap_new();
    begin();
    void *p = mi_heap_malloc(heap, 100);
    a_block(p, 100);
    void *q = mi_heap_malloc(heap, 100);
    size_t usable = mi_usable_size(q);
    begin();
    q = mi_heap_realloc(heap, q, 5000);
    ONE(MI_MEMORY_RESIZE, mi_usable_size(q) - usable, 5000, 0, mi_usable_size(q) - usable, 0);
    mi_free(q);
    int64_t bytes = 0;
    enum { BLOCKS = 5000 };
    for (int i = 0; i < BLOCKS; i++) bytes += mi_usable_size(mi_heap_malloc(heap, i % 100 ? i % 700 : i * 300));
    begin();
    mi_heap_destroy(heap);
    mi_memory_snapshot_t now = totals();
    CHECK(heard.counts[MI_MEMORY_FREE] == BLOCKS && heard.counts[MI_MEMORY_ALLOCATE] + heard.counts[MI_MEMORY_RESIZE] == 0);
    CHECK(now.live_bytes == before.live_bytes - bytes && now.live_count == before.live_count - BLOCKS);
    CHECK(now.accum_bytes == before.accum_bytes && now.accum_count == before.accum_count);
    CHECK(heard.last.total_bytes == now.live_bytes);

    heap = mi_heap_new();
    p = mi_heap_malloc(heap, 100);
    begin();
    mi_heap_delete(heap);
    none(__LINE__);
    mi_free(p);
}

static void *pushed;
static void *frees(void *arg) {
    mi_free(pushed);
    return arg;
}

static void others_free(void) {
    pthread_t thread;
    struct heard by_other = {0};
    pushed = mi_malloc(1 << 20);
    listen_to(hear, &by_other);
    pthread_create(&thread, NULL, frees, NULL);
    pthread_join(thread, NULL);
    CHECK(by_other.counts[MI_MEMORY_FREE] >= 1);
    listen_to(hear, &heard);
}

/* A callback that allocates, keeps, resizes and frees; and looks at the totals. */
static void *kept[64];
static int at, calls;
static void busy(const mi_memory_change_t *change, void *arg) {
    calls++;
    mi_free(mi_malloc(16));
    mi_free(kept[at]);
    kept[at] = mi_malloc(300);
    kept[at] = mi_realloc(kept[at], 3000);
    at = (at + 1) % 64;
    CHECK(totals().live_bytes == change->total_bytes);
    errno = 77;
}

static void in_callbacks(void) {
    listen_to(busy, NULL);
    begin();
    errno = 5;
    void *p = mi_malloc(64);
    size_t usable = mi_usable_size(p);
    CHECK(errno == 5 && calls == 1);
    mi_memory_snapshot_t now = totals();
    CHECK(now.live_bytes == before.live_bytes + usable && now.live_count == before.live_count + 1);
    CHECK(now.accum_bytes == before.accum_bytes + usable && now.accum_count == before.accum_count + 1);
    p = mi_realloc(p, 5000);
    mi_free(p);
    CHECK(errno == 5 && calls == 3);
    for (int i = 0; i < 100; i++) mi_free(mi_malloc(i * 50));
    CHECK(calls == 203);
    now = totals();
    CHECK(now.live_bytes == before.live_bytes && now.live_count == before.live_count);
    /* Blocks of callbacks are nobody's business, whoever frees them. */
    listen_to(hear, &heard);
    begin();
    for (int i = 0; i < 32; i++) mi_free(kept[i]);
    for (int i = 32; i < 64; i++) kept[i] = mi_realloc(kept[i], 7000);
    for (int i = 32; i < 64; i++) mi_free(kept[i]);
    none(__LINE__);
    CHECK(mi_memory_set_callbacks(NULL));
    calls = 0;
    mi_free(mi_malloc(10));
    CHECK(calls == 0 && heard.counts[0] == 0);
}

/* Callbacks that change the callbacks. */
static void once(const mi_memory_change_t *change, void *arg) {
    calls++;
    CHECK(mi_memory_set_callbacks(NULL));
}

static void only_frees(void) {
    listen_to(once, NULL);
    calls = 0;
    void *p = mi_malloc(10);
    mi_free(p);
    CHECK(calls == 1);
    mi_memory_callbacks_t callbacks = {{NULL}, {NULL}};
    callbacks.handlers[MI_MEMORY_FREE] = hear, callbacks.args[MI_MEMORY_FREE] = &heard;
    CHECK(mi_memory_set_callbacks(&callbacks));
    begin();
    mi_free(mi_realloc(mi_malloc(10), 100));
    CHECK(heard.counts[0] == 0 && heard.counts[1] == 1 && heard.counts[2] == 0);
    CHECK(heard.last.total_bytes == totals().live_bytes);
}

static void switched(void) {
    listen_to(hear, &heard);
    void *early = mi_malloc(77), *also = mi_malloc(1 << 20);
    mi_memory_snapshot_t on = totals();
    CHECK(mi_memory_tracking_set_enabled(false) && !mi_memory_tracking_is_enabled());
    begin();
    mi_free(mi_malloc(64));
    mi_free(mi_realloc(mi_malloc(64), 5000));
    CHECK(heard.counts[0] + heard.counts[1] + heard.counts[2] == 0);
    mi_memory_snapshot_t off = totals();
    CHECK(memcmp(&on, &off, sizeof on) == 0);
    void *unseen = mi_malloc(100);
    size_t usable = mi_usable_size(unseen);
    CHECK(mi_memory_tracking_set_enabled(true) && mi_memory_tracking_is_enabled());
    mi_memory_snapshot_t again = totals();
    CHECK(again.live_bytes == on.live_bytes + usable && again.live_count == on.live_count + 1);
    CHECK(again.accum_bytes == on.accum_bytes + usable && again.accum_count == on.accum_count + 1);
    begin();
    mi_free(unseen);
    ONE(MI_MEMORY_FREE, -usable, 0, -1, 0, 0);
    usable = mi_usable_size(early);
    begin();
    mi_free(early);
    ONE(MI_MEMORY_FREE, -usable, 0, -1, 0, 0);
    usable = mi_usable_size(also);
    begin();
    mi_free(also);
    ONE(MI_MEMORY_FREE, -usable, 0, -1, 0, 0);
}

struct seen {
    void *blocks[4];
    int times[4];
    size_t sizes[4], all;
};

static bool look(void *p, size_t usable, void *arg) {
    struct seen *seen = arg;
    seen->all++;
    mi_free(mi_malloc(20));
    for (int i = 0; i < 4; i++)
        if (seen->blocks[i] == p) seen->times[i]++, seen->sizes[i] = usable;
    return true;
}

static bool stop(void *p, size_t usable, void *arg) {
    ++*(int *)arg;
    return false;
}

static void *makes(void *arg) { return *(void **)arg = mi_malloc(55); }

static void visits(void) {
    mi_heap_t *heap = mi_heap_new();
    struct seen seen = {{mi_malloc(10), mi_malloc(1 << 20), mi_heap_malloc(heap, 10)}};
    pthread_t thread;
    pthread_create(&thread, NULL, makes, &seen.blocks[3]);
    pthread_join(thread, NULL);
    CHECK(mi_memory_visit_live_allocations(look, &seen) && seen.all >= 4);
    for (int i = 0; i < 4; i++) CHECK(seen.times[i] == 1 && seen.sizes[i] == mi_usable_size(seen.blocks[i]));
    int stops = 0;
    CHECK(mi_memory_visit_live_allocations(stop, &stops) && stops == 1);
    CHECK(!mi_memory_visit_live_allocations(NULL, NULL));
    mi_free(seen.blocks[0]), mi_free(seen.blocks[1]), mi_free(seen.blocks[3]);
    mi_heap_destroy(heap);
    memset(seen.times, 0, sizeof seen.times);
    CHECK(mi_memory_visit_live_allocations(look, &seen));
    for (int i = 0; i < 4; i++) CHECK(seen.times[i] == 0);
}

static void unwrapped(void) {
    begin();
    CHECK(mi_unwrapped_malloc(100, 3) == NULL && errno == EINVAL);
    CHECK(mi_unwrapped_malloc(SIZE_MAX - 10, 0) == NULL && errno == ENOMEM);
    unsigned char *p = mi_unwrapped_malloc(64, 0), *q;
    CHECK((uintptr_t)p % sizeof(void *) == 0 && p[0] == 0 && p[63] == 0);
    memset(p, 0xab, 64);
    CHECK((q = mi_unwrapped_realloc(p, 100000, 1 << 16)) != NULL && (uintptr_t)q % (1 << 16) == 0);
    CHECK(q[0] == 0xab && q[63] == 0xab && q[99999] == 0);
    memset(q, 0xcd, 100000);
    CHECK(mi_unwrapped_realloc(q, SIZE_MAX / 2, 0) == NULL && q[99999] == 0xcd);
    CHECK((p = mi_unwrapped_realloc(q, 5, 16)) != NULL && p[4] == 0xcd);
    CHECK(mi_unwrapped_realloc(p, 0, 0) == NULL);
    CHECK((p = mi_unwrapped_realloc(NULL, 5, 0)) != NULL);
    mi_unwrapped_free(p), mi_unwrapped_free(NULL);
    none(__LINE__);
    p = mi_malloc(16);
    begin();
    mi_unwrapped_free(p);
    none(__LINE__);
    mi_free(p);
}

static void bad_arguments(void) {
    mi_memory_snapshot_t_decl(declared);
    CHECK(mi_memory_snapshot(&declared) && declared.live_count > 0);
    mi_memory_snapshot_t s = {sizeof s + 8, MI_MEMORY_SNAPSHOT_VERSION, 7};
    CHECK(!mi_memory_snapshot(NULL) && !mi_memory_snapshot(&s) && s.live_bytes == 7);
    s.size = sizeof s, s.version = 2;
    CHECK(!mi_memory_snapshot(&s) && s.live_bytes == 7);
}

/* A child goes on with its parent's callbacks and totals. */
static void forks(void) {
    void *p = mi_malloc(100);
    size_t usable = mi_usable_size(p);
    pid_t child = fork();
    if (child == 0) {
        broken = 0;
        begin();
        mi_free(p);
        ONE(MI_MEMORY_FREE, -usable, 0, -1, 0, 0);
        listen_to(hear, &heard);
        begin(), a_block(mi_malloc(10), 10);
        fflush(stdout);
        _exit(broken);
    }
    int status;
    waitpid(child, &status, 0);
    CHECK(status == 0);
    mi_free(p);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0);
    CHECK(mi_memory_tracking_is_enabled() == (argc > 1));
    if (argc == 1) {
        /* Callbacks hear nothing, but totals are right. */
        listen_to(hear, &heard);
        begin();
        void *p = mi_malloc(100);
        mi_memory_snapshot_t now = totals();
        CHECK(heard.counts[0] == 0 && now.live_bytes == before.live_bytes + mi_usable_size(p));
        CHECK(now.live_count == before.live_count + 1 && now.accum_count == before.accum_count + 1);
        mi_free(p);
        CHECK(mi_memory_set_callbacks(NULL) && mi_memory_tracking_set_enabled(true));
        now = totals();
        CHECK(now.live_bytes == before.live_bytes && now.accum_bytes >= now.live_bytes);
    }
    each_kind(), heaps(), others_free(), in_callbacks(), only_frees(), switched(), visits(), unwrapped(), bad_arguments(), forks();
    CHECK(mi_memory_set_callbacks(NULL) && mi_memory_tracking_set_enabled(false));
    return broken;
}
