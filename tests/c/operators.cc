// C++: operators new and delete in all forms, the new handler, bad_alloc, containers.
#include <malloc.h>

#include <sys/resource.h>

#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

// Takes what new returns, so that no compiler leaves the call out.
static void *volatile result;

static int handler_calls;

static void handler_that_gives_up() {
  if (++handler_calls == 3)
    std::set_new_handler(nullptr);
}

struct gave_up : std::bad_alloc {};

static void handler_that_throws() {
  throw gave_up();
}

static volatile size_t too_big = static_cast<size_t>(1) << 60;
static constexpr std::align_val_t alignment{256};

template <typename Action> static bool throws_bad_alloc(Action action) {
  try {
    action();
  } catch (const std::bad_alloc &) {
    return true;
  }
  return false;
}

static void test_forms() {
  void *blocks[] = {
      ::operator new(100), ::operator new[](100), ::operator new(100, std::nothrow),
      ::operator new[](100, std::nothrow), ::operator new(100), ::operator new[](100)};
  void *aligned[] = {
      ::operator new(100, alignment), ::operator new[](100, alignment),
      ::operator new(100, alignment, std::nothrow), ::operator new[](100, alignment, std::nothrow),
      ::operator new(100, alignment), ::operator new[](100, alignment)};
  bool is_right = true;
  for (void *block : blocks)
    is_right &= block && malloc_usable_size(block) >= 100;
  for (void *block : aligned)
    is_right &= block && is_aligned(block, 256);
  promise("all forms of new give blocks, aligned as asked", is_right);
  ::operator delete(blocks[0]);
  ::operator delete[](blocks[1]);
  ::operator delete(blocks[2], std::nothrow);
  ::operator delete[](blocks[3], std::nothrow);
  ::operator delete(blocks[4], static_cast<size_t>(100));
  ::operator delete[](blocks[5], static_cast<size_t>(100));
  ::operator delete(aligned[0], alignment);
  ::operator delete[](aligned[1], alignment);
  ::operator delete(aligned[2], alignment, std::nothrow);
  ::operator delete[](aligned[3], alignment, std::nothrow);
  ::operator delete(aligned[4], 100, alignment);
  ::operator delete[](aligned[5], 100, alignment);
  ::operator delete(nullptr);
  void *first = ::operator new(0), *second = ::operator new(0);
  promise("new of nothing gives a block of its own", first && second && first != second);
  ::operator delete(first);
  ::operator delete(second);
}

static void test_failures() {
  promise("new that fails throws bad_alloc",
          throws_bad_alloc([] { result = ::operator new(too_big); })
              && throws_bad_alloc([] { result = ::operator new[](too_big); })
              && throws_bad_alloc([] { result = ::operator new(too_big, alignment); })
              && throws_bad_alloc([] { result = ::operator new[](too_big, alignment); }));
  promise("nothrow new that fails returns nullptr",
          !::operator new(too_big, std::nothrow) && !::operator new[](too_big, std::nothrow)
              && !::operator new(too_big, alignment, std::nothrow)
              && !::operator new[](too_big, alignment, std::nothrow));
  std::set_new_handler(handler_that_gives_up);
  promise("the new handler is called until there is none",
          throws_bad_alloc([] { result = ::operator new(too_big); }) && handler_calls == 3);
  std::set_new_handler(handler_that_throws);
  bool is_thrown = false;
  try {
    result = ::operator new(too_big);
  } catch (const gave_up &) {
    is_thrown = true;
  }
  promise("what the new handler throws arrives", is_thrown);
  promise("nothrow new catches what the new handler throws",
          !::operator new(too_big, std::nothrow));
  std::set_new_handler(nullptr);
  promise("a container that is too long throws",
          throws_bad_alloc([] { std::vector<char> ignored(too_big); }));
}

// A limit of the process, which the handler lifts once.
static rlimit data_before;

static void handler_that_finds_memory() {
  handler_calls++;
  setrlimit(RLIMIT_DATA, &data_before);
  std::set_new_handler(nullptr);
}

template <typename Action> static void *after_handler(Action action) {
  getrlimit(RLIMIT_DATA, &data_before);
  rlimit least{1, data_before.rlim_max};
  std::set_new_handler(handler_that_finds_memory);
  setrlimit(RLIMIT_DATA, &least);
  void *block = action();
  setrlimit(RLIMIT_DATA, &data_before);
  return block;
}

// With the setting `mixes` a wrong delete would end the program.
static void test_memory_found() {
  static constexpr size_t size = static_cast<size_t>(80) << 20;
  handler_calls = 0;
  void *plain = after_handler([] { return ::operator new(size); });
  void *array = after_handler([] { return ::operator new[](size, std::nothrow); });
  void *aligned = after_handler([] { return ::operator new(size, alignment); });
  void *other = after_handler([] { return ::operator new[](size, alignment, std::nothrow); });
  promise("new gives a block of its kind after its handler has found memory",
          plain && array && is_aligned(aligned, 256) && is_aligned(other, 256) && handler_calls == 4);
  ::operator delete(plain, size);
  ::operator delete[](array);
  ::operator delete(aligned, size, alignment);
  ::operator delete[](other, alignment);
}

struct alignas(512) wide {
  char bytes[512];
};

static void test_containers() {
  bool is_right = true;
  std::vector<std::thread> threads;
  std::vector<std::map<int, std::string>> maps(4);
  for (size_t t = 0; t < maps.size(); t++)
    threads.emplace_back([&maps, t] {
      for (int i = 0; i < 20000; i++)
        maps[t][i * 7919 % 20011] = std::string(i % 100, 'a' + t);
    });
  for (auto &thread : threads)
    thread.join();
  for (size_t t = 0; t < maps.size(); t++)
    for (int i = 0; i < 20000; i++)
      is_right &= maps[t][i * 7919 % 20011] == std::string(i % 100, 'a' + t);
  maps.clear();
  std::vector<std::unique_ptr<wide>> wides;
  for (int i = 0; i < 1000; i++)
    wides.push_back(std::make_unique<wide>());
  for (const auto &one : wides)
    is_right &= is_aligned(one.get(), 512);
  promise("containers work, of threads and of aligned types", is_right);
}

int main() {
  check_use_all();
  test_forms();
  test_failures();
  test_memory_found();
  test_containers();
  return counts();
}
