/// Tests of LaneMM.Unwind, LaneMM.Pe, LaneMM.Symbols, LaneMM.Elf and LaneMM.CallSites.
unit Test.Unwind;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.Types, LaneMM.Unwind;

type
  TUnwindTests = class(TLaneTest)
  strict private
    Taken: TBacktrace;
    Heaps: array[Boolean] of PHeap;
    EndSeen, EndOfStack: NativeUInt;
    {$if defined(LINUX) and defined(CPUX86_64)}
    procedure TakeInOddFrames;
    {$ifend}
    procedure TakeHere;
    procedure PretendALongStack;
    procedure SeeTheEnd;
    procedure TakeDeep(Depth: Integer);
    procedure TakeBelowMuch;
    procedure TakeInMuchCode(Place: Integer);
    procedure TakeInFinally;
    procedure MisreadAll(const Stack: TBacktrace);
  published
    procedure StackHoldsTheCaller;
    procedure StackIsBounded;
    procedure TextHasAllFramesThatItIsGiven;
    procedure StackIsTheSameAfterManyOthers;
    procedure CallerOfARoutineWithALargeFrameIsFound;
    procedure CallerOfARoutineWithMuchCodeIsFoundFromAnyCallOfIt;
    procedure CallerOfARoutineIsFoundInItsFinallyBlock;
    {$if defined(MSWINDOWS) and defined(CPUX86_64)}
    procedure TableOfTheLinkerHasTheRoutines;
    procedure TableInTheFileHasTheLastRoutines;
    {$ifend}
    procedure MisreadStackHidesNoCallerElsewhere;
    procedure StackCanBeTakenInAThread;
    {$if defined(LINUX) and defined(CPUX86_64)}
    procedure FrameOfTheRoutineBeforeIsNotTakenForTheCallers;
    procedure RegisterThatIsNoFramePointerIsNotFollowed;
    {$ifend}
    procedure ThreadWithAUsedHeapKnowsItsOwnStack;
    procedure StackInABlockEndsWithIt;
    procedure SameStackIsTheSameSite;
    procedure OtherKindIsAnotherSite;
    procedure SitesCountThreads;
    procedure EachOfManyEventsIsLookedAtOnce;
    procedure NamesAreReadable;
    procedure AddressesAreFoundInOrder;
  end;

implementation

uses
  SysUtils, testregistry, LaneMM.Layout, LaneMM.Os, LaneMM.OsProcess, LaneMM.OsFiles,
  LaneMM.Threads, LaneMM.Text, LaneMM.SettingsState, LaneMM.StacksState, LaneMM.BacktraceText,
  LaneMM.Symbols, LaneMM.Dwarf, LaneMM.Pe, LaneMM.CallSites;

procedure TUnwindTests.TakeHere;
begin
  BacktraceTake(Taken);
end;

procedure TUnwindTests.TakeDeep(Depth: Integer);
begin
  if Depth = 0 then
    BacktraceTake(Taken)
  else
    TakeDeep(Depth - 1);
  Inc(Taken.Count, 0); // not the last call: the frame stays
end;

procedure TUnwindTests.StackHoldsTheCaller;
begin
  TakeHere;
  AtLeast(3, Taken.Count, 'frames');
  AssertTrue(Taken.Frames[0] > NativeUInt(@TUnwindTests.TakeHere));
  AssertTrue(Taken.Frames[0] < NativeUInt(@TUnwindTests.TakeHere) + 100);
  AssertTrue(Taken.Frames[1] > NativeUInt(@TUnwindTests.StackHoldsTheCaller));
end;

// A program that formats backtraces itself chooses how many frames they have.
procedure TUnwindTests.TextHasAllFramesThatItIsGiven;
var
  Buffer: array[0..8191] of AnsiChar;
  Text: string;
begin
  TakeDeep(20);
  StacksSetDepth(2);
  try
    SetString(Text, PAnsiChar(@Buffer), FramesToText(@Taken.Frames, 12, @Buffer, SizeOf(Buffer)));
  finally
    StacksSetDepth(DefaultFrames);
  end;
  Same(12, Length(Text.Split([#10])) - 1, 'lines');
  HasNot('cut here', Text);
end;

procedure TUnwindTests.StackIsBounded;
begin
  TakeDeep(1000);
  Same(DefaultFrames + InnerFrames + 1, Taken.Count, 'frames');
  AssertTrue(Taken.Frames[1] = Taken.Frames[DefaultFrames + InnerFrames - 1]);
  AssertTrue('says that it was cut', Taken.Frames[DefaultFrames + InnerFrames] = CutFrame);
end;

// What is kept of a step, and what is searched anew: both give the same stack.
procedure TUnwindTests.StackIsTheSameAfterManyOthers;
const
  // More often than it is kept that the outermost routine has no caller.
  Times = 5000;
var
  First: TBacktrace;
  Time: Integer;
begin
  First := Default(TBacktrace);
  for Time := 1 to Times do
  begin
    TakeHere;
    if Time = 1 then
      First := Taken;
    if Time = Times div 2 then
      FillChar(Stacks.KnownStarts, SizeOf(Stacks.KnownStarts), 0);
    Same(First.Count, Taken.Count, 'frames');
    AssertTrue(CompareByte(First.Frames, Taken.Frames, First.Count * SizeOf(Pointer)) = 0);
  end;
end;

procedure TUnwindTests.TakeBelowMuch;
var
  Much: array[0..99999] of Byte;
begin
  FillChar(Much, SizeOf(Much), 1);
  BacktraceTake(Taken);
  Dec(Taken.Count, Much[Taken.Count] - 1); // needs Much until now
end;

procedure TUnwindTests.CallerOfARoutineWithALargeFrameIsFound;
begin
  TakeBelowMuch;
  AtLeast(3, Taken.Count, 'frames');
  AssertTrue(Taken.Frames[1] > NativeUInt(@TUnwindTests.CallerOfARoutineWithALargeFrameIsFound));
  AssertTrue(Taken.Frames[1]
    < NativeUInt(@TUnwindTests.CallerOfARoutineWithALargeFrameIsFound) + 100);
end;

{$macro on}
{$define Mixed := Sums[Place and 7] := Sums[(Place + 3) and 7] xor Place; Inc(Place);}
{$define Ten := Mixed Mixed Mixed Mixed Mixed Mixed Mixed Mixed Mixed Mixed}
{$define Hundred := Ten Ten Ten Ten Ten Ten Ten Ten Ten Ten}
{$define Thousand := Hundred Hundred Hundred Hundred Hundred Hundred Hundred Hundred Hundred Hundred}

// More than 32 KB of code before the call in the middle, and before the one at the end.
procedure TUnwindTests.TakeInMuchCode(Place: Integer);
var
  Sums: array[0..7] of Integer;
begin
  FillChar(Sums, SizeOf(Sums), Place);
  if Place = 0 then
    BacktraceTake(Taken);
  Thousand Thousand
  if Place = 2001 then
    BacktraceTake(Taken);
  Thousand Thousand
  if Place = 4002 then
    BacktraceTake(Taken);
  if Sums[Place and 7] = -1 then
    Taken.Count := 0;
end;

procedure TUnwindTests.CallerOfARoutineWithMuchCodeIsFoundFromAnyCallOfIt;
var
  Place: Integer;
  First, Last: NativeUInt;
begin
  First := 0;
  Last := 0;
  for Place := 0 to 2 do
  begin
    Taken.Count := 0;
    TakeInMuchCode(Place);
    AtLeast(3, Taken.Count, 'frames');
    if Place = 0 then
      First := Taken.Frames[0];
    Last := Taken.Frames[0];
    AssertTrue('caller', NativeUInt(Taken.Frames[1] - NativeUInt(
      @TUnwindTests.CallerOfARoutineWithMuchCodeIsFoundFromAnyCallOfIt)) < 600);
  end;
  AtLeast(2 * 32768, Last - First, 'bytes of code');
end;

procedure TUnwindTests.TakeInFinally;
begin
  try
    raise EAbort.Create('');
  finally
    TakeHere;
  end;
end;

procedure TUnwindTests.CallerOfARoutineIsFoundInItsFinallyBlock;
var
  Index: Integer;
  IsFound: Boolean;
begin
  IsFound := False;
  try
    TakeInFinally;
  except
    on EAbort do
      for Index := 0 to Taken.Count - 1 do
        IsFound := IsFound or (NativeUInt(Taken.Frames[Index]
          - NativeUInt(@TUnwindTests.CallerOfARoutineIsFoundInItsFinallyBlock)) < 300);
  end;
  AssertTrue(IsFound);
end;

{$if defined(MSWINDOWS) and defined(CPUX86_64)}
procedure TUnwindTests.TableOfTheLinkerHasTheRoutines;
var
  Rule: TUnwindRule;
begin
  AssertTrue('found', RoutineRule(NativeUInt(@TUnwindTests.TakeBelowMuch) + 1, Rule));
  AssertTrue('its start', Rule.Start = NativeUInt(@TUnwindTests.TakeBelowMuch));
  AtLeast(100000, Rule.Size, 'bytes of its frame');
  AssertFalse('before the first one', RoutineRule(Stacks.Module + 1, Rule));
  AssertFalse('behind the last one', RoutineRule(High(NativeUInt), Rule));
end;

procedure TUnwindTests.TableInTheFileHasTheLastRoutines;
var
  Path: TPath;
  Image: PByte;
  Table: TDwarfSection;
  Size: NativeUInt;
  Index: Integer;
  Pe: TPeFile;
begin
  OsProgramPath(@Path, SizeOf(Path));
  Image := OsFileMap(@Path, Size);
  AssertTrue('the program', PeOpen(Pe, Image, Size, Stacks.Module));
  Table := PeFindSection(Pe, '.pdata');
  AssertTrue('the section', Table.Start <> nil);
  for Index := 0 to Stacks.RoutinesSize div SizeOf(TRoutine) - 1 do
    AssertTrue(Format('routine %d', [Index]), RoutineAt(PRoutine(Table.Start), Table.Size,
      PRoutine(Table.Start)[Index].First) = PRoutine(Table.Start) + Index);
  OsFileUnmap(Image, Size);
end;
{$ifend}

// Looks for the callers of a backtrace's frames where the stack has nothing else.
procedure TUnwindTests.MisreadAll(const Stack: TBacktrace);
var
  Nothing: array[0..511] of NativeUInt;
  Walk: TUnwind;
  Rule: TUnwindRule;
  Index: Integer;
begin
  FillChar(Nothing, SizeOf(Nothing), 0);
  FillChar(Stacks.KnownStarts, SizeOf(Stacks.KnownStarts), 0);
  for Index := 0 to Stack.Count - 1 do
  begin
    Walk := Default(TUnwind);
    Walk.Pc := Stack.Frames[Index];
    Walk.Sp := NativeUInt(@Nothing);
    Walk.Limit := NativeUInt(@Nothing) + SizeOf(Nothing);
    AssertFalse('has no caller', UnwindStep(Walk, Rule));
  end;
end;

procedure TUnwindTests.MisreadStackHidesNoCallerElsewhere;
var
  First: TBacktrace;
  IsSecond: Boolean;
  Index: Integer;
begin
  First := Default(TBacktrace);
  IsSecond := True;
  repeat
    IsSecond := not IsSecond;
    TakeHere;
    if not IsSecond then
    begin
      First := Taken;
      MisreadAll(First);
    end;
  until IsSecond;
  Same(First.Count, Taken.Count, 'frames');
  for Index := 0 to Taken.Count - 1 do
    AssertTrue('frame', First.Frames[Index] = Taken.Frames[Index]);
end;

procedure TUnwindTests.StackCanBeTakenInAThread;
begin
  InThread(TakeHere);
  AtLeast(2, Taken.Count, 'frames');
  AssertTrue(Taken.Frames[0] > NativeUInt(@TUnwindTests.TakeHere));
end;

{$if defined(LINUX) and defined(CPUX86_64)}
{$asmmode intel}
// Calls a method with anything in the register of frame pointers, as what starts a thread has there in
// glibc 2.41.
procedure CallWithFrame(Frame: NativeUInt; Code, Instance: Pointer); assembler; nostackframe;
asm
  push rbp
  mov rbp, rdi
  mov rdi, rdx
  call rsi
  pop rbp
end;

// Routines with frames of 24 and of 72 bytes, each calls a method.
procedure SmallFrame(Code, Instance: Pointer); assembler; nostackframe;
asm
  lea rsp, [rsp - 24]
  mov rax, rdi
  mov rdi, rsi
  call rax
  lea rsp, [rsp + 24]
end;

procedure LargeFrame(Code, Instance: Pointer); assembler; nostackframe;
asm
  lea rsp, [rsp - 72]
  mov rax, rdi
  mov rdi, rsi
  call rax
  lea rsp, [rsp + 72]
end;

// Of the routine that lies behind the other one in memory nothing is on the stack, but a call of
// the one before.
procedure TUnwindTests.FrameOfTheRoutineBeforeIsNotTakenForTheCallers;
var
  Words: array[0..63] of NativeUInt;
  Walk: TUnwind;
  Rule: TUnwindRule;
  CallOfSmall: NativeUInt;
begin
  AssertTrue('order', NativeUInt(@SmallFrame) < NativeUInt(@LargeFrame));
  SmallFrame(@TUnwindTests.TakeHere, Self);
  CallOfSmall := Taken.Frames[2];
  LargeFrame(@TUnwindTests.TakeHere, Self);
  AssertTrue('in LargeFrame', NativeUInt(Taken.Frames[1] - NativeUInt(@LargeFrame)) < 64);
  FillChar(Words, SizeOf(Words), 0);
  Words[24 div SizeOf(Pointer)] := CallOfSmall;
  FillChar(Stacks.KnownStarts, SizeOf(Stacks.KnownStarts), 0);
  Walk := Default(TUnwind);
  Walk.Pc := Taken.Frames[1];
  Walk.Sp := NativeUInt(@Words);
  Walk.Limit := NativeUInt(@Words) + SizeOf(Words);
  AssertFalse('has no caller', UnwindStep(Walk, Rule));
end;

procedure TUnwindTests.TakeInOddFrames;
var
  Limit, Frame: NativeUInt;
begin
  Limit := StackEnd(NativeUInt(@Limit));
  for Frame in TArray<NativeUInt>.Create(NativeUInt(-192), NativeUInt(-8), 0, 3, 8, NativeUInt(1) shl 40,
    NativeUInt(@Limit) - 4096, NativeUInt(@Limit) + 1, Limit - 16, Limit - 8, Limit) do
  begin
    CallWithFrame(Frame, @TUnwindTests.TakeHere, Self);
    AtLeast(1, Taken.Count, 'frames');
  end;
end;

procedure TUnwindTests.RegisterThatIsNoFramePointerIsNotFollowed;
begin
  TakeInOddFrames;
  InThread(TakeInOddFrames);
end;
{$ifend}

// A thread whose stack is all that there is.
procedure TUnwindTests.PretendALongStack;
begin
  Heaps[False] := ThreadHeap;
  ThreadHeap^.Notes.StackFirst := OsPageSize;
  ThreadHeap^.Notes.StackLimit := High(NativeUInt);
end;

procedure TUnwindTests.SeeTheEnd;
var
  First: NativeUInt;
begin
  Heaps[True] := ThreadHeap;
  EndSeen := StackEnd(NativeUInt(@First));
  OsFindStack(NativeUInt(@First), First, EndOfStack);
end;

// The record of an ended thread is used again, by one whose stack may be shorter. It may not be the
// next one: if a sweep had the heap when the thread ended, or where threads in turn have their heaps
// in several stacks. So more threads follow each than there are stacks, and all of it is repeated.
procedure TUnwindTests.ThreadWithAUsedHeapKnowsItsOwnStack;
const
  MostRounds = 100;
var
  Round, Left: Integer;
begin
  Round := 0;
  repeat
    InThread(PretendALongStack);
    Left := VacantStacks + 1;
    repeat
      InThread(SeeTheEnd);
      Dec(Left);
    until (Heaps[False] = Heaps[True]) or (Left = 0);
    Inc(Round);
  until (Heaps[False] = Heaps[True]) or (Round = MostRounds);
  AssertTrue('the record is used again', Heaps[False] = Heaps[True]);
  AssertTrue('end of the stack', EndSeen = EndOfStack);
end;

procedure TUnwindTests.StackInABlockEndsWithIt;
const
  Size = 100000;
var
  Block: PByte;
begin
  GetMem(Block, Size);
  Same(MemSize(Block), Int64(StackEnd(NativeUInt(Block) + Size div 2) - NativeUInt(Block)),
    'bytes');
  FreeMem(Block);
end;

procedure TUnwindTests.SameStackIsTheSameSite;
begin
  AssertTrue(SitesStart);
  TakeHere;
  AssertTrue(SiteFind(siGrowth, 3, Taken) = SiteFind(siGrowth, 3, Taken));
end;

procedure TUnwindTests.OtherKindIsAnotherSite;
begin
  AssertTrue(SitesStart);
  TakeHere;
  AssertTrue(SiteFind(siGrowth, 3, Taken) <> SiteFind(siRemoteFree, 3, Taken));
  AssertTrue(SiteFind(siGrowth, 3, Taken) <> SiteFind(siGrowth, 4, Taken));
end;

procedure TUnwindTests.SitesCountThreads;
var
  Site: PSite;
begin
  AssertTrue(SitesStart);
  TakeHere;
  Site := SiteFind(siShardMiss, 77, Taken);
  SiteAddEvents(Site, 2);
  SiteAddEvents(Site, 1);
  Same(3, Site^.Count, 'events');
  Same(1, SiteThreadCount(Site), 'threads');
end;

procedure TUnwindTests.EachOfManyEventsIsLookedAtOnce;
var
  Events: TAtomicWord;
  Sum: NativeUInt;
  Index: Integer;
begin
  Events := 0;
  Sum := 0;
  for Index := 1 to 1 shl 20 do
    Inc(Sum, SampleWeight(Events));
  Same(1 shl 20, Sum, 'sum of the weights');
end;

function NameOf(const Routine: AnsiString): string;
var
  Symbol: TSymbol;
  Text: TText;
begin
  Symbol := Default(TSymbol);
  Symbol.Routine := PAnsiChar(Routine);
  TextOpen(Text, 4096);
  SymbolAddRoutine(Text, @Symbol);
  SetString(Result, Text.Start, Text.Length);
  TextClose(Text);
end;

procedure TUnwindTests.NamesAreReadable;
begin
  AssertEquals('SYSTEM.GETMEM', NameOf('SYSTEM_$$_GETMEM$POINTER$QWORD'));
  AssertEquals('CLASSES.TLIST.ADD', NameOf('CLASSES$_$TLIST_$__$$_ADD$POINTER$$LONGINT'));
  AssertEquals('DEMO.RUN', NameOf('P$DEMO_$$_RUN$LONGINT'));
  AssertEquals('fpc_getmem', NameOf('fpc_getmem'));
end;

procedure TUnwindTests.AddressesAreFoundInOrder;
var
  Symbols: TSymbols;
  Index: Integer;
begin
  SymbolsOpen(Symbols, 1000);
  for Index := 999 downto 0 do
    SymbolsAdd(Symbols, (Index div 2) * 10 + 1);
  SymbolsSort(Symbols);
  Same(500, Symbols.Count, 'addresses');
  for Index := 0 to 499 do
    Same(Index, SymbolsFind(Symbols, Index * 10 + 1) - Symbols.Items, 'place');
  AssertTrue(SymbolsFind(Symbols, 12) = nil);
  SymbolsClose(Symbols);
end;

initialization
  RegisterTest(TUnwindTests);
end.
