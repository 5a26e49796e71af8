/* mimalloc-pprof: statistics.
 *
 * Counts of blocks and their bytes are exact and cover all threads. Nothing is kept per call, so no peak is known:
 * `peak` is 0. Fields that have no meaning in this allocator, or that it does not count yet, are 0: all but those with
 * a comment. What is marked `process` is 0 for one heap and for a sub-process: they share it.
 */
#ifndef MIMALLOC_STATS_H
#define MIMALLOC_STATS_H

#include "mimalloc.h"

#define MI_STAT_VERSION 5

/* Something of which there is more or less at a time: all there ever was, the most at a time, now. */
typedef struct mi_stat_count_s {
  int64_t total;
  int64_t peak;
  int64_t current;
} mi_stat_count_t;

/* Something that happens. */
typedef struct mi_stat_counter_s {
  int64_t total;
} mi_stat_counter_t;

/* Bins of block sizes (see mi_stats_get_bin_size), and of runs of memory. */
#define MI_BIN_COUNT 74
#define MI_CHUNK_BIN_COUNT 6

typedef struct mi_stats_s {
  size_t size;    /* sizeof(mi_stats_t) */
  size_t version; /* MI_STAT_VERSION */
  mi_stat_count_t pages; /* slabs and larger blocks, now */
  mi_stat_count_t reserved;  /* process: bytes that blocks can be made of without asking for more */
  mi_stat_count_t committed; /* process: of these, bytes that may be in memory; total: with all that was given back */
  mi_stat_counter_t reset;
  mi_stat_counter_t purged; /* process: bytes given back to the operating system */
  mi_stat_count_t page_committed;
  mi_stat_count_t pages_abandoned;
  mi_stat_count_t threads; /* that have a heap, now */
  mi_stat_count_t malloc_normal; /* bytes of blocks up to 512 KiB, by their usable sizes */
  mi_stat_count_t malloc_huge;   /* bytes of larger blocks */
  mi_stat_count_t malloc_requested;
  mi_stat_counter_t mmap_calls; /* process: mappings made for blocks */
  mi_stat_counter_t commit_calls;
  mi_stat_counter_t reset_calls;
  mi_stat_counter_t purge_calls; /* process: ranges given back */
  mi_stat_counter_t arena_count; /* process: arenas that the program has made */
  mi_stat_counter_t malloc_normal_count; /* blocks up to 512 KiB */
  mi_stat_counter_t malloc_huge_count;   /* larger blocks */
  mi_stat_counter_t malloc_guarded_count;
  mi_stat_counter_t arena_rollback_count;
  mi_stat_counter_t arena_purges;
  mi_stat_counter_t pages_extended;
  mi_stat_counter_t pages_retire; /* process: empty slabs that were given up to return their memory */
  mi_stat_counter_t page_searches;
  mi_stat_counter_t page_searches_count;
  mi_stat_count_t segments;
  mi_stat_count_t segments_abandoned;
  mi_stat_count_t segments_cache;
  mi_stat_count_t _segments_reserved;
  mi_stat_count_t heaps;  /* mi_heap_new and the main one */
  mi_stat_count_t theaps; /* parts of heaps that threads have, now */
  mi_stat_counter_t pages_reclaim_on_alloc;
  mi_stat_counter_t pages_reclaim_on_free;
  mi_stat_counter_t pages_reabandon_full;
  mi_stat_counter_t pages_unabandon_busy_wait;
  mi_stat_counter_t heaps_delete_wait;
  mi_stat_count_t _stat_reserved[4];
  mi_stat_counter_t _stat_counter_reserved[4];
  mi_stat_count_t malloc_bins[MI_BIN_COUNT]; /* blocks */
  mi_stat_count_t page_bins[MI_BIN_COUNT];   /* slabs, now */
  mi_stat_count_t chunk_bins[MI_CHUNK_BIN_COUNT];
} mi_stats_t;

/* A variable that is ready for mi_stats_get. */
#define mi_stats_t_decl(name)        \
  mi_stats_t name = {0};             \
  name.size = sizeof(mi_stats_t);    \
  name.version = MI_STAT_VERSION

#ifdef __cplusplus
#undef mi_stats_t_decl
#define mi_stats_t_decl(name)        \
  mi_stats_t name = {};              \
  name.size = sizeof(mi_stats_t);    \
  name.version = MI_STAT_VERSION
extern "C" {
#endif

/* Read the counts. False, and nothing is written, unless `size` and `version` are set as above. */
bool mi_stats_get(mi_stats_t* stats) MI_NOEXCEPT;

/* JSON: in `buf`, as much as fits with a zero behind it; if that is NULL, in a block that the caller frees with
 * mi_free. NULL: no memory, or no room at all. mi_stats_as_json writes counts that were read before; `process`, `holes` and
 * `retained` (bytes that are free and in memory, by what keeps them) are of the moment of the call. */
char* mi_stats_get_json(size_t buf_size, char* buf) MI_NOEXCEPT;
char* mi_stats_as_json(mi_stats_t* stats, size_t buf_size, char* buf) MI_NOEXCEPT;

/* Text for people; `out` NULL: to the registered function. */
void mi_stats_print_out(mi_output_fun* out, void* arg) MI_NOEXCEPT;

/* The same for one heap, and for all heaps of a sub-process. Blocks of a deleted heap are the main heap's, those of a
 * destroyed one are there freed blocks. No counts are kept apart: there is nothing to merge, and what a sub-process has
 * besides its heaps, `exclusive`, is 0. mi_subproc_heap_stats_print_out prints each heap by itself. */
bool mi_heap_stats_get(mi_heap_t* heap, mi_stats_t* stats) MI_NOEXCEPT;
char* mi_heap_stats_get_json(mi_heap_t* heap, size_t buf_size, char* buf) MI_NOEXCEPT;
void mi_heap_stats_print_out(mi_heap_t* heap, mi_output_fun* out, void* arg) MI_NOEXCEPT;
void mi_heap_stats_merge_to_subproc(mi_heap_t* heap) MI_NOEXCEPT;
bool mi_subproc_stats_get(mi_subproc_id_t subproc, mi_stats_t* stats) MI_NOEXCEPT;
bool mi_subproc_stats_get_exclusive(mi_subproc_id_t subproc, mi_stats_t* stats) MI_NOEXCEPT;
char* mi_subproc_stats_get_json(mi_subproc_id_t subproc, size_t buf_size, char* buf) MI_NOEXCEPT;
void mi_subproc_stats_print_out(mi_subproc_id_t subproc, mi_output_fun* out, void* arg) MI_NOEXCEPT;
void mi_subproc_heap_stats_print_out(mi_subproc_id_t subproc, mi_output_fun* out, void* arg) MI_NOEXCEPT;

/* The largest block of a bin: 1 to 8 words, then four bins per doubling. 0 for the last bin, which has all larger
 * blocks. */
size_t mi_stats_get_bin_size(size_t bin) MI_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
