/// Tests of what lanemm reads of a process: a stopped one exactly, a running one without an error.
unit Test.Lanemm.Reading;

{$mode delphi}{$H+}

interface

uses
  fpJson, Test.Lanemm.Tools;

type
  /// Looks at one planted program by `lanemm state`.
  TReadingTest = class(TPlantedTest)
  protected
    /// Calls `lanemm state` with these options, for text.
    procedure ReadText(const Options: string);
    /// The same for JSON, which is freed with the next call, or with the test.
    function Read(const Options: string): TJSONObject;
  end;

  /// A Pascal program that has stopped itself, with or without `debug`.
  TStoppedTest = class(TReadingTest)
  published
    procedure ObjectsAreCountedByClass;
    procedure StringsAreCounted;
    procedure ASoundHeapHasNoDamage;
  end;

  /// Without.
  TStoppedTests = class(TStoppedTest)
  published
    procedure ClassesAreThoseOfTheProcess;
    procedure NoRecordChanges;
    procedure FreedByOthersIsCountedForTheOwner;
    procedure BlocksOfThreadsAndFullSpansAreAll;
    procedure ALargeBlockIsFound;
    procedure HoldersAreFound;
    procedure ProcessesAreListed;
  end;

  /// With it.
  TStoppedDebugTests = class(TStoppedTest)
  protected
    procedure SetUp; override;
  published
    procedure TotalsAreThoseOfTheProcess;
    procedure ABlockTellsItsNumberAndThread;
  end;

  /// Programs with a bug, programs that run, that hang, and programs in C.
  TProcessTests = class(TReadingTest)
  published
    procedure AnOverwrittenFreeBlockIsFound;
    procedure AnOverrunOfADebugBlockIsFound;
    procedure BlocksOfAVacantHeapAreThoseOfEndedThreads;
    procedure ARunningProcessIsRead;
    procedure AProcessStoppedAnywhereIsSound;
    procedure AProcessThatHoldsAllLocksIsRead;
    procedure AStrippedProgramIsRead;
    procedure BlocksOfACProgramAreCounted;
    procedure ARealCProgramIsRead;
  end;

implementation

uses
  SysUtils, testregistry, BaseUnix, Test.Cases;

const
  AlphaInUse = 750;
  AlphaBytes = 48; // 40 bytes each, with the class
  BetaInUse = 300;
  TextCount = 200;
  Taken = 100;

// ---------------------------------------------------------------------------- TReadingTest

procedure TReadingTest.ReadText(const Options: string);
begin
  CallWell(Format('state %d %s', [Planted.Id, Options]));
end;

function TReadingTest.Read(const Options: string): TJSONObject;
begin
  Result := Ask(Format('state %d --json %s', [Planted.Id, Options]));
end;

// ---------------------------------------------------------------------------- TStoppedTest

procedure TStoppedTest.ObjectsAreCountedByClass;
begin
  Read('--contents');
  Same(AlphaInUse, Item(Answer, 'contents', 'name', 'Planted.TAlpha').Int64s['blocks'], 'TAlpha');
  Same(BetaInUse, Item(Answer, 'contents', 'name', 'Planted.TBeta').Int64s['blocks'], 'TBeta');
end;

procedure TStoppedTest.StringsAreCounted;
begin
  Read('--contents');
  Same(TextCount, Item(Answer, 'contents', 'name', 'UnicodeString').Int64s['blocks'], 'strings');
end;

procedure TStoppedTest.ASoundHeapHasNoDamage;
begin
  ReadText('--damage');
  Has('No damage', Printed);
end;

// ---------------------------------------------------------------------------- TStoppedTests

procedure TStoppedTests.ClassesAreThoseOfTheProcess;
var
  Json, Found: TJSONObject;
  Line: string;
  Numbers: TStringArray;
  Checked: Integer;
begin
  Json := Read('');
  Checked := 0;
  for Line in Planted.Printed do
    if Line.StartsWith('class') then
    begin
      Numbers := Line.Substring(5).Split([' ', ',']);
      Found := Item(Json, 'classes', 'blockSize', Numbers[0]);
      Same(StrToInt64(Numbers[1]), Found.Int64s['blocks'], 'blocks of ' + Numbers[0]);
      Same(StrToInt64(Numbers[2]), Found.Int64s['freeBlocks'], 'free blocks of ' + Numbers[0]);
      Same(StrToInt64(Numbers[3]), Found.Int64s['spans'], 'spans of ' + Numbers[0]);
      Same(StrToInt64(Numbers[4]), Found.Int64s['spanBytes'], 'their bytes of ' + Numbers[0]);
      Same(Found.Int64s['spans'], Found.Int64s['fullSpans'] + Found.Int64s['partlyUsedSpans']
        + Found.Int64s['emptySpans'], 'spans of all kinds of ' + Numbers[0]);
      Inc(Checked);
    end;
  Same(Checked, Json.Arrays['classes'].Count, 'classes');
  AtLeast(4, Checked, 'classes with spans');
end;

procedure TStoppedTests.NoRecordChanges;
begin
  Read('');
  Same(0, Answer.Int64s['changedRecords'], 'records that changed');
  Same(0, Answer.Int64s['damagedRecords'], 'records that cannot be');
  AtLeast(10, Answer.Int64s['records'], 'records');
  CheckEquals('', Errors);
end;

procedure TStoppedTests.FreedByOthersIsCountedForTheOwner;
var
  Index: Integer;
  Sum: Int64;
begin
  Read('');
  Sum := 0;
  for Index := 0 to Answer.Arrays['threads'].Count - 1 do
    Inc(Sum, Answer.Arrays['threads'].Objects[Index].Int64s['freedByOthers']);
  // A full span that was given up belongs to the first thread that frees a block of it.
  AtLeast(1, Sum, 'blocks that other threads have freed');
  AtMost(Taken, Sum, 'blocks that other threads have freed');
end;

// A full span belongs to no thread, so that a thread that fills spans would not be seen to grow.
procedure TStoppedTests.BlocksOfThreadsAndFullSpansAreAll;
const
  Parts: array[0..2] of string = ('blocks', 'bytes', 'spanBytes');
var
  Part: string;
  Sum: Int64;
  Index: Integer;
begin
  Ask(Format('state %d --json', [Planted.Id]));
  for Part in Parts do
  begin
    Sum := Answer.Objects['unowned'].Int64s[Part];
    AtLeast(1, Sum, Part + ' of full spans');
    for Index := 0 to Answer.Arrays['threads'].Count - 1 do
      Inc(Sum, Answer.Arrays['threads'].Objects[Index].Int64s[Part]);
    for Index := 0 to Answer.Arrays['classes'].Count - 1 do
      Dec(Sum, Answer.Arrays['classes'].Objects[Index].Int64s[Part]);
    Same(0, Sum, Part + ' of threads without those of size classes');
  end;
  CallWell(Format('state %d', [Planted.Id]));
  Has('       -  (full spans)', Printed);
  CallWell(Format('top %d --once --threads', [Planted.Id]));
  Has('full spans', Printed);
end;

procedure TStoppedTests.ALargeBlockIsFound;
begin
  ReadText(Format('--at %d', [Planted.Number('largeAt') + 500000]));
  Has('is byte 500000 of', Printed);
  Has('large block', Printed);
end;

procedure TStoppedTests.HoldersAreFound;
begin
  ReadText(Format('--at %d --holders', [Planted.Number('alpha')]));
  Has(Format('Planted.TBeta at $%x, offset 8', [Planted.Number('beta')]), Printed);
  Has(LowerCase(Format('$%.12x', [Planted.Number('variable')])) + '  variable PLANTED.ALPHAS', Printed);
  ReadText(Format('--at %d --holders --most=1', [Planted.Number('alpha')]));
  HasNot('variable PLANTED.ALPHAS', Printed);
  Has(' more; --most=0 shows all', Printed);
end;

procedure TStoppedTests.ProcessesAreListed;
begin
  CallWell('ps');
  Has(Format('%8d ', [Planted.Id]), Printed);
  Has('Planted', Printed);
end;

// ---------------------------------------------------------------------------- TStoppedDebugTests

procedure TStoppedDebugTests.SetUp;
begin
  StartAndStop('./Planted stop', 'LANEMM=debug');
end;

procedure TStoppedDebugTests.TotalsAreThoseOfTheProcess;
begin
  Read('');
  Same(Planted.Number('used'), Answer.FindPath('totals.usedBytes').AsInt64, 'used');
  AtLeast(AlphaInUse + BetaInUse, Answer.FindPath('debug.blocks').AsInt64, 'debug blocks');
end;

procedure TStoppedDebugTests.ABlockTellsItsNumberAndThread;
begin
  ReadText(Format('--at %d', [Planted.Number('alpha')]));
  Has('contents: Planted.TAlpha', Printed);
  Has('debug block number ', Printed);
  Has(Format('allocated by thread %d', [Planted.Id]), Printed);
end;

// ---------------------------------------------------------------------------- TProcessTests

procedure TProcessTests.AnOverwrittenFreeBlockIsFound;
begin
  StartAndStop('./Planted damage', '');
  ReadText('--damage');
  Has(LowerCase(Format('$%.12x', [Planted.Number('damaged')]))
    + '  free block of 7168 bytes: its first word was overwritten', Printed);
end;

procedure TProcessTests.AnOverrunOfADebugBlockIsFound;
begin
  StartAndStop('./Planted overrun', 'LANEMM=debug');
  ReadText('--damage');
  Has(LowerCase(Format('$%.12x', [Planted.Number('overrun')]))
    + '  debug block of 50 bytes: overrun', Printed);
end;

procedure TProcessTests.BlocksOfAVacantHeapAreThoseOfEndedThreads;
const
  Left = 12;
var
  Each: TJSONObject;
  Index: Integer;
  Ended: Int64;
begin
  StartAndStop('./Planted vacant', '');
  Ask(Format('state %d --json', [Planted.Id]));
  Ended := 0;
  for Index := 0 to Answer.Arrays['threads'].Count - 1 do
  begin
    Each := Answer.Arrays['threads'].Objects[Index];
    if Each.Booleans['ended'] then
      Inc(Ended, Each.Int64s['blocks'])
    else
      AtLeast(1, Each.Int64s['thread'], 'number of a thread');
  end;
  AtLeast(Left, Ended, 'blocks of ended threads');
  CallWell(Format('state %d', [Planted.Id]));
  Has('(ended threads)', Printed);
end;

procedure TProcessTests.ARunningProcessIsRead;
var
  Turn: Integer;
begin
  Start('./Planted churn', '');
  for Turn := 1 to 20 do
  begin
    Read('--contents --damage');
    Same(AlphaInUse, Item(Answer, 'contents', 'name', 'Planted.TAlpha').Int64s['blocks'],
      'TAlpha, which does not change');
    Same(0, Answer.Arrays['damage'].Count, 'damage ' + Answer.Arrays['damage'].AsJSON);
  end;
end;

procedure TProcessTests.AProcessStoppedAnywhereIsSound;
var
  Turn: Integer;
begin
  Start('./Planted churn', '');
  for Turn := 1 to 20 do
  begin
    Planted.Send(SIGSTOP);
    Planted.AwaitStop;
    Read('--contents');
    Same(0, Answer.Int64s['changedRecords'], 'records that changed');
    Same(AlphaInUse, Item(Answer, 'contents', 'name', 'Planted.TAlpha').Int64s['blocks'],
      'TAlpha');
    Planted.Send(SIGCONT);
  end;
end;

procedure TProcessTests.AProcessThatHoldsAllLocksIsRead;
begin
  Start('./Planted locked', '');
  Read('--contents');
  Same(Planted.Number('used'), Answer.FindPath('totals.usedBytes').AsInt64, 'used');
  Same(AlphaInUse, Item(Answer, 'contents', 'name', 'Planted.TAlpha').Int64s['blocks'], 'TAlpha');
end;

procedure TProcessTests.AStrippedProgramIsRead;
begin
  // Without symbols and without a status page.
  StartAndStop('./PlantedStripped stop', 'LANEMM=live=0');
  Read('--contents');
  Same(Planted.Number('used'), Answer.FindPath('totals.usedBytes').AsInt64, 'used');
  Same(AlphaInUse, Item(Answer, 'contents', 'name', 'Planted.TAlpha').Int64s['blocks'], 'TAlpha');
end;

procedure TProcessTests.BlocksOfACProgramAreCounted;
var
  Json, Found: TJSONObject;
begin
  StartAndStop('./PlantedC', 'LD_PRELOAD=' + Root + 'build/lib/liblanemm.so');
  Json := Read('--damage');
  Found := Item(Json, 'classes', 'blockSize', '7168');
  Same(800, Found.Int64s['blocks'], 'blocks of 7,000 bytes');
  Same(5, Json.FindPath('large.blocks').AsInt64, 'large blocks');
  Same(0, Json.Arrays['damage'].Count, 'damage');
end;

procedure TProcessTests.ARealCProgramIsRead;
begin
  Start('python3 -c "' + 'x = [bytes(5000) for i in range(2000)]; import '
    + 'os, signal; print(''ready 1'', flush=True); os.kill(os.getpid(), signal.SIGSTOP)"',
    'LD_PRELOAD=' + Root + 'build/lib/liblanemm.so');
  Planted.AwaitStop;
  Read('--contents --damage');
  AtLeast(2000, Item(Answer, 'classes', 'blockSize', '5120').Int64s['blocks'], 'blocks');
  AtMost(2100, Item(Answer, 'classes', 'blockSize', '5120').Int64s['blocks'], 'blocks');
  Same(0, Answer.Arrays['damage'].Count, 'damage');
end;

initialization
  RegisterCases(TStoppedTests, 'lanemm/Stopped');
  RegisterTest(TStoppedDebugTests);
  RegisterTest(TProcessTests);
end.
