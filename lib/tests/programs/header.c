/* The C interface as declared in mimalloc.h. */
#include <mimalloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    if (mi_version() != MI_MALLOC_VERSION) return 1;
    char *p = mi_malloc(100);
    char *z = mi_zalloc(5000);
    int *c = mi_calloc(100, sizeof *c);
    char *a = mi_malloc_aligned(100, 4096);
    if (!p || !z || z[4999] || !c || c[99] || !a || (uintptr_t)a % 4096) return 2;
    if (mi_usable_size(p) < 100 || mi_usable_size(NULL) != 0) return 3;
    strcpy(p, "kept");
    p = mi_realloc(p, 100000);
    if (!p || strcmp(p, "kept")) return 4;
    p = mi_realloc(p, 0);
    if (!p || mi_malloc_aligned(1, 24)) return 5;
    mi_free(p), mi_free(z), mi_free(c), mi_free(a), mi_free(NULL);
    puts("fine");
    return 0;
}
