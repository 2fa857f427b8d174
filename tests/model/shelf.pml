/* Blocks on the shelf: pages of a current span that a sweep purges while its owner sleeps, or does not.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.RemoteList
 *     RemoteShelve: LoadAcquire Remote CountOf CompareAndSwap Remote CountOf FirstOf
 *     RemoteShelveEnd: FetchAdd ShelvedPages ShelvedPages LoadAcquire Remote Link:= FirstOf Pack
 *       CountOf ShelvedPages CompareAndSwap Remote
 *     RemoteHasShelf: LoadAcquire Remote FetchAdd Remote
 *     RemoteIsShelved: LoadAcquire Remote ShelvedPages
 *     RemoteShelfHas: ShelvedPages
 *     RemoteClearShelf: ShelvedPages ShelvedPages ShelvedPages:= FetchAdd ShelvedPages
 *     RemoteFreedCount: LoadAcquire Remote CountOf
 *     RemoteTakeAll: LoadAcquire Remote ShelvedPages CompareAndSwap Remote CountOf FirstOf
 *     RemotePushClaimed: RemoteShelfHas Pack CountOf CompareAndSwap Remote LoadAcquire Remote Link:=
 *       FirstOf
 *     RemoteEndLife: LoadAcquire Remote CompareAndSwap Remote RemoteClearShelf
 *   LaneMM.Shelf
 *     ShelveEnd: OsBarrier ShelvePart IsCurrent SweepRequest
 *     ShelvePart: FreePages ShelvedPages:= ShelvedPages WarnOwner ReleaseFence TakeOut PurgePages
 *       ShelvedPages RemoteShelveEnd
 *     ShelveSpan: RemoteShelve
 *     FreePages: Link
 *     WarnOwner: Owner CompareAndSwap Owner
 *     TakeOut: Link ShelvedPages RemoteShelfHas Link:= Link:=
 *     PurgePages:
 *   LaneMM.Span
 *     TakeShelf: RemoteIsShelved SpanDropList RemoteShelfHas CompareAndSwap Link FreeList FreeList:=
 *       ReleaseFence RemoteClearShelf Used-
 *     SpanRefill: TakeShelf FreeList Collect SpanCollect FreeList Carve OwnerOf FreeList
 *     SpanCollect: TakeShelf RemoteTakeAll Link SpanPut
 *     Collect: FreeList:= RemoteTakeAll Used-
 *     Carve: RemoteHasShelf OwnerOf FreeList:= Link:= Link:=
 *     SpanIsEmpty: InUse AcquireFence RemoteFreedCount
 *     BlockLooksFree: Link RemoteShelfHas
 *   LaneMM.Heap
 *     SetOwner: Owner:= RemoteHasShelf Owner:=
 *     HeapAwaitedFree: SetOwner SpanCollect RequeueOverdue
 *   LaneMM.Free
 *     BlockFreeSlow: RemoteWord Link OwnerOf Owner HeapAwaitedFree OwnBlockFree PurgeNotify
 *       RemoteBlockFree
 *     BlockFreeUnowned: RemoteWord Owner Link OwnBlockFree BlockFreeSlow OwnerOf BlockFreeSlow Link
 *       RemoteShelfHas BlockFreeSlow OwnerOf HeapClaim ClaimedBlockFree RemoteBlockFree BlockFreeSlow
 *
 * RemoteHasShelf is one step here: where OsBarrier makes the owner's barrier, that is the one of ShelveSpan.
 *
 * Threads: 1 owns the span: it takes blocks, frees its own, hands blocks to 2, writes Owner (SetOwner),
 * puts the span into its queue and takes it back. 2 frees what it is given, at first both carved blocks. With
 * Second=3 another thread frees one of them, too, with Second=1 the owner. The shelver shelves twice, the
 * sweeper looks once whether the queued span is empty. Three blocks, two in one page, the last, in another page, is not
 * carved at first.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 data      a page is purged only while no block in it is in use, on a list, or being carved
 *                                                              CARVE_BLIND, PAGES_BLIND
 *   2 once      a block is handed out only while it is free, and from one list  SHELF_BY_STORE
 *   3 whole     no block is lost                               END_BY_STORE, TAKE_EARLY
 *   4 theirs    of two frees of a block by other threads one is refused, or the owner reports the
 *               block and leaves it out                       SHELF_UNSEEN, PUSH_BLIND,
 *                                                              WORDS_FIRST
 *   5 own       the owner's second free of a block that was on the shelf before is refused
 *                                                              AWAIT_SILENT, OWNER_PLAIN
 *   6 life      the span is released only when no block is in use, and no page of it is purged after
 *               that                                           COUNT_TWICE, COUNT_EARLY,
 *                                                              END_LIFE_BLIND
 */

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

#ifndef Turns
#define Turns 2
#endif

#ifndef Second
#define Second 0                    /* who frees block 1 a second time: 1, 3 or nobody */
#endif

#define Blocks 3
#define Shelving 1                  /* states of the word beside 0 */
#define Shelved 2
#define Zero 0                      /* first words */
#define Free 1
#define InUse 2

#define Bit(b) (1 << (b))
#define PageOf(b) ((b) >> 1)
#define Has(set, b) ((set) >> (b) & 1)
#define BlocksOf(page) ((page) == 0 -> 3 : 4)
#define Count(s) (((s) & 1) + ((s) >> 1 & 1) + ((s) >> 2 & 1))
#define CarvedSet (Carved == 2 -> 3 : 7)
/* The blocks in ShelvedPages. */
#define ShelfSet(pages) ((((pages) & 1) * 3 | ((pages) >> 1 & 1) * 4) & CarvedSet)

/* TSpan.Remote: list and state in one word; the life as a ghost of it. */
byte Remote;
byte State;
bool Live = true;

byte ShelvedPages;
byte FreeList;                      /* set of blocks */
byte Used;
byte Carved = 2;
byte Word[Blocks];                  /* TBlock.Link */
bool Awaits;                        /* AwaitsFree is added to Owner */
bool Queued;
bool Lock;                          /* of the heap: the queue */

byte Holder[Blocks];                /* ghost: the thread that uses the block, 0 none, 9 being freed */
byte Carving;                       /* ghost: set of blocks whose words are being written */
byte Done;
bool Reported;                      /* ghost: that block 1 was freed again on the shelf */
byte Frees;                         /* ghost: frees of block 1 by others that were not refused */
bool Late;                          /* ghost: block 1 was handed out again: a second free frees that one */
bool Given;                         /* ghost: block 1 was given away */
bool OwnerDone;

#define NobodyUses (Holder[0] == 0 && Holder[1] == 0 && Holder[2] == 0)
/* Block 1 is left out of the laws about lists where the owner frees it twice: see below. */
#define Others (Second == 1 -> 5 : 7)

/* ------------------------------------------------------------------------------- shelving */

/* ShelveSpan: RemoteShelve; ShelveEnd, ShelvePart: FreePages, WarnOwner, TakeOut, PurgePages, RemoteShelveEnd. */
inline RemoteShelve() {
  d_step { l = Remote; s = State };
  d_step {                                                     /* CompareAndSwap */
    if
    :: s == 0 && l != 0 && Live && Remote == l && State == 0 -> State = Shelving; Remote = 0; ok = true
    :: else -> ok = false
    fi
  }
}

inline PurgePage(page) {
  d_step {
    Law(6, Live);
    Law(1, Late || (BlocksOf(page) & (FreeList | Carving | Remote) & Others) == 0);
    if
    :: (page) == 0 ->
      Law(1, Late || Holder[0] == 0 && Holder[1] == 0);
      Word[0] = Zero; Word[1] = Zero
    :: else -> Law(1, Holder[2] == 0); Word[2] = Zero
    fi
  }
}

inline RemoteShelveEnd() {
#ifdef END_BY_STORE
  c = Remote;
  d_step { Remote = c | l; State = (ShelvedPages != 0 -> Shelved : 0) }
#else
  d_step { Remote = Remote | l; State = (ShelvedPages != 0 -> Shelved : 0) }
#endif
}

inline ShelveSpan() {
  RemoteShelve();
  if
  :: ok ->
    c = CarvedSet;
    d_step {
#ifdef PAGES_BLIND
      p = ((l & 3) != 0 -> 1 : 0) | ((l & 4) != 0 -> 2 : 0);
#else
      p = ((3 & c & ~l) == 0 -> 1 : 0) | ((4 & c & ~l) == 0 -> 2 : 0);
#endif
      ShelvedPages = p;
      c = l & ((p & 1) * 3 | (p >> 1) * 4);
      l = l & ~c
    };
#ifndef AWAIT_SILENT
    if :: p != 0 -> Awaits = true :: else fi;                  /* WarnOwner */
#endif
#ifdef WORDS_FIRST
    if :: c & 1 -> Word[0] = Zero :: else fi;
    if :: c & 2 -> Word[1] = Zero :: else fi;
#endif
    if :: p & 1 -> PurgePage(0) :: else fi;                    /* TakeOut, PurgePages */
    if :: p & 2 -> PurgePage(1) :: else fi;
    RemoteShelveEnd()
  :: else
  fi;
  d_step { l = 0; s = 0; c = 0; p = 0; ok = false }
}

/* ------------------------------------------------------------------------------- the owner */

inline TakeShelved(x) {
  d_step {
    if
#ifdef SHELF_BY_STORE
    :: Has(ShelfSet(ShelvedPages), x) ->
#else
    :: Has(ShelfSet(ShelvedPages), x) && Word[x] == Zero ->    /* CompareAndSwap */
#endif
      Law(2, !Has(FreeList, x) && (Late || Holder[x] == 0));
      Word[x] = Free; FreeList = FreeList | Bit(x);
#ifdef COUNT_EARLY
      Used--
#else
      taken++
#endif
    :: else -> Reported = Reported || (x) == 1 && Has(ShelfSet(ShelvedPages), 1)
    fi
  }
}

/* RemoteIsShelved, RemoteShelfHas, RemoteClearShelf. */
inline TakeShelf() {
  if
  :: State == Shelved && ShelvedPages != 0 ->
    d_step {                                                   /* FreedOnShelf, SpanDropList */
      if
      :: FreeList & ShelfSet(ShelvedPages) -> FreeList = 0; Used = Count(CarvedSet)
      :: else
      fi
    };
    TakeShelved(2); TakeShelved(1); TakeShelved(0);
    ShelvedPages = 0;
    d_step { Used = Used - taken; taken = 0 }
  :: else
  fi
}

/* Collect, SpanCollect. */
inline RemoteTakeAll() {
  ok = false;
  do
  :: ok -> break
  :: else ->
    d_step { c = Remote; s = State };
    d_step {
      if
      :: c == 0 && s == 0 || s == Shelving -> ok = true
#ifndef TAKE_EARLY
      :: s == Shelved && ShelvedPages != 0 -> ok = true
#endif
      :: else ->                                               /* CompareAndSwap */
        if
        :: Remote == c && State == s ->
          Remote = 0; State = 0; ok = true;
          FreeList = FreeList | c; Used = Used - Count(c)
        :: else
        fi
      fi;
      c = 0; s = 0
    }
  od;
  ok = false
}

inline Carve() {
  if
  :: FreeList == 0 && Carved == 2 ->
    Carved = 3;
    if                                                         /* RemoteHasShelf */
#ifndef CARVE_BLIND
    :: State != 0 -> Carved = 2
#endif
    :: State == 0 ->
      Carving = 4; Word[2] = Free;
      d_step { Carving = 0; FreeList = 4 }
#ifdef CARVE_BLIND
    :: State != 0 ->
      Carving = 4; Word[2] = Free;
      d_step { Carving = 0; FreeList = 4 }
#endif
    fi
  :: else
  fi
}

inline SpanRefill() { TakeShelf(); RemoteTakeAll(); Carve() }

/* A word that was overwritten ends the list: SpanDropList. That happens to block 1 alone. */
inline SpanTake() {
  d_step {
    if
    :: FreeList & 1 -> b = 0
    :: (FreeList & 3) == 2 -> b = 1
    :: (FreeList & 7) == 4 -> b = 2
    :: else -> b = Blocks
    fi;
    if
    :: b == 1 && Second != 0 && Word[1] != Free -> FreeList = 0; Used = Count(CarvedSet)
    :: b < Blocks && !(b == 1 && Second != 0 && Word[1] != Free) ->
      Law(2, Late || Holder[b] == 0);
      Law(2, (Second != 0 && b == 1) || (Word[b] == Free && !Has(Remote, b)));
      Late = Late || (b == 1 && Given && Second != 0);
      FreeList = FreeList & ~Bit(b); Word[b] = InUse; Holder[b] = 1; Used++
    :: else
    fi;
    b = 0
  }
}

inline SetOwner() {
  Awaits = false;
#ifndef OWNER_PLAIN
  if :: State != 0 -> Awaits = true :: else fi                 /* RemoteHasShelf */
#endif
}

inline SpanPut(x) {
  d_step { Word[x] = Free; FreeList = FreeList | Bit(x); Holder[x] = 0 };
  Used--
}

/* FastBlockFree; BlockFreeSlow with HeapAwaitedFree. */
inline OwnBlockFree(x) {
  d_step { before = (State == Shelved && Has(ShelfSet(ShelvedPages), x)); awaits = Awaits };
  d_step {
    ok = Live && Word[x] != Free && !(awaits && Has(ShelfSet(ShelvedPages), x));   /* BlockLooksFree */
    Law(5, !ok || Late || !before);
    before = false
  };
  if
  :: ok && awaits -> SetOwner(); TakeShelf(); RemoteTakeAll(); SpanPut(x)
  :: ok && !awaits -> SpanPut(x)
  :: else                                                      /* refused */
  fi;
  d_step { awaits = false; ok = false }
}

proctype OwnerThread() {
  byte b, c, s, turns, taken;
  bool ok, before, awaits, doubled;
  do
  :: atomic { turns < Turns && !Queued && Live -> turns++ };
    if :: FreeList == 0 -> SpanRefill() :: else fi;
    SpanTake()
  :: atomic { turns < Turns && Live -> turns++ }; SetOwner()
  :: atomic { turns < Turns && Live && !Queued -> turns++; Queued = true }
  :: atomic { turns < Turns && Live && Queued && !Lock -> turns++; Queued = false }
  :: atomic { Holder[0] == 1 -> Holder[0] = 9 }; OwnBlockFree(0)
  :: atomic { Holder[1] == 1 -> Holder[1] = 9 }; OwnBlockFree(1)
  :: atomic { Holder[2] == 1 -> Holder[2] = 9 }; OwnBlockFree(2)
  :: atomic { Holder[0] == 1 -> Holder[0] = 2 }
  :: atomic { Holder[1] == 1 -> Holder[1] = 2; Given = true }
  :: atomic { Holder[2] == 1 -> Holder[2] = 2 }
  :: atomic { Second == 1 && Given && !doubled && !Late && Live -> doubled = true }; OwnBlockFree(1)
  :: atomic {
      Holder[0] != 1 && Holder[1] != 1 && Holder[2] != 1 -> OwnerDone = true; break
    }
  od;
  Done++
}

/* ------------------------------------------------------------------------------- other threads */

/* RemoteWord, BlockFreeUnowned or its twin in assembler, RemotePush, RemotePushClaimed. */
inline RemoteBlockFree(x) {
  d_step { w = Remote; s = State };
  d_step { seen = Word[x]; ok = (seen != Free) };
#ifndef SHELF_UNSEEN
  if :: s != 0 -> ok = ok && !Has(ShelfSet(ShelvedPages), x) :: else fi;
#endif
  if
  :: ok -> d_step { ok = (Word[x] == seen); Word[x] = Free }   /* CompareAndSwap */
  :: else
  fi;
  do
  :: ok == 0 -> break                                          /* pushed, or refused */
  :: ok == 1 ->
    d_step {
      if
#ifndef PUSH_BLIND
#ifndef SHELF_UNSEEN
      :: s != 0 && Has(ShelfSet(ShelvedPages), x) -> ok = false
#endif
#endif
      :: else ->                                               /* CompareAndSwap */
        if
        :: Remote == w && State == s && Live ->
          if :: x == 1 -> Frees++ :: else fi;
          Law(2, Late || Second != 3 || !Has(FreeList, x));
          Law(4, Late || Second != 3 || Frees <= 1 || Reported);
          Remote = Remote | Bit(x); Holder[x] = 0; ok = false
        :: else -> w = Remote; s = State; ok = Live
        fi
      fi
    }
  od;
  skip;
  d_step {
    if :: Holder[x] == 9 -> Holder[x] = 0 :: else fi;          /* refused */
    w = 0; s = 0; seen = 0; ok = false
  }
}

proctype OtherThread() {
  byte w, s, seen;
  bool ok;
  do
  :: atomic { Holder[0] == 2 -> Holder[0] = 9 }; RemoteBlockFree(0)
  :: atomic { Holder[1] == 2 -> Holder[1] = 9 }; RemoteBlockFree(1)
  :: atomic { Holder[2] == 2 -> Holder[2] = 9 }; RemoteBlockFree(2)
  :: atomic {
      OwnerDone && Holder[0] != 2 && Holder[1] != 2 && Holder[2] != 2 -> break
    }
  od;
  Done++
}

#if Second == 3
proctype SecondFree() {
  byte w, s, seen, ok;
  if
  :: !Late && Live -> RemoteBlockFree(1)
  :: OwnerDone
  fi;
  Done++
}
#endif

proctype Shelver() {
  byte l, s, c, p, rounds;
  bool ok;
  do
  :: rounds < 2 && Live -> rounds++; ShelveSpan()
  :: break
  od;
  Done++
}

/* SweepQueue: SpanIsEmpty, RemoteFreedCount, RemoteEndLife. */
proctype Sweeper() {
  byte u, n, s, rounds;
  do
  :: atomic { rounds < 1 && Queued && !Lock && Live -> Lock = true; rounds++ };
    u = Used;
#ifdef COUNT_TWICE
    n = Count(Remote);
    s = State;
#else
    d_step { n = Count(Remote); s = State };
#endif
    if :: s == Shelved -> n = n + Count(ShelfSet(ShelvedPages)) :: else fi;
    d_step {
      if
#ifdef END_LIFE_BLIND
      :: u == n ->
#else
      :: u == n && State != Shelving ->
#endif
        Law(6, Second != 0 || NobodyUses);
        Live = false; Remote = 0; State = 0; ShelvedPages = 0
      :: else
      fi;
      u = 0; n = 0; s = 0
    };
    Lock = false
  :: break
  od;
  Done++
}

init {
  atomic {
    Word[0] = InUse; Word[1] = InUse; Holder[0] = 2; Holder[1] = 2; Used = 2; Given = true;
    run OwnerThread(); run OtherThread(); run Shelver(); run Sweeper();
#if Second == 3
    run SecondFree()
#else
    Done = 1
#endif
  };
  Done == 5;
  d_step {
    Law(3, !Live || State != Shelving);
    Law(3, !Live || Second != 0 || (FreeList | Remote | ShelfSet(ShelvedPages)) == CarvedSet);
    Law(3, !Live || Second != 0 || Used == Count(Remote) + Count(ShelfSet(ShelvedPages)))
  }
}
