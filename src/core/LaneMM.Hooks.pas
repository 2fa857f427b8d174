/// What the engine calls upwards, in one record: every edge from core/ to the rooms that watch it.
//
// Owns:       Hooks. All fields are nil while nothing watches; a call is made only where it is set.
// Table:      hook            called by                      under lock     set by, when
//   LockWait, LockMiss        LaneMM.Lock                    any            observe, contention on
//   RemoteFree                LaneMM.Free                    none           control, settings change
//   LargeFree                 LaneMM.Free                    none           control, profile on
//   SampledGet                the sampled form of GetMem     none           control, settings change
//   DebugFree, DebugResize,
//   DebugSize, DebugOwns      LaneMM.Free, Resize, Blocks    none           debug, at its first start
//   DebugVisit, DebugFind     LaneMM.Walk, LaneMM.Stats      none           debug, at its first start
//   InvalidPointer            LaneMM.Blocks                  none           debug, at its first start
//   LimitReached              LaneMM.Limits                  none           observe, limits set
//   Fault                     the handler of LaneMM.Os       any            debug, while it is on
//   ChildStarted              LaneMM.Fork                    none, alone    control, at the start
//   ForkRecover               LaneMM.Lock                    none           LaneMM.Fork, at the start
//   PurgeNotify               LaneMM.Threads, LaneMM.Free    none           LaneMM.Engine, at the start
// Invariants: a hook that was set may still be called for a moment after it was taken back: its
//             routine stays valid. Debug hooks stay set: debug blocks outlive debug mode.
// Threads:    a field is one pointer and read once per call, so a change needs no lock.
unit LaneMM.Hooks;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

type
  /// An invalid use of a pointer that is no block in use.
  TInvalidCall = (icFree, icResize, icSize);
  /// What a report about limits says.
  TLimitEvent = (
    leSoft,    //< the heap holds more than the soft limit
    leHard,    //< the hard limit refused memory
    leReserve  //< no memory: the emergency reserve is in use
  );
  /// A block in use, as LaneMM.Walk finds it. Only a debug block has more than the first three.
  TBlockInfo = record
    Address: PByte;           //< owner   first byte of its data
    UsableSize: NativeUInt;   //< owner   bytes that it holds; of a debug block, bytes requested
    Kind: TSpanKind;          //< owner   of the span that it lies in
    Number: NativeUInt;       //< owner   of the allocation, counted from 1; 0: unknown
    Thread: NativeUInt;       //< owner   number of the thread that allocated it; 0: unknown
    Stack: Cardinal;          //< owner   backtrace of the allocation, by number; 0: unknown
    Group: Cardinal;          //< owner   allocation group; 0: none
  end;
  /// A fault of the processor: an address that cannot be used, and the registers that programs use.
  TFault = record
    Address: NativeUInt;                   //< owner   0 where the processor does not report it
    Pc: NativeUInt;                        //< owner   address of the instruction
    Sp: NativeUInt;                        //< owner   stack pointer
    Frame: NativeUInt;                     //< owner   frame pointer
    Registers: array[0..15] of NativeUInt; //< owner   some of the others
  end;

  /// Visits one block. Context is the caller's.
  TBlockVisitor = procedure(const Block: TBlockInfo; Context: Pointer);
  /// Handles a lock.
  TLockCall = procedure(var Lock: TLock);
  /// Handles a block of Span that is about to be freed.
  TFreeCall = procedure(Span: PSpan; P: Pointer);
  /// Frees or measures a block; returns its usable size.
  TBlockCall = function(P: Pointer): TSize;
  /// Allocates a block.
  TSizeCall = function(Size: TSize): Pointer;
  /// Resizes a block.
  TResizeCall = function(var P: Pointer; Size: TSize): Pointer;
  /// Returns whether P is a block in use.
  TOwnsCall = function(P: Pointer): Boolean;
  /// Visits the blocks in use of a debug span.
  TDebugVisit = procedure(Span: PSpan; Visitor: TBlockVisitor; Context: Pointer);
  /// Finds the block in use of a debug span whose data hold P; returns whether there is one.
  TDebugFind = function(Span: PSpan; P: Pointer; out Block: TBlockInfo): Boolean;
  /// Reports an invalid pointer.
  TInvalidPointerCall = procedure(P: Pointer; Call: TInvalidCall);
  /// Reports a limit; Size is the request in bytes, 0 for the soft limit.
  TLimitCall = procedure(Event: TLimitEvent; Size: NativeUInt);
  /// Handles a fault, inside a signal handler.
  TFaultCall = procedure(const Fault: TFault);

  /// See the table above.
  THooks = record
    LockWait: TLockCall;                 //< shared  takes a lock that is taken
    LockMiss: TLockCall;                 //< shared  after a try that failed
    RemoteFree: TFreeCall;               //< shared  before a block of another heap is freed
    LargeFree: TFreeCall;                //< shared  before a large block is freed
    SampledGet: TSizeCall;               //< shared  allocates the block that is sampled
    DebugFree: TBlockCall;               //< shared  frees a debug block; set last of the debug hooks
    DebugResize: TResizeCall;            //< shared  resizes a debug block
    DebugSize: TBlockCall;               //< shared  the requested size of a debug block
    DebugOwns: TOwnsCall;                //< shared  whether P is a debug block in use
    DebugVisit: TDebugVisit;             //< shared  visits the blocks of a debug span
    DebugFind: TDebugFind;               //< shared  finds a debug block by an address in it
    InvalidPointer: TInvalidPointerCall; //< shared  before run-time error 204
    LimitReached: TLimitCall;            //< shared  reports limits
    Fault: TFaultCall;                   //< shared  before the fault handler of the program
    ChildStarted: TPlainProcedure;       //< const   recovers the rooms above in a child process
    ForkRecover: TPlainProcedure;        //< const   recovers the engine in a child process
    PurgeNotify: TPlainProcedure;        //< const   after memory became free
  end;

var
  /// The engine's only calls upwards.
  Hooks: THooks;

implementation

end.
