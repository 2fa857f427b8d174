/// A cache of a thread's last backtrace, from which the next one is taken faster.
//
// Owns:       nothing; each TUnwindCache belongs to one thread.
// How:        between two backtraces only the innermost calls change. The frames of the last unwind
//             are kept, outermost first. A new unwind stops at the first frame that the last one
//             had too: from there outwards both agree if every stack word that the last one read
//             is unchanged, as a step depends on nothing else; where one has changed, from the
//             first kept frame outside of it. (The frame pointer of that frame may have been read
//             elsewhere: C saves it in other places.) Code without frame pointers keeps other
//             values in that register: such a word counts only where a caller is found by it. The
//             short path from a starting point to that frame is kept as well, so that the same call
//             is not unwound again. Most calls begin in the same few routines, as SetLength or a
//             wrapper of malloc: the path taken last from the same place is compared first, then
//             the one of the callers that the kept rules lead to. So are the nodes of the table.
// Invariants: reads the stack of the calling thread between the stack pointer and its end; nothing
//             else. Sp falls from frame to frame. A frame has the number of the backtrace up to it.
// Callers:    the thread that the cache belongs to.
unit LaneMM.UnwindCache;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.StacksState;

const
  /// Most frames that are kept, and most that one unwind adds without meeting a kept one.
  MostSteps = MostFrames;
  NewSteps = MostFrames;
  /// Most words of the stack that lead to a frame from the one inside it.
  StepWords = 2;
  /// More of all that follows is kept where addresses are 64 bits wide.
  Is64 = SizeOf(Pointer) div SizeOf(UInt64);
  /// Code addresses whose unwind rule is kept, and nodes of the table that are; a power of two.
  KnownBits = 10 + 4 * Is64;
  KnownCount = 1 shl KnownBits;
  /// Paths that are kept, their most frames, and callers that choose the place of one.
  PathBits = 11 + Is64;
  PathCount = 1 shl PathBits;
  PathFrames = 10;
  PathCallers = 5;
  /// Places of the paths that were taken last; a power of two.
  RecentBits = 8;
  RecentCount = 1 shl RecentBits;

type
  PStackWord = ^TStackWord;
  /// A word of the stack that an unwind read.
  TStackWord = record
    At: PNativeUInt;       //< owner   its address
    Value: NativeUInt;     //< owner   what it held
  end;
  /// A frame of the last unwind.
  TCachedFrame = record
    Pc: NativeUInt;        //< owner   see TUnwind
    Sp: NativeUInt;        //< owner   likewise; the word before it is Pc
    Frame: NativeUInt;     //< owner   likewise
    FrameAt: NativeUInt;   //< owner   likewise
    IsFree: Boolean;       //< owner   its callers are found whatever Frame is
    Number: Cardinal;      //< owner   of the backtrace, see LaneMM.BacktraceTable
    FirstWord: PStackWord; //< owner   end of the words that were read before it, from the
                           //  outermost frame on
    WordLimit: PStackWord; //< owner   the same with those that led to it
  end;
  PCachedFrame = ^TCachedFrame;
  PCachedPath = ^TCachedPath;
  /// The innermost frames of an unwind, up to the first one that was kept.
  TCachedPath = record
    Pc: NativeUInt;        //< owner   where it begins, see TUnwind; 0: no path
    Sp: NativeUInt;        //< owner   likewise
    Frame: NativeUInt;     //< owner   likewise
    IsFree: Boolean;       //< owner   it leads to Base whatever Frame is
    Base: PCachedFrame;    //< owner   the kept frame that it leads to
    BaseSp: NativeUInt;    //< owner   its Sp
    BaseNumber: Cardinal;  //< owner   its number
    Number: Cardinal;      //< owner   of the whole backtrace
    Limit: PStackWord;     //< owner   end of Words
    Words: array[0..PathFrames * StepWords - 1] of TStackWord; //< owner   read after its start, up
                           //  to Base; an even number of them, the last one twice if need be
  end;
  PKeptCall = ^TKeptCall;
  /// A node of the table that an unwind came to.
  TKeptCall = record
    Return: NativeUInt;    //< owner   its return address; 0: none
    Outer: Cardinal;       //< owner   number of the backtrace that it extends
    Number: Cardinal;      //< owner   its own number
  end;
  PRecentPath = ^PCachedPath;
  PKnownPlace = ^TKnownPlace;
  /// How to unwind the routine at a code address.
  TKnownPlace = record
    Pc: NativeUInt;        //< owner   the code address; 0: none
    Start: NativeUInt;     //< owner   Rule.Start of the last routine that returned there; or 0
    Rule: TUnwindRule;     //< owner   the rule that found it
  end;
  /// The cache of one thread; all zero at first.
  TUnwindCache = record
    Limit: NativeUInt;                                //< owner   end of the stack
    Changes: NativeUInt;                              //< owner   Stacks.CodeChanges of Known
    Sweeps: NativeUInt;                               //< owner   Stacks.Sweeps of all numbers
    Count: NativeUInt;                                //< owner   frames that are kept
    PassingCount: NativeUInt;                         //< owner   frames of an unwind, the innermost
                                                      //  ones, inside one that is not kept
    IsWhole: Boolean;                                 //< owner   they reach the end of the stack
    Steps: array[0..MostSteps - 1] of TCachedFrame;   //< owner   the outermost first
    Words: array[0..MostSteps * StepWords - 1] of TStackWord; //< owner   that led to them
    Added: array[0..NewSteps - 1] of TCachedFrame;    //< owner   of an unwind, the innermost first
    Known: array[0..KnownCount - 1] of TKnownPlace;   //< owner   by a hash of the code address
    Calls: array[0..KnownCount - 1] of TKeptCall;     //< owner   by a hash of both
    Ways: array[0..PathCount - 1] of TCachedPath;     //< owner   by a hash of the starting point
                                                      //  and the callers that tables lead to
    Recent: array[0..RecentCount - 1] of PCachedPath; //< owner   the one taken last, by a hash
                                                      //  of the starting point; nil: none
  end;

/// Returns the number of the backtrace of the caller of the routine with this frame pointer, which
/// that routine has set, if it is the end of a path that is kept; else 0. Limit is the end of the
/// thread's stack. Only while Cache.Sweeps is Stacks.Sweeps.
function UnwindCacheFind(var Cache: TUnwindCache; Frame, Limit: NativeUInt): Cardinal;
/// Returns that number after a new unwind, whose path is kept; 0 if the backtrace has no space.
function UnwindCacheTake(var Cache: TUnwindCache; Frame, Limit: NativeUInt): Cardinal;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Unwind, LaneMM.BacktraceTable;

const
  FramedSize = 2 * SizeOf(Pointer); // from a frame pointer to the end of its frame

// Returns whether these words of the stack still hold what they held. Two at a time: of an odd
// number, the one at Limit as well.
function AreThere(Word, Limit: PStackWord): Boolean; inline;
begin
  while Word < Limit do
  begin
    if (Word^.At^ <> Word^.Value) or (Word[1].At^ <> Word[1].Value) then
      Exit(False);
    Inc(Word, 2);
  end;
  Result := True;
end;

// Returns whether Count frames are all that a backtrace ever reads.
function IsEnough(const Cache: TUnwindCache; Count: NativeUInt): Boolean; inline;
begin
  Result := Cache.IsWhole or (Count > Stacks.Depth);
end;

// Returns the number of the outermost frames whose words are all unchanged.
function UnchangedCount(const Cache: TUnwindCache): NativeUInt;
var
  Word, Limit: PStackWord;
begin
  Limit := Cache.Steps[Cache.Count - 1].WordLimit - 1;
  if (Limit^.At^ = Limit^.Value) and AreThere(@Cache.Words[0], Limit) then
    Exit(Cache.Count);
  Result := 0;
  Word := @Cache.Words[0];
  repeat
    Limit := Cache.Steps[Result].WordLimit;
    while Word < Limit do
    begin
      if Word^.At^ <> Word^.Value then
        Exit;
      Inc(Word);
    end;
    Inc(Result);
  until Result = Cache.Count;
end;

// Returns whether Outer, the caller of a frame, and the callers of that are found without the frame
// pointer of the frame: the frame does without it, and has saved it, or all farther out do, too.
function IsFreeOfFrame(Inner, Outer: PCachedFrame): Boolean; inline;
begin
  Result := (Outer^.Sp <> Inner^.Frame + FramedSize)
    and ((Outer^.FrameAt <> 0) or Outer^.IsFree);
end;

// Returns the least Sp of a frame that the last unwind may have had too.
function MetFrom(const Cache: TUnwindCache): NativeUInt; inline;
begin
  Result := High(NativeUInt);
  if Cache.Count > 0 then
    Result := Cache.Steps[Cache.Count - 1].Sp;
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
    if (Step^.Sp = Walk.Sp) and (Step^.Pc = Walk.Pc) and ((Step^.Frame = Walk.Frame)
      or Step^.IsFree) then
      Exit(True);
    Dec(Cache.Count);
  end;
  Result := False;
end;

// ---------------------------------------------------------------------------- steps

function KnownAt(var Cache: TUnwindCache; Pc: NativeUInt): PKnownPlace; inline;
begin
  Result := @Cache.Known[Pc mod KnownCount];
end;

// Unwinds one frame by its kept rule, if its routine has returned to the same address before, or
// any routine has where the rule does not know its own.
function LeaveAgain(var Cache: TUnwindCache; var Walk: TUnwind): Boolean; inline;
var
  Known, Caller: PKnownPlace;
  Slot: NativeUInt;
begin
  Result := False;
  Known := KnownAt(Cache, Walk.Pc);
  if Known^.Pc <> Walk.Pc then
    Exit;
  Slot := UnwindSlot(Walk, Known^.Rule);
  if not UnwindHas(Walk, Slot) then
    Exit;
  Caller := KnownAt(Cache, StackWord(Slot));
  if (Caller^.Pc <> StackWord(Slot)) or (Caller^.Start <> Known^.Rule.Start)
    or (Caller^.Pc = 0) then
    Exit;
  UnwindTo(Walk, Slot, Known^.Rule.SavedFrame);
  Result := True;
end;

// Unwinds one frame; returns False at the end. IsOnce: other words may have led to its caller.
function Leave(var Cache: TUnwindCache; var Walk: TUnwind; out IsOnce: Boolean): Boolean;
var
  Known, Caller: PKnownPlace;
begin
  IsOnce := False;
  Known := KnownAt(Cache, Walk.Pc);
  if (Known^.Pc = Walk.Pc) and UnwindLeave(Walk, Known^.Rule) then
  begin
    Caller := KnownAt(Cache, Walk.Pc);
    if Caller^.Pc = Walk.Pc then
      Caller^.Start := Known^.Rule.Start;
    Exit(True);
  end;
  Known^.Pc := Walk.Pc;
  Known^.Start := 0;
  Result := UnwindStep(Walk, Known^.Rule);
  IsOnce := Known^.Rule.Trust = rtOnce;
  if not Result or IsOnce then
    Known^.Pc := 0;
end;

procedure Note(out Step: TCachedFrame; const Walk: TUnwind); inline;
begin
  Step.IsFree := False;
  Step.Pc := Walk.Pc;
  Step.Sp := Walk.Sp;
  Step.Frame := Walk.Frame;
  Step.FrameAt := Walk.FrameAt;
end;

// Adds the words that led to the frame; returns the end of the words.
function WordsAdd(Next: PStackWord; const Step: TCachedFrame): PStackWord; inline;
begin
  Next^.At := PNativeUInt(Step.Sp - SizeOf(Pointer));
  Next^.Value := Step.Pc;
  Result := Next + 1;
  if (Step.FrameAt = 0) or Step.IsFree then
    Exit;
  Result^.At := PNativeUInt(Step.FrameAt);
  Result^.Value := Step.Frame;
  Inc(Result);
end;

// Replaces the words that led to the innermost kept frame by those of this unwind.
procedure Refresh(var Cache: TUnwindCache; const Walk: TUnwind);
var
  Step: PCachedFrame;
begin
  Step := @Cache.Steps[Cache.Count - 1];
  if (Step^.FrameAt = Walk.FrameAt) and (Step^.Frame = Walk.Frame) then
    Exit;
  Step^.Frame := Walk.Frame;
  Step^.FrameAt := Walk.FrameAt;
  Step^.WordLimit := WordsAdd(Step^.FirstWord, Step^);
end;

// Unwinds to the first frame that the last unwind had too, or as far as possible; then the kept
// frames are dropped. Returns the number of new frames.
function WalkUp(var Cache: TUnwindCache; var Walk: TUnwind): NativeUInt;
var
  IsEnd, IsOnce: Boolean;
  Unchanged: NativeUInt;
begin
  Result := 0;
  Cache.PassingCount := 0;
  repeat
    if (Walk.Sp >= MetFrom(Cache)) and HasMet(Cache, Walk) then
    begin
      Refresh(Cache, Walk);
      Unchanged := UnchangedCount(Cache);
      if Unchanged < Cache.Count then
        Cache.Count := Unchanged
      else if (Cache.Count + Result <= MostSteps) and IsEnough(Cache, Cache.Count + Result) then
        Exit
      else
        Cache.Count := 0;
    end;
    Note(Cache.Added[Result], Walk);
    Inc(Result);
    IsEnd := False;
    if not LeaveAgain(Cache, Walk) then
    begin
      IsEnd := not Leave(Cache, Walk, IsOnce);
      if IsOnce then
        Cache.PassingCount := Result;
    end;
  until IsEnd or (Result > Stacks.Depth) or (Result = NewSteps);
  Cache.Count := 0;
  Cache.IsWhole := IsEnd;
end;

// ---------------------------------------------------------------------------- ways

function StartKey(Pc, Sp: NativeUInt): NativeUInt; inline;
begin
  Result := (Pc xor Sp) * SpreadFactor;
end;

// Returns the key of the path from the starting point, of that and of callers. They only choose its
// place: NumberBy compares the stack.
function CallersKey(var Cache: TUnwindCache; const Walk: TUnwind): NativeUInt;
var
  Known: PKnownPlace;
  Pc, Sp, Frame, Slot, LastSlot: NativeUInt;
  Count: Cardinal;
begin
  Pc := Walk.Pc;
  Sp := Walk.Sp;
  Frame := Walk.Frame;
  LastSlot := Walk.Limit - SizeOf(Pointer);
  Result := StartKey(Pc, Sp);
  Count := 0;
  repeat
    Known := KnownAt(Cache, Pc);
    if Known^.Pc <> Pc then
      Break;
    Slot := Sp + Known^.Rule.Size;
    if Known^.Rule.IsFramed then
      Slot := Frame + SizeOf(Pointer);
    if (Slot < Sp) or (Slot > LastSlot) then
      Break;
    if Known^.Rule.SavedFrame <> 0 then
      Frame := PNativeUInt(NativeUInt(Slot - Known^.Rule.SavedFrame))^;
    Pc := PNativeUInt(Slot)^;
    Sp := Slot + SizeOf(Pointer);
    Result := (Result xor Pc) * SpreadFactor;
    Inc(Count);
  until Count = PathCallers;
end;

// Returns the number of the backtrace of the caller of the routine with this frame pointer, if its
// unwind takes this path and then goes on as the last one; else 0.
function NumberBy(const Cache: TUnwindCache; Way: PCachedPath; Frame, Limit: NativeUInt): Cardinal;
  inline;
var
  Base: PCachedFrame;
  Word, Last: PStackWord;
begin
  Result := 0;
  Base := Way^.Base;
  if (Cache.Limit <> Limit)
    or (Way^.Pc <> PNativeUInt(Frame)[1]) or (Way^.Sp <> Frame + FramedSize)
    or not Way^.IsFree and (Way^.Frame <> PNativeUInt(Frame)^)
    or (Base >= @Cache.Steps[Cache.Count])
    or (Base^.Sp <> Way^.BaseSp) or (Base^.Number <> Way^.BaseNumber) then
    Exit;
  // As AreThere, but no path is without words.
  Word := @Way^.Words;
  Last := Way^.Limit;
  repeat
    if (Word^.At^ <> Word^.Value) or (Word[1].At^ <> Word[1].Value) then
      Exit;
    Inc(Word, 2);
  until Word >= Last;
  // Of an odd number of words, the first one that led to Base as well: it is one of the path's.
  if AreThere(@Cache.Words, Base^.FirstWord) then
    Result := Way^.Number;
end;

// Keeps the path past the Count new frames, one at least, unless it is long, was cut or is lost.
procedure Keep(out Way: TCachedPath; const Cache: TUnwindCache; Count: NativeUInt;
  Number: Cardinal);
var
  Base, Step: PCachedFrame;
  Word: PStackWord;
begin
  Way.Pc := 0;
  if Count = 0 then
    Count := 1;
  if (Count > PathFrames) or (Count >= Cache.Count) or (Number = LostBacktrace)
    or not IsEnough(Cache, Cache.Count) then
    Exit;
  Step := @Cache.Steps[Cache.Count - 1];
  Base := Step - Count;
  Way.Pc := Step^.Pc;
  Way.Sp := Step^.Sp;
  Way.Frame := Step^.Frame;
  Way.IsFree := Step^.IsFree;
  Way.Base := Base;
  Way.BaseSp := Base^.Sp;
  Way.BaseNumber := Base^.Number;
  Way.Number := Number;
  Way.Limit := @Way.Words;
  Word := Step^.FirstWord;
  repeat
    Dec(Word);
    Way.Limit^ := Word^;
    Inc(Way.Limit);
  until Word = Base^.FirstWord;
  if NativeUInt(Way.Limit - PStackWord(@Way.Words)) and 1 = 0 then
    Exit;
  Way.Limit^ := Way.Limit[-1];
  Inc(Way.Limit);
end;

// ---------------------------------------------------------------------------- the stack

// BacktraceExtend, by kept nodes. No barrier: one ended after the look is lost. Pairs with Sweep.
function Extend(var Cache: TUnwindCache; Outer: Cardinal; Return: NativeUInt): Cardinal; inline;
var
  Call: PKeptCall;
begin
  Call := @Cache.Calls[NativeUInt((Return xor NativeUInt(Outer) shl 16) * SpreadFactor)
    shr (SizeOf(NativeUInt) * 8 - KnownBits)];
  if (Call^.Return = Return) and (Call^.Outer = Outer) and (Cache.Sweeps = Stacks.Sweeps) then
    Exit(Call^.Number);
  Result := BacktraceExtend(Outer, Return);
  if (Result = 0) or (Result = LostBacktrace) then
    Exit; // the table may have space the next time
  Call^.Return := Return;
  Call^.Outer := Outer;
  Call^.Number := Result;
end;

// Adds the new frames to the kept ones; returns the number of the backtrace.
function Append(var Cache: TUnwindCache; Count: NativeUInt): Cardinal;
var
  Next: PStackWord;
  Step, Added: PCachedFrame;
begin
  Next := @Cache.Words;
  Step := @Cache.Steps[Cache.Count];
  if Cache.Count > 0 then
  begin
    Result := Step[-1].Number;
    Next := Step[-1].WordLimit;
  end
  else if Cache.IsWhole then
    Result := 0
  else
    Result := BacktraceExtend(0, CutFrame);
  Inc(Cache.Count, Count);
  Added := @Cache.Added[Count];
  while Count > 0 do
  begin
    Dec(Count);
    Dec(Added);
    Step^ := Added^;
    Step^.IsFree := (Step <> @Cache.Steps) and IsFreeOfFrame(Step, Step - 1);
    Result := Extend(Cache, Result, Step^.Pc);
    Step^.Number := Result;
    Step^.FirstWord := Next;
    Next := WordsAdd(Next, Step^);
    Step^.WordLimit := Next;
    Inc(Step);
  end;
end;

// Drops Count entries of Size bytes whose first word is 0 in an empty one: others stay untouched.
procedure Clear(First: PNativeUInt; Count, Size: NativeUInt);
begin
  while Count > 0 do
  begin
    if First^ <> 0 then
      First^ := 0;
    Inc(PByte(First), Size);
    Dec(Count);
  end;
end;

// Drops the frames, nodes and paths whose numbers a sweep of the table may have ended.
procedure Forget(var Cache: TUnwindCache);
begin
  Cache.Sweeps := LoadAcquire(Stacks.Sweeps); // before the numbers that come
  Cache.Count := 0;
  Clear(@Cache.Calls, KnownCount, SizeOf(TKeptCall));
  Clear(@Cache.Ways, PathCount, SizeOf(TCachedPath));
end;

// Drops what may have changed since: numbers, and the rules of places where other code has come.
procedure LookForChanges(var Cache: TUnwindCache);
var
  Changes: NativeUInt;
begin
  if Cache.Sweeps <> LoadAcquire(Stacks.Sweeps) then
    Forget(Cache);
  Changes := LoadAcquire(Stacks.CodeChanges); // before the unwind reads rules
  if Cache.Changes = Changes then
    Exit;
  Cache.Changes := Changes;
  if Cache.Limit <> 0 then // else there is none
    Clear(@Cache.Known, KnownCount, SizeOf(TKnownPlace));
end;

// Returns the place of the path that the callers choose.
function PathFor(var Cache: TUnwindCache; const Walk: TUnwind): PCachedPath; inline;
begin
  LookForChanges(Cache);
  Result := @Cache.Ways[CallersKey(Cache, Walk) shr (SizeOf(NativeUInt) * 8 - PathBits)];
end;

// Returns the place of the path that was taken last from the starting point.
function RecentAt(var Cache: TUnwindCache; Frame: NativeUInt): PRecentPath; inline;
begin
  Result := @Cache.Recent[StartKey(PNativeUInt(Frame)[1], Frame + FramedSize)
    shr (SizeOf(NativeUInt) * 8 - RecentBits)];
end;

// UnwindCacheFind where the path taken last is another one.
function FindByCallers(var Cache: TUnwindCache; Frame, Limit: NativeUInt): Cardinal;
var
  Walk: TUnwind;
  Way: PCachedPath;
begin
  UnwindFrom(Frame, Limit, Walk);
  Way := PathFor(Cache, Walk);
  RecentAt(Cache, Frame)^ := Way;
  Result := NumberBy(Cache, Way, Frame, Limit);
end;

function UnwindCacheFind(var Cache: TUnwindCache; Frame, Limit: NativeUInt): Cardinal;
var
  Way: PCachedPath;
begin
  Way := RecentAt(Cache, Frame)^;
  Result := 0;
  if Way <> nil then
    Result := NumberBy(Cache, Way, Frame, Limit);
  if Result = 0 then
    Result := FindByCallers(Cache, Frame, Limit);
end;

function UnwindCacheTake(var Cache: TUnwindCache; Frame, Limit: NativeUInt): Cardinal;
var
  Walk: TUnwind;
  Way: PCachedPath;
  Count: NativeUInt;
begin
  UnwindFrom(Frame, Limit, Walk);
  // The place that UnwindCacheFind has found. Any place serves: its path is compared.
  Way := RecentAt(Cache, Frame)^;
  if Way = nil then
    Way := PathFor(Cache, Walk);
  LookForChanges(Cache);
  if Cache.Limit <> Limit then
  begin
    Cache.Limit := Limit;
    Cache.Count := 0; // of a thread that owned the record before: its stack may be gone
  end;
  Count := WalkUp(Cache, Walk);
  Result := Append(Cache, Count);
  Keep(Way^, Cache, Count, Result);
  if Cache.PassingCount = 0 then
    Exit;
  Way^.Pc := 0;
  Dec(Cache.Count, Cache.PassingCount);
end;

end.
