/// The state of find/: suppressions, and what a search leaves out.
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
  end;

var
  /// The state of find/.
  Leaks: TLeaks;

implementation
end.
