/* The heap records of ended threads: any thread leaves one, any thread takes one, and a sweep abandons
 * those that wait.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.HeapRecords
 *     HeapPush: LoadAcquire NextUnused:= CompareAndSwap
 *     HeapPop: LoadAcquire CompareAndSwap NextUnused
 *   LaneMM.Threads
 *     HeapTake: TakeVacant HeapPop UnusedHeaps
 *     Vacate: HeapPush VacantHeaps
 *     TakeVacant: HeapPop VacantHeaps
 *     AbandonMost: TakeVacant HeapAbandon HeapPush UnusedHeaps NextUnused:=
 *     ThreadsAbandonVacant: AbandonMost NextUnused Vacate SweepRequest
 *
 * The count beside the first record goes from 0 to CountLimit - 1 and begins again. A pop that was
 * overtaken by CountLimit changes, or a multiple, is beyond this model, and beyond the code. Of the
 * stacks of vacant heaps there is one here; a record passes from stack to stack just as between two.
 *
 * Threads: one that twice takes a record and leaves it vacant, or abandons vacant heaps, of which some
 * stay vacant; two that take a record and leave it. None waits for another: each step is always possible.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 single    a record is taken by one thread at a time     NO_COUNT, POP_BY_STORE
 *   2 whole     in the end each record is on a stack          PUSH_BY_STORE, KEPT_FORGOTTEN
 */

#define Nil 3
#ifndef Rounds
#define Rounds 1
#endif
#define CountLimit 32

#define VacantHeaps 0
#define UnusedHeaps 1

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

byte First[2], Changes[2];          /* words: first record, count of changes */
byte NextUnused[3];
bool Taken[3];                      /* ghost: a thread has it */
byte Through;                       /* ghost: threads at the end */

inline HeapPush(stack, h) {
  Taken[h] = false;
  do
  :: d_step { first = First[stack]; count = Changes[stack] };  /* LoadAcquire */
    NextUnused[h] = first;
    atomic {                                                   /* CompareAndSwap */
      if
#ifdef PUSH_BY_STORE
      :: true ->
#else
      :: First[stack] == first && Changes[stack] == count ->
#endif
        First[stack] = h;
#ifndef NO_COUNT
        Changes[stack] = (Changes[stack] + 1) % CountLimit;
#endif
        break
      :: else
      fi
    }
  od
}

inline HeapPop(stack) {
  do
  :: d_step { own = First[stack]; count = Changes[stack] };    /* LoadAcquire */
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
      :: First[stack] == own && Changes[stack] == count ->
#endif
        First[stack] = first;
#ifndef NO_COUNT
        Changes[stack] = (Changes[stack] + 1) % CountLimit;
#endif
        Law(1, !Taken[own]);
        Taken[own] = true;
        break
      :: else
      fi
    }
  od
}

inline TakeVacant() { HeapPop(VacantHeaps) }
inline Vacate(h) { HeapPush(VacantHeaps, h) }

inline HeapTake() {
  TakeVacant();
  if
  :: own == Nil -> HeapPop(UnusedHeaps)
  :: else
  fi
}

/* HeapAbandon succeeds or not: another thread may have the lock. */
inline AbandonMost() {
  do
  :: TakeVacant();
    if
    :: own == Nil -> break
    :: own != Nil -> HeapPush(UnusedHeaps, own)
    :: own != Nil -> NextUnused[own] = kept; kept = own
    fi;
    if
    :: true
    :: break                                                   /* Most */
    fi
  od
}

inline ThreadsAbandonVacant() {
  AbandonMost();
  do
  :: kept != Nil ->
    next = NextUnused[kept];
#ifndef KEPT_FORGOTTEN
    Vacate(kept);
#endif
    kept = next
  :: else -> break
  od
}

inline Forget() {
  atomic { own = Nil; first = 0; count = 0; next = 0; kept = Nil }
}

proctype Thread(byte rounds; bool sweeps) {
  byte own = Nil, first, count, next, kept = Nil;
  do
  :: rounds > 0 ->
    rounds--;
    if
    :: HeapTake();
      if
      :: own == Nil                                            /* a new record, not of these */
      :: else -> Vacate(own)
      fi
    :: sweeps -> ThreadsAbandonVacant()
    fi;
    Forget()
  :: else -> break
  od;
  Through++
}

/* Returns in n how many records are on the stack. */
inline CountStack(stack) {
  s = First[stack];
  do
  :: s != Nil && n < 4 -> Law(2, !Taken[s]); s = NextUnused[s]; n++
  :: else -> break
  od
}

init {
  atomic {
    First[UnusedHeaps] = 2;
    NextUnused[0] = 1; NextUnused[1] = Nil; NextUnused[2] = Nil;
    run Thread(2, true); run Thread(Rounds, false); run Thread(Rounds, false)
  };
  Through == 3;
  d_step {
    byte s, n = 0;
    CountStack(VacantHeaps);
    CountStack(UnusedHeaps);
    Law(2, n == 3)
  }
}
