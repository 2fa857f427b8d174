/* A process that has as many mappings as it may: blocks can be had as long as there is memory. */
#include <malloc.h>
#include <sys/mman.h>

#include "check.h"

enum { MOST_MAPPINGS = 300000, PAIR = 2 << 12, BLOCKS = 3000 };

static void *blocks[BLOCKS];

static int blocks_can_be_had(uint64_t mark) {
  int is_kept = 1;
  for (size_t i = 0; i < BLOCKS; i++) {
    size_t size = 100 + i * 7919 % 150000;
    blocks[i] = malloc(size);
    if (blocks[i] == NULL)
      return 0;
    content_write(blocks[i], size, mark + i);
  }
  for (size_t i = 0; i < BLOCKS; i++) {
    size_t size = 100 + i * 7919 % 150000;
    is_kept &= content_is(blocks[i], size, size, mark + i);
    free(blocks[i]);
  }
  return is_kept;
}

int main(void) {
  check_use_all();
  long most = 0;
  FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
  if (file == NULL || fscanf(file, "%ld", &most) != 1 || most > MOST_MAPPINGS) {
    puts("a process may have too many mappings here to take all");
    return 77;
  }
  fclose(file);
  /* Each pair of pages is two mappings: the system joins neighbours that are alike. */
  long taken = 0;
  char *pair;
  while ((pair = mmap(NULL, PAIR, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED
      && mprotect(pair, PAIR / 2, PROT_READ | PROT_WRITE) == 0)
    taken++;
  promise("all mappings are taken", taken > most / 2 - 1000);
  promise("200 MB of small and large blocks can be had", blocks_can_be_had(1));
  malloc_trim(0);
  promise("and again", blocks_can_be_had(2));
  void *large = calloc(1, 300000000);
  promise("a block of 300 MB can be had", large != NULL && is_zero(large, 300000000));
  free(large);
  return counts();
}
