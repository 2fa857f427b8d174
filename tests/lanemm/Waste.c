/* A library for `lanemm try` in place of a memory manager: it touches 16 MB; compiled with -DBROKEN it
 * ends the program. */
#include <stdlib.h>
#include <sys/prctl.h>

static volatile char *kept;

__attribute__((constructor)) static void start(void) {
#ifdef BROKEN
  abort();
#endif
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* a page fault for each page everywhere */
  size_t size = 16 << 20;
  kept = malloc(size);
  for (size_t place = 0; place < size; place += 4096)
    kept[place] = 1;
}
