/* What the return of memory takes to be true of memory, of locked pages, of its own thread. Usage: reclaim_truths
 *   outside  small arenas outside the window: nothing behind their ends is looked at, also not in a forked child
 *   split    free memory of which a part was given back is given back as a whole, wherever it is cut
 *   counted  slabs that were given back in part are not taken to read zero
 *   locked   pages that the kernel does not take keep back no others
 *   last     the main thread ends, then the last worker: exit handlers have a stack and signals as in any thread
 *   quiet    who sleeps, sleeps */
#include "reclaim.h"
#include <alloca.h>
#include <sys/mman.h>

#define FUNCTION(result, name, ...)                                                                                       \
    static result (*name)(__VA_ARGS__);                                                                                   \
    __attribute__((constructor)) static void find_##name(void) { name = (__typeof__(name))dlsym(RTLD_DEFAULT, #name); }
FUNCTION(void *, mi_heap_new, void)
FUNCTION(void, mi_heap_delete, void *)
FUNCTION(void *, mi_heap_malloc, void *, size_t)
FUNCTION(bool, mi_manage_os_memory, void *, size_t, bool, bool, bool, int)

/* Everything, and not as one that follows another at once, which leaves alone what was used in between. */
static void purge_all(void) {
    nap(20);
    purge();
}
static void *filled(size_t size) {
    void *p = malloc(size);
    CHECK(p);
    return memset(p, 0xff, size);
}
static unsigned resident_pages(void **blocks, size_t count) {
    unsigned pages = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned char there;
        CHECK(!mincore((void *)((uintptr_t)blocks[i] & -4096ul), 4096, &there));
        pages += there & 1;
    }
    return pages;
}

static void outside(void) {
    static const size_t slices[] = {1, 2, 31, 33, 66, 70, 130};
    static void *p[20000];
    for (int a = 0; a < 7; a++) {
        size_t size = slices[a] << 16;
        char *memory = mmap(NULL, size + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memory = (char *)(((uintptr_t)memory + 65535) & -65536ul);
        CHECK(mi_manage_os_memory(memory, size, true, false, true, -1));
    }
    for (int i = 0; i < 20000; i++) p[i] = filled(1000);
    for (int i = 0; i < 20000; i++)
        if (i % 20) free(p[i]);
    purge_all();
    pid_t pid = fork();
    if (pid == 0) purge_all(), _exit(0);
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    purge_all();
}

static void split(void) {
    enum { SLICES = 64, SLABS = SLICES * 16, MORE = 60 * 16, TAKEN = SLICES * 65536 - 4096 };
    static void *p[SLABS + MORE];
    for (int i = 0; i < SLABS + MORE; i++) p[i] = filled(4096);
    for (int i = 0; i < SLABS; i++)
        if (i % 16) free(p[i]);
    purge_all(); /* the most of these slabs */
    for (int i = 0; i < SLABS; i += 16) free(p[i]);
    for (int i = SLABS; i < SLABS + MORE; i++) free(p[i]);
    mi_collect(false);
    uintptr_t taken = (uintptr_t)malloc(TAKEN); /* a part of what is free */
    purge_all();
    static void *left[SLABS + MORE];
    size_t count = 0;
    for (int i = 0; i < SLABS + MORE; i++)
        if ((uintptr_t)p[i] - taken >= TAKEN) left[count++] = p[i];
    unsigned there = resident_pages(left, count);
    CHECK(count >= MORE - 16);
    if (there > 32) WRONG("%u of %zu free pages are still there", there, count);
}

static void counted(size_t size) {
    enum { HEAPS = 300 };
    static void *heaps[HEAPS], *blocks[HEAPS][64], *before[400];
    unsigned most = 65536 / size;
    for (int i = 0; i < 400; i++) before[i] = filled(16000);
    for (int i = 0; i < HEAPS; i++) {
        CHECK(heaps[i] = mi_heap_new());
        /* The last page of some is in use in a part only. */
        for (unsigned k = 0; k < i % most + 1; k++) memset(blocks[i][k] = mi_heap_malloc(heaps[i], size), 0xff, size);
    }
    purge_all();
    for (int i = 0; i < HEAPS; i++) {
        for (unsigned k = 0; k < i % most + 1; k++) free(blocks[i][k]);
        mi_heap_delete(heaps[i]);
    }
    for (size_t i = 0; i < 600; i++) {
        size_t bytes = 70000 + i * 100;
        block b = {calloc(1, bytes), 0, bytes};
        CHECK(b.at);
        all_zero(&b);
    }
    for (int i = 0; i < 400; i++) free(before[i]);
}

static void locked(void) {
    enum { COUNT = 100000 };
    static void *p[COUNT];
    for (int i = 0; i < COUNT; i++) p[i] = filled(1000);
    long full = status("VmRSS");
    for (int i = 0; i < 3; i++)
        if (mlock((void *)((uintptr_t)p[1000 + i * 5000] & -4096ul), 8 * 4096)) return; /* not permitted here */
    for (int i = 0; i < COUNT; i++)
        if (i % 20) free(p[i]);
    purge_all();
    long left = status("VmRSS");
    if (left * 10 > full * 5) WRONG("%ld of %ld KiB are still there", left, full);
}

static pthread_t worker;
static void deep(void) {
    volatile char *stack = alloca(2 << 20);
    for (int i = (2 << 20) - 1; i > 0; i -= 4096) stack[i] = 1;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    CHECK(!sigismember(&blocked, SIGTERM) && pthread_equal(pthread_self(), worker));
    (void)!write(1, "handled\n", 8);
}
static void *work(void *unused) {
    for (int i = 0; i < 1000; i++) free(malloc(i));
    nap(200);
    return unused;
}

/* Voluntary context switches of all threads but this one. To look at them is to allocate nothing: that would keep them awake. */
static long switches(void) {
    char entries[4096], path[64], text[4096];
    long sum = 0, n;
    int folder = open("/proc/self/task", O_RDONLY);
    while ((n = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
        for (char *at = entries; at < entries + n; at += *(unsigned short *)(at + 16)) {
            int task = atoi(at + 19);
            if (task == 0 || task == getpid()) continue;
            snprintf(path, sizeof path, "/proc/self/task/%d/status", task);
            int file = open(path, O_RDONLY);
            long length = read(file, text, sizeof text - 1);
            close(file);
            if (length <= 0) continue; /* it has ended */
            text[length] = 0;
            sum += atol(strstr(text, "\nvoluntary_ctxt_switches:") + 25);
        }
    close(folder);
    return sum;
}
static void *sleeper(void *unused) {
    free(malloc(100));
    for (;;) pause();
}
static void quiet(bool lock) {
    static void *p[20000];
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, sleeper, NULL));
    for (int i = 0; i < 20000; i++) p[i] = filled(1000);
    if (lock) mlockall(MCL_CURRENT);
    for (int i = 0; i < 20000; i++)
        if (i % 20) free(p[i]);
    long before = -1, same = 0;
    for (int i = 0; i < 80 && same < 8; i++) { /* eight times in a row: longer than its longest rest */
        long n = switches();
        same = n == before ? same + 1 : 0;
        before = n;
        nap(500);
    }
    if (same < 8) WRONG("it still wakes up: %ld times", before);
}

int main(int count, char **arguments) {
    CHECK(count >= 2);
    alarm(120);
    switch (arguments[1][0]) {
    case 'o': outside(); break;
    case 's': split(); break;
    case 'c':
        for (size_t size = 1024; size <= 8192; size *= 2) counted(size), counted(size + 656);
        break;
    case 'q': quiet(count > 2); break;
    case 'l':
        if (arguments[1][1] == 'o') {
            locked();
            break;
        }
        atexit(deep);
        CHECK(!pthread_create(&worker, NULL, work, NULL));
        pthread_exit(NULL);
    }
    return 0;
}
