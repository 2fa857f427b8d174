/* Timed reports: the thread that writes them, changes of their period, the end of the program.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.TimedReports
 *     WriteInTurn: StoreRelease CompareAndSwap ReporterState StoreRelease ReporterState OsWakeAll
 *       ReporterState
 *     EndsForRights: CompareAndSwap ReporterState
 *     RunReporter: EndsForRights LoadAcquire ReporterChanges LoadAcquire OsWait ReporterChanges OsWaitMs
 *       ReporterChanges WriteInTurn
 *     StartItsThread: RunReporter
 *     StartReporter: CompareAndSwap ReporterState StartItsThread CompareAndSwap ReporterState
 *     TimedReportsApply: StoreRelease FetchAdd ReporterChanges OsWake ReporterChanges StartReporter
 *     TimedReportsEnd: LoadAcquire ReporterState OsWaitMs ReporterState CompareAndSwap ReporterState
 *     TimedReportsSeen: LoadAcquire ReporterState StartReporter
 *
 * The period is a setting: 0 is none. OsWait: the system compares the word and parks in one step; it may
 * also return for no reason; OsWaitMs also after the time.
 *
 * Threads: one that changes the period, one that samples, the reporter that either starts, and the end
 * of the program, which may come at any moment, while the others still run.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 quiet     after the end no report is written             END_BLIND, END_HALF, WRITE_BLIND
 *   2 one       one reporter at most is started                START_BY_STORE
 *   3 woken     no reporter waits for ever while there is a period   PERIOD_FIRST, CHANGE_SILENT
 *   4 final     what the end has written stays                 REFUSE_BY_STORE
 */

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

#define NotStarted 0
#define Waiting 1
#define Writing 2
#define Ended 3
#define Refused 4

byte State;                         /* Observe.ReporterState */
byte Changes;                       /* Observe.ReporterChanges */
bool Period;                        /* Settings.Values[opEvery] <> 0 */
bool Parked;                        /* the system's: the reporter sleeps without a timer */
bool IsOver;                        /* ghost: TimedReportsEnd has returned */
bool HasEnded;                      /* ghost: it has written Ended */
byte Reporters;                     /* ghost */

inline WriteInTurn() {
#ifdef WRITE_BLIND
  ok = true; State = Writing;
#else
  d_step {
    ok = (State == Waiting);
    if
    :: ok -> State = Writing
    :: else
    fi
  };                                                           /* CompareAndSwap */
#endif
  if
  :: ok ->
    Law(1, !IsOver);                                           /* WriteReport begins */
    Law(1, !IsOver);                                           /* and ends */
    State = Waiting                                            /* StoreRelease, OsWakeAll */
  :: else
  fi
}

/* RunReporter */
proctype Reporter() {
  byte changes;
  bool period, ok;
  do
  :: atomic {                                                  /* EndsForRights */
      State == Waiting -> State = Refused
    };
    break
  :: true ->
#ifdef PERIOD_FIRST
    period = Period;
    changes = Changes;
#else
    changes = Changes;                                         /* LoadAcquire */
    period = Period;
#endif
    if
    :: !period ->
      atomic {                                                 /* OsWait */
        if
        :: Changes == changes -> Parked = true
        :: else
        fi
      };
end_parked:
      !Parked
    :: period                                                  /* OsWaitMs, or it is due */
    :: period -> WriteInTurn()
    fi;
    atomic { changes = 0; period = false; ok = false }
  od
}

inline StartReporter() {
#ifdef START_BY_STORE
  ok = (State == NotStarted);
  if
  :: ok -> State = Waiting
  :: else
  fi;
#else
  d_step {
    ok = (State == NotStarted);
    if
    :: ok -> State = Waiting
    :: else
    fi
  };                                                           /* CompareAndSwap */
#endif
  if
  :: ok ->
    atomic { Reporters++; Law(2, Reporters == 1) };
    if
    :: run Reporter()                                          /* StartItsThread */
    :: true ->                                                 /* it cannot start */
#ifdef REFUSE_BY_STORE
      State = Refused
#else
      d_step {
        if
        :: State == Waiting -> State = Refused
        :: else
        fi
      }                                                        /* CompareAndSwap */
#endif
    fi
  :: else
  fi
}

/* TimedReportsApply, one thread at a time. */
proctype Changer() {
  byte rounds = 3;
  bool ok;
  do
  :: rounds > 0 ->
    rounds--;
    Period = !Period;
#ifndef CHANGE_SILENT
    Changes++;                                                 /* FetchAdd */
    Parked = false;                                            /* OsWake */
#endif
    if
    :: Period -> StartReporter()
    :: else
    fi
  :: else -> break
  od
}

/* TimedReportsSeen */
proctype Sampler() {
  bool ok;
  if
  :: Period && State == NotStarted -> StartReporter()
  :: true
  fi
}

/* TimedReportsEnd */
proctype Ender() {
  byte state;
  bool ok;
  do
  :: true ->
    state = State;                                             /* LoadAcquire */
    if
#ifndef END_BLIND
    :: state == Writing                                        /* OsWaitMs */
#endif
    :: state >= Ended -> break
#ifdef END_HALF
    :: state == NotStarted -> break
#endif
    :: else ->
      d_step {
        ok = (State == state);
        if
        :: ok -> State = Ended; HasEnded = true
        :: else
        fi
      };                                                       /* CompareAndSwap */
      if
      :: ok -> break
      :: else
      fi
    fi
  od;
  IsOver = true
}

init {
  atomic { run Changer(); run Sampler(); run Ender() };
  timeout -> Law(3, !(Parked && Period && Reporters > 0));
  Law(4, !HasEnded || State == Ended)
}
