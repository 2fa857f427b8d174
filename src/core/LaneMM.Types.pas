/// The design of LaneMM as data: every constant, every shared record, every invariant.
//
// Owns:       Process, the one mutable global.
// Life of a span (the word TSpan.Remote and the field TSpan.Owner say where it stands):
//   free      a run of slices in the arena's bins. Touched only under the arena lock.
//   owned     Owner is a heap; Remote is a list, maybe empty. The owner alone uses the
//             owner fields; any thread may push on Remote (LaneMM.RemoteList).
//   given up  Owner is NoOwner, Remote is RemoteGivenUp, every block is in use. The first
//             thread that frees one of its blocks takes it over with one compare-and-swap.
//   The orphan heap owns what ended threads left; who holds its lock acts as its owner.
//   A span of whose blocks none is in use goes back to the arena: by its owner, or, out of
//   an idle owner's queue, by anyone who holds the owner's lock (see LaneMM.Sweep).
// Lock ranks, taken in ascending order: Registry, thread heap, orphan heap, debug, arena.
unit LaneMM.Types;

{$I ../LaneMM.inc}

interface

const
  /// True in a build that verifies the laws below while it runs.
  Checked = {$ifdef LANEMM_CHECKED} True {$else} False {$endif};

  /// True on x86_64, whose machine code LaneMM.Unwind can read.
  IsX64 = {$ifdef LANEMM_X64} True {$else} False {$endif};

  /// True where the compiler aligns the parts of its type information.
  TypeInfoIsAligned =
    {$ifdef FPC_REQUIRES_PROPER_ALIGNMENT} True {$else} False {$endif};

  /// Bytes of a cache line; records that several threads write are aligned to it.
  CacheLineSize = 64;
  /// Alignment of every block, in bytes.
  BlockAlignment = 16;

  /// An arena is cut into slices of this many bytes.
  SliceShift = 16;
  SliceSize = NativeUInt(1) shl SliceShift;
  /// Cache lines of a heap record.
  HeapLines = 21;
  /// Most arenas that a process can have.
  ArenaLimit = 64;
  /// Bytes of address space that the first arena asks for.
  WantedArenaSize = NativeUInt(1) shl {$ifdef CPU64} 40 {$else} 30 {$endif};
  /// Where all copies of LaneMM in a process register, see LaneMM.Foreign.
  CopiesAddress = NativeUInt({$ifdef CPU64} $6C616E650000 {$else} $6C610000 {$endif});
  /// Longest run of slices: 2 TB, or half of a 32-bit address space.
  MaxRunSlices = NativeUInt(1) shl {$ifdef CPU64} 25 {$else} 15 {$endif};
  /// Bins of free runs, by length: exact up to 8 slices, then eight per doubling.
  BinCount = 192;
  /// Words of a bitmap with one bit per bin.
  BinMapWords = BinCount div 32;

  /// Size classes: multiples of 16 up to 256, then eight per doubling.
  SizeClassCount = 72;
  /// Largest requested size, in bytes, that is served by a size class.
  MaxClassSize = 32768;
  /// Size classes whose spans are one slice long end with this block size, in bytes.
  MaxSmallSize = 8192;

  /// Steps of the table from requested size to size class, in bytes, and its length.
  ClassStep = 16;
  ClassTableLength = MaxClassSize div ClassStep + 1;

  /// Steps up the call stack that are kept, see LaneMM.Unwind.
  StackStepCount = 1024;

type
  /// A size in bytes as the memory-manager record of the compiler writes it.
  TSize = {$ifdef FPC} PtrUInt {$else} NativeInt {$endif};
  /// One word that any thread changes, always through LaneMM.Atomic.
  TAtomicWord = NativeUInt;
  /// Room of one cache line, to keep apart what different threads write.
  TCacheLine = array[0..CacheLineSize - 1] of Byte;

  /// What a span record stands for.
  TSpanKind = (
    skNone,      //< a slice that was never used
    skFree,      //< first slice of a free run
    skFreeEnd,   //< last slice of a free run of two slices or more
    skInner,     //< any other slice of a span; Distance leads to the first
    skBlocks,    //< first slice of a span of blocks of one size class
    skLarge,     //< first slice of a large block
    skReleased,  //< given back, waiting for the arena lock
    skDebug,     //< first slice of a span of debug blocks, see LaneMM.DebugBlocks
    skReserve    //< first slice of what is kept back, see LaneMM.Reserve
  );

  /// Some of them.
  TSpanKinds = set of TSpanKind;

  /// A routine without parameters.
  TPlainProcedure = procedure;

  /// What is reported; LaneMM.EventRules has the words.
  TEventKind = (
    evLeaks,           //< blocks in use at the end, or a difference between two moments
    evDoubleFree,      //< a free block freed
    evInvalidFree,     //< something freed that is no block
    evWriteBefore,     //< written before a block
    evWriteAfter,      //< written behind a block
    evWriteAfterFree,  //< written into a free block
    evFreedCall,       //< a method of a freed object called
    evWrongSize,       //< freed with a size that is not the block's
    evUninitialised,   //< the contents of a new or free block used as an address
    evGuard,           //< a guard page touched
    evBookkeeping,     //< what is noted of a block written over
    evNumber,          //< the allocation number that was waited for
    evMix,             //< got by New and freed by FreeMem, or the other way round
    evAllocation,      //< a chosen block was got
    evFree,            //< ... or freed
    evLimit            //< the heap has come to a limit, or its reserve is in use
  );
  /// Where reports go.
  TEventTarget = (etFile, etScreen, etCall);
  /// Some of them.
  TEventTargets = set of TEventTarget;
  /// What becomes of the reports of one kind.
  TEventRule = record
    Told: TAtomicWord;        //< shared  events of this kind so far
    Targets: TEventTargets;   //< shared  where they go
    IsOnce: Boolean;          //< shared  the first one only
    Halts: Boolean;           //< shared  the program ends with ExitCode
    ExitCode: Byte;           //< shared
  end;
  /// The rules of all kinds.
  TEventRules = array[TEventKind] of TEventRule;
  /// Is told of an event, in the thread that has caused or found it; may use the heap.
  TEventCall = procedure(Kind: TEventKind; Text: PAnsiChar; Length: NativeUInt);

  /// What can be set at run time; LaneMM.Settings has the words.
  TOption = (opOff, opHelp, opContention, opGrowth, opProfile, opPprof, opFolded, opSpeedscope,
    opHtml, opTop, opLeast, opRate, opSignal, opHuge, opLog, opEvent,
    opLeaks, opLeaksExit, opLeaksFormat, opLeaksIgnore,
    opDebug, opCheck, opQuarantine, opFill, opFreeFill, opErase,
    opGuard, opBreak, opLimit, opLimitSoft, opReserve,
    opTrace, opTraceSize, opTraceNumber, opTraceGroup, opTraceClass, opTraceMost,
    opMixes);
  /// A path, ended by #0.
  TSettingsPath = array[0..1023] of AnsiChar;
  /// Numbers from First to Last.
  TSettingsRange = record
    First, Last: NativeUInt;              //< shared
  end;
  /// The settings.
  TSettings = record
    Values: array[TOption] of NativeUInt; //< shared  0 or 1, or a number
    LogPath: TSettingsPath;               //< shared  of opLog; empty: beside the program
    Ranges: array[opTraceSize..opTraceGroup] of TSettingsRange; //< shared  of these options
    TraceClass: TSettingsPath;            //< shared  of opTraceClass
    IgnorePath: TSettingsPath;            //< shared  of opLeaksIgnore; empty: beside the program
  end;

  /// Files that a leak report can be written to besides the log, bits of opLeaksFormat.
  TLeakFormat = (lfJson, lfJunit, lfHeaptrc);

  /// When memory is filled with zeros, bits of opErase.
  TErasure = (erFree, erReturn);

  /// Operating system calls that are counted.
  TOsCall = (ocReserve, ocRelease, ocCommit, ocHuge, ocPurge, ocMove, ocWait, ocWake, ocClock);

  PBlock = ^TBlock;
  PSpan = ^TSpan;
  PHeap = ^THeap;
  PArena = ^TArena;
  PDebugBlock = ^TDebugBlock;
  PDebugCalls = ^TDebugCalls;

  /// A free block. A block in use has no header at all.
  TBlock = record
    Link: NativeUInt; //< owner   address of the next free block, or EndOfList, xor Process.LinkKey
  end;

  /// A lock for slow paths; see LaneMM.Lock.
  TLock = record
    State: TAtomicWord;       //< shared  0 free, 1 taken, 2 taken and somebody may be parked
    Contended: TAtomicWord;   //< shared  first tries that failed
  end;

  /// One record per slice of an arena; the record of a span's first slice describes the span.
  ///
  /// The first line is for the owner alone. A thread that frees blocks of others reads and writes
  /// only the second, so it does not take the first from an owner who allocates.
  ///
  /// Always, for skBlocks: (Used + length(FreeList)) * BlockSize = CarvedBytes, with one more in
  /// Used if the span is current; Used counts the blocks on Remote too. CarvedBytes <= BlockBytes.
  /// FreeList is odd (EndOfList) when it is empty.
  /// Always, for skLarge: CarvedBytes and DivideMagic are 1, so only Start is where a block begins.
  ///
  /// For skDebug the fields of the owner belong to the debug lock: FreeList is the address of a
  /// TDebugBlock or 0, Used counts the blocks in use and in quarantine, BlockBytes and CarvedBytes
  /// count blocks, BlockSize is the distance from one to the next, IsCurrent says that the span is
  /// in Process.DebugSpans.
  TSpan = record
    case Byte of
      0: (
        FreeList: NativeUInt;     //< owner   first free block, or EndOfList
        Used: Cardinal;           //< owner   blocks in use, plus one while the span is current
        Next: PSpan;              //< lock Heap or Arena  next in the queue, bin or list it is in
        Prev: PSpan;              //< lock Heap or Arena  previous one
        Younger: PSpan;           //< lock Arena  next warm run in the order of use
        Older: PSpan;             //< lock Arena  previous warm run
        Epoch: Cardinal;          //< lock Arena  the free run is valid in this epoch only
        IsWarm: Boolean;          //< lock Arena  the free run may hold backed pages
        IsZero: Boolean;          //< const   the run held only zeros when it was taken
        IsMoved: Boolean;         //< owner   the pages were moved here, see LaneMM.Large
        RoomCount: Cardinal;      //< owner   slices at its end that Process.RoomSlices counts
      );
      1: (
        OwnerLine: TCacheLine;    //< padding other threads write below this line
        Owner: PHeap;             //< shared  the owning heap or NoOwner; written by its owner
        Remote: TAtomicWord;      //< shared  blocks freed by others, see LaneMM.RemoteList
        BlockSize: NativeUInt;    //< const   usable bytes of a block (large: changed by realloc)
        DivideMagic: UInt64;      //< const   Offset * DivideMagic < DivideMagic: a block begins
        Start: PByte;             //< const   address of the first slice
        SliceCount: NativeUInt;   //< const   slices of the run (while free: lock Arena)
        BlockBytes: Cardinal;     //< const   of all blocks that the span can hold
        CarvedBytes: Cardinal;    //< owner   of the blocks ever handed out or on FreeList
        Distance: Cardinal;       //< const   slices back to the first slice (skInner, skFreeEnd)
        Kind: TSpanKind;          //< const   what this record stands for
        SizeClass: Byte;          //< const   index of the block size
        IsCurrent: Boolean;       //< owner   the heap allocates from it now; others may peek
      );
      2: (Lines: array[0..1] of TCacheLine); //< padding the record is two lines long
  end;

  /// Limits of what the heap holds, see LaneMM.Limits.
  TLimitKind = (
    lkSoft,    //< is reported
    lkHard     //< is not exceeded
  );
  /// Whether a limit was reached.
  TLimitState = (
    lsBelow,   //< it was not reached since memory was clearly less
    lsReached, //< it was, and nobody was told
    lsTold     //< it was, and that was reported
  );
  /// A limit.
  TLimit = record
    Slices: NativeUInt;  //< shared  0: there is none
    State: TAtomicWord;  //< shared  TLimitState
  end;

  /// Does something to a lock.
  TLockCall = procedure(var Lock: TLock);
  /// Is told of a block of a span that is about to be freed.
  TFreeCall = procedure(Span: PSpan; P: Pointer);
  /// Is told of a debug block that is being freed.
  TDebugFreeCall = procedure(Block: PDebugBlock);
  /// Does something to a block; returns its usable size.
  TBlockCall = function(P: Pointer): TSize;
  /// Is told of a size.
  TSizeProcedure = procedure(Size: TSize);
  /// Gets a block.
  TSizeCall = function(Size: TSize): Pointer;
  /// Looks at the words from First up to Limit. Context is the caller's.
  TRangeCall = procedure(First, Limit: NativeUInt; Context: Pointer);
  /// Calls Visitor for ranges of words.
  TRangesCall = procedure(Visitor: TRangeCall; Context: Pointer);
  /// Writes the return addresses of its callers, at most Limit, innermost first; returns how many.
  TFramesCall = function(Frames: PNativeUInt; Limit: Cardinal): Cardinal;

  /// A block in use, as LaneMM.Walk finds it. Only a debug block knows more than the first three.
  TBlockInfo = record
    Address: PByte;           //< owner   where its data begins
    UsableSize: NativeUInt;   //< owner   bytes that it holds; of a debug block, bytes asked for
    Kind: TSpanKind;          //< owner   of the span that it lies in
    Number: NativeUInt;       //< owner   of the allocation, counted from 1; 0: unknown
    Thread: NativeUInt;       //< owner   number of the thread that got it; 0: unknown
    Stack: Cardinal;          //< owner   of the allocation, see LaneMM.BacktraceTable; 0: unknown
    Group: Cardinal;          //< owner   allocation group, see LaneMM.Debug
  end;
  /// Looks at one block. Context is the caller's.
  TBlockVisitor = procedure(const Block: TBlockInfo; Context: Pointer);
  /// Visits the blocks in use of a debug span.
  TDebugVisit = procedure(Span: PSpan; Visitor: TBlockVisitor; Context: Pointer);
  /// Finds the block in use of a debug span whose data hold P; tells whether there is one.
  TDebugFind = function(Span: PSpan; P: Pointer; out Block: TBlockInfo): Boolean;
  /// Changes the size of a block.
  TReallocCall = function(var P: Pointer; Size: TSize): Pointer;

  /// Counts of ReallocMem.
  TReallocCounts = record
    Calls: NativeUInt;        //< owner   calls with a block and a size
    Moves: NativeUInt;        //< owner   calls that changed the address
    CopiedBytes: NativeUInt;  //< owner   bytes copied by those moves
  end;

  /// The spans of one thread, or, once, of all ended threads: the orphan heap.
  ///
  /// Always: a span in Queues[C] is owned by this heap, has size class C, and is not current.
  THeap = record
    case Byte of
      0: (
        Current: array[0..SizeClassCount - 1] of PSpan; //< owner  the span that serves a class
        Realloc: TReallocCounts;                        //< owner  counted by this thread
        StackFirst: NativeUInt;                         //< owner  lowest address of its stack, or 0
        StackLimit: NativeUInt;                         //< owner  the end of its stack
        SampleIn: NativeInt;                            //< owner  bytes to the next sample
        SampleSeed: NativeUInt;                         //< owner  of its random numbers
        ThreadNumber: Cardinal;                         //< owner  the system's number, or 0
        Group: Cardinal;                                //< owner  of its next debug blocks
        DebugThread: Pointer;                           //< owner  see LaneMM.DebugThreads
        QueuesLine: TCacheLine;                         //< padding trimming threads write below
        Queues: array[0..SizeClassCount - 1] of PSpan;  //< lock Heap  other spans with free blocks
        Lock: TLock;                                    //< shared  guards Queues
        Taken: TAtomicWord;                             //< shared  spans taken over, not yet queued
        NextHeap: PHeap;                                //< const   next in Process.Heaps
        NextUnused: PHeap;                              //< lock Registry  next record to reuse
        GroupStack: PCardinal;                          //< owner  see LaneMM.Groups; nil: none yet
        GroupDepth: Cardinal;                           //< owner  scopes of groups that are open
        IsTracing: Boolean;                             //< owner  LaneMM.AllocationLog writes an event
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

  /// What becomes of a debug block.
  TDebugState = (
    dsNever,     //< never handed out
    dsChanging,  //< one thread fills it
    dsInUse,     //< the program has it
    dsFreed      //< the program has given it back; it holds the pattern of free blocks
  );
  /// What is noted of a debug block; it lies at the start of the span, apart from the block.
  TDebugBlock = record
    State: TAtomicWord;    //< shared  TDebugState, in the higher bits the number of changes
    Size: NativeUInt;      //< owner   bytes asked for
    Number: NativeUInt;    //< owner   allocation number, from 1
    FirstWord: NativeUInt; //< owner   of the contents when it was freed: of what class it was
    Next: PDebugBlock;     //< lock Debug  next free block of the span
    GotStack: Cardinal;    //< owner   see LaneMM.BacktraceTable
    FreedStack: Cardinal;  //< owner
    GotThread: Cardinal;   //< owner   the system's number of the thread
    FreedThread: Cardinal; //< owner
    Group: Cardinal;       //< owner   the program's number for it, or 0
    Sum: Cardinal;         //< owner   over the fields of the owner
  end;

  /// A call of the program with a pointer that is no block.
  TInvalidCall = (icFree, icResize, icSize);
  /// Who takes the calls for debug blocks, and is told of pointers that are no blocks.
  TDebugCalls = record
    Free: function(P: Pointer): TSize;                              //< const
    Resize: function(var P: Pointer; Size: TSize): Pointer;         //< const
    UsableSize: function(P: Pointer): TSize;                        //< const
    Owns: function(P: Pointer): Boolean;                            //< const
    Invalid: procedure(P: Pointer; Call: TInvalidCall);             //< const
  end;

  /// Freed debug blocks in the order of their end, which wait before they are used again.
  TQuarantine = record
    Room: PNativeUInt;     //< const   their addresses, a ring; nil: debug mode never was on
    First: NativeUInt;     //< lock Debug  where the oldest lies, modulo the length of the ring
    Limit: NativeUInt;     //< lock Debug  where the next one goes, likewise
    Bytes: NativeUInt;     //< lock Debug  bytes that they take
    MostBytes: NativeUInt; //< shared  bytes that they may take
  end;

  /// Everything that the process shares. The first lines are read by every call, and written at
  /// start and when an arena grows.
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
        ThreadKey: Cardinal;      //< const   the thread library's key of the same
        Orphans: PHeap;           //< const   the heap of what ended threads left
        SpinLimit: Cardinal;      //< const   turns before a thread parks; 0 on one CPU
        PurgeDelayMs: Cardinal;   //< const   how long memory is unused before it is purged
        ForkMark: PNativeUInt;    //< shared  reads 0 in a child process that has not recovered
        PurgerNotify: TPlainProcedure; //< const   see LaneMM.Purge; nil where there is none
        ForkRecover: TPlainProcedure; //< const   what such a child calls before it takes a lock
        MainHeap: PHeap;          //< owner   the heap of a program without threads
      );
      1: (
        ReadLines: array[0..1] of TCacheLine;       //< padding  end of what is read by every call
        ArenaLock: TLock;                           //< shared  guards all that follows
        Arenas: array[0..ArenaLimit - 1] of TArena; //< lock Arena  the first ArenaCount are in use
        ArenaCount: NativeUInt;                     //< lock Arena
        Warm: TBins;                                //< lock Arena  free runs with backed pages
        Cold: TBins;                                //< lock Arena  free runs without
        Oldest: PSpan;                              //< lock Arena  warm run unused for longest
        Youngest: PSpan;                            //< lock Arena  warm run freed last
        WarmSlices: NativeUInt;                     //< lock Arena  in Warm
        ColdSlices: NativeUInt;                     //< lock Arena  in Cold
        PeakSlices: NativeUInt;                     //< lock Arena  most slices backed at a time
        RoomSlices: TAtomicWord;                    //< shared  of large blocks, behind BlockSize
        MovedSpans: TAtomicWord;                    //< shared  spans whose IsMoved is set
        PeakUsed: NativeUInt;                       //< shared  most bytes in use seen by a status
        WarmLow: NativeUInt;                        //< lock Arena  lowest WarmSlices since a look
        LookedMs: Cardinal;                         //< shared  the clock when it was looked at
        ClockDue: Cardinal;                         //< shared  calls until the clock is read again
        Epoch: Cardinal;                            //< lock Arena  raised when a child recovers
        Released: TAtomicWord;                      //< shared  spans given back without the lock
        SweepWanted: TAtomicWord;                   //< shared  1: an idle owner has empty spans
        SweepFrom: TAtomicWord;                     //< shared  backed slices worth the next sweep
        Purger: TAtomicWord;                        //< shared  see LaneMM.Purge
        RegistryLock: TLock;                        //< shared  guards the next three
        Heaps: PHeap;                               //< lock Registry  all heaps ever made
        UnusedHeaps: PHeap;                         //< lock Registry  records of ended threads
        HeapRoom: PByte;                            //< lock Registry  room for further records
        HeapRoomEnd: PByte;                         //< lock Registry
        OsCalls: array[TOsCall] of TAtomicWord;     //< shared  calls so far, by kind
        Previous: TMemoryManager;                   //< const   what was installed before
        HasPrevious: Boolean;                       //< const   it may have blocks in use
        Copies: Pointer;                            //< const   see LaneMM.Foreign
        EmptySpan: TSpan;                           //< const   current where a heap has no span
        Settings: TSettings;                        //< shared  see LaneMM.Settings
        CodeFirst: NativeUInt;                      //< const   the code of this module
        CodeLimit: NativeUInt;                      //< const   its end
        ManagerCalls: NativeUInt;                   //< const   where the RTL keeps its manager
        FramesTake: TFramesCall;                    //< const   where many modules have code, or nil
        RootsVisit: TRangesCall;                    //< const   what holds no leaks, or nil
        IsMalloc: Boolean;                          //< const   this is liblanemm, see lib/
        WatchWait: TLockCall;                       //< shared  takes a taken lock; nil: unwatched
        WatchMiss: TLockCall;                       //< shared  told of one left; nil: unwatched
        WatchRemoteFree: TFreeCall;                 //< shared  told of such a free; nil: unwatched
        WatchLargeFree: TFreeCall;                  //< shared  told of such a free; nil: unwatched
        WatchDebugFree: TDebugFreeCall;             //< shared  told of such a free; nil: unwatched
        ForkForget: TPlainProcedure;                //< shared  what a child forgets; nil: nothing
        SampledGet: TSizeCall;                      //< shared  gets the block that is sampled
        SampleLock: TLock;                          //< shared  guards the spans of Samples
        Samples: PHeap;                             //< const   owns the spans of sampled blocks
        SampleTable: TAtomicWord;                   //< shared  see LaneMM.Sampler
        SamplesLost: TAtomicWord;                   //< shared  blocks that could not be sampled
        SiteKeys: TAtomicWord;                      //< shared  see LaneMM.CallSites
        SiteRoom: Pointer;                          //< const   see LaneMM.CallSites
        SitesUsed: TAtomicWord;                     //< shared  sites in the table
        SitesLost: TAtomicWord;                     //< shared  events that found it full
        RemoteFrees: TAtomicWord;                   //< shared  since they are watched
        LockMisses: TAtomicWord;                    //< shared  see LaneMM.LockProfile
        Growths: TAtomicWord;                       //< shared  see LaneMM.Growth
        GrowthStacks: TAtomicWord;                  //< shared  stacks that it asked for
        GrowthCall: TReallocCall;                   //< shared  resizes the blocks that it counts
        EndSignals: TAtomicWord;                    //< shared  1: LaneMM.Watch has taken them
        Debug: PDebugCalls;                         //< shared  nil: debug mode never was on
        DebugLock: TLock;                           //< shared  guards the next two
        DebugSpans: array[0..SizeClassCount - 1] of PSpan; //< lock Debug  with a block to give
        Quarantine: TQuarantine;                    //< lock Debug
        GuardReaders: TAtomicWord;                  //< shared  threads that read all blocks
        GuardChanges: TAtomicWord;                  //< shared  threads that take pages away
        DebugNumber: TAtomicWord;                   //< shared  given to threads for debug blocks
        DebugDepth: TAtomicWord;                    //< shared  calls of LaneMM_EnterDebugMode
        DebugOperations: TAtomicWord;               //< shared  counted for opCheck
        GuardedBlocks: TAtomicWord;                 //< shared  with pages that nobody can touch
        NewFill: Byte;                              //< const   what new debug blocks hold
        FreeFill: Byte;                             //< const   what freed debug blocks hold
        ObjectTrap: NativeUInt;                     //< const   see LaneMM.FreedObjects; 0: none
        InterfaceTrap: NativeUInt;                  //< const   see LaneMM.FreedObjects; 0: none
        FaultCall: Pointer;                         //< shared  see OsFaultSet
        FaultHandlers: array[0..1] of NativeUInt;   //< shared  handlers that were set before
        FaultFlags: array[0..1] of NativeUInt;      //< shared  their flags
        StackTable: TAtomicWord;                    //< shared  see LaneMM.BacktraceTable
        Events: TEventRules;                        //< shared  see LaneMM.EventRules
        EventCall: TEventCall;                      //< shared  is told of events; nil: nobody
        Messages: TAtomicWord;                      //< shared  see LaneMM.Messages
        DebugVisit: TDebugVisit;                    //< const   of LaneMM.Debug; nil: none
        DebugFind: TDebugFind;                      //< const   of LaneMM.Debug; nil: none
        PurgerId: Cardinal;                         //< shared  the thread of LaneMM.Purge
        Expected: Pointer;                          //< lock Expected  see LaneMM.Suppressions
        ExpectedLock: TLock;                        //< shared  guards what is at Expected
        PauseSignal: Cardinal;                      //< owner   see LaneMM.Pause; 0: none yet
        PauseState: TAtomicWord;                    //< shared  1: threads that are asked wait
        PauseAnswers: TAtomicWord;                  //< shared  threads that do
        PauseStacks: Pointer;                       //< owner   their stack pointers
        Modules: TAtomicWord;                       //< shared  see LaneMM.Modules
        IsTracing: Boolean;                         //< shared  see LaneMM.AllocationLog
        TracedCount: TAtomicWord;                   //< shared  blocks that were chosen there
        GroupNames: TAtomicWord;                    //< shared  see LaneMM.Groups
        Limits: array[TLimitKind] of TLimit;        //< shared  of the slices that are backed
        HasLimits: Boolean;                         //< shared  there is one, or a reserve
        ReserveSlices: NativeUInt;                  //< shared  that are to be kept back
        Reserve: TAtomicWord;                       //< shared  the span that is; 0: none now
        MemoryFailed: TSizeProcedure;               //< shared  told of errors 203; nil: nobody
        ClassOf: array[0..ClassTableLength - 1] of Byte;           //< const  by size / ClassStep
        ClassSlices: array[0..SizeClassCount - 1] of Byte;         //< const  slices of a span
        StackSteps: array[0..StackStepCount - 1] of TAtomicWord;   //< shared see LaneMM.Unwind
      );
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
  /// The state that all threads share. The only global variable.
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
{$if SizeOf(TSpan) <> 2 * CacheLineSize}
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
