/* Memory that becomes free in a program that then does nothing more: who sees to it that it is
 * given back.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.Purge
 *     RunThread: OsWaitMs PurgeState HasWork Swap PurgeState HasWork CompareAndSwap PurgeState
 *       OsWait PurgeState CompareAndSwap PurgeState
 *     HasWork: WarmSlices LoadAcquire Released LoadAcquire SweepWanted
 *     WakeThread: LoadAcquire PurgeState HasWork CompareAndSwap PurgeState OsWake PurgeState
 *       WarmSlices LoadAcquire SweepWanted LoadAcquire PurgeState
 *     PurgeTick: WakeThread
 *     PurgeNotify: WakeThread
 *     SweepIfWanted: LoadAcquire SweepWanted Swap SweepWanted
 *     ProcessTrim: HeapRetireEmpty PurgeNotify
 *   LaneMM.RemoteList
 *     RemoteIsUsed: CountOf FetchAdd Remote
 *   LaneMM.Heap
 *     WantSweep: LoadAcquire SweepWanted Swap SweepWanted
 *     HeapEmptied: LockTry WantSweep QueueTaken OwnerOf Used SpanUncountedBlock Remove LockLeave
 *       ArenaRelease SpanDropList
 *     HeapAwaitedFree: Owner:= SpanCollect
 *     AwaitFree: Owner CompareAndSwap Owner WantSweep
 *     HeapSweep: LockTry WantSweep QueueTaken SweepQueue LockLeave
 *     SweepQueue: RemoteIsUsed AwaitFree SpanIsEmpty SpanUncountedBlock Remove ArenaRelease
 *     RetireCurrent: IsCurrent:= Used- Retire
 *     Retire: SpanIsFull Owner:= RemoteGiveUp Owner:= RemoteIsUsed WantSweep QueueAdd
 *     HeapAbandon: LockEnter QueueTaken RetireCurrent SweepQueue LockEnter MoveQueue LockLeave
 *       LockLeave
 *   LaneMM.Threads
 *     ThreadEnded: HeapAbandon
 *   LaneMM.Free
 *     RemoteBlockFree: Owner RemotePush IsCurrent WantSweep PurgeNotify SpanPut HeapTakeOver
 *     OwnBlockFree: SpanPut HeapEmptied PurgeNotify
 *   LaneMM.Arena
 *     ArenaRelease: Release
 *     Release: Owner:= LockTry ArenaLeave LoadAcquire Released CompareAndSwap Released
 *       LockTryAgain ArenaLeave
 *     FreeReleased: LoadAcquire Released Swap Released
 *     ArenaLeave: FreeReleased LockLeave LoadAcquire Released LockTryAgain
 *
 * Threads: the owner of a span with one or two blocks in use frees one, retires the span if it is
 * current, and may end, in any order; another thread frees the other block; a third gives memory back by
 * ProcessTrim, or takes a span from the arena, so that it has a lock at a bad time; the purge thread.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 given back   when no thread can go on, the span is released, no memory is warm, and none is on
 *                  Released, unless the span is still current in the heap of a thread that lives
 *                        EMPTIED_SILENT, SWEEP_SILENT, NO_REARM, NO_AWAIT, AWAITED_BLIND, RETIRE_SILENT,
 *                        END_SILENT, TRIM_SILENT, TAKE_SILENT, WANT_BY_STORE, PARK_BLIND
 *
 * A free that has begun ends before the next look of the purge thread, 400 ms later: the purge thread
 * waits for InFree here. A thread that is stopped for longer in the middle of a free keeps its span until
 * its next call.
 */

#define Running 1
#define Parked 2

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

byte Purge = Running;
bool Asleep;                        /* the system's: the purge thread is parked on its state */
bool SweepWanted;
byte WarmSlices;
byte Released;                      /* spans on Process.Released */
bool ArenaLock;

bool HeapLock[2];                   /* heap 0: the owner's; 1: Process.Abandoned's */
byte At;                            /* heap whose queue has the span; 2 none: current, or released */
bool IsCurrent;
byte Used, Remote;                  /* counts */
byte Owner;                         /* heap that has the span; 2 NoOwner */
byte Awaits;                        /* how often AwaitsFree is added to it */
bool InFree;                        /* ghost: the owner is between its look at Owner and its last write */

#define Nowhere 2

/* ------------------------------------------------------------------------------- purge */

inline WantSweep() {
  r = SweepWanted;
  if
  :: r -> r = false
  :: else ->
#ifdef WANT_BY_STORE
    /* Without a full barrier the write may become visible after the reads that follow. */
    if
    :: d_step { r = !SweepWanted; SweepWanted = true }
    :: r = true; late = true
    fi
#else
    d_step { r = !SweepWanted; SweepWanted = true }            /* Swap */
#endif
  fi
}

inline HasWork() {
  r = (WarmSlices != 0);
  if :: !r -> r = (Released != 0) :: else fi;
  if :: !r -> r = SweepWanted :: else fi
}

/* WakeThread, PurgeTick, PurgeNotify: the purge thread exists. */
inline Notify() {
  if
  :: Purge == Parked ->
    HasWork();
    if
    :: r ->
      atomic {                                                 /* CompareAndSwap, OsWake */
        if
        :: Purge == Parked -> Purge = Running; Asleep = false
        :: else
        fi
      }
    :: else
    fi
  :: else
  fi;
#ifdef WANT_BY_STORE
  if :: late -> SweepWanted = true; late = false :: else fi;
#endif
  r = false
}

/* ------------------------------------------------------------------------------- arena */

/* With the lock: ends without it. FreeReleased, then LockLeave. */
inline ArenaLeave() {
  do
  :: if
     :: Released != 0 ->
       d_step { s = Released; Released = 0 };                  /* Swap */
       d_step { WarmSlices = WarmSlices + s; s = 0 }
     :: else
     fi;
     ArenaLock = false;
     if
     :: Released == 0 -> break
     :: else -> atomic { if :: ArenaLock -> break :: else -> ArenaLock = true fi }
     fi
  od
}

/* Release. */
inline ArenaRelease() {
  atomic { r = !ArenaLock; ArenaLock = true };
  if
  :: r -> WarmSlices++; ArenaLeave()
  :: else ->
    Released++;
    atomic { r = !ArenaLock; ArenaLock = true };
    if :: r -> ArenaLeave() :: else fi
  fi
}

/* ------------------------------------------------------------------------------- heaps */

/* Under the heap's lock. */
inline SweepQueue(h) {
  if
  :: At == h ->
#ifndef NO_AWAIT
    if
    :: Remote != 0 ->                                          /* AwaitFree */
      u = Awaits;
      if
      :: u < 2 ->
        d_step { if :: Awaits == u -> Awaits = u + 1 :: else fi }; /* CompareAndSwap */
#ifndef NO_REARM
        WantSweep()
#endif
      :: else
      fi
    :: else
    fi;
#endif
    u = Used;
    r = (u == Remote);
    if
    :: r -> d_step { At = Nowhere; Owner = Nowhere; r = false }; ArenaRelease()
    :: else
    fi;
    u = 0
  :: else
  fi
}

inline HeapSweep(h) {
  atomic { r = !HeapLock[h]; HeapLock[h] = true };
  if
  :: r -> SweepQueue(h); HeapLock[h] = false
  :: else ->
#ifndef SWEEP_SILENT
    WantSweep()
#else
    skip
#endif
  fi
}

inline LockEnter(h) {
  atomic { !HeapLock[h] -> HeapLock[h] = true }
}

/* Retire: Remote is not empty, else the span were given up. See model life.pml for that. */
inline RetireCurrent() {
  IsCurrent = false;
  d_step { Used--; At = 0 };
  /* RemoteIsUsed */
#ifndef RETIRE_SILENT
  if :: Remote != 0 -> WantSweep() :: else fi
#endif
}

inline HeapEmptied() {
  atomic { r = !HeapLock[0]; HeapLock[0] = true };
  if
  :: r ->
    r = (Owner == 0 && Used == 0);
    if :: r -> d_step { At = Nowhere; Owner = Nowhere } :: else fi;
    HeapLock[0] = false;
    if :: r -> ArenaRelease() :: else fi
  :: else ->
#ifndef EMPTIED_SILENT
    WantSweep()
#else
    skip
#endif
  fi
}

/* RemoteBlockFree: the look at IsCurrent. OwnBlockFree is in the thread below. */
inline RemoteFree() {
  Remote++;
  if
  :: !IsCurrent -> WantSweep(); if :: r -> Notify() :: else fi
  :: else
  fi
}

/* ------------------------------------------------------------------------------- threads */

proctype OwnerThread() {
  bool r, ended, freed;
#ifdef WANT_BY_STORE
  bool late;
#endif
  byte s, u;
  do
  :: !freed && !ended ->
    d_step { InFree = true; r = (Awaits != 0) };
    if
    :: r ->
#ifndef AWAITED_BLIND
      Awaits = 0;                                              /* HeapAwaitedFree */
      d_step { s = Remote; Remote = 0 };                       /* Swap */
      d_step { Used = Used - s; s = 0 }
#else
      skip
#endif
    :: else
    fi;
    d_step { Used--; freed = true; InFree = false; r = (Used == 0) }; /* SpanPut */
    if :: r -> HeapEmptied(); Notify() :: else fi; r = false
  :: !freed && ended -> freed = true; RemoteFree(); r = false
  :: !ended && IsCurrent && Remote != 0 ->                     /* HeapNextSpan */
    LockEnter(0);
    RetireCurrent();
    HeapLock[0] = false;
    Notify()
  :: !ended ->                                                 /* ThreadEnded, HeapAbandon */
    ended = true;
    LockEnter(0);
    if :: IsCurrent -> RetireCurrent() :: else fi;
    SweepQueue(0);
    LockEnter(1);
    d_step { if :: At == 0 -> At = 1; Owner = 1; Awaits = 0 :: else fi };
    HeapLock[1] = false;
    HeapLock[0] = false;
#ifndef END_SILENT
    Notify()
#endif
  :: freed -> break
  od
}

proctype Remover() {
  bool r;
#ifdef WANT_BY_STORE
  bool late;
#endif
  RemoteFree()
}

proctype Trimmer() {                                           /* ProcessTrim */
  bool r;
#ifdef WANT_BY_STORE
  bool late;
#endif
  byte s, u;
  HeapSweep(0);
  HeapSweep(1);
#ifndef TRIM_SILENT
  Notify()
#endif
}

proctype Taker() {                                             /* ArenaTake */
  bool r;
#ifdef WANT_BY_STORE
  bool late;
#endif
  byte s;
  atomic { !ArenaLock -> ArenaLock = true };
  ArenaLeave();
#ifndef TAKE_SILENT
  Notify()
#endif
}

proctype PurgeThread() {                                       /* RunThread */
  bool r;
#ifdef WANT_BY_STORE
  bool late;
#endif
  byte s, u;
  do
  :: !InFree ->                                                /* OsWaitMs */
    r = SweepWanted;                                           /* SweepIfWanted */
    if
    :: r ->
      d_step { r = SweepWanted; SweepWanted = false };         /* Swap */
      if :: r -> HeapSweep(0); HeapSweep(1) :: else fi
    :: else
    fi;
    atomic { !ArenaLock -> ArenaLock = true };                 /* TakeOldest */
    if
    :: WarmSlices = 0
    :: true                         /* not old enough */
    fi;
    ArenaLeave();
    HasWork();
    if
    :: !r ->
      Purge = Parked;                                         /* Swap */
#ifndef PARK_BLIND
      HasWork();
#endif
      if
      :: r -> atomic { if :: Purge == Parked -> Purge = Running :: else fi; r = false }
      :: else ->
        atomic { if :: Purge == Parked -> Asleep = true :: else fi };
end_parked:
        !Asleep;
        atomic { if :: Purge == Parked -> Purge = Running :: else fi; r = false }
      fi
    :: else -> r = false
    fi
  od
}

init {
  atomic {
    /* Queued or current; the owner's block alone, or another thread's as well. */
    Used = 1;
    At = 0;
    if
    :: IsCurrent = true; Used++; At = Nowhere
    :: true
    fi;
    if
    :: Used++; run Remover()
    :: true
    fi;
#ifdef Both
    run Trimmer(); run Taker();
#else
    if
    :: run Trimmer()
    :: run Taker()
    fi;
#endif
    run OwnerThread(); run PurgeThread()
  };
  timeout ->
    Law(1, Asleep && Released == 0 && WarmSlices == 0 && (Owner == Nowhere || IsCurrent))
}
