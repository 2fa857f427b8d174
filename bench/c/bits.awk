# Prints what z3 is measured with: how queens stand, whether a number of 28 bits is a product, and
# sums with lists of comparisons.
BEGIN {
  n = 10
  for (i = 1; i <= n; i++) {
    printf "(declare-const q%d Int)\n(assert (and (>= q%d 1) (<= q%d %d)))\n", i, i, i, n
    for (j = 1; j < i; j++)
      printf "(assert (and (not (= q%d q%d)) (not (= (- q%d q%d) %d)) (not (= (- q%d q%d) %d))))\n",
        i, j, i, j, i - j, j, i, i - j
  }
  print "(check-sat)\n(reset)"
  print "(declare-const a (_ BitVec 30))\n(declare-const b (_ BitVec 30))"
  print "(assert (= (bvmul a b) (_ bv268419073 30)))"
  print "(assert (bvugt a (_ bv1 30)))\n(assert (bvugt b (_ bv1 30)))"
  print "(assert (bvult a (_ bv16384 30)))\n(assert (bvult b (_ bv16384 30)))\n(check-sat)\n(reset)"
  for (i = 1; i <= 60; i++)
    printf "(declare-const x%d Int)\n(assert (and (> x%d 0) (< x%d 100)))\n", i, i, i
  for (i = 1; i <= 57; i++)
    printf "(assert (> (+ x%d (* 2 x%d)) (+ x%d %d)))\n(assert (or (= x%d (* 3 x%d)) (> x%d %d)))\n",
      i, i + 1, i + 2, i % 9, i, i + 3, i, i % 50
  print "(check-sat)"
}
