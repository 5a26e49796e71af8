/* mimalloc-pprof: the C library's names for mimalloc's functions, in one source file at a time.
 *
 * Include this after all system headers. What other files and libraries allocate does not change; a block that they
 * make must not be given to these names unless the library also replaces malloc.
 */
#ifndef MIMALLOC_OVERRIDE_H
#define MIMALLOC_OVERRIDE_H

#include "mimalloc.h"

#define malloc(n) mi_malloc(n)
#define calloc(n, c) mi_calloc(n, c)
#define realloc(p, n) mi_realloc(p, n)
#define free(p) mi_free(p)

#undef strdup
#undef strndup
#define strdup(s) mi_strdup(s)
#define strndup(s, n) mi_strndup(s, n)
#define realpath(f, n) mi_realpath(f, n)

#define aligned_alloc(a, n) mi_aligned_alloc(a, n)
#define posix_memalign(p, a, n) mi_posix_memalign(p, a, n)
#define memalign(a, n) mi_memalign(a, n)
#define valloc(n) mi_valloc(n)
#define pvalloc(n) mi_pvalloc(n)
#define cfree(p) mi_cfree(p)
#define malloc_usable_size(p) mi_usable_size(p)
#define reallocarray(p, s, n) mi_reallocarray(p, s, n)

#define reallocf(p, n) mi_reallocf(p, n)
#define reallocarr(p, s, n) mi_reallocarr(p, s, n)
#define malloc_size(p) mi_usable_size(p)
#define malloc_good_size(n) mi_malloc_good_size(n)
#define free_sized(p, n) mi_free_size(p, n)
#define free_aligned_sized(p, a, n) mi_free_size_aligned(p, n, a)

#endif
