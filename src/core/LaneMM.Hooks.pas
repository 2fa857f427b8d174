/// The engine's calls upwards, in one record: every edge from core/ to the rooms that watch it.
//
// Owns:       Hooks.
// Table, unit names without LaneMM:
//   hook            called by             under lock   set by        when
//   LockMiss        Lock                  any          CallSites     contention on; nil: off
//   RemoteFree      Free                  none         Watch         contention on, nil: off;
//                                                                    profile on, then it stays
//   LargeFree       Free                  none         Watch         profile on; stays
//   SampledGet      Allocate, counting    none         Watch         start, settings change
//                   forms of GetMem
//   DebugFree       Free                  none         Debug         first start, last of its hooks
//   DebugResize     Resize                none         Debug         first start
//   DebugSize       Blocks                none         Debug         first start
//   DebugOwns       Blocks                none         Debug         first start
//   DebugVisit      Walk, Stats           none         Debug         first start
//   DebugFind       Walk                  none         Debug         first start
//   InvalidPointer  Blocks                none         Debug         first start
//   BlockNote       Walk                  any          BlockNotes    stacks on; stays
//   MarkedSize      Walk, Engine          any          Hard          start of `hard`; stays
//   ThreadEnds      Threads               none         Hard, Counting start, first count
//   LimitReached    Limits                none         Watch         start, settings change
//   Corruption      Span                  none         Watch         start, settings change
//   ErrorIsTaken    Errors, OsFiles       any          OsFiles     start with a setting; stays
//   Fault           Os, signal handler    any          Faults        first debug block, before the
//                                                                    handler
//   ChildStarted    Fork                  none         Watch         start, settings change
//   ForkRecover     Lock                  none         Fork          start of the engine
//                                                                    (the one inside of core: locks
//                                                                    lie below what it recovers)
//   Ring            Purge                 upper rooms' Mailbox       start, before Process.Bell
//   Box             Purge                 upper rooms' BlackBox      start, settings change; nil at
//                                                                    the end
//   Sweep           Purge                 none         Watch         sampling on; stays
//   Pressure        Purge                 none         Watch         start, settings change; nil at
//                                                                    the end
//   Yield           Atomic, in a build    any          tests         before threads start
//                   with LANEMM_YIELD
// Invariants: a caller checks for nil, or another step that comes later shows that the hook is set:
//             DebugFree for the debug hooks, the handler for Fault, Process.ForkMark for
//             ForkRecover, the installed entry for SampledGet. A hook that became nil may still be
//             called for a moment: its routine stays valid. Debug hooks stay set: debug blocks
//             outlive debug mode.
// Threads:    a field is one pointer. Those that become nil again are read once per call, so a
//             change needs no lock.
unit LaneMM.Hooks;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

type
  /// An operation that was called with a pointer that is no block in use.
  TInvalidCall = (icFree, icResize, icSize);
  /// A limit's event.
  TLimitEvent = (
    leSoft,    //< the heap holds more than the soft limit
    leHard,    //< the hard limit refused memory
    leReserve, //< no memory: the emergency reserve was opened
    leRegion,  //< the limit of a region refused memory; the calling thread is in it
    leRefused, //< no limit, but the system refused memory, or the size is beyond all
    leContainer //< the container is near its limit, see LaneMM.Pressure
  );
  /// A block in use, as LaneMM.Walk finds it. A debug block alone has more than the first four
  /// fields; with BlockNote any block has Number, Thread and Stack.
  TBlockInfo = record
    Address: PByte;           //< owner   first byte of its data
    UsableSize: NativeUInt;   //< owner   usable size; of a debug block, the requested size
    RequestedSize: NativeUInt; //< owner   requested size; the usable size where that is unknown
    Kind: TSpanKind;          //< owner   kind of its span
    Number: NativeUInt;       //< owner   allocation number, from 1; 0: unknown
    Thread: NativeUInt;       //< owner   number of the thread that allocated it; 0: unknown
    Stack: Cardinal;          //< owner   number of the allocation's backtrace; 0: unknown
    Group: Cardinal;          //< owner   allocation group; 0: none
  end;
  /// What a faulting instruction did.
  TFaultAccess = (faUnknown, faRead, faWrite);
  /// A fault of the processor: an access that it refused, and the registers at that moment.
  TFault = record
    Address: NativeUInt;                   //< owner   address accessed; 0: not reported
    Access: TFaultAccess;                  //< owner   how
    Pc: NativeUInt;                        //< owner   address of the instruction
    Sp: NativeUInt;                        //< owner   stack pointer
    Frame: NativeUInt;                     //< owner   frame pointer
    Registers: array[0..30] of NativeUInt; //< owner   general registers, by the
                                           //  numbers that instructions have for them; the rest 0
  end;

  /// Visits a block. Context is the caller's.
  TBlockVisitor = procedure(const Block: TBlockInfo; Context: Pointer);
  /// Counts a lock that another thread has.
  TLockCall = procedure(var Lock: TLock);
  /// Observes a block of Span before it is freed.
  TFreeCall = procedure(Span: PSpan; P: Pointer);
  /// Frees a block, or only measures it; returns the usable size.
  TBlockCall = function(P: Pointer): TSize;
  /// Allocates a block.
  TSizeCall = function(Size: TSize): Pointer;
  /// Resizes a block.
  TResizeCall = function(var P: Pointer; Size: TSize): Pointer;
  /// Returns whether P is a block in use.
  TOwnsCall = function(P: Pointer): Boolean;
  /// Visits the blocks in use of a debug span.
  TDebugVisit = procedure(Span: PSpan; Visitor: TBlockVisitor; Context: Pointer);
  /// Finds the block in use of a debug span whose data hold P; returns whether it exists.
  TDebugFind = function(Span: PSpan; P: Pointer; out Block: TBlockInfo): Boolean;
  /// Adds to Block, of Span, the fields about its allocation.
  TBlockNoteCall = procedure(Span: PSpan; var Block: TBlockInfo);
  /// Returns the requested size of the block P, which is in use for the engine, of Usable bytes;
  /// Usable if that is not known, negative if the program has freed the block.
  TMarkedSizeCall = function(P: PByte; Usable: NativeUInt): NativeInt;
  /// Reports an invalid pointer.
  TInvalidPointerCall = procedure(P: Pointer; Call: TInvalidCall);
  /// Reports a limit; Size is the request in bytes, 0 for the soft limit.
  TLimitCall = procedure(Event: TLimitEvent; Size: NativeUInt);
  /// A corruption of a span.
  TCorruption = (
    coLink,  //< the first word of a free block was overwritten
    coCount  //< a block is in use, though as many were freed as were handed out
  );
  /// Reports that Span is corrupt at Block, which is nil if the block is unknown.
  TCorruptionCall = procedure(Corruption: TCorruption; Span: PSpan; Block: PBlock);
  /// Returns whether a file or a connection of the program has the number of stderr.
  TErrorCall = function: Boolean;
  /// Handles a fault, inside a signal handler.
  TFaultCall = procedure(const Fault: TFault);

  /// Recovers a child process after fork. IsTorn: other threads ran while it was copied, so two
  /// pages may show two moments, and a lock that is free proves nothing.
  TChildCall = procedure(IsTorn: Boolean);

  /// The hooks; the table above has callers, locks, and units that set them. A thread that reads an
  /// old value of a racy field calls the previous routine once more, or misses one event. A block
  /// reaches another thread only through the program's own synchronization, so a thread with a
  /// debug block reads the hooks that were set before it.
  THooks = record
    LockMiss: TLockCall;                 //< racy   after a LockTry that failed
    RemoteFree: TFreeCall;               //< racy   before a block of another heap is freed
    LargeFree: TFreeCall;                //< racy   before a large block is freed
    SampledGet: TSizeCall;               //< racy   allocates the block that is sampled
    DebugFree: TBlockCall;               //< racy   frees a debug block; set last, see above
    DebugResize: TResizeCall;            //< racy   resizes a debug block
    DebugSize: TBlockCall;               //< racy   returns the requested size of a debug block
    DebugOwns: TOwnsCall;                //< racy   returns whether P is a debug block in use
    DebugVisit: TDebugVisit;             //< racy   visits the blocks of a debug span
    DebugFind: TDebugFind;               //< racy   finds a debug block by an address in it
    BlockNote: TBlockNoteCall;           //< racy   describes a block that is no debug block
    MarkedSize: TMarkedSizeCall;         //< racy   returns the requested size of a marked block
    ThreadEnds: TPlainProcedure;         //< racy   before a thread leaves its heap
    InvalidPointer: TInvalidPointerCall; //< racy   before run-time error 204
    LimitReached: TLimitCall;            //< racy   reports limits
    Corruption: TCorruptionCall;         //< racy   reports a corrupt span
    ErrorIsTaken: TErrorCall;            //< const  returns whether stderr is another file now
    Fault: TFaultCall;                   //< racy   before the fault handler of the program
    ChildStarted: TChildCall;            //< const  recovers the rooms above in a child process
    ForkRecover: TPlainProcedure;        //< const  recovers the engine in a child process
    Ring: TPlainProcedure;               //< const  when Process.Bell has changed
    Box: TPlainProcedure;                //< racy   writes the black box; nil: there is none
    Sweep: TPlainProcedure;              //< racy   sweeps the spans of samples, after all heaps
    Pressure: TPlainProcedure;           //< racy   looks at the container; nil: not wanted
    Yield: TPlainProcedure;              //< racy   runs other threads; allocates nothing
  end;

var
  /// The engine's only calls upwards.
  Hooks: THooks;

implementation

end.
