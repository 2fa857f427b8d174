/// A program with a heap of known contents, for the tests of lanemm.
//
//   Planted held | stop | damage | overrun | record | leak | leakempty | leakstale | leaklist | leakgrown |
//     leakpacked | leakdeep | inregister | vacant | churn | leakchurn | locked | regions [churn]
//
// Prints what it knows of itself as lines `NAME VALUE`; then `churn` and `leakchurn` go on allocating
// in two threads, `locked` hangs for ever while it holds all locks of shards, and the others stop
// themselves by SIGSTOP.
program Planted;

{$mode delphi}
{$ifdef CPUX86_64} {$asmmode intel} {$endif}

uses
  LaneMM, cthreads, SysUtils, Classes, Contnrs, BaseUnix, LaneMM.Layout, LaneMM.Types, LaneMM.Stats, LaneMM.Lock,
  LaneMM.DebugSpans;

const
  AlphaCount = 1000;
  BetaCount = 300;
  TextCount = 200;
  LargeCount = 3;
  LargeSize = 1000000;
  SharedCount = 500;
  SharedSize = 3000;
  TakenCount = 100;
  LeakCount = 40;
  LeakPairCount = 10;
  LeakCycleCount = 5;
  LeakEmptyCount = 10;
  ListedCount = 12;
  LeakStaleCount = 5;
  LeakGrownCount = 100;
  LeftCount = 12;
  LeftSize = 5000;
  OrderCount = 500;
  ForgottenCount = 20;
  RequestCount = 30;
  ManyCount = 25;
  PackedCount = 40;
  HeldCount = 2000;
  SharedDataSize = 100000;
  WideSize = 300000000;
  WidePlace = 290000001;

type
  TAlpha = class
    Numbers: array[0..3] of Int64;
  end;
  TBeta = class
    Held: TObject;
    Numbers: array[0..19] of Int64;
  end;
  TGamma = class
    Held: TObject;
    Numbers: array[0..9] of Int64;
  end;

  TDeep = class
    Numbers: array[0..3] of Int64;
  end;

  TPacked = packed record
    Flag: Byte;
    Held: TObject;
  end;

var
  Packs: array of TPacked;
  Alphas: array[0..AlphaCount - 1] of TAlpha;
  Betas: array[0..BetaCount - 1] of TBeta;
  Texts: array[0..TextCount - 1] of UnicodeString;
  Larges: array[0..LargeCount - 1] of Pointer;
  Shared: array[0..SharedCount - 1] of Pointer;
  Left: array[0..LeftCount - 1] of Pointer;
  List: TFPHashList;
  Kept: array of TGamma;
  Pair: array[0..1] of TBeta;
  Overrun: PByte;
  Orders: TLaneMM_Region = 0;
  Ordered: array[0..OrderCount - 1] of TAlpha;
  IsShared: Boolean;
  Classes: TClassStatuses;
  Status: TStatus;
  Command, More: string;

// Ends before the program stops: its blocks stay.
function MakeBetas(Parameter: Pointer): PtrInt;
var
  Index: Integer;
begin
  for Index := 0 to BetaCount - 1 do
    Betas[Index] := TBeta.Create;
  Result := 0;
end;

// Sleeps for ever: the main thread frees some of its blocks.
function Share(Parameter: Pointer): PtrInt;
var
  Index: Integer;
begin
  for Index := 0 to SharedCount - 1 do
    GetMem(Shared[Index], SharedSize);
  ReadWriteBarrier;
  IsShared := True;
  while True do
    Sleep(1000000);
  Result := 0;
end;

function Churn(Parameter: Pointer): PtrInt;
var
  Blocks: array[0..999] of Pointer;
  Index: Integer;
  Turn: Int64;
begin
  FillChar(Blocks, SizeOf(Blocks), 0);
  Turn := 0;
  while True do
  begin
    Index := Turn * 7919 mod Length(Blocks);
    FreeMem(Blocks[Index]);
    // Cleared: an old word of a block that nobody writes could point to a leak.
    Blocks[Index] := AllocMem(16 + Turn * 31 mod 5000 + Ord(Turn mod 1000 = 0) * 200000);
    Inc(Turn);
  end;
  Result := 0;
end;

procedure Plant;
var
  Index: Integer;
  Thread: TThreadID;
begin
  for Index := 0 to AlphaCount - 1 do
    Alphas[Index] := TAlpha.Create;
  for Index := 0 to AlphaCount div 4 - 1 do
    FreeAndNil(Alphas[Index * 4]);
  Thread := BeginThread(MakeBetas);
  WaitForThreadTerminate(Thread, 0);
  Betas[7].Held := Alphas[1];
  for Index := 0 to TextCount - 1 do
  begin
    SetLength(Texts[Index], 100);
    FillWord(Texts[Index][1], 100, Ord('x'));
  end;
  for Index := 0 to LargeCount - 1 do
    GetMem(Larges[Index], LargeSize);
  BeginThread(Share);
  while not IsShared do
    Sleep(1);
  for Index := 0 to TakenCount - 1 do
    FreeMem(Shared[Index * 3]);
end;

// Forgets what it makes: objects, objects that hold another one, pairs that hold each other.
procedure Leak;
var
  Index: Integer;
  Gamma: TGamma;
  Beta: TBeta;
begin
  for Index := 1 to LeakCount do
    TGamma.Create;
  for Index := 1 to LeakPairCount do
  begin
    Gamma := TGamma.Create;
    Gamma.Held := TAlpha.Create;
  end;
  for Index := 1 to LeakCycleCount do
  begin
    Beta := TBeta.Create;
    Beta.Held := TBeta.Create;
    TBeta(Beta.Held).Held := Beta;
  end;
end;

procedure LeakEmpty;
var
  Index: Integer;
begin
  for Index := 1 to LeakEmptyCount do
    AllocMem(0);
end;

// Forgets objects that a list held: behind its count their addresses stay.
procedure LeakStale;
var
  Index: Integer;
begin
  List := TFPHashList.Create;
  for Index := 1 to ListedCount do
    List.Add(IntToStr(Index), TGamma.Create);
  for Index := 1 to LeakStaleCount do
    List.Delete(List.Count - 1);
end;

// Objects that packed records hold, at all places of a word.
procedure HoldPacked;
var
  Index: Integer;
begin
  SetLength(Packs, PackedCount);
  for Index := 0 to PackedCount - 1 do
    Packs[Index].Held := TGamma.Create;
end;

// Objects that an array alone holds, each with another one; data that two objects hold.
procedure Hold;
var
  Index: Integer;
begin
  SetLength(Kept, HeldCount);
  for Index := 0 to HeldCount - 1 do
  begin
    Kept[Index] := TGamma.Create;
    Kept[Index].Held := TAlpha.Create;
  end;
  Pair[0] := TBeta.Create;
  Pair[0].Held := AllocMem(SharedDataSize);
  Pair[1] := TBeta.Create;
  Pair[1].Held := Pair[0].Held;
end;

// Forgets an object whose address stays in a part of the stack that is not in use any more.
procedure LeakDeep;
var
  Words: array[0..8191] of TDeep;
  Index: Integer;
begin
  Words[0] := TDeep.Create;
  for Index := 1 to High(Words) do
    Words[Index] := Words[Index - 1];
end;

{$ifdef CPUX86_64}
// Stops while a register alone has the address P: the 128 bytes below the stack pointer are zeros.
procedure StopWith(P: TObject); assembler; nostackframe;
asm
  mov r8, rdi
  xor eax, eax
  mov ecx, 40
@Clear:
  push rax
  dec ecx
  jnz @Clear
  add rsp, 320
  mov eax, 39     // getpid
  syscall
  mov edi, eax
  mov esi, SIGSTOP
  mov eax, 62     // kill
  syscall
end;
{$endif}

// Forgets a list of objects.
procedure LeakList;
var
  Index: Integer;
  Forgotten: TFPList;
begin
  Forgotten := TFPList.Create;
  for Index := 1 to LeakStaleCount do
    Forgotten.Add(TGamma.Create);
end;

// Forgets blocks that grew, in place and to other places.
procedure LeakGrown;
var
  Index, Size: Integer;
  P: PByte;
begin
  for Index := 1 to LeakGrownCount do
  begin
    P := AllocMem(16);
    for Size := 1 to 20 do
      ReallocMem(P, Size * 100);
    FillChar(P^, 2000, 0);
  end;
end;

// Overwrites the first word of a free block, as a program with a bug does.
procedure Damage;
var
  Blocks: array[0..99] of PNativeUInt;
  Index: Integer;
begin
  for Index := 0 to 99 do
    GetMem(Blocks[Index], 7000);
  for Index := 0 to 49 do
    FreeMem(Blocks[Index * 2]); // the others keep the spans
  Blocks[90]^ := $4141414141414141;
  WriteLn('damaged ', NativeUInt(Blocks[90]));
end;

// Ends last: no thread takes its heap.
function LeaveHeap(Parameter: Pointer): PtrInt;
var
  Index: Integer;
begin
  for Index := 0 to High(Left) do
    GetMem(Left[Index], LeftSize);
  Result := 0;
end;

// In one region objects, a large block, a block that grew, and objects that are forgotten; regions
// of one name, and of many; the main thread stays inside of the first one.
procedure PlantRegions;
var
  Index: Integer;
  Request: TLaneMM_Region;
begin
  Orders := LaneMM_RegionCreate('orders "new"', 64 shl 20);
  LaneMM_RegionEnter(Orders);
  for Index := 0 to OrderCount - 1 do
    Ordered[Index] := TAlpha.Create;
  for Index := 1 to ForgottenCount do
    TGamma.Create;
  GetMem(Larges[0], LargeSize);
  GetMem(Left[0], LeftSize);
  LaneMM_RegionLeave;
  ReallocMem(Left[0], LeftSize * 4);
  FreeAndNil(Ordered[0]);
  for Index := 1 to RequestCount do
  begin
    Request := LaneMM_RegionCreate('request', 0);
    if Index mod 2 = 0 then
      LaneMM_RegionGetMem(Request, LeftSize);
  end;
  for Index := 1 to ManyCount do
    LaneMM_RegionGetMem(LaneMM_RegionCreate(PAnsiChar(AnsiString('many ' + IntToStr(Index))), 0), 100);
  LaneMM_RegionFree(LaneMM_RegionCreate('freed', 0));
  LaneMM_RegionEnter(Orders);
end;

procedure ReportRegion;
var
  State: TLaneMM_RegionState;
begin
  State := LaneMM_RegionState(Orders);
  WriteLn('regionBlocks ', State.BlocksInUse);
  WriteLn('regionBytes ', State.BytesInUse);
  WriteLn('regionCommitted ', State.CommittedBytes);
  WriteLn('regionPeak ', State.PeakBytes);
  WriteLn('regionLimit ', State.Limit);
end;

procedure HoldLocks;
var
  Number: Integer;
begin
  for Number := 1 to Process.ShardCount do
    while not LockTryAgain(Process.Shards[Number].Lock) do
      ThreadSwitch;
  WriteLn('locked 1');
  Flush(Output);
  while True do
    Sleep(1000000);
end;

procedure Report;
var
  Index: Integer;
begin
  // All is read before a line is written.
  StatusRead(Status);
  ClassStatusRead(Classes);
  for Index := 0 to SizeClassCount - 1 do
    if Classes[Index].SpanCount > 0 then
      WriteLn('class', Classes[Index].BlockSize, ' ', Classes[Index].BlockCount, ',',
        Classes[Index].FreeCount, ',', Classes[Index].SpanCount, ',', Classes[Index].SpanBytes);
  WriteLn('used ', Status.UsedBytes);
  WriteLn('reserved ', Status.ReservedBytes);
  WriteLn('committed ', Status.CommittedBytes);
  WriteLn('large ', Status.Large.BlockCount);
  WriteLn('largeBytes ', Status.Large.UsedBytes);
  WriteLn('alpha ', NativeUInt(Alphas[1]));
  WriteLn('beta ', NativeUInt(Betas[7]));
  WriteLn('text ', NativeUInt(Pointer(Texts[5])));
  WriteLn('largeAt ', NativeUInt(Larges[0]));
  WriteLn('freed ', NativeUInt(Shared[0]));
  WriteLn('variable ', NativeUInt(@Alphas[1]));
  if Packs <> nil then
    WriteLn('packed ', NativeUInt(Packs[1].Held));
end;

begin
  Command := ParamStr(1); // no text is made in a scope
  More := ParamStr(2);
  Plant;
  if Pos('leak', Command) = 1 then
    Leak;
  if Command = 'held' then
    Hold;
  if Command = 'leakempty' then
    LeakEmpty;
  if Command = 'leakstale' then
    LeakStale;
  if Command = 'leakpacked' then
    HoldPacked;
  if Command = 'leakdeep' then
    LeakDeep;
  if Command = 'leaklist' then
    LeakList;
  if Command = 'leakgrown' then
    LeakGrown;
  if Command = 'wide' then // a block longer than those that lanemm copies holds an object
  begin
    ReallocMem(Larges[0], WideSize);
    PPointer(PByte(Larges[0]) + WidePlace)^ := Alphas[1];
  end;
  if Command = 'vacant' then
    WaitForThreadTerminate(BeginThread(LeaveHeap), 0);
  if Command = 'regions' then
    PlantRegions;
  if Command = 'damage' then
    Damage;
  if Command = 'overrun' then
  begin
    GetMem(Overrun, 50);
    Overrun[50] := 1;
    WriteLn('overrun ', NativeUInt(Overrun));
  end;
  if Command = 'record' then // with debug blocks: the size of one is damaged
  begin
    GetMem(Overrun, 50);
    DebugBlockOf(Overrun)^.Size := NativeUInt(1) shl 46;
  end;
  Report;
  if Orders <> 0 then
    ReportRegion;
  WriteLn('ready 1');
  Flush(Output);
  if (Command = 'churn') or (Command = 'leakchurn')
    or (More = 'churn') then
  begin
    BeginThread(Churn);
    Churn(nil);
  end;
  if Command = 'locked' then
    HoldLocks;
  {$ifdef CPUX86_64}
  if Command = 'inregister' then
    StopWith(TDeep.Create);
  {$endif}
  fpKill(fpGetPid, SIGSTOP);
end.
