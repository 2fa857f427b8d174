/* Threads that wait for what has no owner: `guards` for variables of each other's to be initialized, `future` for a
 * future that nothing makes ready, `latch` for a word of the value that a mutex with waiters has, `readers` for a lock
 * that a thread has for reading. For the tests of lanemm. */
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <future>
#include <latch>
#include <shared_mutex>
#include <thread>

static std::latch both_initialize(2);
static std::promise<int> never;
static std::latch too_many(2);
static std::shared_mutex table;
static std::latch reads(1);

struct Outer { Outer(); };
struct Inner { Inner(); };

static __attribute__((noinline)) Outer &outer() {
  static Outer only;
  return only;
}

static __attribute__((noinline)) Inner &inner() {
  static Inner only;
  return only;
}

Outer::Outer() {
  both_initialize.arrive_and_wait();
  inner();
}

Inner::Inner() {
  both_initialize.arrive_and_wait();
  outer();
}

int main(int, char **arguments) {
  std::thread other;
  puts("ready 1");
  fflush(stdout);
  if (strcmp(arguments[1], "guards") == 0) {
    other = std::thread([] { outer(); });
    inner();
  }
  else if (strcmp(arguments[1], "future") == 0)
    never.get_future().get();
  else if (strcmp(arguments[1], "latch") == 0)
    too_many.wait();
  else {
    other = std::thread([] { table.lock_shared(); reads.count_down(); never.get_future().get(); });
    reads.wait();
    table.lock();
  }
  return 0;
}
