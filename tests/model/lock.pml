/* The lock of the slow paths: spin, then park.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.Lock
 *     LockEnter: LockRecover CompareAndSwap State LockWait
 *     LockTry: LockTryAgain FetchAdd
 *     LockTryAgain: LockRecover LoadAcquire State CompareAndSwap State
 *     LockWait: FetchAdd LockPark
 *     LockPark: LoadAcquire State CompareAndSwap State Swap State OsWait State
 *     LockLeave: Swap State OsWake State
 *
 * OsWait: the system compares the word and parks in one step; it may also return for no reason.
 * OsWake wakes one thread that is parked, if there is one. LockRecover is for child processes.
 *
 * Threads: three that enter and leave, or try, again and again, as long as they like.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 alone     one thread at a time has the lock              ENTER_BY_STORE
 *   2 woken     no thread is parked while the lock is free and every other thread is outside or parked
 *                                                              WOKEN_AS_NEW, WAIT_BLIND, LEAVE_SILENT
 */

#define Free 0
#define Taken 1
#define TakenWithWaiters 2

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

byte State;                         /* TLock.State */
bool Parked[4];                     /* the system's: threads asleep on State */
byte Inside;                        /* ghost */

inline CompareAndSwap() {
#ifdef ENTER_BY_STORE
  ok = (State == Free);
  if
  :: ok -> State = Taken
  :: else
  fi
#else
  d_step {
    ok = (State == Free);
    if
    :: ok -> State = Taken
    :: else
    fi
  }
#endif
}

inline OsWait() {
  atomic {
    if
#ifdef WAIT_BLIND
    :: true -> Parked[me] = true
#else
    :: State == TakenWithWaiters -> Parked[me] = true
    :: State != TakenWithWaiters
#endif
    fi
  };
end_parked:
  if
  :: !Parked[me]
  :: atomic { Parked[me] && spurious -> Parked[me] = false; spurious = false }
  fi
}

inline OsWake() {
  atomic {
    if
    :: Parked[1] -> Parked[1] = false
    :: Parked[2] -> Parked[2] = false
    :: Parked[3] -> Parked[3] = false
    :: !Parked[1] && !Parked[2] && !Parked[3]
    fi
  }
}

inline LockEnter() {
  CompareAndSwap();
  if
  :: ok
  :: else ->                        /* LockWait, LockPark */
    do                              /* the spin, any number of turns */
    :: State == Free -> CompareAndSwap(); if :: ok -> break :: else fi
    :: true -> break
    od;
    do
    :: ok -> break
    :: else ->
      d_step { ok = (State == Free); State = TakenWithWaiters };  /* Swap */
      if
      :: ok
      :: else ->
        OsWait();
#ifdef WOKEN_AS_NEW
        CompareAndSwap()            /* takes the lock as if nobody else were parked */
#endif
      fi
    od
  fi
}

inline LockLeave() {
  d_step { was = State; State = Free };                        /* Swap */
#ifndef LEAVE_SILENT
  if
  :: was == TakenWithWaiters -> OsWake()
  :: else
  fi
#endif
}

inline Use() {
  d_step { Inside++; Law(1, Inside == 1) };
  Inside--
}

proctype Thread(byte me) {
  byte was;
  bool ok;
  bool spurious = true;
  do
  :: LockEnter(); Use(); LockLeave(); atomic { was = 0; ok = false }
  :: ok = (State == Free);                                     /* LockTry, LockTryAgain */
     if :: ok -> CompareAndSwap() :: else fi;
    if
    :: ok -> Use(); LockLeave(); atomic { was = 0; ok = false }
    :: else
    fi
  :: break
  od
}

init {
  atomic { run Thread(1); run Thread(2); run Thread(3) };
  timeout -> Law(2, !Parked[1] && !Parked[2] && !Parked[3])
}
