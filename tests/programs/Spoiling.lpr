/// Corrupts memory at random, in many ways, and makes LaneMM check it: no report may fault or hang.
///   Spoiling SEED COUNT
/// Each seed from SEED on runs in a process of its own. Prints the seeds whose process ended
/// otherwise than by itself; the exit code is their number. Run it with LANEMM=debug,leaks; without
/// `debug` only contents are spoiled.
program Spoiling;

{$mode delphi}{$H+}{$pointermath on}
{$unitpath ../../src/core} {$unitpath ../../src/debug} // behind the door

uses
  LaneMM, SysUtils, Classes, {$ifdef LINUX} BaseUnix, {$endif} LaneMM.Types, LaneMM.DebugState,
  LaneMM.DebugSpans;

const
  BlockCount = 200;
  SpoiltCount = 12;
  {$ifdef LINUX}
  SecondsAtMost = 100;
  {$endif}

type
  TThing = class
    Text: string;
    Numbers: array of Integer;
    Others: TList;
    Next: TThing;
  end;
  TSpoil = procedure;

var
  Random: QWord;
  Blocks: array[0..BlockCount - 1] of PByte;
  Sizes: array[0..BlockCount - 1] of NativeInt;
  Things: array[0..BlockCount - 1] of TThing;
  IsDebug: Boolean;

// ---------------------------------------------------------------------------- numbers

function NextRandom: QWord;
begin
  Random := Random xor (Random shl 13);
  Random := Random xor (Random shr 7);
  Random := Random xor (Random shl 17);
  Result := Random;
end;

function Below(Limit: QWord): NativeInt;
begin
  Result := NextRandom shr 11 mod Limit;
end;

// A word of the kind that broken memory has.
function WildWord: NativeUInt;
begin
  case Below(12) of
    0: Result := 0;
    1: Result := Below(4096);
    2: Result := High(NativeUInt) - NativeUInt(Below(4096));
    3: Result := NextRandom;
    4: Result := NextRandom and {$ifdef CPU64} $7FFFFFFFFFF8 {$else} $FFFFFFF8 {$endif};
    5: Result := NativeUInt(Blocks[Below(BlockCount)]) + NativeUInt(Below(64));
    6: Result := NativeUInt(Things[Below(BlockCount)]);
    7: Result := NativeUInt(@Result);
    8: Result := NativeUInt(Pointer(TThing)) + NativeUInt(Below(32) * SizeOf(Pointer));
    9: Result := Process.Base + NextRandom mod (Process.Limit * 2 + 1);
    10: Result := NativeUInt(@NextRandom) + NativeUInt(Below(4096));
  else
    Result := High(NativeUInt) div $FF * $80 xor NextRandom and $FF;
  end;
end;

procedure SpoilBytes(P: PByte; Length: NativeInt);
var
  Index: NativeInt;
begin
  for Index := 0 to Length - 1 do
    if Below(3) = 0 then
      P[Index] := Below(256);
end;

procedure SpoilWords(P: PNativeUInt; Count: NativeInt);
var
  Index: NativeInt;
begin
  for Index := 0 to Count - 1 do
    if Below(3) > 0 then
      P[Index] := WildWord;
end;

// ---------------------------------------------------------------------------- ways

procedure SpoilObject;
begin
  PNativeUInt(Things[Below(BlockCount)])^ := WildWord;
end;

procedure SpoilFields;
begin
  SpoilWords(PNativeUInt(Things[Below(BlockCount)]), TThing.InstanceSize div SizeOf(Pointer));
end;

// In a block, where an object leads to.
procedure SpoilClass;
var
  Block: Integer;
begin
  Block := Below(BlockCount);
  if Sizes[Block] < 128 then
    Exit;
  Move(Pointer(TThing)^, Blocks[Block]^, 15 * SizeOf(Pointer));
  SpoilWords(PNativeUInt(Blocks[Block]) + Below(12), 3);
  PPointer(Things[Below(BlockCount)])^ := Blocks[Block];
end;

procedure SpoilString;
var
  P: PNativeUInt;
begin
  P := Pointer(Things[Below(BlockCount)].Text);
  if P <> nil then
    SpoilWords(P - 2, 2);
end;

procedure SpoilArray;
var
  P: PNativeUInt;
begin
  P := Pointer(Things[Below(BlockCount)].Numbers);
  if P <> nil then
    SpoilWords(P - 2, 2);
end;

procedure SpoilList;
var
  List: TList;
begin
  List := Things[Below(BlockCount)].Others;
  SpoilWords(Pointer(List.List), List.Count);
  SpoilWords(PNativeUInt(List) + 1, 4);
end;

procedure SpoilContents;
var
  Block: Integer;
begin
  Block := Below(BlockCount);
  SpoilWords(PNativeUInt(Blocks[Block]), Sizes[Block] div SizeOf(Pointer));
end;

procedure SpoilAround;
var
  Block: Integer;
begin
  Block := Below(BlockCount);
  SpoilBytes(Blocks[Block] - 16, 16);
  SpoilBytes(Blocks[Block] + Sizes[Block], 16);
end;

procedure SpoilFreed;
var
  Block: Integer;
begin
  Block := Below(BlockCount);
  if Blocks[Block] = nil then
    Exit;
  FreeMem(Blocks[Block]);
  SpoilBytes(Blocks[Block], Sizes[Block]);
end;

procedure SpoilNotes;
var
  Notes: PDebugBlock;
begin
  Notes := DebugBlockOf(Blocks[Below(BlockCount)]);
  if Notes <> nil then
    SpoilBytes(PByte(Notes), SizeOf(TDebugBlock));
end;

// Of blocks that wait to be used again, too.
procedure SpoilFreedNotes;
var
  Block: Integer;
begin
  Block := Below(BlockCount);
  FreeMem(Blocks[Block]);
  if DebugBlockOf(Blocks[Block]) <> nil then
    SpoilWords(PNativeUInt(DebugBlockOf(Blocks[Block])), SizeOf(TDebugBlock) div SizeOf(Pointer));
end;

const
  Ways: array[0..10] of TSpoil = (SpoilObject, SpoilFields, SpoilClass, SpoilString, SpoilArray,
    SpoilList, SpoilContents, SpoilAround, SpoilFreed, SpoilNotes, SpoilFreedNotes);
  // Those before this one change contents only.
  FirstDebugWay = 7;

// ---------------------------------------------------------------------------- one seed

function NewThing: TThing;
var
  Index: Integer;
begin
  Result := TThing.Create;
  Result.Text := 'text ' + IntToStr(Below(1000000));
  SetLength(Result.Numbers, Below(100));
  Result.Others := TList.Create;
  for Index := 0 to Below(20) do
    Result.Others.Add(Result);
  if Things[0] <> nil then
    Result.Next := Things[0];
end;

procedure Fill;
var
  Index: Integer;
begin
  for Index := 0 to BlockCount - 1 do
  begin
    Sizes[Index] := 16 + Below(400);
    if Below(20) = 0 then
      Sizes[Index] := 30000 + Below(100000);
    GetMem(Blocks[Index], Sizes[Index]);
    Things[Index] := NewThing;
  end;
end;

procedure Spoil;
var
  Count, Way: Integer;
begin
  for Count := 1 to 1 + Below(SpoiltCount) do
  begin
    Way := Below(Length(Ways));
    if IsDebug or (Way < FirstDebugWay) then
      try
        Ways[Way];
      except
        on E: EAccessViolation do ; // of this program: it follows spoilt words
        on E: EInvalidPointer do ;
      end;
  end;
end;

procedure LookAtPointer(P: Pointer);
var
  Info: TLaneMM_BlockInfo;
begin
  LaneMM_BlockInfo(P, Info);
  LaneMM_CheckBlock(P);
end;

procedure ReturnBlock(Index: Integer);
begin
  try
    case Below(4) of
      0: MemSize(Blocks[Index]);
      1: ReallocMem(Blocks[Index], Below(1000));
    else
      FreeMem(Blocks[Index]);
    end;
  except
    on E: EInvalidPointer do ;
  end;
end;

// What was spoilt may say of a block that it is free.
procedure FreeIfPossible(P: Pointer);
begin
  try
    FreeMem(P);
  except
    on E: EInvalidPointer do ;
  end;
end;

procedure Look;
var
  Before, After: TLaneMM_Snapshot;
  Index: Integer;
  Extra: array[0..99] of Pointer;
begin
  LaneMM_CheckHeap;
  Before := LaneMM_TakeSnapshot;
  LaneMM_ReportMemoryInUse;
  for Index := 1 to 50 do
    LookAtPointer(Pointer(WildWord));
  if IsDebug then
    for Index := 0 to BlockCount div 2 do
      ReturnBlock(Below(BlockCount));
  for Index := 0 to High(Extra) do
    Extra[Index] := AllocMem(Below(400));
  for Index := 0 to High(Extra) do
    FreeIfPossible(Extra[Index]);
  After := LaneMM_TakeSnapshot;
  LaneMM_CompareSnapshots(Before, After);
  LaneMM_FreeSnapshot(After);
  LaneMM_FreeSnapshot(Before);
end;

// For exceptions at the end that nobody handles: what is spoilt may be the run-time library's, which
// then faults in its own end; a fault with LaneMM on the stack is what this program looks for.
procedure GoOnUnlessOurs(Thing: TObject; Place: CodePointer; Count: LongInt; Frames: PCodePointer);
var
  All: array of NativeUInt;
  Lines: array[0..9999] of AnsiChar;
begin
  SetLength(All, Count + 1);
  All[0] := NativeUInt(Place);
  Move(Frames^, All[1], Count * SizeOf(All[1]));
  LaneMM_StackText(@All[0], Length(All), @Lines, SizeOf(Lines));
  if Pos('LaneMM', Lines) = 0 then
    Halt(0);
  WriteLn(Lines);
  Flush(Output);
end;

procedure RunSeed(Seed: QWord);
begin
  {$ifdef LINUX}
  FpAlarm(SecondsAtMost);
  {$endif}
  Random := (Seed + 1) * 6364136223846793005 + 1442695040888963407;
  Fill;
  Spoil;
  Look;
  ExceptProc := @GoOnUnlessOurs;
  Halt(0);
end;

{$ifdef LINUX}
// Whether the process of the seed ended by itself.
function IsFine(Seed: QWord): Boolean;
var
  Child: TPid;
  Status: cint;
begin
  Child := FpFork;
  if Child = 0 then
    RunSeed(Seed);
  FpWaitPid(Child, Status, 0);
  Result := WIfExited(Status) and (WExitStatus(Status) = 0);
  if not Result then
    WriteLn('seed ', Seed, ': status ', Status);
  Flush(Output); // or the next process would write it, too
end;
{$else}
// The same where the system has no fork: the process is this program with the seed alone. A hang is
// noticed by the test that runs this program.
function IsFine(Seed: QWord): Boolean;
var
  Status: Integer;
begin
  Status := ExecuteProcess(ParamStr(0), [IntToStr(Seed)]);
  Result := Status = 0;
  if not Result then
    WriteLn('seed ', Seed, ': status ', Status);
end;
{$endif}

var
  First, Seed: NativeUInt;
  Failed: Integer;
begin
  IsDebug := LaneMM_Settings.Values[opDebug] <> 0;
  First := StrToQWord(ParamStr(1));
  if ParamCount < 2 then
    RunSeed(First);
  Failed := 0;
  for Seed := First to First + StrToQWord(ParamStr(2)) - 1 do
    if not IsFine(Seed) then
      Inc(Failed);
  if Failed > 200 then
    Failed := 200;
  ExitCode := Failed;
end.
