/* The table of backtraces, and a thread that sweeps it.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.BacktraceTable
 *     ReadNode: AcquireFence LoadAcquire AcquireFence
 *
 * One list of nodes, which are backtraces of one frame: its key stands for the return address. A
 * number is a node and its life.
 *
 * Threads: two that keep a backtrace for their block, one of them Rounds times, maybe the same again, which
 * it has the number of; one that sweeps.
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 true      a number that reads as a backtrace was handed out for that one
 *                                     LIFE_LATE, READ_ONCE
 *   2 kept      the number of a block reads as its backtrace if no sweep began between the look at
 *               Sweeps and the write to the block
 *                                     KILL_BLIND, LOOK_ONCE, CACHE_KEPT, MARK_LATE
 */

#ifndef Rounds
#define Rounds 2
#endif
#ifndef Turns
#define Turns 1
#endif
#define Nodes 2
#ifndef Keys
#define Keys 2
#endif

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

byte Return[Nodes + 1];             /* 0: none */
byte Life[Nodes + 1];
byte Next[Nodes + 1];
bool Marks[Nodes + 1];
byte Head;
byte Free;                          /* the first free node */
byte Count;                         /* nodes that were ever used */
bool Sweeping;
byte Sweeps;

/* The blocks: number of the backtrace. */
byte BlockNode[2];
byte BlockLife[2];
byte BlockKey[2];                   /* ghost: the backtrace */
bool IsSafe[2];                     /* ghost: law 2 holds for it */

/* Sets index: a node, or 0. The stack of free ones is that of stack.pml. */
inline TakeNode() {
  atomic {
    index = Free;                                              /* PopFree */
    if
    :: index != 0 -> Free = Next[index]
    :: index == 0 && Count < Nodes -> Count++; index = Count   /* TakeUnused */
    :: else
    fi
  }
}

inline Mark(node, life) {
  if
  :: node != 0 && Life[node] == life -> Marks[node] = true     /* SetBit */
  :: else
  fi
}

/* Sets index and life: the number of the node with this key. */
inline FindNode() {
  index = Head;                                                /* LoadAcquire */
  left = 3;
  do
  :: index == 0 || left == 0 -> index = 0; break
  :: else ->
    if
    :: Return[index] == key ->
      life = Life[index];
#ifndef MARK_LATE
      if
      :: Sweeping -> Mark(index, life)
      :: else
      fi;
#endif
#ifdef LOOK_ONCE
      break
#else
      next = Return[index];                                    /* ReadNode */
      if
      :: next == key && Life[index] == life -> break
      :: else
      fi
#endif
    :: else
    fi;
    index = Next[index];
    left--
  od
#ifdef MARK_LATE
  ;
  if
  :: index != 0 && Sweeping -> Mark(index, life)
  :: else
  fi
#endif
}

/* Sets index and life: the number of the backtrace key; index 0: there is no node. */
inline BacktraceExtend() {
  FindNode();
  if
  :: index == 0 ->
    TakeNode();
    if
    :: index != 0 ->
      Return[index] = key;
      life = Life[index];
      if
      :: Sweeping -> Mark(index, life)
      :: else
      fi;
      atomic { Next[index] = Head; Head = index }              /* CompareAndSwap */
    :: else
    fi
  :: else
  fi
}

/* Reads the block of a thread as a report does. */
inline ReadNode(block) {
  atomic { index = BlockNode[block]; life = BlockLife[block]; key = BlockKey[block] };
  if
  :: index != 0 && Life[index] == life ->
    next = Return[index];                                      /* LoadAcquire */
#ifndef READ_ONCE
    if
    :: Life[index] != life -> next = 0
    :: else
    fi;
#endif
    d_step { Law(1, next == 0 || next == key); index = 0; life = 0; next = 0; key = 0 }
  :: else
  fi
}

proctype Thread(byte me, rounds) {
  byte key, index, life, next, left, look;
  byte kept, keptKey, keptLife, keptSweeps;
  do
  :: rounds > 0 ->
    select(key : 1 .. Keys);
    look = Sweeps;                                             /* DebugStack */
    if
#ifdef CACHE_KEPT
    :: kept != 0 && keptKey == key ->
#else
    :: kept != 0 && keptKey == key && keptSweeps == look ->
#endif
      index = kept;
      life = keptLife
    :: else ->
      keptSweeps = look;
      BacktraceExtend();
      kept = index; keptKey = key; keptLife = life
    fi;
    atomic {
      BlockNode[me] = index; BlockLife[me] = life; BlockKey[me] = key;
      IsSafe[me] = index != 0 && Sweeps == look;
      Law(2, !IsSafe[me] || Life[index] == life)
    };
    index = 0; life = 0; next = 0; left = 0; look = 0; key = 0;
    if
    :: me == 1 -> ReadNode(0)
    :: else
    fi;
    rounds--
  :: rounds == 0 -> break
  od
}

/* Law 2 for a block, but while a node that is marked meanwhile has no return address. */
#define Holds(b) (!IsSafe[b] || Return[BlockNode[b]] == BlockKey[b] && Life[BlockNode[b]] == BlockLife[b])

inline Kill() {
  next = Return[index];
  Return[index] = 0;                                           /* Swap */
#ifndef KILL_BLIND
  if
  :: Marks[index] -> Return[index] = next; isKilled = false
  :: else -> isKilled = true
  fi
#else
  isKilled = true
#endif
}

inline Unlink() {
  atomic {                                                     /* CompareAndSwap */
    if
    :: last == 0 && Head == index -> Head = after; isKilled = false
    :: else
    fi
  };
  if
  :: isKilled ->
    if
    :: last == 0 -> last = Head
    :: else
    fi;
    do
    :: Next[last] == index -> break
    :: else -> last = Next[last]
    od;
    Next[last] = after
  :: else
  fi
}

inline PushFree() {
  atomic { Next[index] = Free; Free = index }                  /* CompareAndSwap */
}

inline SweepList() {
  last = 0;
  index = Head;                                                /* LoadAcquire */
  do
  :: index == 0 -> break
  :: else ->
    after = Next[index];
    isKilled = false;
    if
    :: !Marks[index] -> Kill()
    :: else
    fi;
    if
    :: isKilled ->
      Unlink();
#ifndef LIFE_LATE
      Life[index]++;
#endif
      PushFree();
#ifdef LIFE_LATE
      Life[index]++;
#endif
      atomic { Law(2, Holds(0) && Holds(1)) }
    :: else -> last = index
    fi;
    index = after
  od
}

proctype Sweeper() {
  byte index, last, after, next, turns = Turns;
  bool isKilled;
  do
  :: turns > 0 && Count == Nodes && Free == 0 ->
    Sweeping = true;                                           /* CompareAndSwap */
    d_step { Marks[1] = false; Marks[2] = false };
    Sweeps++;                                                  /* FetchAdd */
    atomic { index = BlockNode[0]; next = BlockLife[0] };
    Mark(index, next);
    atomic { index = BlockNode[1]; next = BlockLife[1] };
    Mark(index, next);
    SweepList();
    Sweeping = false;                                          /* StoreRelease */
    turns--
  :: turns == 0 -> break
  :: timeout -> break
  od
}

init {
  atomic { run Thread(0, Rounds); run Thread(1, 1); run Sweeper() }
}
