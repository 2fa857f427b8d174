/// A cache of a thread's last backtrace, from which the next one is taken faster.
//
// Owns:       nothing; each TUnwindCache belongs to one thread.
// How:        between two backtraces only the innermost calls change. The frames of the last unwind
//             are kept, outermost first. A new unwind stops at the first frame that the last one
//             had too: from there outwards both agree if every stack word that the last one read
//             is unchanged, as a step depends on nothing else. The short path from a starting
//             point to that frame is kept as well, so that the same call is not unwound again.
// Invariants: reads the stack of the calling thread between the stack pointer and its end; nothing
//             else. Sp falls from frame to frame. A frame has the number of the backtrace up to it.
// Callers:    the thread that the cache belongs to.
unit LaneMM.UnwindCache;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Unwind;

const
  /// Most frames that are kept, and most that one unwind adds without meeting a kept one.
  MostSteps = 64;
  NewSteps = 32;
  /// Code addresses whose unwind rule is kept; a power of two.
  KnownCount = 256;
  /// Paths that are kept, and their most frames.
  PathBits = 5;
  PathCount = 1 shl PathBits;
  PathFrames = 6;

type
  /// A frame of the last unwind, and the stack words that led to it.
  TCachedFrame = record
    Pc: NativeUInt;        //< owner   see TUnwind
    Sp: NativeUInt;        //< owner   likewise; the word before it is Pc
    Frame: NativeUInt;     //< owner   likewise
    FrameAt: NativeUInt;   //< owner   address of Frame, or of the word before Sp
    FrameWord: NativeUInt; //< owner   the word at FrameAt
    Number: Cardinal;      //< owner   of the backtrace, see LaneMM.BacktraceTable
  end;
  PCachedFrame = ^TCachedFrame;
  PCachedPath = ^TCachedPath;
  /// The innermost frames of an unwind, up to the first one that was kept.
  TCachedPath = record
    Count: NativeUInt;                               //< owner   number of frames; 0: none
    Base: NativeUInt;                                //< owner   frames of the cache outside them
    BaseSp: NativeUInt;                              //< owner   Sp of the innermost of these
    BaseNumber: Cardinal;                            //< owner   its number
    Number: Cardinal;                                //< owner   of the whole backtrace
    Steps: array[0..PathFrames - 1] of TCachedFrame; //< owner   the innermost first
  end;
  /// How to unwind the routine at a code address.
  TKnownPlace = record
    Pc: NativeUInt;        //< owner   the code address; 0: none
    Return: NativeUInt;    //< owner   the return address found last
    Rule: TUnwindRule;     //< owner   the rule that found it
  end;
  /// The cache of one thread; all zero at first.
  TUnwindCache = record
    Count: NativeUInt;                                //< owner   frames that are kept
    IsWhole: Boolean;                                 //< owner   they reach the end of the stack
    Steps: array[0..MostSteps - 1] of TCachedFrame;   //< owner   the outermost first
    Added: array[0..NewSteps - 1] of TCachedFrame;    //< owner   of an unwind, the innermost first
    Known: array[0..KnownCount - 1] of TKnownPlace;   //< owner   by a hash of the code address
    Ways: array[0..PathCount - 1] of TCachedPath;     //< owner   by a hash of the starting point
  end;

/// Returns the number of the backtrace of the caller of the routine with this frame pointer, which
/// that routine has set; 0 when it cannot be stored.
function UnwindCacheTake(var Cache: TUnwindCache; Frame: NativeUInt): Cardinal;

implementation

uses
  LaneMM.Bits, LaneMM.BacktraceTable;

// Returns whether the words that led to a frame are still on the stack.
function IsThere(const Step: TCachedFrame): Boolean; inline;
begin
  Result := (PNativeUInt(Step.Sp)[-1] = Step.Pc) and (PNativeUInt(Step.FrameAt)^ = Step.FrameWord);
end;

// Returns whether Count frames are all that a backtrace ever reads.
function IsEnough(const Cache: TUnwindCache; Count: NativeUInt): Boolean; inline;
begin
  Result := Cache.IsWhole or (Count >= MaxFrames);
end;

// Returns whether all words that the last unwind read for its first Count frames are unchanged.
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

// Returns whether the last unwind had this frame too. Drops the kept frames farther in.
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

// Unwinds one frame; returns False at the end.
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

// Unwinds to the first frame that the last unwind had too, or as far as possible; then the kept
// frames are dropped. Returns the number of new frames.
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

// Returns whether the unwind that begins at Walk takes this path, and then goes on as the last one.
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

// Keeps the path that was just found, unless it is long.
procedure Keep(out Way: TCachedPath; const Cache: TUnwindCache; Count: NativeUInt;
  Number: Cardinal);
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

// Adds the new frames to the kept ones; returns the number of the backtrace.
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
    Cache.Count := 0; // of a thread that owned the record before: its stack may be gone
  Way := WayFrom(Cache, Walk);
  if IsOpen(Cache, Way^, Walk) then
    Exit(Way^.Number);
  Count := WalkUp(Cache, Walk);
  Result := Append(Cache, Count);
  Keep(Way^, Cache, Count, Result);
end;

end.
