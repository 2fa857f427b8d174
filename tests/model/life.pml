/* The life of one span: owned, queued, given up, taken over, swept, abandoned, reclaimed, released,
 * taken again.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.Span
 *     SpanTake: FreeList FreeList Link FreeList:= Link:= Used+
 *     SpanPut: Link:= FreeList FreeList:= ReleaseFence Used- Used
 *     SpanRefill: TakeShelf FreeList Collect SpanCollect FreeList Carve OwnerOf FreeList
 *     Collect: FreeList:= RemoteTakeAll Used-
 *     Carve: RemoteHasShelf OwnerOf FreeList:= Link:= Link:=
 *     SpanIsFull: FreeList RemoteIsEmpty
 *     SpanCollect: TakeShelf RemoteTakeAll Link SpanPut
 *     SpanIsEmpty: InUse AcquireFence RemoteFreedCount
 *     InUse: AcquireFence Used
 *     SpanRaise: Used+ ReleaseFence
 *     SpanExpect: Used Used Used-
 *   LaneMM.RemoteList
 *     RemotePush: CompareAndSwap Link FirstOf RemotePushClaimed
 *     RemotePushClaimed: RemoteShelfHas Pack CountOf CompareAndSwap Remote LoadAcquire Remote Link:=
 *       FirstOf
 *     RemoteTakeAll: LoadAcquire Remote ShelvedPages CompareAndSwap Remote CountOf FirstOf
 *     RemoteGiveUp: Remote CompareAndSwap Remote
 *     RemoteWord: LoadAcquire Remote
 *     RemoteIsUsed: FetchAdd Remote
 *     RemoteEndLife: LoadAcquire Remote CompareAndSwap Remote RemoteClearShelf
 *     RemoteCount: CountOf LoadAcquire Remote
 *     RemoteFreedCount: LoadAcquire Remote CountOf
 *     RemoteIsEmpty: LoadAcquire Remote
 *   LaneMM.Heap
 *     SetCurrent: IsCurrent:= SetOwner SpanRaise
 *     EndCurrent: IsCurrent:= Used-
 *     PushTaken: LoadAcquire Taken CompareAndSwap Taken RemoteIsEmpty SweepRequest
 *     Retire: SpanIsFull Owner:= RemoteGiveUp SetOwner ExpectRoom PushTaken
 *     RetireCurrent: EndCurrent Retire
 *     HeapRetireAll: RetireCurrent
 *     HeapRetireEmpty: RetireCurrent
 *     Reclaim: LoadAcquire Taken LockTry QueueTaken QueueTake SetOwner LockLeave
 *     TakeTaken: Swap Taken EndBias ReturnTaken
 *     TakeQueued: LockTry TakeTaken QueueTaken QueueTake LockLeave
 *     HeapNewSpan: SpanFormat
 *     HeapNextSpan: RetireCurrent ServingSpan SetCurrent
 *     ExpectRoom: Owner OwnerOf SpanExpect
 *     HandOver: ReleaseFence SetOwner PushTaken
 *     MakeRoomy: QueueRemove QueueAdd QueueRemove
 *     RequeueOverdue: LockTry SweepRequest QueueTaken QueueRemove QueueAdd LockLeave
 *     SetOwner: Owner:= RemoteHasShelf Owner:=
 *     ServingSpan: TakeQueued Reclaim FreeList SpanRefill PushTaken HeapNewSpan SpanRefill
 *     HeapLateBlock: ServingSpan SpanTake SpanDropList Retire
 *     HeapAwaitedFree: SetOwner SpanCollect RequeueOverdue
 *     HeapClaim: LockTry QueueTaken OwnerOf AcquireFence QueueRemove LockLeave
 *     HeapTakeOver: ExpectRoom HandOver
 *     EndLife: RemoteEndLife Owner:=
 *     Remove: EndLife QueueRemove
 *     CurrentEmptied: SpanUncountedBlock EndLife EndCurrent GiveBack
 *     HeapEmptied: CurrentEmptied LockTry SweepRequest QueueTaken OwnerOf Used SweepRequest MakeRoomy
 *       SpanUncountedBlock Remove LockLeave HandOver GiveBack
 *     GiveBack: SweepRequest ShardsRelease
 *     ReturnTaken: CompareAndSwap Taken Swap Taken SweepRequest
 *     SweepSpan: RemoteIsUsed AwaitFree SpanIsEmpty SpanUncountedBlock Remove ShardsRelease
 *     HeapSweepQueued: LockTry SweepRequest QueueAllTaken LockLeave
 *     HeapSweep: RunsRelease SweepRequest HeapSweepQueued
 *     HeapAbandonQueued: LockTry QueueAllTaken MoveQueue LockLeave
 *     HeapAbandon: HeapRetireAll HeapAbandonQueued
 *     MoveQueue: QueueTake HandOver
 *   LaneMM.Shards
 *     ShardsRelease: LockRecover Release
 *   LaneMM.Allocate
 *     SmallBlock: HeapLateBlock PurgeTick FreeList SpanRefill HeapNextSpan SpanTake SpanDropList
 *       PurgeTick
 *   LaneMM.Free
 *     RemoteBlockFree: OwnerOf AfterPush RemotePush
 *     AfterPush: IsCurrent PurgeRequest ClaimedBlockFree
 *     OwnBlockFree: SpanPut HeapEmptied PurgeNotify
 *     BlockFreeSlow: RemoteWord Link OwnerOf Owner HeapAwaitedFree OwnBlockFree PurgeNotify
 *       RemoteBlockFree
 *     ClaimedBlockFree: SpanPut HeapTakeOver HeapEmptied PurgeNotify
 *     BlockFreeUnowned: RemoteWord Owner Link OwnBlockFree BlockFreeSlow OwnerOf BlockFreeSlow Link
 *       RemoteShelfHas BlockFreeSlow OwnerOf HeapClaim ClaimedBlockFree RemoteBlockFree BlockFreeSlow
 *     BlockFree: Owner BlockFreeSlow Owner BlockFreeUnowned BlockFreeSlow OwnBlockFree
 *   LaneMM.Threads
 *     Vacate: HeapPush VacantHeaps
 *     TakeVacant: HeapPop VacantHeaps
 *     HeapTake: TakeVacant HeapPop UnusedHeaps
 *     AbandonMost: TakeVacant HeapAbandon HeapPush UnusedHeaps NextUnused:=
 *     ThreadsAbandonVacant: AbandonMost NextUnused Vacate SweepRequest
 *     ThreadEnd: HeapRetireEmpty HeapAbandonQueued Vacate
 *   LaneMM.Queues
 *     QueueTaken: LoadAcquire Taken Swap Taken QueueAdd
 *     EndBias: SpanRaise
 *     QueueAllTaken: HasArriving QueueTaken
 *     HasArriving: LoadAcquire Taken
 *     QueueTake: QueueRemove
 *     QueueAdd:
 *     QueueRemove: EndBias
 *
 * Threads: 1 allocates, frees, hands blocks to 2 and 3, and may end at any time; 2 has a heap, frees,
 * allocates once, and may end at any time (with -DBegins it is a thread that begins while 1 is at work: it
 * has no heap until that of 1 is vacant); 3 has no heap, it frees, and allocates Allocs3 times; 4 sweeps
 * all heaps and abandons vacant ones, again and again, and may stop for ever with the lock of a heap. The
 * stacks of vacant heaps
 * are model stack.pml, here a set. One span, Blocks blocks of it, all in one size class.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 once      a block is handed out only while it is free         TAKE_BY_LOAD, OWNER_KEPT,
 *                                                                   CLAIM_UNQUEUED
 *   2 safe      a span is released only when no block is in use     THIEF_BLIND, SWEEP_UNLOCKED,
 *                                                                   LENGTH_FIRST, BIAS_BLIND
 *   3 single    ... and only once                                   EMPTIED_BLIND
 *   4 whole     no block is lost                                    GIVE_UP_BY_STORE, TAKE_BY_STORE
 *   5 owner     Owner names the heap that has the span              OWNER_AFTER, RECLAIM_SILENT,
 *                                                                   PUSH_EARLY, ADOPT_BLIND, LEAVE_SILENT
 *   6 way on    when all blocks are free and all threads are done, one sweep of each heap releases
 *               the span, unless it is current in the heap of a thread that still lives
 *                                                                   SWEEP_NO_TAKEN, ABANDON_CURRENT
 *   7 usable    ... before which no heap of an ended thread has it  ENDED_KEPT
 *   8 no wait   when no thread can go on, the sweeper has stopped, and the others are through
 *                                                   TAKE_ENTERS, RECLAIM_ENTERS, ABANDON_ENTERS
 *   0           what must hold for the other laws to make sense; checked in the full run only
 */

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

#ifndef Blocks
#define Blocks 2
#endif
#ifndef Allocs1
#define Allocs1 3
#endif
#ifndef Allocs2
#define Allocs2 1
#endif
#ifndef Allocs3
#define Allocs3 0
#endif

#define All ((1 << Blocks) - 1)
#define Abandoned 3      /* heaps: 1 and 2 of those threads, 3 Process.Abandoned; 0 is NoOwner or no heap */
#define Bit(h) (1 << (h))
#define Freeing 9      /* holder of a block that a thread is giving back just now */

/* Span record */
byte Owner;
byte Used;
byte Bias;             /* here what was taken from Used; what was added is Held */
byte FreeList;         /* set of blocks */
byte Remote;           /* set of blocks */
bool GivenUp;          /* Remote = RemoteGivenUp */
bool Carved;
byte IsCurrent;        /* the heap whose current span it is, or 0 */
byte Held;             /* 1: current, and its last free is not noticed */

/* Heaps */
byte Queued;           /* set of heaps that have the span in a queue */
byte Taken;            /* set of heaps that have it on Taken */
byte Arriving;         /* set of heaps that are to queue it */
byte Locks;            /* set of heaps whose lock is taken */
byte VacantHeaps;      /* set of heaps */

/* Ghosts */
bool Live;             /* not in the arena */
byte Holder[Blocks];   /* thread that uses the block, Freeing, or 0 */
byte Done;             /* threads that are through */
bool GiverDone;
bool Alive[4];         /* the heap has a thread */
bool Stopped;          /* the sweeper stopped with a lock */
#ifdef Begins
bool HasBegun;         /* thread 2 */
#endif

#if Blocks == 2
#define Count(s) (((s) & 1) + ((s) >> 1 & 1))
#define NobodyUses (Holder[0] == 0 && Holder[1] == 0)
#define Uses(t) (Holder[0] == t || Holder[1] == t)
#else
#define Count(s) (((s) & 1) + ((s) >> 1 & 1) + ((s) >> 2 & 1))
#define NobodyUses (Holder[0] == 0 && Holder[1] == 0 && Holder[2] == 0)
#define Uses(t) (Holder[0] == t || Holder[1] == t || Holder[2] == t)
#endif

/* ------------------------------------------------------------------------------- locks */

inline QueueAdd(h) {
  d_step { Law(5, Owner == h); Law(0, Queued == 0 && Taken == 0); Queued = Bit(h) }
}

/* SpanRaise: the order of its writes is in weak.pml. */
inline EndBias() {
  d_step { Used = Used + Bias; Bias = 0 }
}

inline QueueRemove(h) {
  d_step { Law(0, Queued == Bit(h)); Queued = 0; Used = Used + Bias; Bias = 0 }
}

/* SpanExpect: of a span in no queue, whose Used no sweep reads. */
inline ExpectRoom(h) {
  d_step {
    if
    :: h != Abandoned && Used > 1 -> Bias = 1; Used = Used - 1
    :: else
    fi
  }
}

/* Under the lock: some spans of many, so this one or not. */
inline QueueTaken(h) {
  atomic {
    if
    :: Taken & Bit(h) -> Taken = Taken & ~Bit(h); Arriving = Arriving | Bit(h)
    :: else
    fi;
    if
    :: Arriving & Bit(h) -> Arriving = Arriving & ~Bit(h); QueueAdd(h)
    :: true
    fi
  }
}

inline QueueAllTaken(h) {
  d_step {
    if
    :: (Taken | Arriving) & Bit(h) ->                          /* HasArriving */
      Taken = Taken & ~Bit(h);
      Arriving = Arriving & ~Bit(h);
      QueueAdd(h)
    :: else
    fi
  }
}

/* LockTry, then QueueTaken: what other threads push in between might as well come before. */
inline LockTry(h, ok) {
  atomic {
    true;
    if
    :: (Locks & Bit(h)) == 0 -> Locks = Locks | Bit(h); ok = true; QueueTaken(h)
    :: else -> ok = false
    fi
  }
}

/* Mutations: the same, but waits. */
inline LockEnter(h, ok) {
  atomic { (Locks & Bit(h)) == 0 -> LockTry(h, ok) }
}

/* The sweeper has a lock. It may stop here, for ever. */
inline MayStop() {
  if
  :: true
  :: atomic { stops -> Stopped = true; goto stop }
  fi
}

inline LockLeave(h) {
  d_step { Law(0, Locks & Bit(h)); Locks = Locks & ~Bit(h) }
}

/* ------------------------------------------------------------------------------- span */

/* ShardsRelease: the deferred list is model release.pml. GiveBack is the same here: a kept run is one that
 * the arena has. */
inline ShardsRelease() {
  d_step {
    Law(3, Live);
    Law(2, NobodyUses);
    Law(0, Queued == 0 && Taken == 0 && IsCurrent == 0);
    Live = false; Owner = 0
  }
}

/* SpanPut, plain reads and writes of the owner. The zero test reads Used again, as the Pascal twin
 * may. The block counts as in use until Used is written. */
inline SpanPut(b, last) {
  l = FreeList;
  d_step { FreeList = l | Bit(b); l = Used };
  d_step { Used = l - 1; Holder[b] = 0 };
  last = (Used == 0)
}

/* SpanRefill: FreeList is empty. Collect, RemoteTakeAll, then Carve: all blocks at once. */
inline SpanRefill() {
  Law(0, FreeList == 0);
#ifdef TAKE_BY_STORE
  l = Remote;
  Remote = 0;
#elif defined(TAKE_BY_LOAD)
  l = Remote;
#else
  d_step { Law(0, !GivenUp); l = Remote; Remote = 0 };         /* Swap */
#endif
  FreeList = l;
  Used = Used - Count(l);
  if
  :: FreeList == 0 && !Carved -> d_step { Carved = true; FreeList = All }
  :: else
  fi
}

/* ------------------------------------------------------------------------------- heap */

/* RemoteCount and SweepRequest after it, and RemoteIsUsed in SweepQueue, are in wake.pml. */
inline PushTaken(h) {
  d_step { Law(5, Owner == h); Law(0, Queued == 0 && Taken == 0); Taken = Taken | Bit(h) }
}

/* SpanIsFull, RemoteIsEmpty, RemoteGiveUp, SetOwner. Nobody shelves here: see shelf.pml. */
inline Retire(h) {
  if
  :: FreeList == 0 && Carved && Remote == 0 ->                 /* SpanIsFull */
#ifndef OWNER_AFTER
#ifndef OWNER_KEPT
    Owner = 0;
#endif
#endif
#ifdef GIVE_UP_BY_STORE
    d_step { GivenUp = true; Remote = 0; ok = true };
#else
    d_step {                                                   /* CompareAndSwap */
      if
      :: Remote == 0 -> GivenUp = true; ok = true
      :: else -> ok = false
      fi
    };
#endif
    if
    :: ok
#ifdef OWNER_AFTER
       -> Owner = 0
#endif
    :: else ->
#ifdef PUSH_EARLY
      PushTaken(h); Owner = h
#else
      Owner = h; ExpectRoom(h); PushTaken(h)
#endif
    fi
  :: else -> ExpectRoom(h); PushTaken(h)
  fi
}

inline RetireCurrent(h) {
  if
  :: IsCurrent == h ->
    d_step { IsCurrent = 0; Used = Used - Held; Held = 0 };
    Retire(h)
  :: else
  fi
}

/* The class may have had a full span before, or none. */
inline SetCurrent(h) {
  if
  :: Held = 0
  :: Held = 1
  fi;
  d_step {
    Law(5, Owner == h);
    Law(0, Live && Queued == 0 && Taken == 0 && IsCurrent == 0);
    IsCurrent = h; Used = Used + Held
  }
}

/* Of one size class: no span goes back. */
inline TakeTaken(h) {
  d_step {
    if
    :: Taken & Bit(h) -> Taken = Taken & ~Bit(h); ok = true        /* Swap */
    :: else -> ok = false
    fi
  };
  if
  :: ok -> found = true; EndBias()
  :: ok -> Taken = Taken | Bit(h)                              /* not among the first: ReturnTaken */
  :: else
  fi
}

/* TakeQueued; Reclaim without the first check. */
inline TakeFrom(from, h) {
  d_step {                                                     /* QueueTake */
    if
    :: ok && Queued & Bit(from) ->
      QueueRemove(from);
#ifndef RECLAIM_SILENT
      Owner = h;
#endif
      found = true
    :: else
    fi;
    if :: ok -> LockLeave(from) :: else fi
  }
}

inline TakeQueued(h) {
#ifdef TAKE_ENTERS
  LockEnter(h, ok);
#else
  LockTry(h, ok);
#endif
  if
  :: ok -> TakeFrom(h, h)
  :: else -> TakeTaken(h)
  fi
}

inline Reclaim(h) {
  if
  :: Queued & Bit(Abandoned) || Taken & Bit(Abandoned) ->          /* without the lock */
#ifdef RECLAIM_ENTERS
    LockEnter(Abandoned, ok);
#else
    LockTry(Abandoned, ok);
#endif
    TakeFrom(Abandoned, h)
  :: else
  fi
}

/* ShardsTake, SpanFormat. */
inline HeapNewSpan(h) {
  atomic {
    if
    :: !Live ->
      d_step { Live = true; FreeList = 0; Used = 0; Bias = 0; Carved = false; Remote = 0; GivenUp = false };
      found = true
    :: else
    fi
  };
  if
  :: found -> Owner = h
  :: else
  fi
}

/* SmallBlock: SpanRefill, HeapNextSpan, ServingSpan. IsCurrent = h and FreeList <> 0 if it succeeded. */
inline HeapNextSpan(h) {
  found = false;
  if
  :: IsCurrent == h -> SpanRefill()
  :: else
  fi;
  if
  :: IsCurrent == h && FreeList != 0
  :: else ->
    RetireCurrent(h);
    TakeQueued(h);
    if :: !found -> Reclaim(h) :: else fi;
    if :: !found -> HeapNewSpan(h) :: else fi;
    if
    :: found ->
      SetCurrent(h);
      if
      :: FreeList == 0 -> SpanRefill(); Law(0, FreeList != 0)  /* Fatal */
      :: else
      fi
    :: else
    fi
  fi
}

inline HandOver(h) {
#ifdef LEAVE_SILENT
  if :: h != Abandoned -> Owner = h :: else fi;
#else
  Owner = h;
#endif
  PushTaken(h)
}

inline HeapTakeOver(h) {
  ExpectRoom(h);
  HandOver(h)
}

/* Under the heap's lock, which it leaves: the span stays, or all may have it. Any queued span of the class
 * may be the one that is left. */
inline MakeRoomy(h) {
  QueueRemove(h);
  if
  :: QueueAdd(h); LockLeave(h)
  :: LockLeave(h); HandOver(Abandoned)
  fi
}

/* MakeRoomy, for another span of the class. */
inline LeaveRoomy(h) {
  LockTry(h, ok);
  if
  :: ok ->
    if
    :: Queued & Bit(h) && Bias == 0 -> MakeRoomy(h)
    :: else -> LockLeave(h)
    fi
  :: else
  fi
}

/* No block is in use, and, in a correct program, none is being freed: SpanUncountedBlock finds none,
 * and no thread has read RemoteWord of this life. RemoteEndLife empties the list. */
inline Remove(h) {
  d_step { Law(0, Queued == Bit(h)); Queued = 0; Used = Used + Bias; Bias = 0; Owner = 0; Remote = 0; GivenUp = false }
}

/* EndCurrent, EndLife: no other thread reads IsCurrent for more than a sweep too many. */
inline CurrentEmptied(h) {
  d_step { Remote = 0; GivenUp = false; Owner = 0 };
  d_step { IsCurrent = 0; Held = 0 };
  ShardsRelease()
}

inline HeapEmptied(h) {
  if
  :: IsCurrent == h -> CurrentEmptied(h); ok = false
  :: else -> LockTry(h, ok)
  fi;
  if
  :: ok ->
#ifdef EMPTIED_BLIND
    ok = true;
    d_step { Queued = Queued & ~Bit(h); Remote = 0 };
#else
    ok = (Owner == h);
    if :: ok -> ok = (Used == 0) :: else fi;
    if :: ok -> ok = ((Queued & Bit(h)) != 0) :: else fi;
    if
    :: ok && Bias == 0 -> Remove(h)
    :: else
    fi;
#endif
    if
    :: ok && Bias != 0 && Queued & Bit(h) -> MakeRoomy(h)
    :: else ->
      LockLeave(h);
      if :: ok -> ShardsRelease() :: else fi
    fi
  :: else
  fi
}

/* The free that made the span roomy was missed: the owner, which frees a block of it, sees to that. */
inline RequeueOverdue(h) {
  if
  :: Bias != 0 && (Used == 0 || Used > Blocks) ->              /* SpanIsOverdue */
    LockTry(h, ok);
    if
    :: ok ->
      if :: Queued & Bit(h) -> QueueRemove(h); QueueAdd(h) :: else fi;
      LockLeave(h)
    :: else
    fi
  :: else
  fi
}

inline SweepSpan(h) {
  if
  :: Queued & Bit(h) ->
    /* SpanIsEmpty: Used, then RemoteFreedCount. SpanUncountedBlock is for wrong programs. */
#ifdef LENGTH_FIRST
    l = Count(Remote); ok = (l == Used + Bias);
#else
#ifdef BIAS_BLIND
    l = Used;
#else
    l = Bias; l = l + Used;                                    /* InUse */
#endif
    ok = (l == Count(Remote));
#endif
#ifdef THIEF_BLIND
    ok = true;
#endif
    if
    :: ok -> Remove(h); ShardsRelease()
    :: else
    fi
  :: else
  fi
}

inline HeapSweepQueued(h) {
#ifdef SWEEP_UNLOCKED
  skip;
  SweepSpan(h)
#else
#ifdef SWEEP_NO_TAKEN
  d_step { ok = !(Locks & Bit(h)); Locks = Locks | Bit(h) };
#else
  LockTry(h, ok);
#endif
  if
  :: ok ->
#ifndef SWEEP_NO_TAKEN
    QueueAllTaken(h);
#endif
    MayStop(); SweepSpan(h); LockLeave(h)
  :: else
  fi
#endif
}

/* HeapRetireEmpty, by the heap's thread; with RetireAll, HeapRetireAll as well. */
inline HeapRetireEmpty(h) {
  if
  :: IsCurrent == h && Used - Held == Count(Remote) -> RetireCurrent(h)
#ifdef RetireAll
  :: IsCurrent == h && Used - Held != Count(Remote) -> RetireCurrent(h)
#endif
  :: else
  fi
}

inline HeapAbandonQueued(h) {
#ifdef ABANDON_ENTERS
  LockEnter(h, ok);
#else
  LockTry(h, ok);
#endif
  if
  :: ok ->
    QueueAllTaken(h);
    SweepSpan(h);
    if                                                         /* MoveQueue */
    :: Queued & Bit(h) -> QueueRemove(h); HandOver(Abandoned)
    :: else
    fi;
    LockLeave(h);
    ok = true
  :: else
  fi
}

inline HeapAbandon(h) {
#ifndef ABANDON_CURRENT
  RetireCurrent(h);                                            /* HeapRetireAll */
#endif
  HeapAbandonQueued(h)
}

inline Vacate(h) {
  d_step { Law(0, !(VacantHeaps & Bit(h))); VacantHeaps = VacantHeaps | Bit(h) }
}

/* TakeVacant, AbandonMost, for one heap: it is unused after that, or vacant again. */
inline AbandonVacant(h) {
  d_step {
    if
    :: VacantHeaps & Bit(h) -> VacantHeaps = VacantHeaps & ~Bit(h); ok = true
    :: else -> ok = false
    fi
  };
  if
  :: ok ->
    HeapAbandon(h);
    if
    :: ok
    :: else -> Vacate(h)
    fi
  :: else
  fi
}

inline ThreadsAbandonVacant() {
#ifdef ENDED_KEPT
  skip
#else
  AbandonVacant(1);
  AbandonVacant(2)
#endif
}

/* HeapTake of a thread that begins: TakeVacant. */
inline HeapTake() {
  atomic {
    heap = 1;
    Alive[heap] = true;
#ifndef ADOPT_BLIND
    VacantHeaps = VacantHeaps & ~Bit(heap)
#endif
  }
}

/* ------------------------------------------------------------------------------- blocks */

inline SpanTake(me) {
  l = FreeList;
  if
  :: l & 1 -> b = 0
  :: !(l & 1) && l & 2 -> b = 1
#if Blocks > 2
  :: !(l & 3) && l & 4 -> b = 2
#endif
  fi;
  d_step {
    Law(1, Holder[b] == 0);
    Law(0, Live);
    Law(5, Owner == (heap != 0 -> heap : Abandoned));
    Holder[b] = me; FreeList = l & ~Bit(b)
  };
  l = Used;
  Used = l + 1
}

/* HeapLateBlock, ServingSpan. */
inline HeapLateBlock(me) {
  found = false;
  TakeQueued(Abandoned);
  if :: !found -> HeapNewSpan(Abandoned) :: else fi;
  if
  :: found ->
    if :: FreeList == 0 -> SpanRefill() :: else fi;
    SpanTake(me);
    Retire(Abandoned)
  :: else                             /* no memory: the span is in use elsewhere */
  fi
}

inline BlockGet(me) {
  if
  :: IsCurrent == heap && FreeList != 0
  :: else -> HeapNextSpan(heap)
  fi;
  if
  :: IsCurrent == heap && FreeList != 0 -> SpanTake(me)
  :: else                             /* no memory: the span is in use elsewhere */
  fi
}

/* A sweep may have marked the span with AwaitsFree, or not: then BlockFreeSlow collects the list. */
inline HeapAwaitedFree() {
  if
  :: IsCurrent != heap && Remote != 0 ->                       /* SpanCollect */
    d_step { l = Remote; Remote = 0 };                         /* Swap */
    FreeList = FreeList | l;
    do
    :: l != 0 -> l = l & (l - 1); Used = Used - 1
    :: else -> break
    od
  :: true
  fi;
  if :: IsCurrent != heap -> RequeueOverdue(heap) :: else fi
}

/* A span of an ended thread; found says whether this thread has it now. */
inline HeapClaim() {
  found = false;
  LockTry(Abandoned, ok);
  if
  :: ok ->
#ifdef CLAIM_UNQUEUED
    if :: Owner == Abandoned -> QueueRemove(Abandoned); found = true :: else fi;
#else
    if
    :: Owner == Abandoned && Queued & Bit(Abandoned) -> QueueRemove(Abandoned); found = true
    :: else
    fi;
#endif
    LockLeave(Abandoned)
  :: else
  fi
}

inline ClaimedBlockFree(h, b) {
  SpanPut(b, found);
  HeapTakeOver(h);
  if :: found -> HeapEmptied(h) :: else fi
}

inline RemoteBlockFree(b) {
  d_step {                          /* RemotePush, RemotePushClaimed: CompareAndSwap */
    ok = GivenUp;
    if
    :: GivenUp -> GivenUp = false; Remote = 0
    :: else -> Law(0, Live && !(Remote & Bit(b))); Remote = Remote | Bit(b); Holder[b] = 0
    fi
  };
  if                                /* AfterPush */
  :: ok ->
    if
    :: heap == 0 -> ClaimedBlockFree(Abandoned, b)
    :: else -> ClaimedBlockFree(heap, b)
    fi
  :: else
  fi
}

/* BlockFree, with OwnBlockFree, BlockFreeUnowned and RemoteBlockFree. The list of RemotePush is model remote.pml. A
 * thread also frees after ThreadEnd, when it has no heap any more. */
inline BlockFree(me, b) {
  if
  :: heap != 0 && Owner == heap ->
    HeapAwaitedFree();
    SpanPut(b, ok);
    if :: ok -> HeapEmptied(heap) :: else fi
  :: heap != 0 && Owner == Abandoned ->
    if
    :: HeapClaim()
    :: found = false                                           /* the heap has enough roomy spans */
    fi;
    if
    :: found -> ClaimedBlockFree(heap, b)
    :: else -> RemoteBlockFree(b)
    fi
  :: else -> RemoteBlockFree(b)
  fi
}

inline ThreadEnd() {
  HeapRetireEmpty(heap);
  HeapAbandonQueued(heap);
  d_step { Alive[heap] = false; Vacate(heap); heap = 0 }
}

/* ------------------------------------------------------------------------------- threads */

/* Values that nobody reads again would only make more states. */
inline Forget() {
  atomic { l = 0; b = 0; ok = false; found = false }
}

proctype Thread(byte me; byte heap; byte allocs; bool gives) {
  byte l, b;
  bool ok, found;
  do
  :: atomic { heap != 0 && allocs > 0 -> allocs-- }; BlockGet(me); Forget()
#if Allocs3 > 0
  :: atomic { me == 3 && allocs > 0 -> allocs-- }; HeapLateBlock(me); Forget()
#endif
  :: atomic { Holder[0] == me -> Holder[0] = Freeing }; BlockFree(me, 0); Forget()
  :: atomic { Holder[1] == me -> Holder[1] = Freeing }; BlockFree(me, 1); Forget()
  :: atomic { gives && Holder[0] == me -> if :: Holder[0] = 2 :: Holder[0] = 3 fi }
  :: atomic { gives && Holder[1] == me -> if :: Holder[1] = 2 :: Holder[1] = 3 fi }
#if Blocks > 2
  :: atomic { Holder[2] == me -> Holder[2] = Freeing }; BlockFree(me, 2); Forget()
  :: atomic { gives && Holder[2] == me -> if :: Holder[2] = 2 :: Holder[2] = 3 fi }
#endif
  :: heap != 0 -> ThreadEnd(); Forget()
#ifdef Begins
  :: atomic { me == 2 && !HasBegun && VacantHeaps != 0 -> HasBegun = true; HeapTake() }
#endif
  :: heap != 0 && IsCurrent == heap -> HeapRetireEmpty(heap); Forget()
  :: heap != 0 && Queued & Bit(heap) && Bias == 0 -> LeaveRoomy(heap); Forget()
  :: atomic { (gives || GiverDone) && !Uses(me) -> break }
  od;
  atomic { GiverDone = GiverDone || gives; Done++ }
}

proctype Sweeper() {
  byte l;
  bool ok;
  bool stops = true;
  do
  :: HeapSweepQueued(1)
  :: HeapSweepQueued(2)
  :: HeapSweepQueued(Abandoned)
  :: VacantHeaps != 0 -> ThreadsAbandonVacant()
  :: break
  od;
  atomic { l = 0; ok = false; Done++ };
  goto over;
stop:
  l = 0;
end_stop:
  false;
over:
  skip
}

init {
  byte l;
  bool ok;
  bool stops = false;
  atomic {
    Alive[1] = true;
    run Thread(1, 1, Allocs1, true);
#ifdef Begins
    run Thread(2, 0, Allocs2, false);
#else
    Alive[2] = true;
    run Thread(2, 2, Allocs2, false);
#endif
    run Thread(3, 0, Allocs3, false);
    run Sweeper()
  };
  if
  :: Done == 4
  :: timeout -> Law(8, Stopped && Done == 3); goto stop
  fi;
  ThreadsAbandonVacant();
  Law(7, !Live || Owner == Abandoned || Alive[Owner]);
  HeapSweepQueued(1);                                          /* HeapSweep */
  HeapSweepQueued(2);
  HeapSweepQueued(Abandoned);
  d_step {
    Law(0, NobodyUses && Locks == 0);
    Law(4, !Live || (Carved -> (FreeList | Remote) == All : FreeList == 0));
    Law(4, !Live || (FreeList & Remote) == 0);
    Law(4, !Live || Used + Bias == Count(Remote) + Held);
    Law(5, !Live || IsCurrent == 0 || Owner == IsCurrent);
    Law(6, !Live || IsCurrent != 0 && Alive[IsCurrent]);
    Law(0, Queued == 0 && Taken == 0 && Arriving == 0 && !GivenUp && (Live || IsCurrent == 0))
  };
stop:
  skip
}
