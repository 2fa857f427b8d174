/* Bodies attract each other; each step builds a tree of their cells, node by node, walks it for each
 * body, and frees it. What does a tree cost that is built, read far more often, and thrown away?
 * After: Barnes and Hut, "A hierarchical O(N log N) force-calculation algorithm", Nature 324
 * (1986). */
#include "work.h"

enum { BODIES = 12000, STEPS = 12, DEPTH = 40 };

struct body {
  double place[3], speed[3], mass;
};

/* A cell of space: one body, or up to eight smaller cells. */
struct cell {
  double center[3], half, place[3], mass;
  struct body *body;
  struct cell *parts[8];
};

static struct body bodies[BODIES];

static struct cell *cell_new(const double *center, double half) {
  struct cell *cell = calloc(1, sizeof *cell);
  if (cell == NULL)
    exit(3);
  memcpy(cell->center, center, sizeof cell->center);
  cell->half = half;
  return cell;
}

static void cell_add(struct cell *cell, struct body *body, int depth);

static void cell_pass(struct cell *cell, struct body *body, int depth) {
  int part = 0;
  double center[3];
  for (int axis = 0; axis < 3; axis++) {
    int above = body->place[axis] >= cell->center[axis];
    part |= above << axis;
    center[axis] = cell->center[axis] + (above ? cell->half : -cell->half) / 2;
  }
  if (cell->parts[part] == NULL)
    cell->parts[part] = cell_new(center, cell->half / 2);
  cell_add(cell->parts[part], body, depth + 1);
}

static void cell_add(struct cell *cell, struct body *body, int depth) {
  struct body *before = cell->body;
  double mass = cell->mass + body->mass;
  for (int axis = 0; axis < 3; axis++)
    cell->place[axis] = (cell->place[axis] * cell->mass + body->place[axis] * body->mass) / mass;
  if (cell->mass == 0)
    cell->body = body;
  else if (depth < DEPTH) {
    cell->body = NULL;
    if (before)
      cell_pass(cell, before, depth);
    cell_pass(cell, body, depth);
  }
  cell->mass = mass;
}

static void cell_free(struct cell *cell) {
  for (int part = 0; part < 8; part++)
    if (cell->parts[part])
      cell_free(cell->parts[part]);
  free(cell);
}

static void pull(struct body *body, const struct cell *cell) {
  double way[3], square = 1e-4;
  if (cell->body == body)
    return;
  for (int axis = 0; axis < 3; axis++) {
    way[axis] = cell->place[axis] - body->place[axis];
    square += way[axis] * way[axis];
  }
  if (cell->body == NULL && 4 * cell->half * cell->half > 0.5 * square) {
    for (int part = 0; part < 8; part++)
      if (cell->parts[part])
        pull(body, cell->parts[part]);
    return;
  }
  for (int axis = 0; axis < 3; axis++)
    body->speed[axis] += 1e-6 * cell->mass * way[axis] / square;
}

static void step(void) {
  const double middle[3] = {0, 0, 0};
  double mass = 0;
  struct cell *root = cell_new(middle, 8);
  for (int i = 0; i < BODIES; i++) {
    cell_add(root, &bodies[i], 0);
    mass += bodies[i].mass;
  }
  if (root->mass != mass)
    exit(4);
  for (int i = 0; i < BODIES; i++)
    pull(&bodies[i], root);
  cell_free(root);
  for (int i = 0; i < BODIES; i++)
    for (int axis = 0; axis < 3; axis++)
      bodies[i].place[axis] += bodies[i].speed[axis];
}

int main(int count, char **arguments) {
  uint64_t random = 3;
  unsigned steps = scaled(STEPS, count, arguments);
  for (int i = 0; i < BODIES; i++) {
    bodies[i].mass = 1 + i % 3;
    for (int axis = 0; axis < 3; axis++)
      bodies[i].place[axis] = (double)(next_random(&random) >> 40) / (1 << 24) - 0.5;
  }
  for (unsigned i = 0; i < steps; i++)
    step();
  return 0;
}
