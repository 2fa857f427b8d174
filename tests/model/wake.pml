/* Memory that becomes free in a program that then does nothing more: who sees to it that it is
 * given back.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.Purge
 *     PurgeRun: OsWaitMs PurgeState ProcessPurge SweepRequest HasWork CompareAndSwap PurgeState HasWork
 *       CompareAndSwap PurgeState OsWait PurgeState CompareAndSwap PurgeState LoadAcquire PurgeState
 *       CompareAndSwap PurgeState
 *     HasWork: SweepIsRequested ShardsHaveWarm
 *     PurgeWake: LoadAcquire PurgeState HasWork CompareAndSwap PurgeState OsWake PurgeState
 *       SweepIsRequested LoadAcquire PurgeState
 *     PurgeTick: PurgeWake
 *     PurgeNotify: PurgeWake
 *     PurgeRequest: SweepRequest PurgeNotify
 *     ProcessPurge: SweepTake ThreadsAbandonVacant ShardsPurgeIdle
 *     PurgeNotifyOfEnd: Swap PurgeState OsWake PurgeState SweepRequest PurgeNotify
 *     ProcessTrim: LockRecover HeapRetireEmpty ThreadsAbandonVacant PurgeNotify
 *   LaneMM.RemoteList
 *     RemoteCount: CountOf LoadAcquire Remote
 *   LaneMM.Heap
 *     EndCurrent: IsCurrent:= Used-
 *     EndLife: RemoteEndLife Owner:=
 *     CurrentEmptied: SpanUncountedBlock EndLife EndCurrent GiveBack
 *     HeapEmptied: CurrentEmptied LockTry SweepRequest QueueTaken OwnerOf Used SweepRequest MakeRoomy
 *       SpanUncountedBlock Remove LockLeave HandOver GiveBack
 *     GiveBack: SweepRequest ShardsRelease
 *     HeapAwaitedFree: SetOwner SpanCollect RequeueOverdue
 *     AwaitFree: Owner CompareAndSwap Owner SweepRequest
 *     HeapSweep: RunsRelease SweepRequest HeapSweepQueued
 *     HeapSweepQueued: LockTry SweepRequest QueueAllTaken LockLeave
 *     SweepSpan: RemoteIsUsed AwaitFree SpanIsEmpty SpanUncountedBlock Remove ShardsRelease
 *     PushTaken: LoadAcquire Taken CompareAndSwap Taken RemoteIsEmpty SweepRequest
 *     RetireCurrent: EndCurrent Retire
 *     Retire: SpanIsFull Owner:= RemoteGiveUp SetOwner ExpectRoom PushTaken
 *     HeapTakeOver: ExpectRoom HandOver
 *     HandOver: ReleaseFence SetOwner PushTaken
 *     MakeRoomy: QueueRemove QueueAdd QueueRemove
 *     RequeueOverdue: LockTry SweepRequest QueueTaken QueueRemove QueueAdd LockLeave
 *     HeapRetireAll: RetireCurrent
 *     HeapRetireEmpty: RetireCurrent
 *     HeapAbandonQueued: LockTry QueueAllTaken MoveQueue LockLeave
 *     HeapAbandon: HeapRetireAll HeapAbandonQueued
 *   LaneMM.Threads
 *     Vacate: HeapPush VacantHeaps
 *     TakeVacant: HeapPop VacantHeaps
 *     AbandonMost: TakeVacant HeapAbandon HeapPush UnusedHeaps NextUnused:=
 *     ThreadsAbandonVacant: AbandonMost NextUnused Vacate SweepRequest
 *     ThreadEnd: HeapRetireEmpty HeapAbandonQueued Vacate
 *   LaneMM.Free
 *     RemoteBlockFree: OwnerOf AfterPush RemotePush
 *     AfterPush: IsCurrent PurgeRequest ClaimedBlockFree
 *     OwnBlockFree: SpanPut HeapEmptied PurgeNotify
 *   LaneMM.Shelf
 *     ShelveHeap: RemoteCount ShelveEnd ShelveSpan
 *     ShelveEnd: OsBarrier ShelvePart IsCurrent SweepRequest
 *   LaneMM.Sweep
 *     SweepRequest: LoadAcquire SweepWanted Swap SweepWanted
 *     SweepIsRequested: LoadAcquire SweepWanted
 *     SweepTake: LoadAcquire SweepWanted Swap SweepWanted
 *   LaneMM.Shards
 *     ShardsRelease: LockRecover Release
 *     Release: Owner:= LockTry ShardLeave LoadAcquire Released CompareAndSwap Released
 *       LockTryAgain ShardLeave
 *     FreeReleased: LoadAcquire Released Swap Released
 *     ShardLeave: FreeReleased LockLeave LoadAcquire Released LockTryAgain
 *     ShardsHaveWarm: WarmSlices LoadAcquire Released
 *     TakeOf: LockTry ShardLeave
 *     Enter: LockTryAgain
 *     TakeOldest: Enter FreeReleased ShardLeave
 *     ShardsPurgeIdle: Enter WarmSlices ShardLeave
 *
 * Threads: the owner of a span with one or two blocks in use, or of none that is given up, frees one,
 * retires the span if it is current, and may end, in any order; another thread, without a heap, frees
 * the other block; a third gives memory back by ProcessTrim, takes a span from the arena, so that it
 * has a lock at a bad time, or shelves what the other one freed, as all or none of it; the purge thread.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 given back   when no thread can go on, the span is released, no memory is warm, and none is on
 *                  Released, unless the span is current in the heap of a thread that lives
 *                        EMPTIED_SILENT, SWEEP_SILENT, NO_REARM, NO_AWAIT, AWAITED_BLIND, PUSH_SILENT,
 *                        PUSH_LATE, TAKE_OVER_SILENT, OVERDUE_SILENT, END_SILENT, TRIM_SILENT, TAKE_SILENT,
 *                        WANT_BY_STORE, PARK_BLIND, SHELVE_SILENT
 *   2 abandoned    ... and the heap of an ended thread is unused
 *                        ENDED_SILENT, VACATE_SILENT, WANT_EARLY, KEPT_FORGOTTEN
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
byte Released;                      /* spans on TShard.Released */
bool ShardLock;

bool HeapLock[2];                   /* heap 0: the owner's; 1: Process.Abandoned's */
byte At;                            /* heap whose queue has the span; 2 none */
byte Taken;                         /* heap that has it on Taken; 2 none */
byte Arriving;                      /* heap that is to queue it; 2 none */
bool GivenUp;
bool VacantHeaps;                   /* heap 0 is vacant */
bool Ended;                         /* ghost: its thread has ended */
bool IsUnused;                      /* ghost: and it was abandoned */
bool IsCurrent;
byte Held;                          /* 1: current, and its last free is not noticed */
byte Used, Remote;                  /* counts */
byte Bias;                          /* taken from Used: the owner's free that makes it 0 is not the last */
bool Shelving;                      /* the word says so: Remote was taken to shelve blocks */
byte Shelf;                         /* blocks that are shelved */

#define HasFreed (Remote != 0 || Shelving || Shelf != 0)
byte Owner;                         /* heap that has the span; 2 NoOwner */
byte Awaits;                        /* how often AwaitsFree is added to it */
bool InFree;                        /* ghost: the owner is between its look at Owner and its last write */

#define Nowhere 2

/* ------------------------------------------------------------------------------- purge */

inline SweepRequest() {
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
  r = SweepWanted;                                             /* SweepIsRequested */
  if :: !r -> r = (WarmSlices != 0) :: else fi;                /* ShardsHaveWarm */
  if :: !r -> r = (Released != 0) :: else fi
}

/* PurgeWake, PurgeTick, PurgeNotify: the purge thread exists, so no current span is retired. */
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
inline ShardLeave() {
  do
  :: if
     :: Released != 0 ->
       d_step { s = Released; Released = 0 };                  /* Swap */
       d_step { WarmSlices = WarmSlices + s; s = 0 }
     :: else
     fi;
     ShardLock = false;
     if
     :: Released == 0 -> break
     :: else -> atomic { if :: ShardLock -> break :: else -> ShardLock = true fi }
     fi
  od
}

/* Release. */
inline ShardsRelease() {
  atomic { r = !ShardLock; ShardLock = true };
  if
  :: r -> WarmSlices++; ShardLeave()
  :: else ->
    Released++;
    atomic { r = !ShardLock; ShardLock = true };
    if :: r -> ShardLeave() :: else fi
  fi
}

/* ------------------------------------------------------------------------------- heaps */

/* Under the heap's lock. */
inline SweepSpan(h) {
  if
  :: At == h ->
#ifndef NO_AWAIT
    if
    :: HasFreed || Bias != 0 && Used == 0 ->                   /* RemoteIsUsed, SpanIsOverdue, AwaitFree */
      u = Awaits;
      if
      :: u < 2 ->
        d_step { if :: Awaits == u -> Awaits = u + 1 :: else fi }; /* CompareAndSwap */
#ifndef NO_REARM
        SweepRequest()
#endif
      :: else
      fi
    :: else
    fi;
#endif
    u = Bias;                                                  /* InUse */
    u = u + Used;
    r = (u == Remote + Shelf);                                 /* RemoteFreedCount */
    if                                                         /* RemoteEndLife */
    :: r && Shelving -> r = false
    :: r && !Shelving -> d_step { At = Nowhere; Owner = Nowhere; r = false }; ShardsRelease()
    :: else
    fi;
    u = 0
  :: else
  fi
}

/* LockTry, then QueueAllTaken. */
inline LockTry(h) {
  d_step {
    r = !HeapLock[h];
    HeapLock[h] = true;
    if
    :: r && (Taken == h || Arriving == h) -> Taken = Nowhere; Arriving = Nowhere; At = h
    :: else
    fi
  }
}

/* LockTry, then QueueTaken, of some of many. */
inline LockTrySome(h) {
  atomic {
    r = !HeapLock[h];
    HeapLock[h] = true;
    if
    :: r && (Taken == h || Arriving == h) -> Taken = Nowhere; Arriving = Nowhere; At = h
#ifdef Roomy
    :: r && Taken == h -> Taken = Nowhere; Arriving = h
#endif
    :: else
    fi
  }
}

/* HeapSweep is this; its kept runs are not modelled. */
inline HeapSweepQueued(h) {
  LockTry(h);
  if
  :: r -> SweepSpan(h); HeapLock[h] = false
  :: else ->
#ifndef SWEEP_SILENT
    SweepRequest()
#else
    skip
#endif
  fi
}

inline PushTaken(h) {
#ifdef PUSH_LATE
  r = HasFreed;
  if :: r -> SweepRequest() :: else fi;
  Taken = h
#elif defined(PUSH_SILENT)
  Taken = h
#else
  Taken = h;                                                   /* CompareAndSwap */
  r = HasFreed;                                                /* RemoteIsEmpty */
  if :: r -> SweepRequest() :: else fi
#endif
}

/* Retire: Remote is not empty, else the span were given up, or it has a free block. See model
 * life.pml for that. */
inline EndCurrent() {
  IsCurrent = false;
  d_step { Used = Used - Held; Held = 0 }
}

inline RetireCurrent() {
  EndCurrent();
  PushTaken(0)
}

inline HandOver(h) {
  Owner = h;
  PushTaken(h)
}

inline HeapTakeOver(h) {
  HandOver(h)
}

/* Takes the span out of the queue, roomy, and puts it back, or leaves it to all: then r. */
inline MakeRoomy() {
  d_step { At = Nowhere; Used = Used + Bias; Bias = 0 };
  if
  :: At = 0; r = false
  :: r = true
  fi
}

/* EndLife as well. */
inline CurrentEmptied() {
  EndCurrent();
  Owner = Nowhere;
  ShardsRelease()
}

inline HeapEmptied() {
  if
  :: IsCurrent -> CurrentEmptied()
  :: else ->
    LockTrySome(0);
    if
    :: r ->
      r = (Owner == 0 && Used == 0);
      if
      :: r && At != 0 -> r = false; HeapLock[0] = false; SweepRequest(); r = false
      :: r && At == 0 && Bias != 0 ->
        MakeRoomy();
        HeapLock[0] = false;
        if :: r -> HandOver(1) :: else fi
      :: else ->
        if :: r -> d_step { At = Nowhere; Owner = Nowhere } :: else fi;
        HeapLock[0] = false;
        if :: r -> ShardsRelease() :: else fi
      fi
    :: else ->
#ifndef EMPTIED_SILENT
      SweepRequest()
#else
      skip
#endif
    fi
  fi
}

/* RemoteBlockFree, AfterPush, for a thread with heap h. */
inline RemoteFree(h) {
  d_step {                                                     /* RemotePush, CompareAndSwap */
    r = GivenUp;
    if
    :: GivenUp -> GivenUp = false
    :: else -> Remote++
    fi
  };
  if
  :: r ->
    d_step { Used--; r = false };                              /* ClaimedBlockFree: SpanPut */
    HeapTakeOver(h);
#ifndef TAKE_OVER_SILENT
    if :: r -> Notify() :: else fi                             /* PurgeNotify */
#endif
  :: else ->
    if
    :: !IsCurrent -> SweepRequest(); if :: r -> Notify() :: else fi           /* PurgeRequest */
    :: else
    fi
  fi
}

/* Of heap 0. */
inline HeapAbandonQueued() {
  LockTry(0);
  if
  :: r ->
    SweepSpan(0);
    if                                                         /* MoveQueue */
    :: At == 0 ->
      d_step { At = Nowhere; Used = Used + Bias; Bias = 0 };
      d_step { Owner = 1; Awaits = (Shelving || Shelf != 0 -> 1 : 0) };
      PushTaken(1)
    :: else
    fi;
    HeapLock[0] = false;
    r = true
  :: else
  fi
}

/* TakeVacant, AbandonMost, Vacate. */
inline ThreadsAbandonVacant() {
  d_step { r = VacantHeaps; VacantHeaps = false };
  if
  :: r ->
    if :: IsCurrent -> RetireCurrent() :: else fi;             /* HeapAbandon: HeapRetireAll */
    HeapAbandonQueued();
    if
    :: r -> IsUnused = true
    :: else ->
#ifdef WANT_EARLY
      SweepRequest();
      VacantHeaps = true
#else
#ifndef KEPT_FORGOTTEN
      VacantHeaps = true;
#endif
#ifdef ENDED_SILENT
      skip
#else
      SweepRequest()
#endif
#endif
    fi
  :: else
  fi
}

/* ------------------------------------------------------------------------------- threads */

proctype OwnerThread() {
  bool r, ended, freed, awaited;
#ifdef WANT_BY_STORE
  bool late;
#endif
  byte s, u;
  do
  :: !freed && !ended && Owner == 0 ->                         /* OwnBlockFree */
    d_step { InFree = true; r = (Awaits != 0) };
    if
    :: r ->
      awaited = true;
#ifndef AWAITED_BLIND
      Awaits = 0;                                              /* HeapAwaitedFree, SetOwner */
      if :: Shelving || Shelf != 0 -> Awaits = 1 :: else fi;
      d_step { s = Shelf; Shelf = 0 };                         /* TakeShelf */
      d_step { Used = Used - s; s = 0 };
      d_step { if :: !Shelving -> s = Remote; Remote = 0 :: else fi }; /* RemoteTakeAll */
      d_step { Used = Used - s; s = 0 };
      if                                                       /* RequeueOverdue */
      :: Bias != 0 && (Used == 0 || Used > 2) ->
        LockTrySome(0);
        if
        :: r ->
          if :: At == 0 -> Used = Used + Bias; Bias = 0 :: else fi;
          HeapLock[0] = false
        :: else -> SweepRequest()
        fi
      :: else
      fi
#else
      skip
#endif
    :: else
    fi;
    d_step { Used--; freed = true; InFree = false; r = (Used == 0) }; /* SpanPut */
    if :: r -> HeapEmptied(); Notify() :: else fi;
    if
    :: awaited ->
      awaited = false;
#ifndef OVERDUE_SILENT
      Notify()
#endif
    :: else
    fi;
    r = false
  :: !freed && !ended && Owner != 0 -> freed = true; RemoteFree(0); r = false
  :: !freed && ended -> freed = true; RemoteFree(1); r = false
  :: !ended && IsCurrent && HasFreed ->                        /* HeapNextSpan */
    RetireCurrent();
    LockTry(0);
    if :: r -> HeapLock[0] = false :: else fi;
    Notify()
  :: !ended ->                                                 /* ThreadEnd */
    ended = true;
    if                                                         /* HeapRetireEmpty */
    :: IsCurrent && Used - Held == Remote + Shelf -> RetireCurrent()
    :: else
    fi;
    HeapAbandonQueued();
    d_step { VacantHeaps = true; Ended = true };               /* Vacate */
#ifndef VACATE_SILENT
    SweepRequest();                                               /* PurgeNotifyOfEnd */
#endif
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
  RemoteFree(1)
}

proctype Trimmer() {                                           /* ProcessTrim */
  bool r;
#ifdef WANT_BY_STORE
  bool late;
#endif
  byte s, u;
  ThreadsAbandonVacant(); r = false;
  HeapSweepQueued(0);
  HeapSweepQueued(1);
#ifndef TRIM_SILENT
  Notify()
#endif
}

proctype Taker() {                                             /* TakeOf */
  bool r;
#ifdef WANT_BY_STORE
  bool late;
#endif
  byte s;
  d_step { r = !ShardLock; ShardLock = true };                 /* LockTry */
  if :: r -> ShardLeave() :: else fi;
#ifndef TAKE_SILENT
  Notify()
#endif
}

proctype Shelver() {                                           /* ShelveHeap */
  bool r;
#ifdef WANT_BY_STORE
  bool late;
#endif
  byte s;
  if
  :: IsCurrent && Remote != 0 ->                               /* RemoteCount */
    d_step {                                                   /* RemoteShelve */
      if
      :: Remote != 0 && !Shelving && Shelf == 0 && !GivenUp && Owner != Nowhere ->
        s = Remote; Remote = 0; Shelving = true
      :: else
      fi
    };
    if
    :: s != 0 ->
      if
      :: d_step { if :: Awaits == 0 -> Awaits = 1 :: else fi }; /* WarnOwner */
        d_step { Shelf = s; Shelving = false; s = 0 }          /* RemoteShelveEnd */
      :: d_step { Remote = Remote + s; Shelving = false; s = 0 }
      fi
    :: else
    fi;
#ifndef SHELVE_SILENT                                            /* ShelveEnd */
    if :: !IsCurrent -> SweepRequest() :: else fi;
#endif
    Notify()
  :: timeout
  fi
}

/* Kept runs (GiveBack, and the SweepRequest of this thread for them) are not modelled. */
proctype PurgeThread() {                                       /* PurgeRun, ProcessPurge */
  bool r;
#ifdef WANT_BY_STORE
  bool late;
#endif
  byte s, u;
  do
  :: !InFree ->                                                /* OsWaitMs */
    r = SweepWanted;                                           /* SweepTake */
    if
    :: r ->
      d_step { r = SweepWanted; SweepWanted = false };         /* Swap */
      if :: r -> ThreadsAbandonVacant(); HeapSweepQueued(0); HeapSweepQueued(1) :: else fi
    :: else
    fi;
    d_step { r = !ShardLock; ShardLock = true };               /* ShardsPurgeIdle, TakeOldest: Enter */
    if
    :: r ->
      if
      :: WarmSlices = 0
      :: true                       /* not old enough */
      fi;
      ShardLeave()
    :: else
    fi;
    HasWork();
    if
    :: !r ->
      Purge = Parked;                                         /* CompareAndSwap: it is Running */
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
    At = Nowhere;
    Taken = Nowhere;
    Arriving = Nowhere;
#ifdef Roomy                        /* the owner's free makes a queued span roomy */
    At = 0; Bias = 1; run Remover();
#else
    if
#ifndef TAKE_OVER_SILENT            /* the others would only take time */
    :: IsCurrent = true;
#ifdef Both
      if :: Held = 1; Used++ :: true fi;
      if :: Used++; run Remover() :: true fi
#else                               /* one of them: both take four times as long */
      if :: Held = 1; Used++ :: Used++; run Remover() :: true fi
#endif
    :: At = 0; if :: Used++; run Remover() :: true fi
#endif
    :: GivenUp = true; Owner = Nowhere; Used++; run Remover()
    fi;
#endif
#ifdef Both
    run Trimmer(); run Taker(); run Shelver();
#elif defined(Third)
    run Third();
#else
    if
    :: run Trimmer()
    :: run Taker()
    :: IsCurrent -> run Shelver()
    fi;
#endif
    run OwnerThread(); run PurgeThread()
  };
  timeout -> d_step {
    Law(1, Asleep && Released == 0 && WarmSlices == 0 && (Owner == Nowhere || IsCurrent && !Ended));
    Law(2, !VacantHeaps && IsUnused == Ended)
  }
}
