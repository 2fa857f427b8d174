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

# model law [definitions...] mutations...: for each, the search finds a state that breaks the law.
breaks() { finds "$Quick" "$@"; }

# breaks of a search that tries the threads in the other order, which gets there sooner.
breaks_reversed() { finds "$Quick -DP_REVERSE" "$@"; }

# breaks of a search of many states.
breaks_late() { finds "$Compiler -O2" "$@"; }

finds() {
  Compile=$1
  Mutated=$2
  Law=$3
  shift 3
  Definitions=
  for Word in "$@"
  do
    case $Word in
      -D*) Definitions="$Definitions $Word"; continue ;;
    esac
    # shellcheck disable=SC2086 # a list of words
    search "$Compile" "$Mutated" "-D$Word" "-DOnly=$Law" $Definitions
    Text="$Mutated $Word breaks law $Law, $(states) states"
    if grep -q "assertion violated (*($Law!=$Law)||" pan.log
    then pass "$Text"
    else fail "$Text"; grep 'pan:\|rror' pan.log
    fi
  done
}

if sh "$Here/steps.sh" --quiet
then pass 'the models have the steps of the code'
else fail 'the models have not the steps of the code'
fi

holds_long life -DAllocs1=2
holds_long life -DBegins
breaks life 1 OWNER_KEPT
breaks life 2 THIEF_BLIND SWEEP_UNLOCKED BIAS_BLIND
breaks life 3 EMPTIED_BLIND
breaks life 4 GIVE_UP_BY_STORE TAKE_BY_STORE
breaks life 5 OWNER_AFTER RECLAIM_SILENT PUSH_EARLY
breaks life 5 -DBegins ADOPT_BLIND
breaks life 5 LEAVE_SILENT
breaks life 1 CLAIM_UNQUEUED
breaks life 6 SWEEP_NO_TAKEN ABANDON_CURRENT
breaks life 7 ENDED_KEPT
breaks life 8 TAKE_ENTERS
breaks_reversed life 8 RECLAIM_ENTERS
breaks life 8 ABANDON_ENTERS

holds_long remote
breaks remote 1 FIRST_ONLY LINK_LATE
breaks remote 2 PUSH_BY_STORE TAKE_BY_STORE
breaks remote 3 CLAIM_BY_STORE

holds twice
breaks twice 1 TAKE_BLIND
breaks twice 2 RELEASE_BLIND
breaks twice 3 NO_LIFE
breaks twice 4 NO_CLAIM
breaks twice 5 NO_CLAIM

holds_long kept
holds_long kept -DFreers=2 -DRounds=3
breaks kept 1 FREE_UNFENCED SECTION_LATE SECTION_BLIND LEAVE_EARLY END_BLIND
breaks kept 2 SWEEP_UNFENCED SWEEP_BLIND CLAIM_BLIND COUNT_EARLY CLAIM_EARLY
breaks kept 3 KEEP_UNCOUNTED

holds held
breaks held 1 HOLD_SILENT AWAIT_NOTHING
breaks held 2 NOTE_LATE
breaks held 3 HELD_FORGOTTEN

holds_long shelf
holds_long shelf -DSecond=1 -DTurns=1
breaks shelf 1 CARVE_BLIND PAGES_BLIND
breaks shelf 2 -DSecond=3 -DTurns=1 SHELF_BY_STORE
breaks shelf 3 END_BY_STORE TAKE_EARLY
breaks_reversed shelf 4 -DSecond=3 -DTurns=1 SHELF_UNSEEN
breaks shelf 4 -DSecond=3 -DTurns=1 PUSH_BLIND WORDS_FIRST
breaks shelf 5 -DSecond=1 -DTurns=1 AWAIT_SILENT OWNER_PLAIN
breaks shelf 6 COUNT_TWICE
breaks_reversed shelf 6 COUNT_EARLY END_LIFE_BLIND

holds_long release
breaks release 1 NO_RECHECK NO_SECOND_TRY LEAVE_UNFENCED
breaks release 2 TAKE_BY_LOAD
breaks release 3 PUSH_BY_STORE TAKE_BY_STORE
breaks release 4 RELEASE_ENTERS TAKE_ENTERS

holds_long frontier -DRounds=1
holds frontier -DRefusals
breaks frontier 1 TAKE_BY_STORE
breaks frontier 2 TAKE_FIRST PUBLISH_FIRST
breaks frontier 3 LIMIT_LATE RAISE_BY_STORE
breaks frontier 4 TAKE_TORN
breaks frontier 5 RESERVED_FIRST
breaks frontier 6 COUNT_LATE COUNT_EARLY
breaks frontier 7 ADD_AT_ONCE

holds_long count
breaks count 1 CHECK_LATER ADD_APART
breaks count 2 DOWN_BY_STORE

holds_long stack
breaks stack 1 NO_COUNT POP_BY_STORE
breaks stack 2 PUSH_BY_STORE KEPT_FORGOTTEN

holds lock
breaks lock 1 ENTER_BY_STORE
breaks lock 2 WOKEN_AS_NEW WAIT_BLIND LEAVE_SILENT

holds_long region
holds_long region -DResets
holds_long region -DReleases
breaks region 1 FREE_BLIND
breaks region 2 SWEEP_UNLOCKED ENDS_OUTSIDE
breaks region 3 ADD_BLIND
breaks region 4 LEFT_FORGOTTEN
breaks region 5 PUSH_BLIND
breaks region 6 -DResets LEFT_IS_COUNTED SHARE_ENDS_EARLY
breaks region 7 -DReleases JOIN_BLIND
holds_long wake -DThird=Taker
breaks_reversed wake 1 EMPTIED_SILENT SWEEP_SILENT NO_REARM NO_AWAIT AWAITED_BLIND PUSH_SILENT PUSH_LATE \
  TAKE_OVER_SILENT END_SILENT TRIM_SILENT TAKE_SILENT WANT_BY_STORE PARK_BLIND SHELVE_SILENT
holds_long wake -DRoomy -DThird=Taker
breaks_reversed wake 1 -DRoomy -DThird=Taker OVERDUE_SILENT
breaks wake 2 KEPT_FORGOTTEN ENDED_SILENT VACATE_SILENT WANT_EARLY

holds guard
breaks guard 1 FORBID_BLIND HOLD_BLIND LOOK_FIRST WAIT_FIRST CHANGE_EARLY READERS_AS_FLAG SIGN_LATE
breaks guard 2 WAIT_FOR_EVER REFUSED_KEPT
breaks guard 3 LET_GO_BY_STORE

holds_long sweep
breaks sweep 1 LIFE_LATE
breaks sweep 1 -DRounds=3 -DKeys=3 READ_ONCE
breaks sweep 2 KILL_BLIND LOOK_ONCE CACHE_KEPT MARK_LATE

holds_long reuse
breaks reuse 1 BEGIN_LATE MARK_BY_STORE
breaks reuse 2 MARK_BLIND BEGIN_FIRST
breaks reuse 3 MARK_FIRST CHECK_SILENT

holds mailbox
breaks mailbox 1 ANSWERED_EARLY
breaks mailbox 2 TAKE_BY_STORE
breaks mailbox 3 WORDS_LATE TAKE_BACK_BLIND

holds copies
breaks copies 1 LIFE_BLIND RANGE_KEPT LEAVE_SILENT

holds weak
breaks weak 1 SIGN_UNFENCED LOOK_UNFENCED
breaks weak 2 PUT_UNFENCED
breaks weak 3 EMPTY_UNFENCED
breaks weak 4 TOTALS_UNFENCED FIRST_UNFENCED LAST_UNFENCED

holds reports
breaks reports 1 END_BLIND END_HALF WRITE_BLIND
breaks reports 2 START_BY_STORE
breaks reports 3 PERIOD_FIRST CHANGE_SILENT
breaks reports 4 REFUSE_BY_STORE

if [ "$1" = --deep ]
then
  holds_long life
  breaks_late life 1 TAKE_BY_LOAD
  breaks_late life 2 -DBlocks=3 LENGTH_FIRST
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
