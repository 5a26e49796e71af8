/* Memory is given back in a tight loop while everything else happens.
 * Usage: reclaim_storm SEED SECONDS mixed|threads|heaps|subprocs|visit|sampling|zeroed|many */
#include "reclaim.h"

static atomic_bool stop;
static atomic_ulong rounds, purges;
static double end;

typedef struct { void *id; } subproc;
typedef bool visitor(const void *heap, const void *area, void *block, size_t size, void *arg);
#define FUNCTION(result, name, ...)                                                                                       \
    static result (*name)(__VA_ARGS__);                                                                                   \
    __attribute__((constructor)) static void find_##name(void) { name = (__typeof__(name))dlsym(RTLD_DEFAULT, #name); }
FUNCTION(void *, mi_heap_new, void)
FUNCTION(void, mi_heap_delete, void *)
FUNCTION(void, mi_heap_destroy, void *)
FUNCTION(void *, mi_heap_malloc, void *, size_t)
FUNCTION(void *, mi_heap_zalloc, void *, size_t)
FUNCTION(void, mi_heap_collect, void *, bool)
FUNCTION(bool, mi_heap_visit_blocks, void *, bool, visitor *, void *)
FUNCTION(subproc, mi_subproc_new, void)
FUNCTION(void, mi_subproc_destroy, subproc)
FUNCTION(void, mi_subproc_add_current_thread, subproc)
FUNCTION(bool, mi_prof_start, size_t)
FUNCTION(void, mi_prof_stop, void)

/* Both kinds of purge, statistics, reports and idle calls, from a thread that allocates nothing. */
static void *purge_always(void *number) {
    for (unsigned i = 0; !stop; i++, purges++) {
        if (!mi_purge_all_ex) {
            purge();
            continue;
        }
        purge_report report = {0};
        holes_stats stats;
        int flags = i % 7 == 0 ? 0 : i % 5 == 0 ? PURGE_FORCE | PURGE_RECLAIM : PURGE_FORCE;
        int result = mi_purge_all_ex(flags, 100, &report);
        if (result < 0 || result > 2) WRONG("mi_purge_all_ex: %d", result);
        if (result == PURGE_OK && !report.complete) WRONG("a purge that is OK is not complete");
        mi_purge_holes_stats_get(&stats);
        if (stats.purged_bytes > stats.purged_bytes_total) WRONG("%zu bytes are away of %zu that were returned", stats.purged_bytes, stats.purged_bytes_total);
        if (stats.purged_bytes > 1ul << 34) WRONG("the gauge is %zu", stats.purged_bytes);
        if (i % 16 == 0) mi_on_thread_idle();
        if (i % 64 == 0) mi_on_thread_idle_start(), mi_on_thread_idle_end();
    }
    return number;
}

/* Blocks of their own, and blocks that go from hand to hand. */
enum { SHARED = 600, OWN = 4000 };
static _Atomic(block *) shared[SHARED];
static void hand_over(int times, uint64_t *state) {
    for (int i = 0; i < times; i++) {
        block *b = malloc(sizeof *b);
        if (!make(b, some_size(state), state)) WRONG("no memory");
        if ((b = atomic_exchange(&shared[next(state) % SHARED], b))) drop(b), free(b);
    }
}
static void one_round(block *own, size_t count, uint64_t *state) {
    for (size_t i = 0; i < count; i++)
        if (!own[i].at) make(&own[i], some_size(state), state);
    hand_over(count / 10, state);
    /* sizes of a page and more are wholly in holes */
    for (size_t i = 0; i < count; i += 17) {
        drop(&own[i]);
        make(&own[i], 4096 << next(state) % 3, state);
    }
    check(own, count);
    thin(own, count, 20, state);
    if (next(state) % 16 == 0) nap(1 + next(state) % 250);
    check(own, count);
    rounds++;
}
static void *mixed(void *number) {
    uint64_t state = seed * 100 + (uintptr_t)number;
    block *own = calloc(OWN, sizeof *own);
    while (!stop) one_round(own, OWN, &state);
    clear(own, OWN);
    free(own);
    return NULL;
}

/* Threads that live for a moment and leave blocks behind. */
static void *brief(void *given) {
    uint64_t state = (uintptr_t)given;
    block own[300] = {0};
    for (int i = 0; i < 2; i++) one_round(own, 300, &state);
    clear(own, 300);
    return NULL;
}
static void *threads(void *number) {
    uint64_t state = seed * 100 + (uintptr_t)number;
    while (!stop) {
        pthread_t thread[8];
        int n = 1 + next(&state) % 8;
        for (int i = 0; i < n; i++) CHECK(!pthread_create(&thread[i], NULL, brief, (void *)next(&state)));
        for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
    }
    return NULL;
}

static block in_heap(void *heap, uint64_t *state) {
    block b = {NULL, next(state) | 1, some_size(state)};
    bool zero = next(state) % 4 == 0;
    b.at = zero ? mi_heap_zalloc(heap, b.size) : mi_heap_malloc(heap, b.size);
    if (!b.at) WRONG("no memory in a heap");
    if (zero) all_zero(&b);
    return stamp(&b), b;
}
/* Heaps with blocks in them, some of which have gone, are destroyed or deleted. */
static void *heaps(void *number) {
    uint64_t state = seed * 100 + (uintptr_t)number;
    static __thread block own[2000];
    while (!stop) {
        void *some[4];
        size_t n = 0, count = 4 + next(&state) % 400;
        for (int h = 0; h < 4; h++) {
            some[h] = mi_heap_new();
            for (size_t i = 0; i < count; i++) own[n++] = in_heap(some[h], &state);
        }
        thin(own, n, 5, &state);
        if (next(&state) % 2) mi_heap_collect(some[0], true);
        check(own, n);
        if (next(&state) % 4 == 0) nap(next(&state) % 130);
        for (int h = 0; h < 4; h++) {
            bool destroyed = next(&state) % 2;
            for (size_t i = count * h; i < count * (h + 1) && destroyed; i++)
                if (own[i].at) verify(&own[i]), own[i].at = NULL;
            destroyed ? mi_heap_destroy(some[h]) : mi_heap_delete(some[h]);
        }
        clear(own, n); /* of deleted heaps */
        rounds++;
    }
    return NULL;
}

/* A sub-process with threads in it, that have ended when it is destroyed. */
typedef struct { subproc where; uint64_t state; } guest;
static void *in_subproc(void *given) {
    guest *g = given;
    block own[400] = {0};
    mi_subproc_add_current_thread(g->where);
    for (int i = 0; i < 400; i++) make(&own[i], some_size(&g->state), &g->state);
    thin(own, 400, 10, &g->state);
    void *heap = mi_heap_new();
    for (int i = 0; i < 200; i++) in_heap(heap, &g->state);
    check(own, 400);
    if (g->state % 2) clear(own, 400); /* else they are left to the destruction */
    return NULL;
}
static void *subprocs(void *number) {
    uint64_t state = seed * 100 + (uintptr_t)number;
    while (!stop) {
        guest guests[2] = {{mi_subproc_new(), next(&state)}};
        guests[1] = (guest){guests[0].where, next(&state)};
        pthread_t thread[2];
        for (int i = 0; i < 2; i++) CHECK(!pthread_create(&thread[i], NULL, in_subproc, &guests[i]));
        for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
        mi_subproc_destroy(guests[0].where);
        rounds++;
    }
    return NULL;
}

/* What is live is seen, once, and nothing else. */
typedef struct { size_t blocks, bytes; uint64_t sum; } seen;
static bool see(const void *heap, const void *area, void *at, size_t size, void *arg) {
    seen *s = arg;
    if (at) s->blocks++, s->sum += *(uint64_t *)at;
    return true;
}
static void *visit(void *number) {
    uint64_t state = seed * 100 + (uintptr_t)number;
    static __thread block own[3000];
    while (!stop) {
        void *heap = mi_heap_new();
        size_t n = 100 + next(&state) % 2900;
        for (size_t i = 0; i < n; i++) own[i] = in_heap(heap, &state);
        for (int look = 0; look < 4; look++) {
            thin(own, n, 2, &state);
            uint64_t sum = 0;
            size_t live = 0;
            for (size_t i = 0; i < n; i++)
                if (own[i].at) live++, sum += own[i].stamp;
            seen s = {0};
            if (!mi_heap_visit_blocks(heap, true, see, &s)) WRONG("a visit was ended");
            if (s.blocks != live || s.sum != sum) WRONG("%zu blocks were visited of %zu", s.blocks, live);
            if (look == 2) mi_heap_collect(heap, true);
        }
        clear(own, n);
        mi_heap_destroy(heap);
        rounds++;
    }
    return NULL;
}

/* Profiles begin and end. Where they cannot be had this is `mixed`. */
static void *sampling(void *number) {
    uint64_t state = seed * 100 + (uintptr_t)number;
    block *own = calloc(OWN, sizeof *own);
    while (!stop) {
        if (mi_prof_start && next(&state) % 2) mi_prof_start(1 + next(&state) % 5000);
        one_round(own, OWN / 4, &state);
        if (mi_prof_stop && next(&state) % 2) mi_prof_stop();
    }
    clear(own, OWN);
    free(own);
    return NULL;
}

/* Zeroed blocks of recycled memory, of 16 bytes to 64 MiB, beside dirty ones of the same sizes. */
static void *zeroed(void *number) {
    uint64_t state = seed * 100 + (uintptr_t)number;
    while (!stop) {
        unsigned bits = 4 + next(&state) % (next(&state) % 32 ? next(&state) % 4 ? 12 : 17 : 22);
        size_t size = (1ul << bits) + next(&state) % (1ul << bits) / 8 * 8, count = 1 + (next(&state) % (4 << 20)) / size;
        if (count > 3000) count = 3000;
        static __thread block own[3000];
        for (size_t i = 0; i < count; i++) {
            own[i] = (block){next(&state) % 2 ? calloc(1, size) : malloc(size), next(&state), size};
            if (!own[i].at) WRONG("no memory");
        }
        for (size_t i = 0; i < count; i++) { /* both kinds: malloc gives anything, so only its writing counts */
            memset(own[i].at, 0xff, size);
            if (next(&state) % 3) free(own[i].at), own[i].at = NULL;
        }
        if (next(&state) % 8 == 0) nap(next(&state) % 220);
        for (size_t i = 0; i < count; i++)
            if (!own[i].at) {
                bool aligned = size >= 4096 && next(&state) % 8 == 0;
                own[i].at = aligned ? realloc(calloc(1, size / 2), size / 2) : calloc(1, size);
                own[i].size = aligned ? size / 2 : size;
                if (!own[i].at) WRONG("no memory");
                all_zero(&own[i]);
                memset(own[i].at, 0xff, own[i].size);
            }
        for (size_t i = 0; i < count; i++) free(own[i].at);
        rounds++;
    }
    return NULL;
}

int main(int count, char **arguments) {
    CHECK(count == 4);
    seed = strtoull(arguments[1], NULL, 0);
    double seconds = atof(arguments[2]);
    const char *name = arguments[3];
    static const struct { const char *name; void *(*work)(void *); int workers; } KINDS[] = {
        {"mixed", mixed, 4}, {"threads", threads, 3}, {"heaps", heaps, 3}, {"subprocs", subprocs, 2}, {"visit", visit, 3},
        {"sampling", sampling, 3}, {"zeroed", zeroed, 3}, {"many", mixed, 16}};
    alarm(seconds + 90);
    pthread_t thread[20];
    int n = 0;
    for (unsigned i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (!strcmp(KINDS[i].name, name))
            for (uintptr_t k = 0; k < KINDS[i].workers; k++) CHECK(!pthread_create(&thread[n++], NULL, KINDS[i].work, (void *)(k + 1)));
    CHECK(n > 0);
    if (strcmp(name, "many")) CHECK(!pthread_create(&thread[n++], NULL, purge_always, NULL));
    nap(seconds * 1000);
    stop = true;
    for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < SHARED; i++)
        if (shared[i]) drop(shared[i]), free(shared[i]);
    printf("%lu rounds, %lu purges, %ld MiB\n", rounds, purges, resident());
    return 0;
}
