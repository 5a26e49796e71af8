/* calloc gives zeroes, whatever was in the memory before; and where nothing ever was, it touches nothing. Each line of output
 * is a broken promise. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))

static long resident(void) {
    long size, pages;
    FILE *file = fopen("/proc/self/statm", "r");
    fscanf(file, "%ld %ld", &size, &pages), fclose(file);
    return pages * 4096;
}

static void untouched(size_t size) {
    enum { BYTES = 64 << 20 };
    static void *blocks[BYTES / 4096];
    int n = BYTES / size;
    /* what was given back reads zero, and is not touched either */
    ((void (*)(int))dlsym(RTLD_DEFAULT, "mi_collect"))(1);
    long before = resident();
    for (int i = 0; i < n; i++) blocks[i] = calloc(1, size);
    long grown = resident() - before;
    if (grown > BYTES / 8) broken = 1, printf("%d blocks of %zu bytes: %ld bytes are resident\n", n, size, grown);
    /* dirty now: they come back zeroed all the same */
    for (int i = 0; i < n; i++) memset(blocks[i], 0xff, size), free(blocks[i]);
    for (int i = 0; i < n; i++) {
        char *p = blocks[i] = calloc(1, size);
        for (size_t k = 0; k < size; k += 64) CHECK(p[k] == 0);
    }
    for (int i = 0; i < n; i++) free(blocks[i]);
}

/* Large blocks, of which every `step`th page was in use: zeroes, and not much more of them in memory than the program has touched. */
static void large(size_t size, size_t step) {
    long before = resident();
    for (int round = 0; round < 4; round++) {
        char *p = round % 2 ? calloc(1, size) : malloc(size);
        for (size_t k = 0; k < size; k += step * 4096) {
            if (round % 2) for (size_t at = k; at < k + 4096; at += 64) CHECK(p[at] == 0);
            memset(p + k, 0xff, 4096);
        }
        free(p);
    }
    /* From 32 MiB on there are no huge pages. */
    if (step > 2 && size >= 32 << 20) CHECK(resident() - before <= (long)(size / step) + (1 << 20));
}

/* A large block that was there once and is gone, in a process with one thread that calls no more. What has its place then is not in memory
 * but where it is touched. */
static void gone(void) {
    long before = resident();
    size_t size = 200 << 20;
    char *p = malloc(size);
    memset(p, 1, size), CHECK(resident() - before > 190 << 20);
    free(p), CHECK(resident() - before < 20 << 20);
    p = malloc(size);
    for (size_t k = 0; k < size; k += 50 * 4096) p[k] = 1;
    CHECK(resident() - before < 20 << 20);
    free(p);
}

/* malloc, calloc and free in all orders, every block full of ones before it goes. */
static void *churn(void *seed) {
    enum { LIVE = 100 };
    unsigned random = (unsigned)(size_t)seed * 7919 + 1;
    char *live[LIVE] = {0};
    for (int step = 0; step < 6000; step++) {
        random = random * 1664525 + 1013904223;
        int at = (random >> 8) % LIVE;
        size_t size = 4096 << ((random >> 16) % 8);
        size -= (random >> 20) % (size / 2);
        if (size > 65536 && step % 8) size /= 16;
        if (live[at]) free(live[at]), live[at] = NULL;
        else if (random >> 30) {
            char *p = live[at] = calloc(size, 1);
            size = malloc_usable_size(p);
            for (size_t k = 0; k < size; k += 32) CHECK(p[k] == 0);
            CHECK(p[size - 1] == 0);
            memset(p, 0xff, size);
        } else {
            live[at] = malloc(size);
            memset(live[at], 0xff, malloc_usable_size(live[at]));
        }
        if (step % 500 == 0) ((void (*)(int))dlsym(RTLD_DEFAULT, "mi_collect"))(1);
    }
    for (int i = 0; i < LIVE; i++) free(live[i]);
    return NULL;
}

static void threads(void) {
    pthread_t thread[4];
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < 4; i++) pthread_create(&thread[i], NULL, churn, (void *)(round * 4 + i));
        for (int i = 0; i < 4; i++) { /* children take over heaps in the midst of things */
            pid_t child = fork();
            if (child == 0) churn((void *)(size_t)(100 + i)), _exit(broken);
            int status;
            waitpid(child, &status, 0);
            CHECK(status == 0);
        }
        for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "large")) {
        gone();
        for (size_t step = 50; step; step /= 4) large(70 << 20, step), large(40 << 20, step), large(5 << 20, step);
        return broken;
    }
    if (argc > 1) {
        for (size_t size = 4096; size <= 1 << 20; size *= 2) untouched(size), untouched(size + size / 2);
    }
    threads();
    return broken;
}
