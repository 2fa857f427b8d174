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
#define LANEMM_VERSION "1.0.0-rc1"

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
 * or frees; the visitor may do both, and may see its own new blocks. */
void lanemm_visit_blocks(void (*visitor)(void *block, size_t usable_size, void *context),
                         void *context);

/* Changes settings: words and key=value, separated by commas, as in the environment variable
 * LANEMM, for example "contention,growth"; "WORD=0" cancels a word. If a word is unknown, returns 0
 * and prints a line to stderr; the others still apply. */
int lanemm_configure(const char *words);

/* Writes the event log and the profiles now; they are also written at the end of the program.
 * Returns 0 if a file could not be written. */
int lanemm_write_logs(void);

#ifdef __cplusplus
}
#endif

#endif
