/* The exact profiler's counts are those of a shadow count. Each line of output is a broken promise. */
#include <errno.h>
#include <mimalloc/dhat.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))

static mi_dhat_stats_t now(void) {
    mi_dhat_stats_t_decl(stats);
    CHECK(mi_dhat_stats_get(&stats));
    return stats;
}

/* What should be counted. */
static _Atomic uint64_t total_bytes, total_blocks, live_bytes, live_blocks;

typedef struct { char *at; size_t size; } block;

static void note(size_t size) { total_bytes += size, total_blocks++, live_bytes += size, live_blocks++; }

static block make(unsigned how, size_t size) {
    void *p = NULL;
    switch (how % 6) {
        case 0: p = calloc(size / 8 + 1, 8), size = (size / 8 + 1) * 8; break;
        case 1: p = aligned_alloc(64, size); break;
        case 2: CHECK(!posix_memalign(&p, 4096, size)); break;
        case 3: p = mi_malloc(size); break;
        case 4: p = mi_zalloc_aligned(size, 128); break;
        default: p = malloc(size);
    }
    CHECK(p);
    memset(p, 1, size < 100 ? size : 100);
    note(size);
    return (block){ p, size };
}

static block resized(block b, size_t size) {
    b.at = realloc(b.at, size);
    CHECK(b.at);
    total_bytes += size, total_blocks++, live_bytes += size - b.size;
    b.size = size;
    return b;
}

static void drop(block b) {
    free(b.at);
    live_bytes -= b.size, live_blocks -= b.at != NULL;
}

/* Where threads leave blocks for each other. */
enum { ROOM = 64, THREADS = 4, ROUNDS = 20000 };
static struct { _Atomic int taken; block b; } shelf[ROOM];

static pthread_barrier_t barrier;

static void *work(void *arg) {
    uint64_t random = (uintptr_t)arg * 7919 + 1;
    block mine[32] = { 0 };
    pthread_barrier_wait(&barrier); /* everything that libc allocates for threads is there */
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned at = random >> 59, what = (random >> 40) % 10;
        size_t size = 1 + (random >> 33) % ((random >> 30) % 50 ? 2000 : 3000000);
        if (what < 5) {
            drop(mine[at]), mine[at] = make(random >> 20, size);
        } else if (what < 8) {
            mine[at] = mine[at].at ? resized(mine[at], size) : make(5, size);
        } else {
            int place = (random >> 10) % ROOM;
            if (!atomic_exchange(&shelf[place].taken, 1)) {
                block other = shelf[place].b;
                shelf[place].b = mine[at], mine[at] = other;
                shelf[place].taken = 0;
            }
        }
    }
    for (int i = 0; i < 32; i++) drop(mine[i]);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void threads(void) {
    CHECK(mi_dhat_start());
    pthread_t workers[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&workers[i], NULL, work, (void *)i);
    pthread_barrier_wait(&barrier);
    mi_dhat_stats_t before = now();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    mi_dhat_stats_t after = now();
    CHECK(after.enabled && !after.incomplete && !after.dropped);
    CHECK(after.total_bytes - before.total_bytes == total_bytes);
    CHECK(after.total_blocks - before.total_blocks == total_blocks);
    CHECK(after.live_bytes - before.live_bytes == live_bytes);
    CHECK(after.live_blocks - before.live_blocks == live_blocks);
    CHECK(after.peak_bytes >= after.live_bytes && after.internal_bytes > 0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) pthread_join(workers[i], NULL);
    for (int i = 0; i < ROOM; i++) drop(shelf[i].b);
    CHECK(live_blocks == 0 && live_bytes == 0);
    mi_dhat_stop();
}

/* The whole of one thread is exact to the byte. */
static void sequence(void) {
    char *before = malloc(5000), *grown = malloc(700);
    CHECK(mi_dhat_start() && !mi_dhat_start() && mi_dhat_is_enabled());
    CHECK(now().total_blocks == 0);
    free(before); /* nobody has seen it come */
    CHECK(now().live_bytes == 0 && now().live_blocks == 0);
    grown = realloc(grown, 900); /* a new block, for all that is known */
    CHECK(now().live_bytes == 900 && now().total_blocks == 1);
    void *a[100];
    for (int i = 0; i < 100; i++) a[i] = malloc(1000);
    for (int i = 0; i < 60; i++) free(a[i]);
    mi_dhat_stats_t s = now();
    CHECK(s.total_bytes == 100900 && s.total_blocks == 101 && s.live_bytes == 40900 && s.live_blocks == 41);
    CHECK(s.peak_bytes == 100900 && s.peak_blocks == 101);
    a[99] = realloc(a[99], 900000); /* moves */
    s = now();
    CHECK(s.peak_bytes == 939900 && s.peak_blocks == 41 && s.total_bytes == 1000900 && s.total_blocks == 102);
    a[99] = realloc(a[99], 899990); /* does not */
    CHECK(now().live_bytes == 939890 && now().total_bytes == 1900890 && now().total_blocks == 103);
    for (int i = 60; i < 100; i++) free(a[i]);
    free(grown);
    s = now();
    CHECK(s.live_bytes == 0 && s.live_blocks == 0 && s.peak_bytes == 939900);

    mi_heap_t *heap = mi_heap_new();
    s = now();
    for (int i = 0; i < 1000; i++) mi_heap_malloc(heap, 24);
    void *large = mi_heap_malloc(heap, 3 << 20);
    CHECK(now().live_bytes == s.live_bytes + 24000 + (3 << 20) && now().live_blocks == s.live_blocks + 1001);
    mi_free(large);
    mi_heap_destroy(heap);
    CHECK(now().live_bytes == s.live_bytes && now().live_blocks == s.live_blocks);

    char *kept = malloc(123);
    mi_dhat_stop();
    s = now();
    CHECK(!s.enabled && !mi_dhat_is_enabled() && s.live_bytes == 123);
    free(malloc(50));
    CHECK(now().total_blocks == s.total_blocks);
    CHECK(mi_dhat_start());
    CHECK(now().total_blocks == 0);
    free(kept); /* the other recording's */
    CHECK(now().live_bytes == 0 && now().live_blocks == 0);
    mi_dhat_stop();
}

static int depth_of(int depth, uint64_t path);
__attribute__((noinline)) static int left(int depth, uint64_t path) { return depth_of(depth, path) + 1; }
__attribute__((noinline)) static int right(int depth, uint64_t path) { return depth_of(depth, path) + 2; }
static int depth_of(int depth, uint64_t path) {
    if (!depth) return free(malloc(10)), 0;
    return path & 1 ? left(depth - 1, path >> 1) : right(depth - 1, path >> 1);
}

/* More stacks than there is memory for: they are counted all the same. */
static void budget(void) {
    mi_dhat_stats_t s = now();
    CHECK(s.enabled && !s.incomplete);
    for (uint64_t path = 0; path < 2048; path++) depth_of(11, path);
    mi_dhat_stats_t t = now();
    CHECK(t.total_blocks - s.total_blocks == 2048 && t.total_bytes - s.total_bytes == 20480);
    CHECK(t.incomplete && t.dropped > 1000 && t.dropped < 2048 && t.live_bytes == s.live_bytes);
}

static void files(const char *path) {
    mi_dhat_stats_t none = { .size = sizeof none - 1, .version = MI_DHAT_STATS_VERSION };
    CHECK(!mi_dhat_stats_get(&none) && !mi_dhat_stats_get(NULL));
    none.size = sizeof none, none.version = 2;
    CHECK(!mi_dhat_stats_get(&none));
    CHECK(!mi_dhat_dump(NULL) && !mi_dhat_dump("/nowhere/at/all"));
    CHECK(mi_dhat_dump(path) && !access(path, R_OK));
}

/* The child goes on by itself, and leaves its own file. */
static void forked(void) {
    static void *kept[100];
    for (int i = 0; i < 100; i++) kept[i] = malloc(100);
    uint64_t before = now().live_blocks;
    pid_t child = fork();
    if (!child) {
        CHECK(mi_dhat_is_enabled() && now().live_blocks == before);
        for (int i = 0; i < 50; i++) free(kept[i]);
        for (int i = 0; i < 10; i++) kept[i] = malloc(7777);
        CHECK(now().live_blocks == before - 40);
        exit(broken);
    }
    int status;
    waitpid(child, &status, 0);
    CHECK(status == 0 && now().live_blocks == before);
    fprintf(stderr, "%d\n", child);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0); /* no buffer in the counts */
    if (argc > 1 && !strcmp(argv[1], "budget")) budget();
    else if (argc > 1 && !strcmp(argv[1], "fork")) forked();
    else if (argc > 1) sequence(), files(argv[1]), threads();
    return broken;
}
