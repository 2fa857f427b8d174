/// The state of report/: kinds of events, where reports of each kind go, replaced texts.
//
// Owns:       Report.
unit LaneMM.ReportState;

{$I ../LaneMM.inc}

interface


uses
  LaneMM.Layout;


type
  /// What is reported; LaneMM.EventRules has the words.
  TEventKind = (
    evLeaks,           //< blocks in use at the end, or a difference between two snapshots
    evDoubleFree,      //< double free
    evInvalidFree,     //< invalid free: the pointer is no block
    evWriteBefore,     //< underrun of a block
    evWriteAfter,      //< overrun of a block
    evWriteAfterFree,  //< write after free
    evFreedCall,       //< method call on a freed object
    evWrongSize,       //< free with a size that is not the block's
    evUninitialised,   //< contents of a new or freed block used as an address
    evGuard,           //< access to a guard page
    evBookkeeping,     //< corrupt bookkeeping record of a block
    evNumber,          //< the allocation number of the setting `break`
    evMismatch,             //< mismatched free: New with FreeMem, or GetMem with Dispose
    evAllocation,      //< allocation of a chosen block
    evFree,            //< free of a chosen block
    evLimit            //< the heap reached a limit, or its reserve is in use
  );
  /// Where reports go.
  TEventTarget = (etFile, etScreen, etCall);
  /// A set of them.
  TEventTargets = set of TEventTarget;
  /// What becomes of the reports of one kind.
  TEventRule = record
    Count: TAtomicWord;       //< shared  events of this kind so far
    Targets: TEventTargets;   //< racy    where they go; as all that follows, an old value may hold
    IsOnce: Boolean;          //< racy    for one event more: only the first one is reported
    Halts: Boolean;           //< racy    the program ends with ExitCode
    ExitCode: Byte;           //< racy    see Halts
  end;
  /// The rules of all kinds.
  TEventRules = array[TEventKind] of TEventRule;
  /// Receives an event, in the thread that caused or found it; may use the heap.
  TEventCall = procedure(Kind: TEventKind; Text: PAnsiChar; Length: NativeUInt);

  /// What the room shares.
  TReport = record
    LogPath: PPath;         //< const   where logs go, see LaneMM.LogFile; nil or empty: no setting
    Rules: TEventRules;     //< racy    see LaneMM.EventRules
    Call: TEventCall;       //< shared  receives events; nil: none set
    Messages: TAtomicWord;  //< shared  replaced texts, see LaneMM.Messages
  end;

var
  /// The state of report/.
  Report: TReport;

implementation
end.
