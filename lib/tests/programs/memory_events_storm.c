/* Threads that allocate, resize, free each other's blocks, make and destroy heaps and end, while tracking is switched on and off, callbacks
 * change, memory is given back and the process forks. Of each call that begins and ends in one state it is known whether it must be told:
 * exactly once, or not at all. And at the end the totals are what the threads have left. Each line of output is a broken promise. */
#include <mimalloc/memory-events.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))

/* What the switcher has made of it: even while it is at it, and then whether tracking is on (bit 1), with these callbacks. */
static unsigned long state = 1;
static unsigned long read_state(void) { return __atomic_load_n(&state, __ATOMIC_SEQ_CST); }

/* Of a size that only signal handlers use. */
enum { HANDLERS = 3000 };

static __thread int told[MI_MEMORY_CHANGE_COUNT];
static void hear(const mi_memory_change_t *change, void *arg) {
    if (change->kind == MI_MEMORY_ALLOCATE && change->request_size == HANDLERS) return;
    if (change->kind == MI_MEMORY_FREE && change->delta_bytes == -(int64_t)mi_good_size(HANDLERS)) return;
    told[change->kind]++;
    if (change->total_bytes > (1ull << 40)) CHECK(!"a total below zero");
    free(malloc(10)); /* not told */
}

static void *volatile shared[256];
static int threads, rounds;
static volatile int done, switched_enough;
static int64_t live_bytes, live_blocks;

static unsigned rnd(unsigned long long *seed) {
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
    return *seed >> 33;
}

/* A size whose blocks are not those of signal handlers. */
static size_t ours(size_t size) { return mi_good_size(size) == mi_good_size(HANDLERS) ? size + 600 : size; }

static size_t size_of(unsigned long long *seed) {
    unsigned r = rnd(seed);
    if (r % 200 == 0) return 600000 + r % 700000;
    if (r % 20 == 0) return ours(r % 70000);
    return r % 1100 == 1000 ? 0 : r % 1100;
}

struct worker {
    unsigned long long seed;
    int64_t bytes, blocks;
    long checked, unknown;
};

/* One call, of which so many events of one kind are due if it is told. */
#define CALL(kind, times, ...)                                                                                         \
    do {                                                                                                               \
        memset(told, 0, sizeof told);                                                                                  \
        unsigned long before_ = read_state();                                                                          \
        __VA_ARGS__;                                                                                                   \
        unsigned long after_ = read_state();                                                                           \
        int all_ = told[0] + told[1] + told[2];                                                                        \
        int due_ = before_ & 2 ? (times) : 0;                                                                          \
        if (before_ == after_ && before_ & 1) {                                                                        \
            w->checked++;                                                                                              \
            if (all_ != due_ || told[kind] != due_)                                                                    \
                broken = 1, printf("line %d: %d %d %d in state %lx\n", __LINE__, told[0], told[1], told[2], before_);  \
        } else {                                                                                                       \
            w->unknown++;                                                                                              \
            /* A realloc during which tracking is switched on may be told as what it is made of. */                      \
            int most_ = kind == MI_MEMORY_RESIZE ? 2 : (times);                                                        \
            if (all_ > most_ || (kind != MI_MEMORY_RESIZE && all_ != told[kind]))                                      \
                broken = 1, printf("line %d: %d %d %d\n", __LINE__, told[0], told[1], told[2]);                        \
        }                                                                                                              \
    } while (0)

static void put(struct worker *w, void *p) {
    void *old = __atomic_exchange_n(&shared[rnd(&w->seed) % 256], p, __ATOMIC_ACQ_REL);
    if (old) {
        w->bytes -= mi_usable_size(old), w->blocks--;
        CALL(MI_MEMORY_FREE, 1, free(old));
    }
}

static void got(struct worker *w, void *p) {
    if (p == NULL) abort();
    w->bytes += mi_usable_size(p), w->blocks++;
}

static void a_heap(struct worker *w) {
    mi_heap_t *heap = mi_heap_new();
    int n = rnd(&w->seed) % 200, left = 0;
    for (int i = 0; i < n; i++) {
        size_t size = ours(size_of(&w->seed) / 8);
        void *p;
        CALL(MI_MEMORY_ALLOCATE, 1, p = mi_heap_malloc(heap, size));
        if (rnd(&w->seed) % 3 == 0) {
            CALL(MI_MEMORY_FREE, 1, mi_free(p));
        } else {
            left++;
        }
    }
    mi_heap_t *other = mi_heap_new();
    void *kept;
    CALL(MI_MEMORY_ALLOCATE, 1, kept = mi_heap_malloc(other, 100));
    CALL(MI_MEMORY_FREE, 0, mi_heap_delete(other));
    CALL(MI_MEMORY_FREE, left, mi_heap_destroy(heap));
    CALL(MI_MEMORY_FREE, 1, mi_free(kept));
}

static void step(struct worker *w) {
    unsigned r = rnd(&w->seed);
    size_t size = size_of(&w->seed);
    void *p = NULL;
    switch (r % 16) {
    case 0: CALL(MI_MEMORY_ALLOCATE, 1, p = calloc(1, size)); break;
    case 1: CALL(MI_MEMORY_ALLOCATE, 1, p = mi_malloc_aligned(size, 16 << r / 16 % 12)); break;
    case 2: CALL(MI_MEMORY_ALLOCATE, 1, p = mi_malloc_aligned_at(size, 64, 8 * (r / 16 % 8))); break;
    case 3: case 4: case 5: case 6:
        p = __atomic_exchange_n(&shared[r / 16 % 256], NULL, __ATOMIC_ACQ_REL);
        if (p) {
            size_t usable = mi_usable_size(p);
            if (r & 32768) size = ours(usable - usable / 3 + 1);
            CALL(MI_MEMORY_RESIZE, 1, p = r & 65536 ? mi_rezalloc(p, size) : mi_realloc(p, size));
            w->bytes += (int64_t)mi_usable_size(p) - (int64_t)usable;
            put(w, p);
            return;
        }
        CALL(MI_MEMORY_ALLOCATE, 1, p = realloc(NULL, size));
        break;
    case 7: case 8: case 9:
        p = __atomic_exchange_n(&shared[r / 16 % 256], NULL, __ATOMIC_ACQ_REL);
        if (p) {
            w->bytes -= mi_usable_size(p), w->blocks--;
            CALL(MI_MEMORY_FREE, 1, free(p));
        }
        return;
    default: CALL(MI_MEMORY_ALLOCATE, 1, p = malloc(size));
    }
    got(w, p);
    put(w, p);
}

static void *work(void *arg) {
    struct worker *w = arg;
    for (int i = 0; i < rounds || !switched_enough; i++) { /* however fast the machine is */
        step(w);
        if (i % 300 == 17) a_heap(w);
    }
    __atomic_fetch_add(&live_bytes, w->bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&live_blocks, w->blocks, __ATOMIC_RELAXED);
    return NULL;
}

/* Threads one after the other, in as many rows as there are to be at a time. */
static long checked, unknown;
static void *row(void *arg) {
    for (int generation = 0; generation < 4; generation++) {
        struct worker w = {(size_t)arg * 4 + generation};
        pthread_t thread;
        pthread_create(&thread, NULL, work, &w);
        pthread_join(thread, NULL);
        __atomic_fetch_add(&checked, w.checked, __ATOMIC_RELAXED);
        __atomic_fetch_add(&unknown, w.unknown, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void listen_to(mi_memory_change_fun *f) {
    mi_memory_callbacks_t callbacks = {{f, f, f}, {NULL}};
    CHECK(mi_memory_set_callbacks(&callbacks));
}

static mi_memory_snapshot_t totals(void) {
    mi_memory_snapshot_t_decl(now);
    CHECK(mi_memory_snapshot(&now));
    return now;
}

static void a_moment(long us) { nanosleep(&(struct timespec){0, us * 1000}, NULL); }

/* In a child: each call is told, and totals fit. */
static void child(void) {
    broken = 0;
    alarm(60);
    struct worker w_ = {77}, *w = &w_;
    CHECK(mi_memory_tracking_set_enabled(true));
    listen_to(hear);
    state = 3;
    mi_memory_snapshot_t before = totals();
    for (int i = 0; i < 300; i++) step(w);
    a_heap(w);
    mi_memory_snapshot_t after = totals();
    CHECK(after.live_bytes - before.live_bytes == (uint64_t)w->bytes && after.live_count - before.live_count == (uint64_t)w->blocks);
    CHECK(after.live_bytes < 1ull << 40 && w->unknown == 0);
    fflush(stdout);
    _exit(broken);
}

static void a_fork(void) {
    pid_t pid = fork();
    if (pid == 0) child();
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    if (status != 0) broken = 1, printf("a child has ended with %x\n", status);
}

/* Switch for as long as the threads run. */
static void *switcher(void *arg) {
    unsigned long long seed = 5;
    int on = 0, forking = *(char *)arg == 'f';
    long switches = 0;
    while (!done) {
        unsigned r = rnd(&seed);
        __atomic_fetch_add(&state, 1, __ATOMIC_SEQ_CST); /* even */
        if (r % 5 == 0) {
            CHECK(mi_memory_set_callbacks(NULL));
            listen_to(hear);
        } else {
            on = !on;
            CHECK(mi_memory_tracking_set_enabled(on));
        }
        switched_enough = ++switches > 10;
        unsigned long next = (read_state() / 4 + 1) * 4 + 1 + 2 * on;
        __atomic_store_n(&state, next, __ATOMIC_SEQ_CST);
        a_moment(r % 3 == 0 ? r % 2000 : r % 50);
        if (forking && r % 40 == 0) a_fork();
        if (r % 7 == 0) {
            mi_memory_snapshot_t now = totals();
            CHECK(now.live_bytes < 1ull << 40 && now.live_count < 1ull << 40);
        }
    }
    __atomic_fetch_add(&state, 1, __ATOMIC_SEQ_CST);
    CHECK(switches > 10);
    return NULL;
}

static bool count(void *p, size_t usable, void *arg) {
    *(size_t *)arg += usable;
    return true;
}

/* Take back what threads have cached, give pages back, and look at everything. */
static void *purger(void *arg) {
    while (!done) {
        mi_purge_all(true);
        size_t bytes = 0;
        CHECK(mi_memory_visit_live_allocations(count, &bytes));
        a_moment(500);
    }
    return NULL;
}

static void handler(int signal) {
    int error = errno, kept[MI_MEMORY_CHANGE_COUNT];
    memcpy(kept, told, sizeof kept);
    void *p = malloc(HANDLERS), *q = malloc(HANDLERS);
    if (p) memset(p, 1, HANDLERS);
    free(q), free(p);
    memcpy(told, kept, sizeof kept);
    errno = error;
}

int main(int argc, char **argv) {
    char *how = argv[1];
    threads = atoi(argv[2]), rounds = atoi(argv[3]);
    setvbuf(stdout, NULL, _IONBF, 0);
    listen_to(hear);
    if (*how == 's') {
        struct sigaction action = {0};
        action.sa_handler = handler, action.sa_flags = SA_RESTART;
        sigaction(SIGPROF, &action, NULL);
        timer_t timer;
        timer_create(CLOCK_PROCESS_CPUTIME_ID, &(struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF}, &timer);
        timer_settime(timer, 0, &(struct itimerspec){{0, 300000}, {0, 300000}}, NULL);
    }
    mi_memory_snapshot_t before = totals();
    pthread_t rows[64], others[2];
    for (int i = 0; i < threads; i++) pthread_create(&rows[i], NULL, row, (void *)(size_t)(i + 1));
    pthread_create(&others[0], NULL, switcher, how);
    pthread_create(&others[1], NULL, purger, NULL);
    for (int i = 0; i < threads; i++) pthread_join(rows[i], NULL);
    done = 1;
    pthread_join(others[0], NULL), pthread_join(others[1], NULL);
    signal(SIGPROF, SIG_IGN);

    mi_memory_snapshot_t after = totals();
    int64_t bytes = after.live_bytes - before.live_bytes, blocks = after.live_count - before.live_count;
    /* The C library keeps stacks and tables of threads that have ended. */
    int64_t more_bytes = bytes - live_bytes, more_blocks = blocks - live_blocks;
    if (more_blocks < 0 || more_blocks > 3 * threads + 16 || more_bytes < 0 || more_bytes > 1024 * (threads + 16))
        broken = 1, printf("%ld bytes in %ld blocks too many\n", (long)more_bytes, (long)more_blocks);
    CHECK(checked > unknown / 100);
    if (getenv("TELL")) fprintf(stderr, "%ld calls were looked at, %ld were not; %ld and %ld more\n", checked, unknown, (long)more_bytes, (long)more_blocks);

    /* And nothing that is freed is unknown. */
    CHECK(mi_memory_tracking_set_enabled(true));
    state = 3;
    struct worker w_ = {1}, *w = &w_;
    before = totals();
    for (int i = 0; i < 256; i++) {
        if (shared[i] == NULL) continue;
        live_bytes -= mi_usable_size(shared[i]), live_blocks--;
        CALL(MI_MEMORY_FREE, 1, free(shared[i]));
    }
    CHECK(live_bytes == 0 && live_blocks == 0);
    return broken;
}
