/* Misuse with a function for errors: it hears of each, the free is ignored, and everything else goes on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))

static int told[256], nested;
static void error(int code, void *arg) {
    __atomic_fetch_add(&told[code], 1, __ATOMIC_RELAXED);
    free(malloc(100)); /* may allocate */
    if (nested) free((char *)arg + 8), malloc(SIZE_MAX / 4); /* may run into errors itself */
    errno = 99;
}
static void collect(void) { ((void (*)(int))dlsym(RTLD_DEFAULT, "mi_collect"))(1); }

#define N 3000
static char *blocks[N];

/* Everything that is live is where it should be, and nothing is handed out twice. */
static void stamped(size_t size) {
    for (int i = 0; i < N; i++) blocks[i] = malloc(size), memset(blocks[i], i, size);
    for (int i = 0; i < N; i++)
        for (size_t k = 0; k < size; k++) CHECK(blocks[i][k] == (char)i);
}
static void all_free(void) {
    for (int i = 0; i < N; i++) free(blocks[i]);
    collect();
}

static void *free_in_a_thread(void *p) {
    free(p);
    collect();
    return NULL;
}

static pthread_barrier_t barrier;
static void *free_and_keep(void *p) {
    free(p); /* it stays in this thread's cache */
    pthread_barrier_wait(&barrier), pthread_barrier_wait(&barrier);
    return NULL;
}

int main(void) {
    void (*reg)(void (*)(int, void *), void *) = dlsym(RTLD_DEFAULT, "mi_register_error");
    char *arg = malloc(64);
    reg(error, arg);
    char *keep = malloc(24);
    strcpy(keep, "kept");

    /* twice in a row, and again later: one report, and the block comes out once */
    stamped(100);
    free(blocks[7]), free(blocks[7]);
    collect();
    CHECK(told[EAGAIN] == 1);
    blocks[7] = malloc(100);
    all_free();
    stamped(100), all_free();
    CHECK(told[EAGAIN] == 1 && told[EINVAL] == 0);

    /* twice, by two threads, so that the second finds the slab gone */
    stamped(512);
    char *twice = blocks[0];
    all_free();
    pthread_t thread;
    pthread_create(&thread, NULL, free_in_a_thread, twice), pthread_join(thread, NULL);
    CHECK(told[EAGAIN] + told[EINVAL] == 2);
    stamped(512), all_free();

    /* twice, and the slab is gone while the second one waits in a cache */
    memset(told, 0, sizeof told);
    stamped(96);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, free_and_keep, blocks[1500]), pthread_barrier_wait(&barrier);
    for (int i = 0; i < N; i++) free(blocks[i]);
    free(malloc(64 << 20)); /* takes what is not in use */
    collect();
    CHECK(told[EAGAIN] == 1 && told[EINVAL] == 0);
    pthread_barrier_wait(&barrier), pthread_join(thread, NULL);

    /* many at once: none is forgotten */
    memset(told, 0, sizeof told);
    stamped(200);
    for (int i = 0; i < 100; i++) free(blocks[i] + 8);
    collect();
    CHECK(told[EINVAL] == 100);
    for (int i = 0; i < 100; i++) CHECK(blocks[i][199] == (char)i);
    all_free();

    /* where a slab has room for a part of a block: 48 bytes go 1365 times into 64 KiB, and 16 are left */
    memset(told, 0, sizeof told);
    char *p = malloc(48);
    free((char *)((uintptr_t)p & ~(uintptr_t)0xffff) + 1365 * 48);
    collect();
    CHECK(told[EINVAL] == 1);
    free(p);

    /* large blocks: inside, twice, and what becomes of realloc */
    memset(told, 0, sizeof told);
    errno = 77;
    char *large = malloc(3000000);
    free(large + 65536), free(large + 16);
    CHECK(told[EINVAL] == 2 && errno == 77);
    CHECK(realloc(large + 65536, 10) == NULL && errno == EINVAL && told[EINVAL] == 3);
    CHECK(malloc_usable_size(large + 65536) == 0 && told[EINVAL] == 4);
    free(large), free(large);
    CHECK(told[EINVAL] + told[EAGAIN] == 5);

    /* no memory, no such size */
    memset(told, 0, sizeof told);
    CHECK(malloc((size_t)1 << 60) == NULL && errno == ENOMEM && told[ENOMEM] == 1);
    CHECK(malloc(SIZE_MAX - 100) == NULL && errno == ENOMEM && told[EOVERFLOW] == 1);
    CHECK(calloc(SIZE_MAX / 2, 3) == NULL && errno == ENOMEM && told[EOVERFLOW] == 2 && told[ENOMEM] == 1);

    /* a handler that misuses memory itself is not called for that */
    nested = 1; /* frees inside of a block of ours */
    CHECK(malloc((size_t)1 << 60) == NULL && told[ENOMEM] == 2);
    collect();
    CHECK(told[ENOMEM] == 2);
    CHECK(!strcmp(keep, "kept"));
    return broken;
}
