/* Slices that were never used: who commits them, and who takes them.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.Arena
 *     Publish: ShowRange RaiseTo Limit RaiseTo Committed
 *     Commit: LoadAcquire Committed NoteRefusal Publish
 *     CommitAhead: LoadAcquire Committed LoadAcquire Reserved FetchAdd CommitsUnderWay Commit Commit
 *       FetchAdd CommitsUnderWay
 *     TakeAt: CompareAndSwap Frontier
 *     ReservedSlices: LoadAcquire Reserved+
 *     AddArena: ReservedSlices CompareAndSwap
 *     ReserveNext: RaiseTo Reserved
 *     Extend: LoadAcquire Reserved ReserveNext ReserveNext LoadAcquire Reserved
 *     FrontierGrow: LoadAcquire Frontier Extend CommitAhead TakeAt
 *   LaneMM.GuardPages
 *     AwaitCommits: FetchAdd CommitsUnderWay LoadAcquire GuardReaders OsWaitMs CommitsUnderWay
 *   LaneMM.Atomic
 *     RaiseTo: LoadAcquire CompareAndSwap
 *
 * One arena, the first, of Slices slices; CommitStep of them are committed ahead, the first ReserveStep
 * are reserved from the start. The routine that takes slices of an arena does as FrontierGrow, again
 * and again, from where the frontier is. The system may refuse to commit, and, for ever, to reserve. What a
 * thread takes of another arena is not modelled, but whether it adds one: it has reserved the new one
 * when each thread that does not stand still has published the addresses that it reserved before.
 *
 * Threads: three that take one or two slices, one of them twice; with -DRefusals two, one of which may
 * stand still with addresses, while the system may refuse them. None waits for another, so a thread that
 * stops for ever anywhere is one that takes no further step: laws 1 to 3 cover it.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 once      no slice is taken twice                       TAKE_BY_STORE
 *   2 usable    a slice that is taken is committed            TAKE_FIRST, PUBLISH_FIRST
 *   3 found     ... and lies below Committed and Limit        LIMIT_LATE, RAISE_BY_STORE
 *   5 reserved  ... and its addresses are the arena's         RESERVED_FIRST
 *   6 settled   slices whose taker then saw no thread commit are never committed again
 *                                                             COUNT_LATE, COUNT_EARLY
 *   4 whole     in the end all slices below the frontier are taken
 *                                                             TAKE_TORN
 *   7 one       an arena is added only if the system refuses addresses, or while a thread stands still
 *               that has reserved some                        ADD_AT_ONCE
 */

#define Slices 4
#define CommitStep 2
#define ReserveStep 2
#ifndef Rounds
#define Rounds 2
#endif

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

byte Frontier, Committed;           /* TArena */
byte Reserved = ReserveStep;        /* TArena */
byte Limit;                         /* Process.Limit, in slices */

bool Refuses;                       /* ghost: the system has no more addresses */
bool Stands;                        /* ghost: a thread stands still that has reserved addresses */
byte Owned = (1 << ReserveStep) - 1; /* ghost: set of slices whose addresses the arena has */
byte Usable;                        /* ghost: set of slices that the system has committed */
byte TakenSlices;                   /* ghost: set of slices that threads took */
byte CommitsUnderWay;               /* Process */
byte Settled;                       /* ghost: set of slices whose taker saw no thread commit */
byte Through;                       /* ghost: threads at the end */

#define Below(n) ((1 << (n)) - 1)

/* Atomic.RaiseTo */
inline RaiseTo(word, value) {
#ifdef RAISE_BY_STORE
  if
  :: word < value -> word = value
  :: else
  fi
#else
  do
  :: last = word;                                              /* LoadAcquire */
    if
    :: last >= value -> break
    :: else ->
      atomic {                                                 /* CompareAndSwap */
        if
        :: word == last -> word = value; break
        :: else
        fi
      }
    fi
  od;
  last = 0
#endif
}

inline Publish(upto) {
#ifdef LIMIT_LATE
  RaiseTo(Committed, upto);
  RaiseTo(Limit, upto)
#else
  RaiseTo(Limit, upto);
  RaiseTo(Committed, upto)
#endif
}

/* ok: the slices from had to wanted were reserved. The system gives an address once, or refuses. */
inline ReserveNext(wanted) {
#ifdef RESERVED_FIRST
  RaiseTo(Reserved, wanted);
#endif
  atomic {                                                     /* OsReserveAt */
    ok = (!Refuses && wanted <= Slices && (Owned & Below(wanted) & ~Below(had)) == 0);
    if
    :: ok -> Owned = Owned | (Below(wanted) & ~Below(had))
    :: else
    fi
  };
  if
  :: ok && stops -> Stands = true; Stands = false
  :: else
  fi;
  if
  :: ok -> RaiseTo(Reserved, wanted)
  :: else
  fi
}

/* ok: all slices below upto are reserved. */
inline Extend(upto) {
  do
  :: had = Reserved;                                           /* LoadAcquire */
    if
    :: upto <= had -> ok = true; break
    :: else ->
      if
      :: had * 2 > upto -> ahead = had * 2
      :: else -> ahead = upto
      fi;
      ReserveNext(ahead);
      if
      :: !ok -> ahead = upto; ReserveNext(ahead)
      :: else
      fi;
      if
      :: !ok && Reserved == had -> break                       /* LoadAcquire */
      :: else
      fi
    fi
  od;
  had = 0;
  ahead = 0
}

/* Where Extend has failed for first + count slices; ok: an arena was added. */
inline AddArena() {
#ifdef ADD_AT_ONCE
  ok = true;
#else
  atomic {                                                     /* ReserveArena */
    (Stands || (Owned & ~Below(Reserved)) == 0);
    stood = Stands
  };
  ok = (Reserved == seen);                                     /* ReservedSlices: LoadAcquire */
#endif
  d_step {
    Law(7, !ok || Refuses || stood || first + count > Slices); /* CompareAndSwap */
    stood = false;
    seen = 0
  }
}

/* ok: all slices below upto are committed. */
inline Commit(upto) {
  from = Committed;                                            /* LoadAcquire */
#ifdef COUNT_LATE
  CommitsUnderWay++;
#endif
  if
  :: from >= upto -> ok = true
  :: else ->
#ifdef PUBLISH_FIRST
    Publish(upto);
#endif
    if
    :: atomic {                                                /* OsCommit */
        Law(6, (Below(upto) & ~Below(from) & Settled) == 0);
        Usable = Usable | (Below(upto) & ~Below(from));
        ok = true
      }
    :: ok = false                                              /* the system refuses */
    fi;
    if
    :: ok -> Publish(upto)
    :: else
    fi
  fi;
#ifdef COUNT_LATE
  CommitsUnderWay--;
#endif
  from = 0
}

inline CommitAhead(upto) {
  ok = (upto <= Committed);                                    /* LoadAcquire */
  if
  :: ok
  :: else ->
    ahead = ((upto + CommitStep - 1) / CommitStep) * CommitStep;
    if
    :: ahead > Reserved -> ahead = Reserved                    /* LoadAcquire */
    :: else
    fi;
#ifndef COUNT_LATE
    CommitsUnderWay++;                                         /* FetchAdd */
#endif
#ifdef COUNT_EARLY
    CommitsUnderWay--;
#endif
    Commit(ahead);
    if :: ok -> skip :: else -> Commit(upto) fi;
#if !defined(COUNT_LATE) && !defined(COUNT_EARLY)
    CommitsUnderWay--                                          /* FetchAdd */
#endif
  fi;
  ahead = 0
}

/* The thread that has just taken slices looks once, or never. */
inline AwaitCommits() {
  d_step {
    if
    :: CommitsUnderWay == 0 -> Settled = Settled | (Below(first + count) & ~Below(first)) /* FetchAdd */
    :: else
    fi
  }
}

inline Taken() {
  d_step {
    Law(1, (TakenSlices & Below(first + count) & ~Below(first)) == 0);
    Law(2, (Below(first + count) & ~Below(first) & ~Usable) == 0);
    Law(5, (Below(first + count) & ~Below(first) & ~Owned) == 0);
    Law(3, first + count <= Committed && first + count <= Limit);
    TakenSlices = TakenSlices | (Below(first + count) & ~Below(first));
    mine = true
  }
}

inline TakeAt() {
#ifdef TAKE_BY_STORE
  ok = (Frontier == first);
  if
  :: ok -> Frontier = first + count; Taken()
  :: else
  fi
#elif defined(TAKE_TORN)
  ok = true;
  first = Frontier;
  Frontier = Frontier + count;
  if
  :: first + count <= Committed -> Taken()
  :: else
  fi
#else
  atomic {                                                     /* CompareAndSwap */
    ok = (Frontier == first);
    if
    :: ok -> Frontier = first + count; Taken()
    :: else
    fi
  }
#endif
}

/* FrontierGrow, and one turn of the loop that takes slices anywhere. */
inline FrontierGrow() {
  seen = Reserved;                                             /* ReservedSlices: LoadAcquire */
  first = Frontier;                                            /* LoadAcquire */
  Extend(first + count);
  if
  :: !ok -> AddArena()
  :: else -> seen = 0;
#ifdef TAKE_FIRST
    atomic {
      ok = (Frontier == first);
      if
      :: ok -> Frontier = first + count
      :: else
      fi
    };
    if
    :: ok -> Taken(); CommitAhead(first + count)
    :: else
    fi
#else
    CommitAhead(first + count);
    if
    :: ok -> TakeAt()
    :: else -> ok = true                                       /* refused: gives up */
    fi
#endif
  fi
}

proctype Thread(byte rounds; bool stops) {
  byte first, count, from, ahead, last, had, seen;
  bool ok;
  bool stood;                       /* ghost: a thread stood still when the new arena was reserved */
  bool mine;                        /* ghost: has taken slices */
  do
  :: rounds > 0 ->
    if
    :: count = 1
    :: count = 2
    fi;
    ok = false;
    do
    :: !ok -> FrontierGrow()
    :: ok -> break
    od;
    if :: mine -> AwaitCommits() :: else fi;
    atomic { rounds--; first = 0; count = 0; seen = 0; ok = false; stood = false; mine = false }
  :: else -> break
  od;
  Through++
}

init {
  atomic {
#ifdef Refusals
    if
    :: Refuses = true
    :: true
    fi;
    run Thread(2, false); run Thread(1, true); Through++
#else
    run Thread(Rounds, false); run Thread(1, false); run Thread(1, false)
#endif
  };
  Through == 3;
  Law(4, TakenSlices == Below(Frontier))
}
