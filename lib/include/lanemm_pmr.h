/* A std::pmr::memory_resource over a region of LaneMM, for C++17.
 *
 *   lanemm::region_resource resource("parser");
 *   std::pmr::vector<std::pmr::string> words(&resource);
 *
 * Any thread may use a resource at any time. */
#ifndef LANEMM_PMR_H
#define LANEMM_PMR_H

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <memory_resource>
#include <new>

#include <pthread.h>

#include <lanemm.h>

namespace lanemm {

namespace detail {

/* A region that ended while an exception left its scope: the exception and its text may lie in it. It
 * is freed with a later resource of the thread, or at the thread's end. */
struct kept_region {
  kept_region *next;
  lanemm_region region;
};

inline void free_kept(void *first) {
  auto *kept = static_cast<kept_region *>(first);
  while (kept != nullptr) {
    kept_region *next = kept->next;
    lanemm_region_free(kept->region);
    std::free(kept);
    kept = next;
  }
}

/* The key of the regions that a thread has kept; null where none is left. */
inline const pthread_key_t *kept_key() {
  static pthread_key_t key;
  static const bool is_made = pthread_key_create(&key, free_kept) == 0;
  return is_made ? &key : nullptr;
}

/* Frees the regions that the thread has kept, unless it handles an exception. */
inline void free_kept_if_quiet() {
  const pthread_key_t *key = kept_key();
  void *first = key == nullptr ? nullptr : pthread_getspecific(*key);
  if (first == nullptr || std::uncaught_exceptions() > 0 || std::current_exception() != nullptr)
    return;
  pthread_setspecific(*key, nullptr);
  free_kept(first);
}

inline void end_region(lanemm_region region) {
  free_kept_if_quiet();
  if (std::uncaught_exceptions() == 0) {
    lanemm_region_free(region);
    return;
  }
  /* No block of a scope that the thread may be in. Without memory, or a key, the region stays for
   * ever. */
  static const lanemm_region outside = lanemm_region_create("regions that exceptions left", 0);
  const pthread_key_t *key = kept_key();
  void *block = key == nullptr ? nullptr : lanemm_region_malloc(outside, sizeof(kept_region));
  if (block != nullptr)
    pthread_setspecific(*key, new (block) kept_region{
                                  static_cast<kept_region *>(pthread_getspecific(*key)), region});
}

}  // namespace detail

/* A scope of the calling thread, which an exception ends, too. */
class region_scope {
 public:
  /* Throws std::bad_alloc without memory, or if there is no such region. */
  explicit region_scope(lanemm_region region) {
    if (!lanemm_region_enter(region))
      throw std::bad_alloc();
  }
  ~region_scope() { lanemm_region_leave(); }
  region_scope(const region_scope &) = delete;
  region_scope &operator=(const region_scope &) = delete;
};

/* Allocates in a region of its own, whose blocks are freed one by one, by release, and with the
 * resource. Without memory, and at the limit, it throws std::bad_alloc. An exception that leaves a
 * scope of the region may outlive the resource, until it is caught; not in a std::exception_ptr. */
class region_resource : public std::pmr::memory_resource {
 public:
  /* Arguments are those of lanemm_region_create. */
  explicit region_resource(const char *name = nullptr, std::size_t limit = 0)
      : region_(lanemm_region_create(name, limit)) {
    detail::free_kept_if_quiet();
    if (region_ == 0)
      throw std::bad_alloc();
  }
  /* No thread may be in the region: it would stay for ever. */
  ~region_resource() override { detail::end_region(region_); }
  region_resource(const region_resource &) = delete;
  region_resource &operator=(const region_resource &) = delete;

  /* Frees all blocks at once, as lanemm_region_reset does; false while a thread is in the region. */
  bool release() noexcept { return lanemm_region_reset(region_) != 0; }

  lanemm_region region() const noexcept { return region_; }

 protected:
  void *do_allocate(std::size_t bytes, std::size_t alignment) override {
    void *block = nullptr;
    if (alignment <= alignof(std::max_align_t)) {
      block = lanemm_region_malloc(region_, bytes);
    } else {
      region_scope scope(region_);
      if (posix_memalign(&block, alignment, bytes) != 0)
        block = nullptr;
    }
    if (block == nullptr)
      throw std::bad_alloc();
    return block;
  }

  void do_deallocate(void *block, std::size_t, std::size_t) override { std::free(block); }

  bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
    return this == &other;
  }

 private:
  lanemm_region region_;
};

}  // namespace lanemm

#endif
