# Prints the source that programs.sh compiles.
BEGIN {
  print "#include <algorithm>\n#include <functional>\n#include <iostream>\n#include <map>"
  print "#include <regex>\n#include <string>\n#include <unordered_map>\n#include <vector>"
  print "template <int N> struct t { std::map<int, std::vector<std::string>> m; int get(int k) {"
  print "  m[k].push_back(std::to_string(N)); return (int)m[k].size() + t<N - 1>().get(k); } };"
  print "template <> struct t<0> { int get(int k) { return k; } };"
  for (i = 0; i < 120; i++)
    printf "int g%d(int k) { std::unordered_map<std::string, int> u; u[\"%d\"] = k; " \
      "return t<%d>().get(k) + u[\"%d\"]; }\n", i, i, i % 40 + 1, i
  print "int main() { long sum = 0;"
  for (i = 0; i < 120; i++) printf "  sum += g%d(%d);\n", i, i
  print "  std::cout << sum << \"\\n\"; }"
}
