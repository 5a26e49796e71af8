/* Runs until its standard input ends, and says back what comes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void nap(int ms) {
    struct timespec rest = { ms / 1000, ms % 1000 * 1000000L };
    while (nanosleep(&rest, &rest)) {}
}

static void *kept[64];
static void *serve(void *arg) {
    char byte;
    free(malloc(10)); /* our threads live as long as one that has allocated */
    while (read(0, &byte, 1) == 1) {
        free(memset(malloc(50000), 1, 50000));
        write(1, &byte, 1);
    }
    return arg;
}

int main(int argc, char **argv) {
    const char *what = argv[1];
    for (int i = 0; i < 64; i++) kept[i] = memset(malloc(60000), 1, 60000);
    if (!strcmp(what, "one")) {
        serve(NULL);
    } else if (!strcmp(what, "_exit")) {
        serve(NULL);
        _exit(0);
    } else if (!strcmp(what, "main_ends")) {
        pthread_t other;
        pthread_create(&other, NULL, serve, NULL);
        pthread_detach(other);
        pthread_exit(NULL);
    } else if (!strcmp(what, "chdir_and_close")) {
        chdir("/");
        syscall(SYS_close_range, 3, ~0U, 0);
        serve(NULL);
    } else if (!strcmp(what, "fork")) {
        pid_t child = fork();
        if (child == 0) {
            /* Until the parent has gone. */
            pid_t parent = getppid();
            while (getppid() == parent) free(memset(malloc(60000), 1, 60000)), nap(5);
            exit(0);
        }
        serve(NULL);
    } else {
        return 77;
    }
    return 0;
}
