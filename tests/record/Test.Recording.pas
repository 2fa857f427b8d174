/// Tests of LaneMM.Recording: what is in the file. tests/lanemm repeats whole programs from such files.
unit Test.Recording;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  Classes, Test.Tools, LaneMM.RecordFormat;

type
  TRecordingTests = class(TLaneTest)
  strict private
    Path: string;
    Words: ShortString; // no block that is freed meanwhile
    Content: TMemoryStream;
    Place: PByte;
    Blocks: array[0..3] of Pointer;
    procedure Start;
    procedure Stop;
    procedure UseBlocks;
    procedure UseOne;
    function NextNumber: UInt64;
    function Events: string;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure EachCallIsInTheFile;
    procedure FreeWithoutASizeIsInTheFile;
    procedure CallsOfOtherThreadsAreTheirs;
    procedure NothingIsRecordedAfterTheEnd;
  end;

implementation

uses
  SysUtils, testregistry, LaneMM;

procedure TRecordingTests.SetUp;
begin
  inherited SetUp;
  Path := GetTempFileName;
  DeleteFile(Path);
  Words := 'record=' + Path;
  Content := TMemoryStream.Create;
end;

procedure TRecordingTests.TearDown;
begin
  LaneMM_Configure('record=0');
  Content.Free;
  DeleteFile(Path);
  inherited TearDown;
end;

procedure TRecordingTests.Start;
begin
  AssertTrue('starts', LaneMM_Configure(Words));
end;

procedure TRecordingTests.Stop;
begin
  LaneMM_Configure('record=0');
  Content.LoadFromFile(Path);
end;

function TRecordingTests.NextNumber: UInt64;
var
  Shift: Integer;
begin
  Result := 0;
  Shift := -7;
  repeat
    Inc(Shift, 7);
    Result := Result or UInt64(Place^ and 127) shl Shift;
    Inc(Place);
  until (Place - 1)^ < 128;
end;

// Returns the events of a recording of one part, with sizes, and the places of the blocks in Blocks.
function TRecordingTests.Events: string;
const
  Names: array[TRecordKind] of string = ('new', 'zero', 'aligned', 'free', 'moving', 'moved', 'thread',
    'end');
var
  Kind: TRecordKind;
  Value, Last: UInt64;
  Index: Integer;
begin
  Result := '';
  Last := 0;
  AssertEquals('magic', RecordMagic, Copy(PAnsiChar(Content.Memory), 1, Length(RecordMagic)));
  Place := Content.Memory + SizeOf(TRecordHead) + SizeOf(TRecordPartHead);
  repeat
    Value := NextNumber;
    Kind := TRecordKind(Value mod RecordKinds);
    Value := Value div RecordKinds;
    Result := Result + ' ' + Names[Kind];
    if Kind = rkThread then
      Continue;
    if Kind = rkEnd then
      Break;
    Inc(Last, Int64(Value shr 1) xor -Int64(Value and 1));
    for Index := 0 to High(Blocks) do
      if NativeUInt(Blocks[Index]) = Last * RecordUnit then
        Result := Result + IntToStr(Index);
    if Kind = rkAligned then
      Result := Format('%s:%d', [Result, NextNumber]);
    if not (Kind in [rkFree, rkMoving]) then
      Result := Format('%s/%d', [Result, NextNumber]);
  until False;
  Delete(Result, 1, 1);
end;

procedure TRecordingTests.UseBlocks;
begin
  GetMem(Blocks[0], 100);
  Blocks[1] := AllocMem(50);
  Blocks[2] := LaneMM_GetMemAligned(1000, 64);
  Blocks[3] := Blocks[0];
  ReallocMem(Blocks[3], 5000);
  ReallocMem(Blocks[3], 0);
  FreeMem(Blocks[2]);
  FreeMem(Blocks[1]);
end;

procedure TRecordingTests.EachCallIsInTheFile;
begin
  Start;
  UseBlocks;
  Stop;
  Blocks[3] := nil;
  AssertEquals('events', 'thread new0/100 zero1/50 aligned2:6/1000 moving0 moved/5000 free free2 free1 end',
    Events);
end;

procedure TRecordingTests.FreeWithoutASizeIsInTheFile;
begin
  Start;
  GetMem(Blocks[0], 100);
  FreeMem(Blocks[0], 0);
  Stop;
  AssertEquals('events', 'thread new0/100 free0 end', Events);
end;

procedure TRecordingTests.UseOne;
begin
  GetMem(Blocks[1], 77);
  FreeMem(Blocks[1]);
end;

procedure TRecordingTests.CallsOfOtherThreadsAreTheirs;
var
  Found: string;
begin
  Start;
  GetMem(Blocks[0], 66);
  InThread(UseOne);
  FreeMem(Blocks[0]);
  Stop;
  Found := Events;
  AssertTrue(Found, Pos('thread new0/66 ', Found) = 1);
  AssertTrue(Found, Pos(' new1/77 free1 thread ', Found) > 0);
  AssertTrue(Found, Pos(' free0 end', Found) > 0);
end;

procedure TRecordingTests.NothingIsRecordedAfterTheEnd;
begin
  Start;
  Stop;
  UseBlocks;
  Content.LoadFromFile(Path);
  AssertEquals('events', 'end', Events);
end;

initialization
  RegisterTest(TRecordingTests);
end.
