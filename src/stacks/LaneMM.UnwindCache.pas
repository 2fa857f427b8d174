/// The call stack of a thread, remembered from one look to the next.
//
// Owns:       nothing; each TUnwindCache belongs to one thread.
// How:        between two looks only the innermost calls change. The steps of the last walk are
//             kept, outermost first. A new walk goes up until it comes to a place where the last
//             one was, too; from there on it is the same, if every word that the last walk read on
//             the stack is still there: a step depends on nothing else. Likewise a short way up
//             from where a walk began is kept, so that two calls in turn are not walked anew.
// Invariants: reads the stack of the calling thread between the stack pointer and its end; nothing
//             else. The Sp of the steps falls. A step's number is that of the stack up to it.
// Callers:    the thread that the cache belongs to.
unit LaneMM.UnwindCache;

{$I ../LaneMM.inc}

interface


uses
  LaneMM.Unwind;


const
  /// Most steps that are remembered, and most that a walk goes that meets none of them.
  MostSteps = 64;
  NewSteps = 32;
  /// Places whose callers are known how to be found; a power of two.
  KnownCount = 256;
  /// Short ways that are kept, and their most steps.
  PathBits = 5;
  PathCount = 1 shl PathBits;
  PathFrames = 6;

type
  /// A place on the way up, and the words on the stack that led there.
  TCachedFrame = record
    Pc: NativeUInt;        //< owner   see TUnwind
    Sp: NativeUInt;        //< owner   likewise; the word before it is Pc
    Frame: NativeUInt;     //< owner   likewise
    FrameAt: NativeUInt;   //< owner   where Frame was read, or some word on the stack
    FrameWord: NativeUInt; //< owner   what that word is
    Number: Cardinal;      //< owner   see LaneMM.BacktraceTable
  end;
  PCachedFrame = ^TCachedFrame;
  PCachedPath = ^TCachedPath;
  /// The first steps of a walk, up to where it met the one before.
  TCachedPath = record
    Count: NativeUInt;                               //< owner   of the steps; 0: none
    Base: NativeUInt;                                //< owner   steps of the cache that it led to
    BaseSp: NativeUInt;                              //< owner   Sp of the last one of these
    BaseNumber: Cardinal;                            //< owner   its number
    Number: Cardinal;                                //< owner   of the whole stack
    Steps: array[0..PathFrames - 1] of TCachedFrame;     //< owner   the innermost first
  end;
  /// How a place is left.
  TKnownPlace = record
    Pc: NativeUInt;        //< owner   the place; 0: none
    Return: NativeUInt;    //< owner   where it led last
    Rule: TUnwindRule;      //< owner
  end;
  /// What is remembered of a thread's stack; all zero at first.
  TUnwindCache = record
    Count: NativeUInt;                                //< owner   steps that are remembered
    IsWhole: Boolean;                                 //< owner   up to the end of the stack
    Steps: array[0..MostSteps - 1] of TCachedFrame;     //< owner   the outermost first
    Added: array[0..NewSteps - 1] of TCachedFrame;      //< owner   of a walk, the innermost first
    Known: array[0..KnownCount - 1] of TKnownPlace;   //< owner   by a part of their address
    Ways: array[0..PathCount - 1] of TCachedPath;        //< owner   by parts of where they begin
  end;

/// The number of the stack of the caller of the routine with this frame pointer, which is set;
/// 0 when it cannot be kept.
function UnwindCacheTake(var Cache: TUnwindCache; Frame: NativeUInt): Cardinal;

implementation

uses
  LaneMM.Bits, LaneMM.BacktraceTable;

// Whether the words that led to a place are still on the stack.
function IsThere(const Step: TCachedFrame): Boolean; inline;
begin
  Result := (PNativeUInt(Step.Sp)[-1] = Step.Pc) and (PNativeUInt(Step.FrameAt)^ = Step.FrameWord);
end;

// Whether a stack with so many steps has all frames that are ever read of it.
function IsEnough(const Cache: TUnwindCache; Count: NativeUInt): Boolean; inline;
begin
  Result := Cache.IsWhole or (Count >= MaxFrames);
end;

// Whether all that the last walk read in its first Count steps is still there.
function IsUnchanged(const Cache: TUnwindCache; Count: NativeUInt): Boolean;
var
  Step, First: PCachedFrame;
begin
  First := @Cache.Steps[0];
  Step := First + Count;
  repeat
    Dec(Step);
    if not IsThere(Step^) then
      Exit(False);
  until Step = First;
  Result := True;
end;

// Whether the last walk was at this place, too. Forgets the steps that are farther in.
function HasMet(var Cache: TUnwindCache; const Walk: TUnwind): Boolean;
var
  Step: PCachedFrame;
begin
  while Cache.Count > 0 do
  begin
    Step := @Cache.Steps[Cache.Count - 1];
    if Step^.Sp > Walk.Sp then
      Exit(False);
    if (Step^.Sp = Walk.Sp) and (Step^.Pc = Walk.Pc) and (Step^.Frame = Walk.Frame) then
      Exit(True);
    Dec(Cache.Count);
  end;
  Result := False;
end;

// ---------------------------------------------------------------------------- steps

// Goes on to the caller.
function Leave(var Cache: TUnwindCache; var Walk: TUnwind): Boolean;
var
  Known: ^TKnownPlace;
begin
  Known := @Cache.Known[(Walk.Pc xor Walk.Pc shr 8) mod KnownCount];
  if (Known^.Pc = Walk.Pc) and UnwindLeave(Walk, Known^.Rule, Known^.Return) then
    Exit(True);
  Known^.Pc := Walk.Pc;
  Result := UnwindStep(Walk, Known^.Rule);
  if Result then
    Known^.Return := Walk.Pc
  else
    Known^.Pc := 0;
end;

procedure Note(out Step: TCachedFrame; const Walk: TUnwind);
begin
  Step.Pc := Walk.Pc;
  Step.Sp := Walk.Sp;
  Step.Frame := Walk.Frame;
  Step.FrameAt := Walk.Sp - SizeOf(Pointer);
  Step.FrameWord := Walk.Pc;
  if Walk.FrameAt = 0 then
    Exit;
  Step.FrameAt := Walk.FrameAt;
  Step.FrameWord := Walk.Frame;
end;

// Walks up to where the last walk was, too, or as far as it goes: then what is remembered is
// forgotten. Returns the steps that are new.
function WalkUp(var Cache: TUnwindCache; var Walk: TUnwind): NativeUInt;
var
  IsEnd: Boolean;
begin
  Result := 0;
  repeat
    if HasMet(Cache, Walk) then
    begin
      if (Cache.Count + Result <= MostSteps) and IsEnough(Cache, Cache.Count + Result)
        and IsUnchanged(Cache, Cache.Count) then
        Exit;
      Cache.Count := 0;
    end;
    Note(Cache.Added[Result], Walk);
    Inc(Result);
    IsEnd := not Leave(Cache, Walk);
  until IsEnd or (Result = NewSteps);
  Cache.Count := 0;
  Cache.IsWhole := IsEnd;
end;

// ---------------------------------------------------------------------------- ways

function WayFrom(var Cache: TUnwindCache; const Walk: TUnwind): PCachedPath; inline;
begin
  Result := @Cache.Ways[(Walk.Pc xor Walk.Sp) * SpreadFactor shr (SizeOf(Walk.Pc) * 8 - PathBits)];
end;

// Whether the walk that begins at Walk goes this way, and then on as the last one.
function IsOpen(const Cache: TUnwindCache; const Way: TCachedPath; const Walk: TUnwind): Boolean;
var
  Step: PCachedFrame;
  Index: NativeInt;
begin
  Result := False;
  if (Way.Count = 0) or (Way.Steps[0].Pc <> Walk.Pc) or (Way.Steps[0].Sp <> Walk.Sp)
    or (Way.Steps[0].Frame <> Walk.Frame) or (Way.Base > Cache.Count)
    or not IsEnough(Cache, Way.Base + Way.Count) then
    Exit;
  Step := @Cache.Steps[Way.Base - 1];
  if (Step^.Sp <> Way.BaseSp) or (Step^.Number <> Way.BaseNumber) then
    Exit;
  for Index := 1 to NativeInt(Way.Count) - 1 do
    if not IsThere(Way.Steps[Index]) then
      Exit;
  Result := IsUnchanged(Cache, Way.Base);
end;

// Keeps the way that was just found, unless it is long.
procedure Keep(out Way: TCachedPath; const Cache: TUnwindCache; Count: NativeUInt; Number: Cardinal);
var
  Base: PCachedFrame;
begin
  Way.Count := 0;
  if (Count = 0) or (Count > PathFrames) or (Count = Cache.Count) then
    Exit;
  Base := @Cache.Steps[Cache.Count - Count - 1];
  Way.Count := Count;
  Way.Base := Cache.Count - Count;
  Way.BaseSp := Base^.Sp;
  Way.BaseNumber := Base^.Number;
  Way.Number := Number;
  Move(Cache.Added, Way.Steps, Count * SizeOf(TCachedFrame));
end;

// ---------------------------------------------------------------------------- the stack

// Puts the new steps on those that are remembered; returns the number of the stack.
function Append(var Cache: TUnwindCache; Count: NativeUInt): Cardinal;
begin
  Result := 0;
  if Cache.Count > 0 then
    Result := Cache.Steps[Cache.Count - 1].Number;
  while Count > 0 do
  begin
    Dec(Count);
    Result := BacktraceExtend(Result, Cache.Added[Count].Pc);
    Cache.Added[Count].Number := Result;
    Cache.Steps[Cache.Count] := Cache.Added[Count];
    Inc(Cache.Count);
  end;
end;

function UnwindCacheTake(var Cache: TUnwindCache; Frame: NativeUInt): Cardinal;
var
  Walk: TUnwind;
  Way: PCachedPath;
  Count: NativeUInt;
begin
  UnwindFrom(Frame, Walk);
  if Cache.Steps[0].Sp > Walk.Limit then
    Cache.Count := 0; // of a thread that had the record before: nothing of it may be read
  Way := WayFrom(Cache, Walk);
  if IsOpen(Cache, Way^, Walk) then
    Exit(Way^.Number);
  Count := WalkUp(Cache, Walk);
  Result := Append(Cache, Count);
  Keep(Way^, Cache, Count, Result);
end;

end.
