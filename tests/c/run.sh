#!/bin/sh
# Builds the C library and runs its tests.
#
#   sh tests/c/run.sh [--quick|--strict]
#
# --quick   only the release library, preloaded, and no real programs
# LONG_ONCE=1: what the library tells is read of the release library alone
# --strict  only where the system does not overcommit: meanwhile that is so for the whole machine, and
#           tests of others would fail
#
# The test programs run on the release library, on one that checks its own laws while it runs, in a
# sandbox without optional system calls, with little address space, and linked statically. Then the names that the library shows are checked, its installation, and what
# it tells of programs that it watches; last, real programs run on it and give the same results as
# without it (programs.sh). What cannot be tested on a machine is a line `skipped`. The last line is
# the sum of all tests, `N passed, N failed`; exit code 1 when one failed.
set -eu
. "$(dirname "$0")/../../tools/begin.sh"
case ${1-} in
  --quick) quick=yes ;;
  --strict) quick=strict ;;
  *) quick=no ;;
esac
. tools/preloads.sh
root=$PWD
out=build/test-c
lib=$root/build/lib
checked=$root/$out/checked
preload=LD_PRELOAD=$lib/liblanemm.so
mkdir -p "$out"
. tests/lib.sh
# Seconds after which a test program hangs.
patience=300

compiler_flags="-O1 -g -fno-builtin -Wall -Wextra -Wno-use-after-free -Ilib/include"
programs="functions sizes alignments mix threads many_threads forks limits full mapped early bad plugins
  handoff frames"

# Adds up a log whose last line is `N passed, N failed`; shows what failed, or was skipped.
count() {
  add "$2" "$3" || true
  grep '^skipped: ' "$2" || true
  printf '%-28s %4d passed %4d failed\n' "$1" "${added% *}" "${added#* }"
  [ "${added#* }" -eq 0 ] || { tail -n 20 "$2"; echo "failed: $1"; }
}

# Runs a test program: its name, how it runs, and the command.
run() {
  name="$1, $2"
  log=$out/$1-$2.log
  shift 2
  code=0
  timeout -k 5 $patience "$@" > "$log" 2>&1 || code=$?
  if [ $code -eq 77 ]; then
    skip "$name" "$(tail -n 1 "$log")"
  else
    count "$name" "$log" $code
  fi
}

# Runs a program of $programs on a library.
run_on() {
  library=$1 variant=$2 program=$3
  set --
  [ "$program" != plugins ] || set -- "$root/$out/plugin.so"
  run "$program" "$variant" env "LD_PRELOAD=$library" "$out/$program" "$@"
}

# Builds a program, or with -shared a library, of tests/c: its name, its source, and options.
compile() { # NAME SOURCE OPTION...
  built=$out/$1 file=tests/c/$2
  shift 2
  case $file in
    *.cc) set -- -std=c++17 "$@"; compiler=g++ ;;
    *) compiler=gcc ;;
  esac
  # shellcheck disable=SC2086 # a list of flags
  $compiler $compiler_flags -o "$built" "$file" "$@" -lpthread -ldl
}

# The same on the shared library.
compile_linked() { # NAME SOURCE OPTION...
  compile "$@" "-L$lib" -llanemm "-Wl,-rpath,$lib"
}

build() {
  for program in $programs hardened without confined refused background coroutine guarded spaces own foreign handled; do
    compile "$program" "$program.c"
  done
  for program in status pressure regions checkpoints counts extended interrupted; do
    compile_linked "$program" "$program.c"
  done
  for library in plugin keyed clock begins hooks audit; do
    compile "$library.so" "$library.c" -fPIC -shared
  done
  # Not position-independent: their addresses of malloc are those of stubs.
  for program in bad plugins; do
    compile "$program-fixed" "$program.c" -fno-pie -no-pie
  done
  compile begun begun.c "-L$out" -l:begins.so "-Wl,-rpath,$root/$out"
  compile_linked called called.c -rdynamic
  compile_linked bound_plugin.so plugin.c -fPIC -shared
  compile_linked pmr pmr.cc
  compile pmr-weak pmr.cc -DWEAK -fPIE -pie
  compile operators operators.cc
  compile replaced replaced.cc -Wno-sized-deallocation
  compile mixed.o mixed.c -c
  echo '#include <stdio.h>
    #include <stdlib.h>
    int main(void) { free(malloc(10)); puts("1 passed, 0 failed"); return 0; }' > "$out/one.c"
  compile watched watched.c -O2
  compile wander wander.c -O2
  compile mismatched mismatched.cc -Wno-mismatched-new-delete
  compile inlined-O1 inlined.cc
  compile inlined-O2 inlined.cc -O2
  compile inlined-dwarf4 inlined.cc -O2 -gdwarf-4
  compile inlined-packed inlined.cc -O2 -gz=zlib
  compile inlined-lto inlined.cc -O2 -flto
  compile inlined-split inlined.cc -O2 -gsplit-dwarf
  # shellcheck disable=SC2086 # a list of flags
  g++ $compiler_flags -x c++ -fsyntax-only tests/c/status.c
  fpc -l- -v0 -vew -vm4082,6018 -O2 -Fusrc '-Fusrc/*' -FE"$out" -FU"$out" -Fo"$out" -Fl"$lib" \
    -k-rpath -k"$lib" tests/c/Mixed.lpr
}

# Libraries with the static library in them, which come and go.
run_unloads() {
  compile unloaded.so unloaded.c "$lib/liblanemm.a" -fPIC -shared -Wl,--exclude-libs,ALL -Wl,-Bsymbolic
  compile unloads unloads.c
  cp "$out/unloaded.so" "$out/unloaded2.so"
  compile quiet.so unloaded.c "$lib/liblanemm.a" -DQUIET -fPIC -shared -Wl,--exclude-libs,ALL -Wl,-Bsymbolic
  compile firsts firsts.c
  run firsts release "$out/firsts" "$root/$out/quiet.so"
  mkdir -p "$out/unloads.logs"
  for settings in "" debug,leaks; do
    run unloads "${settings:-release}" env "LANEMM=$settings,log=$root/$out/unloads.logs" \
      "$out/unloads" "$root/$out/unloaded.so" "$root/$out/unloaded2.so"
    rm -f "$out"/unloads.logs/*
  done
}

# Programs with the library in them, position-independent and not.
run_static() {
  for source in functions.c alignments.c mix.c threads.c full.c early.c forks.c operators.cc replaced.cc regions.c \
    pmr.cc; do
    for kind in static static-pie; do
      name=${source%.*}
      compile "$name-$kind" "$source" "-$kind" "$lib/liblanemm.a" -w
      run "$name" "$kind" "$out/$name-$kind"
    done
  done
}

# A program that is linked with -static has whole stacks if the linker writes the table of its unwind
# information, which -static-pie has it do anyway.
run_static_stacks() {
  for kind in '-static -Wl,--eh-frame-hdr' -static-pie; do
    # shellcheck disable=SC2086 # a list of flags
    compile watched-static watched.c -O2 $kind "$lib/liblanemm.a"
    run watched-static "${kind%% *}" sh -c 'rm -rf "$1"; mkdir "$1"
      LANEMM=growth,log=$1 "$0" && grep -q "^ .* grow_it  " "$1"/* && grep -q " main  " "$1"/* \
        && echo "1 passed, 0 failed"' "$root/$out/watched-static" "$root/$out/static.logs"
  done
}

# Debug mode and backtraces of all blocks, also of those that libc allocates while it starts; leaks, of which
# one may be libc's own, of an ended thread.
run_static_debug() {
  for kind in static static-pie; do
    compile watched-static watched.c -O2 "-$kind" "$lib/liblanemm.a"
    run watched-static "debug-$kind" sh -c 'rm -rf "$1"; mkdir "$1"
      LANEMM=debug,log=$1 "$0" damage && grep -q "^Heap block overrun" "$1"/* \
        && LANEMM=stacks,profile,rate=1,log=$1 "$0" && rm "$1"/* && LANEMM=leaks,log=$1 "$0" lose \
        && grep -q "^Memory leaks: 10[01] blocks" "$1"/* && grep -q "^  100 x 48-byte block" "$1"/* \
        && echo "1 passed, 0 failed"' \
      "$root/$out/watched-static" "$root/$out/static.logs"
  done
}

# The end of a program with the library in it: its handlers of signals stay, stacks of its threads are read, and
# leaks have their exit code.
run_static_ends() {
  for kind in static static-pie pie; do
    compile "ends-$kind" ends.c "-$kind" "$lib/liblanemm.a" -w
    run ends "late-$kind" "$out/ends-$kind" late
    for mode in hold lose; do
      # shellcheck disable=SC2016 # the inner shell expands
      run ends "$mode-$kind" sh -c 'code=0
        LANEMM=leaks,quiet,leaks:exit=9,event=leaks:off "$0" "$1" || code=$?
        [ $code -eq "$2" ]' "$out/ends-$kind" $mode "$([ $mode = lose ] && echo 9 || echo 0)"
    done
  done
}

# Without the system calls that an allocator can do without.
run_in_sandbox() {
  for error in ENOSYS EPERM; do
    for program in functions mix threads forks operators; do
      run "$program" "$error" env "$preload" "$out/without" "$error" \
        "$out/$program"
    done
  done
}

# With no system calls but those that docs/system-calls.md lists: of a program that reports nothing those of its
# first two parts.
run_with_listed_calls() {
  sed '/^## When something/,$d' docs/system-calls.md | grep '^| `' | cut -d '|' -f 2 | grep -o '`[a-z0-9_]*`' \
    | tr -d '`' | sort -u | sed 's/.*/LISTED(&)/' > "$out/listed.h"
  compile listed listed.c "-I$out"
  run functions listed-page env "$preload" "$out/listed" "$out/functions"
  for program in functions mix threads forks; do
    run "$program" listed env "$preload" LANEMM=live=0 "$out/listed" "$out/$program"
  done
}

# With so little address space that the arena is small.
run_in_little_space() {
  for program in mix threads early operators; do
    run "$program" little sh -c 'ulimit -v 500000; LD_PRELOAD=$0 exec "$1"' "$lib/liblanemm.so" \
      "$out/$program"
  done
  run early least sh -c 'ulimit -v 40000; LD_PRELOAD=$0 exec "$1"' "$lib/liblanemm.so" "$out/early"
}

# Where the system promises no more memory than it has.
run_without_overcommit() {
  switch=/proc/sys/vm/overcommit_memory
  before=$(cat $switch)
  if ! echo 2 2> /dev/null > $switch; then
    skip overcommit 'this machine does not let it be turned off'
    return
  fi
  # shellcheck disable=SC2064 # as it is now
  trap "echo $before > $switch" EXIT
  for program in functions mix threads forks limits operators; do
    run_on "$lib/liblanemm.so" strict "$program"
  done
  echo "$before" > $switch
  trap - EXIT
}

# Static programs have the unwind tables of the library, too. (Those that are not position-independent
# have code of glibc without any, in all programs.)
run_static_frames() {
  compile frames-static frames.c -static-pie "$lib/liblanemm.a"
  run frames static-pie "$out/frames-static"
}

# A set-user-ID program reads neither LANEMM nor the file beside it: whoever starts it could have it write
# files, with a hard link to it beside a file of settings.
run_privileged() {
  # shellcheck disable=SC2086
  gcc $compiler_flags -o "$out/trusted" "$out/one.c" -L"$lib" -llanemm -Wl,-rpath,"$lib"
  if [ "$(id -u)" -ne 0 ]; then
    skip 'trusted, privileged' 'only root can make such a program'
    return
  fi
  if ! setpriv --reuid=54321 --clear-groups test -r "$lib/liblanemm.so"; then
    skip 'trusted, privileged' 'another user has no way to the library, as below /root'
    return
  fi
  chown 54321 "$out/trusted"
  chmod u+s "$out/trusted"
  run trusted privileged sh -c 'text=$(LANEMM=help "$0" 2>&1); [ "$text" = "1 passed, 0 failed" ] \
    && echo "$text"' "$out/trusted"
  mkdir -p "$out/linked"
  ln -f "$out/trusted" "$out/linked/trusted"
  echo help > "$out/linked/trusted.lanemm"
  run trusted linked sh -c 'text=$("$0" 2>&1); [ "$text" = "1 passed, 0 failed" ] && echo "$text"' \
    "$out/linked/trusted"
}

# A program with AddressSanitizer preloaded, whose malloc it has: the library takes no address of its
# shadow. As far as that runs here without the library.
run_sanitized() {
  sanitizer=$(gcc -print-file-name=libasan.so)
  gcc -o "$out/sanitized" "$out/one.c"
  if [ "$(ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$sanitizer "$out/sanitized" 2>&1)" = '1 passed, 0 failed' ]; then
    run sanitized release env ASAN_OPTIONS=detect_leaks=0 "LD_PRELOAD=$sanitizer $lib/liblanemm.so" "$out/sanitized"
  else
    skip 'sanitized, release' 'AddressSanitizer does not run here'
  fi
}

# A program with an audit library, for which the dynamic linker takes memory before there is a malloc: libc frees
# it with its caches.
run_audited() {
  for settings in leaks leaks,debug leaks,hard; do
    run functions "audited-$settings" env "LD_AUDIT=$root/$out/audit.so" "$preload" \
      "LANEMM=$settings,quiet,event=leaks:off" "$out/functions"
  done
}

# A program with a malloc of its own: a line says that settings do not apply to it.
run_own() {
  # shellcheck disable=SC2016 # the inner shell expands
  run own said sh -c 'said="LaneMM: this program has another malloc"
    LD_PRELOAD=$0 LANEMM=leaks "$1" 2>&1 > "$1.out" | grep -q "^$said" \
      && ! LD_PRELOAD=$0 "$1" 2>&1 > "$1.out" | grep -q LaneMM && tail -n 1 "$1.out"' \
    "$lib/liblanemm.so" "$out/own"
  # shellcheck disable=SC2016
  run functions unsaid sh -c 'LD_PRELOAD=$0 LANEMM=leaks "$1" 2>&1 > "$1.out" | grep "another malloc" \
    || tail -n 1 "$1.out"' "$lib/liblanemm.so" "$out/functions"
}

# Leaks of a program that ends in a coroutine.
run_coroutine() {
  for mode in main thread lose; do
    # shellcheck disable=SC2016 # the inner shell expands
    run coroutine "$mode" sh -c 'code=0; env "LD_PRELOAD=$0" LANEMM=leaks,quiet,leaks:exit=9,event=leaks:off "$1" "$2" \
      || code=$?; [ $code -eq "$3" ]' "$lib/liblanemm.so" "$out/coroutine" $mode "$([ $mode = lose ] && echo 9 || echo 0)"
  done
}

# Leaks of a program with pages between its stacks that cannot be read. A list lost in a coroutine is lost whole.
run_guarded() {
  run guarded sleep env "$preload" LANEMM=leaks,leaks:exit=9,quiet,event=leaks:off "$out/guarded" sleep
  # shellcheck disable=SC2016 # the inner shell expands
  run guarded coroutine sh -c 'code=0; rm -f "$2"; LD_PRELOAD=$0 LANEMM=leaks,leaks:exit=9,quiet,log=$2 "$1" coroutine \
    || code=$?; [ $code -eq 77 ] && exit 77; [ $code -eq 9 ] && grep -q "^Memory leaks: 10 blocks" "$2" \
    && echo "1 passed, 0 failed"' "$lib/liblanemm.so" "$out/guarded" "$root/$out/guarded.txt"
}

# A program that leaves its folder deletes its own black box at its end.
run_moved() {
  echo '#include <stdio.h>
    #include <unistd.h>
    int main(void) {
      char box[64];
      snprintf(box, sizeof box, "moved.%d.lanebox", (int)getpid());
      return puts("") < 0 || access(box, F_OK) || chdir("/");
    }' > "$out/moved.c"
  gcc -o "$out/moved" "$out/moved.c" -L"$lib" -Wl,--no-as-needed -llanemm -Wl,-rpath,"$lib"
  rm -f "$out"/moved.*.lanebox
  run moved box sh -c 'cd "$0" && LANEMM=blackbox=moved ./moved && [ -z "$(ls | grep "^moved.*lanebox")" ] \
    && echo "1 passed, 0 failed"' "$out"
}

# Where /proc is not mounted, as in a bare chroot, settings apply, and a line says of no address that it is not
# mapped if it is.
run_without_proc() {
  echo '#include <stdlib.h>
    int main(void) { char bytes[100] = ""; free(bytes + 16); return 0; }' > "$out/unmounted.c"
  gcc -w -o "$out/unmounted" "$out/unmounted.c"
  if ! unshare -rm sh -c 'mount -t tmpfs none /proc' 2> /dev/null; then
    skip "unmounted, release" "this machine lets no /proc be hidden"
    return
  fi
  # shellcheck disable=SC2016 # the inner shell expands
  run unmounted release sh -c 'unshare -rm sh -c "mount -t tmpfs none /proc; LANEMM=nonsense LD_PRELOAD=\$0 exec \$1" \
    "$0" "$1" 2>&1 | grep -c -e "^LaneMM: invalid free: .* is in memory that is no heap of LaneMM$" \
    -e "^LaneMM: .*nonsense" | grep -x 2 && echo "1 passed, 0 failed"' \
    "$lib/liblanemm.so" "$out/unmounted"
}

# Real programs; shows those that were skipped or failed.
run_programs() {
  log=$out/programs.log
  code=0
  sh tests/c/programs.sh "$lib/liblanemm.so" > "$log" 2>&1 || code=$?
  grep -v -e ' passed, ' -e '^skipped: ' "$log" || true
  count 'real programs' "$log" $code
}

sh lib/build.sh
build
if [ $quick = strict ]; then
  run_without_overcommit
  sum
  exit
fi
mkdir -p "$out/alignments.logs"
for program in $programs operators replaced; do
  run_on "$lib/liblanemm.so" release "$program"
done
# Often enough on the library as it is: each of the many other runs forks less.
export FORKS=20
# A tool that asks each process of the machine (lanemm ps) would have it make other calls.
run confined release env "$preload" LANEMM=live=0 "$out/confined"
mkdir -p "$out/refused.logs"
run refused profile env "$preload" "LANEMM=profile,rate=1,log=$root/$out/refused.logs/" "$out/refused"
run limits data env "$preload" "$out/limits" data
run limits charge sh -c 'ulimit -d 200000; LD_PRELOAD=$0 exec "$1" charge' "$lib/liblanemm.so" "$out/limits"
run background release env "$preload" LANEMM=background "$out/background" "$root/$out/plugin.so"
run background leaks env "$preload" LANEMM=background,quiet,leaks,leaks:exit=9 "$out/background"
run background sampled env "$preload" \
  "LANEMM=background,profile,rate=300,log=$root/$out/alignments.logs" "$out/background"
mkdir -p "$out/group"
run pressure linked "$out/pressure" "$root/$out/group"
run pressure rested env LANEMM=background "$out/pressure" "$root/$out/group"
run called leaks env LANEMM=leaks,quiet,event=leaks:off "$out/called" "$root/$out/group"
run plugins leaks env "$preload" \
  "LANEMM=leaks,leaks:exit=9,log=$root/$out/plugins.log" "$out/plugins" "$root/$out/plugin.so"
run bad fixed env "$preload" "$out/bad-fixed"
run plugins fixed env "$preload" "$out/plugins-fixed" "$root/$out/plugin.so"
run plugins hooked env "LD_PRELOAD=$root/$out/hooks.so $lib/liblanemm.so" "$out/plugins" "$root/$out/plugin.so"
run begun release env "$preload" "$out/begun"
run foreign release "$out/foreign" "$lib/liblanemm.so" "$root/$out/bound_plugin.so" 40
run foreign without-a-key "$out/foreign" "$lib/liblanemm.so" "$root/$out/bound_plugin.so" 2000
run spaces release env "$preload" "$out/spaces" "$root/$out/keyed.so"
for settings in debug hard; do
  run functions $settings env "LANEMM=$settings,quiet,log=$root/$out/" "$preload" "$out/functions"
done
for settings in "" debug debug,guard=pages hard; do
  run handled "${settings:-release}" env "$preload" "LANEMM=quiet,$settings,log=$root/$out/" "$out/handled"
done
run functions clock env "LD_PRELOAD=$root/$out/clock.so $lib/liblanemm.so" "$out/functions"
for settings in "" debug; do
  run own "${settings:-release}" env "$preload" "LANEMM=quiet,$settings" "$out/own"
done
run_unloads
run status linked "$out/status"
run interrupted linked env "LANEMM=log=$root/$out/alignments.logs" "$out/interrupted"
run regions linked "$out/regions"
for settings in hard,mixes erase=free profile,rate=1K,log="$root/$out/alignments.logs"; do
  run regions "${settings%%,*}" env "LANEMM=$settings" "$out/regions"
done
for settings in debug debug,guard=pages,mixes; do
  run regions "$settings" env "LANEMM=$settings,event=all:halt=99" "$out/regions" debug
done
for settings in calls=1 debug; do
  run checkpoints "$settings" env "LANEMM=$settings,quiet" "$out/checkpoints"
done
for settings in stacks debug profile,rate=1 "profile,log=$root/$out/alignments.logs"; do
  run counts "${settings%%,log=*}" env "LANEMM=$settings,quiet" "$out/counts"
done
run pmr linked "$out/pmr"
run pmr preloaded env "$preload" "$out/pmr-weak"
run pmr without "$out/pmr-weak"
for settings in "" debug,event=all:halt=99 profile,rate=1K,log="$root/$out/alignments.logs"; do
  run extended "${settings%%,*}" env "LANEMM=$settings" "$out/extended"
done
run mixed linked "$out/Mixed"
for settings in debug hard; do
  run mixed $settings env "LANEMM=$settings,event=all:halt=99" "$out/Mixed"
done
run_moved
run_coroutine
run_without_proc
run_guarded
run_sanitized
run_audited
run_own
run symbols release sh tests/c/symbols.sh "$lib"
run replaced debug env "$preload" LANEMM=debug,mixes,event=all:halt=99 \
  "$out/replaced"
run forks debug env "$preload" \
  LANEMM=debug,check=500,quarantine=1M,event=all:halt=99 "$out/forks"
for settings in debug,event=all:halt=99 debug,guard=pages,event=all:halt=99 profile,rate=1K; do
  run alignments "${settings%%=*}" env "$preload" \
    "LANEMM=$settings,log=$root/$out/alignments.logs" "$out/alignments"
done
for settings in hard hard,erase=free,mixes,stacks,guard=sample:100; do
  run hardened "${settings%%=*}" env "$preload" "LANEMM=$settings" \
    "$out/hardened"
done
for program in alignments extended mix forks operators many_threads; do
  run $program hard env "$preload" LANEMM=hard,mixes "$out/$program"
done
run watched release sh tests/c/watched.sh "$lib/liblanemm.so" "$out/watched" "$out/mismatched" \
  "$out/wander"

if [ $quick = no ]; then
  sh lib/build.sh --out="$checked" -O2 -dLANEMM_CHECKED
  for program in $programs operators replaced regions pmr-weak; do
    run_on "$checked/liblanemm.so" checked "$program"
  done
  [ -n "${LONG_ONCE-}" ] || run watched checked sh tests/c/watched.sh "$checked/liblanemm.so" "$out/watched" \
    "$out/mismatched" "$out/wander"
  run_in_sandbox
  run_with_listed_calls
  run_in_little_space
  run_static
  run_static_stacks
  run_static_debug
  run_static_frames
  run_static_ends
  run background checked env "LD_PRELOAD=$checked/liblanemm.so" LANEMM=background "$out/background"
  compile background-static background.c -w -static "$lib/liblanemm.a" 2> /dev/null
  run background static env LANEMM=background "$out/background-static"
  run failing starved sh tests/c/failing.sh "$lib/liblanemm.so" --short starved
  run_privileged
  run install release sh tests/c/install.sh
  run_programs
fi

sum
