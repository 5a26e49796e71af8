/* 8 million short lives: four threads with two million blocks each, of 16 bytes to 2 KiB, from 24 places in the code and eight calls deep.
   A fixed amount of work, for what watches every call. Prints a sum of what it read back. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, BLOCKS = 2000000, WINDOW = 256, PLACES = 24 };

static __attribute__((noinline)) unsigned char *take(size_t size) {
    unsigned char *block = malloc(size);
    if (!block) abort();
    block[0] = (unsigned char)size;
    block[size - 1] = (unsigned char)(size >> 8);
    return block;
}

#define PLACE(n) \
    static __attribute__((noinline)) unsigned char *place##n(size_t size) { \
        unsigned char *block = take(size); \
        __asm__ volatile("" ::: "memory"); \
        return block; \
    }
PLACE(0) PLACE(1) PLACE(2) PLACE(3) PLACE(4) PLACE(5) PLACE(6) PLACE(7)
PLACE(8) PLACE(9) PLACE(10) PLACE(11) PLACE(12) PLACE(13) PLACE(14) PLACE(15)
PLACE(16) PLACE(17) PLACE(18) PLACE(19) PLACE(20) PLACE(21) PLACE(22) PLACE(23)

static unsigned char *(*const places[PLACES])(size_t) = {
    place0, place1, place2, place3, place4, place5, place6, place7, place8, place9, place10, place11,
    place12, place13, place14, place15, place16, place17, place18, place19, place20, place21, place22, place23,
};

static __attribute__((noinline)) unsigned char *deep(int depth, unsigned place, size_t size) {
    unsigned char *block = depth ? deep(depth - 1, place, size) : places[place](size);
    __asm__ volatile("" ::: "memory");
    return block;
}

static void *work(void *number) {
    uint64_t random = (uintptr_t)number * 0x9E3779B97F4A7C15u + 1, sum = 0;
    unsigned char *window[WINDOW] = {0};
    for (int i = 0; i < BLOCKS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned char **slot = &window[(random >> 33) % WINDOW];
        if (*slot) sum += (*slot)[0];
        free(*slot);
        /* Small ones are many. */
        size_t size = 16 + ((random >> 41) % 2033 >> (random >> 60) % 5);
        *slot = deep(5, (random >> 52) % PLACES, size);
    }
    for (int i = 0; i < WINDOW; i++) {
        if (window[i]) sum += window[i][0];
        free(window[i]);
    }
    return (void *)(uintptr_t)sum;
}

int main(void) {
    pthread_t threads[THREADS];
    uint64_t sum = 0;
    for (uintptr_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, work, (void *)i)) abort();
    }
    for (int i = 0; i < THREADS; i++) {
        void *part;
        pthread_join(threads[i], &part);
        sum += (uintptr_t)part;
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
