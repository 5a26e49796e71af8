/* Ways to fork that have hung other allocators. Usage: fork_traps opendir|popen|crowd|handlers. Prints what went wrong. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int stop;
static int failed;

static void *churn(void *arg) {
    unsigned state = (unsigned)(size_t)arg * 7919;
    char *blocks[50] = {0};
    while (!atomic_load(&stop)) {
        state = state * 1664525 + 1013904223;
        char **place = &blocks[(state >> 8) % 50];
        free(*place);
        size_t size = 1 + (state >> 12) % (state >> 30 ? 3000 : 600000);
        *place = malloc(size);
        (*place)[size - 1] = 1;
    }
    for (int i = 0; i < 50; i++) free(blocks[i]);
    return NULL;
}

static void ended(pid_t pid) {
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status) failed = 1, printf("a child ended with %x\n", status);
}

/* What a child of a fork-and-exec does before the exec. */
static void open_folder(void) {
    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            DIR *dir = opendir("/proc/self/fd");
            int n = 0;
            while (readdir(dir)) n++;
            closedir(dir);
            for (size_t size = 64 << 10; size <= 512 << 10; size *= 2) free(memset(malloc(size), 1, size));
            _exit(n < 3);
        }
        ended(pid);
    }
}

static void run_shell(void) {
    for (int i = 0; i < 30; i++) {
        char text[100] = "";
        FILE *pipe = popen("echo hello", "r");
        if (!pipe || !fgets(text, sizeof text, pipe) || strcmp(text, "hello\n") || pclose(pipe))
            failed = 1, printf("popen: %s\n", text);
    }
}

static void *forks(void *arg) {
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();
        if (pid == 0) free(malloc(1000)), free(malloc(100000)), _exit(0);
        ended(pid);
    }
    return arg;
}
static void crowd(void) {
    pthread_t threads[48];
    for (int i = 0; i < 48; i++) pthread_create(&threads[i], NULL, forks, NULL);
    for (int i = 0; i < 48; i++) pthread_join(threads[i], NULL);
}

/* Handlers that allocate and free, made before and after the allocator's own. */
static void *kept;
static atomic_int called;
static void handler(void) {
    free(kept), kept = malloc(5000 + 1000 * ++called);
    for (int i = 1; i < 20; i++) free(malloc(i * 1000));
}
static void with_handlers(void) {
    for (int i = 0; i < 100; i++) {
        int before = called;
        pid_t pid = fork();
        if (pid == 0) free(malloc(70000)), _exit(called != before + 4);
        ended(pid);
        if (called != before + 4) failed = 1, printf("handlers were not called\n");
    }
}

/* Before any allocation through malloc of this program: constructors of libraries have run, ours of the allocator may have. */
static void first(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "handlers")) pthread_atfork(handler, handler, handler);
}
__attribute__((section(".preinit_array"), used)) static void (*early)(int, char **) = first;

int main(int argc, char **argv) {
    alarm(120);
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++) pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    switch (argv[1][0]) {
    case 'o': open_folder(); break;
    case 'p': run_shell(); break;
    case 'c': crowd(); break;
    case 'h': pthread_atfork(handler, handler, handler), with_handlers(); break;
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    return failed;
}
