/* A sandbox refuses membarrier: stealing takes what it can without it, and nothing breaks. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int stop;

static void *work(void *number) {
    unsigned char *blocks[64] = {0};
    for (size_t i = (size_t)number; !atomic_load(&stop); i++) {
        unsigned char **block = &blocks[i * 7 % 64];
        if (*block && ((*block)[0] != i * 7 % 64 || (*block)[99] != (size_t)number)) abort();
        free(*block);
        *block = malloc(100 + i % 900);
        (*block)[0] = i * 7 % 64, (*block)[99] = (size_t)number;
    }
    for (int i = 0; i < 64; i++) free(blocks[i]);
    return NULL;
}

int main(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 2;
    if (syscall(SYS_membarrier, 0, 0) != -1 || errno != EPERM) return 3;
    void (*collect)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "mi_collect");
    if (!collect) return 4;
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 3000; i++) collect(1);
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    puts("fine");
    return 0;
}
