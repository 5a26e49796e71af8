/* mimalloc-pprof: the exact profiler.
 *
 * While it runs, every allocation and every free of the process is counted at its *program point*, the whole stack that
 * allocates. Bytes are those that were asked for. What it finds is written as a file of Valgrind's DHAT, which its viewer
 * (dh_view.html) and `mpp` open. How often blocks are read and written cannot be known without Valgrind's emulated processor:
 * the file does not tell it.
 *
 * realloc is counted as Valgrind does it: one more block and all its new bytes in the totals, at the program point that has
 * allocated the block, and the block's life goes on. The free of a block from before the start changes no count.
 *
 * All functions may be called from any thread, but not from a signal handler.
 */
#ifndef MIMALLOC_DHAT_H
#define MIMALLOC_DHAT_H

#include "../mimalloc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Begin to record every allocation that is made after this returns; what was recorded before is forgotten. Program points and
 * their stacks take at most as many bytes as the environment variable MIMALLOC_DHAT_MAX_BYTES says, 512 MiB if it says nothing;
 * what is beyond is counted without its stack. False, and nothing changes: a recording goes on; or there is no memory; or there
 * have been 4,095 recordings in this process. */
bool mi_dhat_start(void) MI_NOEXCEPT;
/* Record nothing more. What was found stays. */
void mi_dhat_stop(void) MI_NOEXCEPT;
MI_USE bool mi_dhat_is_enabled(void) MI_NOEXCEPT;

#define MI_DHAT_STATS_VERSION 1

/* What the present or last recording has counted so far. */
typedef struct mi_dhat_stats_s {
  size_t size;             /* sizeof(mi_dhat_stats_t) */
  int version;             /* MI_DHAT_STATS_VERSION */
  bool enabled;            /* a recording goes on */
  bool incomplete;         /* `dropped` is not 0 */
  uint64_t total_bytes;    /* allocated in all */
  uint64_t total_blocks;
  uint64_t live_bytes;     /* not freed yet */
  uint64_t live_blocks;
  uint64_t peak_bytes;     /* live when most bytes were. With several threads, those of the others that allocate or free in this */
  uint64_t peak_blocks;    /* very moment may be counted or not */
  uint64_t dropped;        /* allocations that are counted without their stack, and events that are in no count */
  uint64_t internal_bytes; /* memory of the profiler; the 16 bytes that it has for each block are not in this number */
} mi_dhat_stats_t;

/* A structure with size and version set, for mi_dhat_stats_get. */
#define mi_dhat_stats_t_decl(name) \
  mi_dhat_stats_t name = { sizeof(mi_dhat_stats_t), MI_DHAT_STATS_VERSION, false, false, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Set `size` and `version` first. False, and nothing is written: they are others than these. The sums are of all program points:
 * the more there are, the longer it takes. */
bool mi_dhat_stats_get(mi_dhat_stats_t* stats) MI_NOEXCEPT;
/* Write what the present or last recording has found so far; with none, a file of nothing. The file takes its place when it is
 * complete. False: there is none, or the one that was there before; the path is NULL, or cannot be written. */
bool mi_dhat_dump(const char* path) MI_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
