/// The sizes that the engine is built on, and the small types that its records are made of.
//
// Owns:       nothing.
// Callers:    every unit.
unit LaneMM.Layout;

{$I ../LaneMM.inc}

interface

const
  /// True in a build that checks the invariants of LaneMM.Types at run time.
  Checked = {$ifdef LANEMM_CHECKED} True {$else} False {$endif};
  /// True on x86_64.
  IsX64 = {$ifdef LANEMM_X64} True {$else} False {$endif};
  /// True on x86_64 and i386.
  IsX86 = {$ifdef LANEMM_X86} True {$else} False {$endif};
  /// True on AArch64.
  IsA64 = {$if defined(CPUAARCH64) or defined(CPUARM64)} True {$else} False {$ifend};
  /// Bytes that the compiler aligns the parts of its type information to.
  TypeInfoAlignment =
    {$ifdef FPC_REQUIRES_PROPER_ALIGNMENT} SizeOf(Pointer) {$else} 1 {$endif};

  /// Bytes of a cache line; records that several threads write are aligned to it.
  CacheLineSize = 64;
  /// Alignment of every block, in bytes.
  BlockAlignment = 16;

  /// An arena is cut into slices of this many bytes.
  SliceShift = 16;
  SliceSize = NativeUInt(1) shl SliceShift;
  /// A span of blocks is shorter than 2 to this power.
  OffsetBits = 20;
  /// Most blocks of a span, a mask of their count in TSpan.Remote; the shift of the offset in it,
  /// and the word of a span that was given up, see LaneMM.RemoteList.
  MostSpanBlocks = 4095;
  RemoteFirstShift = 12;
  GivenUpSpan = 2 shl RemoteFirstShift;
  /// The word of a large block that a thread of another heap frees.
  FreedSpan = GivenUpSpan + 1;
  /// Step of the count of lives in TSpan.Remote; a word of 32 bits has no room for one.
  LifeStep = {$ifdef CPU64} NativeUInt(1) shl 32 {$else} NativeUInt(0) {$endif};
  /// Binary logarithm of the size of a span record, for the assembler.
  SpanRecordShift = 8;
  /// Cache lines of a heap record.
  HeapLines = 32;
  /// Up to this many bytes the assembler copies, fills and compares without a loop, since no CPU
  /// predicts how often a loop runs.
  MostFew = 128;
  /// Most arenas of a process.
  ArenaLimit = 64;
  /// A word with the address of a heap and a count: the address, a multiple of the size of a record
  /// (2 KB), is shifted by HeapWordShift bits (a process has 48 bits of addresses), and the bits
  /// below it count.
  HeapWordShift = {$ifdef CPU64} 16 {$else} 0 {$endif};
  HeapWordCountBits = HeapWordShift + 11;
  /// Stacks of heaps that ended threads left; a power of two.
  VacantStacks = 8;
  /// Most shards of the free runs; a process uses a power of two.
  ShardLimit = 16;
  /// Cache lines of a shard.
  ShardLines = 50;
  /// Slices that an arena reserves at first (1 GB; 32 MB), and how many it may grow to (1 TB;
  /// 1 GB): emulators pay for each reserved page, and a 32-bit program needs addresses itself.
  /// Windows commits no range of two reservations: arenas do not grow (64 GB; 128 MB).
  {$ifdef MSWINDOWS}
  FirstStep = NativeUInt(1) shl {$ifdef CPU64} 20 {$else} 11 {$endif};
  LongestArena = FirstStep;
  {$else}
  FirstStep = NativeUInt(1) shl {$ifdef CPU64} 14 {$else} 9 {$endif};
  LongestArena = NativeUInt(1) shl {$ifdef CPU64} 24 {$else} 14 {$endif};
  {$endif}
  /// Process.SavingFrom: half of the addresses of a 32-bit program.
  {$ifdef CPU64}
  SavingFromDefault = High(NativeUInt);
  {$else}
  SavingFromDefault = NativeUInt(1) shl ({$ifdef MSWINDOWS} 30 {$else} 31 {$endif} - SliceShift);
  {$endif}
  /// Values of Process.Refused.
  RefusedOnce = 1;
  RefusedAndUncharged = 2;
  /// A large block that had to move takes a run of this many times its size: it then grows in
  /// place, and the bytes copied on the way stay a small part of its final size.
  GrowthFactor = 8;
  /// GrowthFactor while addresses are scarce: where pages are moved, no more than the block needs.
  SavingGrowthFactor = {$ifdef MSWINDOWS} 2 {$else} 1 {$endif};
  /// Address of the pages where all copies of LaneMM in a process register, see LaneMM.Foreign.
  /// Those of other units follow. Of 64 bits it is one that processes with 39 bits of addresses
  /// have, too (AArch64): below programs, libraries and stacks, and above the heap of a program at
  /// a low address.
  CopiesAddress = NativeUInt({$ifdef CPU64} $2C616E0000 {$else} $6C610000 {$endif});
  /// Longest run of slices: 2 TB, or half of a 32-bit address space.
  MaxRunSlices = NativeUInt(1) shl {$ifdef CPU64} 25 {$else} 15 {$endif};
  /// Bins of free runs, by length: exact up to 8 slices, then eight per doubling.
  BinCount = 192;
  /// Words of a bitmap with one bit per bin.
  BinMapWords = BinCount div 32;

  /// Size classes: multiples of 16 up to 256, then eight per doubling up to 8 KB, then four.
  SizeClassCount = 68;
  /// The queue of a region's large blocks, after those of the classes.
  LargeQueue = SizeClassCount;
  /// Slices of its limit that a region has only for small blocks after the limit was reported: an
  /// exception needs some.
  RegionReserve = 2;
  /// Most characters of a region's name.
  MostRegionName = 63;
  /// Most spans that a call looks at in the queues of heaps, and that share one barrier of all
  /// threads: the rest waits for the next calls, or for the purge thread.
  MostAtOnce = 32;
  /// The last class whose first blocks in a thread come from spans of a larger class.
  LastSharedClass = 55;
  /// They do not while the threads that left blocks behind at their end lead the others by this
  /// many: each such block would be larger than requested for its whole life.
  FewLeaving = 8;
  /// The first class above 8 KB: a block of it may be longer than requested by whole pages.
  FirstCoarseClass = 56;
  /// Largest requested size, in bytes, that a size class serves.
  MaxClassSize = 65536;
  /// Largest block size, in bytes, whose spans are one slice long.
  MaxSmallSize = 8192;

  /// Steps of the table from requested size to size class, in bytes, and its length.
  ClassStepShift = 4;
  ClassStep = 1 shl ClassStepShift;
  ClassTableLength = MaxClassSize div ClassStep + 1;
  /// Requested sizes below it have a size class.
  ClassSizes = MaxClassSize + 1;

  /// Lengths, in slices, of the runs that a heap keeps, and how many of each, see LaneMM.KeptRuns.
  ShortestKept = 2;
  LongestKept = 8;
  RunPlaces = 7;
  /// Binary logarithm of the size of TKeptRuns, for the assembler.
  KeptRunsShift = {$ifdef CPU64} 6 {$else} 5 {$endif};
  /// A heap keeps at most this many slices, 2 MB, and as many more as it has lately not found when
  /// it needed them; never more than 8 MB. So a thread that exchanges blocks of 64 to 512 KB finds
  /// a run 99 times of 100, and one that frees the blocks of others keeps few.
  LeastKept = 32;
  MostKept = 128;

  /// A resize to less than the usable size shr KeptShift moves the block, or shortens a large block
  /// in place; any other reduction leaves the block as it is.
  KeptShift = 2;
  /// No reduction moves a block of at most this many bytes, two cache lines.
  MostTiny = 2 * CacheLineSize;

  /// Bytes that a thread must have used in spans that are full, and the process must have, before
  /// the thread may get a huge page.
  HugeFromDefault = {$ifdef MSWINDOWS} 0 {$else} 16 shl 20 {$endif};
  /// Slices of a huge page (2 MB).
  HugeSlices = 32;
  /// Longest span of blocks, in slices, that may come from a huge page: the blocks of longer ones
  /// have the most pages that no one requested, which it would back.
  MostDenseSlices = 8;

  /// Thread-local offsets of the first two thread-library keys of a process in glibc on x86_64;
  /// where the keys of this process are, is found at the start.
  FirstKeySlot = $318;
  SecondKeySlot = $328;

type
  /// A size in bytes as the memory-manager record of Free Pascal declares it.
  TSize = {$ifdef FPC} PtrUInt {$else} NativeUInt {$endif};
  /// A word that any thread changes, always through LaneMM.Atomic.
  TAtomicWord = NativeUInt;
  /// Padding of one cache line, between fields that different threads write.
  TCacheLine = array[0..CacheLineSize - 1] of Byte;
  /// A path, ended by #0.
  TPath = array[0..1023] of AnsiChar;
  PPath = ^TPath;

  /// A routine without parameters.
  TPlainProcedure = procedure;

  /// What a span record stands for.
  TSpanKind = (
    skNone,      //< a slice that was never used
    skFree,      //< first slice of a free run
    skFreeEnd,   //< last slice of a free run of two slices or more
    skInner,     //< later slice of a span of blocks; Distance leads to the first
    skBlocks,    //< first slice of a span of blocks of one size class
    skLarge,     //< first slice of a large block
    skReleased,  //< released, waiting for the arena lock
    skDebug,     //< first slice of a span of debug blocks, see Hooks.DebugFree
    skReserve    //< first slice of the emergency reserve, see LaneMM.Limits, or of a run that is
                 //  never used again, see LaneMM.Large
  );
  /// A set of kinds.
  TSpanKinds = set of TSpanKind;

const
  /// Kinds of the first records of spans in use.
  KindsInUse = [skBlocks, skLarge, skDebug, skReserve];

type

  /// Operating system calls that are counted.
  TOsCall = (ocReserve, ocRelease, ocCommit, ocHuge, ocPurge, ocMove, ocWait, ocWake, ocClock);

  /// A lock for slow paths; see LaneMM.Lock.
  TLock = record
    State: TAtomicWord;       //< shared  0 free, 1 taken, 2 taken and threads may be parked
    Contended: TAtomicWord;   //< shared  first tries that failed
  end;

  /// Counts of ReallocMem, of one thread or of all. That thread writes; a sum of all threads reads
  /// without a lock and may be a little old.
  TReallocCounts = record
    Calls: NativeUInt;        //< racy    calls with a block and a size
    Moves: NativeUInt;        //< racy    calls that changed the address
    CopiedBytes: NativeUInt;  //< racy    bytes copied by those moves
  end;

  /// Limits of the memory that the heap holds, see LaneMM.Limits.
  TLimitKind = (
    lkSoft,    //< reported when exceeded
    lkHard     //< memory above it is refused
  );
  /// Progress of a limit's report.
  TLimitState = (
    lsBelow,    //< not reached since memory was clearly below it
    lsReached,  //< reached, not yet reported
    lsReported  //< reached and reported
  );
  /// How threads wait on Windows, see LaneMM.Os.
  TWaiting = record
    Wait, Wake, WakeAll: Pointer; //< const   calls of Windows 8 or later; nil: the semaphore serves
    Semaphore: TAtomicWord;       //< shared  the handle, 0 before the first wait
    Waiters: TAtomicWord;         //< shared  threads that wait for it, or are about to
  end;
  /// A limit.
  TLimit = record
    Slices: NativeUInt;  //< racy    0: no limit; an old value holds a moment longer
    State: TAtomicWord;  //< shared  TLimitState
  end;

{$ifndef FPC}
  // Records of Free Pascal's run-time library that Delphi lacks, see LaneMM.Rtl.

  /// The status of the heap.
  TFPCHeapStatus = record
    MaxHeapSize, MaxHeapUsed: NativeUInt;                //< owner   most bytes so far
    CurrHeapSize, CurrHeapUsed, CurrHeapFree: NativeUInt; //< owner   bytes now
  end;
  /// The routines of a memory manager; while they are replaced, a thread may call an old one.
  TMemoryManager = record
    GetMem: function(Size: NativeUInt): Pointer;                     //< racy   see above
    FreeMem: function(P: Pointer): NativeUInt;                       //< racy   see above
    FreeMemSize: function(P: Pointer; Size: NativeUInt): NativeUInt; //< racy   see above
    AllocMem: function(Size: NativeUInt): Pointer;                   //< racy   see above
    ReallocMem: function(var P: Pointer; Size: NativeUInt): Pointer; //< racy   see above
    MemSize: function(P: Pointer): NativeUInt;                       //< racy   see above
    GetHeapStatus: function: THeapStatus;                            //< racy   see above
    GetFPCHeapStatus: function: TFPCHeapStatus;                      //< racy   see above
  end;
{$endif}

implementation

end.
