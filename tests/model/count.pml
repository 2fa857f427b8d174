/* The count of backed slices, and the hard limit.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.Backed
 *     Exceed:
 *     Reach: LoadAcquire State CompareAndSwap State Exceed CompareAndSwap State
 *     BackedAdd: LoadAcquire Backed Reach CompareAndSwap Backed Reach
 *     BackedRemove: FetchAdd Backed
 *
 * Threads: three that count one or two slices as backed, if the limit allows it, and count them down
 * again or keep them, again and again.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 exact     Backed never exceeds the limit                CHECK_LATER, ADD_APART
 *   2 whole     in the end Backed is what the threads keep    DOWN_BY_STORE
 */

#define Limit 3
#ifndef Rounds
#define Rounds 3
#endif

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

byte Backed;                        /* Process.Backed */
byte Kept;                          /* ghost: what the threads that are through keep */
byte Through;                       /* ghost: threads at the end */

/* Exceed, through Reach: the state of the report is left out. */
#define Exceed(n) ((n) > Limit)

inline BackedAdd(n) {
  do
  :: seen = Backed;                                            /* LoadAcquire */
#ifdef CHECK_LATER
    /* The check reads Backed anew. */
    if
    :: Exceed(Backed + n) -> ok = false; break
    :: else
    fi;
#else
    if
    :: Exceed(seen + n) -> ok = false; break
    :: else
    fi;
#endif
    atomic {
      if
#ifdef ADD_APART
      :: true -> Backed = Backed + n; ok = true; Law(1, !Exceed(Backed)); break
#else
      :: Backed == seen -> Backed = seen + n; ok = true; Law(1, !Exceed(Backed)); break
#endif
      :: else                                                  /* CompareAndSwap */
      fi
    }
  od;
  seen = 0
}

inline BackedRemove(n) {
#ifdef DOWN_BY_STORE
  seen = Backed;
  Backed = seen - n;
  seen = 0
#else
  Backed = Backed - n                                          /* FetchAdd */
#endif
}

proctype Thread() {
  byte rounds = Rounds, n, keeps, seen;
  bool ok;
  do
  :: rounds > 0 ->
    rounds--;
    if
    :: n = 1
    :: n = 2
    fi;
    BackedAdd(n);
    if
    :: !ok
    :: ok -> BackedRemove(n)
    :: ok -> keeps = keeps + n
    fi;
    atomic { n = 0; ok = false }
  :: else -> break
  od;
  atomic { Kept = Kept + keeps; Through++ }
}

init {
  atomic { run Thread(); run Thread(); run Thread() };
  Through == 3;
  Law(2, Backed == Kept)
}
