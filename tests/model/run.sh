#!/bin/sh
# Compares models and code (steps.sh), then checks every model with spin, and every mutation: a change
# to the model that must break the law named with it. Prints a line for each; exit code 1 if any is
# not as expected, 2 without spin.
#
#   run.sh            all of it, each search complete; needs spin, a C compiler, 2 GB of memory, minutes
#   run.sh --deep     larger configurations as well, and what takes minutes to find; half an hour, 8 GB
#   CC, CFLAGS        the C compiler (gcc) and its options for long searches (-O1)
#   QUICK_CC          the one for short searches: tcc if it is installed, which compiles in no time

cd "$(dirname "$0")" || exit 2
Here=$(pwd)
for Tool in spin "${CC:-gcc}"; do
  command -v "$Tool" > /dev/null || { echo "run.sh: $Tool not found" >&2; exit 2; }
done
Compiler=${CC:-gcc}
Quick=${QUICK_CC:-tcc}
command -v "$Quick" > /dev/null || Quick="$Compiler -O0"
Work=$(mktemp -d) || exit 2
trap 'rm -rf "$Work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$Work" || exit 2

. "$Here/../lib.sh"

# Searches model $2, compiled by the command $1, with the definitions that follow; the verifier's words
# are in pan.log.
search() {
  Compile=$1
  Model=$2
  shift 2
  rm -f pan pan.* ./*.trail
  spin -a "$@" "$Here/$Model.pml" > pan.log 2>&1 &&
    $Compile -DSAFETY -DCOLLAPSE -DMEMLIM=12000 -o pan pan.c > pan.log 2>&1 &&
    ./pan -m1000000 -w24 > pan.log 2>&1
}

states() { sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log; }

# model definitions...: all laws hold in all states, and no thread is stuck. The search is short: compiling
# with optimization would take longer.
holds() { proves "$Quick" "$@"; }

# holds of a search of many states.
holds_long() { proves "$Compiler ${CFLAGS:--O1}" "$@"; }

proves() {
  Compile=$1
  shift
  search "$Compile" "$@"
  Text="$* $(states) states"
  if grep -q 'errors: 0$' pan.log && ! grep -qi 'not completed\|too small\|out of memory' pan.log
  then pass "$Text"
  else fail "$Text"; grep 'pan:\|rror' pan.log
  fi
}

# model law mutation definitions...: the search finds a state that breaks the law.
breaks() { finds "$Quick" "$@"; }

# breaks of a search that tries the threads in the other order, which gets there sooner.
breaks_reversed() { finds "$Quick -DP_REVERSE" "$@"; }

# breaks of a search of many states.
breaks_late() { finds "$Compiler -O2" "$@"; }

finds() {
  Compile=$1
  shift
  Law=$2
  Text="$1 $3 breaks law $2"
  Mutated=$1
  Mutation=$3
  shift 3
  search "$Compile" "$Mutated" "-D$Mutation" "-DOnly=$Law" "$@"
  Text="$Text, $(states) states"
  if grep -q "assertion violated (*($Law!=$Law)||" pan.log
  then pass "$Text"
  else fail "$Text"; grep 'pan:\|rror' pan.log
  fi
}

if sh "$Here/steps.sh" --quiet
then pass 'the models have the steps of the code'
else fail 'the models have not the steps of the code'
fi

holds_long life -DAllocs1=2
holds_long life -DBegins
breaks life 1 OWNER_KEPT
breaks life 2 THIEF_BLIND
breaks life 2 SWEEP_UNLOCKED
breaks life 2 BIAS_BLIND
breaks life 3 EMPTIED_BLIND
breaks life 4 GIVE_UP_BY_STORE
breaks life 4 TAKE_BY_STORE
breaks life 5 OWNER_AFTER
breaks life 5 RECLAIM_SILENT
breaks life 5 PUSH_EARLY
breaks life 5 ADOPT_BLIND -DBegins
breaks life 5 LEAVE_SILENT
breaks life 1 CLAIM_UNQUEUED
breaks life 6 SWEEP_NO_TAKEN
breaks life 6 ABANDON_CURRENT
breaks life 7 ENDED_KEPT
breaks life 8 TAKE_ENTERS
breaks_reversed life 8 RECLAIM_ENTERS
breaks life 8 ABANDON_ENTERS

holds_long remote
breaks remote 1 FIRST_ONLY
breaks remote 1 LINK_LATE
breaks remote 2 PUSH_BY_STORE
breaks remote 2 TAKE_BY_STORE
breaks remote 3 CLAIM_BY_STORE

holds twice
breaks twice 1 TAKE_BLIND
breaks twice 2 RELEASE_BLIND
breaks twice 3 NO_LIFE
breaks twice 4 NO_CLAIM
breaks twice 5 NO_CLAIM

holds_long kept
holds_long kept -DFreers=2 -DRounds=3
breaks kept 1 FREE_UNFENCED
breaks kept 1 SECTION_LATE
breaks kept 1 SECTION_BLIND
breaks kept 1 LEAVE_EARLY
breaks kept 1 END_BLIND
breaks kept 2 SWEEP_UNFENCED
breaks kept 2 SWEEP_BLIND
breaks kept 2 CLAIM_BLIND
breaks kept 2 COUNT_EARLY
breaks kept 2 CLAIM_EARLY
breaks kept 3 KEEP_UNCOUNTED

holds held
breaks held 1 HOLD_SILENT
breaks held 1 AWAIT_NOTHING
breaks held 2 NOTE_LATE
breaks held 3 HELD_FORGOTTEN

holds_long shelf
holds_long shelf -DSecond=1 -DTurns=1
breaks shelf 1 CARVE_BLIND
breaks shelf 1 PAGES_BLIND
breaks shelf 2 SHELF_BY_STORE -DSecond=3 -DTurns=1
breaks shelf 3 END_BY_STORE
breaks shelf 3 TAKE_EARLY
breaks_reversed shelf 4 SHELF_UNSEEN -DSecond=3 -DTurns=1
breaks shelf 4 PUSH_BLIND -DSecond=3 -DTurns=1
breaks shelf 4 WORDS_FIRST -DSecond=3 -DTurns=1
breaks shelf 5 AWAIT_SILENT -DSecond=1 -DTurns=1
breaks shelf 5 OWNER_PLAIN -DSecond=1 -DTurns=1
breaks shelf 6 COUNT_TWICE
breaks_reversed shelf 6 COUNT_EARLY
breaks_reversed shelf 6 END_LIFE_BLIND

holds_long release
breaks release 1 NO_RECHECK
breaks release 1 NO_SECOND_TRY
breaks release 1 LEAVE_UNFENCED
breaks release 2 TAKE_BY_LOAD
breaks release 3 PUSH_BY_STORE
breaks release 3 TAKE_BY_STORE
breaks release 4 RELEASE_ENTERS
breaks release 4 TAKE_ENTERS

holds_long frontier -DRounds=1
holds frontier -DRefusals
breaks frontier 1 TAKE_BY_STORE
breaks frontier 2 TAKE_FIRST
breaks frontier 2 PUBLISH_FIRST
breaks frontier 3 LIMIT_LATE
breaks frontier 3 RAISE_BY_STORE
breaks frontier 4 TAKE_TORN
breaks frontier 5 RESERVED_FIRST
breaks frontier 6 COUNT_LATE
breaks frontier 6 COUNT_EARLY
breaks frontier 7 ADD_AT_ONCE

holds_long count
breaks count 1 CHECK_LATER
breaks count 1 ADD_APART
breaks count 2 DOWN_BY_STORE

holds_long stack
breaks stack 1 NO_COUNT
breaks stack 1 POP_BY_STORE
breaks stack 2 PUSH_BY_STORE
breaks stack 2 KEPT_FORGOTTEN

holds lock
breaks lock 1 ENTER_BY_STORE
breaks lock 2 WOKEN_AS_NEW
breaks lock 2 WAIT_BLIND
breaks lock 2 LEAVE_SILENT

holds_long region
holds_long region -DResets
holds_long region -DReleases
breaks region 1 FREE_BLIND
breaks region 2 SWEEP_UNLOCKED
breaks region 2 ENDS_OUTSIDE
breaks region 3 ADD_BLIND
breaks region 4 LEFT_FORGOTTEN
breaks region 5 PUSH_BLIND
breaks region 6 LEFT_IS_COUNTED -DResets
breaks region 6 SHARE_ENDS_EARLY -DResets
breaks region 7 JOIN_BLIND -DReleases
holds_long wake -DThird=Taker
for Mutation in EMPTIED_SILENT SWEEP_SILENT NO_REARM NO_AWAIT AWAITED_BLIND PUSH_SILENT \
  PUSH_LATE TAKE_OVER_SILENT END_SILENT TRIM_SILENT TAKE_SILENT WANT_BY_STORE PARK_BLIND SHELVE_SILENT
do
  breaks_reversed wake 1 "$Mutation"
done
holds_long wake -DRoomy -DThird=Taker
breaks_reversed wake 1 OVERDUE_SILENT -DRoomy -DThird=Taker
breaks wake 2 KEPT_FORGOTTEN
breaks wake 2 ENDED_SILENT
breaks wake 2 VACATE_SILENT
breaks wake 2 WANT_EARLY

holds guard
for Mutation in FORBID_BLIND HOLD_BLIND LOOK_FIRST WAIT_FIRST CHANGE_EARLY READERS_AS_FLAG \
  SIGN_LATE
do
  breaks guard 1 "$Mutation"
done
breaks guard 2 WAIT_FOR_EVER
breaks guard 2 REFUSED_KEPT
breaks guard 3 LET_GO_BY_STORE

holds_long sweep
breaks sweep 1 LIFE_LATE
breaks sweep 1 READ_ONCE -DRounds=3 -DKeys=3
breaks sweep 2 KILL_BLIND
breaks sweep 2 LOOK_ONCE
breaks sweep 2 CACHE_KEPT
breaks sweep 2 MARK_LATE

holds_long reuse
breaks reuse 1 BEGIN_LATE
breaks reuse 1 MARK_BY_STORE
breaks reuse 2 MARK_BLIND
breaks reuse 2 BEGIN_FIRST
breaks reuse 3 MARK_FIRST
breaks reuse 3 CHECK_SILENT

holds mailbox
breaks mailbox 1 ANSWERED_EARLY
breaks mailbox 2 TAKE_BY_STORE
breaks mailbox 3 WORDS_LATE
breaks mailbox 3 TAKE_BACK_BLIND

holds copies
breaks copies 1 LIFE_BLIND
breaks copies 1 RANGE_KEPT
breaks copies 1 LEAVE_SILENT

holds weak
breaks weak 1 SIGN_UNFENCED
breaks weak 1 LOOK_UNFENCED
breaks weak 2 PUT_UNFENCED
breaks weak 3 EMPTY_UNFENCED
breaks weak 4 TOTALS_UNFENCED
breaks weak 4 FIRST_UNFENCED
breaks weak 4 LAST_UNFENCED

holds reports
breaks reports 1 END_BLIND
breaks reports 1 END_HALF
breaks reports 1 WRITE_BLIND
breaks reports 2 START_BY_STORE
breaks reports 3 PERIOD_FIRST
breaks reports 3 CHANGE_SILENT
breaks reports 4 REFUSE_BY_STORE

if [ "$1" = --deep ]
then
  holds_long life
  breaks_late life 1 TAKE_BY_LOAD
  breaks_late life 2 LENGTH_FIRST -DBlocks=3
  holds_long life -DBlocks=3
  holds_long life -DAllocs1=2 -DAllocs3=1
  holds_long life -DRetireAll
  holds_long release -DRounds=3
  holds_long frontier
  holds_long wake
  holds_long wake -DRoomy
  holds_long wake -DBoth
  holds_long wake -DThird=Shelver
  holds_long shelf -DSecond=1
  holds_long shelf -DSecond=3 -DTurns=1
  holds_long shelf -DSecond=3
fi

sum
