/* A thread makes the heap grow all the time while the main thread forks: each child must be able to grow it further. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 400, GROWTH = 17 << 20 };
static atomic_int stop;

/* Never touched, so it costs address space only. */
static void *grow(void *unused) {
    for (int i = 0; i < 1500 && !atomic_load(&stop); i++)
        if (!malloc(GROWTH)) abort();
    return unused;
}

int main(void) {
    int failed = 0, status;
    for (int round = 0; round < 4; round++) {
        pthread_t thread;
        atomic_store(&stop, 0);
        pthread_create(&thread, NULL, grow, NULL);
        for (int i = 0; i < FORKS / 4; i++) {
            pid_t pid = fork();
            if (pid == 0) {
                char *p = malloc(2 * GROWTH);
                if (p) p[0] = p[2 * GROWTH - 1] = 1;
                _exit(!p);
            }
            if (waitpid(pid, &status, 0) != pid || status) failed++;
        }
        atomic_store(&stop, 1);
        pthread_join(thread, NULL);
    }
    printf("%d of %d children failed\n", failed, FORKS);
    return failed != 0;
}
