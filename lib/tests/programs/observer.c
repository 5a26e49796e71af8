/* A program that lives and ends in every way: what is written of it while it runs, and at its end. */
#define _GNU_SOURCE
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *kept[1 << 16];
static int keeps;

static void *kept_by(size_t size) { return kept[keeps++] = memset(malloc(size), 1, size); }
static void keep(int blocks, size_t size) { while (blocks-- > 0) kept_by(size); }

static void nap(int ms) {
    struct timespec rest = { ms / 1000, ms % 1000 * 1000000L };
    while (nanosleep(&rest, &rest)) {}
}

static long long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static int threads(void) {
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks));) n += entry->d_name[0] != '.';
    closedir(tasks);
    return n;
}

static int thread_named(const char *name) {
    char path[300], text[64];
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        int file = open(path, O_RDONLY);
        ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
        if (file >= 0) close(file);
        if (length > 0) found += !strncmp(text, name, strlen(name));
    }
    closedir(tasks);
    return found;
}

/* Until something holds, at most ten seconds. */
#define WAIT_FOR(what) do { long long end = now_ms() + 10000; while (!(what) && now_ms() < end) nap(5); \
    if (!(what)) { fprintf(stderr, "line %d: never: %s\n", __LINE__, #what); abort(); } } while (0)
#define HOLDS(what) do { if (!(what)) { fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what); abort(); } } while (0)

static int exists(const char *path) { return access(path, F_OK) == 0; }

static volatile int stop;
static void *allocate_on(void *arg) {
    while (!stop) { free(memset(malloc(100000), 1, 100000)); if (arg) nap(1); }
    return NULL;
}
static void *nothing(void *arg) { free(malloc(10)); return arg; }

static volatile int handled;
static void handler(int signal) { handled = signal; }

/* Allocates for so many milliseconds. */
static void work(int ms) {
    for (long long end = now_ms() + ms; now_ms() < end; nap(1)) keep(1, 1000);
}

static int in_child(int (*run)(void)) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) exit(run());
    int status;
    HOLDS(waitpid(child, &status, 0) == child);
    return status;
}

static int short_work(void) { keep(50, 5000); return 0; }

/* Folders of pthread_exit */
static void *exits(void *arg) { keep(20, 70000); nap(20); exit(3); }
static void *goes_on(void *arg) { nap(50); keep(20, 70000); return NULL; }

static void in_handler_exit(int signal) { _exit(7); }

int main(int argc, char **argv) {
    const char *what = argv[1];
    const char *path = argc > 2 ? argv[2] : "";
    keep(30, 70000);
    if (!strcmp(what, "_exit")) {
        _exit(5);
    } else if (!strcmp(what, "_Exit")) {
        _Exit(5);
    } else if (!strcmp(what, "quick_exit")) {
        at_quick_exit((void (*)(void))short_work);
        quick_exit(5);
    } else if (!strcmp(what, "exit_then_exit")) {
        /* The dump of the exit handler is not written over. */
        atexit((void (*)(void))short_work);
        exit(0);
    } else if (!strcmp(what, "vfork")) {
        pid_t child = vfork();
        if (child == 0) _exit(9);
        int status;
        waitpid(child, &status, 0);
        HOLDS(WEXITSTATUS(status) == 9);
        HOLDS(!exists(path));
        nap(10);
        keep(30, 70000);
    } else if (!strcmp(what, "vfork_allocates")) {
        /* It may not, but does; here in the parent's memory, and long enough for everything to be due. */
        pid_t child = vfork();
        if (child == 0) { for (int i = 0; i < 1500; i++) { free(malloc(100000)); if (i % 10 == 0) nap(10); } _exit(9); }
        int status;
        waitpid(child, &status, 0);
        int written = exists(path); /* before anything is allocated here */
        printf("%d %d\n", written, threads());
    } else if (!strcmp(what, "fork_exit")) {
        /* As a daemon begins. */
        if (fork() == 0) { keep(10, 70000); nap(50); _exit(0); }
        _exit(0);
    } else if (!strcmp(what, "fork_children")) {
        for (int i = 0; i < 5; i++) HOLDS(in_child(short_work) == 0);
    } else if (!strcmp(what, "inherits")) {
        /* Two children that differ in how much they free of what they have inherited. */
        for (int freed = 0; freed <= 10; freed += 10) {
            pid_t child = fork();
            if (child == 0) {
                for (int i = 0; i < freed; i++) free(kept[i]);
                for (int i = 0; i < 5; i++) free(malloc(70000));
                keep(7, 70000);
                exit(0);
            }
            dprintf(1, "%d\n", child); /* without a buffer that the second one would inherit */
            waitpid(child, NULL, 0);
        }
    } else if (!strcmp(what, "signal_exit")) {
        signal(SIGALRM, in_handler_exit);
        struct itimerval *none = NULL; (void)none;
        ualarm(20000, 0);
        for (;;) free(malloc(rand() % 3000));
    } else if (!strcmp(what, "abort")) {
        work(atoi(argv[3]));
        signal(SIGABRT, SIG_DFL);
        abort();
    } else if (!strcmp(what, "work")) {
        work(atoi(argv[3]));
    } else if (!strcmp(what, "killed")) {
        work(atoi(argv[3]));
        kill(getpid(), SIGKILL);
    } else if (!strcmp(what, "count")) {
        nap(300);
        printf("%d\n", threads());
        pthread_t other;
        pthread_create(&other, NULL, allocate_on, "");
        nap(300);
        printf("%d\n", thread_named("mpp-observer"));
        stop = 1;
        pthread_join(other, NULL);
    } else if (!strcmp(what, "signals")) {
        WAIT_FOR(thread_named("mpp-observer"));
        char name[300];
        for (int i = 1; i <= 3; i++) {
            snprintf(name, sizeof name, "%s.%04d", path, i);
            HOLDS(!exists(name));
            /* Calls that are interrupted go on. */
            int ends[2], got = 0;
            pipe(ends);
            pid_t child = fork();
            if (child == 0) { nap(20); kill(getppid(), SIGUSR2); nap(20); write(ends[1], "x", 1); _exit(0); }
            char byte;
            got = read(ends[0], &byte, 1);
            HOLDS(got == 1);
            HOLDS(waitpid(child, NULL, 0) == child);
            close(ends[0]), close(ends[1]);
            WAIT_FOR(exists(name));
        }
    } else if (!strcmp(what, "signal_of_its_own")) {
        WAIT_FOR(thread_named("mpp-observer"));
        signal(SIGUSR2, handler);
        raise(SIGUSR2);
        HOLDS(handled == SIGUSR2);
        signal(SIGUSR2, SIG_IGN);
        raise(SIGUSR2);
    } else if (!strcmp(what, "signal_taken")) {
        /* What it was before the program began. */
        struct sigaction action;
        sigaction(SIGUSR2, NULL, &action);
        HOLDS(action.sa_handler == SIG_IGN);
        raise(SIGUSR2);
    } else if (!strcmp(what, "signal_in_child")) {
        /* Of a child that is not followed it is what it would be without us. */
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) { raise(SIGUSR2); _exit(0); }
        int status;
        waitpid(child, &status, 0);
        HOLDS(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR2);
    } else if (!strcmp(what, "idle")) {
        /* Nothing is due: our thread sleeps. Its switches are counted. */
        WAIT_FOR(thread_named("mpp-observer"));
        nap(1500);
        char file[300] = "", text[4096];
        DIR *tasks = opendir("/proc/self/task");
        for (struct dirent *entry; (entry = readdir(tasks));)
            if (entry->d_name[0] != '.' && atoi(entry->d_name) != getpid())
                snprintf(file, sizeof file, "/proc/self/task/%s/status", entry->d_name);
        closedir(tasks);
        nap(1500); /* for what the folder was allocated for */
        long before = -1, after = -1;
        for (int round = 0; round < 2; round++) {
            int fd = open(file, O_RDONLY);
            ssize_t length = read(fd, text, sizeof text - 1);
            close(fd);
            text[length < 0 ? 0 : length] = 0;
            if (strstr(text, "mpp-observer"))
                *(round ? &after : &before) = atol(strstr(text, "\nvoluntary_ctxt_switches:") + 25);
            if (!round) nap(1500);
        }
        HOLDS(before >= 0 && after == before);
    } else if (!strcmp(what, "interval")) {
        char name[300];
        for (int i = 1; i <= 3; i++) {
            snprintf(name, sizeof name, "%s.%04d", path, i);
            WAIT_FOR(exists(name));
        }
    } else if (!strcmp(what, "bytes")) {
        /* 64 MB in all. */
        for (int i = 0; i < 640; i++) free(memset(malloc(100000), 1, 100000));
    } else if (!strcmp(what, "peaks")) {
        for (int wave = 1; wave <= 8; wave++) {
            for (int i = 0; i < wave * 100; i++) kept_by(10000);
            nap(30);
            kept_by(1 << 20);
            while (keeps > 0) free(kept[--keeps]);
            nap(30);
        }
    } else if (!strcmp(what, "daemon")) {
        /* Everything that a daemon does to its surroundings. */
        if (fork()) _exit(0);
        setsid();
        if (fork()) _exit(0);
        chdir("/");
        umask(0777);
        syscall(SYS_close_range, 0, ~0U, 0);
        open("/dev/null", O_RDWR), dup(0), dup(0);
        keep(30, 70000);
        exit(0);
    } else if (!strcmp(what, "chroot")) {
        /* Where it cannot be written to, and nothing is told: no descriptor is left. */
        close(2);
        HOLDS(chroot(argv[3]) == 0 && chdir("/") == 0);
        keep(30, 70000);
        return 0;
    } else if (!strcmp(what, "nobody")) {
        HOLDS(setgid(65534) == 0 && setuid(65534) == 0);
        keep(30, 70000);
        return 0;
    } else if (!strcmp(what, "exit_in_thread")) {
        pthread_t other;
        pthread_attr_t small;
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 16384 + 4096);
        HOLDS(pthread_create(&other, argc > 3 ? &small : NULL, exits, NULL) == 0);
        for (;;) pause();
    } else if (!strcmp(what, "main_ends")) {
        pthread_t other;
        pthread_create(&other, NULL, goes_on, NULL);
        pthread_detach(other);
        pthread_exit(NULL);
    } else if (!strcmp(what, "child_thread")) {
        /* Children have the thread only once they have lived for a while. */
        WAIT_FOR(thread_named("mpp-observer"));
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            keep(50, 70000);
            HOLDS(threads() == 1);
            nap(150);
            for (int i = 0; i < 2000 && !thread_named("mpp-observer"); i++) { keep(1, 70000); nap(2); }
            HOLDS(thread_named("mpp-observer") == 1);
            raise(SIGUSR2);
            char name[300];
            snprintf(name, sizeof name, "%s.%d.0001", path, getpid());
            WAIT_FOR(exists(name));
            exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        HOLDS(status == 0);
    } else if (!strcmp(what, "small_stack")) {
        /* A snapshot in passing, on a stack that is not large enough for it. */
        stack_t stack = { .ss_sp = malloc(16384), .ss_size = 8192 + 4096 };
        sigaltstack(&stack, NULL);
        struct sigaction action = { .sa_flags = SA_ONSTACK };
        action.sa_handler = (void (*)(int))allocate_on;
        extern void allocate_some(int);
        action.sa_handler = allocate_some;
        sigaction(SIGUSR1, &action, NULL);
        nap(1100);
        raise(SIGUSR1);
        HOLDS(exists(path));
    } else if (!strcmp(what, "closes")) {
        /* Our thread's descriptors are not in the program's way, nor the other way round. */
        pthread_t other;
        pthread_create(&other, NULL, allocate_on, "");
        for (long long end = now_ms() + 1500; now_ms() < end;) {
            syscall(SYS_close_range, 3, ~0U, 0);
            int fd = open("/dev/null", O_RDONLY);
            HOLDS(fd == 3);
        }
        stop = 1;
        pthread_join(other, NULL);
        HOLDS(exists(path));
    } else {
        return 77;
    }
    return 0;
}

void allocate_some(int signal) { for (int i = 0; i < 100; i++) free(malloc(100000)); }
