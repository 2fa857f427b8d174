/// The state of find/: suppressions, paused threads.
//
// Owns:       Leaks. Leaks.Lock and SearchLock are taken alone.
unit LaneMM.LeaksState;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

type
  /// Visits the words from First up to Limit. Context is the caller's.
  TRangeCall = procedure(First, Limit: NativeUInt; Context: Pointer);
  /// Calls Visitor for ranges of words, and for the calling thread's stack from Frame on; 0: from
  /// its own frame on.
  TRangesCall = procedure(Visitor: TRangeCall; Context: Pointer; Frame: NativeUInt);

  /// What the units of find/ share.
  TLeaks = record
    Lock: TLock;               //< shared  guards changes of Suppressions; rank: alone
    SearchLock: TLock;         //< shared  guards searches that pause all other threads; rank: alone
    Suppressions: Pointer;     //< racy    the table of LaneMM.Suppressions, or nil; changed under
                               //  Lock. A report reads it without, as a paused thread may hold
                               //  Lock: of an entry that is being changed it may see parts only
    HasNone: Boolean;          //< owner   there are no leaks, and no report is to be written
    Spans: Pointer;            //< owner   the spans that a child process after fork has inherited,
                               //  see LeaksForget; nil: unknown, or no child
    SpanCount: NativeUInt;     //< owner   their number
    VisitRoots: TRangesCall;   //< const   visits roots of the program, set by lib/; nil: none
    PauseSignal: Cardinal;     //< owner   the signal of LaneMM.Pause; 0: none yet
    PauseState: TAtomicWord;   //< shared  1: threads that receive the signal wait
    PauseAnswers: TAtomicWord; //< shared  threads that have received it; Windows: paused threads
    PauseStacks: Pointer;      //< const   their stack pointers; written before the first signal.
                               //  Windows: the paused threads, owner
    PauseCookie: NativeUInt;   //< owner   Windows: see OsPauseBegin
  end;

var
  /// The state of find/.
  Leaks: TLeaks;

implementation
end.
