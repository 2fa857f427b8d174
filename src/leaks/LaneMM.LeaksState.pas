/// The state of leaks/: suppressions, paused threads.
//
// Owns:       Leaks. Leaks.Lock is taken alone.
unit LaneMM.LeaksState;

{$I ../LaneMM.inc}

interface


uses
  LaneMM.Layout;


type
  /// Visits the words from First up to Limit. Context is the caller's.
  TRangeCall = procedure(First, Limit: NativeUInt; Context: Pointer);
  /// Calls Visitor for ranges of words.
  TRangesCall = procedure(Visitor: TRangeCall; Context: Pointer);

  /// What the room shares.
  TLeaks = record
    Lock: TLock;               //< shared  guards the entries at Suppressions; rank: alone
    Suppressions: Pointer;     //< lock Leaks  see LaneMM.Suppressions
    VisitRoots: TRangesCall;   //< const   visits words that hold no leaks, set by lib/; nil: none
    PauseSignal: Cardinal;     //< owner   see LaneMM.Pause; 0: none yet
    PauseState: TAtomicWord;   //< shared  1: threads that got the signal wait
    PauseAnswers: TAtomicWord; //< shared  threads that wait
    PauseStacks: Pointer;      //< owner   their stack pointers
  end;

var
  /// The state of leaks/.
  Leaks: TLeaks;

implementation
end.
