/* What is handed out as zero is zero, and errno stays as it is, while memory is given back all the time.
 * Usage: reclaim_zero SEED SECONDS zero     zeroed blocks of every kind, each filled before it is freed
 *        reclaim_zero SEED TIMES errno [refuse]   drains of 200 MB in a process with one thread; the kernel takes nothing back */
#include "reclaim.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define FUNCTION(result, name, ...)                                                                                       \
    static result (*name)(__VA_ARGS__);                                                                                   \
    __attribute__((constructor)) static void find_##name(void) { name = (__typeof__(name))dlsym(RTLD_DEFAULT, #name); }
FUNCTION(void *, mi_heap_new, void)
FUNCTION(void *, mi_heap_new_in_arena, void *)
FUNCTION(void, mi_heap_delete, void *)
FUNCTION(void, mi_heap_destroy, void *)
FUNCTION(void *, mi_heap_zalloc, void *, size_t)
FUNCTION(void *, mi_heap_zalloc_aligned, void *, size_t, size_t)
FUNCTION(void *, mi_zalloc_aligned, size_t, size_t)
FUNCTION(void *, mi_recalloc, void *, size_t, size_t)
FUNCTION(bool, mi_manage_os_memory_ex, void *, size_t, bool, bool, bool, int, bool, void **)

static atomic_bool stop;
static double end;

static void *purge_always(void *unused) {
    uint64_t state = seed;
    while (!stop) {
        purge();
        nap(next(&state) % 12); /* the next one takes all, or leaves alone what was used in between */
    }
    return unused;
}

/* Every word: what is left over is rarely in those that are easy to see. */
static void zero(const block *b) {
    uint64_t sum = 0;
    for (size_t i = 0; i < words(b); i++) sum |= b->at[i];
    if (sum) all_zero(b);
}
static size_t any_size(uint64_t *state) {
    uint64_t draw = next(state);
    unsigned bits = 4 + (draw >> 40) % 17; /* 16 bytes to 2 MiB, each power of two as often as the next */
    return ((1ul << bits) + draw % (1ul << bits)) & -8ul;
}
static void fill_with_ones(block *b) { memset(b->at, 0xff, b->size); }

enum { COUNT = 800, MOST = 12 << 20 };
static void *work(void *number) {
    uint64_t state = seed * 31 + (uintptr_t)number;
    static __thread block table[COUNT];
    while (now() < end) {
        size_t bytes = 0, used;
        void *heap = mi_heap_new();
        for (used = 0; used < COUNT && bytes < MOST; used++) {
            block *b = &table[used];
            size_t size = any_size(&state), aligned = 16ul << next(&state) % 10;
            unsigned how = next(&state) % 8;
            *b = (block){NULL, how, size};
            if (how < 3) b->at = calloc(1, size);
            else if (how == 3) b->at = mi_zalloc_aligned(size, aligned);
            else if (how < 6) b->at = mi_heap_zalloc(heap, size);
            else if (how == 6) b->at = mi_heap_zalloc_aligned(heap, size, aligned);
            else {
                b->at = calloc(1, size / 3 & -8ul);
                CHECK(b->at);
                b->at = mi_recalloc(b->at, 1, size);
            }
            CHECK(b->at);
            zero(b);
            fill_with_ones(b);
            bytes += size;
        }
        /* In an order of its own; some of those in the heap go with it. */
        bool destroyed = next(&state) % 2;
        for (size_t i = 0; i < used; i++) {
            block *b = &table[i ^ (i + 1 < used && next(&state) % 2)];
            bool in_heap = b->stamp >= 4 && b->stamp <= 6;
            if (b->at && !(in_heap && destroyed && next(&state) % 3)) free(b->at), b->at = NULL;
        }
        for (size_t i = 0; i < used; i++)
            if (table[i].at && !(destroyed && table[i].stamp >= 4 && table[i].stamp <= 6)) free(table[i].at);
        destroyed ? mi_heap_destroy(heap) : mi_heap_delete(heap);
    }
    return NULL;
}
/* Memory of the program's own, which cannot be given back but is cut up and put together. */
static void *in_arenas(void *unused) {
    uint64_t state = seed * 17;
    size_t size = 24 << 20;
    void *id, *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mi_manage_os_memory_ex(memory, size, false, false, true, -1, true, &id));
    static block table[COUNT];
    while (now() < end) {
        void *heap = mi_heap_new_in_arena(id);
        size_t bytes = 0, used;
        for (used = 0; used < COUNT && bytes < MOST / 2; used++) {
            block *b = &table[used];
            *b = (block){NULL, 0, any_size(&state)};
            if (!(b->at = mi_heap_zalloc(heap, b->size))) break; /* it is full */
            zero(b), fill_with_ones(b);
            bytes += b->size;
        }
        if (next(&state) % 2)
            for (size_t i = 0; i < used; i++) free(table[i].at);
        mi_heap_destroy(heap);
    }
    return unused;
}
static void zeroed(double seconds) {
    end = now() + seconds;
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(!pthread_create(&threads[i], NULL, i == 0 ? purge_always : i == 1 ? in_arenas : work, (void *)i));
    for (int i = 1; i < 4; i++) pthread_join(threads[i], NULL);
    stop = true;
    pthread_join(threads[0], NULL);
}

static void refuse(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_madvise, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}
static size_t small(uint64_t *state) { return 16 + next(state) % 1500; }
static size_t large(uint64_t *state) { return 16 + next(state) % 300000; }
static void errno_stays(int times, bool refused) {
    enum { SMALL = 260000, LARGE = 1300 };
    static block blocks[SMALL];
    uint64_t state = seed;
    holes_stats before, after;
    mi_purge_holes_stats_get(&before);
    for (int time = 0; time < times; time++) {
        int count = time % 2 ? LARGE : SMALL;
        for (int i = 0; i < count; i++) {
            blocks[i] = (block){NULL, 1, (count == LARGE ? large : small)(&state)};
            errno = 77;
            CHECK((blocks[i].at = i % 3 ? malloc(blocks[i].size) : calloc(1, blocks[i].size)) && errno == 77);
            memset(blocks[i].at, 1, blocks[i].size);
        }
        for (int i = 0; i < count; i++) {
            if (i % 20 == 0) continue;
            errno = 78;
            free(blocks[i].at);
            CHECK(errno == 78);
        }
        for (int i = 0; i < 3000; i++) {
            if (i % 1000 == 0) nap(110);
            errno = 79;
            free(malloc(i));
            CHECK(errno == 79);
        }
        for (int i = 0; i < count; i += 20) errno = 80, free(blocks[i].at), CHECK(errno == 80);
    }
    mi_purge_holes_stats_get(&after);
    CHECK(after.full_sweeps > before.full_sweeps && tasks() == 1);
    CHECK(refused ? after.purged_bytes_total == 0 : after.purged_bytes_total > 0);
}

int main(int count, char **arguments) {
    CHECK(count >= 4);
    seed = strtoull(arguments[1], NULL, 0);
    alarm(400);
    if (arguments[3][0] == 'z') return zeroed(atof(arguments[2])), 0;
    if (count > 4) refuse();
    return errno_stays(atoi(arguments[2]), count > 4), 0;
}
