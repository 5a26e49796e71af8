/* mimalloc-pprof: C interface.
 *
 * Link with -lmimalloc_pprof (or preload libmimalloc_pprof.so, which also replaces malloc and free themselves).
 * All functions may be called from any thread. Sizes, alignments and offsets are in bytes.
 *
 * A function that gives a block returns NULL and sets errno when it fails: ENOMEM when there is no memory, or when a
 * count times a size is too large; EINVAL for an alignment that is not a power of two. A function that changes a block
 * leaves it as it was when it fails, unless it says otherwise; NULL for the block allocates one. Size 0 gives a block
 * of the least size, never NULL for that reason. Every block is given back with mi_free (or free, where that is ours).
 */
#ifndef MIMALLOC_H
#define MIMALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The mimalloc release whose interface this is: major * 10000 + minor * 100 + patch. */
#define MI_MALLOC_VERSION 30500

#ifdef __cplusplus
#define MI_NOEXCEPT noexcept
#else
#define MI_NOEXCEPT
#endif

/* What compilers may know of a function: the result is a new block, as large as these arguments (or their product),
 * with the alignment in this argument. */
#if defined(__GNUC__)
#define MI_NEW __attribute__((malloc, warn_unused_result))
#define MI_USE __attribute__((warn_unused_result))
#define MI_SIZE(n) __attribute__((alloc_size(n)))
#define MI_SIZES(n, m) __attribute__((alloc_size(n, m)))
#define MI_ALIGN(n) __attribute__((alloc_align(n)))
#else
#define MI_NEW
#define MI_USE
#define MI_SIZE(n)
#define MI_SIZES(n, m)
#define MI_ALIGN(n)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Blocks ---------------------------------------------------------------------------------------------------- */

/* A block of at least `size` bytes, aligned to 16. */
MI_NEW MI_SIZE(1) void* mi_malloc(size_t size) MI_NOEXCEPT;
/* The same for `count` objects of `size` bytes each. */
MI_NEW MI_SIZES(1, 2) void* mi_mallocn(size_t count, size_t size) MI_NOEXCEPT;
/* A block whose bytes are all zero, to its end: mi_usable_size of them. */
MI_NEW MI_SIZE(1) void* mi_zalloc(size_t size) MI_NOEXCEPT;
MI_NEW MI_SIZES(1, 2) void* mi_calloc(size_t count, size_t size) MI_NOEXCEPT;

/* A block of at least `newsize` bytes with the contents of `p`, which it replaces. It is the same block where the
 * usable size is enough and at most twice what is needed, and where a large block finds room behind it. */
MI_USE MI_SIZE(2) void* mi_realloc(void* p, size_t newsize) MI_NOEXCEPT;
MI_USE MI_SIZES(2, 3) void* mi_reallocn(void* p, size_t count, size_t size) MI_NOEXCEPT;
/* Frees `p` when it fails. */
MI_USE MI_SIZE(2) void* mi_reallocf(void* p, size_t newsize) MI_NOEXCEPT;
/* As mi_realloc, and every byte beyond the old usable size is zero, to the end of the new block. So what a block from
 * mi_zalloc, mi_calloc or these grows by is zero as long as it only grows. */
MI_USE MI_SIZE(2) void* mi_rezalloc(void* p, size_t newsize) MI_NOEXCEPT;
MI_USE MI_SIZES(2, 3) void* mi_recalloc(void* p, size_t newcount, size_t size) MI_NOEXCEPT;
/* `p` itself if it has room for `newsize` bytes or can get it where it is, else NULL. `p` stays valid, and errno is kept. */
MI_USE void* mi_expand(void* p, size_t newsize) MI_NOEXCEPT;

/* Give a block back. NULL is allowed; errno is kept. The block may come from any thread. */
void mi_free(void* p) MI_NOEXCEPT;
/* The same by somebody who knows what was asked for. The size and the alignment are not used. */
void mi_free_size(void* p, size_t size) MI_NOEXCEPT;
void mi_free_size_aligned(void* p, size_t size, size_t alignment) MI_NOEXCEPT;
void mi_free_aligned(void* p, size_t alignment) MI_NOEXCEPT;

/* Bytes of a block that may be used, at least what was asked for; 0 for NULL. Stable over the life of the block. */
MI_USE size_t mi_usable_size(const void* p) MI_NOEXCEPT;
/* The usable size that a block for `size` bytes would have: its size class, or whole 64 KiB above 512 KiB. */
MI_USE size_t mi_good_size(size_t size) MI_NOEXCEPT;

/* For sizes up to MI_SMALL_SIZE_MAX. No faster here than those without `small`. */
#define MI_SMALL_WSIZE_MAX 128
#define MI_SMALL_SIZE_MAX (MI_SMALL_WSIZE_MAX * sizeof(void*))
MI_NEW MI_SIZE(1) void* mi_malloc_small(size_t size) MI_NOEXCEPT;
MI_NEW MI_SIZE(1) void* mi_zalloc_small(size_t size) MI_NOEXCEPT;
void mi_free_small(void* p) MI_NOEXCEPT;

/* Copies of strings; NULL for NULL. mi_strndup copies at most `n` bytes. mi_realpath is realpath, whose result is a
 * block of ours if `resolved_name` is NULL. */
MI_NEW char* mi_strdup(const char* s) MI_NOEXCEPT;
MI_NEW char* mi_strndup(const char* s, size_t n) MI_NOEXCEPT;
char* mi_realpath(const char* fname, char* resolved_name) MI_NOEXCEPT;

/* ---- Aligned blocks -------------------------------------------------------------------------------------------- */

/* Blocks at an address that is a multiple of `alignment`, a power of two (else NULL and EINVAL). In the functions that
 * end in `_at` it is the address plus `offset` that is. With an offset that is not itself a multiple of the alignment
 * such a block takes at least 64 KiB of its own. */
MI_NEW MI_SIZE(1) MI_ALIGN(2) void* mi_malloc_aligned(size_t size, size_t alignment) MI_NOEXCEPT;
MI_NEW MI_SIZE(1) void* mi_malloc_aligned_at(size_t size, size_t alignment, size_t offset) MI_NOEXCEPT;
MI_NEW MI_SIZE(1) MI_ALIGN(2) void* mi_zalloc_aligned(size_t size, size_t alignment) MI_NOEXCEPT;
MI_NEW MI_SIZE(1) void* mi_zalloc_aligned_at(size_t size, size_t alignment, size_t offset) MI_NOEXCEPT;
MI_NEW MI_SIZES(1, 2) MI_ALIGN(3) void* mi_calloc_aligned(size_t count, size_t size, size_t alignment) MI_NOEXCEPT;
MI_NEW MI_SIZES(1, 2)
void* mi_calloc_aligned_at(size_t count, size_t size, size_t alignment, size_t offset) MI_NOEXCEPT;
MI_USE MI_SIZE(2) MI_ALIGN(3) void* mi_realloc_aligned(void* p, size_t newsize, size_t alignment) MI_NOEXCEPT;
MI_USE MI_SIZE(2) void* mi_realloc_aligned_at(void* p, size_t newsize, size_t alignment, size_t offset) MI_NOEXCEPT;
MI_USE MI_SIZE(2) MI_ALIGN(3) void* mi_rezalloc_aligned(void* p, size_t newsize, size_t alignment) MI_NOEXCEPT;
MI_USE MI_SIZE(2) void* mi_rezalloc_aligned_at(void* p, size_t newsize, size_t alignment, size_t offset) MI_NOEXCEPT;
MI_USE MI_SIZES(2, 3) MI_ALIGN(4)
void* mi_recalloc_aligned(void* p, size_t newcount, size_t size, size_t alignment) MI_NOEXCEPT;
MI_USE MI_SIZES(2, 3)
void* mi_recalloc_aligned_at(void* p, size_t newcount, size_t size, size_t alignment, size_t offset) MI_NOEXCEPT;

/* ---- Blocks and their usable sizes ----------------------------------------------------------------------------- */

/* As the functions without `u`, and they set `*block_size` to the usable size of the block, or to 0 when there is none.
 * A place for a size may be NULL. mi_urealloc tells the sizes before and after. */
MI_NEW MI_SIZE(1) void* mi_umalloc(size_t size, size_t* block_size) MI_NOEXCEPT;
MI_NEW MI_SIZES(1, 2) void* mi_ucalloc(size_t count, size_t size, size_t* block_size) MI_NOEXCEPT;
MI_USE MI_SIZE(2)
void* mi_urealloc(void* p, size_t newsize, size_t* block_size_pre, size_t* block_size_post) MI_NOEXCEPT;
void mi_ufree(void* p, size_t* block_size) MI_NOEXCEPT;
MI_NEW MI_SIZE(1) MI_ALIGN(2) void* mi_umalloc_aligned(size_t size, size_t alignment, size_t* block_size) MI_NOEXCEPT;
MI_NEW MI_SIZE(1) MI_ALIGN(2) void* mi_uzalloc_aligned(size_t size, size_t alignment, size_t* block_size) MI_NOEXCEPT;
MI_NEW MI_SIZE(1) void* mi_umalloc_small(size_t size, size_t* block_size) MI_NOEXCEPT;
MI_NEW MI_SIZE(1) void* mi_uzalloc_small(size_t size, size_t* block_size) MI_NOEXCEPT;

/* ---- Sizes that the compiler knows, and types ------------------------------------------------------------------ */

static inline void* mi_malloc_csize(size_t size) MI_NOEXCEPT {
  return size <= MI_SMALL_SIZE_MAX ? mi_malloc_small(size) : mi_malloc(size);
}
static inline void* mi_zalloc_csize(size_t size) MI_NOEXCEPT {
  return size <= MI_SMALL_SIZE_MAX ? mi_zalloc_small(size) : mi_zalloc(size);
}
static inline void mi_free_csize(void* p, size_t size) MI_NOEXCEPT {
  if (size <= MI_SMALL_SIZE_MAX) mi_free_small(p);
  else mi_free_size(p, size);
}

#define mi_malloc_tp(tp) ((tp*)mi_malloc_csize(sizeof(tp)))
#define mi_zalloc_tp(tp) ((tp*)mi_zalloc_csize(sizeof(tp)))
#define mi_calloc_tp(tp, n) ((tp*)mi_calloc(n, sizeof(tp)))
#define mi_mallocn_tp(tp, n) ((tp*)mi_mallocn(n, sizeof(tp)))
#define mi_reallocn_tp(p, tp, n) ((tp*)mi_reallocn(p, n, sizeof(tp)))
#define mi_recalloc_tp(p, tp, n) ((tp*)mi_recalloc(p, n, sizeof(tp)))
#define mi_free_tp(p, tp) mi_free_csize(p, sizeof(tp))

/* ---- As in POSIX and in other C libraries ---------------------------------------------------------------------- */

/* Frees a block of ours; every other address is ignored. */
void mi_cfree(void* p) MI_NOEXCEPT;
/* mi_expand that sets ENOMEM. */
void* mi__expand(void* p, size_t newsize) MI_NOEXCEPT;
/* mi_usable_size that is 0 for what is not ours. */
MI_USE size_t mi_malloc_size(const void* p) MI_NOEXCEPT;
MI_USE size_t mi_malloc_usable_size(const void* p) MI_NOEXCEPT;
MI_USE size_t mi_malloc_good_size(size_t size) MI_NOEXCEPT;

/* 0, or EINVAL or ENOMEM and `*p` is as it was. The alignment is also to be a multiple of the size of a pointer. */
int mi_posix_memalign(void** p, size_t alignment, size_t size) MI_NOEXCEPT;
/* An alignment that is not a power of two is rounded up to one. */
MI_NEW MI_SIZE(2) void* mi_memalign(size_t alignment, size_t size) MI_NOEXCEPT;
MI_NEW MI_SIZE(2) MI_ALIGN(1) void* mi_aligned_alloc(size_t alignment, size_t size) MI_NOEXCEPT;
/* At a page boundary; mi_pvalloc in whole pages. */
MI_NEW MI_SIZE(1) void* mi_valloc(size_t size) MI_NOEXCEPT;
MI_NEW void* mi_pvalloc(size_t size) MI_NOEXCEPT;

MI_USE MI_SIZES(2, 3) void* mi_reallocarray(void* p, size_t count, size_t size) MI_NOEXCEPT;
/* `p` points to the pointer to the block, which is changed. 0, or EINVAL or ENOMEM; errno is kept. */
int mi_reallocarr(void* p, size_t count, size_t size) MI_NOEXCEPT;
MI_USE void* mi_aligned_recalloc(void* p, size_t newcount, size_t size, size_t alignment) MI_NOEXCEPT;
MI_USE
void* mi_aligned_offset_recalloc(void* p, size_t newcount, size_t size, size_t alignment, size_t offset) MI_NOEXCEPT;

/* A copy of the environment variable `name` in `*buf`, or NULL if there is none; `*size` counts its zero. 0, EINVAL or
 * ENOMEM. There are no wide variables on this system: EINVAL. */
int mi_dupenv_s(char** buf, size_t* size, const char* name) MI_NOEXCEPT;
int mi_wdupenv_s(wchar_t** buf, size_t* size, const wchar_t* name) MI_NOEXCEPT;
MI_NEW wchar_t* mi_wcsdup(const wchar_t* s) MI_NOEXCEPT;
MI_NEW unsigned char* mi_mbsdup(const unsigned char* s) MI_NOEXCEPT;

/* ---- As operator new ------------------------------------------------------------------------------------------- */

/* They call the program's new-handler until there is memory. Without a handler they throw std::bad_alloc, or in a
 * program without a C++ runtime, abort; those with `nothrow` return NULL. Where a
 * count times a size is too large, no handler is called. */
MI_NEW MI_SIZE(1) void* mi_new(size_t size);
MI_NEW MI_SIZE(1) MI_ALIGN(2) void* mi_new_aligned(size_t size, size_t alignment);
MI_NEW MI_SIZE(1) void* mi_new_nothrow(size_t size) MI_NOEXCEPT;
MI_NEW MI_SIZE(1) MI_ALIGN(2) void* mi_new_aligned_nothrow(size_t size, size_t alignment) MI_NOEXCEPT;
MI_NEW MI_SIZES(1, 2) void* mi_new_n(size_t count, size_t size);
MI_USE MI_SIZE(2) void* mi_new_realloc(void* p, size_t newsize);
MI_USE MI_SIZES(2, 3) void* mi_new_reallocn(void* p, size_t newcount, size_t size);

/* ---- Heaps ----------------------------------------------------------------------------------------------------- */

/* A heap that the program makes, to allocate from in any thread, and to give up as a whole. Its blocks are freed and
 * resized by the functions above as all others are, though a free takes a lock; plain mi_realloc takes a block over into
 * the heap that the thread's mi_malloc allocates from. NULL as the heap means the main heap, that of malloc.
 *
 * While a thread is in mi_heap_delete or mi_heap_destroy, and afterwards, no thread may use the heap itself. */
typedef struct mi_heap_s mi_heap_t;

/* NULL: no memory. */
MI_USE mi_heap_t* mi_heap_new(void) MI_NOEXCEPT;
/* The heap goes, its blocks stay: they are blocks of the main heap from then on. They may be freed meanwhile. */
void mi_heap_delete(mi_heap_t* heap) MI_NOEXCEPT;
/* The heap goes, and all its blocks with it. The main heap stays, and its blocks, in both functions. */
void mi_heap_destroy(mi_heap_t* heap) MI_NOEXCEPT;
MI_USE mi_heap_t* mi_heap_main(void) MI_NOEXCEPT;

/* The heap of the block that `p` points to, or into; NULL for memory that no block is made of. Not for freed blocks:
 * their memory may serve any heap. */
MI_USE mi_heap_t* mi_heap_of(const void* p) MI_NOEXCEPT;
MI_USE bool mi_heap_contains(const mi_heap_t* heap, const void* p) MI_NOEXCEPT;
MI_USE bool mi_any_heap_contains(const void* p) MI_NOEXCEPT;

/* Gives back what this thread has cached of the heap, with `force` what any thread has, so that all can use it; with `force`
 * memory then goes back to the operating system as with mi_purge_all(true). */
void mi_heap_collect(mi_heap_t* heap, bool force) MI_NOEXCEPT;
/* No effect: memory is near the thread that touches it first. */
void mi_heap_set_numa_affinity(mi_heap_t* heap, int numa_node) MI_NOEXCEPT;

/* As the functions of the main heap. A block of another heap always moves. */
MI_NEW MI_SIZE(2) void* mi_heap_malloc(mi_heap_t* heap, size_t size) MI_NOEXCEPT;
MI_NEW MI_SIZE(2) void* mi_heap_zalloc(mi_heap_t* heap, size_t size) MI_NOEXCEPT;
MI_NEW MI_SIZES(2, 3) void* mi_heap_calloc(mi_heap_t* heap, size_t count, size_t size) MI_NOEXCEPT;
MI_NEW MI_SIZES(2, 3) void* mi_heap_mallocn(mi_heap_t* heap, size_t count, size_t size) MI_NOEXCEPT;
MI_NEW MI_SIZE(2) void* mi_heap_malloc_small(mi_heap_t* heap, size_t size) MI_NOEXCEPT;
MI_NEW MI_SIZE(2) void* mi_heap_zalloc_small(mi_heap_t* heap, size_t size) MI_NOEXCEPT;
MI_USE MI_SIZE(3) void* mi_heap_realloc(mi_heap_t* heap, void* p, size_t newsize) MI_NOEXCEPT;
MI_USE MI_SIZES(3, 4) void* mi_heap_reallocn(mi_heap_t* heap, void* p, size_t count, size_t size) MI_NOEXCEPT;
MI_USE MI_SIZE(3) void* mi_heap_reallocf(mi_heap_t* heap, void* p, size_t newsize) MI_NOEXCEPT;
MI_USE MI_SIZE(3) void* mi_heap_rezalloc(mi_heap_t* heap, void* p, size_t newsize) MI_NOEXCEPT;
MI_USE MI_SIZES(3, 4) void* mi_heap_recalloc(mi_heap_t* heap, void* p, size_t newcount, size_t size) MI_NOEXCEPT;
MI_NEW char* mi_heap_strdup(mi_heap_t* heap, const char* s) MI_NOEXCEPT;
MI_NEW char* mi_heap_strndup(mi_heap_t* heap, const char* s, size_t n) MI_NOEXCEPT;
char* mi_heap_realpath(mi_heap_t* heap, const char* fname, char* resolved_name) MI_NOEXCEPT;

MI_NEW MI_SIZE(2) MI_ALIGN(3)
void* mi_heap_malloc_aligned(mi_heap_t* heap, size_t size, size_t alignment) MI_NOEXCEPT;
MI_NEW MI_SIZE(2)
void* mi_heap_malloc_aligned_at(mi_heap_t* heap, size_t size, size_t alignment, size_t offset) MI_NOEXCEPT;
MI_NEW MI_SIZE(2) MI_ALIGN(3)
void* mi_heap_zalloc_aligned(mi_heap_t* heap, size_t size, size_t alignment) MI_NOEXCEPT;
MI_NEW MI_SIZE(2)
void* mi_heap_zalloc_aligned_at(mi_heap_t* heap, size_t size, size_t alignment, size_t offset) MI_NOEXCEPT;
MI_NEW MI_SIZES(2, 3) MI_ALIGN(4)
void* mi_heap_calloc_aligned(mi_heap_t* heap, size_t count, size_t size, size_t alignment) MI_NOEXCEPT;
MI_NEW MI_SIZES(2, 3)
void* mi_heap_calloc_aligned_at(mi_heap_t* heap, size_t count, size_t size, size_t alignment, size_t offset)
    MI_NOEXCEPT;
MI_USE MI_SIZE(3) MI_ALIGN(4)
void* mi_heap_realloc_aligned(mi_heap_t* heap, void* p, size_t newsize, size_t alignment) MI_NOEXCEPT;
MI_USE MI_SIZE(3)
void* mi_heap_realloc_aligned_at(mi_heap_t* heap, void* p, size_t newsize, size_t alignment, size_t offset) MI_NOEXCEPT;
MI_USE MI_SIZE(3) MI_ALIGN(4)
void* mi_heap_rezalloc_aligned(mi_heap_t* heap, void* p, size_t newsize, size_t alignment) MI_NOEXCEPT;
MI_USE MI_SIZE(3)
void* mi_heap_rezalloc_aligned_at(mi_heap_t* heap, void* p, size_t newsize, size_t alignment, size_t offset)
    MI_NOEXCEPT;
MI_USE MI_SIZES(3, 4) MI_ALIGN(5)
void* mi_heap_recalloc_aligned(mi_heap_t* heap, void* p, size_t newcount, size_t size, size_t alignment) MI_NOEXCEPT;
MI_USE MI_SIZES(3, 4)
void* mi_heap_recalloc_aligned_at(mi_heap_t* heap, void* p, size_t newcount, size_t size, size_t alignment,
                                  size_t offset) MI_NOEXCEPT;

/* As operator new. */
MI_NEW MI_SIZE(2) void* mi_heap_alloc_new(mi_heap_t* heap, size_t size);
MI_NEW MI_SIZES(2, 3) void* mi_heap_alloc_new_n(mi_heap_t* heap, size_t count, size_t size);

#define mi_heap_malloc_tp(hp, tp) ((tp*)mi_heap_malloc(hp, sizeof(tp)))
#define mi_heap_zalloc_tp(hp, tp) ((tp*)mi_heap_zalloc(hp, sizeof(tp)))
#define mi_heap_calloc_tp(hp, tp, n) ((tp*)mi_heap_calloc(hp, n, sizeof(tp)))
#define mi_heap_mallocn_tp(hp, tp, n) ((tp*)mi_heap_mallocn(hp, n, sizeof(tp)))
#define mi_heap_reallocn_tp(hp, p, tp, n) ((tp*)mi_heap_reallocn(hp, p, n, sizeof(tp)))
#define mi_heap_recalloc_tp(hp, p, tp, n) ((tp*)mi_heap_recalloc(hp, p, n, sizeof(tp)))

/* ---- Parts of heaps that a thread has -------------------------------------------------------------------------- */

/* What one thread allocates from in one heap; only for that thread. It is there until the thread or the heap ends. NULL
 * stands for the thread's default, which plain mi_malloc and its like allocate from: at first its part of the main heap. */
typedef struct mi_theap_s mi_theap_t;

/* NULL: no memory. */
MI_USE mi_theap_t* mi_heap_theap(mi_heap_t* heap) MI_NOEXCEPT;
/* Returns the default from before. NULL, and what is another thread's, change nothing. When the heap of the default ends,
 * the thread goes back to the main heap. */
mi_theap_t* mi_theap_set_default(mi_theap_t* theap) MI_NOEXCEPT;
MI_USE mi_theap_t* mi_theap_get_default(void) MI_NOEXCEPT;
/* Gives back what is cached here; with `force` memory then goes back to the operating system as with mi_purge_all(true). */
void mi_theap_collect(mi_theap_t* theap, bool force) MI_NOEXCEPT;

MI_NEW MI_SIZE(2) void* mi_theap_malloc(mi_theap_t* theap, size_t size) MI_NOEXCEPT;
MI_NEW MI_SIZE(2) void* mi_theap_zalloc(mi_theap_t* theap, size_t size) MI_NOEXCEPT;
MI_NEW MI_SIZES(2, 3) void* mi_theap_calloc(mi_theap_t* theap, size_t count, size_t size) MI_NOEXCEPT;
MI_NEW MI_SIZE(2) void* mi_theap_malloc_small(mi_theap_t* theap, size_t size) MI_NOEXCEPT;
MI_NEW MI_SIZE(2) void* mi_theap_zalloc_small(mi_theap_t* theap, size_t size) MI_NOEXCEPT;
MI_NEW MI_SIZE(2) MI_ALIGN(3)
void* mi_theap_malloc_aligned(mi_theap_t* theap, size_t size, size_t alignment) MI_NOEXCEPT;
MI_NEW MI_SIZE(2) MI_ALIGN(3)
void* mi_theap_zalloc_aligned(mi_theap_t* theap, size_t size, size_t alignment) MI_NOEXCEPT;
MI_USE MI_SIZE(3) void* mi_theap_realloc(mi_theap_t* theap, void* p, size_t newsize) MI_NOEXCEPT;
MI_USE MI_SIZE(3) void* mi_theap_rezalloc(mi_theap_t* theap, void* p, size_t newsize) MI_NOEXCEPT;

static inline void* mi_theap_malloc_csize(mi_theap_t* theap, size_t size) MI_NOEXCEPT {
  return mi_theap_malloc(theap, size);
}
static inline void* mi_theap_zalloc_csize(mi_theap_t* theap, size_t size) MI_NOEXCEPT {
  return mi_theap_zalloc(theap, size);
}

/* ---- Visiting blocks ------------------------------------------------------------------------------------------- */

/* Blocks of one size that lie together. */
typedef struct mi_heap_area_s {
  void* blocks;           /* the first one */
  size_t reserved;        /* bytes of address space */
  size_t committed;       /* bytes that can be used */
  size_t used;            /* live blocks */
  size_t block_size;      /* usable bytes of each */
  size_t full_block_size; /* bytes from one to the next */
  void* reserved1;
} mi_heap_area_t;

/* Gets an area with NULL as the block, and then its blocks. False ends the visit. It may allocate and free. */
typedef bool(mi_block_visit_fun)(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t block_size,
                                 void* arg);

/* Calls the function with every area of a heap, and if `visit_blocks` with every live block. False: the function has ended
 * it. Other threads may allocate from the heap and free its blocks meanwhile: a block that is live during the whole visit
 * is visited exactly once, one that is freed or allocated meanwhile once or not at all. Only the heap itself must not
 * end. The same for the heap that a thread's part belongs to. */
bool mi_heap_visit_blocks(mi_heap_t* heap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg) MI_NOEXCEPT;
bool mi_theap_visit_blocks(mi_theap_t* theap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg) MI_NOEXCEPT;
/* No effect: blocks belong to heaps, and no heap is left alone when a thread ends. */
bool mi_heap_visit_abandoned_blocks(mi_heap_t* heap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg)
    MI_NOEXCEPT;

/* Whether a block lies among others of its size in this heap of which less than `perc_threshold` percent are in use, so that
 * it pays to move it. A hint, without locks. */
MI_USE bool mi_unsafe_heap_page_is_under_utilized(mi_heap_t* heap, void* p, size_t perc_threshold) MI_NOEXCEPT;

/* ---- What the heap holds ----------------------------------------------------------------------------------------- */

/* How many heaps were made before this one in the process; 0 is the main heap. */
size_t mi_heap_get_seq(mi_heap_t* heap) MI_NOEXCEPT;

/* The heaps of this thread's sub-process as JSON: for each its pages (slabs and single large blocks), and with `include_blocks` the address and
 * usable size of each live block. Blocks that threads have cached are not live. With `hash_addresses` all addresses and numbers of threads are
 * replaced by ids that say nothing of where things are: different things have different ids, anew in each dump. Other threads may go on: each page is
 * told as it was at one moment. Nobody is waited for, so `wait_ms` has no effect. A C string for mi_free; NULL: no memory. docs/formats.md. */
MI_USE char* mi_heap_dump_json(bool include_blocks, bool hash_addresses) MI_NOEXCEPT;
MI_USE char* mi_heap_dump_json_ex(bool include_blocks, bool hash_addresses, size_t wait_ms) MI_NOEXCEPT;

/* Flags of snapshots: with a bitmap of the blocks of each page; version 2 of the format, which tells more. */
#define MI_SNAPSHOT_BLOCKS 0x01
#define MI_SNAPSHOT_V2 0x02

/* Writes what all heaps of the process hold to a descriptor, or to a file, which takes its place when it is complete: arenas with their free and committed
 * slices, every slab and large block. All is looked at first and written afterwards, so a slow reader holds up nobody. 0, or -1 with errno; a closed
 * pipe or a limit on file sizes is such an error, and no signal. docs/formats.md. */
int mi_heap_snapshot(int fd, unsigned flags) MI_NOEXCEPT;
int mi_heap_snapshot_to_file(const char* path, unsigned flags) MI_NOEXCEPT;

/* ---- Sub-processes --------------------------------------------------------------------------------------------- */

/* Heaps that end together: a main heap and all that its threads make. The heaps share the address space and free memory
 * with those of all others. */
typedef struct mi_subproc_id_s {
  void* _mi_subproc_id;
} mi_subproc_id_t;

/* The one of threads that were added to none, and that of the calling thread. */
MI_USE mi_subproc_id_t mi_subproc_main(void) MI_NOEXCEPT;
MI_USE mi_subproc_id_t mi_subproc_current(void) MI_NOEXCEPT;
/* With NULL in it: no memory. */
MI_USE mi_subproc_id_t mi_subproc_new(void) MI_NOEXCEPT;
/* Destroys all its heaps, as mi_heap_destroy does. The first sub-process stays. */
void mi_subproc_destroy(mi_subproc_id_t subproc) MI_NOEXCEPT;
/* From here on, plain allocations of the calling thread come from the main heap of the sub-process, mi_heap_main is that
 * one, and mi_heap_new makes heaps of the sub-process. */
void mi_subproc_add_current_thread(mi_subproc_id_t subproc) MI_NOEXCEPT;
/* Calls the function with each heap, the main one first, until it returns false; that is the result then. It may make heaps
 * and end the one it is called with. */
typedef bool(mi_heap_visit_fun)(mi_heap_t* heap, void* arg);
bool mi_subproc_visit_heaps(mi_subproc_id_t subproc, mi_heap_visit_fun* visitor, void* arg) MI_NOEXCEPT;

/* ---- Process and threads --------------------------------------------------------------------------------------- */

/* MI_MALLOC_VERSION of the library that is in use at run time. */
MI_USE int mi_version(void) MI_NOEXCEPT;
/* Whether malloc and free in this process are ours. */
MI_USE bool mi_is_redirected(void) MI_NOEXCEPT;

/* Process and threads need none of these: everything is made ready at the first allocation, a thread gives back what it
 * has cached when it ends, and blocks stay valid to the last. The `init` functions do at once what the first allocation
 * would, mi_thread_done what the end of the thread would, though it may go on; the others have no effect. */
void mi_process_init(void) MI_NOEXCEPT;
void mi_process_done(void) MI_NOEXCEPT;
void mi_thread_init(void) MI_NOEXCEPT;
void mi_thread_done(void) MI_NOEXCEPT;
void mi_thread_set_in_threadpool(void) MI_NOEXCEPT;

/* Call the registered deferred free. With `force`, and when the heap has more than `target_size` bytes of memory, all that
 * no live block needs then goes back to the operating system, as with mi_purge_all(true). */
void mi_collect(bool force) MI_NOEXCEPT;
void mi_collect_reduce(size_t target_size) MI_NOEXCEPT;

/* Whether an address is in memory that blocks are made from. */
MI_USE bool mi_is_in_heap_region(const void* p) MI_NOEXCEPT;
MI_USE bool mi_check_owned(const void* p) MI_NOEXCEPT;

/* What the process has used up to now; each place may be NULL. Times in milliseconds, memory in bytes. Committed is
 * private memory that may be written, whether or not it was touched, and its peak is the most that any call of this
 * function has seen; all other numbers are the kernel's. page_faults counts those that waited for a disk. */
void mi_process_info(size_t* elapsed_msecs, size_t* user_msecs, size_t* system_msecs, size_t* current_rss,
                     size_t* peak_rss, size_t* current_commit, size_t* peak_commit, size_t* page_faults) MI_NOEXCEPT;

/* ---- Returning memory ------------------------------------------------------------------------------------------ */

/* Memory that no live block needs goes back to the operating system by itself, from busy threads too; nothing here has to be
 * called for that. docs/options.md tells when (scavenger, purge_delay, purge_holes). These functions do it at a moment that
 * the program knows to be a good one. They need no thread to stand still, and may be called by any, also by one that has never
 * allocated. */

typedef enum mi_purge_flags_e {
  MI_PURGE_FORCE = 1,  /* all that is free, at once, whatever its next use costs; else only what was free for a while */
  MI_PURGE_RECLAIM = 2 /* also the metadata of free ranges */
} mi_purge_flags_t;

/* What mi_purge_all_ex returns. */
typedef enum mi_purge_all_status_e {
  MI_PURGE_ALL_OK = 0,      /* everything was looked at */
  MI_PURGE_ALL_PARTIAL = 1, /* not everything: theaps_pending or subprocs_pending is not 0 */
  MI_PURGE_ALL_BUSY = 2     /* nothing was done */
} mi_purge_all_status_t;

/* Of this purge alone. */
typedef struct mi_purge_all_report_s {
  size_t arena_bytes;         /* bytes returned of free runs and of slabs that were wholly free */
  size_t hole_bytes;          /* bytes returned inside slabs that have live blocks */
  size_t theaps_swept;        /* heaps of threads whose cached blocks were taken, the caller's included */
  size_t theaps_pending;      /* those that could not be had: only where the kernel refuses membarrier */
  size_t theaps_orphaned;     /* 0: after a fork, heaps without a thread are swept as all others */
  bool gated;                 /* false: threads need not announce that they are in the allocator */
  bool complete;              /* everything was looked at */
  size_t arenas_reclaimed;    /* free ranges whose metadata was returned */
  size_t arena_reclaim_bytes; /* bytes of metadata that were returned */
  size_t arenas_kept;         /* free arenas that stay because the program has made them */
  size_t subprocs_pending;    /* 0: sub-processes have no memory of their own */
  bool reclaimed;             /* MI_PURGE_RECLAIM was asked for, and done */
} mi_purge_all_report_t;

/* Return what is free, in all heaps and sub-processes, from the caches of all threads, running ones too. There is one purge at
 * a time: another one is waited for up to `wait_ms` milliseconds (mi_purge_all: 100), what the allocator does by itself in any
 * case. After that the result is MI_PURGE_ALL_BUSY; and so it is at once in the deferred free that a purge calls, and in a
 * signal handler that has interrupted this thread in the allocator. The report may be NULL, and is all zero if nothing was
 * done. Unknown flags are ignored. Calls the registered deferred free.
 * Less than 5 ms after another one it leaves alone what threads have used in between. */
int mi_purge_all_ex(mi_purge_flags_t flags, size_t wait_ms, mi_purge_all_report_t* report) MI_NOEXCEPT;
void mi_purge_all(bool force) MI_NOEXCEPT;

/* The calling thread has nothing to do for a while. What it has cached goes back to where any thread can use it, and memory is
 * returned without ageing, at most once per purge_holes_min_interval. Calls the registered deferred free.
 *
 * mi_on_thread_idle_start leaves the returning to the scavenger: true. If there is none (and it cannot be started), it does
 * what mi_on_thread_idle does, and returns false. Between start and end the thread may allocate and free, which is harmless;
 * mi_on_thread_idle_end never waits. Any of them may be called any number of times. */
void mi_on_thread_idle(void) MI_NOEXCEPT;
bool mi_on_thread_idle_start(void) MI_NOEXCEPT;
void mi_on_thread_idle_end(void) MI_NOEXCEPT;

/* End the thread that returns memory in the background, for good in this process and those that it forks, and wait for its
 * end. Threads that allocate go on to return memory. */
void mi_scavenger_stop(void) MI_NOEXCEPT;

/* Holes: memory that is returned inside slabs that also have live blocks. Present values are marked `now`; all others grow. */
typedef struct mi_purge_holes_stats_s {
  size_t purged_bytes;       /* now: returned, and not used again */
  size_t purged_blocks;      /* now: free blocks that lie in them, wholly or in part */
  size_t purged_bytes_total; /* ever returned */
  size_t discard_calls;      /* system calls for that */
  size_t reuse_calls;        /* how often blocks were taken from returned memory */
  size_t pages_freed;        /* slabs that sweeps found wholly free and gave up */
  size_t ineligible_pages;   /* now: slabs that cannot have holes (sampled blocks; memory that the program has handed over) */
  size_t ineligible_bytes;   /* now: bytes of those */
  size_t ineligible_free_bytes; /* now: free bytes in those */
  size_t unformed_bytes;        /* these four are 0: memory that was never handed out is not there */
  size_t unformed_bytes_total;
  size_t unformed_discard_calls;
  size_t unformed_reuse_calls;
  size_t pages_skipped;  /* 0: sweeps know where blocks came back, and look nowhere else */
  size_t blocks_visited; /* blocks of the slabs that sweeps have looked at */
  size_t full_sweeps;    /* sweeps */
} mi_purge_holes_stats_t;

/* NULL is allowed. Looks at the whole heap for what has no counter: some milliseconds for each 100 MB. */
void mi_purge_holes_stats_get(mi_purge_holes_stats_t* stats) MI_NOEXCEPT;

/* Print why free memory is not returned: what keeps how much of it, and which classes of blocks have how many survivors on how
 * many pages. Looks at the whole heap, too, and changes nothing. docs/memory-return.md explains
 * the lines. */
void mi_purge_holes_report(void) MI_NOEXCEPT;

/* ---- Arenas ---------------------------------------------------------------------------------------------------- */

/* An arena is memory that is reserved, or that the program hands over, and stays for as long as the process. An exclusive
 * one is used by heaps that were made in it, and by nothing else; the others are used before more memory is asked of the
 * system. There can be 160. NUMA nodes are wishes; -1 is no wish. Functions that return an int give 0 or ENOMEM. */
typedef void* mi_arena_id_t;

/* Reserve memory. With `allow_large` in huge pages of 2 MiB where the kernel has some. It is committed when it is touched,
 * whatever `commit` says. The name of the arena goes to `arena_id`, which may be NULL; NULL where there is none. */
int mi_reserve_os_memory(size_t size, bool commit, bool allow_large) MI_NOEXCEPT;
int mi_reserve_os_memory_ex(size_t size, bool commit, bool allow_large, bool exclusive,
                            mi_arena_id_t* arena_id) MI_NOEXCEPT;

/* Hand memory over: what of it is whole pieces of mi_arena_min_size bytes at multiples of mi_arena_min_alignment. It must
 * not be used or unmapped any more. Not committed memory gets access when it is handed over. Its pages are never given
 * back or exchanged, whatever `is_pinned` says. False: it is too small, in use here already, or there are too many. */
bool mi_manage_os_memory(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero,
                         int numa_node) MI_NOEXCEPT;
bool mi_manage_os_memory_ex(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero, int numa_node,
                            bool exclusive, mi_arena_id_t* arena_id) MI_NOEXCEPT;
/* The same, where memory that is not committed is made usable by a function of the program's, in pieces, before each is
 * used for the first time. It may be called in any thread, must not allocate or free, and returns false when it fails,
 * which is then lack of memory. It is never told that memory is not used any more. */
typedef bool(mi_commit_fun_t)(bool commit, void* start, size_t size, bool* is_zero, void* user_arg);
bool mi_manage_memory(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero, int numa_node,
                      bool exclusive, mi_commit_fun_t* commit_fun, void* commit_fun_arg,
                      mi_arena_id_t* arena_id) MI_NOEXCEPT;

/* Reserve pages of 1 GiB that the administrator has set aside: all of them, on so many nodes in equal parts (0: on as
 * many as there are); or at least one of them, on one node. There is no waiting, so that the time-outs are not used. */
int mi_reserve_huge_os_pages_interleave(size_t pages, size_t numa_nodes, size_t timeout_msecs) MI_NOEXCEPT;
int mi_reserve_huge_os_pages_at(size_t pages, int numa_node, size_t timeout_msecs) MI_NOEXCEPT;
int mi_reserve_huge_os_pages_at_ex(size_t pages, int numa_node, size_t timeout_msecs, bool exclusive,
                                   mi_arena_id_t* arena_id) MI_NOEXCEPT;
/* Deprecated. */
int mi_reserve_huge_os_pages(size_t pages, double max_secs, size_t* pages_reserved) MI_NOEXCEPT;

/* Where an arena is, and its size. NULL and 0 for a name that names none. */
MI_USE void* mi_arena_area(mi_arena_id_t arena_id, size_t* size) MI_NOEXCEPT;
MI_USE size_t mi_arena_min_alignment(void) MI_NOEXCEPT;
MI_USE size_t mi_arena_min_size(void) MI_NOEXCEPT;
MI_USE bool mi_arena_contains(mi_arena_id_t arena_id, const void* p) MI_NOEXCEPT;
/* A heap of memory of one arena, and of no other: when that is used up there is none. (Blocks that the profiler samples lie
 * elsewhere.) NULL: no arena of that name, or no memory. Blocks of a deleted heap stay where they are. */
MI_USE mi_heap_t* mi_heap_new_in_arena(mi_arena_id_t arena_id) MI_NOEXCEPT;
/* Print them. */
void mi_arenas_print(void) MI_NOEXCEPT;
void mi_debug_show_arenas(void) MI_NOEXCEPT;

/* ---- Functions of the program's -------------------------------------------------------------------------------- */

/* They return normally: no exception, no longjmp. The pair of function and argument is replaced as one; a call of the
 * one from before may still be under way afterwards. NULL takes the function away. */

/* Gets text in pieces, each a C string. */
typedef void(mi_output_fun)(const char* msg, void* arg);
/* Where to print when a call names no function; standard error at first. */
void mi_register_output(mi_output_fun* out, void* arg) MI_NOEXCEPT;

/* Gets, with no lock held and before errno is set,
 *   ENOMEM     there is no memory,
 *   EOVERFLOW  a product or a size is more than there can be (errno becomes ENOMEM),
 *   EINVAL     an alignment is refused, or what is freed or asked about is no block,
 *   EAGAIN     a block is freed twice,
 *   EFAULT     the program has written beyond the end of a guarded block.
 * The wrong free is then ignored (statistics count it). Without a function, EAGAIN, EFAULT and the EINVAL of a free are
 * told on standard error, and the process is aborted. The function may allocate and free; an error that it causes itself
 * does not call it again. docs/hardening.md tells which mistakes are found, and when. */
typedef void(mi_error_fun)(int err, void* arg);
void mi_register_error(mi_error_fun* fun, void* arg) MI_NOEXCEPT;

/* One in `sample_rate` of a thread's allocations (0: none) of `min` to `max` bytes gets memory of its own that ends where
 * nobody may touch: going beyond the end is a fault. The same seed guards the same ones, 0 is a seed of chance. NULL is the
 * calling thread's own heap. The options guarded_... do the same for all threads. */
void mi_theap_guarded_set_sample_rate(mi_theap_t* theap, size_t sample_rate, size_t seed) MI_NOEXCEPT;
void mi_theap_guarded_set_size_bound(mi_theap_t* theap, size_t min, size_t max) MI_NOEXCEPT;

/* Frees what the program has put off: all of it with `force`. `heartbeat` grows by one from call to call. Called by
 * mi_collect, and by slow allocations now and then (option generic_collect), when it may allocate, too; never in two threads
 * at once, and not from within itself. */
typedef void(mi_deferred_free_fun)(bool force, unsigned long long heartbeat, void* arg);
void mi_register_deferred_free(mi_deferred_free_fun* deferred_free, void* arg) MI_NOEXCEPT;

/* ---- Text ------------------------------------------------------------------------------------------------------ */

/* With `out` NULL, or without it, to the registered function. */
void mi_process_info_print(void) MI_NOEXCEPT;
void mi_process_info_print_out(mi_output_fun* out, void* arg) MI_NOEXCEPT;
void mi_options_print(void) MI_NOEXCEPT;
void mi_options_print_out(mi_output_fun* out, void* arg) MI_NOEXCEPT;
/* Blocks by size, and the process. The argument of mi_stats_print is not used. Counts cover all threads, also in the
 * function with `thread`, and there is nothing to reset or to merge. */
void mi_stats_print(void* unused) MI_NOEXCEPT;
void mi_thread_stats_print_out(mi_output_fun* out, void* arg) MI_NOEXCEPT;
void mi_stats_reset(void) MI_NOEXCEPT;
void mi_stats_merge(void) MI_NOEXCEPT;

/* ---- Options --------------------------------------------------------------------------------------------------- */

/* Which of them have an effect says docs/options.md. Each may be given as MIMALLOC_NAME in the environment. */
typedef enum mi_option_e {
  mi_option_show_errors,
  mi_option_show_stats,
  mi_option_verbose,
  mi_option_deprecated_eager_commit,
  mi_option_arena_eager_commit,
  mi_option_purge_decommits,
  mi_option_allow_large_os_pages,
  mi_option_reserve_huge_os_pages,
  mi_option_reserve_huge_os_pages_at,
  mi_option_reserve_os_memory,
  mi_option_deprecated_segment_cache,
  mi_option_deprecated_page_reset,
  mi_option_deprecated_abandoned_page_purge,
  mi_option_deprecated_segment_reset,
  mi_option_deprecated_eager_commit_delay,
  mi_option_purge_delay,
  mi_option_use_numa_nodes,
  mi_option_disallow_os_alloc,
  mi_option_os_tag,
  mi_option_max_errors,
  mi_option_max_warnings,
  mi_option_deprecated_max_segment_reclaim,
  mi_option_destroy_on_exit,
  mi_option_arena_reserve,
  mi_option_arena_purge_mult,
  mi_option_deprecated_purge_extend_delay,
  mi_option_disallow_arena_alloc,
  mi_option_retry_on_oom,
  mi_option_deprecated_visit_abandoned,
  mi_option_guarded_min,
  mi_option_guarded_max,
  mi_option_guarded_precise,
  mi_option_guarded_sample_rate,
  mi_option_guarded_sample_seed,
  mi_option_generic_collect,
  mi_option_page_reclaim_on_free,
  mi_option_page_full_retain,
  mi_option_page_max_candidates,
  mi_option_max_vabits,
  mi_option_pagemap_commit,
  mi_option_page_commit_on_demand,
  mi_option_page_max_reclaim,
  mi_option_page_cross_thread_max_reclaim,
  mi_option_allow_thp,
  mi_option_minimal_purge_size,
  mi_option_arena_max_object_size,
  mi_option_arena_is_numa_local,
  mi_option_prof,
  mi_option_prof_sample_rate,
  mi_option_prof_bt_max,
  mi_option_prof_accum,
  mi_option_prof_seed,
  mi_option_prof_max_bytes,
  mi_option_memory_events,
  mi_option_purge_zeroes,
  mi_option_scavenger,
  mi_option_purge_holes,
  mi_option_purge_holes_eager_zero,
  mi_option_purge_holes_min_interval,
  mi_option_purge_holes_full_every,
  mi_option_snapshot_on_exit,
  mi_option_page_reserve,
  mi_option_resident_first,
  mi_option_large_span,
  mi_option_large_span_max,
  _mi_option_last,
  /* Former names. */
  mi_option_large_os_pages = mi_option_allow_large_os_pages,
  mi_option_eager_region_commit = mi_option_arena_eager_commit,
  mi_option_reset_decommits = mi_option_purge_decommits,
  mi_option_reset_delay = mi_option_purge_delay,
  mi_option_limit_os_alloc = mi_option_disallow_os_alloc
} mi_option_t;

/* Enabled is everything but 0. */
MI_USE bool mi_option_is_enabled(mi_option_t option) MI_NOEXCEPT;
void mi_option_enable(mi_option_t option) MI_NOEXCEPT;
void mi_option_disable(mi_option_t option) MI_NOEXCEPT;
void mi_option_set_enabled(mi_option_t option, bool enable) MI_NOEXCEPT;
void mi_option_set_enabled_default(mi_option_t option, bool enable) MI_NOEXCEPT;

MI_USE long mi_option_get(mi_option_t option) MI_NOEXCEPT;
MI_USE long mi_option_get_clamp(mi_option_t option, long min, long max) MI_NOEXCEPT;
/* In bytes, also where the option is in KiB; 0 if it is negative. */
MI_USE size_t mi_option_get_size(mi_option_t option) MI_NOEXCEPT;
void mi_option_set(mi_option_t option, long value) MI_NOEXCEPT;
/* No effect if the environment or mi_option_set has set the option. */
void mi_option_set_default(mi_option_t option, long value) MI_NOEXCEPT;

#ifdef __cplusplus
}
#endif

/* ---- C++: an allocator for containers -------------------------------------------------------------------------- */

#ifdef __cplusplus
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

/* std::vector<int, mi_stl_allocator<int>> numbers; All of them are the same: any may free what another gave. */
template <class T>
struct mi_stl_allocator {
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;
  using is_always_equal = std::true_type;
  template <class U>
  struct rebind {
    using other = mi_stl_allocator<U>;
  };

  mi_stl_allocator() noexcept = default;
  template <class U>
  mi_stl_allocator(const mi_stl_allocator<U>&) noexcept {}
  mi_stl_allocator select_on_container_copy_construction() const { return *this; }

  T* allocate(size_type count) {
    if (alignof(T) <= 16) return static_cast<T*>(mi_new_n(count, sizeof(T)));
    /* More than there can be: the same error as for lack of memory. */
    return static_cast<T*>(mi_new_aligned(count > max_size() ? max_size() * sizeof(T) : count * sizeof(T), alignof(T)));
  }
  void deallocate(T* p, size_type) noexcept { mi_free(p); }
  size_type max_size() const noexcept { return std::numeric_limits<difference_type>::max() / sizeof(T); }
};

template <class T, class U>
bool operator==(const mi_stl_allocator<T>&, const mi_stl_allocator<U>&) noexcept { return true; }
template <class T, class U>
bool operator!=(const mi_stl_allocator<T>&, const mi_stl_allocator<U>&) noexcept { return false; }

/* Allocators with a heap of their own: each that is made without a heap makes one, and its copies (also those for other types)
 * share it. When the last copy is gone the heap is deleted, or destroyed, in which case nothing is freed one by one. A heap
 * that is handed to the constructor stays. */
namespace mi_detail {
/* std::bad_alloc, also where the compiler knows no exceptions. */
inline void* no_heap_memory() {
  volatile std::size_t most = static_cast<std::size_t>(-1); /* so that compilers do not warn of it */
  return mi_new_n(most, 2);
}

template <class T, bool destroy>
struct heap_allocator {
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;
  using is_always_equal = std::false_type;

  T* allocate(size_type count) {
    if (alignof(T) <= 16) return static_cast<T*>(mi_heap_alloc_new_n(heap.get(), count, sizeof(T)));
    void* p = count > max_size() ? nullptr : mi_heap_malloc_aligned(heap.get(), count * sizeof(T), alignof(T));
    return static_cast<T*>(p != nullptr ? p : no_heap_memory());
  }
  void deallocate(T* p, size_type) noexcept {
    if (!destroy) mi_free(p);
  }
  size_type max_size() const noexcept { return std::numeric_limits<difference_type>::max() / sizeof(T); }
  void collect(bool force) { mi_heap_collect(heap.get(), force); }
  bool is_equal(const std::shared_ptr<mi_heap_t>& other) const noexcept { return heap == other; }

  std::shared_ptr<mi_heap_t> heap;

 protected:
  heap_allocator() : heap(mi_heap_new(), destroy ? mi_heap_destroy : mi_heap_delete) {
    if (heap.get() == nullptr) no_heap_memory();
  }
  explicit heap_allocator(mi_heap_t* given) : heap(given, [](mi_heap_t*) {}) {}
  explicit heap_allocator(const std::shared_ptr<mi_heap_t>& shared) noexcept : heap(shared) {}
};
}

template <class T>
struct mi_heap_stl_allocator : mi_detail::heap_allocator<T, false> {
  template <class U>
  struct rebind {
    using other = mi_heap_stl_allocator<U>;
  };
  mi_heap_stl_allocator() = default;
  explicit mi_heap_stl_allocator(mi_heap_t* heap) : mi_detail::heap_allocator<T, false>(heap) {}
  template <class U>
  mi_heap_stl_allocator(const mi_heap_stl_allocator<U>& other) noexcept
      : mi_detail::heap_allocator<T, false>(other.heap) {}
  mi_heap_stl_allocator select_on_container_copy_construction() const { return *this; }
};

template <class T>
struct mi_heap_destroy_stl_allocator : mi_detail::heap_allocator<T, true> {
  template <class U>
  struct rebind {
    using other = mi_heap_destroy_stl_allocator<U>;
  };
  mi_heap_destroy_stl_allocator() = default;
  explicit mi_heap_destroy_stl_allocator(mi_heap_t* heap) : mi_detail::heap_allocator<T, true>(heap) {}
  template <class U>
  mi_heap_destroy_stl_allocator(const mi_heap_destroy_stl_allocator<U>& other) noexcept
      : mi_detail::heap_allocator<T, true>(other.heap) {}
  mi_heap_destroy_stl_allocator select_on_container_copy_construction() const { return *this; }
};

template <class T, class U>
bool operator==(const mi_heap_stl_allocator<T>& a, const mi_heap_stl_allocator<U>& b) noexcept {
  return a.is_equal(b.heap);
}
template <class T, class U>
bool operator!=(const mi_heap_stl_allocator<T>& a, const mi_heap_stl_allocator<U>& b) noexcept { return !(a == b); }
template <class T, class U>
bool operator==(const mi_heap_destroy_stl_allocator<T>& a, const mi_heap_destroy_stl_allocator<U>& b) noexcept {
  return a.is_equal(b.heap);
}
template <class T, class U>
bool operator!=(const mi_heap_destroy_stl_allocator<T>& a, const mi_heap_destroy_stl_allocator<U>& b) noexcept {
  return !(a == b);
}
#endif

#endif
