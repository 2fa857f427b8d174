/// Tests of everything that debug mode detects, in blocks of all size tiers, alone and while
/// threads churn, both ways: a program makes each error and prints it, and the report must show
/// exactly that error; the same program without the errors reports nothing.
unit Test.DebugMatrix;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  /// The report of an error: lines, with placeholders in braces; pairs of a heading of a backtrace
  /// and the comment of a line. The line `star` stands for the bytes around the offset.
  TExpected = record
    Mistake, Lines, Stacks: string;
  end;

  TDebugMatrixTests = class(TLaneTest)
  strict private
    procedure Compare(const Expected: TExpected; const Settings, Threads: string);
    procedure CompareWhileThreadsCommit(const Expected: TExpected);
    procedure IsSilent(const Settings, Threads: string);
  published
    procedure MistakesAreReportedAsTheyWereMade;
    procedure MistakesAreReportedAsTheyWereMadeWhileThreadsChurn;
    procedure GuardPagesReportUsesAsTheyWereMade;
    procedure ProgramWithoutMistakesIsSilent;
    procedure ProgramWithoutMistakesIsSilentWhileThreadsChurn;
    procedure ProgramWithoutMistakesIsSilentBetweenGuardPages;
  end;

implementation

uses
  SysUtils, StrUtils, testregistry, Test.Programs;

const
  Planted = 'planted: ';
  Head = 'LaneMM: process ';
  Got = 'Allocated by thread {thread} at';
  Freed = 'Freed by thread {freeing} at';
  Here = 'Occurred at';
  Found = 'Detected at';
  BlockLine = '  Block {block}: {size}, allocation number {number}, thread {thread}.|';
  InnerLine = '  The address is at offset {offset} from the start of a block.|';
  Star = 'star';
  DamageLine = '  Modified: 1 byte at offset {offset}.|' + Star + '|';
  WrittenBefore = 'Heap block underrun: bytes before the start were modified.|' + DamageLine
    + BlockLine;
  WrittenBehind = 'Heap block overrun: bytes past the end were modified.|' + DamageLine
    + BlockLine;
  WrittenFreed = 'Write after free: bytes of a freed block were modified.|' + DamageLine
    + BlockLine;
  WasGot = Got + '=got|';
  WasFreed = WasGot + Freed + '=freed|';

  ClassLine = '  Class: {class}|';
  ClassRead = 'Use after free: the class of a freed object was read.|' + BlockLine + ClassLine;
  Followed = 'Use after free: the contents of a freed block were used as an address.|';
  WasDestroyed = Got + '=created|' + Freed + '=destroyed|';

  AllExpected: array[0..37] of TExpected = (
    (Mistake: 'free-twice'; Lines: 'Double free: the block was already freed.|' + BlockLine;
      Stacks: WasFreed + Here + '=free'),
    (Mistake: 'free-twice-threads';
      Lines: 'Double free: the block was already freed.|' + BlockLine;
      Stacks: WasGot + Freed + '=freed aside|' + Here + '=free'),
    (Mistake: 'realloc-freed'; Lines: 'Invalid resize: the block was already freed.|' + BlockLine;
      Stacks: WasFreed + Here + '=realloc'),
    (Mistake: 'size-freed'; Lines: 'Invalid size query: the block was already freed.|' + BlockLine;
      Stacks: WasFreed + Here + '=size'),
    (Mistake: 'free-inner';
      Lines: 'Invalid free: {address} is not a heap block.|' + InnerLine + BlockLine;
      Stacks: WasGot + Here + '=free'),
    (Mistake: 'realloc-inner';
      Lines: 'Invalid resize: {address} is not a heap block.|' + InnerLine + BlockLine;
      Stacks: WasGot + Here + '=realloc'),
    (Mistake: 'size-inner';
      Lines: 'Invalid size query: {address} is not a heap block in use.|' + InnerLine + BlockLine;
      Stacks: WasGot + Here + '=size'),
    (Mistake: 'wrong-size';
      Lines: 'Wrong size: allocated with {size}, freed with {given}.|' + BlockLine;
      Stacks: WasGot + Here + '=given'),
    (Mistake: 'free-wild'; Lines: 'Invalid free: {wild} is not a heap block.|'
      + '  The address is not mapped.|'; Stacks: Here + '=free'),
    (Mistake: 'realloc-wild'; Lines: 'Invalid resize: {wild} is not a heap block.|'
      + '  The address is not mapped.|'; Stacks: Here + '=realloc'),
    (Mistake: 'size-wild'; Lines: 'Invalid size query: {wild} is not a heap block in use.|'
      + '  The address is not mapped.|'; Stacks: Here + '=size'),
    (Mistake: 'free-stack'; Lines: '  The address is on the stack of this thread.|';
      Stacks: Here + '=free'),
    (Mistake: 'realloc-stack'; Lines: '  The address is on the stack of this thread.|';
      Stacks: Here + '=realloc'),
    (Mistake: 'free-variable'; Lines: '  The address is in {program}.|'; Stacks: Here + '=free'),
    (Mistake: 'free-zero-variable'; Lines: '  The address is in {program}.|';
      Stacks: Here + '=free'),
    (Mistake: 'free-foreign'; Lines: '  The address is in memory that LaneMM does not manage.|';
      Stacks: Here + '=free'),
    (Mistake: 'before'; Lines: WrittenBefore; Stacks: WasGot + Found + '=freed'),
    (Mistake: 'far-before'; Lines: WrittenBefore; Stacks: WasGot + Found + '=freed'),
    (Mistake: 'behind'; Lines: WrittenBehind; Stacks: WasGot + Found + '=freed'),
    (Mistake: 'far-behind'; Lines: WrittenBehind; Stacks: WasGot + Found + '=freed'),
    (Mistake: 'behind-check'; Lines: WrittenBehind; Stacks: WasGot + Found + '=check all'),
    (Mistake: 'behind-shrunk'; Lines: WrittenBehind; Stacks: WasGot + Found + '=freed'),
    (Mistake: 'behind-grown'; Lines: WrittenBehind; Stacks: Got + '=grown|' + Found + '=freed'),
    (Mistake: 'freed-first'; Lines: WrittenFreed; Stacks: WasFreed + Found + '=check'),
    (Mistake: 'freed-middle'; Lines: WrittenFreed; Stacks: WasFreed + Found + '=check'),
    (Mistake: 'freed-last'; Lines: WrittenFreed; Stacks: WasFreed + Found + '=check'),
    (Mistake: 'freed-scattered'; Lines: 'Write after free: bytes of a freed block were modified.|'
      + '  Modified: 1 byte at offset 1.|  Modified: 3 bytes at offset {offset}.|'
      + '  Modified: 1 byte at offset {last}.|' + BlockLine; Stacks: WasFreed + Found + '=check'),
    (Mistake: 'method'; Lines: 'Use after free: virtual method DEBUGMATRIX.TTHING.ACT of a freed'
      + ' object was called.|' + BlockLine + ClassLine;
      Stacks: WasDestroyed + Here + '=method'),
    (Mistake: 'is'; Lines: ClassRead; Stacks: WasDestroyed + Here + '=is'),
    (Mistake: 'as'; Lines: ClassRead; Stacks: WasDestroyed + Here + '=as'),
    (Mistake: 'name'; Lines: ClassRead; Stacks: WasDestroyed + Here + '=name'),
    (Mistake: 'inherits'; Lines: ClassRead; Stacks: WasDestroyed + Here + '=inherits'),
    (Mistake: 'instance-size'; Lines: ClassRead;
      Stacks: WasDestroyed + Here + '=instance size'),
    (Mistake: 'supports'; Lines: ClassRead; Stacks: WasDestroyed + Here + '=supports'),
    (Mistake: 'interface';
      Lines: 'Use after free: interface method 3 of a freed object was called.|' + BlockLine
      + ClassLine;
      Stacks: Got + '=actor|' + Freed + '=released|' + Here + '=interface'),
    (Mistake: 'use-new'; Lines: 'Use of uninitialized memory: the contents of a new block were'
      {$if FPC_FULLVERSION < 30300}
      + ' used as an address.|' + BlockLine; Stacks: WasGot + Here + '=text'),
      {$else} // the new string is stored before the old one is read: the block has no such contents
      + ' used as an address.|'; Stacks: Here + '=text'),
      {$endif}
    (Mistake: 'use-freed';
      Lines: Followed + BlockLine; Stacks: WasFreed + Here + '=followed'),
    (Mistake: 'notes';
      Lines: 'Heap corruption: the bookkeeping record of the block at {address} was overwritten.|';
      Stacks: Found + '=check'));

  GuardExpected: array[0..2] of TExpected = (
    (Mistake: 'guard-write';
      Lines: 'Heap block overrun: write of 1 byte at offset {offset} of a block of {size}.|'
      + BlockLine; Stacks: WasGot + Here + '=overrun'),
    (Mistake: 'guard-freed';
      Lines: 'Use after free: read of 1 byte at offset {offset} of a freed block.|' + BlockLine;
      Stacks: WasFreed + Here + '=read'),
    (Mistake: 'guard-across';
      Lines: 'Heap block overrun: write of {word} at offset {offset} of a block of {size}.|'
      + BlockLine; Stacks: WasGot + Here + '=across'));

  // Uses of freed blocks with pages of their own.
  MostShared = 65000;
  FreedWrite = 'Use after free: write of 1 byte at offset {offset} of a freed block.|';
  LargeExpected: array[0..3] of TExpected = (
    (Mistake: 'freed-first'; Lines: FreedWrite + BlockLine; Stacks: WasFreed + Here + '=written'),
    (Mistake: 'freed-middle'; Lines: FreedWrite + BlockLine; Stacks: WasFreed + Here + '=written'),
    (Mistake: 'freed-last'; Lines: FreedWrite + BlockLine; Stacks: WasFreed + Here + '=written'),
    (Mistake: 'use-freed'; Lines: 'Use after free: read of {word} at offset {offset} of a freed'
      + ' block.|' + BlockLine; Stacks: WasFreed + Here + '=followed'));

type
  // What the program says that it did, and the words for it.
  TFacts = record
    Size, Offset: Int64;
    Block: NativeUInt;
    Number, Thread, FreeingThread, ClassName: string;
    procedure Read(const Line: string);
    function Expand(const Text: string): string;
  end;

  EMissing = class(Exception);

  // One report, checked against what was done.
  TChecker = class
  public
    Facts: TFacts;
    Report, Title: string;
    procedure Has(const Line: string);
    procedure HasStack(const Heading, Comment: string);
    procedure HasDump;
    procedure Check(const Expected: TExpected);
  strict private
    procedure Missing(const What: string);
  end;

function Program_: TTestProgram;
begin
  Result := TestProgram('DebugMatrix');
end;

// ---------------------------------------------------------------------------- facts

procedure TFacts.Read(const Line: string);
var
  Words: TStringArray;
begin
  Words := Line.Split([' ']);
  Size := StrToInt64(Words[0]);
  Block := StrToQWord('$' + Words[1]);
  Number := Words[2];
  Thread := Words[3];
  FreeingThread := Words[4];
  Offset := StrToInt64(Words[5]);
  ClassName := Words[6];
end;

function Hex(Address: NativeUInt): string;
begin
  Result := '$' + LowerCase(HexStr(Address, WordSize * 2));
end;

function Grouped(Value: Int64): string;
var
  Exact: Extended;
begin
  Exact := Value;
  Result := Format('%.0n', [Exact]);
end;

function Bytes(Value: Int64): string;
begin
  Result := Grouped(Value) + ' byte' + IfThen(Value = 1, '', 's');
end;

function TFacts.Expand(const Text: string): string;
const
  Wild = 12345;
begin
  Result := Text.Replace('{size}', Bytes(Size)).Replace('{given}', Bytes(Offset))
    .Replace('{offset}', Grouped(Offset)).Replace('{last}', Grouped(Size - 1)).Replace('{block}', Hex(Block))
    .Replace('{address}', Hex(Block + NativeUInt(Offset))).Replace('{wild}', Hex(Wild))
    .Replace('{word}', Bytes(WordSize)).Replace('{number}', Number).Replace('{thread}', Thread)
    .Replace('{freeing}', FreeingThread).Replace('{class}', ClassName)
    .Replace('{program}', Program_.ReportedPath);
end;

// ---------------------------------------------------------------------------- reports

procedure TChecker.Missing(const What: string);
begin
  raise EMissing.CreateFmt('%s: `%s` is missing in: %s', [Title, What, Report]);
end;

procedure TChecker.Has(const Line: string);
begin
  if Pos(#10 + Line + #10, Report) = 0 then
    Missing(Line);
end;

// The line of the comment stands in the stack below the heading.
procedure TChecker.HasStack(const Heading, Comment: string);
var
  First, Last: Integer;
  Place: string;
begin
  First := Pos(#10'  ' + Heading + #10, Report);
  if First = 0 then
    Missing(Heading);
  Last := PosEx(#10, Report, First + 1) + 1;
  while Copy(Report, Last, 6) = '      ' do
    Last := PosEx(#10, Report, Last) + 1;
  Place := Format('DebugMatrix.lpr:%d'#10, [Program_.PlantedLine(Comment)]);
  if Pos(Place, Copy(Report, First, Last - First)) = 0 then
    Missing(Heading + ' ' + Place);
end;

// The byte at the offset is shown, and alone has a star.
procedure TChecker.HasDump;
const
  LineBytes = 16;
var
  Address: NativeUInt;
  First, Column: Integer;
begin
  Column := 7 + WordSize * 2 + 1;
  Address := Facts.Block + NativeUInt(Facts.Offset);
  First := Pos(#10'      ' + Copy(Hex(Address and not (LineBytes - 1)), 2) + ' ', Report);
  if (First = 0)
    or (Copy(Report, First + 1 + Column - 1 + 3 * (Address mod LineBytes), 3) <> '*42') then
    Missing(Format('*42 at %s', [Hex(Address)]));
  if Report.CountChar('*') <> 1 then
    Missing('one star');
end;

// Addresses of 32 bits have no room for the mark by which the use of a freed object is known for what it
// is, but for calls of interfaces: there the report has the place alone for certain.
function HasPlaceAlone(const Expected: TExpected): Boolean;
begin
  Result := (WordSize = 4) and Expected.Lines.EndsWith(ClassLine);
end;

function OfTarget(const Expected: TExpected): TExpected;
begin
  Result := Expected;
  if not HasPlaceAlone(Expected) then
    Exit;
  Result.Lines := Followed;
  if Expected.Mistake = 'interface' then
    Result.Lines := Copy(Expected.Lines, 1, Pos('|', Expected.Lines));
  Result.Stacks := Copy(Expected.Stacks, Pos(Here, Expected.Stacks));
end;

procedure TChecker.Check(const Expected: TExpected);
var
  Part: string;
  Pair: TStringArray;
begin
  if (not Report.StartsWith(Head)) or (PosEx(Head, Report, 2) > 0) then
    Missing('just one report');
  for Part in Expected.Lines.Split(['|']) do
    if Part = Star then
      HasDump
    else if Part <> '' then
      Has(Facts.Expand(Part));
  for Part in Expected.Stacks.Split(['|']) do
  begin
    Pair := Part.Split(['=']);
    HasStack(Facts.Expand(Pair[0]), Pair[1]);
  end;
end;

// ---------------------------------------------------------------------------- tests

function WithoutPlants(const Text: string): string;
var
  Line: string;
begin
  Result := '';
  for Line in Text.Split([#10]) do
    if not Line.StartsWith(Planted) then
      Result := Result + Line + #10;
  SetLength(Result, Length(Result) - 1);
end;

// A report that names no block is made once for its place.
function ComesOnce(const Expected: TExpected): Boolean;
begin
  Result := HasPlaceAlone(Expected)
    or (Expected.Mistake = 'use-new') and not Expected.Lines.EndsWith(BlockLine);
end;

// Returns what is expected of a block of this size.
function ExpectedOf(const Expected: TExpected; Size: Int64): TExpected;
var
  Large: TExpected;
begin
  Result := Expected;
  if Size > MostShared then
    for Large in LargeExpected do
      if Large.Mistake = Expected.Mistake then
        Result := Large;
end;

procedure TDebugMatrixTests.Compare(const Expected: TExpected; const Settings, Threads: string);
var
  Checker: TChecker;
  Sections: TStringArray;
  Index, LineEnd: Integer;
begin
  Program_.Run(Settings, [Expected.Mistake, Threads]);
  Program_.EndedWith(0, Expected.Mistake + ': exit code');
  Sections := Program_.Errors.Split([Planted]);
  AssertTrue(Expected.Mistake + ' was made', Length(Sections) > 1);
  AssertEquals(Expected.Mistake + ': reports before', '', Sections[0]);
  Checker := TChecker.Create;
  try
    for Index := 1 to High(Sections) do
    begin
      LineEnd := Pos(#10, Sections[Index]);
      Checker.Title := Expected.Mistake + ', ' + Copy(Sections[Index], 1, LineEnd - 1);
      Checker.Facts.Read(Copy(Sections[Index], 1, LineEnd - 1));
      Checker.Report := Copy(Sections[Index], LineEnd + 1);
      if (Checker.Report = '') and (Index > 1) and ComesOnce(Expected) then
        Continue;
      Checker.Check(OfTarget(ExpectedOf(Expected, Checker.Facts.Size)));
    end;
  finally
    Checker.Free;
  end;
  AssertEquals('the log is what the screen shows', WithoutPlants(Program_.Errors),
    Program_.Written('EventLog.txt'));
end;

procedure TDebugMatrixTests.IsSilent(const Settings, Threads: string);
begin
  Program_.Run(Settings, ['none', Threads]);
  AssertEquals('', Program_.Errors);
  AssertEquals('', Program_.Written('EventLog.txt'));
  Program_.EndedWith(0);
end;

procedure TDebugMatrixTests.MistakesAreReportedAsTheyWereMade;
var
  Expected: TExpected;
begin
  for Expected in AllExpected do
    Compare(Expected, 'debug', '0');
end;

// Much is freed meanwhile: what was written to must not leave the quarantine before it is found.
procedure TDebugMatrixTests.MistakesAreReportedAsTheyWereMadeWhileThreadsChurn;
var
  Expected: TExpected;
begin
  for Expected in AllExpected do
    Compare(Expected, 'debug,quarantine=64M', '8');
end;

// Likewise: of a block that does not wait in the quarantine, others get the addresses. A thread that
// stands still for 100 ms while it commits slices makes pages accessible again (GuardPagesForbid), which
// happens on a busy machine: hardly so for the same block twice.
procedure TDebugMatrixTests.CompareWhileThreadsCommit(const Expected: TExpected);
const
  Settings = 'debug,guard=pages,quarantine=64M';
begin
  try
    Compare(Expected, Settings, '2');
  except
    on EMissing do
      Compare(Expected, Settings, '2');
  end;
end;

procedure TDebugMatrixTests.GuardPagesReportUsesAsTheyWereMade;
var
  Expected: TExpected;
begin
  for Expected in GuardExpected do
  begin
    Compare(Expected, 'debug,guard=pages', '0');
    CompareWhileThreadsCommit(Expected);
  end;
end;

procedure TDebugMatrixTests.ProgramWithoutMistakesIsSilent;
begin
  IsSilent('debug', '0');
  IsSilent('debug,check=50', '0');
end;

procedure TDebugMatrixTests.ProgramWithoutMistakesIsSilentWhileThreadsChurn;
begin
  IsSilent('debug', '8');
  IsSilent('guard=sample:10K', '8');
end;

procedure TDebugMatrixTests.ProgramWithoutMistakesIsSilentBetweenGuardPages;
begin
  IsSilent('debug,guard=pages', '0');
  IsSilent('debug,guard=pages', '2');
end;

initialization
  RegisterTest(TDebugMatrixTests);
end.
