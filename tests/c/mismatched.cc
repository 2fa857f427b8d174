// Pairs of routines that allocate and free a block, each in a routine of its own. For watched.sh.
//
//   mismatched PAIR
//
// PAIR is the name of a pair below; `all` runs all that belong together.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>

namespace {

const std::align_val_t alignment{256};
void *volatile block;

#define KEPT __attribute__((noinline))

extern "C" {
__attribute__((weak)) void free_sized(void *block, size_t size); // of C23
__attribute__((weak)) void free_aligned_sized(void *block, size_t alignment, size_t size);
KEPT void get_plain() { block = malloc(24); }
KEPT void get_aligned_plain() { block = aligned_alloc(256, 24); }
KEPT void get_new() { block = ::operator new(24); }
KEPT void get_new_nothrow() { block = ::operator new(24, std::nothrow); }
KEPT void get_array() { block = ::operator new[](24); }
KEPT void get_array_nothrow() { block = ::operator new[](24, std::nothrow); }
KEPT void get_new_aligned() { block = ::operator new(24, alignment); }
KEPT void get_new_aligned_nothrow() { block = ::operator new(24, alignment, std::nothrow); }
KEPT void get_array_aligned() { block = ::operator new[](24, alignment); }
KEPT void get_array_aligned_nothrow() { block = ::operator new[](24, alignment, std::nothrow); }

KEPT void put_plain() { free(block); block = nullptr; }
KEPT void put_plain_sized() { free_sized(block, 24); block = nullptr; }
KEPT void put_plain_wrong_size() { free_sized(block, 25); block = nullptr; }
KEPT void put_aligned_plain_sized() { free_aligned_sized(block, 256, 24); block = nullptr; }
KEPT void put_aligned_plain_wrong_size() { free_aligned_sized(block, 256, 32); block = nullptr; }
KEPT void resize() { block = realloc(block, 100); }
KEPT void put_delete() { ::operator delete(block); block = nullptr; }
KEPT void put_delete_nothrow() { ::operator delete(block, std::nothrow); block = nullptr; }
KEPT void put_sized() { ::operator delete(block, 24); block = nullptr; }
KEPT void put_wrong_size() { ::operator delete(block, 32); block = nullptr; }
KEPT void put_array() { ::operator delete[](block); block = nullptr; }
KEPT void put_array_nothrow() { ::operator delete[](block, std::nothrow); block = nullptr; }
KEPT void put_array_sized() { ::operator delete[](block, 24); block = nullptr; }
KEPT void put_array_wrong_size() { ::operator delete[](block, 16); block = nullptr; }
KEPT void put_aligned() { ::operator delete(block, alignment); block = nullptr; }
KEPT void put_aligned_sized() { ::operator delete(block, 24, alignment); block = nullptr; }
KEPT void put_array_aligned() { ::operator delete[](block, alignment); block = nullptr; }
KEPT void put_array_aligned_sized() { ::operator delete[](block, 24, alignment); block = nullptr; }
}

struct Pair {
  const char *name;
  void (*get)();
  void (*put)();
  bool is_right;
};

const Pair pairs[] = {
  {"plain", get_plain, put_plain, true},
  {"aligned-plain", get_aligned_plain, put_plain, true},
  {"plain-sized", get_plain, put_plain_sized, true},
  {"aligned-plain-sized", get_aligned_plain, put_aligned_plain_sized, true},
  {"new", get_new, put_delete, true},
  {"new-sized", get_new, put_sized, true},
  {"nothrow", get_new_nothrow, put_delete_nothrow, true},
  {"nothrow-sized", get_new_nothrow, put_sized, true},
  {"array", get_array, put_array, true},
  {"array-nothrow", get_array_nothrow, put_array_nothrow, true},
  {"array-sized", get_array, put_array_sized, true},
  {"aligned", get_new_aligned, put_aligned, true},
  {"aligned-sized", get_new_aligned_nothrow, put_aligned_sized, true},
  {"array-aligned", get_array_aligned, put_array_aligned, true},
  {"array-aligned-sized", get_array_aligned_nothrow, put_array_aligned_sized, true},
  {"malloc-delete", get_plain, put_delete, false},
  {"malloc-array", get_plain, put_array, false},
  {"new-free", get_new, put_plain, false},
  {"new-realloc", get_new, resize, false},
  {"new-array", get_new, put_array_sized, false},
  {"array-delete", get_array, put_delete, false},
  {"array-free", get_array_nothrow, put_plain, false},
  {"array-delete-sized", get_array, put_sized, false},
  {"array-delete-object", get_array, put_wrong_size, false},
  {"aligned-delete", get_new_aligned, put_delete, false},
  {"new-aligned", get_new, put_aligned, false},
  {"aligned-array", get_new_aligned, put_array_aligned, false},
  {"wrong-size", get_new, put_wrong_size, false},
  {"array-wrong-size", get_array, put_array_wrong_size, false},
  {"plain-wrong-size", get_plain, put_plain_wrong_size, false},
  {"aligned-plain-wrong-size", get_aligned_plain, put_aligned_plain_wrong_size, false},
};

} // namespace

int main(int count, char **arguments) {
  const char *name = count > 1 ? arguments[1] : "all";
  for (const Pair &pair : pairs)
    if (strcmp(name, pair.name) == 0 || (strcmp(name, "all") == 0 && pair.is_right)) {
      pair.get();
      memset(block, 1, 24);
      pair.put();
    }
  puts("done");
  return 0;
}
