#!/bin/sh
# Measures the C library against other allocators, all by LD_PRELOAD.
#
#   sh bench/c/run.sh [RESULT]     writes bench/results/RESULT.csv, `c` if not given
#
# The workloads are the C programs here and real programs. The rounds are interleaved: each
# allocator runs a workload once before one runs it again. Prints a line per workload while it runs,
# then time and memory as multiples of what mimalloc takes, and what is to be reached: geometric
# means of at most 1.00, no workload above 1.15. Environment:
#
#   ROUNDS=5           runs of each workload under each allocator
#   MANAGERS='NAME...' of glibc LaneMM mimalloc mimalloc3 jemalloc tcmalloc tbb; all that can be had.
#                      mimalloc is Debian's, version 2; mimalloc3 is built by bench/peers.sh
#   WORKLOADS='NAME...' for example 'larson:2 python:1'
set -eu

case ${1-} in
  --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

cd "$(dirname "$0")/../.."
root=$PWD
name=${1:-c}
rounds=${ROUNDS:-5}
out=$root/build/bench-c
inputs=$root/tests/c/work
mkdir -p "$out" bench/results

# workload:threads; programs count as one thread.
workloads=${WORKLOADS:-larson:1 larson:2 larson:8 xmalloc:2 xmalloc:8 cache_scratch:1
  cache_scratch:2 sh_bench:1 sh_bench:2 sh_bench:8 mstress:1 mstress:2 mstress:8
  python:1 gcc:1 g++:1 sqlite:1 perl:1 git:1 cmake:1 redis:1}

# The file of an allocator's library; nothing for glibc, which needs none.
library_of() {
  case $1 in
    glibc) return 0 ;;
    LaneMM) echo "$root/build/lib/liblanemm.so"; return 0 ;;
    mimalloc) file=libmimalloc.so.2 ;;
    mimalloc3)
      file=$root/build/bench/lib/libmimalloc3-malloc.so
      [ ! -f "$file" ] || echo "$file"
      return 0
      ;;
    jemalloc) file=libjemalloc.so.2 ;;
    tcmalloc) file=libtcmalloc_minimal.so.4 ;;
    tbb) file=libtbbmalloc_proxy.so.2 ;;
  esac
  ldconfig -p | awk -v file="$file" '$1 == file { print $NF; exit }'
}

package_of() {
  case $1 in
    mimalloc) echo libmimalloc2.0 ;;
    mimalloc3) echo cargo ;;
    jemalloc) echo libjemalloc2 ;;
    tcmalloc) echo libtcmalloc-minimal4 ;;
    tbb) echo libtbbmalloc2 ;;
  esac
}

find_managers() {
  managers=
  sh bench/peers.sh
  for manager in ${MANAGERS:-glibc LaneMM mimalloc mimalloc3 jemalloc tcmalloc tbb}; do
    if [ "$manager" = glibc ] || [ -n "$(library_of "$manager")" ]; then
      managers="$managers $manager"
    else
      echo "run.sh: left out: $manager; for it install $(package_of "$manager")" >&2
    fi
  done
}

build() {
  sh lib/build.sh
  for program in measure larson xmalloc cache_scratch sh_bench mstress; do
    gcc -O2 -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-free -Wall -Wextra \
      -o "$out/$program" "bench/c/$program.c" -lpthread
  done
  awk -f "$inputs/large.c.awk" > "$out/large.c"
  awk -f "$inputs/large.cc.awk" > "$out/large.cc"
  mkdir -p "$out/project"
  awk 'BEGIN {
    print "cmake_minimum_required(VERSION 3.10)\nproject(p NONE)\nforeach(i RANGE 60000)"
    print "  list(APPEND numbers \"n${i}\")\n  set(v${i} \"${i}x\")\nendforeach()"
    print "list(SORT numbers)\nlist(REVERSE numbers)\nstring(JOIN \",\" text ${numbers})"
    print "string(REGEX REPLACE \"n([0-9])\" \"\\\\1m\" text \"${text}\")"
  }' > "$out/project/CMakeLists.txt"
}

# The command of a workload, one word a line.
command_of() {
  case $1 in
    python) printf '%s\n' /usr/bin/python3 "$inputs/work.py" ;;
    gcc) printf '%s\n' gcc -O1 -c -o l.o "$out/large.c" ;;
    g++) printf '%s\n' g++ -O1 -c -o l.o "$out/large.cc" ;;
    sqlite) printf '%s\n' sqlite3 -init "$inputs/tables.sql" :memory: .quit ;;
    perl) printf '%s\n' perl "$inputs/words.pl" ;;
    git) printf '%s\n' sh "$inputs/history.sh" ;;
    cmake) printf '%s\n' cmake -S "$out/project" -B . ;;
    redis) printf '%s\n' sh "$root/bench/c/redis.sh" ;;
    *) printf '%s\n' "$out/$1" "$2" ;;
  esac
}

# Runs a workload once: adds a line to the raw results.
run_once() {
  workload=$1 threads=$2 manager=$3
  preload=$(library_of "$manager")
  rm -rf "$out/here"
  mkdir "$out/here"
  if result=$(cd "$out/here" && command_of "$workload" "$threads" \
    | xargs -d '\n' env "LD_PRELOAD=$preload" "$out/measure" 2> "$out/error"); then
    echo "$workload $threads $manager $result" >> "$out/raw"
  else
    echo "run.sh: $workload fails with $manager:" >&2
    tail -n 3 "$out/error" >&2
  fi
}

# What the results file says of itself.
describe() {
  echo "# command: ROUNDS=$rounds sh bench/c/run.sh"
  echo "# workloads:" $workloads
  echo "# revision: $(git rev-parse --short HEAD 2> /dev/null || echo unknown)"
  for manager in $managers; do
    dpkg-query -W -f '# library: ${Package} ${Version}\n' "$(package_of "$manager")" 2> /dev/null \
      || true
  done
  echo "# CPU: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) allowed"
  echo "# kernel: $(uname -sr)"
  echo "# load average at the start: $(cut -d ' ' -f 1 /proc/loadavg)"
}

# Medians and extremes of the raw results, as CSV.
summarize() {
  echo 'manager,workload,threads,runs,ns_median,ns_min,ns_max,cpu_ns_median,cpu_ns_min,cpu_ns_max,peak_kb_median,peak_kb_min,peak_kb_max'
  awk '
    function spread(values, count,    i, j, t, list) {
      split(values, list, " ")
      for (i = 2; i <= count; i++)
        for (j = i; j > 1 && list[j - 1] + 0 > list[j] + 0; j--) {
          t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
        }
      return list[int((count + 1) / 2)] "," list[1] "," list[count]
    }
    {
      key = $3 "," $1 "," $2
      if (!(key in count)) order[++keys] = key
      count[key]++
      wall[key] = wall[key] " " $4; cpu[key] = cpu[key] " " $5; peak[key] = peak[key] " " $6
    }
    END {
      for (i = 1; i <= keys; i++) {
        key = order[i]
        print key "," count[key] "," spread(wall[key], count[key]) "," \
          spread(cpu[key], count[key]) "," spread(peak[key], count[key])
      }
    }' "$out/raw"
}

# Tables of time, CPU time and peak memory as multiples of mimalloc, and the bars.
compare() {
  awk -F , -v managers="$managers" '
    function has(value, base, row) { return value[base, row] && value["LaneMM", row] }
    function table(title, values,    i, j, ratio, logs, rows) {
      printf "\n%-18s", title
      for (j = 1; j <= names; j++) printf "%10s", name[j]
      print ""
      for (i = 1; i <= works; i++) {
        if (!values["mimalloc", work[i]]) continue
        rows++
        printf "%-18s", work[i]
        for (j = 1; j <= names; j++) {
          ratio = values[name[j], work[i]] / values["mimalloc", work[i]]
          printf ratio ? "%10.2f" : "%10s", ratio ? ratio : "-"
          if (ratio) logs[j] += log(ratio)
        }
        print ""
      }
      printf "%-18s", "geometric mean"
      for (j = 1; j <= names; j++) printf "%10.3f", exp(logs[j] / rows)
      print ""
    }
    # LaneMM against base: the mean, and the workloads above 1.15.
    function bar(title, values, base,    i, ratio, sum, rows, above) {
      for (i = 1; i <= works; i++) {
        if (!has(values, base, work[i])) continue
        rows++
        ratio = values["LaneMM", work[i]] / values[base, work[i]]
        sum += log(ratio)
        if (ratio > 1.15) above = above sprintf(" %s (%.2f)", work[i], ratio)
      }
      if (!rows) return
      printf "%s, LaneMM against %s: %.3f, to reach 1.000: %s; above 1.15:%s\n", title, base, \
        exp(sum / rows), exp(sum / rows) <= 1.0005 ? "yes" : "no", above ? above : " none"
    }
    BEGIN { names = split(managers, name, " ") }
    /^#|^manager/ { next }
    {
      key = $2 ":" $3
      if (!(key in known)) { known[key] = 1; work[++works] = key }
      wall[$1, key] = $5; cpu[$1, key] = $8; peak[$1, key] = $11
    }
    END {
      table("time", wall); table("CPU time", cpu); table("peak memory", peak)
      print ""
      bar("time", wall, "mimalloc"); bar("time", wall, "mimalloc3")
      bar("peak memory", peak, "mimalloc"); bar("peak memory", peak, "mimalloc3")
    }
  ' "bench/results/$name.csv"
}

find_managers
build
describe > "$out/description"
: > "$out/raw"
for entry in $workloads; do
  echo "$(date +%T) $entry"
  round=0
  while [ $round -lt "$rounds" ]; do
    for manager in $managers; do
      run_once "${entry%:*}" "${entry#*:}" "$manager"
    done
    round=$((round + 1))
  done
done
{ cat "$out/description"; summarize; } > "bench/results/$name.csv"
compare
