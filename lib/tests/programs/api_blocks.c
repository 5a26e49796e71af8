/* Every function for blocks in mimalloc.h. Each line of output is a broken promise. */
#include <errno.h>
#include <mimalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static int broken;
static void check(int holds, const char *what, int line) {
    if (!holds) {
        broken = 1;
        printf("line %d: %s (errno %d)\n", line, what, errno);
    }
}
#define CHECK(x) check((x), #x, __LINE__)
#define FAILS(x, e) (errno = 0, check((x) == NULL && errno == (e), #x " fails with " #e, __LINE__))

static volatile size_t huge = PTRDIFF_MAX, half = SIZE_MAX / 2 + 1;

static int aligned(void *p, size_t a) { return p && (uintptr_t)p % a == 0; }
static int zero(const char *p, size_t from) {
    size_t end = mi_usable_size(p);
    while (from < end && p[from] == 0) from++;
    return from >= end;
}
/* Write over the whole block and give it back, so that it is found dirty by the next one. */
static void soil(void *p) {
    if (p) memset(p, 0xa5, mi_usable_size(p));
    mi_free(p);
}

static void plain(size_t n) {
    char *p = mi_malloc(n);
    CHECK(aligned(p, 16) && mi_usable_size(p) >= n && mi_usable_size(p) == mi_good_size(n));
    CHECK(mi_malloc_size(p) == mi_usable_size(p) && mi_malloc_usable_size(p) == mi_usable_size(p));
    CHECK(mi_is_in_heap_region(p) && mi_check_owned(p));
    soil(p);
    CHECK(zero(p = mi_zalloc(n), 0)), soil(p);
    CHECK(zero(p = mi_calloc(n, 3), 0) && mi_usable_size(p) >= 3 * n), soil(p);
    CHECK((p = mi_mallocn(n, 3)) && mi_usable_size(p) >= 3 * n), soil(p);
    if (n <= MI_SMALL_SIZE_MAX) {
        CHECK(p = mi_malloc_small(n)), memset(p, 0xa5, n), mi_free_small(p);
        CHECK(zero(p = mi_zalloc_small(n), 0)), soil(p);
    }
    mi_free_csize(memset(mi_malloc_csize(n), 0xa5, n), n);
    CHECK(zero(p = mi_zalloc_csize(n), 0)), soil(p);
    mi_free_size(mi_malloc(n), n);
    mi_free_aligned(mi_malloc_aligned(n, 64), 64);
    mi_free_size_aligned(mi_malloc_aligned(n, 64), n, 64);
}

static void placed(size_t n, size_t a) {
    char *p = mi_malloc_aligned(n, a);
    CHECK(aligned(p, a) && mi_usable_size(p) >= n), soil(p);
    CHECK(aligned(p = mi_zalloc_aligned(n, a), a) && zero(p, 0)), soil(p);
    CHECK(aligned(p = mi_calloc_aligned(n, 2, a), a) && zero(p, 0) && mi_usable_size(p) >= 2 * n);
    memset(p, 7, 2 * n);
    CHECK(aligned(p = mi_realloc_aligned(p, 3 * n, a), a) && (n == 0 || p[2 * n - 1] == 7));
    memset(p, 7, mi_usable_size(p));
    size_t before = mi_usable_size(p);
    CHECK(aligned(p = mi_rezalloc_aligned(p, 5 * n, a), a) && zero(p, before));
    CHECK(n == 0 || p[(before < 5 * n ? before : 5 * n) - 1] == 7);
    before = mi_usable_size(p);
    memset(p, 7, before);
    CHECK(aligned(p = mi_recalloc_aligned(p, n, 11, a), a) && zero(p, before)), soil(p);
    CHECK(aligned(p = mi_aligned_recalloc(NULL, n, 2, a), a) && zero(p, 0)), soil(p);

    for (size_t offset = 0; offset <= 3 * a; offset += a) {
        CHECK(aligned(p = mi_malloc_aligned_at(n, a, offset), a)), soil(p);
        CHECK(aligned(p = mi_zalloc_aligned_at(n, a, offset), a) && zero(p, 0)), soil(p);
        CHECK(aligned(p = mi_calloc_aligned_at(n, 2, a, offset), a) && zero(p, 0));
        CHECK(aligned(p = mi_realloc_aligned_at(p, 3 * n, a, offset), a));
        before = mi_usable_size(p);
        CHECK(aligned(p = mi_rezalloc_aligned_at(p, 5 * n, a, offset), a) && zero(p, before));
        before = mi_usable_size(p);
        CHECK(aligned(p = mi_recalloc_aligned_at(p, n, 11, a, offset), a) && zero(p, before));
        before = mi_usable_size(p);
        CHECK(aligned(p = mi_aligned_offset_recalloc(p, n, 13, a, offset), a) && zero(p, before)), soil(p);
    }
}

static void at(size_t n, size_t a, size_t offset) {
    char *p = mi_malloc_aligned_at(n, a, offset);
    CHECK(aligned(p + offset, a) && mi_usable_size(p) >= n), soil(p);
    CHECK(aligned((p = mi_zalloc_aligned_at(n, a, offset)) + offset, a) && zero(p, 0));
    size_t before = mi_usable_size(p);
    memset(p, 7, before);
    CHECK(aligned((p = mi_realloc_aligned_at(p, 3 * n, a, offset)) + offset, a) && (n == 0 || p[n - 1] == 7));
    before = mi_usable_size(p);
    memset(p, 7, before);
    CHECK(aligned((p = mi_recalloc_aligned_at(p, n, 5, a, offset)) + offset, a) && zero(p, before));
    CHECK((p = mi_realloc(p, 9 * n)) && (n == 0 || p[n - 1] == 7)), soil(p);
}

static void told(void) {
    size_t size = 1, before = 1, after = 1;
    char *p = mi_umalloc(100, &size);
    CHECK(p && size == mi_usable_size(p));
    p = mi_urealloc(p, 5000, &before, &after);
    CHECK(p && before == size && after == mi_usable_size(p) && after >= 5000);
    mi_ufree(p, &size);
    CHECK(size == after);
    mi_ufree(NULL, &size);
    CHECK(size == 0);
    CHECK((p = mi_urealloc(NULL, 10, &before, NULL)) && before == 0), mi_ufree(p, NULL);
    CHECK(zero(p = mi_ucalloc(7, 9, &size), 0) && size == mi_usable_size(p)), soil(p);
    CHECK(aligned(p = mi_umalloc_aligned(50, 128, &size), 128) && size == mi_usable_size(p)), soil(p);
    CHECK(aligned(p = mi_uzalloc_aligned(50, 128, &size), 128) && size == mi_usable_size(p) && zero(p, 0)), soil(p);
    CHECK((p = mi_umalloc_small(50, &size)) && size == mi_usable_size(p)), soil(p);
    CHECK(zero(p = mi_uzalloc_small(50, &size), 0) && size == mi_usable_size(p)), soil(p);
    size = 1;
    FAILS(mi_umalloc(huge + 1, &size), ENOMEM);
    CHECK(size == 0);
}

static void changed(void) {
    char *p = mi_realloc(NULL, 0);
    CHECK(p && (p = mi_realloc(p, 100)));
    strcpy(p, "kept");
    CHECK(mi_expand(p, 112) == p && mi_expand(p, 1) == p && mi_expand(p, 0) == p && mi__expand(p, 50) == p);
    errno = 5;
    CHECK(mi_expand(p, 113) == NULL && errno == 5 && mi_expand(NULL, 1) == NULL && errno == 5);
    FAILS(mi__expand(p, 5000), ENOMEM);
    FAILS(mi_realloc(p, huge + 1), ENOMEM);
    FAILS(mi_reallocn(p, half, 2), ENOMEM);
    FAILS(mi_reallocarray(p, half, 2), ENOMEM);
    FAILS(mi_recalloc(p, half, 2), ENOMEM);
    FAILS(mi_rezalloc(p, huge + 1), ENOMEM);
    FAILS(mi_realloc_aligned(p, 100, 24), EINVAL);
    FAILS(mi_recalloc_aligned(p, half, 2, 64), ENOMEM);
    errno = 5;
    CHECK(mi_reallocarr(&p, half, 2) == ENOMEM && mi_reallocarr(NULL, 1, 1) == EINVAL && errno == 5);
    CHECK(!strcmp(p, "kept"));
    CHECK(mi_reallocarr(&p, 30, 40) == 0 && errno == 5 && mi_usable_size(p) >= 1200 && !strcmp(p, "kept"));
    CHECK((p = mi_reallocn(p, 1000, 1000)) && !strcmp(p, "kept"));
    CHECK((p = mi_reallocarray(p, 10, 10)) && !strcmp(p, "kept") && mi_usable_size(p) < 1000);
    CHECK((p = mi_reallocf(p, 600)) && !strcmp(p, "kept"));
    FAILS(mi_reallocf(p, huge + 1), ENOMEM); /* and frees it: the next block of that size is the same one */
    CHECK((p = mi_realloc(mi_malloc(50), 0)) && mi_usable_size(p) > 0), mi_free(p);

    size_t before = 0;
    for (size_t n = 1; n < 3000000; n = n * 3 / 2 + 1) {
        soil(mi_malloc(n)), soil(mi_malloc(2 * n));
        p = n % 2 ? mi_rezalloc(before ? p : NULL, n) : mi_recalloc(before ? p : NULL, n, 1);
        CHECK(p && zero(p, before) && (before == 0 || p[before - 1] == 7 || n < before));
        before = mi_usable_size(p);
        memset(p, 7, before);
    }
    mi_free(p);
    /* what only grows is zero also inside its size class */
    CHECK(p = mi_zalloc(130));
    for (size_t n = 131; n < 3000; n++) CHECK((p = mi_rezalloc(p, n)) && p[n - 1] == 0);
    mi_free(p);
}

static void others(void) {
    void *out = &broken;
    CHECK(mi_posix_memalign(&out, 12, 64) == EINVAL && mi_posix_memalign(&out, 4, 64) == EINVAL && out == &broken);
    CHECK(mi_posix_memalign(&out, 64, huge) == ENOMEM && out == &broken);
    CHECK(mi_posix_memalign(&out, 256, 100) == 0 && aligned(out, 256)), soil(out);
    CHECK(aligned(out = mi_memalign(24, 100), 32)), soil(out);
    CHECK(aligned(out = mi_aligned_alloc(64, 65), 64)), soil(out);
    FAILS(mi_aligned_alloc(24, 48), EINVAL);
    CHECK(aligned(out = mi_valloc(1), 4096)), soil(out);
    CHECK(aligned(out = mi_pvalloc(1), 4096) && mi_usable_size(out) >= 4096), soil(out);
    FAILS(mi_pvalloc(SIZE_MAX), ENOMEM);
    mi_cfree(mi_malloc(5)), mi_cfree(NULL), mi_cfree(&out), mi_free(NULL);
    CHECK(mi_malloc_size(&out) == 0 && mi_malloc_usable_size(NULL) == 0 && mi_usable_size(NULL) == 0);
    CHECK(!mi_is_in_heap_region(&out) && !mi_is_in_heap_region(NULL) && !mi_check_owned("x"));
    CHECK(mi_malloc_good_size(17) == 32 && mi_good_size(0) == 16 && mi_good_size(1025) == 1152);

    char *p;
    CHECK(!strcmp(p = mi_strdup("a string"), "a string")), mi_free(p);
    CHECK(!strcmp(p = mi_strndup("a string", 3), "a s")), mi_free(p);
    CHECK(!strcmp(p = mi_strndup("a", 300), "a")), mi_free(p);
    CHECK(mi_strdup(NULL) == NULL && mi_strndup(NULL, 1) == NULL && mi_wcsdup(NULL) == NULL && mi_mbsdup(NULL) == NULL);
    CHECK(!strcmp(p = (char *)mi_mbsdup((const unsigned char *)"\xff"), "\xff")), mi_free(p);
    wchar_t *w = mi_wcsdup(L"w\x12345");
    CHECK(!wcscmp(w, L"w\x12345")), mi_free(w);
    char room[4096];
    CHECK(mi_realpath("/proc/../proc/./self/..", room) == room && !strcmp(room, "/proc"));
    CHECK(!strcmp(p = mi_realpath("/usr/..//", NULL), "/") && mi_usable_size(p) < 4096), mi_free(p);
    FAILS(mi_realpath("/no such place", NULL), ENOENT);
    size_t size = 1;
    setenv("API_BLOCKS", "value", 1);
    CHECK(mi_dupenv_s(&p, &size, "API_BLOCKS") == 0 && !strcmp(p, "value") && size == 6), mi_free(p);
    CHECK(mi_dupenv_s(&p, &size, "API_NO_BLOCKS") == 0 && p == NULL && size == 0);
    CHECK(mi_dupenv_s(NULL, &size, "X") == EINVAL && mi_dupenv_s(&p, NULL, NULL) == EINVAL);
    CHECK(mi_wdupenv_s(&w, &size, L"X") == EINVAL);
}

struct pair { long a, b; };
static void typed(void) {
    struct pair *p = mi_malloc_tp(struct pair);
    CHECK(p), mi_free_tp(p, struct pair);
    p = mi_zalloc_tp(struct pair);
    CHECK(p && p->a == 0 && p->b == 0), mi_free(p);
    p = mi_calloc_tp(struct pair, 5);
    CHECK(p && p[4].b == 0);
    p = mi_recalloc_tp(p, struct pair, 50);
    CHECK(p && p[49].b == 0);
    p = mi_reallocn_tp(p, struct pair, 500);
    CHECK(p && mi_usable_size(p) >= 500 * sizeof(struct pair)), mi_free(p);
    CHECK(p = mi_mallocn_tp(struct pair, 5)), mi_free(p);
}

int main(void) {
    for (size_t n = 0; n < 2000; n += 7) plain(n);
    plain(100000), plain(600000), plain(3000000);
    for (size_t a = 1; a <= 1 << 20; a *= 4)
        for (size_t n = 0; n < 400000; n = n * 9 + 1) placed(n, a);
    told(), changed(), others(), typed();
    FAILS(mi_malloc(huge + 1), ENOMEM);
    FAILS(mi_mallocn(half, 2), ENOMEM);
    FAILS(mi_calloc(half, 2), ENOMEM);
    FAILS(mi_zalloc(huge + 1), ENOMEM);
    FAILS(mi_calloc_aligned(half, 2, 64), ENOMEM);
    FAILS(mi_malloc_aligned(10, 0), EINVAL);
    FAILS(mi_malloc_aligned(10, 24), EINVAL);
    FAILS(mi_malloc_aligned_at(10, 24, 8), EINVAL);
    for (size_t a = 2; a <= 1 << 21; a *= 8)
        for (size_t offset = 1; offset < 2 * a; offset = offset * 5 + 3)
            for (size_t n = 0; n < 3000000; n = n * 9 + 1) at(n, a, offset);
    return broken;
}
