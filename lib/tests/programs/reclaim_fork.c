/* Forks while memory is given back in a tight loop. Threads build up and drain, start and end; each child checks what it inherited,
 * allocates, frees, purges, starts threads, forks again.
 * Usage: reclaim_fork SEED FORKS main|handler|clone|return
 *   handler  the fork is in a signal handler that has interrupted malloc or free, the child ends in it
 *   return   the same, but the child returns from the handler and goes on */
#include "reclaim.h"
#include <sys/time.h>

enum { WORKERS = 3, OWN = 2000, SHARED = 500, BATCH = 1500 };
static block own[OWN]; /* of the main thread, unchanged after the start */
static block zeroed[64];
static _Atomic(block *) shared[SHARED];
static atomic_bool stop;
static atomic_int forked;
static int failed, hung;
static char mode;
static bool is_child;

static void *work(void *number) {
    uint64_t state = seed * 100 + (uintptr_t)number;
    block *batch = calloc(BATCH, sizeof *batch);
    for (int round = 0; round < 6 && !stop; round++) {
        fill(batch, BATCH, some_size, &state);
        thin(batch, BATCH, 20, &state);
        for (int i = 0; i < 50; i++) {
            block *b = malloc(sizeof *b);
            if (!make(b, some_size(&state), &state)) WRONG("no memory");
            b = atomic_exchange(&shared[next(&state) % SHARED], b);
            if (b) drop(b), free(b);
        }
        check(batch, BATCH);
        clear(batch, BATCH);
    }
    free(batch);
    return NULL;
}
static void *respawn(void *number) {
    for (uintptr_t i = 0; !stop; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)((uintptr_t)number * 1000 + i))) continue;
        pthread_join(thread, NULL);
    }
    return NULL;
}
static void *purge_always(void *unused) {
    while (!stop) purge();
    return unused;
}

static void wait_for(pid_t pid) {
    int status;
    for (int i = 0; i < 60000; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            if (status) failed++, fprintf(stderr, "child %d ended with %x\n", pid, status);
            return;
        }
        nap(1);
    }
    hung++;
    if (getenv("RECLAIM_ABORT")) fprintf(stderr, "child %d hangs\n", pid), pause();
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
}

/* In a child, where everything is as in any process again. */
static void child(int depth) {
    uint64_t state = seed + forked * 7;
    check(own, OWN);
    for (int i = 0; i < 64; i++) all_zero(&zeroed[i]);
    thin(own, OWN, 20, &state); /* pages that have survivors of the parent */
    purge();
    check(own, OWN);
    static block batch[BATCH];
    for (int round = 0; round < 2; round++) {
        fill(batch, BATCH, some_size, &state);
        thin(batch, BATCH, 10, &state);
        purge();
        check(batch, BATCH), check(own, OWN);
        clear(batch, BATCH);
    }
    if (depth == 0 && mode != 'c') {
        stop = false;
        pthread_t threads[2];
        for (uintptr_t i = 0; i < 2; i++)
            if (pthread_create(&threads[i], NULL, i ? purge_always : work, (void *)i)) WRONG("no thread");
        pthread_join(threads[0], NULL);
        pid_t pid = fork();
        if (pid == 0) alarm(50), child(1);
        int status;
        if (waitpid(pid, &status, 0) != pid || status) WRONG("grandchild ended with %x", status);
        stop = true;
        pthread_join(threads[1], NULL);
    }
    clear(own, OWN);
    _exit(0);
}
/* In a child in a handler that has interrupted the allocator: no promise but that some small blocks are to be had. */
static void small_child(void) {
    for (int i = 0; i < 100; i++) {
        block b;
        uint64_t state = i;
        if (make(&b, 500, &state)) drop(&b);
    }
    check(own, OWN);
    _exit(0);
}
static void fork_once(void) {
    pid_t pid = mode == 'c' ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    forked++;
    if (pid == 0) {
        alarm(50);
        if (mode == 'h') small_child();
        if (mode == 'r') {
            is_child = true;
            return;
        }
        child(0);
    }
    wait_for(pid);
}
static void on_alarm(int signal) { (void)signal, fork_once(); }

int main(int count, char **arguments) {
    CHECK(count == 4);
    seed = strtoull(arguments[1], NULL, 0);
    int forks = atoi(arguments[2]);
    mode = arguments[3][0];
    uint64_t state = seed;
    fill(own, OWN, some_size, &state);
    for (int i = 0; i < 64; i++) zeroed[i] = (block){calloc(1, 3000 + i * 100), 0, 3000 + i * 100};
    pthread_t threads[WORKERS + 1];
    sigset_t alarms;
    sigemptyset(&alarms), sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL); /* for this thread only */
    for (uintptr_t i = 0; i < WORKERS; i++) CHECK(!pthread_create(&threads[i], NULL, respawn, (void *)(i + 1)));
    CHECK(!pthread_create(&threads[WORKERS], NULL, purge_always, NULL));
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    if (mode == 'h' || mode == 'r') {
        sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL);
        static block mine[200];
        for (int seen = 0; seen < forks; seen++) {
            struct itimerval soon = {{0, 0}, {0, 300 + next(&state) % 3000}};
            setitimer(ITIMER_REAL, &soon, NULL);
            while (forked <= seen && !is_child) {
                block *b = &mine[next(&state) % 200];
                if (next(&state) % 50 == 0) purge(); /* the handler may interrupt this, too */
                drop(b);
                make(b, some_size(&state), &state);
            }
            if (is_child) signal(SIGALRM, SIG_DFL), alarm(50), child(0);
        }
    } else
        for (int i = 0; i < forks; i++) fork_once();
    stop = true;
    for (int i = 0; i <= WORKERS; i++) pthread_join(threads[i], NULL);
    check(own, OWN);
    printf("%d forks, %d failed, %d hung\n", forked, failed, hung);
    return failed || hung;
}
