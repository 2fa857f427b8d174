/// Tests of LaneMM.Leaks and the units below it, with a program that leaks on request.
unit Test.Leaks;

{$mode delphi}{$H+}

interface

uses
  Test.Cases;

type
  TLeaksTests = class(TProgramTest)
  strict protected
    function Number(const Name: string): Int64; override;
    function Value(const Name: string): string; override;
  published
    procedure LeaksAreFoundAfterHalt;
    procedure BlocksBeyondTheLastGroupAreNotNamedByASize;
    procedure BlocksAllocatedDuringTheWalkHavePlaces;
    {$if defined(LINUX) and defined(CPUX64)}
    procedure PagesThatWereNeverTouchedAreNotRead;
    procedure TouchedPagesAreFoundBetweenOthers;
    procedure PageThatTheProgramHasProtectedIsNotRead;
    procedure BlockThatBeginsWithAProtectedPageIsNotRead;
    {$ifend}
    procedure RetainedSizeOfAGroupCountsNoBlockTwice;
    procedure CyclesOfDataHaveAllTheirLinks;
    procedure CyclesOfTheSameClassesAreEnteredAtOne;
    procedure ByteOrderMarkOfTheFileIsSkipped;
    procedure LinesOfTheFileThatAreNoPatternsAreNamed;
    procedure StacksBeginAndEndInTheProgram;
    procedure JunitIsReadByAParser;
    {$ifdef LINUX}
    procedure PageThatNoFolderTakesIsNotOnTheScreen;
    {$endif}
  end;

implementation

uses
  {$if defined(LINUX) and defined(CPUX64)}
  LaneMM, LaneMM.Layout, LaneMM.Retainers, LaneMM.Os, LaneMM.OsProcess,
  {$ifend}
  SysUtils, Classes, DOM, XMLRead, testregistry, Test.Programs, LaneMM.Text,
  LaneMM.RtlRecords, LaneMM.Snapshot, LaneMM.LeakList;

type
  TSize = record
    Name: string;
    Bytes: array[Boolean] of Integer; // in programs with 32 and 64 bits
  end;

const
  // From Free Pascal 3.3 on each object has a monitor, and the header of a string is shorter.
  IsNew = {$if FPC_FULLVERSION >= 30300} True {$else} False {$ifend};
  Sizes: array[0..7] of TSize = (
    (Name: 'Foo'; Bytes: (12, 24 + 8 * Ord(IsNew))),        // an object of TFoo
    (Name: 'FooBlock'; Bytes: (16, 32)),                    // the block that it takes
    (Name: 'Root'; Bytes: (4, 8 + 8 * Ord(IsNew))),         // an object of TObject
    (Name: 'RootBlock'; Bytes: (16, 16)),
    (Name: 'Link'; Bytes: (16, 16 + 16 * Ord(IsNew))),      // the block of an object with one field
    (Name: 'Pair'; Bytes: (64, 96)),                        // the blocks of a cycle of interfaces
    (Name: 'WideText'; Bytes: (32, 48 - 16 * Ord(IsNew))),  // the block of the text of UTF-16
    (Name: 'Form'; Bytes: (257584, 482384 + 32 * Ord(IsNew)))); // what TForm1 retains, and TForm1
  // In lines of sixteen bytes: the end of a string's header, and its characters.
  DumpLines: array[Boolean] of string = ('  ............Item',
    {$if FPC_FULLVERSION < 30300} '  ........Item 0' {$else} '  Item 0.' {$endif});

function Leaking: TTestProgram;
begin
  Result := TestProgram('Leaking');
end;

function TLeaksTests.Number(const Name: string): Int64;
var
  Size: TSize;
begin
  for Size in Sizes do
    if Size.Name = Name then
      Exit(Size.Bytes[WordSize = 8]);
  if Name = 'hashlists' then
    Result := Ord(HashListHasItems)
  else
    Result := inherited Number(Name);
end;

function TLeaksTests.Value(const Name: string): string;
begin
  if Name = 'dump' then
    Result := DumpLines[WordSize = 8]
  else
    Result := inherited Value(Name);
end;

procedure TLeaksTests.LeaksAreFoundAfterHalt;

  function Title(Cycles: Integer): string;
  begin
    Result := Format('Memory leaks: %d blocks, %d bytes:', [2 * Cycles, Number('Pair') * Cycles]);
  end;

begin
  Leaking.Run('leaks', ['cycle', 'halt']);
  Leaking.EndedWith(3);
  if not IsNew or (Pos(Title(3), Leaking.Errors) > 0) then
    Has(Title(3), Leaking.Errors)
  else
    Has(Title(2), Leaking.Errors); // the stack may still hold one cycle, which is no leak
end;

// A quarter of those before it: threads allocate a million in the second that a walk over ten takes.
procedure TLeaksTests.BlocksAllocatedDuringTheWalkHavePlaces;
var
  Blocks: array[0..99999] of Pointer;
  Index: Integer;
  Snapshot: TSnapshot;
begin
  for Index := 0 to High(Blocks) do
    Blocks[Index] := GetMem(16);
  AssertTrue('opened', SnapshotOpen(Snapshot));
  AtLeast(Snapshot.NodeCount div 4, Snapshot.NodeLimit - Snapshot.NodeCount, 'places');
  SnapshotClose(Snapshot);
  for Index := 0 to High(Blocks) do
    FreeMem(Blocks[Index]);
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

// The words before and behind the page count, at words and at any byte.
procedure TLeaksTests.PageThatTheProgramHasProtectedIsNotRead;
const
  Size = 64 * OsPageSize;
var
  Block, Page: PByte;
  Targets: array[0..1] of Pointer;
  Target: Pointer;
  Snapshot: TSnapshot;
  IsPacked: Boolean;
begin
  Block := AllocMem(Size);
  Page := PByte(NativeUInt(Block + 2 * OsPageSize) and not NativeUInt(OsPageSize - 1));
  Targets[0] := GetMem(100);
  Targets[1] := GetMem(100);
  PPointer(Page - SizeOf(Pointer))^ := Targets[0];
  PPointer(Page + OsPageSize)^ := Targets[1];
  AssertTrue('protected', OsForbid(Page, OsPageSize));
  try
    for IsPacked := False to True do
    begin
      AssertTrue('opened', SnapshotOpen(Snapshot));
      Snapshot.IsPacked := IsPacked;
      RetainersMarkWord(Snapshot, NativeUInt(Block), nsRunning);
      for Target in Targets do
        AssertTrue('what the block references',
          Snapshot.Nodes[SnapshotNodeAt(Snapshot, NativeUInt(Target))].State = nsRunning);
      SnapshotClose(Snapshot);
    end;
  finally
    AssertTrue('open again', OsCommit(Page, OsPageSize));
    FreeMem(Targets[0]);
    FreeMem(Targets[1]);
    FreeMem(Block);
  end;
end;

// As the stack of a coroutine does. Its first word may be the class of a container.
procedure TLeaksTests.BlockThatBeginsWithAProtectedPageIsNotRead;
const
  Size = 4 * OsPageSize;
var
  Block: Pointer;
  Snapshot: TSnapshot;
  Index: Cardinal;
begin
  Block := LaneMM_GetMemAligned(Size, OsPageSize);
  AssertTrue('protected', OsForbid(Block, OsPageSize));
  try
    AssertTrue('opened', SnapshotOpen(Snapshot));
    SnapshotFindContainers(Snapshot);
    Index := SnapshotNodeAt(Snapshot, NativeUInt(Block));
    AssertTrue('is there, and no large block', (Index <> NoNode)
      and (Snapshot.Nodes[Index].Size <= MaxClassSize));
    SnapshotClose(Snapshot);
  finally
    AssertTrue('open again', OsCommit(Block, OsPageSize));
    FreeMem(Block);
  end;
end;
{$ifend}

// Two arrays in the object, ten in one of these; four lists, each an item of the next.
procedure TLeaksTests.RetainedSizeOfAGroupCountsNoBlockTwice;

  procedure Expect(const Plan, Mark: string; Others: Integer);
  var
    Rest, Bytes, Sum: string;
  begin
    Leaking.Run('leaks', [Plan]);
    Has(Mark, Leaking.Errors);
    Rest := Copy(Leaking.Errors, Pos(Mark, Leaking.Errors) + Length(Mark)).Replace(',', '');
    Bytes := Copy(Rest, 1, Pos(' ', Rest) - 1);
    Sum := IntToStr(StrToInt(Bytes) + Others);
    AssertTrue(Sum + ' in ' + Leaking.Errors, Rest.StartsWith(Bytes + ' bytes'#10'      retained size: '
      + Sum + ' bytes'#10));
  end;

begin
  Expect('packed', '12 x dynamic array, ', 50 * Number('FooBlock'));
  Expect('nested-lists', Format('4 x %d-byte block, ', [4 * WordSize]), 3 * 4 * WordSize);
end;

procedure TLeaksTests.CyclesOfDataHaveAllTheirLinks;
begin
  Leaking.Run('leaks', ['data-ring']);
  Has('1 retained by the cycle 416-byte block -> 208-byte block -> 416-byte block', Leaking.Errors);
end;

// Whichever of the two objects lies first.
procedure TLeaksTests.CyclesOfTheSameClassesAreEnteredAtOne;
begin
  Leaking.Run('leaks', ['cycle']);
  Has(Format('retained size: %d bytes'#10'      3 retained by the cycle of interfaces ',
    [3 * Number('Pair')]), Leaking.Errors);
end;

procedure TLeaksTests.ByteOrderMarkOfTheFileIsSkipped;
begin
  Leaking.Run('leaks,leaks:exit=9,leaks:ignore="'
    + Leaking.WriteFile('ignore', #$EF#$BB#$BF'class *'#13#10) + '"', ['objects']);
  Leaking.EndedWith(0, 'exit code when all is expected');
end;

procedure TLeaksTests.LinesOfTheFileThatAreNoPatternsAreNamed;
const
  Wrong = ': neither `class PATTERN` nor `routine PATTERN` of at most 511 characters'#10;
var
  Path: string;
begin
  Path := Leaking.WriteFile('ignore', 'clas l1.TOrder'#10'foo bar'#13#10#10'# class'#10'  '#13#10'class'#10
    + 'class ' + StringOfChar('x', 512) + #10'class *.TFoo'#10'routine # none'#10);
  Leaking.Run('leaks,leaks:ignore="' + Path + '"', ['objects']);
  Path := 'LaneMM: ' + Path + ':';
  AssertTrue(Leaking.Errors, Pos(Path + '1' + Wrong + Path + '2' + Wrong + Path + '6' + Wrong
    + Path + ' 2 more such lines'#10, Leaking.Errors) = 1);
  HasNot('TFoo', Leaking.Errors);
  Has('2 x System.TObject', Leaking.Errors);
  Leaking.Run('leaks,leaks:ignore="' + Leaking.WriteFile('ignore', 'class *'#10'foo') + '"', ['objects']);
  AssertEquals(Path + '2' + Wrong, Leaking.Errors);
end;

procedure TLeaksTests.StacksBeginAndEndInTheProgram;
var
  Lines: TStringArray;
  First: Integer;
begin
  Leaking.Run('leaks,debug,top=1', ['objects']);
  HasNot('SYSTEM.', Leaking.Errors);
  Lines := Leaking.Errors.Split([#10]);
  First := 0;
  while Pos('allocated, the first', Lines[First]) = 0 do
    Inc(First);
  Has(Format('Leaking.lpr:%d', [Leaking.PlantedLine('leak')]), Lines[First + 1]);
  Has('  main  ', Lines[First + 3]);
  HasNot('Leaking', Lines[First + 4]);
end;

{$ifdef LINUX}
procedure TLeaksTests.PageThatNoFolderTakesIsNotOnTheScreen;
begin
  // A folder is where the file would be.
  Leaking.RunInShell('leaks,leaks:format=html',
    'cd "${P%/*}"; export P; sh -c ''mkdir "${P}_MemoryManager_Leaks.$$.html"; exec "$P" objects''; code=$?; '
    + 'rmdir "${P}"_MemoryManager_Leaks.*.html; exit $code');
  Leaking.EndedWith(0);
  Has('.html cannot be written'#10, Leaking.Errors);
  Has('Memory leaks: ', Leaking.Errors);
  HasNot('<html', Leaking.Errors);
end;
{$endif}

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
    AssertEquals(Format('12 blocks, %d bytes leaked', [12 * Number('Foo')]),
      string((Suite.FirstChild.FirstChild as TDOMElement).GetAttribute('message')));
    AssertTrue('stack', Pos('LEAKOBJECTS', string(Suite.FirstChild.TextContent)) > 0);
    Report.Free;
  finally
    Stream.Free;
  end;
end;

initialization
  RegisterCases(TLeaksTests, 'formats/Leaks');
end.
