/// The state of stacks/: the code range of this module, and what earlier unwinds found.
//
// Owns:       Stacks.
unit LaneMM.StacksState;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Text, LaneMM.SettingsState;

const
  /// Frames of the memory manager, the run-time library and the reports themselves that a backtrace
  /// may have inside the program's: they do not count in `depth`.
  InnerFrames = 16;
  /// Most frames of a backtrace.
  MostFrames = MaxFrames + InnerFrames;
  /// Entries of the cache of routine starts, see LaneMM.Unwind.
  KnownStartCount = 4096;

type
  /// Which stacks a rule holds for.
  TRuleTrust = (
    rtChecked,  //< it was read from code: the return address must fit
    rtExact,    //< it is of an unwind table: it holds for every stack
    rtOnce      //< none: the table's rule is of another kind
  );
  /// How to unwind a routine: where its return address and its caller's frame pointer lie.
  TUnwindRule = record
    Start: NativeUInt;    //< owner   address of the routine; 0: unknown
    Size: Cardinal;       //< owner   bytes from its stack pointer up to the return address
    SavedFrame: Cardinal; //< owner   bytes from the saved frame pointer up to it; 0: not saved
    IsFramed: Boolean;    //< owner   the return address lies above its frame pointer
    Trust: TRuleTrust;    //< owner   which other stacks it holds for
  end;

const
  /// The rule of a routine with a frame pointer.
  FramedRule: TUnwindRule = (Start: 0; Size: 0; SavedFrame: SizeOf(Pointer); IsFramed: True;
    Trust: rtChecked);

type

  /// The position of an unwind: a routine of the calling thread's stack.
  TUnwind = record
    Pc: NativeUInt;      //< owner   in the routine to unwind next
    Sp: NativeUInt;      //< owner   its stack pointer when it made its call
    Frame: NativeUInt;   //< owner   its frame pointer
    FrameAt: NativeUInt; //< owner   where Frame was read; 0: the inner routine's frame pointer
    Limit: NativeUInt;   //< owner   end of the stack
    Link: NativeUInt;    //< owner   AArch64: the link register of a routine that was interrupted;
                         //  set by UnwindAt alone
  end;

  /// Unwinds one frame as LaneMM.Unwind does.
  TStepCall = function(var Walk: TUnwind; out Rule: TUnwindRule): Boolean;
  /// Finds the code of the routine that Pc lies in; returns False where it is not known.
  TFindRoutineCall = function(Pc: NativeUInt; out First, Limit: NativeUInt): Boolean;
  /// Writes the return addresses of its callers, at most Limit, innermost first; returns their
  /// number. Without any the backtrace is unknown.
  TFramesCall = function(Frames: PNativeUInt; Limit: Cardinal): Cardinal;
  /// Writes Count return addresses as text of at most Size bytes, lines ended by #10; returns its
  /// length. Runs in reports: uses no heap.
  TFramesTextCall = function(Frames: PNativeUInt; Count: Cardinal; Buffer: PAnsiChar;
    Size: NativeUInt): NativeUInt;
  /// Adds the name of a C++ routine, see DemangleAdd.
  TDemangleCall = function(var Text: TText; Name: PAnsiChar): Boolean;

  PKnownStart = ^TKnownStart;
  /// An entry of the cache of routine starts. Both words are of one key, or they do not match.
  TKnownStart = record
    Value: TAtomicWord;  //< shared  of the key, see LaneMM.Unwind
    Mixed: TAtomicWord;  //< shared  the key and Value combined
  end;

  /// The state that the room shares.
  TStacks = record
    Depth: Cardinal;          //< racy    most frames of a backtrace, see LaneMM.Unwind
    Shown: Cardinal;          //< racy    most that reports show, without inner ones: the setting
    CodeFirst: NativeUInt;    //< const   start of this module's code
    CodeLimit: NativeUInt;    //< const   its end
    Module: NativeUInt;       //< const   where this module was loaded to
    Routines: Pointer;        //< const   the table of its routines, see LaneMM.Pe; nil: none
    RoutinesSize: NativeUInt; //< const   its bytes
    ManagerCalls: NativeUInt; //< const   where the RTL keeps its memory-manager record; 0: unknown
    StepFrame: TStepCall;     //< const   unwinds a frame of any module, in lib/; its own frames are
                              //  hidden then. nil: LaneMM.Unwind does, in this module
    FindRoutine: TFindRoutineCall; //< const finds a routine of any module, in lib/; nil: the rules
                              //  of LaneMM.Unwind have it
    Demangle: TDemangleCall;  //< const   reads names of C++, in lib/; nil: reports show them as the
                              //  linker has them
    CodeChanges: TAtomicWord; //< shared  counts where other code may have come to an address
    TakeFrames: TFramesCall;  //< racy    the program's routine that takes backtraces; nil: unused.
                              //  An old value takes one backtrace more
    FramesText: TFramesTextCall; //< racy the program's text of backtraces; nil: LaneMM's own. As
                              //  TakeFrames
    KnownStarts: array[0..KnownStartCount - 1] of TKnownStart; //< shared  see there
    Ranges: TAtomicWord;      //< shared  the page of LaneMM.CodeRanges; 0: none
    RangeChanges: TAtomicWord; //< shared  the changes on that page that CodeChanges counts already
    Table: TAtomicWord;       //< shared  the table of LaneMM.BacktraceTable; 0: none
    Sweeps: TAtomicWord;      //< shared  counts its sweeps, where numbers are no longer handed out
    VisitNumbers: TPlainProcedure; //< const calls BacktraceMark for all numbers of backtraces in
                              //  use; see LaneMM.BlockNotes. nil: none is swept
    Modules: TAtomicWord;     //< shared  the table of LaneMM.Modules; 0: none
    Kept: TAtomicWord;        //< shared  symbols of the last report, see LaneMM.BacktraceText; 0:
                              //  none, or a report has them
  end;

var
  /// The state of stacks/.
  Stacks: TStacks;

/// Returns the word at Address, which can be read.
function StackWord(Address: NativeUInt): NativeUInt; inline;
/// Returns whether a word at Address lies in the part of the stack that is yet to be unwound.
function UnwindHas(const Walk: TUnwind; Address: NativeUInt): Boolean; inline;

implementation

function StackWord(Address: NativeUInt): NativeUInt;
begin
  Result := PNativeUInt(Address)^;
end;

function UnwindHas(const Walk: TUnwind; Address: NativeUInt): Boolean;
begin
  Result := (Address >= Walk.Sp) and (Address < Walk.Limit)
    and (Address and (SizeOf(Pointer) - 1) = 0);
end;

end.
