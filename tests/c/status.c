/* The library's own calls, as include/lanemm.h declares them; C and C++. */
#include <lanemm.h>
#include <malloc.h>

#include "check.h"

enum { BLOCKS = 1000 };

static struct lanemm_status status(void) {
  struct lanemm_status result;
  lanemm_status_read(&result, sizeof result);
  return result;
}

/* What a visit looks for and finds. */
struct visit {
  void *wanted;
  int seen, count;
};

static void see(void *block, size_t usable_size, void *context) {
  struct visit *visit = (struct visit *)context;
  visit->count++;
  visit->seen += block == visit->wanted && usable_size >= 777;
}

int main(void) {
  check_use_all();
  static void *blocks[BLOCKS], *large;
  struct lanemm_status before = status();
  for (int i = 0; i < BLOCKS; i++)
    blocks[i] = malloc(1024);
  large = malloc(10000000);
  struct lanemm_status full = status();
  promise("blocks and their bytes are counted exactly",
          full.small_blocks.block_count - before.small_blocks.block_count == BLOCKS
              && full.small_blocks.used_bytes - before.small_blocks.used_bytes == BLOCKS * 1024
              && full.large_blocks.block_count - before.large_blocks.block_count == 1
              && full.used_bytes - before.used_bytes >= BLOCKS * 1024 + 10000000);
  memset(large, 1, 10000000);
  for (int i = 0; i < BLOCKS; i++)
    free(blocks[i]);
  free(large);
  struct lanemm_status after = status();
  promise("the counts return to where they were", after.used_bytes == before.used_bytes);
  lanemm_trim();
  struct lanemm_status trimmed = status();
  promise("trim gives cached memory back",
          trimmed.cached_bytes == 0 && trimmed.committed_bytes < full.committed_bytes);
  promise("the peak stays", trimmed.peak_bytes >= full.committed_bytes);
  struct lanemm_status part;
  memset(&part, 0xA5, sizeof part);
  lanemm_status_read(&part, sizeof part.reserved_bytes);
  promise("an older header gets the part that it knows",
          part.reserved_bytes == trimmed.reserved_bytes
              && part.committed_bytes == (size_t)0xA5A5A5A5A5A5A5A5ull);
  struct visit visit = {malloc(777), 0, 0};
  lanemm_visit_blocks(see, &visit);
  promise("a visit sees each block once", visit.seen == 1 && visit.count > 0);
  free(visit.wanted);
  visit.seen = 0;
  lanemm_visit_blocks(see, &visit);
  promise("a freed block is not visited", visit.seen == 0);
  unsigned delay = lanemm_purge_delay_ms();
  lanemm_set_purge_delay_ms(delay + 100);
  promise("the purge delay can be set", lanemm_purge_delay_ms() == delay + 100);
  return counts();
}
