# Tables of docs/benchmarks-server.md and the data of its chart, from bench/results/server.csv.
#
#   awk -v what=cpu|requests|memory|chart -f tables.awk RESULTS
#   awk -v what=instructions -f tables.awk bench/results/server-instructions.csv
#
# cpu: us per request and, in brackets, the range of the runs; requests: per second; memory: MB that are
# charged at the peak and at the end, as far as the system counts it, else resident; instructions: those of
# the manager, and all; chart: CPU time per request relative to Free Pascal's heap, with the range of the
# runs, a line for each path.
BEGIN { FS = "," }
/^#/ { next }
!heading++ { for (i = 1; i <= NF; i++) at[$i] = i; next }
{
  if (!($1 in known)) { known[$1] = 1; managers[++manager_count] = $1 }
  if (!($2 in known)) { known[$2] = 1; paths[++path_count] = $2 }
  if (what == "instructions") { cpu[$1, $2] = $at["manager_instructions"]; all[$1, $2] = $at["all_instructions"]; next }
  cpu[$1, $2] = $at["cpu_us_median"]
  range[$1, $2] = $at["cpu_us_min"] " " $at["cpu_us_max"]
  requests[$1, $2] = $at["requests_per_s_median"]
  peak[$1, $2] = $at["peak_charged_kb"] != "" ? $at["peak_charged_kb"] : $at["peak_kb"]
  end[$1, $2] = $at["end_charged_kb"] != "" ? $at["end_charged_kb"] : $at["end_kb"]
}
# A number with three digits that matter.
function short(number) { return sprintf(number < 9.995 ? "%.2f" : number < 99.95 ? "%.1f" : "%.0f", number) }
function thousands(number, i) {
  number = sprintf("%.0f", number)
  for (i = length(number) - 3; i > 0; i -= 3) number = substr(number, 1, i) "," substr(number, i + 1)
  return number
}
function cell(manager, path,   ends) {
  if (!((manager, path) in cpu)) return "failed"
  if (what == "instructions") return thousands(cpu[manager, path]) " of " thousands(all[manager, path])
  split(range[manager, path], ends, " ")
  if (what == "cpu") return short(cpu[manager, path]) " (" short(ends[1]) "-" short(ends[2]) ")"
  if (what == "requests") return thousands(requests[manager, path])
  return sprintf("%.1f / %.1f", peak[manager, path] / 1024, end[manager, path] / 1024)
}
# The geometric mean over the paths, relative to the first manager.
function mean(manager,   i, sum, path) {
  for (i = 1; i <= path_count; i++) {
    path = paths[i]
    if (!((manager, path) in cpu)) return ""
    if (what == "cpu" || what == "instructions") sum += log(cpu[manager, path] / cpu[managers[1], path])
    else if (what == "requests") sum += log(requests[manager, path] / requests[managers[1], path])
    else sum += log(peak[manager, path] / peak[managers[1], path])
  }
  return sprintf("%.2f", exp(sum / path_count))
}
function chart(   i, j, line, ends) {
  line = "path"
  for (i = 1; i <= manager_count; i++) line = line " " managers[i] " least most"
  print line
  for (j = 1; j <= path_count; j++) {
    line = paths[j]
    sub(/[?].*/, "", line)
    for (i = 1; i <= manager_count; i++) {
      split(range[managers[i], paths[j]], ends, " ")
      base = cpu[managers[1], paths[j]]
      line = line sprintf(" %.4f %.4f %.4f", cpu[managers[i], paths[j]] / base, ends[1] / base, ends[2] / base)
    }
    print line
  }
}
END {
  if (what == "chart") { chart(); exit }
  line = "| |"
  rule = "|---|"
  for (j = 1; j <= path_count; j++) { line = line " " paths[j] " |"; rule = rule "---:|" }
  print line " mean |"
  print rule "---:|"
  for (i = 1; i <= manager_count; i++) {
    line = "| " managers[i] " |"
    for (j = 1; j <= path_count; j++) line = line " " cell(managers[i], paths[j]) " |"
    print line " " mean(managers[i]) " |"
  }
}
