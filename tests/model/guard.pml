/* Pages that become inaccessible, and threads that read all blocks.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.GuardPages
 *     GuardPagesHold: PurgeHold FetchAdd GuardReaders LoadAcquire GuardChanges OsWaitMs GuardChanges
 *     GuardPagesLetGo: FetchAdd GuardReaders PurgeLetGo
 *     GuardPagesForbid: AwaitCommits FetchAdd GuardChanges LoadAcquire GuardReaders Forbid FetchAdd
 *       GuardChanges
 *     Forbid: FetchAdd PurgesUnderWay LoadAcquire PurgesHeld OsGuard FetchAdd PurgesUnderWay
 *     DebugPlaceIsOpen: IsCurrent
 *     DebugBlockClose: DebugLockEnter IsCurrent:= GuardPagesForbid IsCurrent:= DebugLockLeave
 *     DebugBlockOpen: IsCurrent ReleaseFence IsCurrent:=
 *
 * Two pages: one of contents, which has IsCurrent (under the lock, which one thread here stands for),
 * and the last one of a new span, which a reader may know as part of a block from before.
 *
 * Threads: two readers, one of which nests its calls; two that forbid a page and open it again
 * (OsCommit), one for each page, each of which may stop between its look and OsGuard, until no reader is left or for
 * ever: paused by a report, or not scheduled. A reader ends its wait without an answer only when all
 * threads that it waits for have stopped so: the model's word for 100 ms.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 readable  a page that a reader found accessible stays so until it lets go
 *                                     FORBID_BLIND, HOLD_BLIND, LOOK_FIRST, WAIT_FIRST, CHANGE_EARLY,
 *                                     READERS_AS_FLAG, SIGN_LATE
 *   2 bounded   no reader waits for ever, also when a thread has stopped
 *                                     WAIT_FOR_EVER, REFUSED_KEPT
 *   3 counts    in the end no reader is counted, and only stopped threads are
 *                                     LET_GO_BY_STORE
 */

#ifndef Rounds
#define Rounds 2
#endif

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

byte Readers;                       /* Debug.GuardReaders */
byte Changes;                       /* Debug.GuardChanges */
bool IsCurrent = true;              /* TSpan.IsCurrent of the page of contents */
bool Forbidden[2];                  /* the system's: the page is inaccessible */

byte Reading[2];                    /* ghost: readers that found the page accessible */
byte Stopped;                       /* ghost: threads that stand still in GuardPagesForbid */
byte Through;                       /* ghost: readers at the end */

inline GuardPagesHold() {
#ifdef WAIT_FIRST
  (Changes == Stopped);   /* the read overtakes the write of the count */
#endif
#ifdef READERS_AS_FLAG
  Readers = 1;
#else
  Readers++;                                                   /* FetchAdd */
#endif
#ifdef HOLD_BLIND
  skip;
#elif defined(WAIT_FOR_EVER)
  (Changes == 0);
#elif !defined(WAIT_FIRST)
  (Changes == Stopped);                              /* LoadAcquire, OsWaitMs */
#endif
}

inline GuardPagesLetGo() {
#ifdef READERS_AS_FLAG
  Readers = 0;
#elif defined(LET_GO_BY_STORE)
  n = Readers;
  d_step { Readers = n - 1; n = 0 }
#else
  Readers--;                                                   /* FetchAdd */
#endif
}

/* An inaccessible page is skipped: that of contents by its sign; the other one was found in a block
   from before. */
inline ReadIfOpen() {
  if
  :: atomic { IsCurrent -> Reading[0]++ };                     /* DebugPlaceIsOpen */
    d_step { Law(1, !Forbidden[0]); Reading[0]-- }
  :: !IsCurrent
  :: atomic { !Forbidden[1] -> Reading[1]++ };
    d_step { Law(1, !Forbidden[1]); Reading[1]-- }
  :: Forbidden[1]
  fi
}

/* The thread stands still until no reader is left, or for ever. */
inline MayStop() {
  if
  :: true
  :: Stopped++;
end_stopped:
    atomic { Readers == 0 -> Stopped-- }
  fi
}

inline GuardPagesForbid() {
#ifdef LOOK_FIRST
  n = Readers;                      /* the read overtakes the write of the count */
  Changes++;
#else
  Changes++;                                                   /* FetchAdd */
  n = Readers;                                                 /* LoadAcquire */
#endif
#ifdef FORBID_BLIND
  n = 0;
#endif
  if
  :: n == 0 ->                                                 /* Forbid; for PurgesHeld see held.pml */
    MayStop();
#ifdef CHANGE_EARLY
    Changes--;
#endif
    d_step { Forbidden[page] = true; Law(1, Reading[page] == 0) }; /* OsGuard */
#ifndef CHANGE_EARLY
    Changes--;                                                 /* FetchAdd */
#endif
    isForbidden = true
  :: else ->
#ifdef REFUSED_KEPT
    skip;
#else
    Changes--;
#endif
    isForbidden = false
  fi;
  n = 0
}

inline DebugBlockClose() {
#ifndef SIGN_LATE
  IsCurrent = false;
#endif
  GuardPagesForbid();
#ifdef SIGN_LATE
  IsCurrent = false;
#endif
  if
  :: isForbidden
  :: !isForbidden -> IsCurrent = true
  fi
}

inline DebugBlockOpen() {
  Forbidden[page] = false;                                     /* OsCommit */
  IsCurrent = true
}

proctype Reader(bool isNesting) {
  byte n, rounds = Rounds;
  do
  :: rounds > 0 ->
    GuardPagesHold();
    if
    :: isNesting -> GuardPagesHold(); ReadIfOpen(); GuardPagesLetGo()
    :: else
    fi;
    ReadIfOpen();
    GuardPagesLetGo();
    rounds--
  :: rounds == 0 -> break
  od;
  Through++
}

proctype Forbidder(byte page) {
  byte n, rounds = Rounds;
  bool isForbidden;
  do
  :: rounds > 0 ->
    if
    :: page == 0 -> DebugBlockClose(); DebugBlockOpen()
    :: page == 1 -> GuardPagesForbid(); Forbidden[page] = false /* OsCommit */
    fi;
    rounds--
  :: rounds == 0 -> break
  od
}

init {
  atomic { run Reader(false); run Reader(true); run Forbidder(0); run Forbidder(1) };
  timeout ->
    Law(2, Through == 2);
    Law(3, Readers == 0 && Changes == Stopped)
}
