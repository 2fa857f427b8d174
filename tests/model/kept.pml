/* Runs that a heap keeps, and the frees of large blocks, where the heap's thread has no barrier.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.KeptRuns
 *     RunsEnter: Swap Section LoadAcquire RunsClaimed
 *     RunsLeave: StoreRelease Section
 *     RunsSectionEnds: LoadAcquire Section
 *     RunsDisclaim: StoreRelease RunsClaimed
 *     RunsClaim: CompareAndSwap RunsClaimed
 *     RunsRelease: LockRecover RunsClaim OsBarrier ReleaseClaimed
 *     ReleaseClaimed: RunsSectionEnds RunsDisclaim
 *   LaneMM.Large
 *     EndByKeeper: RunsEnter RemoteEndOwnLife RunsLeave
 *     EndByOther: RemoteMark OsBarrier RunsSectionEnds RemoteEndMarked
 *   LaneMM.RemoteList
 *     RemoteTryEndLife: CompareAndSwap Remote
 *     RemoteEndOwnLife: LoadAcquire Remote StoreRelease Remote
 *     RemoteMark: CompareAndSwap Remote
 *     RemoteEndMarked: CompareAndSwap Remote
 *
 * The heap's thread writes into a buffer of stores, as on x86: memory gets them in their order, some
 * time later. A locked operation empties it, and so does OsBarrier of any thread (membarrier).
 *
 * Threads: the heap's thread takes runs and frees blocks, in the assembler's order. Another one frees
 * a block of it, which this one may free at the same moment: a double free. A sweeping thread releases
 * the runs. The memory is that of one heap with two runs of one length, which are kept at first.
 * Runs that were released are not used again. A block counts its lives, as TSpan.Remote does.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 once       each life of a block ends once
 *                                     FREE_UNFENCED, SECTION_LATE, SECTION_BLIND, LEAVE_EARLY, END_BLIND
 *   2 one taker  a run that is taken or released was kept
 *                                     SWEEP_UNFENCED, SWEEP_BLIND, CLAIM_BLIND, COUNT_EARLY, CLAIM_EARLY
 *   3 not lost   in the end each run is in use, kept or released, unless two threads freed it and one
 *                of them gave up to wait for the other's section
 *                                     KEEP_UNCOUNTED
 */

#ifndef Rounds
#define Rounds 4
#endif
#ifndef Freers
#define Freers 1
#endif

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

#define Given 1                     /* low part of TSpan.Remote: GivenUpSpan */
#define Marked 2                    /* FreedSpan */
#define LifeOf(w) ((w) >> 2)
#define LowOf(w) ((w) & 3)
#define NextLife(w) ((LifeOf(w) + 1) << 2)

/* Addresses. */
#define Section 0                   /* THeap.Section: 0, the run that is freed, or Taking */
#define Count 1                     /* THeap.KeptCounts */
#define Places 2                    /* TKeptRuns.Places, two of them */
#define Remote 4                    /* TSpan.Remote of run 1 and 2 */
#define Taking 3
#define Depth 8

byte Memory[6];
byte StoredAt[Depth];               /* the buffer of stores of the heap's thread */
byte Stored[Depth];
byte Stores;
bool Claimed;                       /* THeap.RunsClaimed */
bool Shares;                        /* THeap.Keeper is nil */
bool Keeper[2];                     /* TSpan.Keeper is the heap */

mtype = { InUse, Kept, Gone };
mtype Place[2] = Kept;              /* ghost: where the run is */
byte Ended[2];                      /* ghost: ends of this life */
bool IsDouble[2];                   /* ghost: two threads freed it at the same moment */
bool InHand[2];                     /* ghost: a thread is between an end of life and the next place */
byte Done;                          /* ghost: threads at their end */
bool HasStopped;                    /* ghost: a thread gave up to wait for the other's section */

/* Writes the first store of the buffer to memory. */
inline Drain() {
  Memory[StoredAt[0]] = Stored[0];
  for (i : 1 .. Depth - 1) { StoredAt[i - 1] = StoredAt[i]; Stored[i - 1] = Stored[i] }
  StoredAt[Depth - 1] = 0;
  Stored[Depth - 1] = 0;
  Stores--
}

/* A store and a load of the heap's thread. */
inline Store(a, v) {
  atomic { Stores < Depth -> StoredAt[Stores] = a; Stored[Stores] = v; Stores++ }
}

inline Load(a, v) {
  d_step {
    v = Memory[a];
    for (i : 0 .. Depth - 1) {
      if
      :: i < Stores && StoredAt[i] == a -> v = Stored[i]
      :: else
      fi
    };
    i = 0
  }
}

inline Fence() { Stores == 0 }

/* OsBarrier. */
inline Barrier() {
  d_step {
    do
    :: Stores > 0 -> Drain()
    :: else -> break
    od;
    i = 0
  }
}

inline EndLife(r) {
  Ended[r - 1]++;
  Law(1, Ended[r - 1] <= 1);
  InHand[r - 1] = true
}

inline Release(r) {
  Law(2, Place[r - 1] != Gone);
  Place[r - 1] = Gone;
  InHand[r - 1] = false
}

/* The heap's thread takes the run that was kept last, and makes it a block. */
inline TakeRun() {
  g = Shares;
#ifdef COUNT_EARLY
  Load(Count, n);
#endif
  Store(Section, Taking);
  if
  :: g -> Fence()                                              /* RunsEnter */
  :: else
  fi;
#ifndef CLAIM_BLIND
  if
  :: Claimed -> n = 0
  :: else ->
#else
  if
  :: skip ->
#endif
#ifndef COUNT_EARLY
    Load(Count, n)
#endif
  fi;
  if
  :: n > 0 ->
    Load(Places + n - 1, r);
    Law(2, Place[r - 1] == Kept);
    Place[r - 1] = InUse;
    InHand[r - 1] = true;
    Store(Count, n - 1);
    Store(Section, 0);                                         /* RunsLeave */
    Load(Remote + r - 1, w);
    d_step {
      Ended[r - 1] = 0; IsDouble[r - 1] = false; InHand[r - 1] = false; Keeper[r - 1] = !g
    };
    Store(Remote + r - 1, w + Given);
    Mine[r - 1] = true
  :: else -> Store(Section, 0)
  fi;
  n = 0; r = 0; w = 0; g = false
}

/* FreeLargeBlock for the heap's thread, without a place: the run is released. */
inline FreeSlow(r) {
  Store(Section, r);
  Fence();                                                     /* RunsEnter in EndByKeeper */
  Load(Remote + r - 1, w);
  if
  :: LowOf(w) == Given ->
    if
    :: Keeper[r - 1] -> EndLife(r); Store(Remote + r - 1, NextLife(w)); Store(Section, 0); Release(r)
    :: else ->
      atomic {                                                 /* RemoteTryEndLife */
        Stores == 0;
        if
        :: Memory[Remote + r - 1] == w -> Memory[Remote + r - 1] = NextLife(w); EndLife(r); g = true
        :: else
        fi
      };
      Store(Section, 0);
      if
      :: g -> Release(r)
      :: else
      fi
    fi
  :: else -> Store(Section, 0)
  fi
}

/* The heap's thread frees a block: the assembler. */
inline FreeRun(r) {
  Mine[r - 1] = false;
#ifdef CLAIM_EARLY
  c = Claimed;
#endif
#ifdef SECTION_LATE
  Load(Remote + r - 1, w);
#endif
  Store(Section, r);
  if
  :: Keeper[r - 1] ->
#ifndef CLAIM_EARLY
    c = Claimed;
#endif
    Load(Count, n);
#ifndef SECTION_LATE
    Load(Remote + r - 1, w);
#endif
    if
    :: c -> Store(Section, 0); FreeSlow(r); n = 9
    :: !c && LowOf(w) != Given -> Store(Section, 0); n = 9     /* refused */
    :: else ->
      EndLife(r);
#ifdef LEAVE_EARLY
      Store(Section, 0);
#endif
      Store(Remote + r - 1, NextLife(w))                       /* RemoteEndOwnLife */
    fi
  :: else ->
    Load(Remote + r - 1, w);
    atomic {                                                   /* RemoteTryEndLife */
      Stores == 0;
      if
      :: LowOf(w) == Given && Memory[Remote + r - 1] == w ->
        Memory[Remote + r - 1] = NextLife(w); EndLife(r)
      :: else -> n = 9
      fi
    };
    if
    :: n == 9 -> Store(Section, 0)                             /* refused */
    :: n != 9 && Claimed -> Store(Section, 0); Release(r); n = 9
    :: else -> Load(Count, n)
    fi
  fi;
  if
  :: n != 9 ->
    Law(2, Place[r - 1] == InUse);
    Place[r - 1] = Kept;
    InHand[r - 1] = false;
    Store(Places + n, r);
#ifndef KEEP_UNCOUNTED
    Store(Count, n + 1);
#endif
    Store(Section, 0)
  :: else
  fi;
  n = 0; w = 0; c = false; g = false
}

proctype Owner() {
  byte n, r, w, i, k;
  bool g, c;
  bool Mine[2];
  do
  :: k < Rounds ->
    k++;
    if
    :: TakeRun()
    :: Mine[0] -> FreeRun(1)
    :: Mine[1] -> FreeRun(2)
    fi
  :: break
  od;
  Stores == 0;
  Done++
}

/* The stores of the heap's thread reach memory. */
proctype Cpu() {
  byte i;
end:
  do
  :: d_step { Stores > 0 -> Drain(); i = 0 }
  od
}

/* Another thread frees a block: FreeLargeBlock. It was in use when this one got its address. */
proctype Freer() {
  byte w, r, s, i;
  atomic {
    if
    :: Place[0] == InUse && LowOf(Memory[Remote]) == Given -> r = 1
    :: Place[1] == InUse && LowOf(Memory[Remote + 1]) == Given -> r = 2
    :: Done > 0 -> goto over
    fi;
    w = Memory[Remote + r - 1];
    IsDouble[r - 1] = true
  };
  if
  :: !Keeper[r - 1] ->
    atomic {                                                   /* RemoteTryEndLife */
      if
      :: Memory[Remote + r - 1] == w -> Memory[Remote + r - 1] = NextLife(w); EndLife(r)
      :: else -> goto over
      fi
    };
    Release(r)
  :: else ->                                                   /* EndByOther */
    d_step {                                                   /* RemoteMark */
      if
      :: Memory[Remote + r - 1] == w -> Memory[Remote + r - 1] = w - Given + Marked
      :: else -> s = 9
      fi
    };
    if
    :: s == 9 -> goto over
    :: else
    fi;
    Shares = true;
#ifndef FREE_UNFENCED
    Barrier();
#endif
#ifndef SECTION_BLIND
    if                                                         /* RunsSectionEnds */
    :: Memory[Section] != r
    :: Memory[Section] == r -> HasStopped = true; goto over    /* the other thread frees it */
    fi;
#endif
    atomic {                                                   /* RemoteEndMarked */
      if
#ifdef END_BLIND
      :: true ->
#else
      :: Memory[Remote + r - 1] == w - Given + Marked ->
#endif
        Memory[Remote + r - 1] = NextLife(w); EndLife(r)
      :: else -> goto over
      fi
    };
    Release(r)
  fi;
over:
  Done++
}

/* RunsRelease by another thread. */
proctype Sweeper() {
  byte n, r, i;
  d_step {                                                     /* RunsClaim */
    !Claimed -> Claimed = true
  };
#ifndef SWEEP_UNFENCED
  Barrier();
#endif
  if
#ifdef SWEEP_BLIND
  :: true ->
#else
  :: Memory[Section] == 0 ->                                   /* ReleaseClaimed: RunsSectionEnds */
#endif
    n = Memory[Count];
    do
    :: n > 0 ->
      n--;
      r = Memory[Places + n];
      Memory[Count] = n;
      Law(2, Place[r - 1] == Kept);
      Release(r)
    :: else -> break
    od;
    Shares = false
  :: Memory[Section] != 0                                      /* left to the next sweep */
  fi;
  Claimed = false;                                             /* RunsDisclaim */
  Done++
}

inline VerifyPlace(r) {
  Law(3, (Place[r - 1] == InUse && !InHand[r - 1]) || Place[r - 1] == Gone
    || (Place[r - 1] == Kept && ((Memory[Count] > 0 && Memory[Places] == r)
      || (Memory[Count] > 1 && Memory[Places + 1] == r))) || IsDouble[r - 1] && HasStopped)
}

init {
  byte i;
  atomic {
    Memory[Count] = 2; Memory[Places] = 1; Memory[Places + 1] = 2;
    run Owner(); run Cpu(); run Sweeper();
    for (i : 1 .. Freers) { run Freer() }
  };
  Done == 2 + Freers;
  VerifyPlace(1);
  VerifyPlace(2)
}
