/// The state of record/: the tables of call sites, growing blocks and samples.
//
// Owns:       Observe. SampleLock is only tried, and held while shards are tried.
unit LaneMM.ObserveState;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.OsGroup, LaneMM.Text;

type
  /// Samples of a size class, or of a power of two above the largest one, as blocks and bytes.
  TSizeCounts = record
    Count: TAtomicWord;         //< shared  blocks allocated
    Bytes: TAtomicWord;         //< shared  their requested bytes
    FreedCount: TAtomicWord;    //< shared  of Count, blocks freed since
    FreedBytes: TAtomicWord;    //< shared  of Bytes, bytes freed since
  end;
  PSizeCounts = ^TSizeCounts;

const
  /// Sizes that the samples distinguish.
  SizeCount = SizeClassCount + 8 * SizeOf(NativeUInt) - 16;

type
  /// Adds lines to a report.
  TAddText = procedure(var Text: TText);

  /// Asks the program to free memory, such as that of a cache: the container has Used bytes of
  /// Limit; Limit 0: it has none, and its tasks wait for memory. Context is the program's.
  TPressureCall = procedure(Used, Limit: UInt64; Context: Pointer);
  /// A registered call.
  TPressureEntry = record
    IsTaken: TAtomicWord;       //< shared  1: the entry is in use
    Call: TAtomicWord;          //< shared  a TPressureCall, or 0
    Context: Pointer;           //< racy    written before Call; see LaneMM.Pressure
  end;

  /// The state that the room shares.
  TObserve = record
    SiteKeys: TAtomicWord;      //< shared  keys of the sites, see LaneMM.CallSites; 0: no table
    Sites: Pointer;             //< const   records of the sites, see LaneMM.CallSites
    SitesUsed: TAtomicWord;     //< shared  sites in the table
    SitesLost: TAtomicWord;     //< shared  events that found the table full
    RemoteFrees: TAtomicWord;   //< shared  remote frees seen
    LockMisses: TAtomicWord;    //< shared  failed tries of locks seen
    Growths: TAtomicWord;       //< shared  the table of LaneMM.Growth; 0: none
    GrowthStacks: TAtomicWord;  //< shared  growth events that might take a backtrace
    GrowthBehind: TMemoryManager; //< racy  the routines behind those of LaneMM.Growth, see
                                //  LaneMM.Watch; an old one serves as well
    FillBehind: TMemoryManager; //< racy    the routines behind those of LaneMM.Erase that fill new
                                //  blocks; set before these are installed. An old one serves
    SampleLock: TLock;          //< shared  guards the spans of Samples; only tried
    Samples: PHeap;             //< const   owns the spans of sampled blocks; nil: none yet
    SampleTable: TAtomicWord;   //< shared  the sampled blocks, see LaneMM.Samples; 0: none
    SamplesLost: TAtomicWord;   //< shared  samples that memory in use and the peak lack
    Windows: TAtomicWord;       //< shared  numbers of allocations, see LaneMM.Samples; 0: none
    ClassTable: TAtomicWord;    //< shared  the table of LaneMM.SampledClasses; 0: none
    InUseCount: TAtomicWord;    //< shared  blocks in use that the samples stand for
    InUseBytes: TAtomicWord;    //< shared  their bytes
    AllocatedBytes: TAtomicWord; //< shared  bytes allocated that the samples stand for
    SampleMean: TAtomicWord;    //< shared  see SamplesMean; where AllocatedBytes wraps it stays
    PeakTotal: TAtomicWord;     //< shared  highest InUseBytes
    PeakMs: TAtomicWord;        //< shared  when it changed last, see RunMs
    Sizes: array[0..SizeCount - 1] of TSizeCounts; //< shared  by size, see LaneMM.Samples
    TimeLine: TAtomicWord;      //< shared  the points of LaneMM.TimeLine; 0: none
    TimeLineBusy: TAtomicWord;  //< shared  1: a thread reads or writes the points
    TimeLineMs: TAtomicWord;    //< shared  OsNowMs of the last point
    TimeLineStepMs: TAtomicWord; //< shared  least distance of two points
    StartMs: Cardinal;          //< const   OsNowMs when SiteKeys was set
    StartSeconds: UInt64;       //< const   OsUnixSeconds then
    ReportMs: TAtomicWord;      //< shared  OsNowMs of the last timed report, or start of its period
    ReportEveryMs: Cardinal;    //< lock Control  the period that was applied last; 0: none
    ReporterState: TAtomicWord; //< shared  of the thread that writes timed reports
    ReporterChanges: TAtomicWord; //< shared  counts changes of the period; the thread waits on it
    ReporterRights: Cardinal;   //< const   OsRightsMark before it started
    ReportCount: TAtomicWord;   //< shared  reports written so far
    HasLeaks: Boolean;          //< owner   the end of the program: the next two are known
    LeakedCount: NativeUInt;    //< owner   blocks that leaked, all of them, see LaneMM.Leaks
    LeakedBytes: NativeUInt;    //< owner   their usable bytes
    WriteReport: TPlainProcedure; //< const   writes a timed report; see LaneMM.Watch
    HoldBlocks: TPlainProcedure; //< const   keeps blocks readable that other threads free, until
                                //  LetGoBlocks; see LaneMM.Watch, LaneMM.GuardPages
    Spare: TAtomicWord;         //< shared  memory that a report about a limit gives back before it
                                //  takes its own; 0: none
    ReportSpare: TAtomicWord;   //< shared  likewise, for the setting `limit:report`
    LimitReports: array[TLimitEvent] of TAtomicWord; //< shared  1: what held the memory then has
                                //  been reported
    AddMostUsed: TAddText;      //< const   adds the groups in use with most bytes; see LaneMM.Leaks
    AddInUse: TAddText;         //< const   adds a report of the blocks in use, likewise
    Group: TGroupMemory;        //< racy    of the container at the last look with pressure
    Pressed: TAtomicWord;       //< shared  1: there is pressure, and it has been reported
    PressureBusy: TAtomicWord;  //< shared  number of the thread that looks; 0: none does
    PressureMs: Cardinal;       //< racy    OsNowMs of the last look
    PressureCalls: array[0..15] of TPressureEntry; //< shared  see LaneMM.Pressure
    Box: TAtomicWord;           //< shared  the record of LaneMM.BlackBox; 0: none
    BoxBusy: TAtomicWord;       //< shared  1: a thread writes the black box
    LetGoBlocks: TPlainProcedure; //< const   ends one call of HoldBlocks
  end;

var
  /// The state of record/.
  Observe: TObserve;

implementation

end.
