/// Tests of LaneMM.Pause for Linux.
unit Test.Pause;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TPauseTests = class(TLaneTest)
  strict private
    Worker: TWorker;
    Limit: NativeUInt; // of its stack
    procedure NoteStack;
    procedure ExpectItsStack;
    procedure HandleSignals(const Signals: array of LongInt; Handler: Pointer);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure EachPauseVisitsIt;
    procedure MappingsAreReadOnceForAllStacks;
    procedure SignalThatTheProgramHandlesSinceIsLeftToIt;
    procedure ProgramThatHasResetItsHandlersIsPaused;
    procedure StackEndsBeforeAPageThatCannotBeRead;
    procedure StackInABlockEndsWithIt;
    procedure StackInABlockEndsBeforeAPageThatCannotBeRead;
  end;

implementation

uses
  SysUtils, BaseUnix, testregistry, LaneMM.Os, LaneMM.Unwind, LaneMM.Pause;

const
  // That pauses take, in this order.
  FirstSignals: array[0..1] of LongInt = (23, 60);
  NextSignals: array[0..0] of LongInt = (61);

var
  HandledCount: Integer;

procedure TPauseTests.NoteStack;
begin
  Limit := StackEnd(NativeUInt(get_frame));
end;

procedure TPauseTests.SetUp;
begin
  HandledCount := 0;
  Worker := StartIdleThread(NoteStack);
end;

procedure TPauseTests.TearDown;
begin
  EndThread(Worker);
  HandleSignals(FirstSignals, nil);
  HandleSignals(NextSignals, nil);
end;

type
  TSearch = record
    Limit: NativeUInt;
    Count: Integer;
  end;

procedure SeeStack(First, Limit: NativeUInt; Context: Pointer);
var
  Search: ^TSearch;
begin
  Search := Context;
  if (Limit = Search^.Limit) and (First < Limit) then
    Inc(Search^.Count);
end;

procedure TPauseTests.ExpectItsStack;
var
  Search: TSearch;
begin
  Search.Limit := Limit;
  Search.Count := 0;
  PauseOthers;
  PauseVisitStacks(SeeStack, @Search);
  PauseEnd;
  Same(1, Search.Count, 'visits of its stack');
end;

procedure TPauseTests.HandleSignals(const Signals: array of LongInt; Handler: Pointer);
var
  Signal: LongInt;
begin
  for Signal in Signals do
    FpSignal(Signal, SignalHandler(Handler));
end;

procedure TPauseTests.EachPauseVisitsIt;
var
  Turn: Integer;
begin
  for Turn := 1 to 20 do
    ExpectItsStack;
end;

type
  TSecondSearch = record
    Mapping: NativeUInt;
    Stacks, Ends, Mappings: Integer;
  end;

procedure LimitFiles(Current: rlim_t);
var
  Files: TRLimit;
begin
  FpGetRLimit(RLIMIT_NOFILE, @Files);
  Files.rlim_cur := Current;
  FpSetRLimit(RLIMIT_NOFILE, @Files);
end;

// No file can be opened from the first stack on.
procedure SeeStackWithoutFiles(First, Limit: NativeUInt; Context: Pointer);
var
  Search: ^TSecondSearch;
  MappingEnd: NativeUInt;
begin
  LimitFiles(0);
  Search := Context;
  Inc(Search^.Stacks);
  Inc(Search^.Ends, Ord(First < Limit));
  if PauseFindNameless(Search^.Mapping, MappingEnd) and (MappingEnd > Search^.Mapping)
    and not PauseFindNameless(NativeUInt(@LimitFiles), MappingEnd) then
    Inc(Search^.Mappings);
end;

// Else the time of a search grows with the square of the threads: each has mappings of its own.
procedure TPauseTests.MappingsAreReadOnceForAllStacks;
var
  Second: TWorker;
  Files: TRLimit;
  Search: TSecondSearch;
begin
  Second := StartIdleThread(NoteStack);
  Search := Default(TSecondSearch);
  Search.Mapping := NativeUInt(OsReserve(OsGranule));
  AssertTrue('memory', OsCommit(Pointer(Search.Mapping), OsGranule));
  FpGetRLimit(RLIMIT_NOFILE, @Files);
  PauseOthers;
  PauseVisitStacks(SeeStackWithoutFiles, @Search);
  LimitFiles(Files.rlim_cur);
  PauseEnd;
  OsRelease(Pointer(Search.Mapping), OsGranule);
  EndThread(Second);
  AssertTrue('stacks', Search.Stacks >= 2);
  Same(Search.Stacks, Search.Ends, 'stacks with an end');
  Same(Search.Stacks, Search.Mappings, 'mappings found');
end;

procedure Handle(Signal: LongInt); cdecl;
begin
  Inc(HandledCount);
end;

procedure TPauseTests.SignalThatTheProgramHandlesSinceIsLeftToIt;
begin
  ExpectItsStack;
  HandleSignals(FirstSignals, @Handle);
  ExpectItsStack;
  Same(0, HandledCount, 'signals of the program');
end;

// As daemons do. Without a handler signal 60 would end the process.
procedure TPauseTests.ProgramThatHasResetItsHandlersIsPaused;
begin
  FpSignal(FirstSignals[0], @Handle);
  ExpectItsStack;
  HandleSignals(FirstSignals, nil);
  ExpectItsStack;
end;

// As between the stacks of two threads from glibc 2.42 on.
procedure TPauseTests.StackEndsBeforeAPageThatCannotBeRead;
var
  First: PByte;
  Size, Found: NativeUInt;
begin
  Size := 4 * OsGranule;
  First := OsReserve(Size);
  AssertTrue('memory', (First <> nil) and OsCommit(First, Size));
  First[0] := 1;
  AssertTrue('a guard page', OsGuard(First + Size div 2, OsGranule));
  Found := PauseStackEnd(NativeUInt(First) + SizeOf(Pointer));
  OsRelease(First, Size);
  Same(Size div 2, Int64(Found - NativeUInt(First)), 'bytes');
end;

procedure TPauseTests.StackInABlockEndsWithIt;
const
  Size = 100000;
var
  Block: PByte;
begin
  GetMem(Block, Size);
  Same(MemSize(Block), Int64(PauseStackEnd(NativeUInt(Block) + Size div 2) - NativeUInt(Block)), 'bytes');
  FreeMem(Block);
end;

// As one with a guard page at both ends.
procedure TPauseTests.StackInABlockEndsBeforeAPageThatCannotBeRead;
var
  Block: PByte;
  Found: NativeUInt;
begin
  GetMem(Block, 32 * OsGranule);
  AssertTrue('a guard page', OsForbid(Block + 16 * OsGranule, OsGranule));
  Found := PauseStackEnd(NativeUInt(Block) + 8 * OsGranule);
  AssertTrue('open again', OsCommit(Block + 16 * OsGranule, OsGranule));
  Same(16 * OsGranule, Int64(Found - NativeUInt(Block)), 'bytes');
  FreeMem(Block);
end;

initialization
  RegisterTest(TPauseTests);
end.
