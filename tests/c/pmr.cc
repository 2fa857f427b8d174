// std::pmr containers over lanemm::region_resource. With WEAK the program is not linked with the
// library: without LD_PRELOAD it goes on without regions.
#include <lanemm_pmr.h>

#ifdef WEAK
#pragma weak lanemm_region_create
#pragma weak lanemm_region_enter
#pragma weak lanemm_region_leave
#pragma weak lanemm_region_malloc
#pragma weak lanemm_region_free
#pragma weak lanemm_region_reset
#pragma weak lanemm_region_state
#pragma weak lanemm_region_of
#endif

#include <algorithm>
#include <list>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "check.h"

using lanemm::region_resource;
using lanemm::region_scope;

static const char long_text[] = "a text that is longer than a short string holds inside";

static size_t blocks_of(const region_resource &resource) {
  lanemm_region_status state;
  lanemm_region_state(resource.region(), &state, sizeof state);
  return state.block_count;
}

// Fills containers of each kind; returns whether they have what was put in.
static bool fills(std::pmr::memory_resource *resource) {
  std::pmr::vector<std::pmr::string> words(resource);
  std::pmr::map<int, std::pmr::string> ordered(resource);
  std::pmr::unordered_map<std::pmr::string, std::pmr::vector<int>> hashed(resource);
  std::pmr::list<long> numbers(resource);
  for (int i = 0; i < 1000; i++) {
    words.emplace_back(long_text);
    words.back() += std::to_string(i);
    ordered[i * 7 % 1000] = words.back();
    hashed[words.back()].assign(i % 50, i);
    numbers.push_back(i);
  }
  for (int i = 0; i < 1000; i += 2) {
    ordered.erase(i);
    numbers.remove(i);
  }
  bool is_right = ordered.size() == 500 && words[999] == (std::string(long_text) + "999").c_str()
                  && std::accumulate(numbers.begin(), numbers.end(), 0L) == 250000;
  for (int i = 0; i < 1000; i++)
    is_right &= hashed[words[i]] == std::pmr::vector<int>(i % 50, i);
  return is_right;
}

struct alignas(64) Wide {
  char bytes[100];
};
struct alignas(4096) Page {
  char bytes[4096];
};

static bool is_of(const void *block, const region_resource &resource) {
  return lanemm_region_of(block) == resource.region();
}

static void test_containers() {
  region_resource resource("containers");
  promise("containers over a region work", fills(&resource));
  promise("they free their blocks one by one", blocks_of(resource) == 0);
  std::pmr::vector<std::pmr::string> words(&resource);
  words.emplace_back(long_text);
  promise("elements take their memory from the region, too",
          is_of(words.data(), resource) && is_of(words[0].data(), resource));
  std::pmr::vector<Wide> wide(33, &resource);
  std::pmr::vector<Page> pages(3, &resource);
  promise("alignments above 16 are kept, in the region",
          is_aligned(wide.data(), 64) && is_of(wide.data(), resource) && is_aligned(pages.data(), 4096)
              && is_of(pages.data(), resource));
  void *huge = resource.allocate(100, 1 << 20);
  promise("up to 1 MB", is_aligned(huge, 1 << 20) && is_of(huge, resource));
  resource.deallocate(huge, 100, 1 << 20);
}

static void test_release() {
  region_resource resource("release"), other("other");
  for (int i = 0; i < 10000; i++)
    new (resource.allocate(sizeof(long))) long(i);
  promise("release frees all blocks at once",
          blocks_of(resource) == 10000 && resource.release() && blocks_of(resource) == 0);
  promise("a resource equals itself alone", resource == resource && !(resource == other));
  std::pmr::string text(long_text, &resource);
  std::pmr::string moved(std::move(text), &other);
  promise("a move to another region copies", is_of(moved.data(), other) && moved == long_text);
}

// The exception and its text are blocks of the region, which ends on the way to the handler.
static lanemm_region throws(const char *text) {
  region_resource resource("throws");
  region_scope scope(resource.region());
  throw std::runtime_error(std::string(text) + std::to_string(resource.region()));
}

static bool is_alive(const std::string &region) {
  lanemm_region_status state = {};
  lanemm_region_state(std::stoul(region), &state, sizeof state);
  return state.name != nullptr;
}

// Returns the region that ended on the way here.
static std::string catches() {
  try {
    throws(long_text);
  } catch (const std::exception &caught) {
    std::vector<std::string> others(100, std::string(sizeof long_text + 10, 'o'));
    region_resource other("in the handler");
    std::string text(caught.what());
    promise("an exception outlives the region whose scope it left",
            text.compare(0, sizeof long_text - 1, long_text) == 0);
    return text.substr(sizeof long_text - 1);
  }
  return "0";
}

// Ends full, with bad_alloc.
static void fills_up(std::string *name) {
  region_resource resource("full", 1 << 20);
  *name = std::to_string(resource.region());
  region_scope scope(resource.region());
  for (;;)
    static_cast<char *>(::operator new(1000))[0] = 1;
}

static void test_exceptions() {
  std::string region = catches();
  { region_resource next("next"); }
  promise("the next resource frees that region", !is_alive(region));
  std::string of_thread;
  std::thread([&] { of_thread = catches(); }).join();
  promise("so does the end of the thread", !is_alive(of_thread));
  std::string full(40, ' ');
  try {
    fills_up(&full);
  } catch (const std::bad_alloc &) {
  }
  { region_resource next("next"); }
  promise("a region that is full is freed, too", !is_alive(full));
}

static void test_limit() {
  region_resource resource("limit", 1 << 20);
  std::pmr::vector<long> numbers(&resource);
  bool is_thrown = false;
  try {
    for (;;)
      numbers.push_back(1);
  } catch (const std::bad_alloc &) {
    is_thrown = true;
  }
  promise("at the limit it throws bad_alloc, and what was there stays",
          is_thrown && !numbers.empty() && std::count(numbers.begin(), numbers.end(), 1)
                                               == static_cast<long>(numbers.size()));
  is_thrown = false;
  try {
    resource.deallocate(resource.allocate(2 << 20, 128), 2 << 20, 128);
  } catch (const std::bad_alloc &) {
    is_thrown = true;
  }
  promise("so does an aligned block", is_thrown);
}

static void test_scope() {
  region_resource resource("scope");
  std::string *text = nullptr;
  try {
    region_scope scope(resource.region());
    text = new std::string(long_text);
    throw 1;
  } catch (int) {
  }
  promise("new in a scope is a block of the region", is_of(text, resource));
  promise("an exception ends the scope", lanemm_region_of(std::string(long_text).data()) == 0
                                             && resource.release());
}

static void test_threads() {
  region_resource resource("threads");
  bool are_right[4] = {};
  std::vector<std::thread> threads;
  for (bool &is_right : are_right)
    threads.emplace_back([&] { is_right = fills(&resource); });
  for (std::thread &thread : threads)
    thread.join();
  promise("threads use a resource at the same time",
          std::count(are_right, are_right + 4, true) == 4 && blocks_of(resource) == 0);
}

int main() {
  check_use_all();
  setvbuf(stdout, nullptr, _IONBF, 0);
#ifdef WEAK
  if (!lanemm_region_create) {
    promise("without the library containers use the heap", fills(std::pmr::new_delete_resource()));
    return counts();
  }
#endif
  test_containers();
  test_release();
  test_exceptions();
  test_limit();
  test_scope();
  test_threads();
  return counts();
}
