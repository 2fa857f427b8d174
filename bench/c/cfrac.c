/* Factors products of two primes by continued fractions; each number is a block of its own, and
 * lives for an operation or two. What do the smallest blocks cost that are freed at once?
 * After: Barrett's cfrac; Morrison and Brillhart, "A Method of Factoring and the Factorization of
 * F7", Mathematics of Computation 29 (1975). */
#include "work.h"

enum { NUMBERS = 400, PRIMES = 63, RELATIONS = 128 };

typedef unsigned __int128 wide;

/* As many digits as the value needs. */
struct number {
  uint32_t length;
  uint32_t digits[];
};

/* root(modulus)^2 is the product of the chosen primes, but for squares. */
struct relation {
  wide root;
  uint8_t powers[PRIMES];
  int is_negative;
  uint64_t odd;
  wide members;
};

static uint32_t base[PRIMES];
static struct relation relations[RELATIONS];
static struct { uint64_t odd; wide members; } pivots[PRIMES + 1];

static struct number *number_of(wide value) {
  uint32_t length = 1;
  while (length < 4 && value >> 32 * length)
    length++;
  struct number *number = malloc(sizeof *number + length * sizeof(uint32_t));
  if (number == NULL)
    exit(3);
  number->length = length;
  memcpy(number->digits, &value, length * sizeof(uint32_t));
  return number;
}

static wide value_of(const struct number *number) {
  wide value = 0;
  memcpy(&value, number->digits, number->length * sizeof(uint32_t));
  return value;
}

static wide value_and_free(struct number *number) {
  wide value = value_of(number);
  free(number);
  return value;
}

static struct number *divide(const struct number *number, uint32_t divisor, struct number **rest) {
  wide value = value_of(number);
  *rest = number_of(value % divisor);
  return number_of(value / divisor);
}

static wide power_root(wide value) {
  wide root = (wide)1 << 64;
  for (wide next = root - 1; next < root; next = (root + value / root) / 2)
    root = next;
  return root;
}

static wide gcd(wide a, wide b) {
  while (b) {
    wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static int is_prime(uint32_t candidate) {
  for (uint32_t i = 2; i * i <= candidate; i++)
    if (candidate % i == 0)
      return 0;
  return candidate > 1;
}

static uint32_t prime_next(uint64_t *random) {
  uint32_t candidate = (uint32_t)(next_random(random) >> 36) | 1u << 27 | 1;
  while (!is_prime(candidate))
    candidate += 2;
  return candidate;
}

/* The primes modulo which the number is a square. */
static void base_make(wide modulus) {
  int count = 0;
  for (uint32_t prime = 2; count < PRIMES; prime++) {
    int is_square = 0;
    for (uint32_t i = 0; is_prime(prime) && i < prime && !is_square; i++)
      is_square = i * i % prime == modulus % prime;
    if (is_square)
      base[count++] = prime;
  }
}

/* Divides by the primes; returns whether nothing is left. */
static int is_smooth(struct relation *relation, wide value) {
  struct number *left = number_of(value), *rest;
  relation->odd = (uint64_t)relation->is_negative << PRIMES;
  for (int i = 0; i < PRIMES; i++) {
    relation->powers[i] = 0;
    for (;;) {
      struct number *quotient = divide(left, base[i], &rest);
      if (value_and_free(rest) != 0) {
        free(quotient);
        break;
      }
      free(left);
      left = quotient;
      relation->odd ^= 1ull << i;
      relation->powers[i]++;
    }
  }
  return value_and_free(left) == 1;
}

/* A factor by the members, whose product is a square on both sides; 0 or all of it may come. */
static wide factor_of(wide members, wide modulus) {
  unsigned powers[PRIMES] = {0};
  wide left = 1, right = 1;
  for (int i = 0; i < RELATIONS; i++)
    if (members >> i & 1) {
      left = left * relations[i].root % modulus;
      for (int prime = 0; prime < PRIMES; prime++)
        powers[prime] += relations[i].powers[prime];
    }
  for (int prime = 0; prime < PRIMES; prime++)
    for (unsigned i = 0; i < powers[prime] / 2; i++)
      right = right * base[prime] % modulus;
  return gcd(modulus, left > right ? left - right : right - left);
}

/* Returns the relations whose product with this one is a square, or 0. */
static wide members_of(int index) {
  uint64_t odd = relations[index].odd;
  wide members = (wide)1 << index;
  while (odd) {
    int bit = __builtin_ctzll(odd);
    if (pivots[bit].odd == 0) {
      pivots[bit].odd = odd;
      pivots[bit].members = members;
      return 0;
    }
    odd ^= pivots[bit].odd;
    members ^= pivots[bit].members;
  }
  return members;
}

/* The expansion of the square root of multiplier * modulus; 0 if its relations give no factor. */
static wide factor(wide modulus, unsigned multiplier) {
  wide value = modulus * multiplier, root = power_root(value), before = 1, quotient = root;
  struct number *p = number_of(0), *q = number_of(1), *q_before = number_of(value);
  struct number *a = number_of(root % modulus);
  wide found = 0;
  int count = 0;
  base_make(value);
  memset(pivots, 0, sizeof pivots);
  for (int turn = 1; count < RELATIONS && (found <= 1 || found == modulus); turn++) {
    struct number *p_next = number_of(quotient * value_of(q) - value_of(p));
    wide change = quotient * (value_of(p) - value_of(p_next));
    struct number *q_next = number_of(value_of(q_before) + change);
    free(p);
    free(q_before);
    p = p_next, q_before = q, q = q_next;
    relations[count].root = value_of(a);
    relations[count].is_negative = turn & 1;
    if (value_of(q) == 1)
      break; // the period ends
    if (is_smooth(&relations[count], value_of(q))) {
      wide members = members_of(count++);
      if (members)
        found = factor_of(members, modulus);
    }
    quotient = (root + value_of(p)) / value_of(q);
    struct number *a_next = number_of((quotient * value_of(a) + before) % modulus);
    before = value_and_free(a);
    a = a_next;
  }
  free(p);
  free(q);
  free(q_before);
  free(a);
  return found > 1 && found < modulus ? found : 0;
}

int main(int count, char **arguments) {
  uint64_t random = 7;
  unsigned numbers = scaled(NUMBERS, count, arguments);
  for (unsigned i = 0; i < numbers; i++) {
    wide first = prime_next(&random), second = prime_next(&random), found = 0;
    for (unsigned multiplier = 1; found == 0 && multiplier < 40; multiplier++)
      found = factor(first * second, multiplier);
    if (found != first && found != second)
      exit(4);
  }
  return 0;
}
