# Makes bench/results/server.csv of what the runner has written: requests per second in place of
# nanoseconds, and only the columns of a server.
#
#   awk -f requests.awk RESULTS
BEGIN {
  FS = OFS = ","
  line = "manager,path,runs,requests_per_s_median,requests_per_s_min,requests_per_s_max,"
  line = line "cpu_us_median,cpu_us_min,cpu_us_max,peak_kb,end_kb,peak_charged_kb,end_charged_kb,huge_kb"
}
function per_second(column) { return sprintf("%.0f", 1e9 / $at[column]) }
function us(column) { return sprintf("%.3f", $at[column] / 1000) }
/^#/ { print; next }
!heading++ { for (i = 1; i <= NF; i++) at[$i] = i; print line; next }
$at["runs"] > 0 {
  sub(/^server-/, "/", $2)
  sub(/^\/queries/, "/queries?queries=20", $2)
  print $1, $2, $at["runs"], per_second("ns_median"), per_second("ns_max"), per_second("ns_min"), us("cpu_ns_median"),
    us("cpu_ns_min"), us("cpu_ns_max"), $at["peak_kb_median"], $at["final_kb_median"],
    $at["peak_charged_kb"], $at["idle0_charged_kb"], $at["huge_kb"]
}
