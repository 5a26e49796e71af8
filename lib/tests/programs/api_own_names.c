/* A program with functions of its own under names that other C libraries have, linked with the static library. */
#include <stdio.h>
#include <stdlib.h>
void *reallocf(void *p, size_t n) { return (void *)1; }
void vfree(void *p) { puts("own"); }
size_t malloc_size(const void *);
int main(void) {
    vfree(reallocf(NULL, 1));
    void *p = malloc(100);
    printf("%zu\n", malloc_size(p));
    free(p);
    return 0;
}
