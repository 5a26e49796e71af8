/* What is said of returned memory is true: what reads zero does, what is the program's stays, and what a heap leaves behind goes. */
#include <mimalloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (void)(printf("line %d: %s\n", __LINE__, #x), exit(1)))
enum { MIB = 1 << 20, PAGE = 4096, SLICE = 1 << 16 };

/* Slabs of which one half was never used, and was given back with its huge page nevertheless. */
static void zeroed(void) {
    enum { HEAPS = 64 };
    mi_heap_t *heaps[HEAPS];
    for (int i = 0; i < 32 * MIB / 8192; i++) memset(mi_malloc(8192), 1, 8192); /* to where pages are huge */
    for (int i = 0; i < HEAPS; i++) {
        heaps[i] = mi_heap_new();
        for (int k = 0; k < 8; k++) memset(mi_heap_malloc(heaps[i], PAGE), 0xaa, PAGE);
    }
    mi_purge_all(true);
    for (int i = 0; i < HEAPS; i++) mi_heap_destroy(heaps[i]);
    for (int i = 0; i < 5000; i++) {
        size_t size = i % 10 == 0 ? 600000 : 16384;
        unsigned char *block = mi_calloc(1, size);
        for (size_t k = 0; k < size; k++) CHECK(block[k] == 0);
    }
}

/* Memory that the program has handed over stays in memory. Its last slices end in the midst of a region. */
static void handed_over(size_t slices) {
    enum { BLOCKS = 4000 };
    char *memory = mmap(NULL, (slices + 1) * SLICE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory = (char *)(((size_t)memory + SLICE - 1) & ~(size_t)(SLICE - 1));
    mi_arena_id_t arena;
    CHECK(mi_manage_os_memory_ex(memory, slices * SLICE, true, false, true, -1, true, &arena));
    mi_heap_t *heap = mi_heap_new_in_arena(arena);
    static char *blocks[BLOCKS];
    static unsigned char there[BLOCKS * 2];
    int count = 0, absent = 0;
    while (count < BLOCKS && (blocks[count] = mi_heap_malloc(heap, PAGE))) memset(blocks[count++], 1, PAGE);
    for (int i = 0; i < count; i++)
        if (i % 8) mi_free(blocks[i]);
    mi_purge_all(true);
    for (int i = 0; i < count; i++) {
        CHECK(mincore(blocks[i], PAGE, there) == 0);
        absent += !(there[0] & 1);
    }
    CHECK(absent == 0);
    mi_heap_destroy(heap);
    mi_purge_all(true);
    for (int i = 0; i < count; i++) CHECK(mincore(blocks[i], PAGE, there) == 0 && there[0] & 1);
}

static long resident(void) {
    long total, pages;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(fscanf(file, "%ld %ld", &total, &pages) == 2);
    return fclose(file), pages * PAGE / MIB;
}
static void *sleeper(void *arg) {
    mi_free(mi_malloc(1));
    pause();
    return arg;
}
static void *passer_by(void *arg) {
    enum { BLOCKS = 3000 };
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) blocks[i] = mi_heap_malloc(arg, 32768), memset(blocks[i], 1, 32768);
    return NULL;
}
/* A heap ends while the thread that gives memory back is asleep. */
static void left_behind(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, sleeper, NULL);
    mi_heap_t *heap = mi_heap_new();
    sleep(2); /* nothing is to be had meanwhile */
    pthread_t other;
    pthread_create(&other, NULL, passer_by, heap);
    pthread_join(other, NULL);
    long before = resident();
    mi_heap_destroy(heap);
    int naps = 0;
    while (naps < 600 && resident() > before - 80) naps++, usleep(50000);
    CHECK(naps < 600);
}

int main(void) {
    left_behind(); /* first: what is used again after it was given back makes debt */
    zeroed();
    handed_over(1000);
    handed_over(37);
    return 0;
}
