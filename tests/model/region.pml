/* The heaps of a region: threads enter and leave it, one frees or resets it, others free its blocks,
 * sweeps go on with what was left.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.Regions
 *     TakeRecord: HeapPop UnusedHeaps RunsEnd HeapPush UnusedHeaps RunsEnd
 *     AddHeap: TakeRecord LoadAcquire RunsClaimed:= HeapPush UnusedHeaps CompareAndSwap FetchAdd Join
 *     Join: ReleaseFence
 *     RegionEnter: HeapPop AddHeap
 *     RegionFree: TakeIdle CompareAndSwap PutBack RegionHeapDissolve RegionShareEnd
 *     RegionReset: TakeIdle LoadAcquire PutBack RegionHeapReset HeapPush FetchAdd RegionHeapDissolve
 *     TakeIdle: HeapPop NextUnused:=
 *     PutBack: HeapPush
 *   LaneMM.KeptRuns
 *     RunsEnd: LockRecover RunsClaim
 *   LaneMM.RegionHeaps
 *     RegionHeapReset: LockTry DissolveQueues LockLeave
 *     RegionHeapDissolve: StoreRelease RegionHeapSweep
 *     RegionHeapSweep: LockTry SweepRequest DissolveQueued LockLeave RunsClaimed:= HeapPush UnusedHeaps
 *       RegionShareEnd
 *     RegionShareEnd: FetchAdd HeapPush
 *     DissolveQueued: DissolveQueues StoreRelease
 *     DissolveQueues: QueueAllTaken DissolveQueue
 *     DissolveQueue: QueueTake QueueAdd
 *
 * Threads: one that enters, takes a block, and leaves, twice, with -DResets once; one that frees the region,
 * with -DResets after a reset; one that pushes a block that another one has freed; one that shelves; one that sweeps. With
 * -DReleases, instead of those that push and shelve, one that releases the runs which the last thread of heap 1 kept
 * (RunsRelease in LaneMM.KeptRuns). A heap has one span. The stack of idle heaps is one step here: see stack.pml.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 alone     a region is freed, and spans of a heap are released, only while no thread is in it
 *                                                                                FREE_BLIND
 *   2 once      the spans of a heap are released once, and a heap is pushed on one stack once
 *                                                                  SWEEP_UNLOCKED, ENDS_OUTSIDE
 *   3 ended     no thread enters a region that was freed                          ADD_BLIND
 *   4 kept      in the end each heap is idle, unused, or has a thread in it        LEFT_FORGOTTEN
 *   5 refused   a push to a span that was released fails                           PUSH_BLIND
 *   6 counted   Made counts no heap that dissolves; the record of the region lasts until no heap
 *               counts in it                                       LEFT_IS_COUNTED, SHARE_ENDS_EARLY
 *   7 claimed   no thread has the runs of a heap of the region, whose record holds other things there
 *                                                                                JOIN_BLIND
 */

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

#define Heaps 3
#define Ended 9
#ifdef Resets
#define Turns 1                     /* of the thread that enters: the reset has many states */
#else
#define Turns 2
#endif

/* Where a heap is. */
#define Unmade 0
#define Idle 1
#define Inside 2
#define InHand 3
#define Dissolves 4
#define Unused 5

byte At[Heaps];
byte Made = 1;                      /* TRegion.Made */
#ifdef SHARE_ENDS_EARLY
byte Left = 1;
#else
byte Left = 2;                      /* TRegion.Left */
#endif
bool Gone;                          /* ghost: the record of the region is for the next one */
bool Entering;                      /* ghost: Made counts a heap that is not yet one of the region */
bool Lock[Heaps];                   /* THeap.Lock */
bool Flag[Heaps];                   /* THeap.Dissolves */
bool Span[Heaps];                   /* the heap has its span */
bool Shelving[Heaps];               /* a thread shelves blocks of it */
bool Claimed[Heaps];                /* THeap.RunsClaimed */
bool Keeps;                         /* THeap.KeptSlices of heap 1 is not 0 */
byte Life[Heaps];                   /* of the span */
bool Freed;                         /* ghost: RegionFree answered True */
bool SweepWanted;
bool Sweeps;                        /* ghost: a sweep goes on */
byte Done;                          /* ghost: threads that have ended */

/* Pops an idle heap into h; Heaps if there is none. */
inline Pop(h) {
  atomic {
    h = (At[0] == Idle -> 0 : (At[1] == Idle -> 1 : (At[2] == Idle -> 2 : Heaps)));
    if :: h < Heaps -> At[h] = InHand :: else fi
  }
}

/* TakeRecord; h is an unused heap that keeps no runs, Heaps if there is none. */
inline TakeRecord(h) {
#ifdef JOIN_BLIND
  h = (At[1] == Unmade -> 1 : 2);                              /* HeapPop */
  Claimed[h] = true
#else
  d_step {                                                     /* HeapPop, RunsEnd */
    r = (At[1] == Unmade && !Claimed[1]);
    if :: r -> h = 1; Claimed[1] = true :: else fi
  };
  if
  :: r -> Law(7, At[1] == Unmade); Keeps = false
  :: else -> h = (At[2] == Unmade -> 2 : Heaps)                /* HeapPush, HeapRecordNew */
  fi;
  if :: h == 2 -> Claimed[2] = true :: else fi                 /* RunsEnd */
#endif
}

/* RegionEnter; h is the heap, Heaps if the region was freed. */
inline RegionEnter(h) {
  Pop(h);
  if
  :: h == Heaps ->                                             /* AddHeap */
    TakeRecord(h);
    do
    :: h == Heaps -> break
    :: h < Heaps -> m = Made;
      if
      :: m == Ended -> Claimed[h] = false; h = Heaps; break    /* HeapPush */
      :: else
      fi;
#ifdef ADD_BLIND
      Made = m + 1;
#else
      d_step {                                                 /* CompareAndSwap */
        r = (Made == m);
        if :: r -> Made = m + 1; Entering = true :: else fi
      };
      if :: !r -> skip :: else
#endif
        Left++;                                                /* FetchAdd */
        d_step { Entering = false; At[h] = InHand };           /* Join */
        break
#ifndef ADD_BLIND
      fi
#endif
    od
  :: else
  fi;
  if
  :: h < Heaps -> At[h] = Inside; Law(3, !Freed); Law(7, Claimed[h]); Span[h] = true
  :: else
  fi
}

/* RegionShareEnd. */
inline ShareEnd() {
  atomic {                                                     /* FetchAdd, HeapPush */
    Left--;
    if
    :: Left == 0 -> Gone = true; Law(6, Made == Ended && !Entering)
    :: else
    fi
  }
}

/* Releases the span of a heap that is reset or dissolves; r: it could. */
inline ReleaseSpan(h) {
  if
  :: Span[h] ->
    d_step { r = !Shelving[h]; if :: r -> Life[h]++ :: else fi };  /* RemoteEndLife */
    if
    :: r -> Law(1, At[h] == InHand || At[h] == Dissolves); Law(2, Span[h]); Law(6, !Gone); Span[h] = false
    :: else
    fi
  :: else -> r = true
  fi
}

/* RegionHeapSweep: DissolveQueued, DissolveQueues, DissolveQueue. */
inline RegionHeapSweep(h) {
#ifdef SWEEP_UNLOCKED
  r = true;
#else
  d_step { r = !Lock[h]; Lock[h] = true };                     /* LockTry */
#endif
  if
  :: !r -> SweepWanted = true
  :: else ->
    s = Flag[h];
    if
    :: s ->
      ReleaseSpan(h);
      if
      :: r ->
#ifdef ENDS_OUTSIDE
        Lock[h] = false;
#endif
        d_step { s = Flag[h]; Flag[h] = false }                /* StoreRelease */
#ifdef ENDS_OUTSIDE
        ; s = true
#endif
      :: else -> s = false                                     /* see ShelveEnd */
      fi
    :: else
    fi;
    Lock[h] = false;                                           /* LockLeave */
    if
    :: s ->
      Law(2, At[h] == Dissolves);
      At[h] = Unused;
      if :: h != 0 -> Claimed[h] = false :: else fi;
      ShareEnd()
    :: else
    fi
  fi
}

/* RegionHeapDissolve. */
inline Dissolve(h) {
  At[h] = Dissolves;
  Flag[h] = true;                                              /* StoreRelease */
  RegionHeapSweep(h)
}

proctype User() {
  byte h, m, turn;
  bool r;
  do
  :: turn < Turns ->
    turn++;
    RegionEnter(h);
    if
    :: h < Heaps -> At[h] = Idle                               /* RegionLeave */
    :: else
    fi
  :: else -> break
  od;
  Done++
}

/* TakeIdle; count: how many they are. */
inline TakeIdle() {
  count = 0;
  do
  :: true -> Pop(h);
    if
    :: h < Heaps -> hand[h] = true; count++
    :: else -> break
    fi
  od
}

/* The next heap in hand into h; Heaps if there is none. */
inline TakeFirst() {
  atomic {
    h = (hand[0] -> 0 : (hand[1] -> 1 : (hand[2] -> 2 : Heaps)));
    if :: h < Heaps -> hand[h] = false :: else fi
  }
}

inline PutBack() {
  do
  :: true -> TakeFirst();
    if :: h < Heaps -> At[h] = Idle :: else -> break fi
  od
}

#define Counts(h) (At[h] == Idle || At[h] == Inside || At[h] == InHand)

inline RegionReset() {
  TakeIdle();
  r = (Made == count);                                         /* LoadAcquire */
  if
  :: !r -> PutBack()
  :: else ->
    do
    :: true -> TakeFirst();
      if
      :: h == Heaps -> break
      :: else
      fi;
      d_step { r = !Lock[h]; Lock[h] = true };                 /* RegionHeapReset: LockTry */
      if
      :: r -> ReleaseSpan(h); Lock[h] = false                  /* LockLeave */
      :: else
      fi;
      if
      :: r -> At[h] = Idle                                     /* HeapPush */
      :: else ->
#ifndef LEFT_IS_COUNTED
        Made--;                                                /* FetchAdd */
#endif
        Dissolve(h)
      fi
    od
  fi;
  Law(6, Made == Counts(0) + Counts(1) + Counts(2) + Entering)
}

inline RegionFree() {
  TakeIdle();
#ifdef FREE_BLIND
  r = true;
  Made = Ended;
  Law(1, At[0] != Inside && At[1] != Inside && At[2] != Inside);
#else
  skip;
  d_step {                                                     /* CompareAndSwap */
    r = (Made == count);
    if :: r -> Made = Ended; Law(1, At[0] != Inside && At[1] != Inside && At[2] != Inside) :: else fi
  };
#endif
  if
  :: !r -> PutBack()
  :: else ->
    Freed = true;
    do
    :: true -> TakeFirst();
      if :: h < Heaps -> Dissolve(h) :: else -> break fi
    od;
    ShareEnd()
  fi
}

proctype Freer() {
  byte h, count;
  bool r, s, hand[Heaps];
#ifdef Resets
  RegionReset();
#endif
  RegionFree();
  Done++
}

/* Frees a block of heap 0 that it was given. */
proctype Pusher() {
  byte seen;
  bool r;
  seen = Life[0];
  atomic {                                                     /* RemotePush */
#ifdef PUSH_BLIND
    r = true;
#else
    r = (Life[0] == seen);
#endif
    Law(5, !r || Life[0] == seen)
  };
  Done++
}

proctype Shelver() {
  if
  :: atomic { Span[0] && !Shelving[0] -> Shelving[0] = true };  /* RemoteShelve */
    Shelving[0] = false;
#ifdef LEFT_FORGOTTEN
    skip
#else
    SweepWanted = true                                         /* ShelveEnd: no longer current */
#endif
  :: true
  fi;
  Done++
}

proctype Sweeper() {
  byte h;
  bool r, s;
end:
  do
  :: atomic { SweepWanted -> SweepWanted = false; Sweeps = true };
    h = 0;
    do
    :: h < Heaps -> RegionHeapSweep(h); h++
    :: else -> break
    od;
    Sweeps = false
  od
}

#define IsRegions(h) (At[h] != Unmade && At[h] != Unused)

/* Releases the runs of heap 1. */
proctype Releaser() {
  bool r;
  if
  :: Keeps ->                                                  /* RunsRelease */
    d_step { r = !Claimed[1]; Claimed[1] = true };             /* RunsClaim */
    if
    :: r ->
      d_step { Law(7, !IsRegions(1)); Keeps = false };         /* ReleaseRuns */
      d_step { Law(7, !IsRegions(1)); Claimed[1] = false }     /* RunsDisclaim */
    :: else
    fi
  :: true
  fi;
  Done++
}

init {
  At[0] = Idle;
  Span[0] = true;
  Claimed[0] = true;
#ifdef Releases
  Keeps = true;
#endif
  atomic {
    run User();
    run Freer();
    run Sweeper();
#ifdef Releases
    run Releaser();
    Done = Done + 1
#else
    run Pusher();
    run Shelver()
#endif
  }
  Done == 4 && !SweepWanted && !Sweeps;
  Law(4, At[0] != Dissolves && At[1] != Dissolves && At[2] != Dissolves && At[0] != InHand);
  Law(6, Gone == Freed)
}
