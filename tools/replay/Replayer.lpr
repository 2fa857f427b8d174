/// lanemm-replay: what lanemm starts on LaneMM. For `lanemm replay` it repeats the calls of a plan, under
/// each manager; for `lanemm selftest` it does a part of the test, see SelfTests.
///
///   lanemm-replay pascal|malloc PLAN SLOTS THREADS
///   lanemm-replay selftest PART WORK
///
/// By GetMem and its relatives, on LaneMM or with LANEMM=off on Free Pascal's heap; or by malloc and its
/// relatives, those of glibc or of a library that is preloaded. Threads take turns in the order of the
/// plan. Prints the calls. Blocks are touched, and checked: exit code 1 for contents that are wrong.
program Replayer;

{$mode delphi}{$H+}
{$pointermath on}

uses
  LaneMM, cthreads, SysUtils, Classes, BaseUnix, Plans, SelfTests;

function CMalloc(Size: NativeUInt): Pointer; cdecl; external 'c' name 'malloc';
function CCalloc(Count, Size: NativeUInt): Pointer; cdecl; external 'c' name 'calloc';
function CRealloc(P: Pointer; Size: NativeUInt): Pointer; cdecl; external 'c' name 'realloc';
procedure CFree(P: Pointer); cdecl; external 'c' name 'free';
function CAlign(out P: Pointer; Alignment, Size: NativeUInt): LongInt; cdecl;
  external 'c' name 'posix_memalign';

const
  PageBytes = 4096;

type
  // A block: Offset bytes behind what the manager has returned.
  TBlock = record
    Base: PByte;
    Offset: NativeUInt;
    Size: NativeUInt;
  end;
  PBlocks = ^TBlock;

  // A thread, which waits for its turn.
  TPlayer = class(TThread)
  private
    Index: Integer;
    Turn: PRTLEvent;
  public
    constructor Create(Number: Integer);
    destructor Destroy; override;
    procedure Execute; override;
  end;

var
  UsesMalloc: Boolean;
  Plan: TPlanReader;
  Blocks: PBlocks;             // by slot, outside of any heap
  Players: array of TPlayer;   // by number; 0, the first one that calls, is the main thread
  MainTurn: PRTLEvent;
  Counts: TPlanCounts;
  IsZero: Boolean;             // of the next block
  Log2: Integer;               // its alignment; 0: any

procedure Fail(const Text: string);
begin
  WriteLn(StdErr, 'lanemm-replay: ', Text);
  Halt(1);
end;

// ---------------------------------------------------------------------------- blocks

// Writes a byte of each page, and the last one.
procedure Mark(const Block: TBlock; Value: Byte);
var
  P: PByte;
  Place: NativeUInt;
begin
  if Block.Size = 0 then
    Exit;
  P := Block.Base + Block.Offset;
  Place := 0;
  while Place < Block.Size do
  begin
    P[Place] := Value;
    Inc(Place, PageBytes);
  end;
  P[Block.Size - 1] := Value;
end;

procedure Check(const Block: TBlock; Value: Byte; Size: NativeUInt; const What: string);
var
  P: PByte;
begin
  P := Block.Base + Block.Offset;
  if (Size > 0) and ((P[0] <> Value) or (Size = Block.Size) and (P[Size - 1] <> Value)) then
    Fail(What);
end;

procedure Get(out Block: TBlock; Size: NativeUInt);
var
  Alignment: NativeUInt;
begin
  Block.Offset := 0;
  Block.Size := Size;
  Alignment := NativeUInt(1) shl Log2;
  if UsesMalloc and (Log2 > 0) then
  begin
    if CAlign(Pointer(Block.Base), Alignment, Size) <> 0 then
      Block.Base := nil;
  end
  else if UsesMalloc and IsZero then
    Block.Base := CCalloc(1, Size)
  else if UsesMalloc then
    Block.Base := CMalloc(Size)
  else if (Log2 > 0) and LaneMM_IsInstalled then
    Block.Base := LaneMM_GetMemAligned(Size, Alignment)
  else if Log2 > 0 then
  begin
    Block.Base := GetMem(Size + Alignment);
    Block.Offset := NativeUInt(-NativeInt(Block.Base)) and (Alignment - 1);
  end
  else if IsZero then
    Block.Base := AllocMem(Size)
  else
    Block.Base := GetMem(Size);
  if (Block.Base = nil) and (Size > 0) then
    Fail('no memory');
end;

procedure AddBlock(Slot: Cardinal; Size: NativeUInt);
begin
  Get(Blocks[Slot], Size);
  if IsZero then
    Check(Blocks[Slot], 0, Size, 'a new block is not zero');
  Mark(Blocks[Slot], Slot);
  IsZero := False;
  Log2 := 0;
  Inc(Counts.Allocations);
  Inc(Counts.Bytes, Size);
end;

procedure FreeBlock(Slot: Cardinal);
begin
  Check(Blocks[Slot], Slot, Blocks[Slot].Size, 'a block has changed');
  if UsesMalloc then
    CFree(Blocks[Slot].Base)
  else
    FreeMem(Blocks[Slot].Base);
  Inc(Counts.Frees);
end;

procedure ResizeBlock(Slot: Cardinal; Size: NativeUInt);
var
  Block: ^TBlock;
  OldSize: NativeUInt;
begin
  Block := @Blocks[Slot];
  OldSize := Block^.Size;
  Check(Block^, Slot, OldSize, 'a block has changed');
  if UsesMalloc then
    Block^.Base := CRealloc(Block^.Base, Size)
  else
    ReallocMem(Block^.Base, Size + Block^.Offset);
  if Block^.Base = nil then
    Fail('no memory');
  Block^.Size := Size;
  if OldSize < Size then
    Check(Block^, Slot, OldSize, 'a block has lost its contents');
  Mark(Block^, Slot);
  Inc(Counts.Resizes);
  Inc(Counts.Bytes, Size);
end;

// ---------------------------------------------------------------------------- threads

// Gives the turn to a thread, a new one the first time.
procedure Pass(Number: Integer);
begin
  if Number = 0 then
    RTLEventSetEvent(MainTurn)
  else
  begin
    if Players[Number] = nil then
      Players[Number] := TPlayer.Create(Number);
    RTLEventSetEvent(Players[Number].Turn);
  end;
end;

// Repeats the calls of this thread, and waits while others have their turns. The main thread waits for the
// end of the plan.
procedure Play(Own: Integer; Turn: PRTLEvent);
var
  Call: TPlanCall;
  Ends: Boolean;
begin
  Ends := False;
  while Plan.Next(Call) do
    case Call.Kind of
      pkNew: AddBlock(Call.Slot, Call.Size);
      pkFree: FreeBlock(Call.Slot);
      pkResize: ResizeBlock(Call.Slot, Call.Size);
      pkMore:
        case Call.More of
          pmEnds: Ends := True;
          pmZero: IsZero := True;
          pmAligned: Log2 := Call.Slot;
          pmThread:
            begin
              if Integer(Call.Slot) = Own then
                Continue;
              Pass(Call.Slot);
              if Ends and (Own <> 0) then
                Exit;
              RTLEventWaitFor(Turn);
            end;
        end;
    end;
  if Own <> 0 then
    Pass(0);
end;

constructor TPlayer.Create(Number: Integer);
begin
  Index := Number;
  Turn := RTLEventCreate;
  FreeOnTerminate := True;
  inherited Create(False);
end;

destructor TPlayer.Destroy;
begin
  inherited Destroy;
  RTLEventDestroy(Turn);
end;

procedure TPlayer.Execute;
begin
  RTLEventWaitFor(Turn);
  Play(Index, Turn);
end;

procedure RepeatPlan;
begin
  UsesMalloc := ParamStr(1) = 'malloc';
  Plan.Open(ParamStr(2));
  Blocks := FpMMap(nil, SizeOf(TBlock) * (StrToInt(ParamStr(3)) + 1), PROT_READ or PROT_WRITE,
    MAP_PRIVATE or MAP_ANONYMOUS, -1, 0);
  SetLength(Players, StrToInt(ParamStr(4)));
  MainTurn := RTLEventCreate;
  Play(0, MainTurn);
  WriteLn(Counts.Text);
end;

begin
  if ParamStr(1) = 'selftest' then
    ExitCode := RunPart(ParamStr(2), StrToInt(ParamStr(3)))
  else
    RepeatPlan;
end.
