/* The names of the C library beside malloc. Each line of output is a broken promise. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int broken;
#define CHECK(x) ((x) ? (void)0 : (void)(broken = 1, printf("line %d: %s\n", __LINE__, #x)))

int __posix_memalign(void **, size_t, size_t) __attribute__((weak));
void free_sized(void *, size_t) __attribute__((weak));
void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));

int main(int argc, char **argv) {
    struct mallinfo2 before = mallinfo2();
    void *small = malloc(100000), *large = malloc(10 << 20);
    struct mallinfo2 after = mallinfo2();
    CHECK(after.uordblks - before.uordblks == malloc_usable_size(small));
    CHECK(after.hblkhd - before.hblkhd == malloc_usable_size(large) && after.hblks == before.hblks + 1);
    struct mallinfo old = mallinfo();
    CHECK((size_t)old.uordblks == after.uordblks && (size_t)old.hblkhd == after.hblkhd && old.fordblks == 0);
    CHECK(mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1 && malloc_trim(0) >> 1 == 0);
    CHECK(malloc_info(1, stdout) == -1 && errno == EINVAL);
    char *told = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&told, &size);
    CHECK(malloc_info(0, stream) == 0);
    fclose(stream);
    CHECK(!strncmp(told, "<malloc version=\"", 17) && !strcmp(told + size - 11, "\n</malloc>\n"));
    free(told), free(small), free(large);
    if (argc > 1) malloc_stats(); /* on standard error */
    void *p = NULL;
    CHECK(__posix_memalign && __posix_memalign(&p, 64, 10) == 0), free(p);
    CHECK(free_sized && free_aligned_sized), free_sized(malloc(10), 10), free_aligned_sized(memalign(64, 10), 64, 10);
    return broken;
}
