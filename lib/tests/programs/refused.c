/* What the kernel refuses. Usage: refused advice|memory|everything. Each line of output is a broken promise. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s (errno %d)\n", __LINE__, #x, errno)))

/* These system calls do this from now on. */
static void answer(const int *calls, int count, unsigned action) {
    struct sock_filter code[40] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    int n = 1;
    for (int i = 0; i < count; i++) code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], count - i, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    struct sock_fprog filter = {n, code};
    CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
}

static void sizes(void) {
    for (size_t size = 1; size < 200 << 20; size = size * 3 + 1) {
        char *p = malloc(size);
        CHECK(p);
        if (p) p[0] = p[size - 1] = 1;
        errno = 77, free(p);
        CHECK(errno == 77);
        p = calloc(1, size);
        CHECK(p && p[0] == 0 && p[size - 1] == 0 && p[size / 2] == 0);
        free(p);
    }
}

/* Memory that could not be given back is not taken for zero. */
static void without_advice(void) {
    static const int calls[] = {SYS_madvise, SYS_mremap, SYS_mprotect, SYS_mbind, SYS_membarrier};
    answer(calls, 5, SECCOMP_RET_ERRNO | EPERM);
    sizes();
    for (int round = 0; round < 3; round++) {
        size_t size = 40 << 20;
        char *p = malloc(size);
        memset(p, 0xff, size);
        errno = 77, free(p);
        CHECK(errno == 77);
        p = calloc(1, size);
        for (size_t k = 0; k < size; k += 512) CHECK(p[k] == 0);
        p = realloc(p, size * 2), CHECK(p && p[size - 1] == 0);
        free(p);
    }
    sizes();
}

/* No more memory: NULL and ENOMEM, what is there stays, and blocks that come back serve again. */
static void without_memory(void) {
    static const int calls[] = {SYS_mmap, SYS_mremap, SYS_brk};
    answer(calls, 3, SECCOMP_RET_ERRNO | ENOMEM);
    static char *blocks[1 << 20];
    int n = 0;
    while (n < 1 << 20 && (blocks[n] = malloc(3000))) memset(blocks[n], n, 3000), n++;
    CHECK(n > 100 && n < 1 << 20 && errno == ENOMEM);
    CHECK(!malloc(1 << 20) && errno == ENOMEM);
    CHECK(!calloc(1, 100 << 20) && errno == ENOMEM);
    char *p = blocks[0];
    CHECK(!realloc(p, 100 << 20) && errno == ENOMEM && p[2999] == 0);
    void *out = &n;
    CHECK(posix_memalign(&out, 1 << 20, 1 << 20) == ENOMEM && out == &n);
    for (int i = 0; i < n; i++) CHECK(blocks[i][0] == (char)i && blocks[i][2999] == (char)i);
    for (int i = 0; i < n; i++) free(blocks[i]);
    int again = 0;
    while (again < n && (blocks[again] = malloc(3000))) again++;
    CHECK(again > n * 9 / 10);
    for (int i = 0; i < again; i++) free(blocks[i]);
    CHECK((p = malloc(200000)) != NULL), free(p); /* from what the small ones have left */
}

/* A loop of single blocks asks the kernel for nothing. */
static void in_peace(void) {
    static const int calls[] = {SYS_mmap, SYS_munmap, SYS_madvise, SYS_mprotect, SYS_mremap, SYS_brk, SYS_futex, SYS_membarrier};
    static const size_t sizes[] = {64, 4096, 20000, 100000, 700000};
    for (int warm = 0; warm < 2; warm++) {
        for (int i = 0; i < 5; i++)
            for (int k = 0; k < 200000 / 5; k++) {
                char *volatile p = malloc(sizes[i]), *volatile q = malloc(sizes[i]);
                *p = *q = 1;
                free(p), free(q);
            }
        if (!warm) answer(calls, 8, SECCOMP_RET_KILL_PROCESS);
    }
}

int main(int argc, char **argv) {
    setvbuf(stdout, malloc(4096), _IOLBF, 4096);
    switch (argv[1][0]) {
    case 'a': without_advice(); break;
    case 'm': without_memory(); break;
    case 'e': in_peace(); break;
    }
    fflush(stdout);
    _exit(broken);
}
