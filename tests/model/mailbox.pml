/* Requests of tools outside of the process, taken by threads that the bell starts.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.Mailbox
 *     Answer: LivePageWrite
 *     Serve: LoadAcquire Taken LoadAcquire Requested LoadAcquire Answered FetchAdd Postponed
 *       CompareAndSwap Taken Answer StoreRelease Answered
 *
 * The tool's side is TMailbox of tools/lanemm/ToolMailbox.pas: BecomeClient, TakeBack, Ask.
 *
 * Threads: two tools, each with two requests, which may lose patience at any moment; two threads that
 * answer, which rings start at any moment and as often, and which may find a lock taken.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 own       a tool that sees its number as answered reads the answer to its words    ANSWERED_EARLY
 *   2 once      a request is obeyed at most once                                         TAKE_BY_STORE
 *   3 whole     words are not written while an answerer reads them     WORDS_LATE, TAKE_BACK_BLIND
 */

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

byte Client;                        /* its field of Mailbox */
byte Requested, Taken, Answered;    /* their fields of Mailbox */
byte Postponed;                     /* Mailbox.Postponed, up to 1 */
byte Words, Reply;                  /* Mailbox.Words and Answer: the number of the request */
bool Writing;                       /* ghost: a tool writes Words */
bool Obeyed[8];                     /* ghost: requests that were obeyed */
byte Through;                       /* ghost: tools at the end */

/* Answer: the words are copied, obeyed, answered. */
inline Answer(n) {
  Law(3, !Writing);
  own = Words;
  atomic {
    Law(2, !Obeyed[own]);
    Obeyed[own] = true
  };
  Reply = own
}

/* Serve */
active [2] proctype Answerer() {
  byte taken, requested, own;
  do
  :: Through == 2 -> break
  :: true ->
    taken = Taken;                                             /* LoadAcquire */
    requested = Requested;                                     /* LoadAcquire */
    if
    :: requested == taken
    :: requested != taken && taken != Answered                 /* LoadAcquire */
    :: requested != taken && taken == Answered ->
      if
      :: Postponed = 1                                         /* FetchAdd */
      :: atomic {
          if
#ifdef TAKE_BY_STORE
          :: true -> Taken = requested; own = 1
#else
          :: Taken == taken -> Taken = requested; own = 1      /* CompareAndSwap */
          :: else -> own = 0
#endif
          fi
        };
        if
        :: own == 1 ->
#ifdef ANSWERED_EARLY
          Answered = requested;
#endif
          Answer(requested);
          Answered = requested                                 /* StoreRelease */
        :: else
        fi
      fi
    fi;
    atomic { taken = 0; requested = 0; own = 0 }
  od
}

/* TakeBack, as Ask begins: what was not taken is taken back; else its answer is awaited. */
inline TakeBack() {
  requested = Requested;
  taken = Answered;
#ifndef TAKE_BACK_BLIND
  if
  :: taken == requested
  :: else ->
    atomic {
      if
      :: Taken == taken -> Taken = requested; mine = true
      :: else -> mine = false
      fi
    };
    if
    :: mine -> Answered = requested
    :: else -> Answered == Taken
    fi
  fi;
#endif
  atomic { taken = 0; requested = 0; mine = false }
}

active [2] proctype Tool() {
  byte rounds = 2, number, requested, taken;
  bool mine;
  do
  :: rounds > 0 ->
    rounds--;
    atomic { Client == 0 -> Client = _pid + 1 };               /* BecomeClient */
    TakeBack();
    number = Requested + 1;
#ifdef WORDS_LATE
    Requested = number;
#endif
    Writing = true;
    Words = number;
    Writing = false;
#ifndef WORDS_LATE
    Requested = number;
#endif
    if
    :: Answered == number -> Law(1, Reply == number)
    :: true                                                    /* out of patience */
    fi;
    atomic { number = 0; Client = 0 }
  :: else -> break
  od;
  Through++
}
