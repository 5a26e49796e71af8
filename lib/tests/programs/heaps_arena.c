/* Heaps in arenas: all their memory is there, and nobody else's. Each line of output is a broken promise. */
#include <errno.h>
#include <mimalloc-stats.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))
enum { MIB = 1 << 20, N = 3000 };
static mi_heap_t *heap;
static mi_arena_id_t arena;
static unsigned char *blocks[N];

static void *fill(void *arg) {
    for (int i = (int)(size_t)arg; i < N; i += 2) {
        size_t n = 1 + i * 7 % 5000;
        if (i % 500 == 0) n = 700000;
        blocks[i] = mi_heap_malloc(heap, n);
        if (!blocks[i] || !mi_arena_contains(arena, blocks[i]) || mi_heap_of(blocks[i]) != heap) abort();
        memset(blocks[i], i, n);
        if (i % 3 == 0) mi_free(mi_malloc(n));
    }
    return NULL;
}
static void *empty(void *arg) {
    for (int i = (int)(size_t)arg; i < N; i += 2) {
        if (*blocks[i] != (unsigned char)i) abort();
        blocks[i] = mi_heap_realloc(heap, blocks[i], mi_usable_size(blocks[i]) + 1);
        if (*blocks[i] != (unsigned char)i || !mi_arena_contains(arena, blocks[i])) abort();
        mi_free(blocks[i]);
    }
    return NULL;
}
static void both(void *(*act)(void *), size_t shift) {
    pthread_t t[2];
    for (size_t i = 0; i < 2; i++) pthread_create(&t[i], NULL, act, (void *)((i + shift) % 2));
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
}
static bool count(const mi_heap_t *h, const mi_heap_area_t *area, void *block, size_t size, void *arg) {
    return *(int *)arg += block != NULL, true;
}
static int visited(void) {
    int n = 0;
    CHECK(mi_heap_visit_blocks(heap, true, count, &n));
    return n;
}

static void use(void) {
    heap = mi_heap_new_in_arena(arena);
    CHECK(heap != NULL);
    for (int round = 0; round < 3; round++) {
        both(fill, 0);
        CHECK(visited() == N);
        both(empty, round % 2);
        CHECK(visited() == 0);
    }
    /* to the end of it, and no further */
    int n = 0;
    errno = 0;
    for (void *p; (p = mi_heap_malloc(heap, 300000)); n++)
        if (!mi_arena_contains(arena, p)) abort();
    CHECK(errno == ENOMEM && n > 50 && n < 400);
    for (void *p; (p = mi_heap_malloc(heap, 1000000)); n++)
        if (!mi_arena_contains(arena, p) || n > 1000) abort();
    void *p = mi_malloc(300000);
    CHECK(p && !mi_arena_contains(arena, p)), mi_free(p);
    mi_heap_destroy(heap);
    /* all of it is free again; deleted blocks stay */
    heap = mi_heap_new_in_arena(arena);
    both(fill, 0);
    mi_heap_delete(heap);
    for (int i = 0; i < N; i++) {
        CHECK(*blocks[i] == (unsigned char)i && mi_heap_of(blocks[i]) == mi_heap_main() && mi_arena_contains(arena, blocks[i]));
        mi_free(blocks[i]);
    }
}

int main(void) {
    CHECK(mi_heap_new_in_arena(NULL) == NULL && mi_heap_new_in_arena((mi_arena_id_t)12345) == NULL);
    CHECK(mi_reserve_os_memory_ex(64 * MIB, false, false, true, &arena) == 0);
    use();
    /* memory of the program's, outside of all others */
    char *area = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mi_manage_os_memory_ex(area, 64 * MIB, true, false, true, -1, true, &arena));
    use();
    return broken;
}
