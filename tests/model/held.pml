/* What is given back once the system has refused memory, and those that read what others free.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.Arena
 *     NoteRefusal: CompareAndSwap Refused OsUnchargeLater
 *   LaneMM.Os
 *     OsUnchargeLater: CompareAndSwap Refused
 *   LaneMM.Shards
 *     IsHeld: LoadAcquire PurgesHeld
 *     Purge: LoadAcquire Refused IsHeld OsUnchargeLater
 *   LaneMM.Purge
 *     PurgeHold: LockRecover FetchAdd PurgesHeld AwaitPurges
 *     AwaitPurges: LoadAcquire PurgesUnderWay OsWaitMs PurgesUnderWay
 *     PurgeLetGo: FetchAdd PurgesHeld
 *
 * Threads: one is refused memory at any time, and then gives back the cold run, under the lock of its
 * shard; one purges its warm run and makes it cold; one reads both, again and again; one takes what
 * is cold, uses it, and releases it. The reader waits without a bound here.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 readable  nobody gives back what somebody reads         HOLD_SILENT, AWAIT_NOTHING
 *   2 usable    who uses a run has committed it               NOTE_LATE
 *   3 whole     after a purge that a reader held, a trim gives back again   HELD_FORGOTTEN
 */

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

#define None 0
#define Once 1
#define Given 2

byte Refused;                       /* Process.Refused */
byte PurgesHeld;                    /* Process.PurgesHeld */
byte PurgesUnderWay;                /* Process.PurgesUnderWay */
bool Lock;                          /* of the shard */
bool Cold[2];                       /* the run is in the shard's bins of cold ones */
bool Charged[2] = true;             /* the system has committed it */
bool Reading;                       /* ghost: a reader is between PurgeHold and PurgeLetGo */
bool Left;                          /* ghost: a purge was held, and no trim came after it */
byte Through;                       /* ghost: threads at the end */

inline GiveBack(r) {
  atomic { Law(1, !Reading); Charged[r] = false }            /* OsUncharge */
}

inline OsUnchargeLater() {
  atomic { if :: Refused == Given -> Refused = Once :: else fi }
}

/* Purge: OsPurge alone leaves the run charged, and is no step. */
inline Purge(r) {
  isHeld = false;
  seen = Refused;                                              /* LoadAcquire */
  if
  :: seen != None ->
    isHeld = PurgesHeld > 0;                                   /* IsHeld */
    if
    :: isHeld ->
      Left = true;
#ifndef HELD_FORGOTTEN
      OsUnchargeLater()
#endif
    :: else -> GiveBack(r)
    fi
  :: else
  fi;
  seen = 0; isHeld = false
}

inline Enter() { atomic { !Lock -> Lock = true } }
inline Leave() { Lock = false }

/* ShardsUncharge, of the trim after a refusal. */
inline Trim() {
  atomic {
    if
    :: Refused == Once -> Refused = Given; Left = false; isFirst = true
    :: else -> isFirst = false
    fi
  };
  if
  :: isFirst ->
    PurgesUnderWay++;
    Enter();
    if :: Cold[0] -> Purge(0) :: else fi;
    if :: Cold[1] -> Purge(1) :: else fi;
    Leave();
    PurgesUnderWay--
  :: else
  fi
}

proctype RefusedThread() {
  byte seen;
  bool isHeld, isFirst;
#ifdef NOTE_LATE
  Enter();
  if :: Cold[0] -> GiveBack(0) :: else fi;
  Leave();
#endif
  atomic { if :: Refused == None -> Refused = Once :: else fi };   /* NoteRefusal */
  Trim();
  OsUnchargeLater();                                           /* it is refused again */
  Trim();
  Through++
}

proctype Purger() {
  byte seen;
  bool isHeld;
  PurgesUnderWay++;                                            /* PurgeShard */
  Purge(1);
  Enter();
  Cold[1] = true;                                              /* ShardsReleaseZero */
  Leave();
  PurgesUnderWay--;
  Through++
}

proctype Reader() {
  byte rounds = 2;
  do
  :: rounds > 0 ->
#ifndef HOLD_SILENT
    PurgesHeld++;                                              /* PurgeHold */
#endif
#ifndef AWAIT_NOTHING
    PurgesUnderWay == 0;                                       /* AwaitPurges */
#endif
    Reading = true;
    Reading = false;
#ifndef HOLD_SILENT
    PurgesHeld--;                                              /* PurgeLetGo */
#endif
    rounds--
  :: else -> break
  od;
  Through++
}

/* ShardsTake of a cold run, OsUse, and ShardsReleaseUnused. */
proctype Taker() {
  byte r;
  do
  :: r < 2 ->
    Enter();
    if
    :: Cold[r] ->
      Cold[r] = false;
      Leave();
      if
      :: Refused != None -> Charged[r] = true                /* OsUse */
      :: else
      fi;
      Law(2, Charged[r]);
      Enter();
      Cold[r] = true
    :: else
    fi;
    Leave();
    r++
  :: else -> break
  od;
  Through++
}

init {
  Cold[0] = true;
  atomic { run RefusedThread(); run Purger(); run Reader(); run Taker() };
  Through == 4;
  Law(3, !Left || Refused == Once)
}
