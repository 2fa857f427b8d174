/* Plain words that one thread writes and another reads without a lock, on a processor that reorders
 * its accesses, as AArch64 does.
 *
 * Mirrors, with the steps that steps.sh compares, one here for each access to memory that two
 * threads use:
 *   LaneMM.Span
 *     SpanFormat: FreeList:= Used:= IsCurrent:= ShelvedPages:= Owner:= ReleaseFence
 *     SpanPut: Link:= FreeList FreeList:= ReleaseFence Used- Used
 *     SpanRaise: Used+ ReleaseFence
 *     InUse: AcquireFence Used
 *     SpanIsEmpty: InUse AcquireFence RemoteFreedCount
 *   LaneMM.Heap
 *     HandOver: ReleaseFence SetOwner PushTaken
 *     HeapClaim: LockTry QueueTaken OwnerOf AcquireFence QueueRemove LockLeave
 *   LaneMM.Large
 *     LargeFormat: Used:= ReleaseFence
 *   LaneMM.DebugSpans
 *     DebugSpanFormat: FreeList:= Used:= IsCurrent:= Owner:= ReleaseFence
 *     DebugBlockCount: AcquireFence
 *   LaneMM.DebugBlocks
 *     TakeFrom: Used+ FreeList FreeList:= State:= ReleaseFence
 *   LaneMM.Walk
 *     VisitArena: LoadAcquire Frontier AcquireFence
 *   LaneMM.Debug
 *     DebugStart: ReleaseFence ReleaseFence
 *   LaneMM.Blocks
 *     BlockMayBeDebug: AcquireFence
 *   LaneMM.BlockNotes
 *     NotesStart: ReleaseFence ReadNote
 *     ReadNote: AcquireFence
 *     NotedGet: AcquireFence
 *     NotedGetZero: AcquireFence
 *     NotedRealloc: AcquireFence
 *   LaneMM.Growth
 *     GrowthRealloc: AcquireFence
 *     GrowthGet: AcquireFence
 *     GrowthGetZero: AcquireFence
 *     GrowthFree: AcquireFence
 *     GrowthFreeSize: AcquireFence
 *   LaneMM.Erase
 *     EraseGet: AcquireFence
 *     EraseNewRealloc: AcquireFence
 *   LaneMM.Watch
 *     IsInstalled: LoadAcquire AcquireFence LoadAcquire
 *     SetEntries: IsInstalled FetchAdd ReleaseFence FetchAdd
 *     WatchFrees: ReleaseFence
 *   LaneMM.Sampler
 *     IsDue: AcquireFence
 *   LaneMM.Samples
 *     SamplesRemove: AcquireFence LoadAcquire StoreRelease
 *     SamplesVisit: LoadAcquire LoadAcquire AcquireFence LoadAcquire
 *   LaneMM.LivePage
 *     LivePageWrite: LoadAcquire CompareAndSwap StoreRelease
 *
 * Memory: a plain write waits in a buffer, and the writes of a buffer reach memory in any order, but
 * those to one word in their own. A fence waits until the buffer is empty. Two reads take place in
 * any order unless a fence stands between them, and so does a read before a write. That is weaker
 * than AArch64, which keeps the order of accesses that depend on each other.
 *
 * Threads: of each of three protocols one that writes and one that reads.
 *   a sign for contents: the kind of a span and its record; the number of debug blocks and the state
 *     of the last one; a hook or an entry of the memory manager and the tables that it uses
 *   the end of a span: the owner reads its last block and frees it, another thread sweeps
 *   a number before and after: the totals of the status page, the samples, the installed entries
 *
 * Laws, each with a mutation (-D) that breaks it; run.sh expects that law to fail:
 *   1 contents  who sees the sign sees the contents   SIGN_UNFENCED, LOOK_UNFENCED
 *   2 last use  the owner reads its block before another life of the span writes it
 *                                                     PUT_UNFENCED
 *   3 empty     a span is released only when no block is in use
 *                                                     EMPTY_UNFENCED
 *   4 whole     totals with one even number before and after them are of one moment
 *                                                     TOTALS_UNFENCED, FIRST_UNFENCED, LAST_UNFENCED
 */

#ifdef Only
#define Law(n, c) assert((n) != Only || (c))
#else
#define Law(n, c) assert(c)
#endif

/* Words, and the buffer of the thread that writes each. */
#define Contents 0
#define Sign 1
#define Used 2
#define Remote 3
#define Block 4
#define Sequence 5
#define Here 6
#define There 7
#define Words 8

byte Memory[Words];
byte Waiting[Words];
bool IsWaiting[Words];

bool InUse = true;                  /* ghost: the owner has not begun to free its last block */

inline Write(Word, Value) {
  atomic { !IsWaiting[Word]; Waiting[Word] = Value; IsWaiting[Word] = true }
}

proctype Drain(byte Word) {
end:
  do
  :: atomic { IsWaiting[Word]; Memory[Word] = Waiting[Word]; IsWaiting[Word] = false }
  od
}

/* ---------------------------------------------------------------- a sign for contents */

/* SpanFormat, LargeFormat, DebugSpanFormat: the record, then its kind. SpanRaise: Used, then Bias. TakeFrom: the state, then the
   number of blocks. NotesStart, DebugStart, SetEntries, WatchFrees: the tables, then the hook. HandOver: that the span
   is in no queue, then its owner. */
proctype Publisher() {
  Write(Contents, 1);
#ifndef SIGN_UNFENCED
  (!IsWaiting[Contents]);                                      /* ReleaseFence */
#endif
  Write(Sign, 1)
}

/* VisitArena; DebugBlockCount; ReadNote, BlockMayBeDebug; the entries NotedGet, NotedGetZero,
   InUse, NotedRealloc, GrowthRealloc, GrowthGet, GrowthGetZero, GrowthFree, GrowthFreeSize, EraseGet,
   EraseNewRealloc; IsDue, SamplesRemove; HeapClaim. */
proctype Looker() {
  byte Seen, Found;
#ifdef LOOK_UNFENCED
  Found = Memory[Contents];
  Seen = Memory[Sign];
#else
  Seen = Memory[Sign];
  Found = Memory[Contents];                                    /* AcquireFence */
#endif
  Law(1, Seen == 0 || Found == 1)
}

/* ---------------------------------------------------------------- the end of a span */

/* Two blocks: one that another thread has freed, which SpanCollect counts first, and one with the
   contents 1, which the owner reads and frees. */
proctype Owner() {
  byte Read;
  Memory[Remote] = 0;                                          /* Swap, a full barrier */
  Write(Used, 1);                                              /* SpanPut of the first block */
#ifndef PUT_UNFENCED
  Read = Memory[Block];
  (!IsWaiting[Used]);                                          /* ReleaseFence */
#endif
  atomic { InUse = false; Write(Used, 0) }                     /* SpanPut */
#ifdef PUT_UNFENCED
  Read = Memory[Block];
#endif
  Law(2, Read == 1)
}

proctype Sweeper() {
  byte Count, Length;
#ifdef EMPTY_UNFENCED
  Length = Memory[Remote];
  Count = Memory[Used];
#else
  Count = Memory[Used];                                        /* SpanIsEmpty */
  Length = Memory[Remote];                                     /* AcquireFence, LoadAcquire */
#endif
  if
  :: Count == Length -> Law(3, !InUse); Memory[Block] = 2  /* the next life of the span */
  :: else
  fi
}

/* ---------------------------------------------------------------- a number before and after */

/* LivePageWrite. The samples likewise: Block is Busy while their other fields are written. SetEntries
   has FetchAdd before and after the entries. */
proctype Teller() {
  Memory[Sequence] = 1;                                        /* CompareAndSwap */
  Write(Here, 1);
  Write(There, 1);
#ifndef TOTALS_UNFENCED
  (!IsWaiting[Here] && !IsWaiting[There]);                     /* StoreRelease */
#endif
  Write(Sequence, 2)
}

/* A tool, SamplesVisit, and IsInstalled, which SetEntries calls, too. */
proctype Reader() {
  byte First, Last, One, Other;
#ifdef FIRST_UNFENCED
  One = Memory[Here];
  First = Memory[Sequence];
#else
  First = Memory[Sequence];
  One = Memory[Here];                                          /* LoadAcquire */
#endif
#ifdef LAST_UNFENCED
  Last = Memory[Sequence];
  Other = Memory[There];
#else
  Other = Memory[There];
  Last = Memory[Sequence];                                     /* AcquireFence */
#endif
  Law(4, First != Last || First == 1 || One == Other)
}

init {
  byte Word;
  atomic {
    Memory[Used] = 2;
    Memory[Remote] = 1;
    Memory[Block] = 1;
    for (Word : 0 .. Words - 1) { run Drain(Word) }
    run Publisher();
    run Looker();
    run Owner();
    run Sweeper();
    run Teller();
    run Reader()
  }
}
