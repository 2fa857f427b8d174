/// The state of stacks/: the code range of this module, and what earlier unwinds found.
//
// Owns:       Stacks.
unit LaneMM.StacksState;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

const
  /// Entries of the cache of routine starts, see LaneMM.Unwind.
  KnownStartCount = 1024;

type
  /// Writes the return addresses of its callers, at most Limit, innermost first; returns their
  /// number. Without any the backtrace is unknown.
  TFramesCall = function(Frames: PNativeUInt; Limit: Cardinal): Cardinal;
  /// Writes Count return addresses as text of at most Size bytes, lines ended by #10; returns its
  /// length. Runs in reports: uses no heap.
  TFramesTextCall = function(Frames: PNativeUInt; Count: Cardinal; Buffer: PAnsiChar;
    Size: NativeUInt): NativeUInt;

  /// The state that the room shares.
  TStacks = record
    Depth: Cardinal;          //< racy    most frames of a backtrace, see LaneMM.Unwind
    CodeFirst: NativeUInt;    //< racy    start of this module's code; all write the same
    CodeLimit: NativeUInt;    //< racy    its end; likewise
    ManagerCalls: NativeUInt; //< const   where the RTL keeps its memory-manager record; 0: unknown
    TakeFrames: TFramesCall;  //< racy    unwinds instead of LaneMM.Unwind: set by lib/, which
                              //  unwinds through all modules, or by the program; nil: unused. An
                              //  old value takes one backtrace more
    FramesText: TFramesTextCall; //< racy the program's text of backtraces; nil: LaneMM's own. As
                              //  TakeFrames
    KnownStarts: array[0..KnownStartCount - 1] of TAtomicWord; //< shared  see LaneMM.Unwind
    Table: TAtomicWord;       //< shared  the table of LaneMM.BacktraceTable; 0: none
    Modules: TAtomicWord;     //< shared  the table of LaneMM.Modules; 0: none
  end;

var
  /// The state of stacks/.
  Stacks: TStacks;

implementation

end.
