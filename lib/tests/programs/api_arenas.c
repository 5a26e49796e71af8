/* Arenas: reserved memory and memory of the program's. Each line of output is a broken promise. With "closed" nothing may be asked of
 * the system any more. */
#include <mimalloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))

enum { KIB = 1 << 10, MIB = 1 << 20 };
typedef mi_arena_id_t Id;

static char text[20000];
static void keep(const char *msg, void *arg) { strcat(arg, msg); }

static char *map(size_t size, int access) {
    char *p = mmap(NULL, size, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Blocks of all sizes until `most` of them are in the arena, with stamps, freed by another thread. */
static void *free_all(void *blocks) {
    for (char **p = blocks; *p; p++) {
        CHECK(**p == (char)(uintptr_t)*p >> 4);
        mi_free(*p);
    }
    return NULL;
}

/* Take all other memory that is at hand, in large pieces. */
static void *hogs[20000];
static int hog(Id id) {
    static void *inside[1000];
    int count = 0, found = 0;
    for (size_t size = 4 * MIB; size >= 576 * KIB; size = size > MIB ? size / 2 : size - 64 * KIB)
        for (void *p; count < 20000 && found < 1000 && (p = mi_malloc(size));)
            if (mi_arena_contains(id, p)) inside[found++] = p;
            else hogs[count++] = p;
    while (found) mi_free(inside[--found]);
    return count;
}

static int use(Id id, int most, size_t largest) {
    static char *blocks[20001];
    mi_option_enable(mi_option_disallow_os_alloc);
    int hogged = hog(id);
    int count = 0, inside = 0;
    uint64_t random = 88172645463325252;
    while (count < 20000 && inside < most) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        size_t size = 1 + random % largest;
        char *p = blocks[count] = mi_malloc(size);
        if (!p) break;
        count++;
        memset(p, 0, size);
        *p = (char)(uintptr_t)p >> 4;
        if (mi_arena_contains(id, p)) {
            inside++;
            CHECK(mi_is_in_heap_region(p) && mi_usable_size(p) >= size && mi_arena_contains(id, p + size - 1));
        }
        if (count % 3 == 0 && (p = mi_realloc(p, size * 2))) {
            blocks[count - 1] = p;
            *p = (char)(uintptr_t)p >> 4;
        }
    }
    blocks[count] = NULL;
    pthread_t thread;
    if (pthread_create(&thread, NULL, free_all, blocks) == 0) pthread_join(thread, NULL);
    else free_all(blocks); /* a thread takes memory, too */
    while (hogged) mi_free(hogs[--hogged]);
    mi_option_disable(mi_option_disallow_os_alloc);
    mi_collect(true);
    return inside;
}

static void at_the_start(void) {
    size_t size;
    Id first = (Id)1;
    char *area = mi_arena_area(first, &size);
    CHECK(area && size == 40 * MIB && (uintptr_t)area % mi_arena_min_alignment() == 0);
    CHECK(mi_arena_contains(first, area) && mi_arena_contains(first, area + size - 1));
    CHECK(!mi_arena_contains(first, area - 1) && !mi_arena_contains(first, area + size));
    CHECK(mi_arena_area(NULL, &size) == NULL && size == 0 && mi_arena_area((Id)99, NULL) == NULL);
    CHECK(!mi_arena_contains(NULL, area) && !mi_arena_contains((Id)~0ul, area));
}

static void closed(void) {
    /* What there is can be had, and no more. */
    void *blocks[64];
    int count = 0;
    size_t size;
    while (count < 64 && (blocks[count] = mi_malloc(MIB))) CHECK(mi_arena_contains((Id)1, blocks[count])), count++;
    CHECK(count > 20 && count < 40 && mi_malloc(30 * MIB) == NULL);
    while (count) mi_free(blocks[--count]);
    CHECK(use((Id)1, 500, 3000) == 500);
    void *p = mi_malloc(100 * MIB);
    CHECK(p && !mi_arena_contains((Id)1, p));
    mi_free(p);
    (void)size;
}

static void exclusive_ones_are_left_alone(void) {
    Id id = NULL;
    CHECK(mi_reserve_os_memory_ex(3 * MIB + 1, true, true, true, &id) == 0 && id);
    size_t size;
    CHECK(mi_arena_area(id, &size) && size == 3 * MIB + mi_arena_min_size());
    CHECK(use(id, 1, 20000) == 0);
    CHECK(mi_reserve_os_memory_ex(SIZE_MAX, true, false, false, &id) != 0 && !id);
}

static void memory_of_the_program(void) {
    size_t const size = 8 * MIB;
    char *memory = map(size, PROT_READ | PROT_WRITE);
    Id id = NULL;
    /* From a place that is no multiple of anything. */
    CHECK(mi_manage_os_memory_ex(memory + 100, size - 300, true, true, true, -1, false, &id) && id);
    size_t managed;
    char *area = mi_arena_area(id, &managed);
    CHECK(area > memory && area + managed <= memory + size - 200 && managed >= size - 3 * mi_arena_min_size());
    CHECK(!mi_manage_os_memory(area, managed, true, true, true, -1));
    CHECK(!mi_manage_os_memory(memory, 1000, true, true, true, -1) && !mi_manage_os_memory(NULL, size, true, true, true, -1));
    char *ours = mi_malloc(3 * MIB);
    CHECK(!mi_manage_os_memory(ours, 2 * MIB, true, true, true, -1));
    mi_free(ours);
    for (int i = 0; i < 5; i++) {
        CHECK(use(id, 300, 3000) > 100);
        CHECK(use(id, 300, 12 * KIB) > 10);
    }
    /* Large ones, growing, zeroed and aligned, until there are no more. */
    char *large = mi_zalloc(2 * MIB), *aligned = mi_malloc_aligned(MIB, MIB);
    CHECK(large && aligned && (uintptr_t)aligned % MIB == 0);
    for (int i = 0; i < 2 * MIB; i += 512) CHECK(large[i] == 0);
    memset(large, 1, 2 * MIB);
    large = mi_realloc(large, 4 * MIB);
    CHECK(large[0] == 1 && large[2 * MIB - 1] == 1);
    mi_free(large), mi_free(aligned);
    /* A child uses it, too. */
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) _exit(use(id, 100, 3000) < 50);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    /* Only if named. */
    mi_option_enable(mi_option_disallow_arena_alloc);
    CHECK(use(id, 1, 2 * MIB) <= 1);
    mi_option_disable(mi_option_disallow_arena_alloc);
}

static int calls, refuse;
static char *usable;
static bool commit(bool on, void *start, size_t size, bool *is_zero, void *arg) {
    CHECK(on && arg == &calls && size % mi_arena_min_size() == 0 && !*is_zero);
    calls++;
    return !refuse && mprotect(start, size, PROT_READ | PROT_WRITE) == 0;
}

static void memory_that_is_made_usable(void) {
    size_t const size = 16 * MIB;
    Id id = NULL;
    usable = map(size, PROT_NONE);
    CHECK(mi_manage_memory(usable, size, false, false, true, 0, false, commit, &calls, &id) && calls == 0);
    CHECK(use(id, 200, 100 * KIB) > 20 && calls > 0);
    int before = calls;
    CHECK(use(id, 200, 100 * KIB) > 20);
    CHECK(calls - before < before); /* what is usable stays so */
    refuse = 1;
    void *p = mi_malloc(9 * MIB); /* not there, then */
    CHECK(p == NULL || !mi_arena_contains(id, p));
    mi_free(p);
    refuse = 0;
    /* Without a function, access is given at once. */
    char *other = map(4 * MIB, PROT_NONE);
    CHECK(mi_manage_os_memory_ex(other, 4 * MIB, false, false, true, -1, false, &id));
    CHECK(use(id, 10, 20000) > 5);
}

static void many(void) {
    int made = 0;
    char *memory = map(200 * 128 * KIB, PROT_READ | PROT_WRITE);
    for (int i = 0; i < 200; i++) {
        Id id = NULL;
        bool done = i % 2 ? mi_manage_os_memory_ex(memory + i * 128 * KIB, 128 * KIB, true, true, true, -1, false, &id)
                          : mi_reserve_os_memory_ex(64 * KIB, true, false, i % 3 == 0, &id) == 0;
        CHECK(done == (id != NULL));
        made += done;
        if (done && i % 2) CHECK(mi_arena_area(id, NULL) >= (void *)memory);
    }
    CHECK(made > 150 && made < 160);
    use(NULL, 5000, 2000);
}

static void huge_pages(void) {
    size_t had = 7;
    Id id = &had;
    /* There are hardly so many anywhere. */
    CHECK(mi_reserve_huge_os_pages_interleave(100000, 0, 10) != 0);
    CHECK(mi_reserve_huge_os_pages(100000, 1.0, &had) != 0 && had < 100000);
    int status = mi_reserve_huge_os_pages_at_ex(1, 0, 10, true, &id);
    CHECK(status == 0 ? mi_arena_area(id, NULL) != NULL : id == NULL);
    CHECK(mi_reserve_huge_os_pages_at(0, 0, 10) == 0);
}

int main(int count, char **arguments) {
    (void)arguments;
    at_the_start();
    if (count > 1) return closed(), broken;
    exclusive_ones_are_left_alone();
    memory_of_the_program();
    memory_that_is_made_usable();
    CHECK(mi_reserve_os_memory(MIB, false, false) == 0);
    huge_pages();
    mi_register_output(keep, text);
    mi_arenas_print();
    mi_debug_show_arenas();
    CHECK(strstr(text, "arena 1: 0x") && strstr(text, "40960 KiB") && strstr(text, "exclusive") && strstr(text, "node 0"));
    many();
    return broken;
}
