/* 116 mistakes with the heap in C and C++, after the kinds of NIST's Juliet test suite. For run.sh.
 *
 *   planted NAME   makes one mistake
 *   planted none   does the same work without any
 *   planted work N replaces a random one of 1,000 blocks N times
 *   planted list   a line for each: name, CWE, the marks of the lines that a report may name
 *
 * The lines of the mistakes have the comment `bad: MARK`, those that allocate `got: MARK`. */
#include <alloca.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <wchar.h>
#include <new>

#define APART __attribute__((noinline, noclone))
/* Keeps the frame of its routine: the call before it is no jump. */
#define STAY __asm__ volatile("" ::: "memory")

struct Mistake {
  const char *name;
  int cwe;
  void (*make)(const Mistake &);
  const char *marks;
  char *(*get)(size_t);
  void (*put)(char *);
  size_t size;
  long at;
  void (*use)(char *, long);
};

static int is_bad;
static volatile char sink;
static char *volatile kept;

/* ------------------------------------------------------------------ allocate, free */

APART static char *get_malloc(size_t size) {
  char *p = (char *)malloc(size); /* got: malloc */
  STAY;
  return p;
}

APART static char *get_calloc(size_t size) {
  char *p = (char *)calloc(size, 1); /* got: calloc */
  STAY;
  return p;
}

APART static char *get_aligned(size_t size) {
  char *p = (char *)memalign(64, size); /* got: aligned */
  STAY;
  return p;
}

APART static char *get_new(size_t size) {
  char *p = (char *)operator new(size); /* got: new */
  STAY;
  return p;
}

APART static char *get_array(size_t size) {
  char *p = new char[size]; /* got: array */
  STAY;
  return p;
}

APART static char *get_realloc(size_t size) {
  char *p = (char *)malloc(size / 2 + 1);
  p = (char *)realloc(p, size); /* got: realloc */
  STAY;
  return p;
}

APART static char *get_shrunk(size_t size) {
  char *p = (char *)malloc(size * 3 / 2); /* got: shrunk */
  p = (char *)realloc(p, size); /* got: shrunk */
  STAY;
  return p;
}

APART static char *get_text(size_t size) {
  static char text[300];
  memset(text, 'x', size - 1);
  text[size - 1] = 0;
  char *p = strdup(text); /* got: text */
  STAY;
  return p;
}

APART static void put_free(char *p) {
  free(p); /* bad: free */
  STAY;
}

APART static void put_delete(char *p) {
  operator delete(p); /* bad: delete */
  STAY;
}

APART static void put_array(char *p) {
  delete[] p; /* bad: put-array */
  STAY;
}

APART static void put_resize(char *p) {
  kept = (char *)realloc(p, 500); /* bad: resize */
  STAY;
  free(kept);
}

/* ------------------------------------------------------------------ use */

APART static void write_byte(char *p, long at) { ((volatile char *)p)[at] = 1; } /* bad: write */
APART static void write_word(char *p, long at) { *(volatile long *)(p + at - 7) = 1; } /* bad: word */
APART static void write_memset(char *p, long at) {
  memset(p, 1, at + 1); /* bad: memset */
  STAY;
}

APART static void write_back(char *p, long at) {
  memset(p + at, 1, 4); /* bad: back */
  STAY;
}

APART static void write_loop(char *p, long at) {
  for (long i = 0; i <= at; i++)
    ((volatile char *)p)[i] = 1; /* bad: loop */
}

APART static void write_down(char *p, long at) {
  for (long i = 3; i >= at; i--)
    ((volatile char *)p)[i] = 1; /* bad: down */
}

APART static void write_copy(char *p, long at) {
  static char from[400];
  memcpy(p, from, at + 1); /* bad: copy */
  STAY;
}

APART static void write_text(char *p, long at) {
  char text[400];
  memset(text, 'x', at);
  text[at] = 0;
  strcpy(p, text); /* bad: strcpy */
  STAY;
}

APART static void write_print(char *p, long at) {
  sprintf(p, "%0*d", (int)at, 1); /* bad: sprintf */
  STAY;
}

APART static void write_wide(char *p, long at) {
  ((volatile wchar_t *)p)[at / (long)sizeof(wchar_t)] = L'x'; /* bad: wide */
}

APART static void read_byte(char *p, long at) { sink = ((volatile char *)p)[at]; } /* bad: read */
APART static void read_long(char *p, long at) { sink = *(volatile long *)(p + at - 7); } /* bad: long */

APART static void read_loop(char *p, long at) {
  for (long i = 0; i <= at; i++)
    sink = ((volatile char *)p)[i]; /* bad: reads */
}

APART static void read_copy(char *p, long at) {
  static char to[400];
  memcpy(to, p, at + 1); /* bad: copied */
  STAY;
}

APART static void read_text(char *p, long at) {
  memset(p, 'x', at);
  sink = strlen(p); /* bad: strlen */
  STAY;
}

/* Frees what it finds in the block. */
APART static void free_found(char *p, long) {
  free(*(char **)p); /* bad: found */
  STAY;
}

APART static void follow(char *p, long) { sink = **(volatile char *volatile *)p; } /* bad: follow */

/* ------------------------------------------------------------------ the kinds */

/* 122, 124, 126, 127: beyond the ends of a block. */
static void beyond(const Mistake &m) {
  char *p = m.get(m.size);
  long last = m.at < 0 ? 0 : (long)m.size - 1;
  memset(p, 0, m.size);
  m.use(p, is_bad ? m.at : last);
  m.put(p);
}

/* 416 */
static void after_free(const Mistake &m) {
  char *p = m.get(m.size);
  memset(p, 0, m.size);
  if (is_bad)
    m.put(p);
  if (is_bad || (m.use != follow && m.use != free_found))
    m.use(p, m.at);
  if (!is_bad)
    m.put(p);
}

/* 416: the block has moved. */
static void after_move(const Mistake &m) {
  char *p = m.get(m.size);
  char *moved = (char *)realloc(p, m.size * 40);
  m.use(is_bad ? p : moved, m.at);
  free(moved);
}

struct Shape {
  virtual ~Shape() {}
  virtual int area() { return 3; }
  int side = 1;
  char *name = NULL;
};

static void after_delete(const Mistake &) {
  Shape *shape = new Shape; /* got: shape */
  if (is_bad)
    delete shape;
  sink = ((Shape *volatile &)shape)->area(); /* bad: area */
  if (!is_bad)
    delete shape;
}

static void after_array(const Mistake &) {
  Shape *shapes = new Shape[3]; /* got: shapes */
  if (is_bad)
    delete[] shapes;
  shapes[1].side = 5; /* bad: side */
  STAY;
  if (!is_bad)
    delete[] shapes;
}

/* 415 */
static void twice(const Mistake &m) {
  char *p = m.get(m.size);
  m.put(p);
  if (is_bad)
    m.put(p);
}

static void twice_later(const Mistake &m) {
  char *p = m.get(m.size), *others[50];
  m.put(p);
  for (int i = 0; i < 50; i++)
    others[i] = (char *)malloc(m.size);
  if (is_bad)
    m.put(p);
  for (int i = 0; i < 50; i++)
    free(others[i]);
}

static void *free_aside(void *p) { put_free((char *)p); return NULL; }

static void twice_threads(const Mistake &m) {
  pthread_t thread;
  char *p = m.get(m.size);
  pthread_create(&thread, NULL, free_aside, p);
  pthread_join(thread, NULL);
  if (is_bad)
    m.put(p);
}

static void twice_resized(const Mistake &m) {
  char *p = m.get(m.size);
  kept = (char *)realloc(p, m.size * 40); /* got: moved */
  m.put(is_bad ? p : kept);
  if (is_bad)
    free(kept);
}

static void twice_by_zero(const Mistake &m) {
  char *p = m.get(m.size);
  kept = (char *)realloc(p, 0);
  if (is_bad)
    m.put(p);
}

static void twice_objects(const Mistake &) {
  Shape *shape = new Shape; /* got: object */
  Shape *volatile same = shape;
  delete shape;
  if (is_bad)
    delete same; /* bad: object */
}

/* 590 */
static char global_bytes[64] = "x";
static char zero_bytes[64];

APART static char *outside(long kind, char *stack) {
  switch (kind) {
    case 0: return stack;
    case 1: return global_bytes;
    case 2: return zero_bytes;
    case 3: return (char *)"text";
    case 4: return (char *)&outside;
    case 5:
      return (char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    case 6: return (char *)stderr;
    case 7: return (char *)16384;
  }
  return NULL;
}

static void foreign(const Mistake &m) {
  char stack[64];
  stack[0] = 1;
  if (is_bad)
    m.put(outside(m.at, stack));
  sink = stack[0];
}

static void foreign_alloca(const Mistake &m) {
  char *p = (char *)alloca(m.size);
  memset(p, 1, m.size);
  if (is_bad)
    m.put(p);
  sink = p[1];
}

/* 761 */
static void inner(const Mistake &m) {
  char *p = m.get(m.size);
  memset(p, 0, m.size);
  m.put(is_bad ? p + m.at : p);
}

/* 762: other routines than those that allocated. */
static void mixed(const Mistake &m) {
  char *p = m.get(m.size);
  if (is_bad)
    m.put(p);
  else if (m.get == get_malloc || m.get == get_calloc || m.get == get_aligned || m.get == get_text)
    free(p);
  else if (m.get == get_new)
    operator delete(p);
  else
    delete[] p;
}

static void mixed_objects(const Mistake &) {
  Shape *shapes = new Shape[1]; /* got: one */
  if (is_bad)
    delete (Shape *volatile &)shapes; /* bad: one */
  else
    delete[] shapes;
}

APART static void put_sized(char *p) {
  operator delete(p, (size_t)32); /* bad: sized */
  STAY;
}

static void mixed_size(const Mistake &m) {
  char *p = m.get(is_bad ? m.size : 32);
  m.put(p);
}

APART static void put_aligned(char *p) {
  operator delete(p, std::align_val_t(64)); /* bad: aligned */
  STAY;
}

/* 401 */
APART static void forget(char *p) { kept = p; STAY; kept = NULL; }

static void lose(const Mistake &m) {
  char *p = m.get(m.size);
  if (!is_bad)
    m.put(p);
  p = NULL;
  forget(p);
}

struct Node { Node *next; char *text; };

static Node *make_nodes(int count, int is_ring) {
  Node *first = NULL, *last = NULL;
  for (int i = 0; i < count; i++) {
    Node *node = (Node *)malloc(sizeof(Node)); /* got: node */
    node->text = (char *)malloc(24);
    node->next = first;
    first = node;
    last = last ? last : node;
  }
  if (is_ring)
    last->next = first;
  return first;
}

static void drop_nodes(Node *first) {
  Node *node = first;
  do {
    Node *next = node->next;
    free(node->text);
    free(node);
    node = next;
  } while (node && node != first);
}

static void lose_nodes(const Mistake &m) {
  Node *nodes = make_nodes(5, m.at);
  if (!is_bad)
    drop_nodes(nodes);
}

static void lose_member(const Mistake &) {
  Node *node = make_nodes(1, 0);
  if (is_bad)
    node->text = NULL;
  free(node->text);
  free(node);
}

static void lose_objects(const Mistake &) {
  Shape *shape = new Shape; /* got: lost */
  shape->name = get_text(40);
  if (!is_bad)
    free(shape->name);
  delete shape;
}

static void lose_overwritten(const Mistake &m) {
  char *p = m.get(m.size);
  if (!is_bad)
    free(p);
  p = get_calloc(20);
  free(p);
}

static void *lose_aside(void *m) { lose(*(const Mistake *)m); return NULL; }

static void lose_in_thread(const Mistake &m) {
  pthread_t thread;
  pthread_create(&thread, NULL, lose_aside, (void *)&m);
  pthread_join(thread, NULL);
}

/* Overwrites what is left of the routines above on the stack. */
APART static void clean(void) {
  volatile char stack[8192];
  for (unsigned i = 0; i < sizeof stack; i++)
    stack[i] = 0;
}

/* ------------------------------------------------------------------ all */

static void work(long turns) {
  static char *blocks[1000];
  unsigned random = 1;
  for (long i = 0; i < turns; i++) {
    random = random * 1664525 + 1013904223;
    char *&place = blocks[(random >> 8) % 1000];
    free(place);
    place = (char *)malloc(16 + (random >> 20) % 256);
    place[0] = 1;
  }
  for (char *block : blocks)
    free(block);
}

enum { LARGE = 300000 };

static const Mistake mistakes[] = {
  {"over-malloc", 122, beyond, "write malloc", get_malloc, put_free, 100, 100, write_byte},
  {"over-malloc-odd", 122, beyond, "write malloc", get_malloc, put_free, 13, 13, write_byte},
  {"over-malloc-one", 122, beyond, "write malloc", get_malloc, put_free, 1, 1, write_byte},
  {"over-malloc-word", 122, beyond, "word malloc", get_malloc, put_free, 96, 103, write_word},
  {"over-malloc-half-word", 122, beyond, "word malloc", get_malloc, put_free, 100, 103, write_word},
  {"over-malloc-loop", 122, beyond, "loop malloc", get_malloc, put_free, 40, 44, write_loop},
  {"over-malloc-memset", 122, beyond, "memset malloc", get_malloc, put_free, 48, 63, write_memset},
  {"over-malloc-copy", 122, beyond, "copy malloc", get_malloc, put_free, 50, 99, write_copy},
  {"over-malloc-strcpy", 122, beyond, "strcpy malloc", get_malloc, put_free, 10, 10, write_text},
  {"over-malloc-sprintf", 122, beyond, "sprintf malloc", get_malloc, put_free, 8, 8, write_print},
  {"over-malloc-wide", 122, beyond, "wide malloc", get_malloc, put_free, 80, 80, write_wide},
  {"over-malloc-far", 122, beyond, "write malloc", get_malloc, put_free, 100, 164, write_byte},
  {"over-malloc-page", 122, beyond, "write malloc", get_malloc, put_free, 100, 4196, write_byte},
  {"over-malloc-large", 122, beyond, "write malloc", get_malloc, put_free, LARGE, LARGE, write_byte},
  {"over-malloc-large-word", 122, beyond, "word malloc", get_malloc, put_free, LARGE, LARGE + 71, write_word},
  {"over-calloc", 122, beyond, "write calloc", get_calloc, put_free, 64, 64, write_byte},
  {"over-calloc-loop", 122, beyond, "loop calloc", get_calloc, put_free, 2000, 2000, write_loop},
  {"over-realloc", 122, beyond, "write realloc", get_realloc, put_free, 200, 200, write_byte},
  {"over-shrunk", 122, beyond, "write shrunk", get_shrunk, put_free, 200, 210, write_byte},
  {"over-aligned", 122, beyond, "write aligned", get_aligned, put_free, 128, 128, write_byte},
  {"over-text", 122, beyond, "write text", get_text, put_free, 12, 12, write_byte},
  {"over-new", 122, beyond, "write new", get_new, put_delete, 24, 24, write_byte},
  {"over-array", 122, beyond, "write array", get_array, put_array, 33, 33, write_byte},
  {"over-array-loop", 122, beyond, "loop array", get_array, put_array, 400, 403, write_loop},

  {"under-malloc", 124, beyond, "write malloc", get_malloc, put_free, 100, -1, write_byte},
  {"under-malloc-8", 124, beyond, "write malloc", get_malloc, put_free, 100, -8, write_byte},
  {"under-malloc-16", 124, beyond, "back malloc", get_malloc, put_free, 100, -16, write_back},
  {"under-malloc-32", 124, beyond, "write malloc", get_malloc, put_free, 100, -32, write_byte},
  {"under-malloc-far", 124, beyond, "write malloc", get_malloc, put_free, 100, -80, write_byte},
  {"under-malloc-down", 124, beyond, "down malloc", get_malloc, put_free, 100, -5, write_down},
  {"under-malloc-large", 124, beyond, "write malloc", get_malloc, put_free, LARGE, -3, write_byte},
  {"under-calloc", 124, beyond, "back calloc", get_calloc, put_free, 60, -4, write_back},
  {"under-realloc", 124, beyond, "write realloc", get_realloc, put_free, 300, -2, write_byte},
  {"under-aligned", 124, beyond, "write aligned", get_aligned, put_free, 100, -1, write_byte},
  {"under-new", 124, beyond, "down new", get_new, put_delete, 16, -2, write_down},
  {"under-array", 124, beyond, "back array", get_array, put_array, 16, -8, write_back},

  {"read-over", 126, beyond, "read malloc", get_malloc, put_free, 96, 96, read_byte},
  {"read-over-long", 126, beyond, "long malloc", get_malloc, put_free, 96, 103, read_long},
  {"read-over-loop", 126, beyond, "reads calloc", get_calloc, put_free, 80, 100, read_loop},
  {"read-over-copy", 126, beyond, "copied array", get_array, put_array, 160, 199, read_copy},
  {"read-over-strlen", 126, beyond, "strlen malloc", get_malloc, put_free, 32, 32, read_text},
  {"read-over-large", 126, beyond, "read malloc", get_malloc, put_free, LARGE, LARGE, read_byte},
  {"read-over-far", 126, beyond, "read new", get_new, put_delete, 48, 100, read_byte},

  {"read-under", 127, beyond, "read malloc", get_malloc, put_free, 96, -1, read_byte},
  {"read-under-far", 127, beyond, "read malloc", get_malloc, put_free, 96, -40, read_byte},
  {"read-under-array", 127, beyond, "read array", get_array, put_array, 64, -8, read_byte},
  {"read-under-large", 127, beyond, "read malloc", get_malloc, put_free, LARGE, -16, read_byte},

  {"lost-malloc", 401, lose, "malloc", get_malloc, put_free, 100, 0, NULL},
  {"lost-calloc", 401, lose, "calloc", get_calloc, put_free, 100, 0, NULL},
  {"lost-realloc", 401, lose, "realloc", get_realloc, put_free, 100, 0, NULL},
  {"lost-text", 401, lose, "text", get_text, put_free, 30, 0, NULL},
  {"lost-aligned", 401, lose, "aligned", get_aligned, put_free, 100, 0, NULL},
  {"lost-new", 401, lose, "new", get_new, put_delete, 100, 0, NULL},
  {"lost-array", 401, lose, "array", get_array, put_array, 100, 0, NULL},
  {"lost-large", 401, lose, "malloc", get_malloc, put_free, LARGE, 0, NULL},
  {"lost-list", 401, lose_nodes, "node", NULL, NULL, 0, 0, NULL},
  {"lost-ring", 401, lose_nodes, "node", NULL, NULL, 0, 1, NULL},
  {"lost-overwritten", 401, lose_overwritten, "malloc", get_malloc, put_free, 70, 0, NULL},
  {"lost-of-object", 401, lose_objects, "text", NULL, NULL, 0, 0, NULL},
  {"lost-in-thread", 401, lose_in_thread, "malloc", get_malloc, put_free, 90, 0, NULL},

  {"twice-malloc", 415, twice, "free malloc", get_malloc, put_free, 100, 0, NULL},
  {"twice-calloc", 415, twice, "free calloc", get_calloc, put_free, 2000, 0, NULL},
  {"twice-aligned", 415, twice, "free aligned", get_aligned, put_free, 100, 0, NULL},
  {"twice-large", 415, twice, "free malloc", get_malloc, put_free, LARGE, 0, NULL},
  {"twice-new", 415, twice, "delete new", get_new, put_delete, 40, 0, NULL},
  {"twice-array", 415, twice, "put-array array", get_array, put_array, 40, 0, NULL},
  {"twice-object", 415, twice_objects, "object", NULL, NULL, 0, 0, NULL},
  {"twice-later", 415, twice_later, "free malloc", get_malloc, put_free, 48, 0, NULL},
  {"twice-threads", 415, twice_threads, "free malloc", get_malloc, put_free, 48, 0, NULL},
  {"twice-resized", 415, twice_resized, "free malloc", get_malloc, put_free, 48, 0, NULL},
  {"twice-by-zero", 415, twice_by_zero, "free malloc", get_malloc, put_free, 48, 0, NULL},

  {"freed-write", 416, after_free, "write malloc", get_malloc, put_free, 100, 50, write_byte},
  {"freed-write-first", 416, after_free, "word malloc", get_malloc, put_free, 100, 7, write_word},
  {"freed-write-large", 416, after_free, "write malloc", get_malloc, put_free, LARGE, 150000, write_byte},
  {"freed-memset", 416, after_free, "memset calloc", get_calloc, put_free, 100, 99, write_memset},
  {"freed-strcpy", 416, after_free, "strcpy text", get_text, put_free, 40, 20, write_text},
  {"freed-new", 416, after_free, "write new", get_new, put_delete, 40, 0, write_byte},
  {"freed-array", 416, after_free, "loop array", get_array, put_array, 40, 30, write_loop},
  {"freed-moved", 416, after_move, "write malloc", get_malloc, put_free, 100, 10, write_byte},
  {"freed-read", 416, after_free, "read malloc", get_malloc, put_free, 100, 50, read_byte},
  {"freed-read-large", 416, after_free, "read malloc", get_malloc, put_free, LARGE, 150000, read_byte},
  {"freed-copy", 416, after_free, "copied new", get_new, put_delete, 120, 99, read_copy},
  {"freed-followed", 416, after_free, "follow malloc", get_malloc, put_free, 64, 0, follow},
  {"freed-found", 416, after_free, "found calloc", get_calloc, put_free, 64, 0, free_found},
  {"freed-virtual", 416, after_delete, "area shape", NULL, NULL, 0, 0, NULL},
  {"freed-field", 416, after_array, "side shapes", NULL, NULL, 0, 0, NULL},

  {"free-stack", 590, foreign, "free", NULL, put_free, 0, 0, NULL},
  {"free-global", 590, foreign, "free", NULL, put_free, 0, 1, NULL},
  {"free-zero", 590, foreign, "free", NULL, put_free, 0, 2, NULL},
  {"free-constant", 590, foreign, "free", NULL, put_free, 0, 3, NULL},
  {"free-code", 590, foreign, "free", NULL, put_free, 0, 4, NULL},
  {"free-mapping", 590, foreign, "free", NULL, put_free, 0, 5, NULL},
  {"free-libc", 590, foreign, "free", NULL, put_free, 0, 6, NULL},
  {"free-wild", 590, foreign, "free", NULL, put_free, 0, 7, NULL},
  {"free-alloca", 590, foreign_alloca, "free", NULL, put_free, 80, 0, NULL},
  {"delete-stack", 590, foreign, "delete", NULL, put_delete, 0, 0, NULL},
  {"resize-global", 590, foreign, "resize", NULL, put_resize, 0, 1, NULL},

  {"inner-one", 761, inner, "free malloc", get_malloc, put_free, 100, 1, NULL},
  {"inner-16", 761, inner, "free malloc", get_malloc, put_free, 100, 16, NULL},
  {"inner-end", 761, inner, "free malloc", get_malloc, put_free, 96, 96, NULL},
  {"inner-large", 761, inner, "free malloc", get_malloc, put_free, LARGE, 65536, NULL},
  {"inner-delete", 761, inner, "delete new", get_new, put_delete, 64, 8, NULL},
  {"inner-array", 761, inner, "put-array array", get_array, put_array, 64, 8, NULL},
  {"inner-resize", 761, inner, "resize malloc", get_malloc, put_resize, 100, 32, NULL},

  {"malloc-delete", 762, mixed, "delete malloc", get_malloc, put_delete, 50, 0, NULL},
  {"malloc-array", 762, mixed, "put-array malloc", get_malloc, put_array, 50, 0, NULL},
  {"calloc-delete", 762, mixed, "delete calloc", get_calloc, put_delete, 50, 0, NULL},
  {"text-array", 762, mixed, "put-array text", get_text, put_array, 50, 0, NULL},
  {"new-free", 762, mixed, "free new", get_new, put_free, 50, 0, NULL},
  {"new-array", 762, mixed, "put-array new", get_new, put_array, 50, 0, NULL},
  {"array-free", 762, mixed, "free array", get_array, put_free, 50, 0, NULL},
  {"array-delete", 762, mixed, "delete array", get_array, put_delete, 50, 0, NULL},
  {"array-resize", 762, mixed, "resize array", get_array, put_resize, 50, 0, NULL},
  {"array-object", 762, mixed_objects, "one", NULL, NULL, 0, 0, NULL},
  {"new-wrong-size", 762, mixed_size, "sized new", get_new, put_sized, 48, 0, NULL},
  {"new-aligned-delete", 762, mixed, "aligned new", get_new, put_aligned, 48, 0, NULL},
};

enum { COUNT = sizeof mistakes / sizeof mistakes[0] };
static_assert(COUNT == 116, "count them anew in docs/debugging.md");

int main(int count, char **arguments) {
  const char *name = count > 1 ? arguments[1] : "list";
  int made = 0;
  if (strcmp(name, "work") == 0) {
    work(atol(arguments[2]));
    return 0;
  }
  is_bad = strcmp(name, "none") != 0;
  for (int i = 0; i < COUNT; i++)
    if (strcmp(name, "list") == 0)
      printf("%s %d %s\n", mistakes[i].name, mistakes[i].cwe, mistakes[i].marks);
    else if (!is_bad || strcmp(name, mistakes[i].name) == 0) {
      mistakes[i].make(mistakes[i]);
      clean();
      made++;
    }
  if (made == 0 && strcmp(name, "list") != 0)
    return 2;
  fputs("done\n", stderr);
  return 0;
}
