/* The list of blocks that others freed, with its links and its word (first block, length).
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.RemoteList
 *     RemoteWord: LoadAcquire Remote
 *     RemotePush: CompareAndSwap Link FirstOf RemotePushClaimed
 *     RemotePushClaimed: RemoteShelfHas Pack CountOf CompareAndSwap Remote LoadAcquire Remote Link:=
 *       FirstOf
 *     RemoteTakeAll: LoadAcquire Remote ShelvedPages CompareAndSwap Remote CountOf FirstOf
 *     RemoteGiveUp: Remote CompareAndSwap Remote
 *     CountOf:
 *     FirstOf:
 *     Pack:
 *   LaneMM.Span
 *     SpanTake: FreeList FreeList Link FreeList:= Link:= Used+
 *     SpanPut: Link:= FreeList FreeList:= ReleaseFence Used- Used
 *     Collect: FreeList:= RemoteTakeAll Used-
 *
 * Threads: three of the same kind. One of them owns the span at a time: it takes blocks, hands them
 * to anybody, frees its own, takes the whole list, gives the span up. Whoever frees into a given-up
 * span owns it next. They go on for ever, so blocks, lists and ownership come back in every way (ABA).
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 list      the list is its word's length long, ends where it should, and holds each block
 *               that was pushed since the last take, once            FIRST_ONLY, LINK_LATE
 *   2 whole     no pushed block is lost                              PUSH_BY_STORE, TAKE_BY_STORE
 *   3 one       one thread at a time owns the span                   CLAIM_BY_STORE
 */

#ifndef Blocks
#define Blocks 3
#endif
#define Threads 3
#define End 7                       /* EndOfList; also what is written into a block by its user */
#define GivenUp 1                   /* RemoteGiveUp */
#define Pack(b, n) ((n) << 1 | (b) << 4)
#define CountOf(w) ((w) >> 1 & 7)
#define FirstOf(w) (CountOf(w) == 0 -> End : (w) >> 4)

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

byte Remote;                        /* TSpan.Remote */
byte FreeList;                      /* of the owner */
byte Link[Blocks];                  /* first word of each block */
byte Used;

byte Holder[Blocks];                /* ghost: 0 free, else the thread */
byte Pushed;                        /* ghost: set of blocks pushed and not yet taken */
byte Owner;                         /* ghost: the thread that owns the span; 0 given up */

#define Bit(b) (1 << (b))

inline SpanPut(b) {
  d_step { Link[b] = FreeList; FreeList = b; Used--; Holder[b] = 0 }
}

inline SpanTake() {
  d_step {
    b = FreeList; FreeList = Link[b]; Link[b] = End;
    Law(0, Holder[b] == 0);
    Holder[b] = me; Used++; b = 0
  }
}

/* RemoteWord before the first turn, the claim of the block: in a correct program no other thread
 * frees it, so the claim is the write of the link in the first turn. See twice.pml for others.
 * The turns are RemotePushClaimed. FastBlockFreeUnowned, in assembler, does the same first turn. */
inline RemotePush(b) {
  do
  :: w = Remote;
    if
    :: w == GivenUp ->
#ifdef CLAIM_BY_STORE
      d_step { Remote = 0; Law(3, Owner == 0); Owner = me };
      SpanPut(b);
      break
#else
      atomic {
        if
        :: Remote == w -> Remote = 0; Law(3, Owner == 0); Owner = me
        :: else -> w = 0
        fi
      };
      if
      :: w == GivenUp -> SpanPut(b); break
      :: else
      fi
#endif
    :: else ->
#ifndef LINK_LATE
      Link[b] = FirstOf(w);
#endif
      atomic {
        if
#ifdef PUSH_BY_STORE
        :: true ->
#elif defined(FIRST_ONLY)
        :: FirstOf(Remote) == FirstOf(w) && Remote != GivenUp ->
#else
        :: Remote == w ->
#endif
          Remote = Pack(b, CountOf(w) + 1);
          Pushed = Pushed | Bit(b); Holder[b] = 0; ok = true
        :: else -> ok = false
        fi
      };
      if
      :: ok ->
#ifdef LINK_LATE
        Link[b] = FirstOf(w);
#endif
        break
      :: else
      fi
    fi
  od
}

/* RemoteTakeAll, Collect: FreeList is empty. The walk checks the list; LaneMM does not walk. */
inline Collect() {
  if
  :: Remote != 0 ->
#ifdef TAKE_BY_STORE
    w = Remote;
    b = Pushed;
    Remote = 0;
    d_step {
      Law(2, b == Pushed);
#else
    d_step {
      w = Remote; Remote = 0;                                  /* Swap */
#endif
      Law(0, w != GivenUp);
      FreeList = FirstOf(w);
      Used = Used - CountOf(w);
      b = FreeList; n = 0;
      do
      :: b != End && n < Blocks ->
        Law(1, Pushed & Bit(b));
        Pushed = Pushed & ~Bit(b); n++; b = Link[b]
      :: else -> break
      od;
      Law(1, n == CountOf(w) && b == End);
      Law(2, Pushed == 0);
      Pushed = 0; b = 0; n = 0
    }
  :: else
  fi
}

inline Forget() {
  atomic { w = 0; b = 0; n = 0; ok = false }
}

proctype Thread(byte me) {
  byte w, b, n;
  bool ok;
end:
  do
  :: Owner == me && FreeList != End -> SpanTake()
  :: Owner == me && FreeList == End && Remote != 0 -> Collect(); Forget()
  :: Owner == me && FreeList == End && Used == Blocks ->       /* RemoteGiveUp */
    d_step {
      if
      :: Remote == 0 -> Remote = GivenUp; Owner = 0
      :: else
      fi
    }
  /* A block in use is handed to another thread. */
  :: atomic { Holder[0] == me -> if :: Holder[0] = 1 :: Holder[0] = 2 :: Holder[0] = 3 fi }
  :: atomic { Holder[1] == me -> if :: Holder[1] = 1 :: Holder[1] = 2 :: Holder[1] = 3 fi }
  /* A free: the owner is the same thread, or not. */
  :: atomic { Holder[0] == me && Owner == me -> SpanPut(0) }
  :: atomic { Holder[1] == me && Owner == me -> SpanPut(1) }
  :: atomic { Holder[0] == me && Owner != me -> Holder[0] = 9 }; RemotePush(0); Forget()
  :: atomic { Holder[1] == me && Owner != me -> Holder[1] = 9 }; RemotePush(1); Forget()
#if Blocks > 2
  :: atomic { Holder[2] == me -> if :: Holder[2] = 1 :: Holder[2] = 2 :: Holder[2] = 3 fi }
  :: atomic { Holder[2] == me && Owner == me -> SpanPut(2) }
  :: atomic { Holder[2] == me && Owner != me -> Holder[2] = 9 }; RemotePush(2); Forget()
#endif
  od
}

init {
  atomic {
    FreeList = 0; Link[0] = 1;
#if Blocks > 2
    Link[1] = 2; Link[2] = End;
#else
    Link[1] = End;
#endif
    Owner = 1;
    run Thread(1); run Thread(2); run Thread(3)
  }
}
