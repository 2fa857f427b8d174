/// The engine as data: its twelve records and their invariants.
//
// Records:    TSpan, THeap, TArena and TProcess are the design, TShard holds free memory; TRegion
//             is a part of some heaps, TBlock what a free block begins with. The others are parts
//             of these: TThreadNotes, TKeptRuns, TKeptCounts, TArenaRange, TBins.
// Owns:       Process, the engine's one mutable global. LaneMM.Hooks holds its calls upwards.
// Life of a span (TSpan.Remote and TSpan.Owner say where it stands):
//   free      a run of slices in the bins of its shard. Touched only under the shard's lock.
//   owned     Owner is a heap; Remote is a list, maybe empty. The owner alone uses the
//             owner fields; any thread may push on Remote (LaneMM.RemoteList).
//   given up  Owner is the heap that filled it, plus NoOwner; Remote says so, every block is in
//             use. The first thread that frees one of its blocks takes it over with one
//             compare-and-swap. Free blocks of such spans that it does not need for itself it
//             leaves to Process.Abandoned, see LaneMM.Heap.
//   Spans of ended threads belong to Process.Abandoned; the thread that holds its lock acts as
//   owner. A span without a block in use goes back to the arena: through its owner, or, out of an
//   idle owner's queue, through any thread that holds the owner's lock (HeapSweep).
// Free memory, from the nearest place to the farthest, who may touch it, and where it goes:
//   blocks: TSpan.FreeList        the owner; a call of GetMem takes the first
//           behind CarvedBytes    the owner; SpanRefill carves them for FreeList
//           TSpan.Remote          any thread adds; the owner takes all for FreeList
//           TSpan.ShelvedPages    a thread that shelves adds; the owner takes all for FreeList
//   slices: THeap.Runs            the heap's thread, or one that claims them; for the next block or
//                                 span of that thread; each sweep releases them
//           TShard.Released       any thread adds; the next one under the lock makes them warm
//           TShard.Warm           under the lock; for a span of any thread, or a purge: then cold
//           TShard.Cold           under the lock; for a span when no run is warm
//           above Frontier        any thread, by a compare-and-swap; for a span, the rest is cold
//           TSpan.SpareCount      the thread that resizes the block; for that block, then cold
//           Reserve, LastRun      see LaneMM.Limits; when memory has run out
// Field tags: const   written before publication, then read by any thread
//             owner   plain access by the owner only
//             shared  any thread, through LaneMM.Atomic
//             lock X  under that lock only
//             racy    plain access by any thread; the comment says why an old value does no harm
// Locks:      Heap (one of each heap) and Shard are never waited for: a thread that finds one taken
//             goes another way. Runs (one of each heap) likewise; its owner's side costs no atomic
//             operation, see LaneMM.KeptRuns. Of the rooms above: Debug, Sample and Leaks, see
//             docs/protocols.md.
unit LaneMM.Types;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Bits;

type
  PBlock = ^TBlock;
  PSpan = ^TSpan;
  PHeap = ^THeap;
  PArena = ^TArena;

  /// Why the run of a large block is not kept.
  TLargeTrait = (
    ltMoved,   //< its pages were moved here, see LaneMM.Large
    ltRegion   //< the block is in a queue of a region's heap, Owner less NoOwner
  );
  {$ifdef FPC} {$packset 1} {$endif} // as in Delphi
  /// All reasons of a block.
  TLargeTraits = set of TLargeTrait;
  {$ifdef FPC} {$packset default} {$endif}

  /// One record per slice of an arena; the record of a span's first slice describes the span.
  ///
  /// The first line is the owner's. A thread that frees blocks of another heap reads the second
  /// and writes the third: it takes neither the first nor the second from the owner. The fourth is
  /// empty, since processors fetch lines in pairs.
  ///
  /// Const and owner hold for one life of a span: the thread that takes a run formats its record
  /// anew. A walk (WalkSpans) reads records at any time; its answer is inexact while spans change.
  ///
  /// Always, for skBlocks: (Used - Bias + length(FreeList)) * BlockSize = CarvedBytes; Used - Bias
  /// counts the blocks on Remote and shelved ones, too.
  /// CarvedBytes <= BlockBytes. FreeList is odd (EndOfList) when it is empty. After corruption
  /// (LaneMM.Span) lost blocks count as used.
  /// Always, for skLarge: CarvedBytes and DivideMagic are 1, so a block begins only at Start. The
  /// span is given up; the thread that resizes or frees the block acts as owner.
  /// For skDebug the owner fields belong to debug/, under Debug.Lock, see LaneMM.DebugSpans.
  TSpan = record
    case Byte of
      0: (
        FreeList: NativeUInt;     //< owner   offset of the first free block, or EndOfList
        Origin: PByte;            //< owner   Start, repeated for the owner's line
        Used: Cardinal;           //< racy    blocks in use, plus Bias; written by the owner, whose
                                  //  free that makes it 0 takes the slow path. An old value is
                                  //  too high for a sweep, which leaves the span alone, and makes
                                  //  a sum inexact
        Bias: SmallInt;           //< racy    1: current, and kept when its last block is freed;
                                  //  below 0: queued, and the owner looks at it sooner, see
                                  //  LaneMM.Heap. Written by the owner, when it rises after Used.
                                  //  An old value is likewise too high
        ShelvedPages: Word;       //< racy    pages with shelved blocks, a bit each; written by the
                                  //  thread that shelves, cleared by the owner. An old value delays
                                  //  the owner, or misses a free block. See LaneMM.RemoteList
        Next: PSpan;              //< lock Heap or Shard or Debug or Sample  next in its list; set
                                  //  without it by the thread that releases or takes over the span
        Prev: PSpan;              //< lock Heap or Shard or Debug  previous in its list
        IsWarm: Boolean;          //< lock Shard  the free run may hold backed pages; set without it
                                  //  by the thread that releases the span
        IsZero: Boolean;          //< owner   the run held only zeros when it was taken; not of a
                                  //  large block whose program was promised zeros
        Traits: TLargeTraits;     //< owner   of a large block, see TLargeTrait
        IsShared: Boolean;        //< owner   other threads have freed blocks of it
        SpareCount: Cardinal;     //< owner   untouched slices at its end, not counted in Backed
        case Byte of
          0: (
            Younger: PSpan;         //< lock Shard  next warm run in the order of use
            Older: PSpan;           //< lock Shard  previous warm run
          );
          1: (
            ProductLimit: NativeUInt; //< owner   of a span of blocks: Offset * DivideMagic is less
                                    //  where one of the carved blocks begins
          );
          2: (
            Keeper: PHeap;          //< racy    of a large block: the heap whose thread took it and
                                    //  frees it without an atomic operation, or nil; a thread that
                                    //  reads another life's value fails to end this life
            IsHuge: Boolean;        //< owner   huge pages were requested for a large block
          );
      );
      1: (
        OwnerLine: TCacheLine;    //< padding other threads write below this line
        Owner: PHeap;             //< racy    the owning heap, maybe plus AwaitsFree; or NoOwner,
                                  //  of a span that was given up plus the heap that filled it; a
                                  //  thread that reads its own heap here owns the span, any other
                                  //  value may be old
        BlockSize: NativeUInt;    //< racy    usable bytes of a block. Only a large block changes it
                                  //  in use; a walk with the old value reports the old size
        DivideMagic: UInt64;      //< const   Offset * DivideMagic < DivideMagic: a block begins
        LinkKey: NativeUInt;      //< const   random, see TBlock.Link
        Start: PByte;             //< const   address of the first slice
        SliceCount: NativeUInt;   //< racy    slices of the run; of a free run written under Shard.
                                  //  Of a span in use it changes when a large block is resized: a
                                  //  walk with the old value may miss the span after it
        BlockBytes: Cardinal;     //< const   bytes of all blocks that the span can hold
        CarvedBytes: Cardinal;    //< racy    bytes of the blocks ever handed out or on FreeList;
                                  //  written by the owner, only grows while a block is in use
        Distance: Cardinal;       //< const   slices back to the first slice (skInner, skFreeEnd)
        Kind: TSpanKind;          //< racy    what this record stands for; stable while a block
                                  //  of the span is in use
        SizeClass: Byte;          //< const   index of the block size
        IsCurrent: Boolean;       //< racy    the heap allocates from it now; written by the owner.
                                  //  An old value costs one sweep; Retire makes up for a missed one
        Shard: Byte;              //< const   number of the shard that its slices belong to, for
                                  //  ever; 0 in a record that never was the first or last of a run
      );
      2: (
        ReadLines: array[0..1] of TCacheLine; //< padding the owner's free reads above this line
        Remote: TAtomicWord;      //< shared  blocks freed by other threads, see LaneMM.RemoteList
      );
      3: (Lines: array[0..3] of TCacheLine); //< padding the record is four lines long
  end;

  /// State that the rooms above keep for a thread. The engine zeroes it when a thread takes a heap.
  TThreadNotes = record
    StackFirst: NativeUInt;   //< owner   lowest address of the thread's stack; 0: unknown
    StackLimit: NativeUInt;   //< owner   end of its stack
    Group: Cardinal;          //< owner   allocation group of its next debug blocks
    GroupDepth: Cardinal;     //< owner   open scopes of groups
    IsLogging: Boolean;       //< owner   LaneMM.AllocationLog is writing an event
    IsCalling: Boolean;       //< owner   LaneMM.Events is calling the program's routine
    IsTaking: Boolean;        //< owner   Stacks.TakeFrames is taking a backtrace
    LastGot: Pointer;         //< owner   the block allocated last, see LaneMM.Growth; or nil
    LastGotSize: NativeUInt;  //< owner   its size
  end;

  /// Free runs of one length that a heap keeps.
  TKeptRuns = record
    Places: array[0..RunPlaces - 1] of PSpan; //< lock Runs  the one kept last is the last
    Padding: PSpan;                           //< padding the size is a power of two
  end;
  /// How many of each length, in one word: the assembler finds a run that serves by one look.
  TKeptCounts = record
    case Byte of
      0: (Each: array[1..LongestKept] of Byte); //< lock Runs  by length; of one that is shorter
                                                //  than ShortestKept 0
      1: (All: UInt64);                         //< lock Runs  all of them
  end;

  /// A region, see LaneMM.Regions: heaps whose blocks are freed at once.
  TRegion = record
    Idle: TAtomicWord;         //< shared  its heaps that no thread is in, a stack
    Made: TAtomicWord;         //< shared  its heaps that threads are in or can enter; RegionEnded:
                               //  it is freed
    Left: TAtomicWord;         //< shared  its heaps, also those that dissolve, and 1 until it is
                               //  freed
    Slices: TAtomicWord;       //< shared  its backed slices
    Peak: NativeUInt;          //< racy    most of them at a time; of two at once the later one
                               //  stays
    Limit: NativeUInt;         //< const   most slices that it may have; 0: any number
    Number: Cardinal;          //< const   of all regions ever made, from 1
    IsReported: Boolean;       //< racy    its limit was reported, and memory has not fallen since;
                               //  two threads at once report it twice
    IsRefused: Boolean;        //< racy    its limit refused the last request for slices; an old
                               //  value delays a report
    Name: array[0..MostRegionName] of AnsiChar; //< const  ends with #0
  end;

  /// The spans of one thread, or, in Process.Abandoned, of all ended threads. Observe.Samples is a
  /// third kind: LaneMM.Sampler uses Current, Queues and Taken by its own rules, under SampleLock.
  /// A region has heaps of its own, each for one thread at a time.
  ///
  /// Always: a span in Queues[C] is owned by this heap, has size class C, and is not current. The
  /// first Roomy[C] of them are those whose Bias is 0. In a heap of a region they may be full, and
  /// Queues[LargeQueue] has its large blocks.
  THeap = record
    case Byte of
      0: (
        Current: array[0..SizeClassCount - 1] of PSpan; //< racy   the span that serves a class;
                                                        //  written by the owner. A sweep that reads
                                                        //  an old value shelves blocks of a span
                                                        //  that is queued, or of another heap
        Borrowed: array[0..LastSharedClass] of Byte;    //< owner  blocks of a class so far from
                                                        //  spans of a larger one
        Realloc: TReallocCounts;                        //< racy   counted by this thread; a sum of
                                                        //  all threads may be a little old
        SampleIn: NativeInt;                            //< owner  bytes to the next sampled block
        SampleSeed: NativeUInt;                         //< owner  state of its random numbers
        ThreadNumber: Cardinal;                         //< owner  the system's number; 0: unknown,
                                                        //  as after the recovery of a child process
        Notes: TThreadNotes;                            //< owner  state of the rooms above
        DebugThread: Pointer;                           //< owner  see LaneMM.DebugThreads; stays
        NextHeap: PHeap;                                //< const   next in Process.Heaps
        Region: PHeap;                                  //< const   of a heap of a region, the one
                                                        //  that describes it; else nil
        Damaged: PBlock;                                //< racy    found by SpanRefill, and not yet
                                                        //  reported; written by the owner. Of
                                                        //  Process.Abandoned some may be lost
        RegionLife: Cardinal;                           //< racy    regions of this record that were
                                                        //  freed; tells an old handle
        HomeShard: Byte;                                //< const   number of the shard where the
                                                        //  thread looks first
        QueuesLine: array[1..CacheLineSize - 3 * SizeOf(PHeap) - 5] of Byte; //< padding sweeping
                                                        //  threads write below
        Queues: array[0..LargeQueue] of PSpan;          //< racy   other spans with free blocks;
                                                        //  written under Heap. Reclaim checks those
                                                        //  of Process.Abandoned without it: a span
                                                        //  that it misses is reclaimed later
        Roomy: array[0..LargeQueue] of Word;            //< racy   spans in Queues whose free
                                                        //  blocks the thread does not need, modulo
                                                        //  2 ** 16; written under Heap. An old
                                                        //  value decides whether one span is
                                                        //  claimed
        Lock: TLock;                                    //< shared  of Queues
        Taken: TAtomicWord;                             //< shared  owned spans that are not yet
                                                        //  queued
        Arriving: PSpan;                                //< lock Heap  spans that were on Taken and
                                                        //  are to be queued next, linked by Next
        SweepAt: PSpan;                                 //< lock Heap  of the queue being swept, the
                                                        //  span to look at next
        SweepLast: PSpan;                               //< lock Heap  and the last one; nil: the
                                                        //  sweep of SweepClass has not begun
        SweepClass: Cardinal;                           //< lock Heap  its size class
        Section: TAtomicWord;                           //< shared  what the heap's thread does with
                                                        //  Runs: the span that it frees, the heap
                                                        //  when it does anything else; or 0. That
                                                        //  thread writes it, see LaneMM.KeptRuns
        RunsClaimed: TAtomicWord;                       //< shared  1: another thread has Runs, or
                                                        //  is about to
        KeptCounts: TKeptCounts;                        //< lock Runs  of Runs
        KeptSlices: NativeUInt;                         //< racy    slices of Runs; written under
                                                        //  Runs. An old value moves a sweep, and
                                                        //  makes a sum inexact
        MissedSlices: NativeUInt;                       //< racy    slices that were not found in
                                                        //  Runs since it was last swept; written by
                                                        //  the owner. A lost count keeps fewer
        Keeper: PHeap;                                  //< racy    TSpan.Keeper of blocks from
                                                        //  Runs: this heap, or nil after another
                                                        //  thread freed one; an old value decides
                                                        //  for one more
        ClockDue: Word;                                 //< owner   calls until its thread reads the
                                                        //  clock again, see LaneMM.Purge; that of
                                                        //  Process.Abandoned racy: a lost countdown
                                                        //  moves a look
        FreesDue: Word;                                 //< owner   frees that empty spans until the
                                                        //  thread retires its current spans;
                                                        //  likewise
        UsedBefore: Cardinal;                           //< owner  blocks in use that the thread
                                                        //  has found in its current spans
        Carved: Pointer;                                //< racy    first block of what was carved
                                                        //  last for this thread, which alone reads
                                                        //  it, see BlockGetZero
        CarvedSlices: NativeUInt;                       //< racy    slices of spans that were carved
                                                        //  to the end for this thread; a lost
                                                        //  count delays its first huge page
        NextUnused: PHeap;                              //< racy    next record of no thread; see
                                                        //  LaneMM.Threads
        case Byte of
          0: (
            Runs: array[ShortestKept..LongestKept] of TKeptRuns; //< lock Runs  by length; no heap
                                                        //  of a region keeps runs
          );
          1: (
            Outer: PHeap;                               //< owner   of a region's heap, the heap of
                                                        //  the thread outside of the scope
            Dissolves: TAtomicWord;                     //< shared  1: its spans are released by the
                                                        //  thread that has Lock
            IsForOne: Boolean;                          //< owner   the scope is for one block: it
                                                        //  ends before an error is raised
            Data: TRegion;                              //< const   the region, in Region's record
          );
      );
      1: (Lines: array[0..HeapLines - 1] of TCacheLine); //< padding whole lines
  end;

  /// An address range from the operating system, cut into slices, and its span records. It lies in
  /// front of them.
  TArena = record
    Base: PByte;               //< const   address of slice 0
    Spans: PSpan;              //< const   record of slice 0; one record before and after exist
    MostSlices: NativeUInt;    //< const   slices that it may grow to
    Reserved: TAtomicWord;     //< shared  slices whose addresses are reserved, only grows
    Frontier: TAtomicWord;     //< shared  slices ever handed out, those above are untouched. A sum
                               //  or a walk with an old value misses new spans
    Committed: TAtomicWord;    //< shared  slices that are backed on touch, only grows. A block
                               //  reaches another thread through the program's own
                               //  synchronization, and the value that covers it comes along
  end;

  /// Where an arena of a copy lies, for the other copies in the process, see LaneMM.Foreign.
  TArenaRange = record
    First: TAtomicWord;        //< shared  address of slice 0
    Limit: TAtomicWord;        //< shared  end of the committed slices; 0: there are no more arenas
  end;
  /// Those of all arenas of a copy.
  TArenaRanges = array[0..ArenaLimit - 1] of TArenaRange;

  /// Free runs by length, with a bitmap of the bins that are not empty.
  TBins = record
    Map: array[0..BinMapWords - 1] of Cardinal; //< lock Shard  bit B: Heads[B] is not nil
    Heads: array[0..BinCount - 1] of PSpan;     //< lock Shard  first free run of bin B
  end;

  /// Free runs of slices. Runs of two shards are never joined, so their locks do not meet. What
  /// each change writes lies in the line of Lock.
  TShard = record
    case Byte of
      0: (
        Lock: TLock;                //< shared  held for a bounded time, without a system call
        Released: TAtomicWord;      //< shared  spans released without the lock
        Oldest: PSpan;              //< lock Shard  warm run unused for longest
        Youngest: PSpan;            //< lock Shard  warm run freed last
        WarmSlices: NativeUInt;     //< racy  in Warm; written under Shard. An old value decides
                                    //  only where memory is taken, when and how much to purge,
                                    //  and makes a sum inexact
        ColdSlices: NativeUInt;     //< racy  in Cold; likewise
        WarmLow: NativeUInt;        //< lock Shard  lowest WarmSlices since the last ShardsPurgeIdle
        Warm: TBins;                //< lock Shard  free runs with backed pages
        Cold: TBins;                //< lock Shard  free runs without
      );
      1: (Lines: array[0..ShardLines - 1] of TCacheLine); //< padding whole lines
  end;
  PShard = ^TShard;

  /// Records of other rooms that lanemm reads: Settings, Stacks, Observe, Debug.
  TRoomRecord = (rrSettings, rrStacks, rrObserve, rrDebug);

  /// All that the threads of the process share. The first lines are read by every call, and
  /// written at the start, when an arena grows, and when a setting changes. What follows the
  /// shards is read by slow paths, and written as rarely; from SweepLine on, lines are by who
  /// writes them often.
  TProcess = record
    case Byte of
      0: (
        ThreadSlot: NativeUInt;   //< const   thread-local offset of the thread's heap
        Base: NativeUInt;         //< const   address of the first arena; Limit publishes it
        Limit: NativeUInt;        //< racy    bytes of the first arena that have span records; only
                                  //  grows. As for TArena.Committed, a thread that has a block
                                  //  reads a value that covers it
        Spans: NativeUInt;        //< const   address of its span records; Limit publishes it
        DirectSize: NativeUInt;   //< racy    ClassSizes while IsDirect, else 0; like IsDirect
        DirectLimit: NativeUInt;  //< racy    Limit while IsDirect, else 0. A block above an old
                                  //  value takes the slow path
        HasThreads: Boolean;      //< const   the program links the thread library
        HasFastSlot: Boolean;     //< const   ThreadSlot can be read directly
        IsStarted: Boolean;       //< const   LaneMM.Threads has set this record up
        IsDirect: Boolean;        //< racy    C calls take the fast paths at once, see lib/; with an
                                  //  old value a call is slower, or is not watched
        IsMalloc: Boolean;        //< const   this is liblanemm, see lib/
        SharesSpans: Boolean;     //< racy    a thread's first blocks of a class may be larger, see
                                  //  HeapServingClass; an old value decides for one more
        ThreadKey: Cardinal;      //< const   the thread library's key for the thread's heap
        EndingKey: Cardinal;      //< const   its key for a mark: the thread ends
        SizesKey: Cardinal;       //< const   its key for ClassSizes: the thread has a heap
        HasFirstKeys: Boolean;    //< const   ThreadSlot is SecondKeySlot, SizesKey's FirstKeySlot
        HasBarrier: Boolean;      //< const   OsBarrier makes every thread pass a barrier
        IsConfined: Boolean;      //< const   see ProcessConfine
        Abandoned: PHeap;         //< const   the heap of the spans that ended threads left
        SpinLimit: Cardinal;      //< const   turns before a thread parks; 0 on one CPU
        PurgeDelayMs: Cardinal;   //< racy    how long memory is unused before it is purged; an old
                                  //  value moves one purge
        ForkMark: PNativeUInt;    //< const   a word: 0 in a child process that has not recovered, 1
                                  //  in one that has; nil: child processes are not recognized.
                                  //  The two behind it are 0 in a child, too: Debug.FirstNumber
        MainHeap: PHeap;          //< owner   the heap of a program without threads
      );
      1: (
        ReadLines: array[0..1] of TCacheLine;       //< padding  end of what every call reads
        Shards: array[1..ShardLimit] of TShard;     //< shared  the first ShardCount are in use
        EmptySpan: TSpan;                           //< const   current where a heap has no span
        // Written once, at the start:
        ClassSlices: array[0..SizeClassCount - 1] of Byte;         //< const  slices of a span
        KeySeed: THashKey;                          //< const  random, see SpanFormat
        ShufflesBlocks: Boolean;                    //< const  new blocks come in a random order
        ShardCount: Cardinal;                       //< const   a power of two
        MostBytes: NativeUInt;                      //< const  what the system can back at most
        HasSpare: Boolean;                          //< const  large blocks that moved get spare
                                                    //  slices: the system does not charge for them
        SavingFrom: NativeUInt;                     //< racy  addresses are scarce when all arenas
                                                    //  have handed out so many slices; 0 once the
                                                    //  system has refused any
        Bell: PNativeUInt;                          //< const  a word that other processes change;
                                                    //  a child process has another one there
        Previous: TMemoryManager;                   //< const   the manager installed before
        HasPrevious: Boolean;                       //< const   it may have blocks in use
        StaysLoaded: Boolean;                       //< const   this library is never unloaded
        {$ifdef LANEMM_GRANULES}
        Granule: NativeUInt;                        //< const   see OsGranule
        {$endif}
        Copies: Pointer;                            //< const   see LaneMM.Foreign
        Ranges: ^TArenaRanges;                      //< const   likewise, of this copy; or nil
        Rooms: array[TRoomRecord] of Pointer;       //< const   their addresses, see LaneMM.Watch
        {$ifdef MSWINDOWS}
        EndCallKey: Cardinal;                       //< const  fiber-local slot of the heap, for the
                                                    //  call at the end of a thread
        ThreadEnded: Pointer;                       //< const  that call
        MainThread: Cardinal;                       //< const  number of the program's first thread
        NextExit: Pointer;                          //< const  the exit procedure before
        {$endif}
        // Written when a setting changes:
        IsNarrow: Boolean;                          //< racy  addresses become accessible 1 MB at a
                                                    //  time; an old value decides for once more
        ErasesPages: Boolean;                       //< racy  pages are zeroed before a purge; an
                                                    //  old value decides for one more purge
        ClassOf: array[0..ClassTableLength - 1] of Byte; //< racy  by size / ClassStep; an old
                                                    //  value serves one more call as before
        KeepsAlignment: Boolean;                    //< racy  blocks come from spans of a larger
                                                    //  class only if aligned as their own; set by
                                                    //  a thread before it allocates aligned ones
        HasLimits: Boolean;                         //< racy  a limit or a reserve is set, or
                                                    //  refusals are reported; with an old value
                                                    //  a call passes a limit set just now
        ReserveSlices: NativeUInt;                  //< racy  size of the emergency reserve; with an
                                                    //  old value the reserve has the old size
        Limits: array[TLimitKind] of TLimit;        //< shared  of the backed slices; see TLimit
        BoxSlices: NativeUInt;                      //< racy  PeakSlices from which the black box is
                                                    //  due; an old value writes it once more
        BoxIsDue: Boolean;                          //< racy  a thread is to call Hooks.Box; two at
                                                    //  once write it twice
        HugeFrom: NativeUInt;                       //< racy  slices that a thread must have carved,
                                                    //  and the process must have backed, before the
                                                    //  thread gets huge pages, 0: never; an old
                                                    //  value decides for one more
        // Written a few times in a process: with a new arena, heap, region or table of pages, the
        // first huge page or debug block, a refusal of the system, a thread of LaneMM's own:
        Arenas: array[0..ArenaLimit - 1] of TAtomicWord; //< shared  PArena or 0; the arenas come
                                                    //  first and stay
        Heaps: TAtomicWord;                         //< shared  first of all heaps
        RegionsMade: TAtomicWord;                   //< shared  regions so far
        TakenPages: TAtomicWord;                    //< shared  first table of OsTakePages, or 0
        UsesHuge: Boolean;                          //< racy  huge pages were requested once, see
                                                    //  OsPurge; a thread that takes a part of one
                                                    //  from another thread sees it
        GuardMarks: TAtomicWord;                    //< shared  1: OsGuard has marked pages
        GuardMappings: TAtomicWord;                 //< shared  1: OsGuard has made mappings
        Refused: TAtomicWord;                       //< shared  0; RefusedOnce when the system has
                                                    //  refused addresses or memory, and purges
                                                    //  give back the charge from then on;
                                                    //  RefusedAndUncharged when the cold runs of
                                                    //  before have given theirs, and at the start
                                                    //  where untouched memory is charged
        PurgeThread: Cardinal;                      //< racy  number of the purge thread, or 0; it
                                                    //  writes it itself. A pause with an old value
                                                    //  waits for its answer until the time is up
        Reserve: TAtomicWord;                       //< shared  its span, or 0
        LastRun: TAtomicWord;                       //< shared  slices for the small blocks of an
                                                    //  error report: a span, 0 before it is taken,
                                                    //  or LastRunGiven
        SweepLine: TCacheLine;                      //< padding  sweeps and purges write:
        SweepWanted: TAtomicWord;                   //< shared  1: idle owners may have empty spans
        SweepNext: PHeap;                           //< shared  the heap that a sweep by parts goes
                                                    //  on with, or nil; two threads at once sweep
                                                    //  some twice
        SweepFrom: NativeUInt;                      //< racy  backed slices worth the next sweep;
                                                    //  two threads at once sweep once too often
        PurgeState: TAtomicWord;                    //< shared  see LaneMM.Purge
        BellSeen: TAtomicWord;                      //< shared  its value at the last Hooks.Ring
        MeasuredAt: NativeUInt;                     //< racy  backed slices when IsDense was set, 0:
                                                    //  never; two threads at once measure twice
        IsDense: Boolean;                           //< racy  see LaneMM.Huge; an old value
                                                    //  decides for one more
        ShelvedPages: TAtomicWord;                  //< shared  pages of all spans that are purged
        ShelveFrom: NativeUInt;                     //< racy  slices, without shelved pages, worth
                                                    //  the next look for such pages; two threads at
                                                    //  once look once too often
        ShelveNext: PHeap;                          //< racy  the heap to look at next, or nil; two
                                                    //  threads at once look at some twice
        BackedLine: TCacheLine;                     //< padding  each span and large block writes:
        Backed: TAtomicWord;                        //< shared  slices that count as backed: those
                                                    //  of spans in use, without spare slices, and
                                                    //  of warm runs
        PeakSlices: NativeUInt;                     //< racy  most slices backed at a time; of two
                                                    //  at once the later one stays
        LargeLine: TCacheLine;                      //< padding  some large blocks write:
        LargeDensity: NativeInt;                    //< racy  how densely large blocks were used,
                                                    //  see LaneMM.Huge; a lost write moves a
                                                    //  decision
        LargeProbe: PSpan;                          //< racy  the large block whose density is
                                                    //  measured next, or nil; an old value measures
                                                    //  another block
        LargeLooks: NativeUInt;                     //< racy  how often it was measured; a lost look
                                                    //  is made up for by the next one
        MovedSpans: TAtomicWord;                    //< shared  spans that have ltMoved
        PeakUsed: NativeUInt;                       //< racy  most bytes in use that a status saw;
                                                    //  of two at once the later one stays
        PurgeLine: TCacheLine;                      //< padding  purges and commits write:
        LookedMs: Cardinal;                         //< racy  time of the last look for memory to
                                                    //  purge; a lost write moves a look
        PurgesUnderWay: TAtomicWord;                //< shared  runs that are being purged
        PurgesHeld: TAtomicWord;                    //< shared  open calls of PurgeHold
        CommitsUnderWay: TAtomicWord;               //< shared  threads that commit slices
        ThreadsLine: TCacheLine;                    //< padding  threads that begin or end write:
        UnusedHeaps: TAtomicWord;                   //< shared  records to reuse, see LaneMM.Threads
        UnusedRegions: TAtomicWord;                 //< shared  those that described regions
        VacantHeaps: array[0..VacantStacks - 1] of TAtomicWord; //< shared  heaps of ended threads
                                                    //  with current spans, likewise
        FreshHeaps: TAtomicWord;                    //< shared  address of the next record that was
                                                    //  never used, or of the end of its pages, or 0
        LeavingThreads: NativeInt;                  //< racy  up where a thread that ends leaves
                                                    //  blocks behind, else down; a lost count is
                                                    //  made up for by the next thread
        {$ifdef MSWINDOWS}
        StartingThreads: TAtomicWord;               //< shared  threads of LaneMM that have not
                                                    //  begun
        ProgramEnds: TAtomicWord;                   //< shared  1: no further one starts
        {$endif}
        CallsLine: TCacheLine;                      //< padding  system calls write:
        OsCalls: array[TOsCall] of TAtomicWord;     //< shared  calls so far, by kind
        {$ifdef MSWINDOWS}
        Waiting: TWaiting;                          //< shared  see TWaiting
        {$endif}
      );
  end;

  /// A free block. A block in use has no header at all.
  TBlock = record
    Link: NativeUInt; //< racy    offset of the next free block in the span, or EndOfList, xor
                      //  TSpan.LinkKey; written by the thread that frees or takes the block. A
                      //  check that reads an old value judges the block as it was
  end;

const
  /// Owner of a span that no heap owns; added to a heap, that of a span which the heap filled and
  /// gave up. No heap has this address, nor has nil.
  NoOwner = PHeap(1);
  /// TRegion.Made of a region that was freed.
  RegionEnded = High(TAtomicWord);
  /// Added to Owner, once or twice, by sweeps that wait for the owner's next free: see LaneMM.Heap.
  AwaitsFree = 2;
  /// Ends the free list of a span: odd, so no block has this offset.
  EndOfList = NativeUInt(1);
  /// First word of a block when it is handed out: no free block has it, and it is no address.
  HandedOut = High(NativeUInt);

{$ifdef FPC} {$codealign varmin=64} {$endif}
var
  /// The state that all threads share.
  Process: TProcess;
{$ifdef FPC} {$codealign varmin=1} {$endif}

/// Returns the heap that owns Span, or NoOwner.
function OwnerOf(Span: PSpan): PHeap; inline;
/// Returns the Owner of a span that Heap has filled and gives up, and of a region's large block.
function FilledBy(Heap: PHeap): PHeap; inline;
/// Returns the region that blocks of a heap, which may be nil, belong to; nil: to none.
function RegionOfHeap(Heap: PHeap): PHeap; inline;
/// Returns the heap of a region that Span, of blocks or a large block, belongs to; else nil.
function RegionHeapOf(Span: PSpan): PHeap;
/// Returns the first heap of a stack of heaps, UnusedHeaps or one of VacantHeaps, out of its word.
function FirstHeapOf(Word: TAtomicWord): PHeap; inline;
/// Returns the first word of a free block of Span before the block at offset Next; of such a word,
/// returns Next.
function LinkOf(Span: PSpan; Next: NativeUInt): NativeUInt; inline;

implementation

{$if SizeOf(THeap) <> HeapLines * CacheLineSize}
  {$message fatal 'THeap: the fields no longer fit HeapLines'}
{$ifend}
{$if SizeOf(TLargeTraits) <> 1}
  {$message fatal 'TLargeTraits: the assembler compares a byte'}
{$ifend}
{$if SizeOf(TKeptRuns) <> 1 shl KeptRunsShift}
  {$message fatal 'TKeptRuns: the places no longer fit KeptRunsShift'}
{$ifend}
{$if SizeOf(TShard) <> ShardLines * CacheLineSize}
  {$message fatal 'TShard: the fields no longer fit ShardLines'}
{$ifend}
{$if SizeOf(TSpan) <> 1 shl SpanRecordShift}
  {$message fatal 'TSpan: the fields no longer fit SpanRecordShift'}
{$ifend}

function OwnerOf(Span: PSpan): PHeap;
begin
  Result := PHeap(NativeUInt(Span^.Owner) and not NativeUInt(AwaitsFree * 3));
  if Odd(NativeUInt(Result)) then
    Result := NoOwner;
end;

function RegionOfHeap(Heap: PHeap): PHeap;
begin
  Result := nil;
  if Heap <> nil then
    Result := Heap^.Region;
end;

function FilledBy(Heap: PHeap): PHeap;
begin
  Result := PHeap(NativeUInt(Heap) + NativeUInt(NoOwner));
end;

function RegionHeapOf(Span: PSpan): PHeap;
begin
  Result := OwnerOf(Span);
  if (Result = NoOwner) and (ltRegion in Span^.Traits) then
    Result := PHeap(NativeUInt(Span^.Owner) - NativeUInt(NoOwner));
  if (Result = NoOwner) or (Result^.Region = nil) then
    Result := nil;
end;

function FirstHeapOf(Word: TAtomicWord): PHeap;
begin
  Result := PHeap(Word shr HeapWordCountBits shl (HeapWordCountBits - HeapWordShift));
end;

function LinkOf(Span: PSpan; Next: NativeUInt): NativeUInt;
begin
  Result := Next xor Span^.LinkKey;
end;

end.
