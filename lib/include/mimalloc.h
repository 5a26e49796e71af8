/* mimalloc-pprof: C interface.
 *
 * Link with -lmimalloc_pprof (or preload libmimalloc_pprof.so, which also replaces malloc and free themselves).
 * All functions may be called from any thread. Sizes and alignments are in bytes.
 * Where a function can fail it returns NULL and sets errno.
 */
#ifndef MIMALLOC_H
#define MIMALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The mimalloc release whose interface this is: major * 10000 + minor * 100 + patch. */
#define MI_MALLOC_VERSION 30500

/* The same, of the library that is in use at run time. */
int mi_version(void);

/* A block of at least `size` bytes, aligned to 16. Size 0 gives a block of the least size. ENOMEM. */
void* mi_malloc(size_t size);

/* The same, with all bytes zero. */
void* mi_zalloc(size_t size);

/* A zeroed block for `count` objects of `size` bytes each. ENOMEM also when the product overflows. */
void* mi_calloc(size_t count, size_t size);

/* A block of at least `newsize` bytes with the contents of `p`, which it replaces; NULL for `p` allocates.
 * Size 0 gives a block of the least size, never NULL for that reason. When it fails, `p` is still valid. */
void* mi_realloc(void* p, size_t newsize);

/* A block whose address is a multiple of `alignment`, a power of two (else NULL and EINVAL). ENOMEM. */
void* mi_malloc_aligned(size_t size, size_t alignment);

/* Give a block back. NULL is allowed; errno is kept. The block may come from any thread. */
void mi_free(void* p);

/* Bytes of a block that may be used, at least what was asked for; 0 for NULL. */
size_t mi_usable_size(const void* p);

#ifdef __cplusplus
}
#endif

#endif
