/// Tests of LaneMM.Leaks and the units below it, with a program that leaks on request.
unit Test.Leaks;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TLeaksTests = class(TLaneTest)
  strict private
    procedure Has(const Part: string);
    procedure HasNot(const Part: string);
    procedure ReportsNothing(const What, How: string; ExitCode: Integer);
    procedure Reports(const What, How: string);
    procedure CountsByPlace(const Words: string; Size: Integer);
    function PlaceOf(const Mark, Text: string): Integer;
  published
    procedure ReportSaysHowManyBacktracesHadNoSpace;
    procedure LeaksOfOneLineAreOnePlaceWithATreeOfItsCallers;
    procedure HiddenRoutinesAreLeftOutInsideTheirCallers;
    procedure NothingIsReportedWithoutTheSetting;
    procedure ProgramWithoutLeaksReportsNothing;
    procedure ProgramWithoutLeaksSaysSo;
    procedure ProgramWithoutErrorsSaysSo;
    procedure ProgramWithFindingsSaysNothingElse;
    procedure ProgramThatSetsLeaksItselfSaysNothing;
    procedure CleanProgramIsSilentByAWord;
    procedure WhatARoutineUsedThatWasHaltedIsNoLeak;
    procedure AnUnhandledExceptionIsNoLeak;
    procedure WhatARunningThreadUsesIsNoLeak;
    procedure LeaksAreFoundBesideRunningThreads;
    procedure LeaksAreFoundAfterHalt;
    procedure LeaksAreFoundAfterAnException;
    procedure ObjectsAreCountedByClass;
    procedure StringsAreShownWithTheirFirstCharacters;
    procedure BytesOfALeakAreShownOnRequest;
    procedure ArraysAreCounted;
    procedure BlocksOfKnownContentsAreOneGroupOfAnySize;
    procedure UnknownBlocksAreCountedBySize;
    procedure LargeBlocksAreCounted;
    procedure LostBlockOfNoBytesIsALeakInDebugModeToo;
    procedure LineOfBlocksOfManySizesIsOneRow;
    procedure BlocksBeyondTheLastGroupAreNotNamedByASize;
    {$if defined(LINUX) and defined(CPUX64)}
    procedure PagesThatWereNeverTouchedAreNotRead;
    procedure TouchedPagesAreFoundBetweenOthers;
    {$ifend}
    procedure OwnersAreNamedWithWhatTheyHold;
    procedure ItemsThatAContainerNoLongerCountsAreStale;
    procedure WhatPackedRecordsHoldIsRetainedByThem;
    procedure RetainedSizeOfAGroupCountsNoBlockTwice;
    procedure ItemsOfAClassWithTheNameOfAListCount;
    procedure CyclesOfInterfacesAreNamed;
    procedure CyclesOfObjectsAreNamed;
    procedure CyclesOfDataHaveAllTheirLinks;
    procedure ChainOfOneClassIsNoHolder;
    procedure BlocksFreedByAnotherThreadAreNoLeaks;
    procedure ExitCodeIsSetOnLeaksOnly;
    procedure ExitCodeOfTheProgramStays;
    procedure ExitCodeInAReportIsThatOfTheSystem;
    procedure ReportGoesToTheLogToo;
    procedure OptimisedProgramReportsTheSame;
    procedure TopLimitsTheGroups;
    procedure ExpectedLeaksAreNotCounted;
    procedure TextOfASuppressedStringIsNotShown;
    procedure FileNamesExpectedClasses;
    procedure ByteOrderMarkOfTheFileIsSkipped;
    procedure FileNamesExpectedRoutines;
    procedure FileThatCannotBeReadIsNamed;
    procedure LinesOfTheFileThatAreNoPatternsAreNamed;
    procedure FileBesideTheProgramIsRead;
    procedure WhatGrewBetweenSnapshotsIsReported;
    procedure WhatIsInUseIsReportedOnDemand;
    procedure ProgramItselfCanWishForTheReport;
    procedure StackIsShownInDebugMode;
    procedure LeaksOfOneKindAreCountedByPlace;
    procedure StacksAloneGiveThePlacesOfLeaks;
    procedure CallsInOneLineAreOnePlace;
    procedure CallOfALibraryInTheLineIsNoFork;
    procedure BlocksWithoutABacktraceAreSaidToBeSo;
    procedure RetainersThatAreNotNamedAreCounted;
    procedure StacksBeginAndEndInTheProgram;
    procedure JsonHasAllPlaces;
    procedure JunitHasThreePlaces;
    procedure PageHoldsTheReportAndTheTreeOfRetainers;
    procedure GrowthIsCountedByPlace;
    procedure GrowthAtOnePlaceIsNoMoreThanThatOfAll;
    procedure BlocksBeyondTheLastGroupAreNoGrowth;
    procedure WithoutStacksTheReportTellsHowToGetThem;
    procedure WithDebugModeTheReportAdvisesNoStacks;
    procedure WhatNothingRetainsComesFirst;
    procedure JsonIsReadByAParser;
    procedure JunitIsReadByAParser;
    procedure JunitWithoutLeaksPasses;
    procedure HeaptrcHasEachBlock;
    procedure HeaptrcHasStacksInDebugMode;
    procedure CommonUnitsLeaveNothing;
  end;

implementation

uses
  {$if defined(LINUX) and defined(CPUX64)} LaneMM.Retainers, LaneMM.Os, LaneMM.OsProcess, {$ifend}
  SysUtils, Classes, fpjson, jsonparser, DOM, XMLRead, testregistry, Test.Programs, LaneMM.Text,
  LaneMM.RtlRecords, LaneMM.Snapshot, LaneMM.LeakList;

type
  // Bytes of the objects and texts that the program leaks.
  TSizes = record
    Foo, FooBlock: Integer;  // TFoo, and the block that it takes
    Root: Integer;           // TObject
    Link: Integer;           // the block of an object with one field
    Pair: Integer;           // the blocks of a cycle of interfaces
    WideText: Integer;       // the block of the text of UTF-16
    Form: Integer;           // what TForm1 retains, and TForm1
    HaltedCycles: Integer;   // of three cycles, those that nothing refers to after Halt, at least
  end;

const
  // Of programs with 32 and 64 bits. From Free Pascal 3.3 on each object has a monitor, and the header
  // of a string is shorter; there the stack may still hold one cycle, which is no leak.
  AllSizes: array[Boolean] of TSizes = (
    (Foo: 12; FooBlock: 16; Root: 4; Link: 16; Pair: 64; WideText: 32; Form: 257584;
      HaltedCycles: 3),
    {$if FPC_FULLVERSION < 30300}
    (Foo: 24; FooBlock: 32; Root: 8; Link: 16; Pair: 96; WideText: 48; Form: 482384;
      HaltedCycles: 3));
    {$else}
    (Foo: 32; FooBlock: 32; Root: 16; Link: 32; Pair: 96; WideText: 32; Form: 482416;
      HaltedCycles: 2));
    {$endif}
  RootBlock = 16;
  ArrayLength = 4000;

const
  LogSuffix = 'EventLog.txt';

var
  Debugged, Optimised: TTestProgram;

function Sizes: TSizes;
begin
  Result := AllSizes[WordSize = 8];
end;

function Leaking: TTestProgram;
begin
  if Debugged = nil then
    Debugged := TTestProgram.Create('Leaking', '-O1 -gl -Xs-');
  Result := Debugged;
end;

procedure TLeaksTests.Has(const Part: string);
begin
  inherited Has(Part, Leaking.Errors);
end;

procedure TLeaksTests.HasNot(const Part: string);
begin
  inherited HasNot(Part, Leaking.Errors);
end;

procedure TLeaksTests.Reports(const What, How: string);
begin
  Leaking.Run('leaks', [What, How]);
end;

procedure TLeaksTests.ReportsNothing(const What, How: string; ExitCode: Integer);
begin
  Leaking.Run('leaks,leaks:exit=9', [What, How]);
  Leaking.EndedWith(ExitCode);
  Same(0, Pos('Memory leaks', Leaking.Errors), Leaking.Errors);
  AssertEquals('log', '', Leaking.Written(LogSuffix));
end;

procedure TLeaksTests.NothingIsReportedWithoutTheSetting;
begin
  Leaking.Run('', ['objects']);
  Leaking.EndedWith(0);
  AssertEquals('', Leaking.Errors);
  AssertEquals('', Leaking.Written(LogSuffix));
end;

procedure TLeaksTests.ProgramWithoutLeaksReportsNothing;
begin
  ReportsNothing('none', '', 0);
  AssertEquals('', Leaking.Errors);
end;

procedure TLeaksTests.ProgramWithoutLeaksSaysSo;
begin
  Leaking.Run('leaks,quiet=0', ['none']);
  AssertTrue(Leaking.Errors, Pos('LaneMM: no leaks; at most ', Leaking.Errors) = 1);
  Same(1, Length(Leaking.Errors.Split([#10])) - 1, 'lines');
  Leaking.Run('leaks,stacks,quiet=0', ['none']);
  AssertTrue(Leaking.Errors, Pos('LaneMM: no leaks in ', Leaking.Errors) = 1);
  AssertEquals('', Leaking.Written(LogSuffix));
end;

procedure TLeaksTests.ProgramWithoutErrorsSaysSo;
begin
  Leaking.Run('debug,quiet=0', ['none']);
  AssertTrue(Leaking.Errors, Pos('LaneMM: no memory errors in ', Leaking.Errors) = 1);
  Has('; LANEMM=debug,guard=pages also finds reads of freed ones'#10);
  Leaking.Run('debug,guard=pages,quiet=0', ['none']);
  AssertTrue(Leaking.Errors, Pos('LaneMM: no memory errors in ', Leaking.Errors) = 1);
  HasNot('guard=pages');
  Leaking.Run('debug,leaks,quiet=0', ['none']);
  AssertTrue(Leaking.Errors, Pos('LaneMM: no leaks and no memory errors in ', Leaking.Errors) = 1);
end;

procedure TLeaksTests.ProgramWithFindingsSaysNothingElse;
begin
  Leaking.Run('debug,leaks,quiet=0', ['objects']);
  HasNot('LaneMM: no ');
  Leaking.Run('leaks,quiet=0,event=leaks:file', ['none']);
  AssertEquals('', Leaking.Errors);
end;

procedure TLeaksTests.ProgramThatSetsLeaksItselfSaysNothing;
begin
  Leaking.Run('', ['clean-wish']);
  AssertEquals('', Leaking.Errors);
end;

procedure TLeaksTests.CleanProgramIsSilentByAWord;
begin
  Leaking.RunInShell('', 'LANEMM=leaks,debug,quiet "$P" none');
  AssertEquals('', Leaking.Errors);
  Leaking.RunInShell('', 'LANEMM=leaks,debug "$P" none');
  AssertTrue(Leaking.Errors, Pos('LaneMM: no leaks and', Leaking.Errors) = 1);
end;

procedure TLeaksTests.WhatARoutineUsedThatWasHaltedIsNoLeak;
begin
  ReportsNothing('none', 'halt', 3);
end;

procedure TLeaksTests.AnUnhandledExceptionIsNoLeak;
begin
  ReportsNothing('none', 'exception', 217);
end;

procedure TLeaksTests.WhatARunningThreadUsesIsNoLeak;
var
  Round: Integer;
begin
  for Round := 1 to 10 do
    ReportsNothing('none', 'thread', 0);
end;

procedure TLeaksTests.LeaksAreFoundBesideRunningThreads;
begin
  Reports('objects', 'thread');
  Has(Format('12 x Leaking.TFoo, %d bytes', [12 * Sizes.FooBlock]));
  HasNot('TResident');
  HasNot('TStringList');
end;

procedure TLeaksTests.LeaksAreFoundAfterHalt;

  function Title(Cycles: Integer): string;
  begin
    Result := Format('Memory leaks: %d blocks, %d bytes:', [2 * Cycles, Sizes.Pair * Cycles]);
  end;

var
  Count: Integer;
begin
  Reports('cycle', 'halt');
  Leaking.EndedWith(3);
  Count := 3;
  while (Count > Sizes.HaltedCycles) and (Pos(Title(Count), Leaking.Errors) = 0) do
    Dec(Count);
  Has(Title(Count));
end;

procedure TLeaksTests.LeaksAreFoundAfterAnException;
begin
  Reports('unknown', 'exception');
  Leaking.EndedWith(217);
  Has('10 x 112-byte block, 1,120 bytes');
  HasNot('Exception,');
end;

procedure TLeaksTests.ObjectsAreCountedByClass;
begin
  Reports('objects', '');
  Has(Format('Memory leaks: 14 blocks, %d bytes:', [12 * Sizes.FooBlock + 2 * RootBlock]));
  Has(Format('12 x Leaking.TFoo, %d bytes', [12 * Sizes.FooBlock]));
  Has('2 x System.TObject, 32 bytes');
end;

procedure TLeaksTests.StringsAreShownWithTheirFirstCharacters;
begin
  Reports('texts', '');
  Has(Format('Memory leaks: 6 blocks, %d bytes:', [160 + Sizes.WideText]));
  Has('5 x AnsiString, 160 bytes');
  Has('"Item 0", "Item 1", "Item 2", ...');
  Has(Format('1 x UnicodeString, %d bytes', [Sizes.WideText]));
  Has('"Wide 7"');
end;

// A string's length and its characters are in one line.
procedure TLeaksTests.BytesOfALeakAreShownOnRequest;
const
  // In lines of sixteen bytes, of programs with 32 and 64 bits: the end of the string's header, and
  // its characters.
  Lines: array[Boolean] of string = ('  ............Item',
    {$if FPC_FULLVERSION < 30300} '  ........Item 0' {$else} '  Item 0.' {$endif});
var
  Line: string;
begin
  Line := Lines[WordSize = 8];
  Leaking.Run('leaks,stacks,leaks:dump=40', ['texts']);
  Has(Line);
  Leaking.Run('leaks,stacks', ['texts']);
  HasNot(Line);
  Leaking.Run('leaks,stacks,leaks:dump=40,dump=0', ['texts']);
  Has('5 x AnsiString');
  HasNot('Item 0');
end;

procedure TLeaksTests.ArraysAreCounted;
begin
  Reports('arrays', '');
  Has('Memory leaks: 3 blocks, 12,288 bytes:');
  Has('3 x dynamic array, 12,288 bytes');
end;

procedure TLeaksTests.BlocksOfKnownContentsAreOneGroupOfAnySize;
begin
  Reports('array-sizes', '');
  Has('3 x dynamic array, ');
end;

procedure TLeaksTests.UnknownBlocksAreCountedBySize;
begin
  Reports('unknown', '');
  Has('Memory leaks: 10 blocks, 1,120 bytes:');
  Has('10 x 112-byte block, 1,120 bytes');
end;

procedure TLeaksTests.LargeBlocksAreCounted;
begin
  Reports('large', '');
  Has('1 x 3,002,368-byte block, 3,002,368 bytes');
  Has('1 x 102,400-byte block, 102,400 bytes');
end;

procedure TLeaksTests.LostBlockOfNoBytesIsALeakInDebugModeToo;
begin
  Reports('empty', '');
  Has('Memory leaks: 3 blocks, 240 bytes:');
  Has('2 x 16-byte block, 32 bytes'#10'      1 retained by 208-byte block');
  Has('Suppressed, not counted: 1 block, 16 bytes');
  Leaking.Run('leaks,debug', ['empty']);
  Has('Memory leaks: 3 blocks, 208 bytes:');
  Has('1 x 0-byte block, 0 bytes'#10'      1 retained by 208-byte block'#10);
  Has('1, 0 bytes allocated, the first as allocation number ');
  Has('Suppressed, not counted: 1 block, 0 bytes');
  Leaking.Run('debug', ['grow-empty']);
  Has('Memory growth between the snapshots: 7 blocks, 0 bytes:');
  Has('7, 0 bytes allocated, the first as allocation number ');
end;

procedure TLeaksTests.LineOfBlocksOfManySizesIsOneRow;
begin
  Leaking.Run('leaks,debug', ['sizes']);
  Has('Memory leaks: 8,500 blocks, ');
  Has('  8,500 x block of 1 to 8,500 bytes, ');
  Has('8,500, 36,129,250 bytes allocated, ');
  HasNot(' of other kinds');
  Leaking.Run('leaks,debug,leaks:format=json', ['sizes']);
  inherited Has('"name":"block of 1 to 8,500 bytes","blocks":8500,', Leaking.Written('.json'));
end;

procedure TLeaksTests.BlocksBeyondTheLastGroupAreNotNamedByASize;
var
  Snapshot: TSnapshot;
  List: TLeakList;
  Text: TText;
  Name: array[0..63] of AnsiChar;
begin
  AssertTrue('opened', SnapshotOpen(Snapshot));
  Snapshot.GroupCount := GroupLimit;
  SnapshotGroup(Snapshot);
  SnapshotDescribe(Snapshot);
  LeakListOpenGroups(List, Snapshot, ltInUse);
  Same(1, List.Count, 'groups');
  TextOpenAt(Text, @Name, SizeOf(Name));
  LeakAddName(Text, List, LeakGroup(List, 0));
  AssertEquals('block of another kind', string(Name));
  LeakListClose(List);
  SnapshotClose(Snapshot);
end;

{$if defined(LINUX) and defined(CPUX64)}
// Returns the KB of the process's page tables.
function PageTables: Integer;
begin
  with TStringList.Create do
    try
      LoadFromFile('/proc/self/status');
      NameValueSeparator := ':';
      Result := StrToInt(Trim(StringReplace(Values['VmPTE'], 'kB', '', [])));
    finally
      Free;
    end;
end;

// 256 MB, of which one page is touched, need 512 KB of tables once they are read.
procedure TLeaksTests.PagesThatWereNeverTouchedAreNotRead;
const
  Size = 256 shl 20;
var
  Sparse: PByte;
  Target: Pointer;
  Snapshot: TSnapshot;
  State: TNodeState;
  Before: Integer;
begin
  Sparse := GetMem(Size);
  Target := GetMem(100);
  PPointer(Sparse + 200 shl 20)^ := Target;
  try
    AssertTrue('opened', SnapshotOpen(Snapshot));
    Before := PageTables;
    RetainersMarkWord(Snapshot, NativeUInt(Sparse), nsRunning);
    AtMost(128, PageTables - Before, 'KB of page tables');
    State := Snapshot.Nodes[SnapshotNodeAt(Snapshot, NativeUInt(Target))].State;
    SnapshotClose(Snapshot);
    AssertTrue('what the touched page references', State = nsRunning);
  finally
    FreeMem(Target);
    FreeMem(Sparse);
  end;
end;

// A system that gives huge pages unasked touches others beside.
procedure TLeaksTests.TouchedPagesAreFoundBetweenOthers;
const
  Size = 16 shl 20;
  Touched = 1700 * OsPageSize;
var
  Base, First, Past: PByte;
begin
  Base := OsReserve(Size);
  AssertTrue('reserved', (Base <> nil) and OsCommit(Base, Size));
  Base[Touched] := 1;
  First := Base;
  Past := OsTouched(First, Base + Size);
  AtLeast(Touched - 512 * OsPageSize, First - Base, 'bytes before');
  AtMost(Touched, First - Base, 'bytes before');
  AtLeast(Touched + OsPageSize - 7, Past - Base, 'bytes up to the last word');
  AtMost(Touched + 512 * OsPageSize, Past - Base, 'bytes up to the last word');
  First := Past;
  Past := OsTouched(First, Base + Size);
  AssertTrue('no other', (Past = Base + Size) and (First = Past));
  OsRelease(Base, Size);
end;
{$ifend}

procedure TLeaksTests.OwnersAreNamedWithWhatTheyHold;
begin
  Reports('form', '');
  Has(Format('Memory leaks: 12,004 blocks, %.0n bytes:', [Sizes.Form + 0.0]));
  Has(Format('12,000 x Leaking.TFoo, %d,000 bytes', [12 * Sizes.FooBlock]));
  Has('12,000 retained by Leaking.TForm1 -> Classes.TList -> Classes.TFPList');
  Has(Format('1 x Leaking.TForm1, %d bytes'#10
    + '      retained size: %.0n bytes', [Sizes.Link, Sizes.Form + 0.0]));
end;

procedure TLeaksTests.ItemsThatAContainerNoLongerCountsAreStale;
const
  Containers: array[1..5] of string = ('Leaking.TShelf', 'Classes.TFPList', 'Classes.TStringList',
    'Contnrs.TFPHashList', 'Leaking.TFPGList<Leaking.TFoo>');
  HashList = 4;
var
  Index: Integer;
begin
  Reports('stale', '');
  for Index := 1 to 5 do
    if (Index <> HashList) or HashListHasItems then
      Has(Format('10 x Leaking.TOwner%d, %d bytes'#10
        + '      6 retained by %s'#10
        + '      4 still in a slot that %2:s no longer counts'#10,
        [Index, 10 * Sizes.FooBlock, Containers[Index]]));
end;

procedure TLeaksTests.WhatPackedRecordsHoldIsRetainedByThem;
begin
  Reports('packed', '');
  Has('50 x Leaking.TFoo, ');
  Has('      40 retained by Leaking.TDeck'#10'      10 retained by Leaking.TDeck -> dynamic array'#10);
end;

// Two arrays in the object, ten in one of these; four lists, each an item of the next.
procedure TLeaksTests.RetainedSizeOfAGroupCountsNoBlockTwice;

  procedure Expect(const Plan, Mark: string; Others: Integer);
  var
    Rest, Bytes, Sum: string;
  begin
    Reports(Plan, '');
    Has(Mark);
    Rest := Copy(Leaking.Errors, Pos(Mark, Leaking.Errors) + Length(Mark)).Replace(',', '');
    Bytes := Copy(Rest, 1, Pos(' ', Rest) - 1);
    Sum := IntToStr(StrToInt(Bytes) + Others);
    AssertTrue(Sum + ' in ' + Leaking.Errors, Rest.StartsWith(Bytes + ' bytes'#10'      retained size: '
      + Sum + ' bytes'#10));
  end;

begin
  Expect('packed', '12 x dynamic array, ', 50 * Sizes.FooBlock);
  Expect('nested-lists', Format('4 x %d-byte block, ', [4 * WordSize]), 3 * 4 * WordSize);
end;

procedure TLeaksTests.ItemsOfAClassWithTheNameOfAListCount;
begin
  Reports('own-list', '');
  Has('      1 retained by Leaking.TFPList'#10);
  HasNot('no longer counts');
end;

procedure TLeaksTests.CyclesOfInterfacesAreNamed;
begin
  Reports('cycle', '');
  Has(Format('Memory leaks: 6 blocks, %d bytes:', [3 * Sizes.Pair]));
  Has('retained by the cycle of interfaces Leaking.T');
  Has('Leaking.TParent -> Leaking.TChild');
  Has('Leaking.TChild -> Leaking.TParent');
end;

procedure TLeaksTests.CyclesOfObjectsAreNamed;
begin
  Reports('ring', '');
  Leaking.EndedWith(0);
  Has('2 retained by the cycle Leaking.TFoo');
end;

procedure TLeaksTests.CyclesOfDataHaveAllTheirLinks;
begin
  Reports('data-ring', '');
  AssertTrue(Leaking.Errors, (Pos('1 retained by the cycle '
    + '208-byte block -> 416-byte block -> 208-byte block', Leaking.Errors) > 0)
    or (Pos('1 retained by the cycle 416-byte block -> 208-byte block -> 416-byte block',
    Leaking.Errors) > 0));
end;

procedure TLeaksTests.ChainOfOneClassIsNoHolder;
begin
  Reports('chain', '');
  Has(Format('1,000 x Leaking.TLink, %d,000 bytes', [Sizes.Link]));
  HasNot('retained by');
end;

procedure TLeaksTests.BlocksFreedByAnotherThreadAreNoLeaks;
begin
  Reports('threads', '');
  Has(Format('Memory leaks: 50 blocks, %.0n bytes:', [50.0 * Sizes.FooBlock]));
  Has(Format('50 x Leaking.TFoo, %.0n bytes', [50.0 * Sizes.FooBlock]));
end;

procedure TLeaksTests.ExitCodeIsSetOnLeaksOnly;
begin
  Leaking.Run('leaks,leaks:exit=9', ['objects']);
  Leaking.EndedWith(9, 'exit code with leaks');
  Leaking.Run('leaks,leaks:exit=9', ['none']);
  Leaking.EndedWith(0, 'exit code without leaks');
  Leaking.Run('leaks', ['objects']);
  Leaking.EndedWith(0, 'exit code without the setting');
end;

procedure TLeaksTests.ExitCodeOfTheProgramStays;
begin
  Leaking.Run('leaks,leaks:exit=9', ['objects', 'halt']);
  Leaking.EndedWith(3);
end;

procedure TLeaksTests.ExitCodeInAReportIsThatOfTheSystem;
const
  Windows = High(Cardinal);
  Others = High(Byte);
var
  Root: TJSONData;
  Code: Int64;
begin
  Leaking.Run('leaks,leaks:format=json', ['objects', 'halt-negative']);
  Leaking.EndedWith(Others, 'exit code, under wine too');
  Code := Others;
  if Leaking.NullDevice = 'NUL' then
    Code := Windows;
  Root := GetJSON(Leaking.Written('.json'));
  try
    Same(Code, Root.FindPath('exitCode').AsInt64, 'exit code');
  finally
    Root.Free;
  end;
end;

procedure TLeaksTests.ReportGoesToTheLogToo;
begin
  Reports('objects', '');
  AssertEquals(Leaking.Errors, Leaking.Written(LogSuffix));
  Leaking.Run('leaks,event=leaks:file', ['objects']);
  AssertEquals('', Leaking.Errors);
  AssertTrue(Pos('12 x Leaking.TFoo', Leaking.Written(LogSuffix)) > 0);
end;

procedure TLeaksTests.OptimisedProgramReportsTheSame;
begin
  if Optimised = nil then
    Optimised := TTestProgram.Create('Leaking', '-O4 -Xs');
  Optimised.Run('leaks', ['form']);
  AssertTrue(Optimised.Errors,
    Pos('12,000 retained by Leaking.TForm1 -> Classes.TList -> Classes.TFPList',
      Optimised.Errors) > 0);
end;

procedure TLeaksTests.TopLimitsTheGroups;
begin
  Leaking.Run('leaks,top=1', ['objects']);
  Has('12 x Leaking.TFoo');
  HasNot('TObject');
  Has('and 2 blocks, 32 bytes of other kinds');
end;

procedure TLeaksTests.ExpectedLeaksAreNotCounted;
begin
  Reports('expected', '');
  Has(Format('Memory leaks: 5 blocks, %d bytes:', [2 * Sizes.FooBlock + 336]));
  Has(Format('2 x Leaking.TFoo, %d bytes', [2 * Sizes.FooBlock]));
  Has('3 x 112-byte block, 336 bytes');
  Has(Format('Suppressed, not counted: 20 blocks, %.0n bytes',
    [10.0 * Sizes.FooBlock + 2 * RootBlock + 7 * 112 + Sizes.WideText]));
  HasNot('TObject');
  HasNot('Item 4711');
end;

procedure TLeaksTests.TextOfASuppressedStringIsNotShown;
begin
  Leaking.Run('leaks,stacks,leaks:dump=64', ['secret']);
  Has('1 x AnsiString, ');
  Has('"Public 4711"'#10);
  Has('50 75 62 6c'); // the same in the dump
  Has('Suppressed, not counted: 1 block, ');
  HasNot('Secr');
end;

// Writes Lines to a file and returns its name.
function FileWith(const Name, Lines: string): string;
var
  Output: TextFile;
begin
  Result := Leaking.Folder + Name;
  AssignFile(Output, Result);
  Rewrite(Output);
  Write(Output, Lines);
  CloseFile(Output);
end;

procedure TLeaksTests.FileNamesExpectedClasses;
begin
  Leaking.Run('leaks,leaks:exit=9,leaks:ignore=' + FileWith('ignore', '# known'#10
    + 'class leaking.tf*  # all of them'#10'class System.TObject'#10), ['objects']);
  Leaking.EndedWith(0, 'exit code when all is expected');
  AssertEquals('', Leaking.Errors);
  Leaking.Run('leaks,leaks:ignore=' + FileWith('ignore', 'class TFoo'#10'class *.tobject'),
    ['objects']);
  Has('12 x Leaking.TFoo');
  HasNot('2 x System.TObject');
  Has('Suppressed, not counted: 2 blocks, 32 bytes');
end;

procedure TLeaksTests.ByteOrderMarkOfTheFileIsSkipped;
begin
  Leaking.Run('leaks,leaks:exit=9,leaks:ignore=' + FileWith('ignore', #$EF#$BB#$BF'class *'#13#10),
    ['objects']);
  Leaking.EndedWith(0, 'exit code when all is expected');
end;

procedure TLeaksTests.FileNamesExpectedRoutines;
begin
  Leaking.Run('leaks,debug,leaks:ignore=' + FileWith('ignore', 'routine *.LeakObjects'),
    ['two']);
  Has(Format('Memory leaks: 3 blocks, %.0n bytes:', [3.0 * (ArrayLength + 2 * WordSize)]));
  Has(Format('Suppressed, not counted: 14 blocks, %d bytes', [12 * Sizes.Foo + 2 * Sizes.Root]));
  HasNot('LEAKOBJECTS');
  Has('LEAKARRAYS');
end;

procedure TLeaksTests.FileThatCannotBeReadIsNamed;
var
  Path: string;
begin
  for Path in TStringArray.Create(Leaking.Folder + 'nonexistent', ExcludeTrailingPathDelimiter(Leaking.Folder)) do
  begin
    Leaking.Run('leaks,leaks:ignore=' + Path, ['objects']);
    AssertTrue(Leaking.Errors, Pos('LaneMM: ' + Path + ', the file of `leaks:ignore`, cannot be read'#10,
      Leaking.Errors) = 1);
    Has('12 x Leaking.TFoo');
  end;
  Leaking.Run('leaks,leaks:ignore=' + FileWith('ignore', ''), ['objects']);
  HasNot('cannot be read');
end;

procedure TLeaksTests.LinesOfTheFileThatAreNoPatternsAreNamed;
const
  Wrong = ': neither `class PATTERN` nor `routine PATTERN` of at most 511 characters'#10;
var
  Path: string;
begin
  Path := FileWith('ignore', 'clas l1.TOrder'#10'foo bar'#13#10#10'# class'#10'  '#13#10'class'#10
    + 'class ' + StringOfChar('x', 512) + #10'class *.TFoo'#10'routine # none'#10);
  Leaking.Run('leaks,leaks:ignore=' + Path, ['objects']);
  Path := 'LaneMM: ' + Path + ':';
  AssertTrue(Leaking.Errors, Pos(Path + '1' + Wrong + Path + '2' + Wrong + Path + '6' + Wrong
    + Path + ' 2 more such lines'#10, Leaking.Errors) = 1);
  HasNot('TFoo');
  Has('2 x System.TObject');
  Leaking.Run('leaks,leaks:ignore=' + FileWith('ignore', 'class *'#10'foo'), ['objects']);
  AssertEquals(Path + '2' + Wrong, Leaking.Errors);
end;

procedure TLeaksTests.FileBesideTheProgramIsRead;
begin
  FileWith('Leaking.lanemm-leaks', 'class Leaking.TFoo');
  Reports('objects', '');
  DeleteFile(Leaking.Folder + 'Leaking.lanemm-leaks');
  HasNot('TFoo');
  Has('2 x System.TObject');
end;

procedure TLeaksTests.WhatGrewBetweenSnapshotsIsReported;
begin
  Leaking.Run('', ['snapshots']);
  Leaking.EndedWith(1, 'the difference was right');
  Has(Format('Memory growth between the snapshots: 17 blocks, %.0n bytes:',
    [12288.0 + 12 * Sizes.FooBlock + 2 * RootBlock]));
  Has(Format('12 x Leaking.TFoo, %d bytes', [12 * Sizes.FooBlock]));
  Has('3 x dynamic array, 12,288 bytes');
  HasNot('AnsiString');
  Has('No memory growth between the snapshots.');
end;

procedure TLeaksTests.WhatIsInUseIsReportedOnDemand;
begin
  Leaking.Run('', ['now']);
  Has('Memory in use: ');
  Has(Format('12 x Leaking.TFoo, %d bytes', [12 * Sizes.FooBlock]));
  HasNot('Memory leaks');
end;

procedure TLeaksTests.ProgramItselfCanWishForTheReport;
begin
  Leaking.Run('', ['wish']);
  Has(Format('12 x Leaking.TFoo, %d bytes', [12 * Sizes.FooBlock]));
end;

procedure TLeaksTests.StackIsShownInDebugMode;
begin
  Leaking.Run('leaks,debug', ['objects']);
  Has(Format('12 x Leaking.TFoo, %d bytes', [12 * Sizes.Foo]));
  Has(Format('Leaking.lpr:%d', [Leaking.PlantedLine('leak')]));
end;

// Where the planted line stands in the text; a failure when it is not there.
function TLeaksTests.PlaceOf(const Mark, Text: string): Integer;
begin
  Result := Pos(Format('Leaking.lpr:%d'#10, [Leaking.PlantedLine(Mark)]), Text);
  AssertTrue('planted line ' + Mark + ' in'#10 + Text, Result > 0);
end;

procedure TLeaksTests.LeaksOfOneKindAreCountedByPlace;
begin
  CountsByPlace('leaks,debug', Sizes.Foo);
end;

procedure TLeaksTests.StacksAloneGiveThePlacesOfLeaks;
begin
  CountsByPlace('leaks,stacks', Sizes.Foo);
end;

procedure TLeaksTests.CountsByPlace(const Words: string; Size: Integer);
var
  Text: string;
begin
  Leaking.Run(Words, ['places']);
  Text := Leaking.Errors;
  Has(Format('10,014 x Leaking.TFoo, %.0n bytes', [10014.0 * Size]));
  Has(Format('10,000, %.0n bytes allocated, the first as allocation number ', [10000.0 * Size]));
  Has(Format('10, %d bytes allocated, the first as allocation number ', [10 * Size]));
  Has(Format('3, %d bytes allocated, the first as allocation number ', [3 * Size]));
  Has(Format('and 1 block, %d bytes allocated at other places', [Size]));
  AssertTrue(Text, PlaceOf('most', Text) < PlaceOf('ten', Text));
  AssertTrue(Text, PlaceOf('ten', Text) < PlaceOf('three', Text));
  HasNot(Format('Leaking.lpr:%d'#10, [Leaking.PlantedLine('one')]));
  HasNot('also shows where');
end;

procedure TLeaksTests.CallOfALibraryInTheLineIsNoFork;
begin
  Leaking.Run('leaks,stacks', ['one-line-library']);
  Has('2 x ');
  Has('      2, ');
  HasNot('directly');
  HasNot('other callers');
end;

procedure TLeaksTests.CallsInOneLineAreOnePlace;
var
  Root: TJSONData;
begin
  Leaking.Run('leaks,debug', ['one-line']);
  Has(Format('      3, %d bytes allocated, the first as allocation number ', [3 * Sizes.Foo]));
  PlaceOf('one line', Leaking.Errors);
  Leaking.Run('leaks,debug,leaks:format=json', ['one-line']);
  Root := GetJSON(Leaking.Written('.json'));
  try
    Same(3, Root.FindPath('groups[0].places[0].blocks').AsInteger, 'blocks');
    AssertTrue('backtraces that read the same', Root.FindPath('groups[0].places[0].stacks') = nil);
  finally
    Root.Free;
  end;
end;

procedure TLeaksTests.BlocksWithoutABacktraceAreSaidToBeSo;
begin
  Leaking.Run('leaks', ['before-stacks']);
  Has(Format('      3, %d bytes allocated, the first as allocation number ', [3 * Sizes.Foo]));
  PlaceOf('known', Leaking.Errors);
  Has(Format('      and 5 blocks, %d bytes allocated at places that are not known'#10,
    [5 * Sizes.FooBlock]));
  HasNot('at other places');
end;

procedure TLeaksTests.RetainersThatAreNotNamedAreCounted;
begin
  Leaking.Run('leaks', ['owned']);
  Has('      1 retained by Leaking.TOwner');
  Has('      2 retained by others'#10);
end;

procedure TLeaksTests.StacksBeginAndEndInTheProgram;
var
  Lines: TStringArray;
  First: Integer;
begin
  Leaking.Run('leaks,debug,top=1', ['objects']);
  HasNot('SYSTEM.');
  Lines := Leaking.Errors.Split([#10]);
  First := 0;
  while Pos('allocated, the first', Lines[First]) = 0 do
    Inc(First);
  inherited Has(Format('Leaking.lpr:%d', [Leaking.PlantedLine('leak')]), Lines[First + 1]);
  inherited Has('  main  ', Lines[First + 3]);
  inherited HasNot('Leaking', Lines[First + 4]);
end;

procedure TLeaksTests.JsonHasAllPlaces;
const
  Counts: array[0..3] of Integer = (10000, 10, 3, 1);
var
  Root: TJSONData;
  Places: TJSONArray;
  Index: Integer;
begin
  Leaking.Run('leaks,debug,leaks:format=json', ['places']);
  Root := GetJSON(Leaking.Written('.json'));
  try
    Places := Root.FindPath('groups[0].places') as TJSONArray;
    Same(Length(Counts), Places.Count, 'places');
    for Index := 0 to High(Counts) do
    begin
      Same(Counts[Index], Places.Objects[Index].Integers['blocks'], 'blocks');
      Same(Counts[Index] * Sizes.Foo, Places.Objects[Index].Integers['bytes'], 'bytes');
      AtLeast(2, Places.Objects[Index].Arrays['stack'].Count, 'frames');
    end;
  finally
    Root.Free;
  end;
end;

// The bytes of all entries.
function TreeBytes(Tree: TJSONArray): Integer;
var
  Index: Integer;
begin
  Result := 0;
  for Index := 0 to Tree.Count - 1 do
    Inc(Result, Tree.Objects[Index].Integers['bytes']);
end;

procedure TLeaksTests.PageHoldsTheReportAndTheTreeOfRetainers;
const
  Mark = 'id="data">';
var
  Page: string;
  Root: TJSONData;
begin
  Leaking.Run('leaks,debug,leaks:format=html', ['objects']);
  Page := Leaking.Written('.html');
  AssertTrue(Pos('</html>', Page) > 0);
  Page := Copy(Page, Pos(Mark, Page) + Length(Mark), MaxInt);
  Root := GetJSON(Copy(Page, 1, Pos('</script>', Page) - 1));
  try
    Same(14, Root.FindPath('blocks').AsInteger, 'blocks');
    Same(12 * Sizes.Foo + 2 * Sizes.Root, TreeBytes(TJSONArray(Root.FindPath('retainerTree'))),
      'bytes of the tree');
  finally
    Root.Free;
  end;
end;

procedure TLeaksTests.JunitHasThreePlaces;
var
  Text: string;
begin
  Leaking.Run('leaks,debug,leaks:format=junit', ['places']);
  Text := Leaking.Written('.xml');
  AssertTrue(PlaceOf('most', Text) < PlaceOf('ten', Text));
  AssertTrue(PlaceOf('ten', Text) < PlaceOf('three', Text));
end;

procedure TLeaksTests.GrowthIsCountedByPlace;
begin
  Leaking.Run('debug', ['grow']);
  Has(Format('Memory growth between the snapshots: 7 blocks, %d bytes:', [7 * Sizes.Foo]));
  Has(Format('7, %d bytes allocated, the first as allocation number ', [7 * Sizes.Foo]));
  PlaceOf('growth', Leaking.Errors);
  HasNot(Format('Leaking.lpr:%d'#10, [Leaking.PlantedLine('most')]));
end;

procedure TLeaksTests.GrowthAtOnePlaceIsNoMoreThanThatOfAll;
begin
  Leaking.Run('debug', ['grow-elsewhere']);
  Has(Format('Memory growth between the snapshots: 10 blocks, %d bytes:', [10 * Sizes.Foo]));
  Has(Format('7, %d bytes allocated, the first as allocation number ', [7 * Sizes.Foo]));
  Has(Format('13, %d bytes allocated, the first as allocation number ', [13 * Sizes.Foo]));
  HasNot('at other places');
end;

procedure TLeaksTests.BlocksBeyondTheLastGroupAreNoGrowth;
begin
  Leaking.Run('debug', ['grow-sizes']);
  Has('Memory growth between the snapshots: 1 block, ');
end;

procedure TLeaksTests.WithoutStacksTheReportTellsHowToGetThem;
begin
  Reports('places', '');
  Has('10,014 x Leaking.TFoo');
  Has('LANEMM=leaks,stacks also shows where they were allocated.');
end;

// The leaks are from before debug mode, which the program entered itself.
procedure TLeaksTests.WithDebugModeTheReportAdvisesNoStacks;
begin
  Reports('before-debug', '');
  Has('Leaking.TFoo');
  HasNot('also shows where');
end;

procedure TLeaksTests.WhatNothingRetainsComesFirst;
begin
  Reports('form', '');
  AssertTrue(Leaking.Errors, Pos(Format('1 x Leaking.TForm1, %d bytes', [Sizes.Link]), Leaking.Errors)
    < Pos('12,000 x Leaking.TFoo', Leaking.Errors));
end;

procedure TLeaksTests.JsonIsReadByAParser;
var
  Root: TJSONData;
  Group: TJSONObject;
begin
  Leaking.Run('leaks,leaks:format=json', ['form']);
  Root := GetJSON(Leaking.Written('.json'));
  try
    Same(12004, Root.FindPath('blocks').AsInteger, 'blocks');
    Same(Sizes.Form, Root.FindPath('bytes').AsInteger, 'bytes');
    AssertEquals('Leaking.TForm1', Root.FindPath('groups[0].name').AsString);
    Same(Sizes.Form, Root.FindPath('groups[0].retained').AsInteger, 'retained by the form');
    Group := Root.FindPath('groups[1]') as TJSONObject;
    AssertEquals('Leaking.TFoo', Group.Strings['name']);
    AssertEquals('object', Group.Strings['kind']);
    Same(12000, Group.Integers['blocks'], 'blocks of the group');
    Same(12000 * Sizes.FooBlock, Group.Integers['bytes'], 'bytes of the group');
    Same(12000, Group.FindPath('retainers[0].blocks').AsInteger, 'retained');
    AssertEquals('Leaking.TForm1', Group.FindPath('retainers[0].chain[0]').AsString);
    AssertEquals('Classes.TFPList', Group.FindPath('retainers[0].chain[2]').AsString);
    AssertFalse('cycle', Group.FindPath('retainers[0].cycle').AsBoolean);
  finally
    Root.Free;
  end;
end;

procedure TLeaksTests.JunitIsReadByAParser;
var
  Report: TXMLDocument;
  Stream: TStringStream;
  Suite: TDOMElement;
begin
  Leaking.Run('leaks,debug,leaks:format=junit', ['objects']);
  Stream := TStringStream.Create(Leaking.Written('.xml'));
  try
    ReadXMLFile(Report, Stream);
    Suite := Report.DocumentElement.FirstChild as TDOMElement;
    AssertEquals('2', string(Suite.GetAttribute('failures')));
    Same(2, Suite.ChildNodes.Count, 'test cases');
    AssertEquals('Leaking.TFoo', string((Suite.FirstChild as TDOMElement).GetAttribute('name')));
    AssertEquals(Format('12 blocks, %d bytes leaked', [12 * Sizes.Foo]),
      string((Suite.FirstChild.FirstChild as TDOMElement).GetAttribute('message')));
    AssertTrue('stack', Pos('LEAKOBJECTS', string(Suite.FirstChild.TextContent)) > 0);
    Report.Free;
  finally
    Stream.Free;
  end;
end;

procedure TLeaksTests.JunitWithoutLeaksPasses;
var
  Report: TXMLDocument;
  Stream: TStringStream;
begin
  Leaking.Run('leaks,leaks:format=junit', ['none']);
  Stream := TStringStream.Create(Leaking.Written('.xml'));
  try
    ReadXMLFile(Report, Stream);
    AssertEquals('0', string((Report.DocumentElement.FirstChild as TDOMElement)
      .GetAttribute('failures')));
    AssertEquals('1', string((Report.DocumentElement.FirstChild as TDOMElement)
      .GetAttribute('tests')));
    Report.Free;
  finally
    Stream.Free;
  end;
end;

procedure TLeaksTests.HeaptrcHasEachBlock;
var
  Text: string;
begin
  Leaking.Run('leaks,leaks:format=heaptrc', ['objects']);
  Text := Leaking.Written('.trc');
  Same(1, LinesFrom(Text, 'Heap dump by heaptrc unit of ' + Leaking.ReportedPath), 'head');
  Same(1, LinesFrom(Text, Format('14 unfreed memory blocks : %d',
    [12 * Sizes.FooBlock + 2 * RootBlock])), 'counts');
  Same(14, LinesFrom(Text, 'Call trace for block $'), 'blocks');
end;

procedure TLeaksTests.HeaptrcHasStacksInDebugMode;
var
  Text: string;
begin
  Leaking.Run('leaks,debug,leaks:format=heaptrc', ['objects']);
  Text := Leaking.Written('.trc');
  Same(14, LinesFrom(Text, 'Call trace for block $'), 'blocks');
  AtLeast(28, LinesFrom(Text, '  $'), 'frames');
  AssertTrue(Pos(Format('LEAKING.LEAKOBJECTS,  line %d of Leaking.lpr',
    [Leaking.PlantedLine('leak')]), Text) > 0);
end;

// The units of the compiler's own packages cause no reports and leave no leaks.
procedure TLeaksTests.CommonUnitsLeaveNothing;
const
  AllSettings: array[0..4] of string = ('leaks', 'debug,mixes,leaks', 'debug,check=100,leaks',
    'debug,guard=pages,leaks', 'guard=sample:1K,erase=free,leaks');
var
  Settings: string;
  Users: TTestProgram;
begin
  Users := TTestProgram.Create('CommonUnits', '-O1 -gl -Xs- -FaLaneMM');
  try
    for Settings in AllSettings do
    begin
      Users.Run(Settings, ['all']);
      AssertEquals(Settings, '', Users.Errors);
      Users.EndedWith(0, 'exit code with ' + Settings);
    end;
    Users.Run('leaks', ['leak']);
    AssertTrue('a leak is reported', Pos('1 x Classes.TStringList', Users.Errors) > 0);
  finally
    Users.Free;
  end;
end;

procedure TLeaksTests.HiddenRoutinesAreLeftOutInsideTheirCallers;
var
  Paths: TTestProgram;
begin
  Paths := TTestProgram.Create('ManyPaths', '-O1 -gl -Xs-');
  try
    Paths.Run('leaks,stacks,hide=none,hide=manypaths.w*k', []);
    inherited HasNot('MANYPATHS.WALK', Paths.Errors);
    inherited Has('      64, ', Paths.Errors);
    inherited Has('      32, ', Paths.Errors);
    inherited Has('MANYPATHS.SECOND  ManyPaths.lpr:34', Paths.Errors);
    Paths.Run('leaks,stacks,hide=*walk,hide=0', []);
    inherited Has('MANYPATHS.WALK', Paths.Errors);
  finally
    Paths.Free;
  end;
end;

procedure TLeaksTests.LeaksOfOneLineAreOnePlaceWithATreeOfItsCallers;
var
  Paths: TTestProgram;

  procedure Expect(Count: Integer; const Line: string);
  begin
    AssertEquals(Line + #10 + Paths.Errors, Count, Length(Paths.Errors.Split([Line])) - 1);
  end;

begin
  Paths := TTestProgram.Create('ManyPaths', '-O1 -gl -Xs-');
  try
    Paths.Run('leaks,stacks', []);
    Expect(1, #10'      96, ');
    Expect(1, 'MANYPATHS.WALK  ManyPaths.lpr:16');
    Expect(2, #10'        48, ');
    Expect(2, #10'          16, ');
    Expect(2, #10'          24, ');
    Expect(2, #10'            16, ');
    Expect(4, 'MANYPATHS.FIRST  ManyPaths.lpr:28');
    Expect(4, 'MANYPATHS.SECOND  ManyPaths.lpr:34');
    Expect(0, 'not known');
  finally
    Paths.Free;
  end;
end;

procedure TLeaksTests.ReportSaysHowManyBacktracesHadNoSpace;
var
  Full: TTestProgram;
begin
  Full := TTestProgram.Create('FullTable', '-gl');
  try
    Full.Run('leaks,stacks', []);
    inherited Has('FullTable.lpr:15', Full.Errors);
    inherited Has('13 % of these blocks have no callers: the table of backtraces is full.', Full.Errors);
    inherited HasNot('also shows', Full.Errors);
    Full.Run('debug', ['overrun']);
    inherited Has('(no backtrace was recorded: the table of them is full)', Full.Errors);
  finally
    Full.Free;
  end;
end;

initialization
  RegisterTest(TLeaksTests);
finalization
  Debugged.Free;
  Optimised.Free;
end.
