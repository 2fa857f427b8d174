/* What regions cost: beside heaps of mimalloc 3, std::pmr::monotonic_buffer_resource, and blocks of
 * malloc that are freed one by one.
 *
 *   regions MANAGER ROW
 *
 * MANAGER: lanemm, lanemm-reset (the region is kept for the next turn), mimalloc3 (MIMALLOC names its
 * library), pmr (over LaneMM's malloc), malloc (LaneMM's, one by one). Rows, with what they print:
 *   request  a region, 100 blocks of 16 to 255 bytes in it, its end: ns for each turn
 *   tree     a tree of a million nodes is thrown away: ns
 *   made     100,000 regions of 50 blocks made and freed: KB of resident memory that are left
 *   alive    1,000 regions of 50 blocks: KB of resident memory
 */
#include <dlfcn.h>
#include <lanemm.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory_resource>
#include <new>
#include <vector>

namespace {

struct Node {
  Node *left, *right;
  long key, value;
};

size_t size_of(int number) { return 16 + number * 37 % 240; }

// A heap whose blocks are freed at once.
struct Lanemm {
  lanemm_region region;
  Lanemm() : region(lanemm_region_create("bench", 0)) { lanemm_region_enter(region); }
  ~Lanemm() { lanemm_region_free(region); }
  void *get(size_t size) { return malloc(size); }
  void leave() { lanemm_region_leave(); }
};

struct LanemmReset {
  static lanemm_region region;
  LanemmReset() { lanemm_region_enter(region); }
  ~LanemmReset() { lanemm_region_reset(region); }
  void *get(size_t size) { return malloc(size); }
  void leave() { lanemm_region_leave(); }
};
lanemm_region LanemmReset::region = lanemm_region_create("kept", 0);

struct Mimalloc3 {
  static void *(*create)();
  static void (*destroy)(void *);
  static void *(*allocate)(void *, size_t);
  void *heap;
  Mimalloc3() : heap(create()) {}
  ~Mimalloc3() { destroy(heap); }
  void *get(size_t size) { return allocate(heap, size); }
  void leave() {}
};
void *(*Mimalloc3::create)();
void (*Mimalloc3::destroy)(void *);
void *(*Mimalloc3::allocate)(void *, size_t);

struct Pmr {
  std::pmr::monotonic_buffer_resource resource;
  void *get(size_t size) { return resource.allocate(size); }
  void leave() {}
};

struct Malloc {
  std::vector<void *> blocks;
  Malloc() { blocks.reserve(100); }
  ~Malloc() {
    for (void *block : blocks) free(block);
  }
  void *get(size_t size) {
    blocks.push_back(malloc(size));
    return blocks.back();
  }
  void leave() {}
};

long resident_kb() {
  long pages = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &pages, &resident) != 2) abort();
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

long long now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

template <class Heap>
void fill(Heap &heap, int count) {
  for (int number = 0; number < count; number++) memset(heap.get(size_of(number)), number, 16);
  heap.leave();
}

template <class Heap>
long long requests(int turns) {
  long long start = now_ns();
  for (int turn = 0; turn < turns; turn++) {
    Heap heap;
    fill(heap, 100);
  }
  return (now_ns() - start) / turns;
}

template <class Heap>
Node *grow(Heap &heap, int depth, long key) {
  if (depth == 0) return nullptr;
  Node *node = static_cast<Node *>(heap.get(sizeof(Node)));
  node->key = node->value = key;
  node->left = grow(heap, depth - 1, 2 * key);
  node->right = grow(heap, depth - 1, 2 * key + 1);
  return node;
}

void throw_away(Node *node) {
  if (!node) return;
  throw_away(node->left);
  throw_away(node->right);
  free(node);
}

// For the tree: the nodes lead to each other.
struct Tree {
  Node *root = nullptr;
  void *get(size_t size) { return malloc(size); }
  void leave() {}
  ~Tree() { throw_away(root); }
};
void keep(Tree &tree, Node *root) { tree.root = root; }
template <class Heap>
void keep(Heap &, Node *) {}

template <class Heap>
long long tree() {
  alignas(Heap) char place[sizeof(Heap)];
  Heap *heap = new (place) Heap;
  keep(*heap, grow(*heap, 20, 1));
  heap->leave();
  long long start = now_ns();
  heap->~Heap();
  return now_ns() - start;
}

template <class Heap>
long long made() {
  resident_kb();  // its own memory
  for (int turn = 0; turn < 1000; turn++) {
    Heap heap;
    fill(heap, 50);
  }
  long before = resident_kb();
  for (int turn = 0; turn < 100000; turn++) {
    Heap heap;
    fill(heap, 50);
  }
  return resident_kb() - before;
}

template <class Heap>
long long alive() {
  const int count = 1000;
  Heap *heaps = static_cast<Heap *>(calloc(count, sizeof(Heap)));
  memset(static_cast<void *>(heaps), 1, count * sizeof(Heap));
  resident_kb();
  long before = resident_kb();
  for (int turn = 0; turn < count; turn++) fill(*new (heaps + turn) Heap, 50);
  return resident_kb() - before;
}

template <class Heap, class TreeHeap = Heap>
long long run(const char *row) {
  if (!strcmp(row, "request")) {
      requests<Heap>(10000);
    return requests<Heap>(100000);
  }
  if (!strcmp(row, "tree")) return tree<TreeHeap>();
  if (!strcmp(row, "made")) return made<Heap>();
  if (!strcmp(row, "alive")) return alive<TreeHeap>();
  exit(2);
}

template <class Call>
void find(void *library, const char *name, Call &call) {
  call = reinterpret_cast<Call>(dlsym(library, name));
  if (!call) exit(3);
}

}  // namespace

int main(int count, char **arguments) {
  if (count != 3) return 2;
  const char *manager = arguments[1], *row = arguments[2];
  long long result;
  if (!strcmp(manager, "lanemm")) {
    result = run<Lanemm>(row);
  } else if (!strcmp(manager, "lanemm-reset")) {
    result = run<LanemmReset>(row);
  } else if (!strcmp(manager, "pmr")) {
    result = run<Pmr>(row);
  } else if (!strcmp(manager, "malloc")) {
    result = run<Malloc, Tree>(row);
  } else if (!strcmp(manager, "mimalloc3")) {
    void *library = dlopen(getenv("MIMALLOC"), RTLD_NOW);
    if (!library) return 3;
    find(library, "mi_heap_new", Mimalloc3::create);
    find(library, "mi_heap_destroy", Mimalloc3::destroy);
    find(library, "mi_heap_malloc", Mimalloc3::allocate);
    result = run<Mimalloc3>(row);
  } else {
    return 2;
  }
  printf("%lld\n", result);
  return 0;
}
