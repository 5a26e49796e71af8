/* What programs rely on beside getting memory. Each line of output is a broken promise. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cfree(void *) __attribute__((weak)); /* gone from the headers of the C library */

static int broken;
static void check(int holds, const char *what, int line) {
    if (!holds) {
        broken = 1;
        printf("line %d: %s (errno %d)\n", line, what, errno);
    }
}
#define CHECK(x) check((x), #x, __LINE__)
/* Fails with NULL and this errno. */
#define FAILS(x, e) (errno = 0, check((x) == NULL && errno == (e), #x " fails with " #e, __LINE__))

static int aligned(void *p, uintptr_t a) { return p && (uintptr_t)p % a == 0; }

static volatile size_t huge = PTRDIFF_MAX;

int main(void) {
    for (size_t n = 0; n < 5000; n++) {
        char *p = malloc(n);
        CHECK(aligned(p, 16) && malloc_usable_size(p) >= n);
        memset(p, 1, malloc_usable_size(p));
        free(p);
    }
    void *a = malloc(0), *b = malloc(0);
    CHECK(a && b && a != b);
    free(a), cfree ? cfree(b) : free(b), free(NULL);
    CHECK(malloc_usable_size(NULL) == 0);

    FAILS(malloc(huge), ENOMEM);
    FAILS(malloc(huge + 1), ENOMEM);
    FAILS(malloc(SIZE_MAX - 12), ENOMEM);
    FAILS(calloc(huge, 3), ENOMEM);
    FAILS(calloc(huge / 2, 4), ENOMEM);
    FAILS(memalign(4096, ((size_t)1 << 48) + 4096), ENOMEM);
    FAILS(pvalloc(SIZE_MAX), ENOMEM);
    FAILS(aligned_alloc(24, 48), EINVAL);
    FAILS(memalign(((size_t)1 << 63) + 1, 48), EINVAL);

    char *p = realloc(NULL, 0);
    CHECK(p);
    p = realloc(p, 100);
    strcpy(p, "kept");
    FAILS(realloc(p, huge + 1), ENOMEM);
    FAILS(reallocarray(p, huge, 3), ENOMEM);
    CHECK(!strcmp(p, "kept"));
    p = reallocarray(p, 1000, 1000);
    CHECK(p && !strcmp(p, "kept"));
    p = realloc(p, 10);
    CHECK(p && !strcmp(p, "kept") && malloc_usable_size(p) < 100000);
    errno = 77;
    CHECK(realloc(p, 0) == NULL && errno == 77);
    CHECK((p = reallocarray(NULL, 0, 16)) && errno == 77);
    free(p);

    void *out = &broken;
    errno = 77;
    CHECK(posix_memalign(&out, 12, 64) == EINVAL && out == &broken && errno == 77);
    CHECK(posix_memalign(&out, 4, 64) == EINVAL && out == &broken);
    CHECK(posix_memalign(&out, 0, 64) == EINVAL && out == &broken);
    CHECK(posix_memalign(&out, 64, huge) == ENOMEM && out == &broken);
    errno = 77;
    CHECK(posix_memalign(&out, 64, 100) == 0 && aligned(out, 64) && errno == 77);
    free(out);
    for (size_t align = 8; align <= (size_t)1 << 30; align *= 2)
        for (size_t n = 0; n < 100000; n = n * 5 + 1) {
            p = memalign(align, n);
            CHECK(aligned(p, align));
            free(p);
        }
    CHECK(aligned(p = memalign(24, 100), 32)), free(p);
    CHECK(aligned(p = aligned_alloc(64, 65), 64)), free(p);
    CHECK(aligned(p = valloc(1), 4096)), free(p);
    CHECK(aligned(p = pvalloc(1), 4096) && malloc_usable_size(p) >= 4096), free(p);
    CHECK(aligned(p = pvalloc(0), 4096) && malloc_usable_size(p) >= 4096), free(p);

    /* free keeps errno, whatever it has to do */
    static void *blocks[20000];
    for (int i = 0; i < 20000; i++) blocks[i] = malloc(i % 3 ? 64 : 100000);
    errno = 77;
    for (int i = 0; i < 20000; i++) free(blocks[i]);
    CHECK(errno == 77);

    /* what was used before is zeroed by calloc */
    for (size_t n = 1; n < 300000; n = n * 3 + 1)
        for (int i = 0; i < 300; i++) {
            char *q = calloc(n, 1);
            for (size_t k = 0; k < n; k += n > 5000 ? 501 : 1) CHECK(q[k] == 0);
            memset(q, 0xff, malloc_usable_size(q));
            free(q);
        }

    /* blocks that the C library makes are ours to free */
    char *line = NULL;
    size_t n = 0;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file && getline(&line, &n, file) > 0);
    free(line), fclose(file);
    free(strdup("x")), free(strndup("xyz", 2)), free(realpath("/proc/self", NULL));
    CHECK(asprintf(&line, "%d", 5) == 1), free(line);
    return broken;
}
