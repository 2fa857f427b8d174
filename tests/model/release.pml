/* Spans that are given back while another thread holds the lock of their shard.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.Shards
 *     Release: Owner:= LockTry ShardLeave LoadAcquire Released CompareAndSwap Released
 *       LockTryAgain ShardLeave
 *     FreeReleased: LoadAcquire Released Swap Released
 *     ShardLeave: FreeReleased LockLeave LoadAcquire Released LockTryAgain
 *     TakeOf: LockTry ShardLeave
 *   LaneMM.Lock
 *     LockTry: LockTryAgain FetchAdd
 *     LockTryAgain: LockRecover LoadAcquire State CompareAndSwap State
 *     LockLeave: Swap State OsWake State
 *
 * Threads: two that give spans back and take spans again; one that takes. Any of them may stop for
 * ever while it holds the lock (a thread that is not scheduled): the others get through all the
 * same. All spans are those of one shard; a thread that finds its lock taken looks elsewhere, which
 * is nowhere here.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 found     when all threads are through and nobody has the lock, Released is empty
 *                                                   NO_RECHECK, NO_SECOND_TRY, LEAVE_UNFENCED
 *   2 single    a span goes into the free runs once, and only after it was released
 *                                                   TAKE_BY_LOAD
 *   3 whole     in the end each span is taken, free, or on Released
 *                                                   PUSH_BY_STORE, TAKE_BY_STORE
 *   4 no wait   when no thread can go on, one has stopped with the lock, and the others are through
 *                                                   RELEASE_ENTERS, TAKE_ENTERS
 */

#define Spans 3
#define Nil 7

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

#ifndef Rounds
#define Rounds 2
#endif

bool Lock;                          /* TShard.Lock */
byte Released = Nil;                /* TShard.Released: first span */
byte Next[Spans];
byte Kind[Spans];                   /* ghost: 0 free run, 1 in use, 2 released */
byte Through;                       /* ghost: threads at the end */
bool Stopped;                       /* ghost: a thread stopped with the lock */

inline FreeRunAdd(s) {
  d_step { Law(2, Kind[s] == 2); Kind[s] = 0 }
}

/* Under the lock. */
inline FreeReleased() {
  if
  :: Released != Nil ->
#ifdef TAKE_BY_STORE
    s = Released;
    Released = Nil;
#elif defined(TAKE_BY_LOAD)
    s = Released;
#else
    d_step { s = Released; Released = Nil };                   /* Swap */
#endif
    do
    :: s != Nil -> atomic { n = Next[s]; Next[s] = 0; FreeRunAdd(s); s = n }
    :: else -> break
    od
  :: else
  fi
}

/* LockTry and LockTryAgain. */
inline LockTry() {
  ok = !Lock;
  if
  :: ok -> d_step { ok = !Lock; Lock = true }                  /* CompareAndSwap */
  :: else
  fi
}

/* The thread holds the lock. It may stop here, for ever. */
inline MayStop() {
  if
  :: true
  :: atomic { Stopped = true; goto stop }
  fi
}

inline ShardLeave() {
  do
  :: FreeReleased();
    MayStop();
#ifdef LEAVE_UNFENCED
    ok = (Released != Nil);         /* the read overtakes the write of the lock */
    Lock = false;
#else
    Lock = false;                                              /* LockLeave: Swap */
    ok = (Released != Nil);
#endif
#ifdef NO_RECHECK
    ok = false;
#endif
    if
    :: ok -> LockTry()
    :: else
    fi;
    if
    :: ok
    :: else -> break
    fi
  od
}

inline Release(sp) {
#ifdef RELEASE_ENTERS
  atomic { !Lock -> Lock = true; ok = true };
#else
  LockTry();
#endif
  if
  :: ok ->
    FreeRunAdd(sp);
    ShardLeave()
  :: else ->
    do
    :: n = Released;
      Next[sp] = n;
      atomic {                                                 /* CompareAndSwap */
        if
#ifdef PUSH_BY_STORE
        :: true -> Released = sp; break
#else
        :: Released == n -> Released = sp; break
#endif
        :: else
        fi
      }
    od;
#ifndef NO_SECOND_TRY
    LockTry();
    if
    :: ok -> ShardLeave()
    :: else
    fi
#endif
  fi
}

/* TakeOf: takes any free span, or none. */
inline TakeOf() {
  rounds--;
#ifdef TAKE_ENTERS
  atomic { !Lock -> Lock = true; ok = true };
#else
  LockTry();
#endif
  if
  :: ok ->
    atomic {
      own = Nil;
      if
      :: Kind[0] == 0 -> own = 0
      :: Kind[1] == 0 -> own = 1
      :: Kind[2] == 0 -> own = 2
      :: else
      fi;
      if
      :: own != Nil -> Kind[own] = 1
      :: else
      fi
    };
    ShardLeave()
  :: else
  fi
}

proctype Thread(byte own; byte rounds) {
  byte s, n;
  bool ok;
  do
  :: own != Nil ->
    Kind[own] = 2;
    Release(own);
    atomic { own = Nil; s = 0; n = 0; ok = false }
  :: own == Nil && rounds > 0 -> TakeOf(); atomic { s = 0; n = 0; ok = false }
  :: own == Nil && rounds == 0 -> break
  od;
  Through++;
  goto over;
stop:
end_stop:
  false;
over:
  skip
}

init {
  atomic {
    Kind[0] = 1; Kind[1] = 1; Kind[2] = 1;
    run Thread(0, Rounds); run Thread(1, Rounds); run Thread(2, 0)
  };
  if
  :: Through == 3 ->
    d_step {
      Law(0, !Lock && !Stopped);
      Law(1, Released == Nil);
      Law(3, Kind[0] == 0 && Kind[1] == 0 && Kind[2] == 0)
    }
  :: timeout -> Law(4, Stopped && Lock && Through == 2)
  fi
}
