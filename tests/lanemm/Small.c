/* A process of 32 bits with the status page of LaneMM, which answers each request with its words. It is
 * made without any library of 32 bits: gcc -m32 -nostdlib -static -ffreestanding.
 *   Small        says that it is ready, and waits for requests
 *   Small none   the same without the page
 */

enum {
  system_write = 4, system_process = 20, system_yield = 158, system_get = 395, system_control = 396,
  system_map = 397, page_bytes = 4096, new_for_user = 0x200 | 0600, removal = 0
};

typedef unsigned long long word;

/* TStatusPage of LaneMM.StatusPage. */
struct page {
  char magic[8];
  unsigned layout, pointer_bytes, record_bytes[5], is_checked;
  char version[16];
  word process, started_ms, engine;
  unsigned use, has_mailbox;
  word thread[4];
  word sequence;
  word count, written_ms, used, committed, cached, peak, reserved, tiers[9], threads, contended,
    system_calls[16], resizes, moves, copied;
  word requested, taken, answered, postponed, bell, wanted, client, outcome;
  char words[1024], answer[2048];
};

static volatile struct page *page;

static int call(int number, long first, long second, long third, long fourth) {
  int result;
  __asm__ volatile("int $0x80" : "=a"(result)
    : "a"(number), "b"(first), "c"(second), "d"(third), "S"(fourth) : "memory");
  return result;
}

static void answer(void) {
  int i;
  if (page->requested == page->answered)
    return;
  page->taken = page->requested;
  for (i = 0; i < 1024; i++)
    page->answer[i] = page->words[i];
  page->outcome = 0;
  page->count++;
  page->answered = page->requested;
}

static void make_page(void) {
  static const char magic[] = "LaneMM\r\n", version[] = "1.0";
  int segment = call(system_get, 0, page_bytes, new_for_user, 0), i;
  page = (struct page *)call(system_map, segment, 0, 0, 0);
  call(system_control, segment, removal, 0, 0);
  for (i = 0; i < 8; i++)
    page->magic[i] = magic[i];
  for (i = 0; i < 3; i++)
    page->version[i] = version[i];
  page->layout = LAYOUT; /* PageLayout of LaneMM.StatusPage */
  page->pointer_bytes = sizeof(void *);
  page->process = call(system_process, 0, 0, 0, 0);
  page->has_mailbox = 1;
  page->used = 12345;
  page->committed = page->peak = 65536;
  page->threads = page->count = 1;
}

__attribute__((used)) static void run(long *arguments) {
  static const char ready[] = "ready 1\n";
  if (*arguments == 1)
    make_page();
  call(system_write, 1, (long)ready, sizeof(ready) - 1, 0);
  for (;;) {
    call(system_yield, 0, 0, 0, 0);
    if (page)
      answer();
  }
}

/* The arguments, their number first, lie where the stack pointer points. */
__asm__(".globl _start\n_start: mov %esp, %eax\n push %eax\n call run\n");
