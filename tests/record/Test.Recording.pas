/// Tests of LaneMM.Recording: what is in the file. tests/lanemm repeats whole programs from such files.
unit Test.Recording;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  Classes, Test.Tools, LaneMM.Layout, LaneMM.RecordFormat;

type
  TCounts = array[rkNew..rkMoved] of Int64;

  TRecordingTests = class(TLaneTest)
  strict private
    Path: string;
    Words: ShortString; // no block that is freed meanwhile
    Content: TMemoryStream;
    Place: PByte;
    Blocks: array[0..3] of Pointer;
    CallerCount, CallCount, IsOver: TAtomicWord;
    GoesOn: Integer; // recordings that did not end
    procedure Start;
    procedure Stop;
    procedure UseBlocks;
    procedure UseOne;
    procedure EndSome;
    procedure EndOrCall;
    function NextNumber: UInt64;
    function Events: string;
    procedure CountEvents(out Counts: TCounts);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure EachCallIsInTheFile;
    procedure FreeWithoutASizeIsInTheFile;
    procedure CallsOfOtherThreadsAreTheirs;
    procedure NothingIsRecordedAfterTheEnd;
    procedure RecordingEndsWhileManyThreadsCall;
    procedure AnotherFileEndsTheRecording;
    {$ifdef UNIX}
    procedure CallsOfAHandlerThatInterruptsACallAreInTheFile;
    procedure HandlerThatMakesTooManyCallsEndsTheRecording;
    {$endif}
  end;

implementation

uses
  SysUtils, testregistry, {$ifdef UNIX} BaseUnix, {$endif} LaneMM, LaneMM.Atomic, LaneMM.Recording;

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

procedure TRecordingTests.EndSome;
const
  Recordings = 20;
  Many = 1000;
var
  Index: Integer;
  Before: NativeUInt;
begin
  for Index := 1 to Recordings do
  begin
    Start;
    Before := LoadAcquire(CallCount);
    while NativeUInt(LoadAcquire(CallCount) - Before) < Many do
      ThreadSwitch;
    LaneMM_Configure('record=0');
    Inc(GoesOn, Ord(RecordingIsOn));
    DeleteFile(Path);
  end;
end;

// The first thread begins and ends recordings, the others call.
procedure TRecordingTests.EndOrCall;
begin
  if FetchAdd(CallerCount, 1) = 0 then
    try
      EndSome;
    finally
      StoreRelease(IsOver, 1);
    end;
  while LoadAcquire(IsOver) = 0 do
  begin
    RecordCall(rkNew, Pointer(128), 8, 0);
    FetchAdd(CallCount, 1);
  end;
end;

procedure TRecordingTests.RecordingEndsWhileManyThreadsCall;
const
  ThreadCount = 16;
begin
  InThreads(ThreadCount, EndOrCall);
  Same(0, GoesOn, 'recordings that did not end');
end;

procedure TRecordingTests.AnotherFileEndsTheRecording;
var
  Second: string;
  SecondWords: ShortString;
begin
  Second := Path + '-second';
  SecondWords := 'record=' + Second;
  Start;
  GetMem(Blocks[0], 100);
  FreeMem(Blocks[0]);
  LaneMM_Configure('least=10'); // nothing changes for the recording
  LaneMM_Configure(SecondWords);
  UseOne;
  Stop;
  Blocks[1] := nil;
  AssertEquals('events of the first', 'thread new0/100 free0 end', Events);
  Content.LoadFromFile(Second);
  DeleteFile(Second);
  Blocks[0] := nil;
  AssertEquals('events of the second', 'thread new/77 free end', Events);
end;

// Counts the events of all parts, which end with those counts.
procedure TRecordingTests.CountEvents(out Counts: TCounts);
var
  Kind: TRecordKind;
  Part, PartEnd: PByte;
begin
  FillChar(Counts, SizeOf(Counts), 0);
  Part := Content.Memory + SizeOf(TRecordHead);
  repeat
    Place := Part + SizeOf(TRecordPartHead);
    PartEnd := Place + TRecordPartHead(Pointer(Part)^).Bytes;
    Part := Place + (TRecordPartHead(Pointer(Part)^).Bytes + 7) div 8 * 8;
    while Place < PartEnd do
    begin
      Kind := TRecordKind(NextNumber mod RecordKinds);
      if Kind = rkEnd then
        Break;
      if Kind = rkThread then
        Continue;
      Inc(Counts[Kind]);
      if Kind in [rkNew, rkZero, rkMoved] then
        NextNumber;
    end;
  until Part >= Content.Memory + Content.Size;
  AssertTrue('has an end', Kind = rkEnd);
  for Kind := Low(Counts) to High(Counts) do
    AssertTrue('count at the end', Int64(NextNumber) = Counts[Kind]);
end;

{$ifdef UNIX}
type
  TTimer = record
    Interval, Value: TTimeVal;
  end;

const
  RealTimer = 0; // ITIMER_REAL
  Alarms = 200;

var
  AlarmCount, AlarmCalls: Integer; // signals that came; calls that the handler of each makes

function SetTimer(Which: cint; New, Old: Pointer): cint; cdecl;
  external 'c' name 'setitimer';

procedure RecordInHandler(Signal: LongInt); cdecl;
var
  Index: Integer;
begin
  for Index := 1 to AlarmCalls do
    RecordCall(rkZero, Pointer(64), 8, 0);
  Inc(AlarmCount);
end;

// Requests the next signal in so many microseconds; 0: none.
procedure SetAlarm(Delay: Integer);
var
  Timer: TTimer;
begin
  FillChar(Timer, SizeOf(Timer), 0);
  Timer.Value.tv_usec := Delay;
  SetTimer(RealTimer, @Timer, nil);
end;

// Records calls until Alarms signals have come, most of them inside of one, or the recording has ended.
// Returns how many it recorded.
function RecordWithAlarms(Calls: Integer): Int64;
const
  Delay = 500;
var
  Before: SignalHandler;
  Seen: Integer;
begin
  Result := 0;
  AlarmCount := 0;
  AlarmCalls := Calls;
  Before := FpSignal(SIGALRM, SignalHandler(@RecordInHandler));
  Seen := -1;
  while (AlarmCount < Alarms) and RecordingIsOn do
  begin
    if Seen <> AlarmCount then
    begin
      Seen := AlarmCount;
      SetAlarm(Delay);
    end;
    RecordCall(rkNew, Pointer(128), 8, 0);
    Inc(Result);
  end;
  SetAlarm(0);
  FpSignal(SIGALRM, Before);
end;

procedure TRecordingTests.CallsOfAHandlerThatInterruptsACallAreInTheFile;
const
  Calls = 3;
var
  Recorded: Int64;
  Counts: TCounts;
begin
  Start;
  Recorded := RecordWithAlarms(Calls);
  Stop;
  CountEvents(Counts);
  AssertTrue('calls', Counts[rkNew] = Recorded);
  AssertTrue('calls of the handler', Counts[rkZero] = AlarmCount * Calls);
end;

procedure TRecordingTests.HandlerThatMakesTooManyCallsEndsTheRecording;
var
  Counts: TCounts;
begin
  Start;
  RecordWithAlarms(20000);
  AssertFalse('goes on', RecordingIsOn);
  Content.LoadFromFile(Path);
  CountEvents(Counts);
end;
{$endif}

initialization
  RegisterTest(TRecordingTests);
end.
