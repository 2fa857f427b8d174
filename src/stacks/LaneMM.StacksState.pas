/// The state of stacks/: where the code lies, what earlier walks found.
//
// Owns:       Stacks.
unit LaneMM.StacksState;

{$I ../LaneMM.inc}

interface


uses
  LaneMM.Layout;


const
  /// Places whose distance from the start of their routine is kept, see LaneMM.Unwind.
  KnownStartCount = 1024;

type
  /// Writes the return addresses of its callers, at most Limit, innermost first; returns how many.
  TFramesCall = function(Frames: PNativeUInt; Limit: Cardinal): Cardinal;

  /// What the room shares.
  TStacks = record
    CodeFirst: NativeUInt;    //< const   the code of this module
    CodeLimit: NativeUInt;    //< const   its end
    ManagerCalls: NativeUInt; //< const   where the RTL keeps its memory-manager record, or 0
    TakeFrames: TFramesCall;  //< const   unwinds through all modules, set by lib/; nil: none
    KnownStarts: array[0..KnownStartCount - 1] of TAtomicWord; //< shared  see LaneMM.Unwind
    Table: TAtomicWord;       //< shared  see LaneMM.BacktraceTable
    Modules: TAtomicWord;     //< shared  see LaneMM.Modules
  end;

var
  /// The state of stacks/.
  Stacks: TStacks;

implementation
end.
