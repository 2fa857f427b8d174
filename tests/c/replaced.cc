// C++: a program that replaces some operators. The others call those, as they do in the C++ library:
// here delete with a size or of an array would otherwise free what is no block of malloc.
#include <cstdlib>
#include <new>

#include "check.h"

namespace {

// Bytes before what the program's own new returns; a multiple of every alignment here.
constexpr size_t front = 64;
constexpr std::align_val_t alignment{64};
volatile size_t too_big = static_cast<size_t>(1) << 60;

int taken, given;

void *take(void *block) {
  if (block == nullptr)
    throw std::bad_alloc();
  taken++;
  return static_cast<char *>(block) + front;
}

void give(void *block) {
  if (block == nullptr)
    return;
  given++;
  free(static_cast<char *>(block) - front);
}

} // namespace

void *operator new(size_t size) { return take(malloc(size + front)); }
void *operator new(size_t size, std::align_val_t) { return take(aligned_alloc(64, size + front)); }
void operator delete(void *block) noexcept { give(block); }
void operator delete(void *block, std::align_val_t) noexcept { give(block); }

// Whether since the last call as many blocks were taken and given.
static bool went_through(int count) {
  bool is_right = taken == count && given == count;
  taken = given = 0;
  return is_right;
}

static void test_forms() {
  ::operator delete(::operator new(10), static_cast<size_t>(10));
  promise("delete with a size calls the program's delete", went_through(1));
  ::operator delete(::operator new(10, std::nothrow), std::nothrow);
  promise("new and delete with nothrow call the program's", went_through(1));
  ::operator delete[](::operator new[](10));
  ::operator delete[](::operator new[](10), static_cast<size_t>(10));
  ::operator delete[](::operator new[](10, std::nothrow), std::nothrow);
  promise("new[] and delete[] call the program's new and delete", went_through(3));
  ::operator delete(::operator new(10, alignment), static_cast<size_t>(10), alignment);
  ::operator delete(::operator new(10, alignment, std::nothrow), alignment, std::nothrow);
  ::operator delete[](::operator new[](10, alignment), alignment);
  ::operator delete[](::operator new[](10, alignment), static_cast<size_t>(10), alignment);
  ::operator delete[](::operator new[](10, alignment, std::nothrow), alignment, std::nothrow);
  promise("so do those with an alignment", went_through(5));
}

static void test_failures() {
  promise("nothrow new catches what the program's new throws",
          !::operator new(too_big, std::nothrow) && !::operator new[](too_big, std::nothrow)
              && !::operator new(too_big, alignment, std::nothrow)
              && !::operator new[](too_big, alignment, std::nothrow));
  bool is_thrown = false;
  try {
    ::operator delete[](::operator new[](too_big));
  } catch (const std::bad_alloc &) {
    is_thrown = true;
  }
  promise("what the program's new throws passes through new[]", is_thrown && went_through(0));
}

int main() {
  check_use_all();
  test_forms();
  test_failures();
  return counts();
}
