/* The stack of heap records that ended threads left: any thread pushes, any thread pops one.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.Threads
 *     HeapReturn: LoadAcquire UnusedHeaps NextUnused:= CompareAndSwap UnusedHeaps
 *     TakeUnused: LoadAcquire UnusedHeaps CompareAndSwap UnusedHeaps NextUnused
 *     Abandon: HeapAbandon HeapReturn PushEnded WantSweep
 *     PushEnded: LoadAcquire EndedHeaps NextUnused:= CompareAndSwap EndedHeaps
 *     ThreadsAbandonEnded: LoadAcquire EndedHeaps Swap EndedHeaps NextUnused Abandon
 *
 * The count beside the first record goes from 0 to CountLimit - 1 and begins again. A pop that was
 * overtaken by CountLimit changes, or a multiple, is beyond this model, and beyond the code.
 *
 * Threads: two that take a record and return it, again and again; each may instead leave it on
 * EndedHeaps, whose records are linked through the same field, and return those of all threads; a
 * third does it once. None waits for another: each step is always possible.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 single    a record is taken by one thread at a time     NO_COUNT, POP_BY_STORE
 *   2 whole     in the end all records are on UnusedHeaps     PUSH_BY_STORE, TAKE_BY_STORE
 */

#define Nil 3
#ifndef Rounds
#define Rounds 2
#endif
#define CountLimit 16

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

byte UnusedHeaps, Changes;          /* one word: first record, count of changes */
byte EndedHeaps = Nil;
byte NextUnused[3];
byte Place[3];                      /* ghost: 0 on UnusedHeaps, 1 taken, 2 on EndedHeaps */
byte Through;                       /* ghost: threads at the end */

inline HeapReturn(h) {
  Place[h] = 0;
  do
  :: d_step { first = UnusedHeaps; count = Changes };          /* LoadAcquire */
    NextUnused[h] = first;
    atomic {                                                   /* CompareAndSwap */
      if
#ifdef PUSH_BY_STORE
      :: true ->
#else
      :: UnusedHeaps == first && Changes == count ->
#endif
        UnusedHeaps = h;
#ifndef NO_COUNT
        Changes = (Changes + 1) % CountLimit;
#endif
        break
      :: else
      fi
    }
  od
}

inline TakeUnused() {
  do
  :: d_step { own = UnusedHeaps; count = Changes };            /* LoadAcquire */
    if
    :: own == Nil -> break
    :: else
    fi;
    first = NextUnused[own];
    atomic {                                                   /* CompareAndSwap */
      if
#ifdef POP_BY_STORE
      :: true ->
#else
      :: UnusedHeaps == own && Changes == count ->
#endif
        UnusedHeaps = first;
#ifndef NO_COUNT
        Changes = (Changes + 1) % CountLimit;
#endif
        Law(1, Place[own] == 0);
        Place[own] = 1;
        break
      :: else
      fi
    }
  od
}

inline PushEnded(h) {
  Place[h] = 2;
  do
  :: first = EndedHeaps;                                       /* LoadAcquire */
    NextUnused[h] = first;
    atomic {                                                   /* CompareAndSwap */
      if
      :: EndedHeaps == first -> EndedHeaps = h; break
      :: else
      fi
    }
  od
}

/* Abandon, with HeapAbandon, succeeds here for each. */
inline ThreadsAbandonEnded() {
#ifdef TAKE_BY_STORE
  ended = EndedHeaps;
  EndedHeaps = Nil;
#else
  d_step { ended = EndedHeaps; EndedHeaps = Nil };             /* Swap */
#endif
  do
  :: ended != Nil ->
    next = NextUnused[ended];
    HeapReturn(ended);
    ended = next
  :: else -> break
  od
}

inline Forget() {
  atomic { own = Nil; first = 0; count = 0; next = 0; ended = Nil }
}

proctype Thread(byte rounds) {
  byte own = Nil, first, count, next, ended = Nil;
  do
  :: rounds > 0 ->
    rounds--;
    TakeUnused();
    if
    :: own == Nil                                              /* a new record, not of these */
    :: own != Nil -> HeapReturn(own)
    :: own != Nil -> PushEnded(own); ThreadsAbandonEnded()
    fi;
    Forget()
  :: else -> break
  od;
  Through++
}

init {
  atomic {
    NextUnused[0] = 1; NextUnused[1] = 2; NextUnused[2] = Nil;
    run Thread(Rounds); run Thread(Rounds); run Thread(1)
  };
  Through == 3;
  d_step {
    byte s = UnusedHeaps, n = 0;
    do
    :: s != Nil && n < 4 -> Law(2, Place[s] == 0); s = NextUnused[s]; n++
    :: else -> break
    od;
    Law(2, n == 3 && EndedHeaps == Nil)
  }
}
