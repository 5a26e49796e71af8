/* Threads allocate, free each other's blocks, print and start threads while the main thread forks. Each child verifies what
 * it inherited, allocates, frees, starts a thread, forks once more. A child that does not end in time is a hang.
 * Usage: fork_storm FORKS main|handler|clone */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 6, BLOCKS = 400, OWN = 1000 };
static _Atomic(unsigned char *) shared[BLOCKS];
static atomic_int stop;
static unsigned char *own[OWN]; /* of the main thread, never changed by others */
static atomic_int forked, failed, hung;
static char mode;

static unsigned next(unsigned *state) { return *state = *state * 1664525 + 1013904223, *state >> 8; }

/* size in the first four bytes, stamp in the rest */
static unsigned char *make(unsigned *state) {
    unsigned size = 8 + next(state) % (next(state) % 50 ? 2000 : 150000);
    unsigned char *p = malloc(size);
    memcpy(p, &size, 4);
    memset(p + 4, size % 251, size - 4);
    return p;
}
static void verify(unsigned char *p) {
    unsigned size;
    memcpy(&size, p, 4);
    if (p[4] != size % 251 || p[size - 1] != size % 251) abort();
}
static void *nothing(void *arg) { return free(malloc(77)), arg; }

static void *work(void *arg) {
    unsigned state = (unsigned)(size_t)arg;
    FILE *null = fopen("/dev/null", "w");
    while (!atomic_load(&stop)) {
        unsigned char *p = atomic_exchange(&shared[next(&state) % BLOCKS], make(&state));
        if (p) verify(p), free(p);
        if (next(&state) % 64 == 0) fprintf(null, "%d %s\n", state, "text"), fflush(null);
        if (next(&state) % 512 == 0) {
            pthread_t t;
            if (!pthread_create(&t, NULL, nothing, NULL)) pthread_join(t, NULL);
        }
    }
    fclose(null);
    return NULL;
}

static void child(int depth) {
    unsigned state = getpid();
    for (int i = 0; i < OWN; i++) verify(own[i]), free(own[i]);
    /* in a handler that interrupted the allocator there is no promise for much: some small blocks */
    for (int i = 0; i < (mode == 'h' ? 100 : 3000); i++) {
        unsigned char *p = mode == 'h' ? memset(malloc(500), 1, 500) : make(&state);
        if (mode != 'h') verify(p);
        free(p);
    }
    pthread_t t;
    if (mode == 'm') {
        if (pthread_create(&t, NULL, nothing, NULL)) abort();
        pthread_join(t, NULL);
        char text[100];
        snprintf(text, sizeof text, "%f", state / 3.0);
        if (depth == 0) {
            int status;
            pid_t pid = fork();
            if (pid == 0) {
                for (int i = 0; i < OWN; i++) own[i] = make(&state);
                child(1);
            }
            if (waitpid(pid, &status, 0) != pid || status) abort();
        }
    }
    _exit(0);
}

static void wait_for(pid_t pid) {
    int status;
    for (int i = 0; i < 20000; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            if (status) atomic_fetch_add(&failed, 1), fprintf(stderr, "a child ended with %x\n", status);
            return;
        }
        struct timespec ms = {0, 1000000};
        nanosleep(&ms, NULL);
    }
    atomic_fetch_add(&hung, 1);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
}

static void fork_once(void) {
    pid_t pid = mode == 'c' ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (pid == 0) child(0);
    atomic_fetch_add(&forked, 1);
    wait_for(pid);
}
static void on_alarm(int signal) { (void)signal, fork_once(); }

int main(int argc, char **argv) {
    int forks = argc > 1 ? atoi(argv[1]) : 100;
    mode = argc > 2 ? argv[2][0] : 'm';
    unsigned state = 1;
    for (int i = 0; i < OWN; i++) own[i] = make(&state);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    if (mode == 'h') {
        /* the handler interrupts the main thread inside malloc and free; one shot, re-armed after it has returned */
        struct sigaction action = {.sa_handler = on_alarm};
        sigaction(SIGALRM, &action, NULL);
        for (int seen = 0; seen < forks; seen++) {
            struct itimerval soon = {{0, 0}, {0, 300 + next(&state) % 900}};
            setitimer(ITIMER_REAL, &soon, NULL);
            while (atomic_load(&forked) <= seen) {
                unsigned char *p = make(&state);
                verify(p), free(p);
            }
        }
    } else
        for (int i = 0; i < forks; i++) fork_once();
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%d forks, %d failed, %d hung\n", forked, failed, hung);
    return failed || hung;
}
