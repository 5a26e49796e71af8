/* Everything at once, for some seconds: threads that end and begin again, stamped blocks of 1 byte to 2 MiB that go from thread to
 * thread through a shared table, realloc and aligned and zeroed blocks, a thread that takes back everybody's cached blocks all the
 * time (where the allocator has `mi_collect`), and 20 forks a second whose children check and free what they have inherited.
 *
 * stress [SECONDS [SEED]]: prints the seed, and `fine` at the end. Whatever is wrong ends it with a message on standard error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 4, OWN = 128, SHARED = 512 };

/* A block and what is in it. */
typedef struct {
    unsigned char *at;
    size_t size, alignment;
    unsigned char stamp;
} note;

static _Atomic(note *) shared[SHARED];
static atomic_bool stopping;
static atomic_ulong operations, collections, forks;
static uint64_t seed;

static void wrong(const char *what, const note *n) {
    fprintf(stderr, "stress: seed %llu: %s: %zu bytes at %p\n", (unsigned long long)seed, what, n->size, (void *)n->at);
    _exit(1);
}

static uint64_t next(uint64_t *state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
    return x ^ x >> 32;
}

/* Half of the blocks have one of few sizes, so that their stacks are popped and stolen from all the time. */
static size_t some_size(uint64_t *state) {
    uint64_t draw = next(state);
    if (draw & 1) return 32 + (draw >> 1) % 4 * 16;
    unsigned bits = draw % 64 == 0 ? 21 : draw % 8 == 0 ? 15 : 11;
    bits = (unsigned)(draw >> 8) % bits + 1;
    return 1 + (draw >> 16) % (1ul << bits);
}

/* All bytes of small blocks; of large ones both ends and a byte in each page. */
static size_t step(size_t size, size_t at) { return size <= 1024 || at < 64 || at + 64 >= size ? 1 : size - at - 64 < 4096 ? size - at - 64 : 4096; }

static void fill(note *n) {
    for (size_t at = 0; at < n->size; at += step(n->size, at)) n->at[at] = n->stamp;
}

/* Whether the bytes that were filled as those of a block of `size` are as they were, as far as `end`. */
static bool holds(const note *n, size_t size, size_t end, unsigned char stamp) {
    for (size_t at = 0; at < size && at < end; at += step(size, at))
        if (n->at[at] != stamp) return false;
    return true;
}

static note *make(uint64_t *state) {
    note *n = malloc(sizeof *n);
    *n = (note){.size = some_size(state), .alignment = 1, .stamp = (unsigned char)next(state) | 1};
    switch (next(state) % 8) {
    case 0:
        n->at = calloc(1, n->size);
        if (n->at && !holds(n, n->size, n->size, 0)) wrong("a zeroed block is not zero", n);
        break;
    case 1: {
        void *at = NULL;
        n->alignment = 16ul << next(state) % 13;
        if (posix_memalign(&at, n->alignment, n->size)) at = NULL;
        n->at = at;
        break;
    }
    default: n->at = malloc(n->size);
    }
    if (!n->at) wrong("no memory", n);
    if ((uintptr_t)n->at % n->alignment) wrong("not aligned", n);
    fill(n);
    return n;
}

static void check(const note *n) {
    if (!holds(n, n->size, n->size, n->stamp)) wrong("somebody has written here", n);
}

static void drop(note *n) {
    if (!n) return;
    check(n);
    /* A second owner of the block will see this. */
    n->at[0] = n->at[n->size - 1] = 0;
    free(n->at);
    free(n);
}

static void resize(note *n, uint64_t *state) {
    check(n);
    size_t before = n->size;
    n->size = some_size(state);
    n->at = realloc(n->at, n->size);
    if (!n->at) wrong("no memory", n);
    if (!holds(n, before, n->size, n->stamp)) wrong("realloc has lost something", n);
    fill(n);
}

/* Nothing but allocations and frees of one size, so that thefts hit them in their very middle. */
static void burst(uint64_t *state) {
    uint64_t stamp = next(state), size = 16 + next(state) % 4 * 32;
    for (int round = 0; round < 1000; round++, stamp += 2) {
        uint64_t *blocks[24];
        for (int i = 0; i < 24; i++) *(blocks[i] = malloc(size)) = stamp;
        for (int i = 0; i < 24; i++) {
            if (*blocks[i] != stamp) wrong("a block was handed out twice", &(note){(void *)blocks[i], size, 1, 0});
            free(blocks[i]);
        }
    }
}

static void *work(void *given) {
    uint64_t state = (uint64_t)(uintptr_t)given;
    note *own[OWN] = {0};
    unsigned long life = 500 + next(&state) % 20000;
    for (unsigned long i = 0; i < life && !stopping; i++) {
        note **place = &own[next(&state) % OWN];
        switch (next(&state) % 8) {
        case 0: *place = atomic_exchange(&shared[next(&state) % SHARED], *place); break;
        case 1: if (*place) resize(*place, &state); break;
        case 2: drop(*place); *place = NULL; break;
        default: drop(*place); *place = make(&state);
        }
        if (i % 128 == 0) burst(&state);
    }
    operations += life;
    /* Half of what is left goes to the others. */
    for (int i = 0; i < OWN; i++) {
        if (i % 2) own[i] = atomic_exchange(&shared[next(&state) % SHARED], own[i]);
        drop(own[i]);
    }
    return NULL;
}

static void *respawn(void *given) {
    uint64_t state = seed ^ (uint64_t)(uintptr_t)given << 32;
    while (!stopping) {
        pthread_t worker;
        if (pthread_create(&worker, NULL, work, (void *)(uintptr_t)next(&state))) continue;
        pthread_join(worker, NULL);
    }
    return NULL;
}

static void *collect(void *unused) {
    void (*mi_collect)(bool) = (void (*)(bool))dlsym(RTLD_DEFAULT, "mi_collect");
    while (mi_collect && !stopping) {
        mi_collect(true);
        collections++;
    }
    return unused;
}

/* The only thread of a new process: what others were doing is not finished, but what they had put into the table is whole. */
static void inherit(void) {
    uint64_t state = seed ^ forks;
    alarm(60);
    for (int i = 0; i < SHARED; i++) drop(atomic_exchange(&shared[i], NULL));
    note *own[OWN] = {0};
    for (int i = 0; i < 300; i++) {
        note **place = &own[next(&state) % OWN];
        drop(*place);
        *place = make(&state);
    }
    pthread_t worker;
    if (forks % 4 == 0 && !pthread_create(&worker, NULL, work, (void *)(uintptr_t)next(&state))) pthread_join(worker, NULL);
    for (int i = 0; i < OWN; i++) drop(own[i]);
    _exit(0);
}

static void *fork_often(void *unused) {
    while (!stopping) {
        struct timespec pause = {.tv_nsec = 50000000};
        nanosleep(&pause, NULL);
        pid_t child = fork();
        if (child == 0) inherit();
        int status = 1;
        if (child > 0 && (waitpid(child, &status, 0) != child || status != 0)) {
            fprintf(stderr, "stress: seed %llu: fork %lu ended with %x\n", (unsigned long long)seed, forks, status);
            _exit(1);
        }
        forks++;
    }
    return unused;
}

int main(int count, char **arguments) {
    unsigned seconds = count > 1 ? (unsigned)strtoul(arguments[1], NULL, 0) : 5;
    seed = count > 2 ? strtoull(arguments[2], NULL, 0) : (uint64_t)time(NULL) * 1000 + (uint64_t)getpid();
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    alarm(seconds + 60); /* for whoever waits for ever */
    pthread_t threads[WORKERS + 2];
    for (int i = 0; i < WORKERS; i++) pthread_create(&threads[i], NULL, respawn, (void *)(uintptr_t)(i + 1));
    pthread_create(&threads[WORKERS], NULL, collect, NULL);
    pthread_create(&threads[WORKERS + 1], NULL, fork_often, NULL);
    sleep(seconds);
    stopping = true;
    for (int i = 0; i < WORKERS + 2; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < SHARED; i++) drop(atomic_exchange(&shared[i], NULL));
    printf("%lu operations, %lu collections, %lu forks\nfine\n", operations, collections, forks);
    return 0;
}
