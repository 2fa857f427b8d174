/// The state of debug/: the records of debug blocks, the quarantine, the lists of a thread.
//
// Owns:       Debug. Debug.Lock is waited for; shards are tried while it is held.
unit LaneMM.DebugState;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

const
  /// Maximum number of blocks of a parcel.
  ParcelLimit = 32;
  /// Number of the values of TSpan.SizeClass of spans of debug blocks, see LaneMM.DebugSpans.
  DebugClassCount = SizeClassCount + 2;
  /// The powers of two that LaneMM_EnterAlignment knows.
  LeastAlignShift = 4;
  MostAlignShift = 6;
  /// Numbers of blocks that are kept to know them again in a later report.
  ToldCount = 64;
  /// Keys of uses that are kept likewise: two at one place would be reported in turn for ever.
  ToldUseCount = 1024;

  /// Added to the address of a freed object it is the first word of that object, in place of the
  /// class: an address in the system's half of the address space. 0 where there is no such half.
  FreedClassBase = UInt64(High(UInt64)) shl 47 and High(NativeUInt);

type
  PDebugBlock = ^TDebugBlock;
  PDebugCache = ^TDebugCache;

  /// The state of a debug block.
  TDebugState = (
    dsNever,     //< never in use so far
    dsChanging,  //< one thread takes it out of use or prepares it for use
    dsInUse,     //< in use by the program
    dsFreed      //< freed: filled with the pattern of free blocks, or its pages are inaccessible
  );
  /// The routines that allocate a block, and may free it. Free Pascal has the first one only: see
  /// LaneMM.Mismatches.
  TFamily = (
    faPlain,           //< GetMem; malloc and free of C
    faNew,             //< operator new and delete of C++
    faNewArray,        //< operator new[] and delete[]
    faNewAligned,      //< operator new and delete with an alignment
    faNewArrayAligned  //< operator new[] and delete[] with an alignment
  );
  /// The bookkeeping record of a debug block; it lies at the start of the span, apart from the
  /// block.
  ///
  /// The racy fields, but for Next, are written by the thread that set dsChanging. Any other thread
  /// compares State before and after it reads them (LaneMM.DebugRecords), or uses them for the
  /// report of a bug of the program only.
  TDebugBlock = record
    case Byte of
      0: (
        State: TAtomicWord;      //< shared  TDebugState; the bits above, see LaneMM.DebugRecords
        Next: PDebugBlock;       //< racy    next free block of the span, used under Debug.Lock
                                 //  alone; a report copies it with the record
        Size: NativeUInt;        //< racy    requested size
        Number: NativeUInt;      //< racy    allocation number, from 1
        FirstWord: NativeUInt;   //< racy    first word of the contents when it was freed: its class
        AllocStack: Cardinal;    //< racy    backtrace of the allocation, see LaneMM.BacktraceTable
        FreeStack: Cardinal;     //< racy    backtrace of the free
        AllocThread: Cardinal;   //< racy    the system's number of the thread that allocated it
        FreeThread: Cardinal;    //< racy    the system's number of the thread that freed it
        Group: Cardinal;         //< racy    allocation group, or 0
        AlignShift: Byte;        //< racy    its contents begin at a multiple of 2 to this power;
                                 //  0: of BlockAlignment
        Family: TFamily;         //< racy    the routines that allocated it, see DebugSetFamily
        Sum: Word;               //< racy    checksum of the racy fields but for Next: the high half
                                 //  of the last Cardinal before the padding
      );
      1: (Line: TCacheLine);     //< padding the blocks behind the records are aligned
  end;

  /// A block in a parcel.
  TParcelItem = record
    Block: PDebugBlock;    //< owner   its record
    Span: PSpan;           //< owner   its span
    Slot: PByte;           //< owner   start of the guard before its contents
  end;
  PParcelItem = ^TParcelItem;
  PParcel = ^TParcel;
  /// Freed or free blocks of one size class, in the order in which they were put in. While it is in
  /// a list, its fields are guarded by Debug.Lock.
  TParcel = record
    Next: PParcel;         //< lock Debug  next parcel of the list
    First: PParcelItem;    //< owner   the oldest
    Limit: PParcelItem;    //< owner   the place behind the newest; First if there is none
    Full: PParcelItem;     //< owner   the place behind the last one that may be put in
    BlockBytes: NativeUInt; //< owner  bytes that each of them holds
    Items: array[0..ParcelLimit - 1] of TParcelItem; //< owner   the blocks
  end;
  /// A list of parcels.
  TParcels = record
    First: PParcel;        //< lock Debug  the oldest; nil if there is none
    Last: PParcel;         //< lock Debug  the newest
  end;
  /// Blocks that a thread keeps so that it seldom takes Debug.Lock; all nil at first.
  TDebugCache = record
    Ready: array[0..SizeClassCount - 1] of PParcel;     //< owner   free blocks, by size class
    Freed: array[0..DebugClassCount - 1] of PParcel;    //< owner   freed blocks, likewise
  end;

  /// Freed debug blocks that wait before they are used again, the oldest parcel first.
  TQuarantine = record
    Parcels: TParcels;     //< lock Debug  the blocks
    Count: NativeUInt;     //< lock Debug  their number
    Bytes: NativeUInt;     //< lock Debug  bytes of these blocks
    MostBytes: NativeUInt; //< racy    maximum of Bytes; an old value holds a moment longer
  end;
  /// Parcels of free blocks of a size class that left the quarantine.
  TReadyParcels = record
    Parcels: TParcels;     //< lock Debug  the blocks
    Bytes: NativeUInt;     //< lock Debug  their bytes
  end;

  /// Handles a debug block that is being freed, in the state dsChanging.
  TDebugFreeCall = procedure(Block: PDebugBlock);

  /// What the units of debug/ share.
  TDebug = record
    IsStarted: Boolean;         //< racy    debug mode was on once: its hooks are set. Never reset;
                                //  an old False leaves out a check, or repeats DebugStart
    IsEnding: Boolean;          //< racy    the last check of the heap has begun; an old value names
                                //  no other place
    HasRegions: Boolean;        //< racy    a debug block was allocated in a scope of a region once.
                                //  The thread that frees the region comes after it
    NewFill: Byte;              //< racy    fill byte of new debug blocks
    FreeFill: Byte;             //< const   fill byte of freed debug blocks, which are checked
    IsLogging: Boolean;         //< racy    see LaneMM.AllocationLog; an old value applies to one
                                //  event more
    Lock: TLock;                //< shared  guards Spans, Ready, Quarantine
    Holder: Pointer;            //< lock Debug  the TDebugThread of the thread that has Lock, or nil
    Spans: array[0..SizeClassCount - 1] of PSpan; //< lock Debug  spans with a free block, by class
    SpanSlices: NativeUInt;     //< lock Debug  slices of such spans that were ever taken
    KeptSpans: PSpan;           //< lock Debug  spans of freed guarded blocks, linked through Next
    KeptCount: NativeUInt;      //< lock Debug  their number
    SpareParcels: PParcel;      //< lock Debug  empty ones, linked through Next
    Ready: array[0..SizeClassCount - 1] of TReadyParcels; //< lock Debug  by size class
    Quarantine: TQuarantine;    //< lock Debug  freed blocks; its fields have tags of their own
    Notes: Pointer;             //< const   the parts of LaneMM.BlockNotes; nil: none
    NotesStock: TAtomicWord;    //< shared  the stock that notes are cut from; 0: none yet
    NotesBehind: TMemoryManager; //< racy   the routines behind its own, see LaneMM.Watch; an old
                                //  one still serves
    GuardReaders: TAtomicWord;  //< shared  open calls of GuardPagesHold
    GuardChanges: TAtomicWord;  //< shared  threads in GuardPagesForbid
    Threads: TAtomicWord;       //< shared  first of all TDebugThread records, which stay; 0: none
    LastNumber: TAtomicWord;    //< shared  allocation numbers reserved by threads so far
    UnusedNumbers: TAtomicWord; //< shared  those of them that were given up
    FirstNumber: PNativeUInt;   //< const   the first number of this process: 1; in a child after
                                //  fork 0 until it has allocated. nil: no block has a number. The
                                //  word behind it: threads give up reserved numbers below
    Depth: TAtomicWord;         //< shared  open calls of LaneMM_EnterDebugMode
    Aligned: array[LeastAlignShift..MostAlignShift] of TAtomicWord; //< shared  open calls of
                                //  LaneMM_EnterAlignment for 2 to this power
    AlignShift: Byte;           //< racy    new blocks begin at multiples of 2 to this power; 0: of
                                //  BlockAlignment. An old value serves a call as before
    Operations: TAtomicWord;    //< shared  calls of debug mode, counted while opCheck is set
    GuardedBlocks: TAtomicWord; //< shared  blocks with guard pages, freed ones included
    Traps: Pointer;             //< const   the tables of LaneMM.FreedObjects; nil: none
    InterfaceTrap: NativeUInt;  //< const   see LaneMM.FreedObjects; 0: none
    LoggedCount: TAtomicWord;   //< shared  events that LaneMM.AllocationLog chose, logged or not
    Told: array[0..ToldCount - 1] of TAtomicWord; //< shared  numbers of reported blocks
    ToldUses: array[0..ToldUseCount - 1] of TAtomicWord; //< shared  reported uses, see
                                //  LaneMM.DebugReport; 0: none
    GroupNames: TAtomicWord;    //< shared  table of LaneMM.Groups; 0: none
    MarkBytes: NativeUInt;      //< const   bytes that `hard` adds to each block; 0: it is off
    MarkSeed: UInt64;           //< const   random, odd, see LaneMM.Hard
    MarkFactor: UInt64;         //< const   likewise
    MarksAreSure: Boolean;      //< racy    all blocks are marked; an old value reports one more
    MarksFamilies: Boolean;     //< const   they say which routines allocated a block
    HasLostThreads: Boolean;    //< owner   this process is the child of one with other threads
    QuickLimit: NativeUInt;     //< racy    sizes below it are served by the assembler of
                                //  LaneMM.Hard; an old value decides for one more
    QuickBlocks: NativeUInt;    //< racy    likewise freed blocks with fewer bytes; 0 once there are
                                //  regions, whose blocks come to a thread after it
    Behind: TMemoryManager;     //< racy    the routines behind those of LaneMM.Hard; an old one
                                //  still serves
    FreeWatch: TDebugFreeCall;  //< racy    called when a debug block is freed, or nil; set before
                                //  the first one is sampled or counted, and never reset
  end;

var
  /// The state of debug/.
  Debug: TDebug;

implementation
end.
