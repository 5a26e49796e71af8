/* mimalloc-pprof: memory events.
 *
 * A callback for each allocation, each free and each change of size in the whole process, and exact totals. Off until it is switched on, by
 * MIMALLOC_MEMORY_EVENTS=1 in the environment or by mi_memory_tracking_set_enabled, and then costs nothing at all. All functions may be
 * called from any thread, also from a callback. Sizes are in bytes; the bytes of a block are those that can be used
 * (mi_usable_size).
 *
 * Each call is told once: realloc as a change of size, whether the block moves or not; mi_heap_destroy as the free of each block; what
 * fails, not at all. Not told are blocks that a signal handler gets which has interrupted the allocator itself.
 */
#ifndef MIMALLOC_MEMORY_EVENTS_H
#define MIMALLOC_MEMORY_EVENTS_H

#include "../mimalloc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mi_memory_change_kind_e {
  MI_MEMORY_ALLOCATE,
  MI_MEMORY_FREE,
  MI_MEMORY_RESIZE,
  MI_MEMORY_CHANGE_COUNT
} mi_memory_change_kind_t;

typedef struct mi_memory_change_s {
  mi_memory_change_kind_t kind;
  uint64_t total_bytes;  /* live after this change; calls of other threads that are on their way may be missing */
  int64_t delta_bytes;   /* by how much that has changed: 0 for a block that is resized within its usable size */
  uint64_t request_size; /* what the program has asked for; 0 for a free */
} mi_memory_change_t;

/* Called by the thread that allocates or frees, with no lock held, before a block that is freed is anybody else's. It may allocate and free: what
 * it does is not told, and blocks that it allocates are in no total (nor is their free told, whenever that may be). It has to
 * return: no longjmp, no end of the thread. */
typedef void (mi_memory_change_fun)(const mi_memory_change_t* change, void* arg);

typedef struct mi_memory_callbacks_s {
  mi_memory_change_fun* handlers[MI_MEMORY_CHANGE_COUNT]; /* NULL: this kind is not told */
  void* args[MI_MEMORY_CHANGE_COUNT];
} mi_memory_callbacks_t;

/* Each call that begins after this returns is told, or is not told. Always true. */
bool mi_memory_tracking_set_enabled(bool enabled) MI_NOEXCEPT;
MI_USE bool mi_memory_tracking_is_enabled(void) MI_NOEXCEPT;

/* Use these callbacks instead of those before; NULL: none. When this returns, no thread runs one of those before any more, so that what they use
 * may be given up; so do not hold a lock that they wait for. Only a call from within a callback does not wait. True, but in
 * a signal handler that has interrupted this function. */
bool mi_memory_set_callbacks(const mi_memory_callbacks_t* callbacks) MI_NOEXCEPT;

#define MI_MEMORY_SNAPSHOT_VERSION 1

typedef struct mi_memory_snapshot_s {
  size_t size; /* sizeof(mi_memory_snapshot_t) */
  int version; /* MI_MEMORY_SNAPSHOT_VERSION */
  /* Blocks that the program has now: all of them, whenever tracking was switched on, and also while it is off. */
  uint64_t live_bytes;
  /* All there ever were: what was there when tracking was switched on, and what was allocated since; of blocks that became larger, what
   * they grew by. What was allocated while tracking was off counts as far as there is more than when it was switched off. */
  uint64_t accum_bytes;
  uint64_t live_count;
  uint64_t accum_count; /* a block that was resized is no new one */
} mi_memory_snapshot_t;

#define mi_memory_snapshot_t_decl(name) \
  mi_memory_snapshot_t name = { sizeof(mi_memory_snapshot_t), MI_MEMORY_SNAPSHOT_VERSION, 0, 0, 0, 0 }

/* False, and nothing is written, if `snapshot` is NULL or its size or version is another. Exact but for calls of other threads that are on their
 * way. Takes a few microseconds a thread. */
MI_USE bool mi_memory_snapshot(mi_memory_snapshot_t* snapshot) MI_NOEXCEPT;

/* Whether to go on. */
typedef bool (mi_memory_allocation_visit_fun)(void* allocation, size_t usable_size, void* arg);

/* Visit each live block of all threads and heaps, until the visitor says no, whether tracking is on or off. Other threads go on meanwhile: a
 * block that is live all the time is visited once, one that is allocated or freed meanwhile perhaps. The visitor may allocate.
 * False only without a visitor. */
bool mi_memory_visit_live_allocations(mi_memory_allocation_visit_fun* visitor, void* arg) MI_NOEXCEPT;

/* Memory straight from the operating system, in whole pages, zeroed: no event, no statistics, no profile. For mi_unwrapped_free and
 * mi_unwrapped_realloc only. Alignment 0 is that of a pointer; one that is no power of two gives NULL and EINVAL. */
MI_NEW MI_SIZE(1) void* mi_unwrapped_malloc(size_t size, size_t alignment) MI_NOEXCEPT;
/* NULL is allowed. A block of mi_malloc is left alone, with EINVAL. */
void mi_unwrapped_free(void* p) MI_NOEXCEPT;
/* Always another block; NULL allocates, and size 0 frees and gives NULL. On failure NULL, and the block is as it was. */
MI_USE MI_SIZE(2) void* mi_unwrapped_realloc(void* p, size_t newsize, size_t alignment) MI_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
