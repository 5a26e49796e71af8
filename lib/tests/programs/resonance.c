/* Allocators on top of malloc that drain and refill, again and again: once they are warm, a round asks the kernel for no memory and gives
 * none back. Usage: resonance [milliseconds a part [part]]. Each part runs in a child whose calls for memory are reported to the parent
 * by the kernel, whatever thread makes them and whatever signals it blocks. One line per part: its name, and "calm" or how many calls
 * there were in how many rounds. 77: the kernel does not report. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SECCOMP_USER_NOTIF_FLAG_CONTINUE
#define SECCOMP_USER_NOTIF_FLAG_CONTINUE 1
#endif

/* More than a part may need for what has nothing to do with its rounds; with a call in twenty rounds it would be exceeded. */
enum { BOUND = 24, LEAST_ROUNDS = 500 };

static const int watched[] = {SYS_mmap, SYS_munmap, SYS_madvise, SYS_process_madvise, SYS_mremap, SYS_brk};
enum { WATCHED = sizeof watched / sizeof *watched };

/* What a part tells its parent: advice that no kernel knows. */
enum { BEGIN = 0x7e570001, END };
static void tell(int what, long rounds) { syscall(SYS_madvise, 0, rounds, what); }

static void touch(char *p, size_t size) { p[0] = 1, p[size / 2] = 2, p[size - 1] = 3; }

/* A pool that takes `count` chunks and gives all of them back, the last one first or last. */
static void pool(size_t size, int count) {
    static __thread char *chunks[2000];
    for (int i = 0; i < count; i++) touch(chunks[i] = malloc(size), size);
    for (int i = 0; i < count; i++) free(chunks[i]);
}

static void chunks_64k(void) { pool(64 << 10, 16); }
static void chunks_256k(void) { pool(256 << 10, 16); }
static void chunks_1m(void) { pool(1 << 20, 16); }
static void chunks_3m(void) { pool(3 << 20, 6); }
static void one_16m(void) { pool(16 << 20, 1); }
static void one_64m(void) { pool(64 << 20, 1); }
static void blocks_512(void) { pool(512, 1000); }
static void blocks_4k(void) { pool(4096, 1000); }

/* All sizes by turns: what one gives back is wanted by the next. */
static void mixture(void) {
    chunks_64k(), chunks_1m(), blocks_4k(), chunks_3m(), chunks_256k(), blocks_512();
}

/* An arena that doubles until it has what it needs, then drops all. */
static void doubling(void) {
    char *p = NULL;
    for (size_t size = 4096; size <= 4 << 20; size *= 2) p = realloc(p, size), touch(p, size);
    free(p);
}

/* Chunks as an obstack takes them: each is half as large again as the one before. */
static void obstack(void) {
    char *chunks[16];
    size_t size = 4096;
    for (int i = 0; i < 16; i++, size += size / 2) touch(chunks[i] = malloc(size), size);
    for (int i = 16; i--;) free(chunks[i]);
}

static void (*alternated)(void);
static pthread_barrier_t turn;
static volatile int over;

static void *other(void *unused) {
    for (;;) {
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
        if (over) return unused;
        alternated();
    }
}

/* Two threads, never at the same time. */
static void by_turns(void) {
    pthread_barrier_wait(&turn);
    alternated();
    pthread_barrier_wait(&turn);
}

/* One thread takes, the other gives back. */
static char *handed[16];
static void give_back(void) {
    for (int i = 0; i < 16; i++) free(handed[i]);
}
static void hand_over(void) {
    pthread_barrier_wait(&turn);
    for (int i = 0; i < 16; i++) touch(handed[i] = malloc(1 << 20), 1 << 20);
    pthread_barrier_wait(&turn);
}

static const struct {
    const char *name;
    void (*round)(void);
    void (*alternated)(void);
} parts[] = {
    {"chunks-64k", chunks_64k},
    {"chunks-256k", chunks_256k},
    {"chunks-1m", chunks_1m},
    {"chunks-3m", chunks_3m},
    {"one-16m", one_16m},
    {"one-64m", one_64m},
    {"blocks-512", blocks_512},
    {"blocks-4k", blocks_4k},
    {"mixture", mixture},
    {"doubling", doubling},
    {"obstack", obstack},
    {"by-turns-64k", by_turns, chunks_64k},
    {"by-turns-1m", by_turns, chunks_1m},
    {"by-turns-4k", by_turns, blocks_4k},
    {"by-turns-64m", by_turns, one_64m},
    {"by-turns-mixture", by_turns, mixture},
    {"hand-over", hand_over, give_back},
};

static long milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static long rounds_of(void (*round)(void), long time, long least) {
    long n = 0, end = milliseconds() + time;
    do {
        round();
    } while (++n < least || milliseconds() < end);
    return n;
}

static void run(int part, long time) {
    pthread_t thread;
    alternated = parts[part].alternated;
    if (alternated) {
        pthread_barrier_init(&turn, NULL, 2);
        pthread_create(&thread, NULL, other, NULL);
    }
    rounds_of(parts[part].round, 0, 50); /* warm */
    tell(BEGIN, 0);
    tell(END, rounds_of(parts[part].round, time, LEAST_ROUNDS));
    if (alternated) {
        pthread_barrier_wait(&turn);
        over = 1;
        pthread_barrier_wait(&turn);
        pthread_join(thread, NULL);
    }
}

/* Have the kernel report the watched calls of this process and its children. Returns where. */
static int watch(void) {
    struct sock_filter code[WATCHED + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    int n = 1;
    for (int i = 0; i < WATCHED; i++)
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, watched[i], WATCHED - i, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog filter = {n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
}

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

static void send_descriptor(int to, int descriptor) {
    char byte = 0;
    union control control = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    control.header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    if (descriptor < 0) message.msg_control = NULL, message.msg_controllen = 0;
    sendmsg(to, &message, 0);
}

static int receive_descriptor(int from) {
    char byte;
    int descriptor = -1;
    union control control = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(from, &message, 0) == 1 && message.msg_controllen >= CMSG_LEN(sizeof(int)))
        memcpy(&descriptor, CMSG_DATA(&control.header), sizeof descriptor);
    return descriptor;
}

static int supervise(int part, long time, const char *self) {
    int sockets[2], status;
    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
    pid_t child = fork();
    if (!child) {
        char number[16], duration[16];
        snprintf(number, sizeof number, "%d", part), snprintf(duration, sizeof duration, "%ld", time);
        int listener = watch();
        send_descriptor(sockets[1], listener);
        close(sockets[0]), close(sockets[1]), close(listener);
        /* A new program: nothing of the parent's heap is in it, and all its threads are watched. */
        if (listener >= 0) execl("/proc/self/exe", self, duration, number, "run", (char *)NULL);
        _exit(3);
    }
    close(sockets[1]);
    int listener = receive_descriptor(sockets[0]);
    if (listener < 0) return waitpid(child, &status, 0), 77;
    long calls = 0, counted = 0, rounds = 0;
    for (;;) {
        struct pollfd ready = {listener, POLLIN};
        if (poll(&ready, 1, -1) < 0 || !(ready.revents & POLLIN)) break; /* the child has ended */
        struct seccomp_notif asked;
        memset(&asked, 0, sizeof asked);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked)) continue;
        if (asked.data.nr == SYS_madvise && (int)asked.data.args[2] == BEGIN) calls = 0;
        else if (asked.data.nr == SYS_madvise && (int)asked.data.args[2] == END) counted = calls, rounds = asked.data.args[1];
        else calls++;
        struct seccomp_notif_resp answer = {.id = asked.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    close(listener), close(sockets[0]);
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) || rounds < LEAST_ROUNDS) {
        printf("%s broke: status %d, %ld rounds\n", parts[part].name, status, rounds);
    } else if (counted > BOUND) {
        printf("%s %ld calls in %ld rounds\n", parts[part].name, counted, rounds);
    } else {
        printf("%s calm\n", parts[part].name);
    }
    if (getenv("RESONANCE_COUNTS")) fprintf(stderr, "%s: %ld calls in %ld rounds\n", parts[part].name, counted, rounds);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv) {
    long time = argc > 1 ? atol(argv[1]) : 200;
    if (argc > 3) return run(atoi(argv[2]), time), 0;
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++)
        if ((argc < 3 || !strcmp(argv[2], parts[part].name)) && supervise(part, time, argv[0]) == 77) return 77;
    return 0;
}
