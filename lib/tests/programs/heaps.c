/* Heaps that the program makes: every function, then many threads. Each line of output is a broken promise. */
#include <errno.h>
#include <mimalloc-stats.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))

static unsigned next(unsigned *state) { return *state = *state * 1664525 + 1013904223, *state >> 8; }

/* A stamped block: size and owner in front, the stamp in its first, last and every 1024th byte. */
typedef struct { unsigned size; int heap; } head_t;
static unsigned char *stamp(void *block, unsigned size, int heap) {
    unsigned char *p = block;
    if (!p) abort();
    head_t head = {size, heap};
    for (unsigned i = 0; i < size; i += 1024) p[i] = size % 251;
    p[size - 1] = size % 251;
    memcpy(p, &head, sizeof head);
    return p;
}
static int verify(unsigned char *p) {
    head_t head;
    memcpy(&head, p, sizeof head);
    for (unsigned i = 1024; i < head.size; i += 1024)
        if (p[i] != head.size % 251) abort();
    if (head.size > sizeof head && p[head.size - 1] != head.size % 251) abort();
    return head.heap;
}
static unsigned some_size(unsigned *state) { return 16 + next(state) % (next(state) % 40 ? 1500 : next(state) % 20 ? 60000 : 1500000); }

static int zero(const unsigned char *p, size_t from, size_t to) {
    while (from < to && !p[from]) from++;
    return from == to;
}

static void families(mi_heap_t *h) {
    void *p;
#define IN(x) (p = (x), CHECK(p && mi_heap_of(p) == h && mi_heap_contains(h, p) && mi_any_heap_contains(p)), memset(p, 0xa5, mi_usable_size(p)), p)
    for (size_t n = 1; n < 3000000; n = n * 3 + 1) {
        mi_free(IN(mi_heap_malloc(h, n)));
        unsigned char *z = mi_heap_zalloc(h, n);
        CHECK(zero(z, 0, mi_usable_size(z))), mi_free(IN(z));
        z = mi_heap_calloc(h, n, 3);
        CHECK(zero(z, 0, mi_usable_size(z)) && mi_usable_size(z) >= 3 * n), mi_free(IN(z));
        mi_free(IN(mi_heap_mallocn(h, n, 2)));
        p = IN(mi_heap_realloc(h, NULL, n));
        p = IN(mi_heap_realloc(h, p, 2 * n));
        p = IN(mi_heap_reallocn(h, p, n, 3));
        p = IN(mi_heap_reallocf(h, p, n));
        mi_free(p);
        z = mi_heap_rezalloc(h, NULL, n);
        size_t before = mi_usable_size(z);
        memset(z, 1, before);
        z = mi_heap_rezalloc(h, z, 4 * n);
        CHECK(z[0] == 1 && zero(z, before, mi_usable_size(z)) && mi_heap_of(z) == h);
        before = mi_usable_size(z), memset(z, 1, before);
        z = mi_heap_recalloc(h, z, 3, 4 * n);
        CHECK(z[0] == 1 && zero(z, before, mi_usable_size(z)) && mi_heap_of(z) == h);
        mi_free(z);
        for (size_t a = 16; a <= 1 << 17; a *= 8) {
#define AT(x, offset) (p = (x), CHECK(((size_t)p + (offset)) % a == 0), IN(p))
            mi_free(AT(mi_heap_malloc_aligned(h, n, a), 0));
            mi_free(AT(mi_heap_zalloc_aligned(h, n, a), 0));
            mi_free(AT(mi_heap_calloc_aligned(h, n, 2, a), 0));
            p = AT(mi_heap_realloc_aligned(h, NULL, n, a), 0);
            p = AT(mi_heap_realloc_aligned(h, p, n * 2, a), 0);
            p = AT(mi_heap_rezalloc_aligned(h, p, n * 3, a), 0);
            mi_free(AT(mi_heap_recalloc_aligned(h, p, n, 4, a), 0));
        }
        size_t a = 256;
        mi_free(AT(mi_heap_malloc_aligned_at(h, n, a, 24), 24));
        mi_free(AT(mi_heap_zalloc_aligned_at(h, n, a, 24), 24));
        mi_free(AT(mi_heap_calloc_aligned_at(h, n, 2, a, 24), 24));
        p = AT(mi_heap_realloc_aligned_at(h, NULL, n, a, 24), 24);
        p = AT(mi_heap_realloc_aligned_at(h, p, n + n / 5, a, 24), 24);
        p = AT(mi_heap_rezalloc_aligned_at(h, p, n * 3, a, 24), 24);
        mi_free(AT(mi_heap_recalloc_aligned_at(h, p, n, 4, a, 24), 24));
    }
    mi_free(IN(mi_heap_malloc_small(h, 100)));
    unsigned char *z = mi_heap_zalloc_small(h, 100);
    CHECK(zero(z, 0, 100)), mi_free(z);
    char *s = mi_heap_strdup(h, "a string"), *t = mi_heap_strndup(h, "a string", 3);
    CHECK(!strcmp(s, "a string") && !strcmp(t, "a s") && mi_heap_of(s) == h && mi_heap_of(t) == h);
    mi_free(s), mi_free(t);
    CHECK(mi_heap_strdup(h, NULL) == NULL);
    s = mi_heap_realpath(h, "/usr/.", NULL);
    CHECK(!strcmp(s, "/usr") && mi_heap_of(s) == h), mi_free(s);
    CHECK(mi_heap_realpath(h, "/nowhere/at/all", NULL) == NULL && errno == ENOENT);
    mi_free(IN(mi_heap_alloc_new(h, 100)));
    mi_free(IN(mi_heap_alloc_new_n(h, 10, 100)));
    double *d = mi_heap_zalloc_tp(h, double);
    d = mi_heap_recalloc_tp(h, d, double, 100);
    CHECK(d[0] == 0 && d[99] == 0), mi_free(d);
    CHECK(mi_heap_calloc(h, SIZE_MAX / 2, 3) == NULL && errno == ENOMEM);
    CHECK(mi_heap_malloc(h, SIZE_MAX / 2) == NULL && errno == ENOMEM);
    CHECK(mi_heap_malloc_aligned(h, 10, 3) == NULL && errno == EINVAL);
    CHECK(mi_heap_mallocn(h, SIZE_MAX, 2) == NULL && mi_heap_reallocn(h, NULL, SIZE_MAX, 2) == NULL);
}

static void moves_between_heaps(void) {
    mi_heap_t *a = mi_heap_new(), *b = mi_heap_new();
    CHECK(a && b && a != b && a != mi_heap_main());
    unsigned sizes[] = {100, 5000, 40000, 1000000};
    for (int i = 0; i < 4; i++) {
        unsigned n = sizes[i];
        unsigned char *p = stamp(mi_heap_malloc(a, n), n, 0);
        p = mi_heap_realloc(b, p, n); /* it fits, and moves all the same */
        CHECK(mi_heap_of(p) == b), verify(p);
        p = mi_realloc(p, n);
        CHECK(mi_heap_of(p) == mi_heap_main()), verify(p);
        p = mi_heap_realloc(a, p, n + 1);
        CHECK(mi_heap_of(p) == a), verify(p);
        CHECK(mi_expand(p, n) == p);
        unsigned char *q = mi_heap_realloc(a, p, n);
        CHECK(q == p), p = q;
        mi_heap_t *nobody = NULL;
        p = mi_heap_realloc(nobody, p, n);
        CHECK(mi_heap_of(p) == mi_heap_main());
        CHECK(mi_heap_of(p + n - 1) == mi_heap_main() && !mi_heap_contains(a, p) && mi_heap_contains(NULL, p));
        mi_free(p);
    }
    int local;
    CHECK(mi_heap_of(&local) == NULL && !mi_any_heap_contains(&local) && !mi_any_heap_contains(NULL));
    CHECK(!mi_heap_contains(a, &local) && mi_heap_of((void *)-1) == NULL);
    mi_heap_set_numa_affinity(a, 0);
    mi_heap_collect(a, false), mi_heap_collect(a, true), mi_heap_collect(NULL, true);
    mi_heap_destroy(a), mi_heap_destroy(b);
    mi_heap_delete(mi_heap_main()), mi_heap_destroy(mi_heap_main()), mi_heap_delete(NULL), mi_heap_destroy(NULL);
}

static size_t resident(void) {
    size_t rss;
    mi_process_info(NULL, NULL, NULL, &rss, NULL, NULL, NULL, NULL);
    return rss;
}

/* Destroyed heaps leave nothing behind; the blocks of others are as they were. */
static void bursts(void) {
    enum { BURST = 100, BLOCKS = 30 };
    unsigned state = 3;
    unsigned char *kept[1000];
    for (int i = 0; i < 1000; i++) {
        unsigned n = some_size(&state) % 5000 + 16;
        kept[i] = stamp(mi_malloc(n), n, -1);
    }
    size_t first = 0;
    for (int round = 0; round < 30; round++) {
        mi_heap_t *heaps[BURST];
        for (int i = 0; i < BURST; i++) heaps[i] = mi_heap_new();
        for (int k = 0; k < BLOCKS; k++)
            for (int i = 0; i < BURST; i++) {
                unsigned n = some_size(&state) % 60000 + 16;
                unsigned char *p = stamp(mi_heap_malloc(heaps[i], n), n, i);
                if (k % 3 == 0) CHECK(verify(p) == i), mi_free(p);
            }
        for (int i = 0; i < BURST; i++) mi_heap_destroy(heaps[(i * 7) % BURST]);
        if (round == 2) mi_collect(true), first = resident();
    }
    mi_collect(true);
    CHECK(resident() < first + (20 << 20));
    for (int i = 0; i < 1000; i++) verify(kept[i]), mi_free(kept[i]);
}

/* Threads allocate from shared heaps and exchange blocks through a table, also when their heaps are gone. */
enum { HEAPS = 6, PLACES = 3000, THREADS = 4 };
static mi_heap_t *shared[HEAPS];
static _Atomic(unsigned char *) places[PLACES];
static void *churn(void *arg) {
    unsigned state = (unsigned)(size_t)arg;
    for (int i = 0; i < 60000; i++) {
        int heap = next(&state) % (HEAPS + 1) - 1; /* -1: the main one */
        unsigned n = some_size(&state);
        void *block;
        switch (next(&state) % 4) {
        case 0: block = heap < 0 ? mi_zalloc(n) : mi_heap_zalloc(shared[heap], n); break;
        case 1: block = heap < 0 ? mi_malloc_aligned(n, 64) : mi_heap_malloc_aligned(shared[heap], n, 64); break;
        default: block = heap < 0 ? mi_malloc(n) : mi_heap_malloc(shared[heap], n);
        }
        unsigned char *p = stamp(block, n, heap);
        p = atomic_exchange(&places[next(&state) % PLACES], p);
        if (p) {
            int of = verify(p);
            if (mi_heap_of(p) != (of < 0 ? mi_heap_main() : shared[of])) abort();
            mi_free(p);
        }
        if (next(&state) % 20000 == 0) mi_heap_collect(shared[next(&state) % HEAPS], true);
        if (next(&state) % 20000 == 0) mi_collect(true);
    }
    return NULL;
}
/* Frees until the table is empty, while its heaps are deleted. */
static atomic_int go;
static void *drain(void *arg) {
    size_t part = (size_t)arg;
    while (!go);
    for (size_t i = part; i < PLACES; i += THREADS) {
        unsigned char *p = atomic_exchange(&places[i], NULL);
        if (p) verify(p), mi_free(p);
        if (i % 3 == 0) mi_free(mi_malloc(i));
    }
    return NULL;
}
static void many_threads(int rounds) {
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < HEAPS; i++) shared[i] = mi_heap_new();
        pthread_t threads[THREADS];
        for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, churn, (void *)(i + 1 + 10 * round));
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        /* destroy some: first their blocks must be out of the table */
        for (int i = 0; i < PLACES; i++)
            if (places[i] && verify(places[i]) < HEAPS / 2 && verify(places[i]) >= 0) places[i] = NULL;
        for (int i = 0; i < HEAPS / 2; i++) mi_heap_destroy(shared[i]);
        go = 0;
        for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, drain, (void *)i);
        go = 1;
        for (int i = HEAPS / 2; i < HEAPS; i++) mi_heap_delete(shared[i]);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    }
}

/* The very moment of the deletion: threads with and without a part of the heap free its blocks. What they free must not turn up
 * in the heaps that are made next. */
enum { PAIRS = 2, EACH = 600, ROUNDS = 250 };
static pthread_barrier_t barrier;
static mi_heap_t *victim;
static atomic_int freed;
static unsigned char *handed[PAIRS][2 * EACH];
static void check_next(void) {
    mi_heap_t *next_heap = mi_heap_new();
    unsigned char *p[EACH];
    for (int i = 0; i < EACH; i++) {
        p[i] = stamp(mi_heap_malloc(next_heap, 16 + i % 3 * 500), 16 + i % 3 * 500, 4);
        if (mi_heap_of(p[i]) != next_heap) abort();
    }
    for (int i = 0; i < EACH; i++) verify(p[i]);
    for (int i = 0; i < EACH; i += 2) mi_free(p[i]);
    mi_heap_destroy(next_heap);
}
static void *meets_deletion(void *arg) {
    int me = (int)(size_t)arg, pair = me / 2, half = me % 2;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < 2 * EACH && !half; i++) handed[pair][i] = stamp(mi_heap_malloc(victim, 16 + i % 3 * 500), 16 + i % 3 * 500, 3);
        pthread_barrier_wait(&barrier);
        for (int i = half; i < 2 * EACH; i += 2) verify(handed[pair][i]), mi_free(handed[pair][i]), freed++;
        pthread_barrier_wait(&barrier);
        check_next();
    }
    return NULL;
}
static void deletion_meets_frees(void) {
    pthread_t threads[2 * PAIRS];
    pthread_barrier_init(&barrier, NULL, 2 * PAIRS + 1);
    for (size_t i = 0; i < 2 * PAIRS; i++) pthread_create(&threads[i], NULL, meets_deletion, (void *)i);
    unsigned state = 1;
    for (int round = 0; round < ROUNDS; round++) {
        victim = mi_heap_new(), freed = 0;
        pthread_barrier_wait(&barrier), pthread_barrier_wait(&barrier);
        for (int some = next(&state) % (PAIRS * 2 * EACH * 9 / 10); freed < some;);
        mi_heap_delete(victim);
        pthread_barrier_wait(&barrier);
        check_next();
    }
    for (int i = 0; i < 2 * PAIRS; i++) pthread_join(threads[i], NULL);
}

/* What was in a deleted heap can be used, resized and freed, and its memory serves the main heap again. */
static void deleted(void) {
    enum { N = 4000 };
    static unsigned char *blocks[N];
    unsigned state = 9;
    mi_heap_t *h = mi_heap_new();
    for (int i = 0; i < N; i++) {
        unsigned n = some_size(&state);
        blocks[i] = stamp(mi_heap_malloc(h, n), n, 1);
        if (i % 2) mi_free(blocks[i]), blocks[i] = NULL;
    }
    mi_heap_delete(h);
    for (int i = 0; i < N; i += 2) {
        CHECK(mi_heap_of(blocks[i]) == mi_heap_main());
        verify(blocks[i]);
        unsigned char *p = mi_malloc(mi_usable_size(blocks[i]));
        stamp(p, mi_usable_size(p), 2);
        if (i % 4) mi_free(blocks[i]);
        else {
            blocks[i] = mi_realloc(blocks[i], mi_usable_size(blocks[i]) * 2);
            verify(blocks[i]), mi_free(blocks[i]);
        }
        verify(p), mi_free(p);
    }
}

/* A thread's cached blocks are used by the next thread; a heap outlives its threads. */
static void *fill(void *arg) {
    mi_heap_t *h = arg;
    for (int i = 0; i < 500; i++) {
        unsigned char *p = stamp(mi_heap_malloc(h, 300), 300, 5);
        if (i % 10) mi_free(p);
    }
    return NULL;
}
static void threads_come_and_go(void) {
    mi_heap_t *h = mi_heap_new();
    size_t before = 0;
    for (int i = 0; i < 300; i++) {
        pthread_t t;
        pthread_create(&t, NULL, fill, h);
        pthread_join(t, NULL);
        if (i == 10) before = resident();
    }
    CHECK(resident() < before + (12 << 20)); /* 300 * 50 * 320 bytes are 4.8 MB */
    mi_heap_destroy(h);
}

static pthread_key_t late;
static void late_allocation(void *arg) {
    for (int i = 0; i < 100; i++) mi_free(stamp(mi_heap_malloc(arg, 100), 100, 6));
    pthread_setspecific(late, arg); /* again: after the allocator's own destructor, at the latest */
    mi_free(mi_malloc(100));
}
static void *ends_late(void *arg) {
    pthread_setspecific(late, arg);
    return fill(arg);
}
static void late_destructors(void) {
    mi_heap_t *h = mi_heap_new();
    pthread_key_create(&late, late_allocation);
    for (int i = 0; i < 20; i++) {
        pthread_t t;
        pthread_create(&t, NULL, ends_late, h);
        pthread_join(t, NULL);
    }
    mi_heap_destroy(h);
}

/* Children use, delete and destroy heaps that threads were using at the moment of the fork. */
static atomic_int stop;
static void *busy(void *arg) {
    unsigned state = (unsigned)(size_t)arg;
    while (!stop) {
        mi_heap_t *own = mi_heap_new();
        unsigned char *blocks[40];
        for (int i = 0; i < 40; i++) {
            int heap = next(&state) % HEAPS;
            unsigned n = some_size(&state) % 20000 + 16;
            unsigned char *p = atomic_exchange(&places[next(&state) % PLACES], stamp(mi_heap_malloc(shared[heap], n), n, heap));
            if (p) verify(p), mi_free(p);
            blocks[i] = stamp(mi_heap_malloc(own, n), n, 7);
        }
        if (next(&state) % 2) {
            mi_heap_destroy(own);
            continue;
        }
        mi_heap_delete(own);
        for (int i = 0; i < 40; i++) verify(blocks[i]), mi_free(blocks[i]);
    }
    return NULL;
}
static void forks(void) {
    for (int i = 0; i < HEAPS; i++) shared[i] = mi_heap_new();
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, busy, (void *)(i + 1));
    mi_heap_t *mine = mi_heap_new();
    unsigned char *kept = stamp(mi_heap_malloc(mine, 3000), 3000, 8);
    for (int i = 0; i < 25; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            unsigned state = i;
            if (verify(kept) != 8) abort();
            mi_free(kept);
            for (int k = 0; k < 2000; k++) {
                unsigned n = some_size(&state);
                unsigned char *p = atomic_exchange(&places[next(&state) % PLACES], stamp(mi_heap_malloc(shared[k % HEAPS], n), n, 9));
                if (p) verify(p), mi_free(p);
            }
            for (int k = 0; k < PLACES; k += 2) {
                unsigned char *p = atomic_exchange(&places[k], NULL);
                if (p) verify(p), mi_free(p);
            }
            for (int k = 0; k < HEAPS; k += 2) mi_heap_destroy(shared[k]), mi_heap_delete(shared[k + 1]);
            mi_heap_t *h = mi_heap_new();
            for (int k = 0; k < 300; k++) stamp(mi_heap_malloc(h, 500), 500, 1);
            mi_heap_destroy(h), mi_heap_destroy(mine);
            _exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        CHECK(status == 0);
    }
    stop = 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < PLACES; i++) places[i] = NULL;
    for (int i = 0; i < HEAPS; i++) mi_heap_destroy(shared[i]);
    mi_heap_destroy(mine);
}

int main(void) {
    forks();
    mi_heap_t *h = mi_heap_new();
    families(h), families(mi_heap_main());
    mi_heap_destroy(h);
    moves_between_heaps(), bursts(), deleted(), threads_come_and_go(), late_destructors(), many_threads(4), deletion_meets_frees();
    return broken;
}
