/* mimalloc-override.h: the C library's names are mimalloc's. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <mimalloc-override.h>

static int ours(void *p) {
    int is = p && mi_is_in_heap_region(p) && malloc_usable_size(p) == mi_usable_size(p);
    free(p);
    return is;
}
int main(void) {
    void *p = NULL;
    if (!ours(malloc(5)) || !ours(calloc(5, 5)) || !ours(realloc(malloc(5), 500)) || !ours(strdup("x"))) return 1;
    if (!ours(strndup("xyz", 2)) || !ours(realpath("/", NULL)) || !ours(aligned_alloc(64, 64))) return 2;
    if (posix_memalign(&p, 64, 5) || !ours(p) || !ours(memalign(64, 5)) || !ours(valloc(5)) || !ours(pvalloc(5))) return 3;
    if (!ours(reallocarray(NULL, 5, 5)) || !ours(reallocf(NULL, 5)) || malloc_good_size(1) != 16) return 4;
    p = malloc(1);
    if (reallocarr(&p, 5, 5) || malloc_size(p) != 32) return 5;
    cfree(p), free_sized(malloc(5), 5), free_aligned_sized(aligned_alloc(64, 5), 64, 5);
    puts("fine");
    return 0;
}
