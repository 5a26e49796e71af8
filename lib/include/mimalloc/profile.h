/* mimalloc-pprof: the sampled profiler.
 *
 * While it runs, every allocation of s bytes (of its size class) is sampled with probability 1 - exp(-s / rate), whatever was
 * sampled before. So a number of sampled blocks divided by that is an estimate without bias. All counts in this file are of
 * *sampled* blocks, in their usable bytes: they are not estimates.
 *
 * All functions may be called from any thread and at any time, also in functions that look at samples (but see mi_prof_start).
 */
#ifndef MIMALLOC_PROFILE_H
#define MIMALLOC_PROFILE_H

#include "../mimalloc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Begin to sample one in about `sample_rate` bytes; 0: what the option prof_sample_rate says, 512 KiB if nothing else. Every
 * allocation that begins afterwards is subject to it. False, and nothing changes: it is running already; or there is no memory;
 * or this is a function that mi_prof_visit or mi_prof_snapshot_visit has called. */
bool mi_prof_start(size_t sample_rate) MI_NOEXCEPT;
/* The same with a seed: the same seed samples the same allocations of a thread. mi_prof_start takes the option prof_seed. */
bool mi_prof_start_seeded(size_t sample_rate, uint64_t seed) MI_NOEXCEPT;
/* Stop: no allocation that begins afterwards is sampled, what was found is forgotten, and its memory is given back. */
void mi_prof_stop(void) MI_NOEXCEPT;
MI_USE bool mi_prof_is_enabled(void) MI_NOEXCEPT;
/* Forget what was allocated and freed so far, but not what is live. */
void mi_prof_reset(void) MI_NOEXCEPT;

/* Who has the last word where the environment, or mi_option_set, has said something too. */
typedef enum mi_prof_config_mode_e {
  MI_PROF_CONFIG_FALLBACK = 0, /* the others: a field counts only where nothing else was said */
  MI_PROF_CONFIG_OVERRIDE = 1  /* the fields, and the options are set to them */
} mi_prof_config_mode_t;

#define MI_PROF_CONFIG_VERSION 1

/* Everything about a start. 0, false and NULL say nothing. */
typedef struct mi_prof_config_s {
  size_t size; /* sizeof(mi_prof_config_t) */
  int version; /* MI_PROF_CONFIG_VERSION */
  int mode;    /* mi_prof_config_mode_t */
  size_t sample_interval;    /* mean distance between samples, in bytes */
  size_t max_profiler_bytes; /* address space for stacks and counts, in bytes */
  uint64_t seed;
  bool accum;             /* accepted: what was allocated is always counted */
  size_t max_stack_depth; /* most frames of a stack */
  const char* dump_at_exit; /* where to write a dump when the process ends, as in MIMALLOC_PROF_DUMP_AT_EXIT; is copied */
  int dump_format;          /* 0 text, 1 profile.proto */
} mi_prof_config_t;
/* A configuration that says nothing, and has size and version. */
#define mi_prof_config_t_decl(name) mi_prof_config_t name = {sizeof(mi_prof_config_t), MI_PROF_CONFIG_VERSION, 0, 0, 0, 0, false, 0, NULL, 0}

/* As mi_prof_start; NULL is mi_prof_start(0). False also for a size, version, mode or format that is not known, or a path that is
 * too long. */
bool mi_prof_start_ex(const mi_prof_config_t* config) MI_NOEXCEPT;

#define MI_PROF_STATS_VERSION 3

typedef struct mi_prof_stats_s {
  size_t size; /* sizeof(mi_prof_stats_t) */
  int version; /* MI_PROF_STATS_VERSION */
  bool enabled;
  bool accum; /* true */
  size_t sample_rate; /* in bytes, of this run or the last */
  size_t live_samples; /* sampled blocks that are live, and their bytes */
  size_t live_bytes;
  size_t accum_samples; /* since the start or the last reset */
  size_t accum_bytes;
  size_t unique_stacks;
  size_t arena_committed; /* bytes that stacks, counts and records take */
  size_t stack_table_overflows; /* samples that were dropped for lack of memory for stacks */
  /* version 1 ends here */
  size_t dropped_samples; /* samples that were dropped for any reason */
  /* version 2 ends here. What follows is exact, of the whole heap: see mimalloc-stats.h */
  size_t heap_committed;
  size_t heap_reserved;
  size_t heap_malloc_requested; /* 0 */
  size_t heap_pages;
  size_t heap_pages_abandoned; /* 0 */
  size_t heap_count;
  size_t theap_count;
  size_t heap_purged;
  bool heap_stats_detailed; /* false: heap_malloc_requested is not counted */
} mi_prof_stats_t;
#define mi_prof_stats_t_decl(name) mi_prof_stats_t name = {sizeof(mi_prof_stats_t), MI_PROF_STATS_VERSION, false, false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false}

/* False, and nothing is written, unless size and version belong together: those of version 1 and 2 end where it says so above. */
bool mi_prof_stats_get(mi_prof_stats_t* stats) MI_NOEXCEPT;
/* Live sampled blocks; bytes that stacks, counts and records take; different stacks. NULL is allowed. */
void mi_prof_debug_stats(size_t* records, size_t* bytes, size_t* unique_stacks) MI_NOEXCEPT;

/* What is known of a stack. */
typedef struct mi_prof_sample_info_s {
  const void* const* stack; /* return addresses, innermost first */
  size_t depth;
  size_t live_objects;
  size_t live_bytes;
  size_t accum_objects; /* since the start or the last reset */
  size_t accum_bytes;
} mi_prof_sample_info_t;

/* False ends the visit. What `info` points to is there until the function returns (of a snapshot: until that is freed). No lock is
 * held: it may allocate, and call everything here but mi_prof_start. */
typedef bool (mi_prof_visit_fun)(const mi_prof_sample_info_t* info, void* arg);
/* Every stack once, as it was when this was called. False: the function has ended it, or is NULL, or there is no memory. */
bool mi_prof_visit(mi_prof_visit_fun* visitor, void* arg) MI_NOEXCEPT;

/* The same, taken now and looked at later, as often as wanted, also after a stop. */
typedef struct mi_prof_snapshot_s mi_prof_snapshot_t;
/* NULL when there is no memory. */
MI_USE mi_prof_snapshot_t* mi_prof_snapshot_new(void) MI_NOEXCEPT;
bool mi_prof_snapshot_visit(const mi_prof_snapshot_t* snapshot, mi_prof_visit_fun* visitor, void* arg) MI_NOEXCEPT;
/* NULL is allowed. */
void mi_prof_snapshot_free(mi_prof_snapshot_t* snapshot) MI_NOEXCEPT;

/* Dumps: what was found so far, for other programs to read (docs/formats.md). Other threads go on meanwhile. Without a run, or after a
 * stop, they tell of nothing. What these functions allocate is not in the heap.
 *
 * False, and the cause in errno: the file cannot be written (then there is none, or the one that was there before); there is no
 * memory; the argument is NULL (EINVAL); or this is called by what a dump calls (EDEADLK). The file has another name until it is
 * complete, and only its owner may read it. Its folder is made if only the last part of that is missing. */
bool mi_prof_dump(const char* path) MI_NOEXCEPT;       /* text: gperftools' heap profile, heap_v2 */
bool mi_prof_dump_proto(const char* path) MI_NOEXCEPT; /* pprof's profile.proto, not packed */
/* The same into a function, piece by piece, which may allocate and must return normally. */
typedef void (mi_prof_write_fun)(void* arg, const char* buf, size_t len);
bool mi_prof_dump_writer(mi_prof_write_fun* writer, void* arg) MI_NOEXCEPT;
bool mi_prof_dump_proto_writer(mi_prof_write_fun* writer, void* arg) MI_NOEXCEPT;

/* A file that has code in the process. */
typedef struct mi_prof_module_info_s {
  const char* path; /* valid until the function returns */
  uintptr_t base;   /* lowest address of its mappings that are next to each other, one of them executable */
  size_t size;      /* of those together, in bytes */
} mi_prof_module_info_t;

/* False ends the visit. It may allocate, and call everything. */
typedef bool (mi_prof_module_visit_fun)(const mi_prof_module_info_t* module, void* arg);
/* Every module that is loaded, in the order of addresses. False: the function has ended it, or is NULL, or there is no memory. */
bool mi_prof_modules_visit(mi_prof_module_visit_fun* visitor, void* arg) MI_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
