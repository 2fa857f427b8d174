/* A library with line numbers as gcc writes them, whose file the fuzzer damages: many routines, as
   addresses are chosen at random, with one inlined into each. */
static inline __attribute__((always_inline)) int part(int value, int by) {
  return value % by;
}

#define ROUTINE(number) \
  int sum_##number(const int *numbers, int count) { \
    int sum = number; \
    for (int i = 0; i < count; i++) \
      sum += part(numbers[i], number + 3); \
    return sum; \
  }
#define FOUR(number) ROUTINE(number##0) ROUTINE(number##1) ROUTINE(number##2) ROUTINE(number##3)
#define LINES(number) \
  FOUR(number##1) FOUR(number##2) FOUR(number##3) FOUR(number##4) FOUR(number##5) FOUR(number##6)

LINES(1)
LINES(2)
LINES(3)
LINES(4)
LINES(5)
LINES(6)
LINES(7)
LINES(8)
