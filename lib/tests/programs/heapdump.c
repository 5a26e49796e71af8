/* Dumps and snapshots of a heap whose truth is written beside them. Arguments: what to do, and a folder. Each line of output is a
 * broken promise. */
#define _GNU_SOURCE
#include <mimalloc-stats.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s (errno %d)\n", __LINE__, #x, errno)))
static unsigned next(unsigned *state) { return *state = *state * 1664525 + 1013904223, *state >> 8; }
static unsigned some_size(unsigned *s) { return 1 + next(s) % (next(s) % 40 ? 1500 : next(s) % 20 ? 60000 : 1500000); }

static const char *folder;
static const char *in_folder(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}
static void put(const char *name, const char *text, size_t length) {
    int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    while (length) {
        ssize_t n = write(fd, text, length);
        if (n <= 0) abort();
        text += n, length -= n;
    }
    close(fd);
}

/* The truth, in memory that is not of the heap: what is live and what was freed, in which heap. */
typedef struct { void *block; size_t size, heap; int live; } entry_t;
enum { THREADS = 4, EACH = 2500, ALL = (THREADS + 1) * EACH };
static entry_t *entries;
static mi_heap_t *heaps[4];
static pthread_barrier_t barrier;

static void fill(int part, unsigned seed) {
    entry_t *mine = entries + part * EACH;
    for (int i = 0; i < EACH; i++) {
        mi_heap_t *heap = heaps[next(&seed) % 4];
        if (heap == heaps[3] && next(&seed) % 4) heap = heaps[0];
        unsigned n = heap == heaps[3] ? 1 + next(&seed) % 5000 : some_size(&seed);
        void *p = next(&seed) % 10 ? mi_heap_malloc(heap, n) : mi_heap_malloc_aligned(heap, n, 64);
        if (!p) abort();
        mine[i] = (entry_t){p, mi_usable_size(p), mi_heap_get_seq(heap), 1};
    }
    for (int i = 0; i < EACH; i++)
        if (next(&seed) % 3 == 0) mi_free(mine[i].block), mine[i].live = 0;
}
static void *worker(void *arg) {
    fill((int)(size_t)arg, 100 + (unsigned)(size_t)arg);
    pthread_barrier_wait(&barrier); /* the caches are full of freed blocks */
    pthread_barrier_wait(&barrier);
    return NULL;
}

static struct { size_t blocks, bytes; } seen;
static bool count(const mi_heap_t *heap, const mi_heap_area_t *area, void *block, size_t size, void *arg) {
    (void)heap, (void)area, (void)arg;
    if (block) seen.blocks++, seen.bytes += size;
    return true;
}
static bool count_heap(mi_heap_t *heap, void *arg) { return mi_heap_visit_blocks(heap, true, count, arg); }

static void shadow(void) {
    entries = mmap(NULL, ALL * sizeof *entries, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t room = 8 << 20, used = 0;
    char *text = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mi_arena_id_t arena;
    CHECK(!mi_reserve_os_memory_ex(64 << 20, true, false, true, &arena));
    heaps[0] = mi_heap_main(), heaps[1] = mi_heap_new(), heaps[2] = mi_heap_new(), heaps[3] = mi_heap_new_in_arena(arena);
    CHECK(mi_heap_get_seq(heaps[0]) == 0 && mi_heap_get_seq(heaps[2]) == mi_heap_get_seq(heaps[1]) + 1);
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, (void *)i);
    fill(THREADS, 9);
    pthread_barrier_wait(&barrier);
    mi_heap_delete(heaps[1]); /* its blocks are the main heap's now */
    size_t deleted = mi_heap_get_seq(heaps[2]) - 1;
    for (int i = 0; i < ALL; i++)
        if (entries[i].heap == deleted) entries[i].heap = 0;
    mi_subproc_visit_heaps(mi_subproc_main(), count_heap, NULL);
    used += snprintf(text + used, room - used, "total %zu %zu\n", seen.blocks, seen.bytes);
    for (int i = 0; i < ALL; i++)
        used += snprintf(text + used, room - used, "%s %zu %zu %zu\n", entries[i].live ? "live" : "freed",
                         (size_t)entries[i].block, entries[i].size, entries[i].heap);
    put("truth", text, used);
    CHECK(!mi_heap_snapshot_to_file(in_folder("v1"), 0));
    CHECK(!mi_heap_snapshot_to_file(in_folder("v1b"), MI_SNAPSHOT_BLOCKS));
    CHECK(!mi_heap_snapshot_to_file(in_folder("v2"), MI_SNAPSHOT_V2));
    int fd = open(in_folder("v2b"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(!mi_heap_snapshot(fd, MI_SNAPSHOT_BLOCKS | MI_SNAPSHOT_V2));
    close(fd);
    char *pages = mi_heap_dump_json(false, false), *json = mi_heap_dump_json(true, false);
    char *hashed = mi_heap_dump_json_ex(true, true, 5), *again = mi_heap_dump_json_ex(true, true, 0);
    CHECK(pages && json && hashed && again && strcmp(hashed, again));
    put("pages.json", pages, strlen(pages)), put("json", json, strlen(json)), put("hashed", hashed, strlen(hashed));
    mi_free(pages), mi_free(json), mi_free(hashed), mi_free(again);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* Snapshots in a loop beside threads that allocate, purge and fork. Blocks that stay are in each. */
enum { STAY = 4000, SHARED = 3000, ROUNDS = 6 };
static void *stay[STAY];
static _Atomic(void *) shared[SHARED];
static atomic_int stop;
static void *churn(void *arg) {
    unsigned state = (unsigned)(size_t)arg;
    mi_heap_t *own = NULL;
    while (!stop) {
        unsigned n = some_size(&state);
        void *p = own && next(&state) % 2 ? mi_heap_malloc(own, n) : malloc(n);
        p = atomic_exchange(&shared[next(&state) % SHARED], p);
        if (p) free(p);
        if (next(&state) % 3000 == 0) {
            if (own) mi_heap_delete(own);
            own = own ? NULL : mi_heap_new();
        }
    }
    if (own) mi_heap_delete(own);
    return NULL;
}
static void *purge(void *arg) {
    while (!stop) mi_purge_all(true), usleep(20000);
    return arg;
}
static void *fork_often(void *arg) {
    while (!stop) {
        pid_t child = fork();
        if (!child) {
            int fd = open("/dev/null", O_WRONLY);
            int bad = mi_heap_snapshot(fd, MI_SNAPSHOT_BLOCKS | MI_SNAPSHOT_V2);
            char *json = mi_heap_dump_json(false, true);
            _exit(bad || !json || !strstr(json, "\"complete\": true"));
        }
        int status = 1;
        if (waitpid(child, &status, 0) != child || status) broken = 1, printf("a child ended with %d\n", status);
        usleep(10000);
    }
    return arg;
}
static void storm(void) {
    unsigned seed = 3;
    char text[STAY * 24];
    size_t used = 0;
    for (int i = 0; i < STAY; i++) {
        void *gone = malloc(some_size(&seed));
        stay[i] = malloc(some_size(&seed));
        free(gone);
        used += sprintf(text + used, "%zu\n", (size_t)stay[i]);
    }
    put("truth", text, used);
    pthread_t threads[10];
    for (size_t i = 0; i < 8; i++) pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    pthread_create(&threads[8], NULL, purge, NULL), pthread_create(&threads[9], NULL, fork_often, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        char name[32];
        sprintf(name, "storm.%d", round);
        CHECK(!mi_heap_snapshot_to_file(in_folder(name), MI_SNAPSHOT_BLOCKS | (round % 2 ? MI_SNAPSHOT_V2 : 0)));
        char *json = mi_heap_dump_json(round % 2, round % 3);
        CHECK(json && strstr(json, "\"complete\": true, \"skipped_pages\": 0, \"busy_theaps\": 0 }\n"));
        mi_free(json);
    }
    stop = 1;
    for (int i = 0; i < 10; i++) pthread_join(threads[i], NULL);
}

/* What cannot be written is -1 with errno, and the process goes on. */
static int fails_with(int result) { return result == -1 ? errno : 0; }
static void *read_slowly(void *fd) {
    char buffer[1000];
    size_t sum = 0;
    for (ssize_t n; (n = read((int)(size_t)fd, buffer, sizeof buffer)) > 0; sum += n) usleep(300);
    return (void *)sum;
}
static void refused(void) {
    void *blocks[4000];
    for (int i = 0; i < 4000; i++) blocks[i] = malloc(3000);
    for (unsigned flags = 0; flags < 4; flags++) {
        CHECK(fails_with(mi_heap_snapshot(-1, flags)) == EBADF && fails_with(mi_heap_snapshot(1000, flags)) == EBADF);
        int fd = open("/dev/null", O_RDONLY);
        CHECK(fails_with(mi_heap_snapshot(fd, flags)) == EBADF);
        close(fd), fd = open("/dev/full", O_WRONLY);
        CHECK(fails_with(mi_heap_snapshot(fd, flags)) == ENOSPC);
        close(fd);
        CHECK(fails_with(mi_heap_snapshot_to_file("/dev/full", flags)) == ENOSPC);
        int ends[2];
        CHECK(!pipe(ends) && !close(ends[0]));
        CHECK(fails_with(mi_heap_snapshot(ends[1], flags)) == EPIPE); /* SIGPIPE has its default action */
        close(ends[1]);
        /* One that does not block is waited for. */
        CHECK(!pipe2(ends, O_NONBLOCK) && !fcntl(ends[0], F_SETFL, 0) && fcntl(ends[1], F_SETPIPE_SZ, 4096) == 4096);
        pthread_t reader;
        pthread_create(&reader, NULL, read_slowly, (void *)(size_t)ends[0]);
        CHECK(!mi_heap_snapshot(ends[1], flags));
        close(ends[1]);
        void *sum;
        pthread_join(reader, &sum), close(ends[0]);
        CHECK((size_t)sum > 8192);
    }
    CHECK(fails_with(mi_heap_snapshot(1, 4)) == EINVAL && fails_with(mi_heap_snapshot_to_file(NULL, 0)) == EINVAL);
    CHECK(fails_with(mi_heap_snapshot_to_file(in_folder("no/x/y"), 0)) == ENOENT);
    put("kept", "before", 6);
    struct rlimit limit = {4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK(fails_with(mi_heap_snapshot_to_file(in_folder("kept"), 0)) == EFBIG); /* and no SIGXFSZ */
    CHECK(access(in_folder("kept.tmp"), F_OK));
    char text[10] = "";
    int fd = open(in_folder("kept"), O_RDONLY);
    CHECK(read(fd, text, 9) == 6 && !strcmp(text, "before"));
    close(fd);
    sigset_t waiting;
    CHECK(!sigpending(&waiting) && !sigismember(&waiting, SIGXFSZ) && !sigismember(&waiting, SIGPIPE));
    for (int i = 0; i < 4000; i++) free(blocks[i]);
}

/* In a signal handler that may have interrupted anything. */
static atomic_int handled, incomplete;
static void handler(int signal) {
    (void)signal;
    int before = errno;
    int fd = open("/dev/null", O_WRONLY);
    if (mi_heap_snapshot(fd, handled & 3)) abort();
    close(fd);
    char *json = mi_heap_dump_json(true, false);
    if (json && !strstr(json, "\"complete\": true")) incomplete++;
    mi_free(json);
    handled++, errno = before;
}
static void *make_noise(void *arg) {
    unsigned state = 77;
    while (!stop) free(malloc(some_size(&state)));
    return arg;
}
static void interrupted(void) {
    pthread_t noise;
    sigset_t alarm;
    sigemptyset(&alarm), sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    pthread_create(&noise, NULL, make_noise, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    signal(SIGALRM, handler);
    struct itimerval often = {{0, 3000}, {0, 3000}};
    setitimer(ITIMER_REAL, &often, NULL);
    unsigned state = 5;
    static void *blocks[3000];
    while (handled < 300) {
        int at = next(&state) % 3000;
        free(blocks[at]);
        blocks[at] = malloc(some_size(&state));
    }
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    stop = 1;
    pthread_join(noise, NULL);
    for (int i = 0; i < 3000; i++) free(blocks[i]);
}

int main(int count, char **arguments) {
    static char out[4096];
    setvbuf(stdout, out, _IOFBF, sizeof out);
    folder = count > 2 ? arguments[2] : ".";
    const char *what = count > 1 ? arguments[1] : "";
    if (!strcmp(what, "shadow")) shadow();
    if (!strcmp(what, "storm")) storm();
    if (!strcmp(what, "refused")) refused();
    if (!strcmp(what, "interrupted")) interrupted();
    if (!strcmp(what, "exit")) {
        static void *kept[100];
        for (int i = 0; i < 100; i++) kept[i] = malloc(7000);
        if (chdir("/")) abort(); /* relative names are those of the start */
        if (!fork()) exit(0); /* writes its own, or none */
        wait(NULL);
        if (!vfork()) _exit(0); /* writes nothing */
        wait(NULL);
        if (count > 3) _exit(0);
    }
    return broken;
}
