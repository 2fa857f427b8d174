# Prints the source that programs.sh compiles; -v count=N makes N functions of it, 3000 if not given.
BEGIN {
  if (!count) count = 3000
  print "#include <stdio.h>"
  print "struct s { int a[8]; double b; struct s *next; };"
  for (i = 0; i < count; i++) {
    printf "static int f%d(struct s *p, int n) {\n  int sum = %d;\n", i, i
    print "  for (int k = 0; k < n; k++)\n    switch (p->a[k % 8] % 5) {"
    printf "      case 0: sum += k * %d; break;\n", i % 17
    print "      case 1: sum ^= p->a[0]; break;\n      case 2: sum -= (int)p->b; break;"
    print "      default: p = p->next ? p->next : p;\n    }\n  return sum;\n}"
  }
  print "int main(void) {\n  struct s s = {{1, 2, 3}, 4.5, 0};\n  long sum = 0;"
  for (i = 0; i < count; i++) printf "  sum += f%d(&s, %d);\n", i, i % 50
  print "  printf(\"%ld\\n\", sum);\n  return 0;\n}"
}
