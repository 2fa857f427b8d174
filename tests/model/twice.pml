/* Two threads free the same block at the same moment: what it does to all other blocks.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.RemoteList
 *     RemoteEndLife: LoadAcquire Remote CompareAndSwap Remote RemoteClearShelf
 *   LaneMM.Span
 *     SpanUncountedBlock: RemoteCount RemoteShelfHas Link
 *     SpanHasFreeBlock: RemoteShelfHas FreeList
 *     SpanDropList: FreeList FreeList FreeList:= Used:=
 *
 * and RemotePush, SpanTake, SpanPut, Collect as remote.pml has them.
 *
 * Threads: the owner frees block 0 or not, then takes and frees blocks in any order; when none is in
 * use it releases the span, which is used again at once. Two other threads free block 0, or one of
 * them and the owner; then one of these, or the owner, frees block 1.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 once      no block but block 0 is handed out while it is in use      TAKE_BLIND
 *   2 in use    the span is released only while no block is in use          RELEASE_BLIND
 *   3 own life  no thread pushes a block on the list of a later life        NO_LIFE
 *   4 winner    of two threads that are not the owner one frees block 0     NO_CLAIM
 *   5 whole     after such two no other block is lost                       NO_CLAIM
 * A thread that frees block 0 after its free, and misses it on the lists, is held to 1 to 3 alone (Missed).
 *
 * A thread that read the first word of block 0, then slept while the block was freed and handed out
 * again, and then finds the same word, frees the new block: no check can see that (Late). Such
 * sequences are not followed further.
 */

#define Blocks 3
#define End 7                       /* EndOfList */
#define InUse 6                     /* a word that is no link; followed as one, it leads to block 1 */
#define CountOf(w) ((w) & 7)
#define FirstOf(w) (CountOf(w) == 0 -> End : (w) >> 3 & 7)
#define LifeOf(w) ((w) >> 6)
#define Pack(l, b, n) ((l) << 6 | (b) << 3 | (n))

#ifdef Only
#define Law(n, c) assert((n) != Only || Late || (c))
#else
#define Law(n, c) assert(Late || (c))
#endif

byte Remote;                        /* TSpan.Remote: count, first block, life */
byte FreeList = 2;
byte Link[Blocks];
byte Used = 2;                      /* block 0, about to be freed, and block 1 */
bool IsShared;
byte Life;                          /* ghost: lives of the span so far */
bool Held[Blocks];                  /* ghost: somebody uses the block */
byte Freed;                         /* ghost: frees of block 0 that were not refused, in this life */
bool OwnerFrees;                    /* the owner is one of the two threads that free block 0 */
bool RacerFreesOther;               /* one of the others frees block 1, else the owner does */
bool Missed;                        /* ghost: block 0 was freed while it was free, and not found there */
bool Late;                          /* ghost: see above */

inline RemotePush(b) {
  w = Remote;                                                  /* RemoteWord */
  l = LifeOf(w);
  s = Link[b];
  /* A word that is no link, or SpanHasFreeBlock, which may miss the block on lists that change. */
  if
  :: s != InUse -> skip                                        /* refused */
  :: s == InUse || b == 0 ->
    if :: s != InUse -> Missed = true :: else fi;
#ifdef NO_CLAIM
    d_step {
      if :: b == 0 -> Late = Late || (Held[0] || l != Life); Freed++ :: else fi;
      Held[b] = false; Link[b] = FirstOf(w)
    };
#else
    d_step {                                                   /* CompareAndSwap */
      if
      :: Link[b] == s ->
        if :: b == 0 -> Late = Late || (Held[0] || l != Life); Freed++ :: else fi;
        Held[b] = false; Link[b] = FirstOf(w)
      :: else -> l = 15
      fi
    };
#endif
    Law(4, OwnerFrees || Missed || Freed <= 1);
    do
    :: l == 15 -> break
    :: else ->
      d_step {                                                 /* CompareAndSwap */
        if
        :: Remote == w ->
          Law(3, l == Life);
          Remote = Pack(LifeOf(w), b, CountOf(w) + 1); s = 15
        :: else
        fi
      };
      if :: s == 15 -> break :: else fi;
      w = Remote;                                              /* LoadAcquire */
#ifndef NO_LIFE
      if :: LifeOf(w) != l -> break :: else fi;
#endif
      Link[b] = FirstOf(w)
    od
  fi;
  s = 0; l = 0; w = 0
}

inline SpanDropList() {
  d_step { FreeList = End; Used = Blocks }
}

inline Collect() {
  d_step {
    w = Remote; Remote = LifeOf(w) << 6;                       /* Swap */
    FreeList = FirstOf(w); Used = Used - CountOf(w);
    if :: CountOf(w) > 0 -> IsShared = true :: else fi;
    w = 0
  }
}

inline SpanTake() {
  if
  :: FreeList == End -> Collect()
  :: else
  fi;
  if
  :: FreeList == End
  :: else ->
    b = FreeList;
    s = Link[b];
    if
#ifndef TAKE_BLIND
    :: s == InUse -> SpanDropList()
#endif
    :: else ->
      d_step {
        Law(1, b == 0 || !Held[b]);
        FreeList = (s == InUse -> 1 : s); Link[b] = InUse; Held[b] = true; Used++
      }
    fi;
    s = 0; b = 0
  fi
}

/* SpanUncountedBlock, then RemoteEndLife; the next life begins at once. */
inline Release() {
  b = 0;
  s = 0;
#ifndef RELEASE_BLIND
  if
  :: IsShared || CountOf(Remote) != 0 ->
    do
    :: b < Blocks -> s = s + (Link[b] == InUse -> 1 : 0); b++
    :: else -> break
    od
  :: else
  fi;
#endif
  if
  :: s != 0 -> SpanDropList()
  :: else ->
    Law(2, !Held[1] && !Held[2]);
    w = Remote;
    d_step {
      Remote = (LifeOf(w) + 1) << 6; Life++; Freed = 0;
      Link[0] = 1; Link[1] = 2; Link[2] = End; FreeList = 0;
      Used = 0; IsShared = false; Held[0] = false; Held[1] = false; Held[2] = false; w = 0
    }
  fi;
  b = 0; s = 0
}

inline SpanPut(x) {
  s = Link[x];
  if
  :: s != InUse                                                /* refused */
  :: else ->
    d_step { Held[x] = false; Link[x] = FreeList; FreeList = x; Used--; b = Used };
    if :: b == 0 -> Release() :: else fi
  fi;
  s = 0; b = 0
}

proctype OwnerThread() {
  byte w, s, b, turns;
  if :: OwnerFrees -> Freed++; SpanPut(0) :: else fi;
  do
  :: turns < 5 && Life < 2 -> turns++; SpanTake()
  :: turns < 5 && Held[1] && (Life > 0 || !RacerFreesOther) -> turns++; SpanPut(1)
  :: turns < 5 && Held[2] -> turns++; SpanPut(2)
  :: turns < 5 && Held[0] -> turns++; SpanPut(0)
  :: break
  od
}

proctype Racer(bool both) {
  byte w, s, l;
  RemotePush(0);
  if
  :: both && Life == 0 -> RemotePush(1)
  :: !both || Life > 0
  fi
}

init {
  byte b, seen;
  atomic {
    Link[0] = InUse; Link[1] = InUse; Link[2] = End;
    Held[1] = true;
    if
    :: OwnerFrees = true
    :: run Racer(false)
    fi;
    if
    :: RacerFreesOther = true
    :: true
    fi;
    run Racer(RacerFreesOther); run OwnerThread()
  };
  _nr_pr == 1;
  d_step {
    do
    :: b < 3 -> seen = seen | (Held[b] -> 1 << b : 0); b++
    :: else -> break
    od;
    b = FreeList;
    do
    :: b < 3 && !(seen >> b & 1) -> seen = seen | 1 << b; b = Link[b]
    :: else -> break
    od;
    b = FirstOf(Remote);
    do
    :: b < 3 && !(seen >> b & 1) -> seen = seen | 1 << b; b = Link[b]
    :: else -> break
    od;
    Law(5, OwnerFrees || Missed || (seen | 1) == 7)
  }
}
