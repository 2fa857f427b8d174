/* The copies of LaneMM in a process: libraries that come and go, while a thread looks for the copy that
 * holds a block.
 *
 * Mirrors, with the steps that steps.sh compares:
 *   LaneMM.Foreign
 *     Register: CompareAndSwap StoreRelease
 *     Leave: StoreRelease Limit StoreRelease Limit StoreRelease
 *     Holds: LoadAcquire Limit LoadAcquire
 *     FindCopy: LoadAcquire Holds AcquireFence LoadAcquire
 *   LaneMM.Arena
 *     ShowRange: StoreRelease RaiseTo Limit
 *
 * Threads: the keeper, a copy that stays, whose arena lies where that of an unloaded guest lay; three
 *   guests that register, show an arena and leave; a thread that frees a block of the keeper in a copy
 *   that has no part in this model. Two entries for all.
 *
 * Laws, each with mutations (-D) that break it; run.sh expects that law to fail:
 *   1 called    only the copy that holds the block is called   LIFE_BLIND, RANGE_KEPT, LEAVE_SILENT
 *   2 found     it is found
 */

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

#define Entries 2
#define Keeper 1
#define Block 3

byte Taken[Entries], Life[Entries], Calls[Entries], First[Entries], Limit[Entries];
bool FirstGuestIsGone, IsAllocated;

/* Takes a free entry; as many copies as that register at a time. */
inline Register(Copy) {
  if
  :: atomic { Taken[0] == 0 -> Taken[0] = 1; Entry = 0 }       /* CompareAndSwap */
  :: atomic { Taken[1] == 0 -> Taken[1] = 1; Entry = 1 }
  fi;
  Calls[Entry] = Copy;
  Life[Entry] = Life[Entry] + 1                                /* StoreRelease */
}

inline ShowRange(From, To) {
  First[Entry] = From;                                         /* StoreRelease */
  Limit[Entry] = To                                            /* RaiseTo */
}

inline Leave() {
#ifndef LEAVE_SILENT
  Life[Entry] = Life[Entry] + 1;                               /* StoreRelease */
#endif
#ifndef RANGE_KEPT
  Limit[Entry] = 0;                                            /* StoreRelease */
#endif
#ifdef LEAVE_SILENT
  Life[Entry] = Life[Entry] - 1;
#endif
  Taken[Entry] = 0                                             /* StoreRelease */
}

proctype Guest(byte Copy, From, To) {
  byte Entry;
  Register(Copy);
  ShowRange(From, To);
  Leave();
  if
  :: Copy == 2 -> FirstGuestIsGone = true
  :: else
  fi
}

proctype Keep() {
  byte Entry;
  FirstGuestIsGone;
  Register(Keeper);
  ShowRange(2, 4);
  IsAllocated = true
}

/* FindCopy, with Holds. */
proctype Finder() {
  byte Index, Seen, End, Called;
  bool IsFound;
  IsAllocated;
  for (Index : 0 .. Entries - 1) {
    Seen = Life[Index];                                        /* LoadAcquire */
    if
    :: Seen % 2 == 1 && !IsFound ->
      End = Limit[Index];                                      /* Holds: LoadAcquire */
      if
      :: Block < End && Block >= First[Index] ->               /* Holds: LoadAcquire */
        Called = Calls[Index];
        if
#ifdef LIFE_BLIND
        :: true ->
#else
        :: Life[Index] == Seen ->                              /* AcquireFence LoadAcquire */
#endif
          Law(1, Called == Keeper);
          IsFound = true
        :: else
        fi
      :: else
      fi
    :: else
    fi
  }
  Law(2, IsFound)
}

init {
  atomic {
    run Guest(2, 2, 4);
    run Guest(3, 7, 9);
    run Guest(4, 0, 1);
    run Keep();
    run Finder()
  }
}
