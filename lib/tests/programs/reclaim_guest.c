/* The allocator's own thread is a guest: nothing that a program does with its threads, signals, descriptors and rights meets it.
 * Usage: reclaim_guest WHAT. Prints what is said below, or nothing. */
#include "reclaim.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>

extern char **environ;

/* The thread of this name; 0 = there is none. */
static int guest(void) {
    char entries[4096], path[64], name[32];
    int found = 0;
    long n;
    int folder = open("/proc/self/task", O_RDONLY);
    while (!found && (n = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
        for (char *at = entries; at < entries + n && !found; at += *(unsigned short *)(at + 16)) {
            snprintf(path, sizeof path, "/proc/self/task/%s/comm", at + 19);
            int file = at[19] == '.' ? -1 : open(path, O_RDONLY);
            if (file >= 0 && read(file, name, sizeof name) > 13 && !memcmp(name, "mpp-scavenger", 13)) found = atoi(at + 19);
            close(file);
        }
    close(folder);
    return found;
}
static int wait_for_guest(bool there) {
    for (int i = 0; i < 10000; i++) {
        int task = guest();
        if (there == (task != 0)) return task;
        nap(1);
    }
    WRONG("it is %s", there ? "not there" : "still there");
    return 0;
}

/* A thread that has a heap. */
static atomic_bool stop;
static void *other(void *unused) {
    free(malloc(100));
    while (!stop) nap(1);
    return unused;
}
/* One that keeps the scavenger at work. */
static void *busy(void *number) {
    uint64_t state = (uintptr_t)number + seed;
    static __thread block table[3000];
    while (!stop) {
        fill(table, 3000, some_size, &state);
        thin(table, 3000, 20, &state);
        nap(5);
        clear(table, 3000);
    }
    return NULL;
}
static pthread_t start(void *(*run)(void *)) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, run, (void *)1));
    return thread;
}
static void end(pthread_t thread) {
    stop = true;
    CHECK(!pthread_join(thread, NULL));
}
/* A child's end, within a minute. */
static int ended(pid_t pid) {
    int status;
    for (int i = 0; i < 60000; i++, nap(1))
        if (waitpid(pid, &status, WNOHANG) == pid) return status;
    kill(pid, SIGKILL);
    WRONG("child %d hangs", pid);
    return -1;
}

/* How many threads the kernel knows. */
static void count(void) {
    free(malloc(1000));
    nap(50);
    printf("%ld", tasks());
    pthread_t thread = start(other);
    for (int i = 0; i < 2000 && tasks() < 3; i++) nap(1);
    printf(" %ld", tasks());
    end(thread);
    puts("");
}

/* setuid and its like are done by every thread that the C library knows, and wait for it. */
static void identity(void) {
    pthread_t thread = start(busy);
    int task = wait_for_guest(true);
    for (int i = 0; i < 200; i++) CHECK(!seteuid(i % 2 ? 0 : getuid()) || errno == EPERM);
    if (getuid() == 0) {
        CHECK(!setgid(1) && !setuid(1));
        char path[64], text[4096] = "";
        snprintf(path, sizeof path, "/proc/self/task/%d/status", task);
        int file = open(path, O_RDONLY);
        CHECK(read(file, text, sizeof text - 1) > 0 && strstr(text, "\nUid:\t1\t1\t1\t1\n") && strstr(text, "\nGid:\t1\t1\t1\t1\n"));
    }
    end(thread);
}

/* Signals to the process reach threads of the program only; those by faults and filters are open. */
static atomic_int handled, elsewhere;
static __thread bool is_mine;
static void on_signal(int number) { handled++, elsewhere += !is_mine; }
static void *spins(void *unused) {
    is_mine = true;
    return busy(unused);
}
static void signals(void) {
    is_mine = true;
    pthread_t thread = start(spins);
    int task = wait_for_guest(true);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGCHLD, SIGCONT, SIGURG, SIGIO, SIGPROF, SIGVTALRM, SIGWINCH, SIGPWR, SIGPIPE, SIGTSTP};
    enum { MANY = sizeof numbers / sizeof *numbers };
    for (int i = 0; i < MANY; i++) sigaction(numbers[i], &action, NULL);
    for (int i = SIGRTMIN; i <= SIGRTMAX; i++) sigaction(i, &action, NULL);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < MANY; i++) kill(getpid(), numbers[i]);
        for (int i = SIGRTMIN; i <= SIGRTMAX; i++) sigqueue(getpid(), i, (union sigval){0});
    }
    struct itimerval timer = {{0, 300}, {0, 300}}, none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &timer, NULL), setitimer(ITIMER_REAL, &timer, NULL);
    for (double until = now() + 0.3; now() < until;) free(malloc(100));
    setitimer(ITIMER_PROF, &none, NULL), setitimer(ITIMER_REAL, &none, NULL);
    CHECK(handled > 50 * 30 && elsewhere == 0);
    /* With all blocked by the program they wait, for sigwait. */
    stop = true;
    pthread_join(thread, NULL);
    stop = false;
    sigset_t all;
    sigfillset(&all), pthread_sigmask(SIG_BLOCK, &all, NULL);
    thread = start(busy);
    task = wait_for_guest(true);
    int before = handled;
    for (int i = 0; i < MANY; i++) {
        int got = 0;
        sigset_t one;
        sigemptyset(&one), sigaddset(&one, numbers[i]);
        if (numbers[i] == SIGCONT || numbers[i] == SIGTSTP) continue; /* they discard each other */
        kill(getpid(), numbers[i]);
        CHECK(!sigwait(&one, &got) && got == numbers[i]);
    }
    CHECK(handled == before);
    char path[64], text[4096] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/status", task);
    int file = open(path, O_RDONLY);
    CHECK(read(file, text, sizeof text - 1) > 0);
    close(file);
    unsigned long blocked = strtoul(strstr(text, "\nSigBlk:") + 8, NULL, 16);
    unsigned long open_ones = 1ul << (SIGSYS - 1) | 1ul << (SIGSEGV - 1) | 1ul << (SIGBUS - 1) | 1ul << (SIGILL - 1) | 1ul << (SIGFPE - 1) | 1ul << (SIGTRAP - 1) | 3ul << 31;
    open_ones |= 1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1);
    if (blocked != ~open_ones) WRONG("blocked are %lx", blocked);
    end(thread);
}

/* What is refused to processes with threads is granted to one that has started none. */
static void namespaces(void) {
    static block table[20000];
    uint64_t state = 1;
    fill(table, 20000, some_size, &state), thin(table, 20000, 20, &state);
    nap(150), purge(), free(malloc(100));
    CHECK(tasks() == 1);
    if (unshare(CLONE_NEWUSER) && errno == EINVAL) WRONG("there is another thread");
    clear(table, 20000);
}

/* The program's descriptors are not open in a thread that it does not know of, and what it opens stays open. */
static void descriptors(void) {
    int pipes[2], fixed = open("/dev/null", O_RDONLY);
    CHECK(!pipe(pipes) && dup2(fixed, 500) == 500);
    struct stat wanted;
    char path[64], name[] = "/tmp/reclaim_guest.XXXXXX";
    int lock = mkstemp(name);
    CHECK(lock >= 0 && !flock(lock, LOCK_EX));
    pthread_t thread = start(busy);
    int task = wait_for_guest(true);
    nap(150); /* it has begun, and reads what it reads */
    close(pipes[1]);
    struct pollfd end_of = {pipes[0], POLLIN, 0};
    CHECK(poll(&end_of, 1, 20000) == 1 && end_of.revents & POLLHUP);
    close(lock); /* the last one of that file, so the lock goes with it */
    int again = open(name, O_RDWR);
    for (int i = 0; flock(again, LOCK_EX | LOCK_NB); i++, nap(1))
        if (i > 20000) WRONG("the lock stays");
    unlink(name);
    snprintf(path, sizeof path, "/proc/self/task/%d/fd/500", task);
    CHECK(lstat(path, &wanted) && errno == ENOENT);
    /* All closed that it does not know of, and opened what it wants. */
    CHECK(!stat("/dev/zero", &wanted));
    for (int round = 0; round < 300; round++) {
        CHECK(!syscall(SYS_close_range, 3, ~0u, 0));
        int files[20];
        for (int i = 0; i < 20; i++) CHECK((files[i] = open("/dev/zero", O_RDONLY)) == 3 + i);
        if (round % 30 == 0) nap(15);
        for (int i = 0; i < 20; i++) {
            struct stat found;
            CHECK(!fstat(files[i], &found) && found.st_rdev == wanted.st_rdev);
        }
    }
    /* None left for anybody. */
    struct rlimit none = {3, 3};
    syscall(SYS_close_range, 3, ~0u, 0), setrlimit(RLIMIT_NOFILE, &none);
    nap(50);
    end(thread);
    for (int i = 0; i < 3; i++) close(i);
    thread = (stop = false, start(busy));
    nap(50);
    end(thread);
}

/* Where it cannot have a table of its own it opens nothing. */
#define LOAD_CALL BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
static void no_table(void) {
    struct sock_filter code[] = {
        LOAD_CALL,
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 0, 1), /* the C library uses openat */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    pthread_t thread = start(busy);
    wait_for_guest(true);
    nap(300);
    end(thread);
}

/* Ways to end while it is at work: each in a child, in bounded time. */
static void *ends(void *how) {
    nap(20 + (uintptr_t)how % 7);
    switch ((uintptr_t)how / 100) {
    case 0: exit(0);
    case 1: quick_exit(0);
    case 2: _exit(0);
    case 3: abort();
    case 4: execl("/bin/true", "true", NULL);
    case 5: raise(SIGTERM);
    case 6: syscall(SYS_exit_group, 0);
    }
    return NULL;
}
static void exits(int number) { (void)number, exit(0); }
/* The last that a process does is to write out its streams: nothing of the allocator is at work any more. */
static ssize_t last_write(void *unused, const char *text, size_t size) { return wait_for_guest(false), size; }
static void gone_at_exit(void) {
    pid_t pid = fork();
    if (pid == 0) {
        start(busy), wait_for_guest(true);
        FILE *file = fopencookie(NULL, "w", (cookie_io_functions_t){.write = last_write});
        CHECK(file && fputs("text", file) >= 0);
        exit(0);
    }
    CHECK(ended(pid) == 0);
}
static void ways_to_end(void) {
    gone_at_exit();
    for (uintptr_t how = 0; how < 7; how++)
        for (int who = 0; who < 8; who++) {
            pid_t pid = fork();
            if (pid == 0) {
                signal(SIGABRT, SIG_DFL), prctl(PR_SET_DUMPABLE, 0);
                alarm(50);
                start(busy), start(busy);
                if (who % 4 == 0) wait_for_guest(true);
                if (who % 2) ends((void *)(how * 100 + who));
                pthread_t thread;
                pthread_create(&thread, NULL, ends, (void *)(how * 100 + who));
                if (who == 2) pthread_exit(NULL);
                for (;;) pause();
            }
            int status = ended(pid), expected = how == 3 ? SIGABRT : how == 5 ? SIGTERM : 0;
            if ((status & ~0x80) != expected) WRONG("way %d, %d: status %x", (int)how, who, status);
        }
    /* From a handler that has interrupted malloc, or free, or a purge. */
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            struct itimerval soon = {{0, 0}, {0, 20000 + i * 977}};
            sigset_t alarms;
            sigemptyset(&alarms), sigaddset(&alarms, SIGALRM), pthread_sigmask(SIG_BLOCK, &alarms, NULL);
            start(busy);
            pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
            signal(SIGALRM, exits), setitimer(ITIMER_REAL, &soon, NULL);
            uint64_t state = i;
            static block table[500];
            for (;;) {
                fill(table, 500, some_size, &state), clear(table, 500);
                if (i % 2) purge();
            }
        }
        int status = ended(pid);
        if (status) WRONG("handler %d: status %x", i, status);
    }
}

/* Others that are started meanwhile. */
static void children(void) {
    pthread_t thread = start(busy);
    wait_for_guest(true);
    for (int i = 0; i < 30; i++) {
        pid_t pid;
        char *arguments[] = {"true", NULL};
        if (i % 3 == 0) CHECK(!posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environ));
        if (i % 3 == 1 && (pid = vfork()) == 0) execl("/bin/true", "true", NULL), _exit(9);
        if (i % 3 == 2) {
            CHECK(!system("true"));
            continue;
        }
        CHECK(ended(pid) == 0);
    }
    /* Stopped here, it is not stopped there; and it is there only with a second thread. */
    for (int stopped = 0; stopped < 2; stopped++) {
        if (stopped) mi_scavenger_stop(), wait_for_guest(false);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(50);
            free(malloc(100000)), purge(), nap(50), free(malloc(100));
            CHECK(tasks() == 1 && !guest());
            start(busy), wait_for_guest(true);
            pid_t next = fork();
            if (next == 0) {
                alarm(50);
                CHECK(tasks() == 1);
                mi_scavenger_stop();
                start(busy), nap(50);
                CHECK(!guest() && tasks() == 2);
                exit(0);
            }
            CHECK(ended(next) == 0);
            exit(0);
        }
        CHECK(ended(pid) == 0);
    }
    end(thread);
}

/* A daemon, with threads before and after. */
static void daemons(void) {
    int pipes[2];
    CHECK(!pipe(pipes));
    pthread_t thread = start(busy);
    wait_for_guest(true);
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        if (fork()) _exit(0);
        close(pipes[0]);
        alarm(50);
        pthread_t thread = (stop = false, start(busy));
        wait_for_guest(true);
        CHECK(write(pipes[1], "d", 1) == 1);
        end(thread);
        exit(0);
    }
    CHECK(ended(pid) == 0);
    close(pipes[1]);
    char text[4];
    struct pollfd end_of = {pipes[0], POLLIN, 0};
    CHECK(poll(&end_of, 1, 60000) == 1 && read(pipes[0], text, 4) == 1);
    CHECK(poll(&end_of, 1, 60000) == 1 && read(pipes[0], text, 4) == 0); /* the daemon has ended, and nobody else has it */
    end(thread);
}

/* Whom the program has cancelled, that one does not end in the allocator. */
static atomic_int got_through;
static void *cancelled(void *unused) {
    free(malloc(100)), wait_for_guest(true);
    pthread_cancel(pthread_self());
    mi_scavenger_stop();
    got_through++;
    for (;;) pause();
}
static void *waits(void *unused) {
    free(malloc(100));
    for (;;) nap(1000);
}
static void cancel_once(void) {
    pthread_t threads[20];
    for (int i = 0; i < 20; i++) threads[i] = start(waits);
    wait_for_guest(true);
    for (int i = 0; i < 20; i++) pthread_cancel(threads[i]);
    for (int i = 0; i < 20; i++) CHECK(!pthread_join(threads[i], NULL));
    pthread_t thread = start(cancelled);
    void *result;
    CHECK(!pthread_join(thread, &result) && result == PTHREAD_CANCELED && got_through == 1 && !guest());
}
static void cancel(void) {
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0) alarm(50), cancel_once(), _exit(0);
        CHECK(ended(pid) == 0);
    }
}

/* Without a thread for it, slow paths give memory back: once, without delay. */
static void drain(void) {
    enum { COUNT = 100000 };
    static void *p[COUNT];
    for (int i = 0; i < COUNT; i++) p[i] = memset(malloc(1000), 1, 1000);
    long full = status("VmRSS"), left = full;
    for (int i = 0; i < COUNT; i++)
        if (i % 20) free(p[i]);
    for (int i = 0; i < 20000 && (left = status("VmRSS")) * 10 > full * 5; i++) free(malloc(500)), nap(1);
    if (left * 10 > full * 5) WRONG("%ld of %ld KiB are still there", left, full);
    for (int i = 0; i < COUNT; i += 20) free(p[i]);
}
static void no_threads(void) {
    /* Not permitted from the beginning: another user, who may have this one process. */
    pid_t pid = getuid() ? 0 : fork();
    if (pid == 0 && getuid() == 0) {
        struct rlimit one = {1, 1};
        CHECK(!setrlimit(RLIMIT_NPROC, &one) && !setuid(54321));
        CHECK(!mi_on_thread_idle_start() && tasks() == 1);
        drain();
        exit(0);
    }
    CHECK(pid == 0 || ended(pid) == 0);
    /* Stopped. */
    pthread_t thread = start(other);
    mi_scavenger_stop();
    CHECK(!guest());
    drain();
    end(thread);
}
static void no_proc(void) {
    char name[] = "/tmp/reclaim_guest.XXXXXX";
    CHECK(mkdtemp(name));
    pid_t pid = fork();
    if (pid == 0) {
        if (!chroot(name)) CHECK(!chdir("/"));
        pthread_t thread = start(busy);
        nap(300);
        purge();
        end(thread);
        exit(0);
    }
    CHECK(ended(pid) == 0 && !rmdir(name));
}

int main(int argc, char **arguments) {
    CHECK(argc >= 2);
    static const struct { const char *name; void (*run)(void); } all[] = {
        {"count", count}, {"identity", identity}, {"signals", signals}, {"namespaces", namespaces}, {"descriptors", descriptors},
        {"no_table", no_table}, {"ends", ways_to_end}, {"children", children}, {"daemons", daemons}, {"cancel", cancel}, {"no_threads", no_threads},
        {"no_proc", no_proc}};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(arguments[1], all[i].name)) return all[i].run(), 0;
    WRONG("what?");
}
