/// Reports, snapshots, walks and checks repeatedly while threads allocate, resize and free blocks:
/// nothing faults, and every reported block exists.
///   OnDemand   with LANEMM=debug,guard=pages or guard=sample:N, or without
program OnDemand;

{$mode delphi}{$H+}{$pointermath on}

uses
  LaneMM, cthreads, SysUtils, Promises, Churning;

const
  // From Free Pascal 3.3 on an object has a monitor.
  MonitorSize = {$if FPC_FULLVERSION < 30300} 0 {$else} SizeOf(Pointer) {$endif};

type
  // As long as its block: one between guard pages, of the requested size, is of the same kind.
  TKept = class
    Number: Integer;
    Room: array[1..32 - SizeOf(Pointer) - MonitorSize - SizeOf(Integer)] of Byte;
  end;

const
  ThreadCount = 4;
  KeptCount = 7;
  RoundCount = 25;

var
  Kept: array[1..KeptCount] of TKept;
  ToldKept, ToldOther: Integer;

procedure Listen(Kind: TLaneMM_EventKind; Text: PAnsiChar; Length: NativeUInt);
var
  All: string;
begin
  SetString(All, Text, Length);
  if (Kind = evLeaks) and (Pos(Format('%d x OnDemand.TKept', [KeptCount]), All) > 0) then
    Inc(ToldKept)
  else
    Inc(ToldOther);
end;

procedure ReadBlock(const Block: TLaneMM_BlockInfo; Context: Pointer);
var
  Index: NativeUInt;
begin
  Index := 0;
  while Index < Block.UsableSize do
  begin
    Inc(PNativeUInt(Context)^, Block.Address[Index]);
    Inc(Index, 16);
  end;
  if (Block.Address <= PByte(Kept[1])) and (Block.Address + Block.UsableSize > PByte(Kept[1])) then
    Inc(ToldKept);
end;

procedure Look;
var
  Before, After: TLaneMM_Snapshot;
  Info: TLaneMM_BlockInfo;
  Sum: NativeUInt;
begin
  ToldKept := 0;
  ToldOther := 0;
  Expect(LaneMM_ReportMemoryInUse >= KeptCount, 'a report has all blocks that are kept');
  Expect(ToldKept = 1, 'a report has the objects that are kept');
  Before := LaneMM_TakeSnapshot;
  Sum := 0;
  LaneMM_WalkBlocks(ReadBlock, @Sum);
  Expect(ToldKept = 2, 'a walk finds a block that is kept, once');
  Expect(LaneMM_BlockInfo(Kept[2], Info), 'a block that is kept is known');
  After := LaneMM_TakeSnapshot;
  Expect((Before <> nil) and (After <> nil), 'snapshots are taken');
  LaneMM_CompareSnapshots(Before, After);
  LaneMM_FreeSnapshot(Before);
  LaneMM_FreeSnapshot(After);
  Expect(LaneMM_CheckHeap = 0, 'a check finds nothing where nothing is');
end;

var
  Index: Integer;

begin
  LaneMM_Configure('event=all:callback,top=256');
  LaneMM_OnEvent(Listen);
  for Index := 1 to KeptCount do
    Kept[Index] := TKept.Create;
  ChurnStart(ThreadCount);
  for Index := 1 to RoundCount do
    Look;
  ChurnEnd;
  Look;
  for Index := 1 to KeptCount do
    Kept[Index].Free;
  Finish;
end.
