/* What each level of MIMALLOC_SECURE adds: "secure LEVEL". Each line of output is a broken promise. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))

static int told[256];
static void error(int code, void *arg) { told[code]++; }

/* Memory that nobody may touch lies directly before memory of ours. */
static int fences(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long start, end, fence = 0;
    char rights[8], line[4096];
    int found = 0;
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3) {
            found += !strcmp(rights, "rw-p") && start == fence && end - start >= 4096;
            fence = !strcmp(rights, "---p") && end - start == 4096 ? end : 0;
        }
    fclose(maps);
    return found;
}

static int in_order(void) {
    enum { N = 200 };
    char *blocks[N];
    int rising = 0;
    for (int i = 0; i < N; i++) blocks[i] = malloc(333);
    for (int i = 1; i < N; i++) rising += blocks[i] > blocks[i - 1];
    for (int i = 0; i < N; i++) free(blocks[i]);
    return rising > N * 9 / 10;
}

static int faults(volatile char *p) {
    pid_t child = fork();
    if (child == 0) *p = 1, _exit(0);
    int status;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void *frees(void *p) {
    free(p);
    return NULL;
}
static void free_elsewhere(void *p) {
    pthread_t thread;
    pthread_create(&thread, NULL, frees, p), pthread_join(thread, NULL);
}

/* Each wrong free is found at once, whoever frees, and whatever the block is. */
static void checked(void) {
    for (size_t n = 10; n < 400000; n *= 3) {
        memset(told, 0, sizeof told);
        char *a = malloc(n), *b = malloc(n);
        memset(b, 3, n);
        free(a), free(a);
        CHECK(told[EAGAIN] == 1);
        free_elsewhere(a);
        CHECK(told[EAGAIN] == 2);
        free(b + 16), free_elsewhere(b + 8);
        CHECK(told[EAGAIN] + told[EINVAL] == 4);
        free_elsewhere(b), free(b);
        CHECK(told[EAGAIN] + told[EINVAL] == 5);
    }
    memset(told, 0, sizeof told);
    static void *blocks[1000];
    for (int i = 0; i < 1000; i++) blocks[i] = malloc(64), memset(blocks[i], i, 64);
    for (int i = 0; i < 1000; i++)
        for (int k = 0; k < 64; k++) CHECK(((char *)blocks[i])[k] == (char)i);
    for (int i = 0; i < 1000; i++) free(blocks[i]), free(blocks[i]);
    CHECK(told[EAGAIN] == 1000);
}

int main(int argc, char **argv) {
    int level = atoi(argv[1]);
    if (argc > 2) { /* without a function for errors: the second free ends the program, and not a later call */
        void *p = malloc(100);
        free(p), free(p), printf("too late\n");
        return 0;
    }
    void (*reg)(void (*)(int, void *), void *) = dlsym(RTLD_DEFAULT, "mi_register_error");
    reg(error, NULL);
    CHECK(fences() >= 1 == level >= 1);
    CHECK(in_order() == level < 2);
    if (level >= 3) checked();
    char *large = malloc(1 << 20);
    CHECK(faults(large + ((size_t (*)(void *))dlsym(RTLD_DEFAULT, "malloc_usable_size"))(large)) == level >= 4);
    free(large);
    char *small = malloc(100);
    memset(small, 1, 100), free(small);
    CHECK((small[50] == 0) == (level >= 5));
    return broken;
}
