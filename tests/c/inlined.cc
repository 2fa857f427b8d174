/* Loses blocks that routines allocate which the compiler inlines: those of C++'s standard library and
   its own. watched.sh reads the marks. */
#include <cstdio>
#include <map>
#include <vector>

#define INLINED __attribute__((always_inline)) inline
#define ROUTINE __attribute__((noinline))
#define END __asm__ volatile("") /* the call before it is not the last one: the routine keeps its frame */

namespace {
struct Hidden {
  long number[6];
};
}

std::vector<int> *numbers;
std::vector<Hidden> *hidden;
std::map<int, long> *pairs;
void *volatile lost;

ROUTINE void add_number() {
  numbers->push_back(1); /* marked: push */
  END;
}

ROUTINE void add_hidden() {
  hidden->push_back(Hidden()); /* marked: hidden */
  END;
}

ROUTINE void add_pair(int key) {
  (*pairs)[key] = 1; /* marked: map */
  END;
}

static INLINED void *innermost(int size) {
  return new char[size]; /* marked: innermost */
}

static INLINED void middle(int size) {
  lost = innermost(size); /* marked: middle */
}

ROUTINE void outermost(int size) {
  middle(size); /* marked: outermost */
  END;
}

ROUTINE void forget() {
  numbers = nullptr;
  hidden = nullptr;
  pairs = nullptr;
  lost = nullptr;
}

int main(int count, char **) {
  numbers = new std::vector<int>;
  hidden = new std::vector<Hidden>;
  pairs = new std::map<int, long>;
  add_number();
  add_hidden();
  add_pair(count);
  outermost(count * 3000);
  forget();
  puts("done");
}
