/* LaneMM, the memory manager, for C and C++.
 *
 * Nothing of this is needed to use it: link with -llanemm, or start a program with
 * LD_PRELOAD=liblanemm.so, and malloc, free, new, delete and their relatives are LaneMM's.
 * All calls may come from any thread at any time. */
#ifndef LANEMM_H
#define LANEMM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Blocks of one tier. */
struct lanemm_tier {
  size_t block_count; /* blocks in use */
  size_t used_bytes;  /* their usable bytes */
  size_t span_bytes;  /* bytes of the memory that holds them */
};

/* The state of the whole process. Later versions add fields at the end only. */
struct lanemm_status {
  size_t reserved_bytes;         /* address space taken from the system */
  size_t committed_bytes;        /* of it: in use, cached, or not yet given back */
  size_t peak_bytes;             /* highest committed_bytes so far */
  size_t cached_bytes;           /* free memory that waits to be used or given back */
  size_t used_bytes;             /* usable bytes of all blocks in use */
  struct lanemm_tier small_blocks;  /* up to 8 KB */
  struct lanemm_tier medium_blocks; /* up to 64 KB */
  struct lanemm_tier large_blocks;  /* above */
  size_t os_calls;               /* calls of the system since the start */
  size_t contended;              /* first tries of a lock that failed since the start */
};

/* Sums up the process in *status; exact while no other thread allocates or frees. Size is
 * sizeof(struct lanemm_status): a program keeps working with a later library. */
void lanemm_status_read(struct lanemm_status *status, size_t size);

/* Gives all memory that is not in use back to the system, of all threads, now. */
void lanemm_trim(void);

/* Free memory goes back to the system when it was free for so many milliseconds. */
unsigned lanemm_purge_delay_ms(void);
void lanemm_set_purge_delay_ms(unsigned delay_ms);

/* Calls visitor for each block in use, by address. Exact while no other thread allocates or frees;
 * the visitor may do both, and may see its own new blocks, too. */
void lanemm_visit_blocks(void (*visitor)(void *block, size_t usable_size, void *context),
                         void *context);

/* Changes settings: words and key=value with commas between, as in the environment variable LANEMM,
 * for example "contention,growth"; "WORD=0" takes a word back. 0, and a line on the standard error
 * output, when one is unknown; the others count. */
int lanemm_configure(const char *words);

/* Writes now what was watched so far: the event log and the profiles. 0 when a file could not be
 * written. At the end of the program it is done anyway. */
int lanemm_write_logs(void);

#ifdef __cplusplus
}
#endif

#endif
