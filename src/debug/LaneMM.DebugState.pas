/// The state of debug/: debug blocks, the quarantine, what a thread caches.
//
// Owns:       Debug. Debug.Lock is taken before the arena lock.
unit LaneMM.DebugState;

{$I ../LaneMM.inc}

interface



uses
  LaneMM.Layout, LaneMM.Types;



const
  /// Most free blocks of one size class that a thread keeps for itself.
  BatchLimit = 16;
  /// Most freed blocks that wait for the quarantine with the thread that freed them.
  FreedLimit = 64;

type
  PDebugBlock = ^TDebugBlock;
  PDebugCache = ^TDebugCache;

  /// What becomes of a debug block.
  TDebugState = (
    dsNever,     //< never handed out
    dsChanging,  //< one thread fills it
    dsInUse,     //< the program owns it
    dsFreed      //< freed; it holds the pattern of free blocks
  );
  /// The bookkeeping record of a debug block; it lies at the start of the span, apart from the
  /// block.
  TDebugBlock = record
    State: TAtomicWord;      //< shared  TDebugState, in the higher bits the number of changes
    Size: NativeUInt;        //< owner   bytes requested
    Number: NativeUInt;      //< owner   allocation number, from 1
    FirstWord: NativeUInt;   //< owner   of the contents when it was freed: its class
    Next: PDebugBlock;       //< lock Debug  next free block of the span
    AllocStack: Cardinal;    //< owner   backtrace of the allocation, see LaneMM.BacktraceTable
    FreeStack: Cardinal;     //< owner   backtrace of the free
    AllocThread: Cardinal;   //< owner   the system's number of the thread that allocated it
    FreeThread: Cardinal;    //< owner   the system's number of the thread that freed it
    Group: Cardinal;         //< owner   allocation group, or 0
    Sum: Cardinal;           //< owner   checksum of the fields of the owner
  end;

  /// What a thread keeps so that it seldom needs the lock; all zero at first.
  TDebugCache = record
    Counts: array[0..SizeClassCount - 1] of NativeUInt; //< owner   free blocks of each class
    Blocks: array[0..SizeClassCount - 1, 0..BatchLimit - 1] of PDebugBlock; //< owner   they
    Freed: array[0..FreedLimit - 1] of PDebugBlock;     //< owner   the oldest first
    FreedCount: NativeUInt;                             //< owner   how many
    FreedBytes: NativeUInt;                             //< owner   bytes that they take
  end;

  /// Freed debug blocks in the order of their end, which wait before they are used again.
  TQuarantine = record
    Ring: PNativeUInt;     //< const   their addresses; nil: debug mode never was on
    First: NativeUInt;     //< lock Debug  where the oldest lies, modulo the length of the ring
    Limit: NativeUInt;     //< lock Debug  where the next one goes, likewise
    Bytes: NativeUInt;     //< lock Debug  bytes that they take
    MostBytes: NativeUInt; //< racy    bytes that they may take; an old value holds a moment longer
  end;

  /// Handles a debug block that is being freed.
  TDebugFreeCall = procedure(Block: PDebugBlock);

  /// What the room shares.
  TDebug = record
    IsStarted: Boolean;         //< shared  debug mode was on at some time: its hooks are set
    NewFill: Byte;              //< const   what new debug blocks hold
    FreeFill: Byte;             //< const   what freed debug blocks hold
    IsLogging: Boolean;         //< racy    see LaneMM.AllocationLog
    Lock: TLock;                //< shared  guards the next two; rank before Arena
    Spans: array[0..SizeClassCount - 1] of PSpan; //< lock Debug  with a block to hand out
    Quarantine: TQuarantine;    //< lock Debug  see there
    GuardReaders: TAtomicWord;  //< shared  threads that read all blocks
    GuardChanges: TAtomicWord;  //< shared  threads that make pages untouchable
    LastNumber: TAtomicWord;    //< shared  allocation numbers given to threads so far
    Depth: TAtomicWord;         //< shared  open calls of LaneMM_EnterDebugMode
    Operations: TAtomicWord;    //< shared  counted for opCheck
    GuardedBlocks: TAtomicWord; //< shared  blocks with guard pages
    ObjectTrap: NativeUInt;     //< const   see LaneMM.FreedObjects; 0: none
    InterfaceTrap: NativeUInt;  //< const   see LaneMM.FreedObjects; 0: none
    LoggedCount: TAtomicWord;   //< shared  blocks that LaneMM.AllocationLog chose
    GroupNames: TAtomicWord;    //< shared  see LaneMM.Groups
    FreeWatch: TDebugFreeCall;  //< shared  called when a debug block is freed; nil: unwatched
  end;

var
  /// The state of debug/.
  Debug: TDebug;

implementation
end.
