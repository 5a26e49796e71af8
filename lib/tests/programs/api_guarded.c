/* Guarded blocks. Each line of output is a broken promise; "write N" and "slack" end in a fault and in a message. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <mimalloc-stats.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))

static long guarded(void) {
    mi_stats_t_decl(stats);
    mi_stats_get(&stats);
    return stats.malloc_guarded_count.total;
}

/* Whether touching the byte kills the process. */
static int faults(volatile char *p) {
    pid_t child = fork();
    if (child == 0) *p = 1, _exit(0);
    int status;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void *in_a_thread(void *arg) {
    for (int i = 0; i < 1000; i++) mi_free(mi_malloc(150));
    return arg;
}

static void every_block(int precise) {
    static const size_t sizes[] = {1, 8, 15, 16, 17, 100, 1000, 1024, 5000, 70000, 500000, 700000, 5000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n = sizes[i], end = precise ? n : (n + 15) / 16 * 16;
        long before = guarded();
        char *p = mi_malloc(n);
        CHECK(guarded() == before + 1 && mi_usable_size(p) == n);
        CHECK(precise || (uintptr_t)p % 16 == 0);
        memset(p, 7, n);
        CHECK(faults(p + end) && faults(p + end + 4096) && !faults(p + n - 1));
        p = mi_realloc(p, n + 1); /* moves, and is guarded again */
        CHECK(p[0] == 7 && p[n - 1] == 7 && mi_usable_size(p) == n + 1);
        mi_free(p);
        char *q = mi_zalloc(n);
        for (size_t k = 0; k < n; k++) CHECK(q[k] == 0);
        CHECK(mi_usable_size(q) == n);
        mi_free(q);
        for (size_t align = 16; align <= 1 << 20; align *= 4) {
            char *a = mi_malloc_aligned(n, align);
            CHECK(a && (uintptr_t)a % align == 0 && mi_usable_size(a) >= n);
            memset(a, 1, mi_usable_size(a)), mi_free(a);
        }
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "slack")) {
        char *p = malloc(100);
        p[100] = 1; /* between the end and the guard */
        free(p);
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "all")) {
        every_block(0);
        mi_option_enable(mi_option_guarded_precise);
        every_block(1);
        return broken;
    }
    /* none at first; then those of one thread, of some sizes */
    mi_free(mi_malloc(150));
    CHECK(guarded() == 0);
    mi_theap_guarded_set_sample_rate(NULL, 10, 1);
    mi_theap_guarded_set_size_bound(NULL, 100, 200);
    for (int i = 0; i < 10000; i++) mi_free(mi_malloc(50)), mi_free(mi_malloc(1000)), mi_free(mi_malloc(1000000));
    CHECK(guarded() == 0);
    for (int i = 0; i < 10000; i++) mi_free(mi_malloc(150));
    long some = guarded();
    CHECK(some > 800 && some < 1200);
    pthread_t thread;
    pthread_create(&thread, NULL, in_a_thread, NULL), pthread_join(thread, NULL);
    CHECK(guarded() == some);
    mi_theap_guarded_set_sample_rate(NULL, 0, 0);
    for (int i = 0; i < 10000; i++) mi_free(mi_malloc(150));
    CHECK(guarded() == some);
    /* the same seed guards the same ones */
    static char drawn[2][2000];
    for (int run = 0; run < 2; run++) {
        mi_theap_guarded_set_sample_rate(NULL, 20, 42);
        for (int i = 0; i < 2000; i++) {
            long before = guarded();
            mi_free(mi_malloc(150));
            drawn[run][i] = guarded() != before;
        }
    }
    CHECK(!memcmp(drawn[0], drawn[1], 2000) && memchr(drawn[0], 1, 2000));
    /* by option, for all threads; large ones too */
    mi_option_set(mi_option_guarded_sample_rate, 5);
    some = guarded();
    pthread_create(&thread, NULL, in_a_thread, NULL), pthread_join(thread, NULL);
    CHECK(guarded() - some > 100 && guarded() - some < 400);
    some = guarded();
    for (int i = 0; i < 1000; i++) mi_free(mi_malloc(3000000));
    CHECK(guarded() - some > 100 && guarded() - some < 400);
    mi_option_set(mi_option_guarded_sample_rate, 0);
    some = guarded();
    for (int i = 0; i < 1000; i++) mi_free(mi_malloc(3000000)), mi_free(mi_malloc(10));
    CHECK(guarded() == some);
    return broken;
}
