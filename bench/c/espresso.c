/* Minimises covers of Boolean functions: cubes are expanded as far as the function allows, then
 * those that others cover are dropped. Each test splits a cover into halves, lists of small sets
 * that live shortly. What do lists of sets cost, made and freed in the order of a recursion?
 * After: Brayton et al., "Logic Minimization Algorithms for VLSI Synthesis", 1984 (espresso). */
#include "work.h"

enum { VARIABLES = 12, CUBES = 60, FUNCTIONS = 250, LITERALS = 5 };

/* Bit 0 of a variable: its complement is allowed, bit 1: it is; 0 beyond the variables. */
typedef uint8_t cube[VARIABLES];

struct cover {
  unsigned count, capacity;
  uint8_t **cubes;
};

static void *checked(void *block) {
  if (block == NULL)
    exit(3);
  return block;
}

static struct cover *cover_new(void) {
  return checked(calloc(1, sizeof(struct cover)));
}

static void cover_add(struct cover *cover, const uint8_t *bits) {
  if (cover->count == cover->capacity) {
    cover->capacity = cover->capacity ? cover->capacity * 2 : 4;
    cover->cubes = checked(realloc(cover->cubes, cover->capacity * sizeof(uint8_t *)));
  }
  uint8_t *copy = checked(malloc(sizeof(cube)));
  memcpy(copy, bits, sizeof(cube));
  cover->cubes[cover->count++] = copy;
}

static void cover_free(struct cover *cover) {
  for (unsigned i = 0; i < cover->count; i++)
    free(cover->cubes[i]);
  free(cover->cubes);
  free(cover);
}

static int is_full(const uint8_t *bits) {
  for (int i = 0; i < VARIABLES; i++)
    if (bits[i] != 3)
      return 0;
  return 1;
}

/* What the cover is inside of the cube, all cubes but `without`. */
static struct cover *cofactor(const struct cover *cover, const uint8_t *inside, int without) {
  struct cover *result = cover_new();
  for (unsigned i = 0; i < cover->count; i++) {
    const uint8_t *bits = cover->cubes[i];
    cube part;
    int meets = (int)i != without;
    for (int variable = 0; variable < VARIABLES && meets; variable++) {
      meets = (bits[variable] & inside[variable]) != 0;
      part[variable] = bits[variable] | (3 & ~inside[variable]);
    }
    if (meets)
      cover_add(result, part);
  }
  return result;
}

/* The variable in which most cubes differ, or -1. */
static int variable_of(const struct cover *cover) {
  int best = -1;
  unsigned most = 0;
  for (int variable = 0; variable < VARIABLES; variable++) {
    unsigned uses = 0;
    for (unsigned i = 0; i < cover->count; i++)
      uses += cover->cubes[i][variable] != 3;
    if (uses > most) {
      most = uses;
      best = variable;
    }
  }
  return best;
}

/* Whether the cover is everything. Frees it. */
static int is_everything(struct cover *cover) {
  int result = 0, variable = variable_of(cover);
  for (unsigned i = 0; i < cover->count && !result; i++)
    result = is_full(cover->cubes[i]);
  if (!result && variable >= 0) {
    cube half;
    memset(half, 3, sizeof half);
    result = 1;
    for (half[variable] = 1; half[variable] <= 2 && result; half[variable]++)
      result = is_everything(cofactor(cover, half, -1));
  }
  cover_free(cover);
  return result;
}

static void expand(struct cover *cover) {
  for (unsigned i = 0; i < cover->count; i++) {
    uint8_t *bits = cover->cubes[i];
    for (int variable = 0; variable < VARIABLES; variable++) {
      uint8_t before = bits[variable];
      if (before == 3)
        continue;
      cube raised;
      memcpy(raised, bits, sizeof raised);
      raised[variable] = 3;
      if (is_everything(cofactor(cover, raised, -1)))
        bits[variable] = 3;
    }
  }
}

static void drop_covered(struct cover *cover) {
  for (unsigned i = cover->count; i-- > 0;)
    if (is_everything(cofactor(cover, cover->cubes[i], (int)i))) {
      free(cover->cubes[i]);
      cover->cubes[i] = cover->cubes[--cover->count];
    }
}

static int value_at(const struct cover *cover, unsigned point) {
  for (unsigned i = 0; i < cover->count; i++) {
    int holds = 1;
    for (int variable = 0; variable < VARIABLES && holds; variable++)
      holds = cover->cubes[i][variable] >> (point >> variable & 1) & 1;
    if (holds)
      return 1;
  }
  return 0;
}

static struct cover *cover_random(uint64_t *random) {
  struct cover *cover = cover_new();
  for (int i = 0; i < CUBES; i++) {
    cube bits;
    memset(bits, 3, sizeof bits);
    for (int literal = 0; literal < LITERALS; literal++) {
      uint64_t value = next_random(random);
      bits[(value >> 8) % VARIABLES] = 1 + (value >> 40) % 2;
    }
    cover_add(cover, bits);
  }
  return cover;
}

int main(int count, char **arguments) {
  uint64_t random = 11;
  unsigned functions = scaled(FUNCTIONS, count, arguments);
  for (unsigned i = 0; i < functions; i++) {
    cube all;
    memset(all, 3, sizeof all);
    struct cover *cover = cover_random(&random), *original = cofactor(cover, all, -1);
    expand(cover);
    drop_covered(cover);
    for (unsigned point = 0; point < 1u << VARIABLES; point++)
      if (value_at(cover, point) != value_at(original, point))
        exit(4);
    cover_free(original);
    cover_free(cover);
  }
  return 0;
}
