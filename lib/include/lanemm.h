/* LaneMM, the memory manager, for C and C++.
 *
 * This header is optional: link with -llanemm, or start a program with LD_PRELOAD=liblanemm.so,
 * and malloc, free, new, delete and their relatives are those of LaneMM.
 * Any thread may call any function at any time. */
#ifndef LANEMM_H
#define LANEMM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; lanemm_version returns that of the library. */
#define LANEMM_VERSION "1.0.0"

const char *lanemm_version(void);

/* Blocks of one tier. */
struct lanemm_tier {
  size_t block_count; /* blocks in use */
  size_t used_bytes;  /* their usable bytes */
  size_t span_bytes;  /* bytes of their spans */
};

/* The memory use of the process. Later versions add fields at the end only. */
struct lanemm_status {
  size_t reserved_bytes;         /* address space taken from the system */
  size_t committed_bytes;        /* of it: in use, cached, or not yet purged */
  size_t peak_bytes;             /* highest committed_bytes so far */
  size_t cached_bytes;           /* free memory, to be reused or purged */
  size_t used_bytes;             /* usable bytes of all blocks in use */
  struct lanemm_tier small_blocks;  /* up to 8 KB */
  struct lanemm_tier medium_blocks; /* up to 64 KB */
  struct lanemm_tier large_blocks;  /* above */
  size_t os_calls;               /* system calls since the start */
  size_t contended;              /* failed attempts to lock an arena shard, since the start */
};

/* Fills *status; exact while no other thread allocates or frees. size is
 * sizeof(struct lanemm_status): a program keeps working with a later library. */
void lanemm_status_read(struct lanemm_status *status, size_t size);

/* The blocks of one size class, without debug blocks. Later versions add fields at the end only. */
struct lanemm_class {
  size_t block_size;      /* usable bytes of a block */
  size_t block_count;     /* blocks in use */
  size_t used_bytes;      /* their usable bytes */
  size_t free_count;      /* blocks of the spans that are not in use */
  size_t slack_bytes;     /* bytes of the spans that are in no block in use */
  size_t span_count;      /* spans of this class */
  size_t span_bytes;      /* their bytes */
  size_t part_span_count; /* spans that hold free blocks beside blocks in use */
  size_t owner_count;     /* threads that hold a span with a free block */
};

/* Fills up to count records, from the smallest block size on; exact while no other thread allocates
 * or frees. size is sizeof(struct lanemm_class). Returns the number of size classes. */
size_t lanemm_state(struct lanemm_class *classes, size_t count, size_t size);

/* Purges the free memory of all threads now. */
void lanemm_trim(void);

/* Returns or sets the time, in milliseconds, that memory stays free before it is purged. */
unsigned lanemm_purge_delay_ms(void);
void lanemm_set_purge_delay_ms(unsigned delay_ms);

/* Calls visitor for each block in use, in order of address. Exact while no other thread allocates
 * or frees; the visitor may do both, and may see its own new blocks. NULL: a line on stderr. */
void lanemm_visit_blocks(void (*visitor)(void *block, size_t usable_size, void *context),
                         void *context);

/* Changes settings: words and key=value, separated by commas, as in the environment variable
 * LANEMM, for example "contention,growth"; "WORD=0" cancels a word. If a word is unknown, returns 0
 * and prints a line to stderr; the others still apply. NULL, as of getenv, changes nothing. In the
 * handler of a signal that has interrupted such a call of the same thread it returns 0 after 0.1 s,
 * prints a line, and changes nothing; where that has interrupted a fork while `background` is set,
 * it changes all but this. */
int lanemm_configure(const char *words);

/* Writes the event log and the profiles now; they are also written at the end of the program.
 * Returns 0 if a file could not be written. */
int lanemm_write_logs(void);

/* Has call called once a second while the container is near its limit of memory: it has used bytes of
 * limit; or while its tasks wait for memory: limit may be 0 then. call is to shrink a cache. A thread of
 * the library's calls it, which is started now (the setting `background`; `limit=container` is switched
 * on, too) and holds no lock; call takes those of the cache, and uses the heap. Returns 0, and calls
 * nothing, if the thread cannot be started, in a library that can be unloaded, or when 16 calls are
 * registered. Not from a signal handler. */
int lanemm_on_pressure(void (*call)(unsigned long long used, unsigned long long limit, void *context),
                       void *context);

/* Takes back what lanemm_on_pressure has registered with the same arguments. Waits for a call under
 * way, so the calling thread holds no lock that call takes; not inside of call. Returns 0 if it is not
 * registered. */
int lanemm_off_pressure(void (*call)(unsigned long long used, unsigned long long limit, void *context),
                        void *context);

/* A region: memory that belongs together, is limited, seen, and freed at once; 0 is none. In C++
 * lanemm_pmr.h has a std::pmr::memory_resource over one. */
typedef size_t lanemm_region;

/* Makes a region. Its name, which may be NULL, is copied, up to 63 bytes; limit is the most memory
 * that it may have, in bytes, rounded down to 64 KB and at least 256 KB; 0: any amount. Returns 0,
 * and ENOMEM in errno, without memory. */
lanemm_region lanemm_region_create(const char *name, size_t limit);

/* Begins a scope of the calling thread: until lanemm_region_leave all blocks that it allocates, by
 * malloc, calloc, posix_memalign, new and their relatives, are those of the region. Scopes nest; any
 * number of threads may be in a region. Blocks are freed and resized in any thread, in or out of a
 * scope; a block that is resized stays in its region. What libc and other libraries allocate in the
 * scope and keep (the buffer of a stream, a library that dlopen loads, its thread-local variables)
 * dies with the region, too: use it before. Returns 0 if there is no such region (EINVAL, and a line
 * on stderr), or without memory (ENOMEM). */
int lanemm_region_enter(lanemm_region region);

/* Ends the innermost scope of the calling thread; returns 0, with EINVAL and a line on stderr, if it
 * is in none. The end of a thread ends its scopes. */
int lanemm_region_leave(void);

/* Allocate in a region, without a scope, like malloc and calloc. Return NULL: without memory, or at
 * the region's limit (ENOMEM); when there is no such region (EINVAL, and a line on stderr). The
 * blocks go to free and realloc. */
void *lanemm_region_malloc(lanemm_region region, size_t size);
void *lanemm_region_calloc(lanemm_region region, size_t count, size_t size);

/* Free all blocks of a region at once, in a time that grows with its 64 KB spans, not its blocks;
 * lanemm_region_free frees the region, too, lanemm_region_reset keeps it with some of its memory for
 * the next use. Nothing may lead to the blocks any more; no destructor runs. Return 0, and free
 * nothing, while a thread is in the region (EBUSY), or when there is none (EINVAL); both print a
 * line on stderr. */
int lanemm_region_free(lanemm_region region);
int lanemm_region_reset(lanemm_region region);

/* Returns memory of a region that holds no block to the system, but for what belongs to threads that
 * are in it. */
void lanemm_region_trim(lanemm_region region);

/* The state of a region. Later versions add fields at the end only. */
struct lanemm_region_status {
  size_t block_count;     /* blocks in use */
  size_t used_bytes;      /* their usable bytes; in debug mode their requested ones */
  size_t peak_bytes;      /* highest committed_bytes so far */
  size_t committed_bytes; /* memory that it has */
  size_t limit;           /* most committed_bytes that it may have; 0: any number */
  const char *name;       /* valid until the region is freed */
};

/* Fills *state, with zeros if there is no such region; exact while no other thread changes it. size
 * is sizeof(struct lanemm_region_status). */
void lanemm_region_state(lanemm_region region, struct lanemm_region_status *state, size_t size);

/* Returns the region of a block in use; 0 if it belongs to none, as all blocks of debug mode, which
 * are freed with the region all the same. */
lanemm_region lanemm_region_of(const void *block);

/* lanemm_visit_blocks for the blocks of one region; blocks of debug mode are not visited. */
void lanemm_region_walk(lanemm_region region,
                        void (*visitor)(void *block, size_t usable_size, void *context),
                        void *context);

/* A moment of the program, for lanemm_leaks_since. There is nothing to free. The first one switches
 * the setting `stacks` on, unless debug mode is. */
size_t lanemm_checkpoint(void);

/* Blocks of one size or line. Later versions add fields at the end only. The texts are valid during
 * the call. */
struct lanemm_leak {
  const char *name;  /* such as "100-byte block" */
  size_t count;      /* number of blocks */
  size_t bytes;      /* bytes that were requested */
  const char *place; /* such as "parse.c:88 in read_node"; NULL: unknown */
};

/* Visits the blocks that were allocated since the checkpoint, in any thread, are in use, and that
 * nothing reaches any more: no variable, no function that runs, no block that is reached; those
 * first that hold others. Suppressed ones are left out. visitor may be NULL, and may use the heap.
 * Stops the other threads for the time of the search. Returns the number of blocks; 0, and a line on
 * stderr, without memory. */
size_t lanemm_leaks_since(size_t checkpoint,
                          void (*visitor)(const struct lanemm_leak *leak, void *context),
                          void *context);

/* Visits those that are still reached, such as globals and caches; otherwise the same. */
size_t lanemm_reachable_since(size_t checkpoint,
                              void (*visitor)(const struct lanemm_leak *leak, void *context),
                              void *context);

/* What a count has counted. Later versions add fields at the end only. */
struct lanemm_counts {
  size_t allocations; /* blocks that were allocated, also by realloc of NULL */
  size_t frees;       /* blocks that were freed, also by realloc to 0 */
  size_t resizes;     /* other calls of realloc */
  size_t moves;       /* those of them that moved the block */
  size_t bytes;       /* bytes that allocations and resizes requested, all together */
  size_t peak;        /* most usable bytes beyond those in use at the start */
};

/* The allocations at one line; beyond 4,095 backtraces at an unknown one. Later versions add fields at
 * the end only. The text is valid during the call. */
struct lanemm_counted_place {
  const char *place; /* such as "parse.c:88 in read_node"; NULL: unknown */
  size_t count;      /* allocations */
  size_t bytes;      /* bytes that they requested */
};

/* Begins to count the allocations, frees and resizes of the calling thread, or of all threads. Counts
 * of a thread nest: the outer one has what the inner one has counted. Exact, and the same each time
 * that the program does the same. with_places counts the lines of allocations, too: it needs the
 * setting `stacks` or debug mode. Nothing is paid while nothing is counted. Returns 0 while 32 counts
 * are open, or another one counts all threads. */
int lanemm_start_count(int of_all_threads, int with_places);

/* Ends the newest count of the calling thread and fills *counts; size is sizeof(struct
 * lanemm_counts). visitor, which may be NULL, receives its lines, that with most allocations first.
 * Returns 0, and zeros, without a count. */
int lanemm_stop_count(struct lanemm_counts *counts, size_t size,
                      void (*visitor)(const struct lanemm_counted_place *place, void *context),
                      void *context);

#ifdef __cplusplus
}
#endif

#endif
