/* A freed debug block that is used again, and threads that check all blocks.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.DebugRecords
 *     DebugBlockChange: CompareAndSwap State
 *     DebugBlockMarkReported: CompareAndSwap State
 *     DebugBlockBegin: State:= State ReleaseFence
 *     DebugBlockSettle: StoreRelease State State
 *   LaneMM.DebugCheck
 *     FindDamage: LoadAcquire State DebugPlaceIsOpen DebugBlockMarkReported
 *   LaneMM.Debug
 *     CheckFreed: DebugBlockMarkReported
 *     SetAllGuards: CheckFreed DebugBlockBegin
 *     SetGuards: SetAllGuards DebugBlockBegin
 *     Change: LoadAcquire State DebugPlaceIsOpen DebugBlockChange
 *
 * One block. Its contents stand for all bytes that a check compares.
 *
 * Threads: one that uses the block again and frees it, as often as Rounds says; two that check it;
 * the program's mistake, which writes to the block at any time.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 true      what is reported was damage: bytes of a freed block, not of one in use
 *                                     BEGIN_LATE, MARK_BY_STORE
 *   2 once      damage of a block is reported once, until it is used again
 *                                     MARK_BLIND, BEGIN_FIRST
 *   3 all       damage that the next user of the block finds is reported, by it or by a check
 *                                     MARK_FIRST, CHECK_SILENT
 */

#ifndef Rounds
#define Rounds 3
#endif

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

/* TDebugBlock.State: the state, the reported bit, the number of changes. */
#define Changing 1
#define InUse 2
#define Freed 3
#define StateOf(w) ((w) & 3)
#define Reported 4
#define Next(w, state) (((w) & 248) + 8 + (state))

/* What the contents hold. */
#define Pattern 0
#define Used 1
#define Damaged 2

byte State = Freed;
byte Contents = Pattern;
bool Told;                          /* ghost: the damage was reported */

inline Report() {
  Law(1, seen == Damaged);
  Law(2, !Told);
  Told = true
}

/* Sets isMarked. */
inline DebugBlockMarkReported(Seen) {
#ifdef MARK_BY_STORE
  State = State | Reported;
  isMarked = true
#else
  atomic {                                                     /* CompareAndSwap */
    isMarked = State == Seen;
    if
    :: isMarked -> State = Seen | Reported
    :: else
    fi
  }
#endif
}

inline MarkAndReport(Seen) {
  atomic {
    DebugBlockMarkReported(Seen);
    if
    :: isMarked -> Report()
    :: else
    fi
  }
}

inline CheckFreed() {
  seen = Contents;                                             /* DebugFreedIsWhole */
  if
  :: seen != Pattern ->
#ifdef CHECK_SILENT
    skip
#elif defined(MARK_BLIND)
    d_step { Report() }
#else
    MarkAndReport(before)
#endif
  :: else
  fi
}

inline DebugBlockBegin() {
#ifdef BEGIN_LATE
  d_step { Contents = Used; Told = false };
#endif
  before = State;
  State = Next(before, Changing)
}

inline DebugBlockSettle(state) {
  State = Next(State, state)
}

inline SetAllGuards() {
#ifdef BEGIN_FIRST
  bool wasReported = before & Reported;
  DebugBlockBegin();
  seen = Contents;
  if
  :: seen != Pattern && !wasReported -> d_step { Report() }
  :: else
  fi
#else
  if
  :: before & Reported
  :: else -> CheckFreed()
  fi;
  d_step { Law(3, Told || !(before & Reported) && seen != Damaged) };
  DebugBlockBegin()
#endif
}

inline SetGuards() {
  seen = Pattern;
  if
  :: !(before & Reported) -> seen = Contents                   /* DebugFreedIsWhole */
  :: else
  fi;
  if
  :: before & Reported || seen != Pattern -> SetAllGuards()
  :: else -> DebugBlockBegin()
  fi
}

/* Sets dsChanging in place of dsInUse. */
inline Change() {
  isMarked = false;
  do
  :: isMarked -> break
  :: else ->
    before = State;                                            /* LoadAcquire */
    atomic {                                                   /* DebugBlockChange */
      if
      :: State == before -> State = Next(before, Changing); isMarked = true
      :: else
      fi
    }
  od
}

proctype User() {
  byte before, seen, rounds = Rounds;
  bool isMarked;
  do
  :: rounds > 0 ->
    before = State;
    SetGuards();
    d_step { Contents = Used; Told = false };
    DebugBlockSettle(InUse);
    Change();
    Contents = Pattern;
    DebugBlockSettle(Freed);
    rounds--
  :: rounds == 0 -> break
  od
}

inline FindDamage() {
  before = State;                                              /* LoadAcquire */
  if
  :: StateOf(before) == Freed && !(before & Reported) ->
#ifdef MARK_FIRST
    DebugBlockMarkReported(before);
    before = before | Reported;
#endif
    seen = Contents;
    if
    :: seen != Pattern -> MarkAndReport(before)
    :: else
    fi
  :: else
  fi
}

proctype Checker() {
  byte before, seen, rounds = Rounds;
  bool isMarked;
  do
  :: rounds > 0 -> FindDamage(); rounds--
  :: rounds == 0 -> break
  od
}

/* A write to a block in use changes nothing here: its contents are the program's. */
proctype Mistake() {
  byte rounds = Rounds;
  do
  :: rounds > 0 ->
    d_step {
      if
      :: Contents == Pattern -> Contents = Damaged
      :: else
      fi;
      rounds--
    }
  :: rounds == 0 -> break
  od
}

init {
  atomic { run User(); run Checker(); run Checker(); run Mistake() }
}
