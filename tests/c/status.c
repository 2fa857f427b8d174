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

enum { CLASSES = 68 };

/* The state of the class whose blocks hold size bytes. */
static struct lanemm_class class_of(size_t size) {
  struct lanemm_class all[CLASSES];
  size_t count = lanemm_state(all, CLASSES, sizeof all[0]), i = 0;
  while (i < count && all[i].block_size < size)
    i++;
  return all[i];
}

/* Whether blocks and bytes of all classes are those of the small and medium blocks. */
static int classes_add_up(void) {
  struct lanemm_class all[CLASSES];
  struct lanemm_status sums = status();
  size_t count = lanemm_state(all, CLASSES, sizeof all[0]), blocks = 0, bytes = 0;
  for (size_t i = 0; i < count; i++) {
    blocks += all[i].block_count;
    bytes += all[i].used_bytes;
    if (all[i].slack_bytes != all[i].span_bytes - all[i].used_bytes
        || all[i].part_span_count > all[i].span_count)
      return 0;
  }
  return count == CLASSES && blocks == sums.small_blocks.block_count + sums.medium_blocks.block_count
         && bytes == sums.small_blocks.used_bytes + sums.medium_blocks.used_bytes;
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

/* A block that grows has spare addresses behind it: what it takes and what is free are all memory. */
static int adds_up_when_a_block_grows(void) {
  int is_right = 1;
  char *block = NULL;
  for (size_t size = 1 << 20; size < 100 << 20; size += size / 2) {
    block = (char *)realloc(block, size);
    struct mallinfo2 info = mallinfo2();
    is_right &= info.arena + info.hblkhd == status().committed_bytes && info.hblkhd >= size
        && info.uordblks + info.fordblks == info.arena;
  }
  free(block);
  return is_right;
}

int main(void) {
  check_use_all();
  static void *blocks[BLOCKS], *large;
  struct lanemm_status before = status();
  struct lanemm_class class_before = class_of(1024);
  for (int i = 0; i < BLOCKS; i++)
    blocks[i] = malloc(1024);
  large = malloc(10000000);
  struct lanemm_status full = status();
  promise("blocks and their bytes are counted exactly",
          full.small_blocks.block_count - before.small_blocks.block_count == BLOCKS
              && full.small_blocks.used_bytes - before.small_blocks.used_bytes == BLOCKS * 1024
              && full.large_blocks.block_count - before.large_blocks.block_count == 1
              && full.used_bytes - before.used_bytes >= BLOCKS * 1024 + 10000000);
  struct lanemm_class class_full = class_of(1024);
  promise("blocks are counted in their size class, with its spans and owners",
          class_full.block_size == 1024 && class_full.owner_count >= 1
              && class_full.block_count - class_before.block_count == BLOCKS
              && class_full.span_bytes >= class_full.used_bytes);
  promise("the classes add up to small and medium blocks", classes_add_up());
  size_t half = 0;
  lanemm_state((struct lanemm_class *)&half, 1, sizeof half);
  promise("an older header gets the fields that it knows", half == 16);
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
  promise("mallinfo2 adds up while a block grows", adds_up_when_a_block_grows());
  unsigned delay = lanemm_purge_delay_ms();
  lanemm_set_purge_delay_ms(delay + 100);
  promise("the purge delay can be set", lanemm_purge_delay_ms() == delay + 100);
  promise("no settings change nothing", lanemm_configure(NULL) == 1 && lanemm_configure("") == 1);
  return counts();
}
