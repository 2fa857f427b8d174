/// The engine as data: its four records and their invariants.
//
// Owns:       Process, the engine's one mutable global. LaneMM.Hooks holds what calls upwards.
// Life of a span (the word TSpan.Remote and the field TSpan.Owner say where it stands):
//   free      a run of slices in the arena's bins. Touched only under the arena lock.
//   owned     Owner is a heap; Remote is a list, maybe empty. The owner alone uses the
//             owner fields; any thread may push on Remote (LaneMM.RemoteList).
//   given up  Owner is NoOwner, Remote is RemoteGivenUp, every block is in use. The first
//             thread that frees one of its blocks takes it over with one compare-and-swap.
//   Spans of ended threads belong to Process.Abandoned; the holder of its lock acts as owner.
//   A span without a block in use goes back to the arena: through its owner, or, out of an idle
//   owner's queue, through any thread that holds the owner's lock (HeapSweep).
// Field tags: const   written before publication, then read by any thread
//             owner   plain access by the owner only
//             shared  any thread, through LaneMM.Atomic
//             lock X  under that lock only
//             racy    plain access by any thread; the comment says why that is good enough
// Lock ranks, taken in ascending order: 1 Registry, 2 Heap, 3 Heap of Process.Abandoned, 4 Arena.
//             Locks of the rooms above are taken before Arena or alone, see their State units.
unit LaneMM.Types;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

type
  PBlock = ^TBlock;
  PSpan = ^TSpan;
  PHeap = ^THeap;
  PArena = ^TArena;

  /// One record per slice of an arena; the record of a span's first slice describes the span.
  ///
  /// The first line is for the owner alone. A thread that frees blocks of another heap reads and
  /// writes only the second, so it does not take the first from an owner that allocates.
  ///
  /// Always, for skBlocks: (Used + length(FreeList)) * BlockSize = CarvedBytes, with one more in
  /// Used while the span is current; Used counts the blocks on Remote too. CarvedBytes <=
  /// BlockBytes. FreeList is odd (EndOfList) when it is empty.
  /// Always, for skLarge: CarvedBytes and DivideMagic are 1, so a block begins only at Start.
  /// For skDebug the owner fields belong to debug/, see LaneMM.DebugSpans.
  TSpan = record
    case Byte of
      0: (
        FreeList: NativeUInt;     //< owner   first free block, or EndOfList
        Used: Cardinal;           //< owner   blocks in use, plus one while the span is current
        Next: PSpan;              //< lock Heap or Arena  next in the queue, bin or list it is in
        Prev: PSpan;              //< lock Heap or Arena  previous one
        Younger: PSpan;           //< lock Arena  next warm run in the order of use
        Older: PSpan;             //< lock Arena  previous warm run
        IsWarm: Boolean;          //< lock Arena  the free run may hold backed pages
        IsZero: Boolean;          //< const   the run held only zeros when it was taken
        IsMoved: Boolean;         //< owner   the pages were moved here, see LaneMM.Large
        SpareCount: Cardinal;     //< owner   untouched slices at its end, counted in SpareSlices
      );
      1: (
        OwnerLine: TCacheLine;    //< padding other threads write below this line
        Owner: PHeap;             //< racy    the owning heap or NoOwner; a thread that reads its
                                  //  own heap here owns the span, any other value may be old
        Remote: TAtomicWord;      //< shared  blocks freed by other threads, see LaneMM.RemoteList
        BlockSize: NativeUInt;    //< const   usable bytes of a block (large: changed by a resize)
        DivideMagic: UInt64;      //< const   Offset * DivideMagic < DivideMagic: a block begins
        Start: PByte;             //< const   address of the first slice
        SliceCount: NativeUInt;   //< const   slices of the run (while free: lock Arena)
        BlockBytes: Cardinal;     //< const   bytes of all blocks that the span can hold
        CarvedBytes: Cardinal;    //< racy    bytes of the blocks ever handed out or on FreeList;
                                  //  written by the owner, only grows while a block is in use
        Distance: Cardinal;       //< const   slices back to the first slice (skInner, skFreeEnd)
        Kind: TSpanKind;          //< racy    what this record stands for; stable while a block
                                  //  of the span is in use
        SizeClass: Byte;          //< const   index of the block size
        IsCurrent: Boolean;       //< racy    the heap allocates from it now; written by the owner
      );
      2: (Lines: array[0..1] of TCacheLine); //< padding the record is two lines long
  end;

  /// What the rooms above keep for a thread. The engine zeroes it when a thread begins.
  TThreadNotes = record
    StackFirst: NativeUInt;   //< owner   lowest address of the thread's stack, 0: not known yet
    StackLimit: NativeUInt;   //< owner   end of its stack
    Group: Cardinal;          //< owner   allocation group of its next debug blocks
    GroupDepth: Cardinal;     //< owner   open scopes of groups
    IsLogging: Boolean;       //< owner   LaneMM.AllocationLog writes an event
  end;

  /// The spans of one thread, or, in Process.Abandoned, of all ended threads.
  ///
  /// Always: a span in Queues[C] is owned by this heap, has size class C, and is not current.
  THeap = record
    case Byte of
      0: (
        Current: array[0..SizeClassCount - 1] of PSpan; //< owner  the span that serves a class
        Realloc: TReallocCounts;                        //< owner  counted by this thread
        SampleIn: NativeInt;                            //< owner  bytes to the next sampled block
        SampleSeed: NativeUInt;                         //< owner  of its random numbers
        ThreadNumber: Cardinal;                         //< owner  the system's number, 0: not asked
        Notes: TThreadNotes;                            //< owner  of the rooms above
        DebugThread: Pointer;                           //< owner  see LaneMM.DebugThreads; stays
        QueuesLine: TCacheLine;                         //< padding sweeping threads write below
        Queues: array[0..SizeClassCount - 1] of PSpan;  //< lock Heap  other spans with free blocks
        Lock: TLock;                                    //< shared  rank 2, 3 for Process.Abandoned
        Taken: TAtomicWord;                             //< shared  spans taken over, not yet queued
        NextHeap: PHeap;                                //< const   next in Process.Heaps
        NextUnused: PHeap;                              //< lock Registry  next record to reuse
      );
      1: (Lines: array[0..HeapLines - 1] of TCacheLine); //< padding whole lines
  end;

  /// An address range from the operating system, cut into slices, and its span records.
  TArena = record
    Base: PByte;               //< const   address of slice 0
    Spans: PSpan;              //< const   record of slice 0; one record before and after exist
    SliceCount: NativeUInt;    //< const   slices reserved
    Frontier: NativeUInt;      //< lock Arena  slices ever handed out; beyond it all is untouched
    Committed: NativeUInt;     //< lock Arena  slices that are backed on touch
  end;

  /// Free runs by length, with a bitmap of the bins that are not empty.
  TBins = record
    Map: array[0..BinMapWords - 1] of Cardinal; //< lock Arena  bit B: Heads[B] is not nil
    Heads: array[0..BinCount - 1] of PSpan;     //< lock Arena  first free run of bin B
  end;

  /// All that the threads of the process share. The first lines are read by every call, and
  /// written at start and when an arena grows.
  TProcess = record
    case Byte of
      0: (
        ThreadSlot: NativeUInt;   //< const   thread-local offset of the thread's heap
        Base: NativeUInt;         //< const   address of the first arena
        Limit: NativeUInt;        //< shared  bytes of the first arena that have span records
        Spans: NativeUInt;        //< const   address of its span records
        LinkKey: NativeUInt;      //< const   random, see TBlock.Link
        DirectSize: NativeUInt;   //< shared  MaxClassSize + 1 while IsDirect, else 0
        DirectLimit: NativeUInt;  //< shared  Limit while IsDirect, else 0
        HasThreads: Boolean;      //< const   the program links the thread library
        HasFastSlot: Boolean;     //< const   ThreadSlot can be read directly
        IsStarted: Boolean;       //< const   LaneMM.Threads has set this record up
        IsDirect: Boolean;        //< shared  C calls go straight to the fast paths, see lib/
        IsMalloc: Boolean;        //< const   this is liblanemm, see lib/
        ThreadKey: Cardinal;      //< const   the thread library's key of the same
        Abandoned: PHeap;         //< const   the heap of the spans that ended threads left
        SpinLimit: Cardinal;      //< const   turns before a thread parks; 0 on one CPU
        PurgeDelayMs: Cardinal;   //< const   how long memory is unused before it is purged
        ForkMark: PNativeUInt;    //< shared  reads 0 in a child process that has not recovered
        MainHeap: PHeap;          //< owner   the heap of a program without threads
      );
      1: (
        ReadLines: array[0..1] of TCacheLine;       //< padding  end of what every call reads
        ArenaLock: TLock;                           //< shared  rank 4
        Arenas: array[0..ArenaLimit - 1] of TArena; //< lock Arena  the first ArenaCount are in use
        ArenaCount: NativeUInt;                     //< shared  written under Arena
        Warm: TBins;                                //< lock Arena  free runs with backed pages
        Cold: TBins;                                //< lock Arena  free runs without
        Oldest: PSpan;                              //< lock Arena  warm run unused for longest
        Youngest: PSpan;                            //< lock Arena  warm run freed last
        WarmSlices: NativeUInt;                     //< racy  in Warm; written under Arena. A look
                                                    //  without it decides only when to purge
        ColdSlices: NativeUInt;                     //< racy  in Cold; likewise, for sums
        PeakSlices: NativeUInt;                     //< racy  most slices backed at a time; likewise
        SpareSlices: TAtomicWord;                   //< shared  of all spans' SpareCount
        MovedSpans: TAtomicWord;                    //< shared  spans whose IsMoved is set
        PeakUsed: NativeUInt;                       //< racy  most bytes in use that a status saw;
                                                    //  of two at once the later one stays
        WarmLow: NativeUInt;                        //< lock Arena  lowest WarmSlices since a look
        LookedMs: Cardinal;                         //< racy  the clock at the last look; a lost
        ClockDue: Cardinal;                         //< racy  write or countdown moves a look
        Released: TAtomicWord;                      //< shared  spans released without the lock
        SweepWanted: TAtomicWord;                   //< shared  1: an idle owner has empty spans
        SweepFrom: NativeUInt;                      //< racy  backed slices worth the next sweep;
                                                    //  two threads at once sweep once too often
        PurgeState: TAtomicWord;                    //< shared  see LaneMM.Purge
        PurgeThread: Cardinal;                      //< const   number of the purge thread, or 0
        HugeFrom: NativeUInt;                       //< racy  slices from which huge pages are asked
                                                    //  for, 0: never; an old value does no harm
        ErasesPages: Boolean;                       //< racy  pages are zeroed before they go back;
                                                    //  what changes it waits for nothing
        RegistryLock: TLock;                        //< shared  rank 1
        Heaps: PHeap;                               //< shared  all heaps; written under Registry
        UnusedHeaps: PHeap;                         //< lock Registry  records of ended threads
        FreshHeaps: PByte;                          //< lock Registry  memory of further records
        FreshHeapsEnd: PByte;                       //< lock Registry  its end
        OsCalls: array[TOsCall] of TAtomicWord;     //< shared  calls so far, by kind
        FaultHandlers: array[0..1] of NativeUInt;   //< const   fault handlers that were set before
        FaultFlags: array[0..1] of NativeUInt;      //< const   their flags
        Previous: TMemoryManager;                   //< const   what was installed before
        HasPrevious: Boolean;                       //< const   it may have blocks in use
        Copies: Pointer;                            //< const   see LaneMM.Foreign
        EmptySpan: TSpan;                           //< const   current where a heap has no span
        Limits: array[TLimitKind] of TLimit;        //< shared  of the slices that are backed
        HasLimits: Boolean;                         //< shared  a limit or a reserve is set
        ReserveSlices: NativeUInt;                  //< shared  size of the emergency reserve
        Reserve: TAtomicWord;                       //< shared  its span, or 0
        ClassOf: array[0..ClassTableLength - 1] of Byte;           //< const  by size / ClassStep
        ClassSlices: array[0..SizeClassCount - 1] of Byte;         //< const  slices of a span
      );
  end;

  /// A free block. A block in use has no header at all.
  TBlock = record
    Link: NativeUInt; //< owner   address of the next free block, or EndOfList, xor Process.LinkKey
  end;

const
  /// Owner of a span that no heap owns. No heap has this address, nor has nil.
  NoOwner = PHeap(1);
  /// First word of a block when it is handed out: no free block has it, no program can use it
  /// as an address.
  HandedOut = High(NativeUInt);
  /// The value of TSpan.Remote of a span that was given up.
  RemoteGivenUp = TAtomicWord(1);

{$ifdef FPC} {$codealign varmin=64} {$endif}
var
  /// The state that all threads share.
  Process: TProcess;
{$ifdef FPC} {$codealign varmin=1} {$endif}

/// The value that ends the free lists of Span: odd, so no block has it.
function EndOfList(Span: PSpan): NativeUInt; inline;
/// The first word of a free block before Next, and the other way round.
function LinkOf(Next: NativeUInt): NativeUInt; inline;

implementation

{$if SizeOf(THeap) <> HeapLines * CacheLineSize}
  {$message fatal 'THeap: the fields no longer fit HeapLines'}
{$ifend}
{$if SizeOf(TSpan) <> 1 shl SpanRecordShift}
  {$message fatal 'TSpan: the fields no longer fit two cache lines'}
{$ifend}

function LinkOf(Next: NativeUInt): NativeUInt;
begin
  Result := Next xor Process.LinkKey;
end;

function EndOfList(Span: PSpan): NativeUInt;
begin
  Result := NativeUInt(Span^.Start) or 1;
end;

end.
