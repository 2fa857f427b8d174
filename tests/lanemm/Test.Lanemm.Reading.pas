/// Tests of what lanemm reads of a process: a stopped one exactly, a running one without an error.
unit Test.Lanemm.Reading;

{$mode delphi}{$H+}

interface

uses
  Test.Lanemm.Tools;

type
  /// A Pascal program that has stopped itself.
  TStoppedTests = class(TLanemmTest)
  private
    Planted: TPlanted;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure TotalsAreThoseOfTheProcess;
    procedure ClassesAreThoseOfTheProcess;
    procedure NoRecordChanges;
    procedure ObjectsAreCountedByClass;
    procedure StringsAreCounted;
    procedure FreedByOthersIsCountedForTheOwner;
    procedure AnObjectIsNamed;
    procedure AnInnerAddressLeadsToItsBlock;
    procedure AFreedBlockIsFree;
    procedure ALargeBlockIsFound;
    procedure AVariableIsNoBlock;
    procedure HoldersAreFound;
    procedure ASoundHeapHasNoDamage;
    procedure ProcessesAreListed;
  end;

  /// The same program with `debug`.
  TStoppedDebugTests = class(TLanemmTest)
  private
    Planted: TPlanted;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure ObjectsAreCountedByClass;
    procedure StringsAreCounted;
    procedure TotalsAreThoseOfTheProcess;
    procedure ABlockTellsItsNumberAndThread;
    procedure ASoundHeapHasNoDamage;
  end;

  /// Programs with a bug, programs that run, that hang, and programs in C.
  TProcessTests = class(TLanemmTest)
  published
    procedure AnOverwrittenFreeBlockIsFound;
    procedure AnOverrunOfADebugBlockIsFound;
    procedure ARunningProcessIsRead;
    procedure AProcessStoppedAnywhereIsSound;
    procedure AProcessThatHoldsAllLocksIsRead;
    procedure AStrippedProgramIsRead;
    procedure BlocksOfACProgramAreCounted;
    procedure ARealCProgramIsRead;
  end;

implementation

uses
  SysUtils, fpJson, testregistry, BaseUnix;

const
  AlphaInUse = 750;
  AlphaBytes = 48; // 40 bytes each, with the class
  BetaInUse = 300;
  TextCount = 200;
  Taken = 100;

// ---------------------------------------------------------------------------- TStoppedTests

procedure TStoppedTests.SetUp;
begin
  Planted := TPlanted.Create('./Planted stop', '');
  Planted.AwaitStop;
end;

procedure TStoppedTests.TearDown;
begin
  FreeAndNil(Planted);
end;

procedure TStoppedTests.TotalsAreThoseOfTheProcess;
var
  Json: TJSONObject;
begin
  Json := CallForJson(Format('state %d --json', [Planted.Id]));
  Same(Planted.Number('used'), Json.FindPath('totals.usedBytes').AsInt64, 'used');
  Same(Planted.Number('reserved'), Json.FindPath('totals.reservedBytes').AsInt64, 'reserved');
  Same(Planted.Number('large'), Json.FindPath('large.blocks').AsInt64, 'large blocks');
  Same(Planted.Number('largeBytes'), Json.FindPath('large.bytes').AsInt64, 'their bytes');
  Json.Free;
end;

procedure TStoppedTests.ClassesAreThoseOfTheProcess;
var
  Json, Found: TJSONObject;
  Line: string;
  Numbers: TStringArray;
  Checked: Integer;
begin
  Json := CallForJson(Format('state %d --json', [Planted.Id]));
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
  Json.Free;
end;

procedure TStoppedTests.NoRecordChanges;
var
  Json: TJSONObject;
begin
  Json := CallForJson(Format('state %d --json', [Planted.Id]));
  Same(0, Json.Int64s['changedRecords'], 'records that changed');
  Same(0, Json.Int64s['damagedRecords'], 'records that cannot be');
  AtLeast(10, Json.Int64s['records'], 'records');
  CheckEquals('', Errors);
  Json.Free;
end;

procedure TStoppedTests.ObjectsAreCountedByClass;
var
  Json: TJSONObject;
begin
  Json := CallForJson(Format('state %d --contents --json', [Planted.Id]));
  Same(AlphaInUse, Item(Json, 'contents', 'name', 'Planted.TAlpha').Int64s['blocks'], 'TAlpha');
  Same(BetaInUse, Item(Json, 'contents', 'name', 'Planted.TBeta').Int64s['blocks'], 'TBeta');
  Json.Free;
end;

procedure TStoppedTests.StringsAreCounted;
var
  Json: TJSONObject;
begin
  Json := CallForJson(Format('state %d --contents --json', [Planted.Id]));
  Same(TextCount, Item(Json, 'contents', 'name', 'UnicodeString').Int64s['blocks'], 'strings');
  Json.Free;
end;

procedure TStoppedTests.FreedByOthersIsCountedForTheOwner;
var
  Json: TJSONObject;
  Index: Integer;
  Sum: Int64;
begin
  Json := CallForJson(Format('state %d --json', [Planted.Id]));
  Sum := 0;
  for Index := 0 to Json.Arrays['threads'].Count - 1 do
    Inc(Sum, Json.Arrays['threads'].Objects[Index].Int64s['freedByOthers']);
  // A full span that was given up belongs to the first thread that frees a block of it.
  AtLeast(1, Sum, 'blocks that other threads have freed');
  AtMost(Taken, Sum, 'blocks that other threads have freed');
  Json.Free;
end;

procedure TStoppedTests.AnObjectIsNamed;
begin
  CallWell(Format('state %d --at %d', [Planted.Id, Planted.Number('alpha')]));
  Has('in use', Printed);
  Has('is byte 0 of', Printed);
  Has('contents: Planted.TAlpha', Printed);
  Has('owned by thread', Printed);
end;

procedure TStoppedTests.AnInnerAddressLeadsToItsBlock;
begin
  CallWell(Format('state %d --at %d', [Planted.Id, Planted.Number('text')]));
  Has('is byte 24 of', Printed);
  Has('UnicodeString "xxxxx', Printed);
end;

procedure TStoppedTests.AFreedBlockIsFree;
begin
  CallWell(Format('state %d --at %d', [Planted.Id, Planted.Number('freed')]));
  Has('3072 bytes, free', Printed);
end;

procedure TStoppedTests.ALargeBlockIsFound;
begin
  CallWell(Format('state %d --at %d', [Planted.Id, Planted.Number('largeAt') + 500000]));
  Has('is byte 500000 of', Printed);
  Has('large block', Printed);
end;

procedure TStoppedTests.AVariableIsNoBlock;
begin
  CallWell(Format('state %d --at %d', [Planted.Id, Planted.Number('variable')]));
  Has('variables of', Printed);
  CallWell(Format('state %d --at 16', [Planted.Id]));
  Has('not mapped', Printed);
end;

procedure TStoppedTests.HoldersAreFound;
begin
  CallWell(Format('state %d --at %d --holders', [Planted.Id, Planted.Number('alpha')]));
  Has(Format('Planted.TBeta at $%x, offset 8', [Planted.Number('beta')]), Printed);
  Has(LowerCase(Format('$%.12x', [Planted.Number('variable')])) + '  variables of', Printed);
end;

procedure TStoppedTests.ASoundHeapHasNoDamage;
begin
  CallWell(Format('state %d --damage', [Planted.Id]));
  Has('No damage', Printed);
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
  Planted := TPlanted.Create('./Planted stop', 'LANEMM=debug');
  Planted.AwaitStop;
end;

procedure TStoppedDebugTests.TearDown;
begin
  FreeAndNil(Planted);
end;

procedure TStoppedDebugTests.ObjectsAreCountedByClass;
var
  Json: TJSONObject;
begin
  Json := CallForJson(Format('state %d --contents --json', [Planted.Id]));
  Same(AlphaInUse, Item(Json, 'contents', 'name', 'Planted.TAlpha').Int64s['blocks'], 'TAlpha');
  Same(BetaInUse, Item(Json, 'contents', 'name', 'Planted.TBeta').Int64s['blocks'], 'TBeta');
  Json.Free;
end;

procedure TStoppedDebugTests.StringsAreCounted;
var
  Json: TJSONObject;
begin
  Json := CallForJson(Format('state %d --contents --json', [Planted.Id]));
  Same(TextCount, Item(Json, 'contents', 'name', 'UnicodeString').Int64s['blocks'], 'strings');
  Json.Free;
end;

procedure TStoppedDebugTests.TotalsAreThoseOfTheProcess;
var
  Json: TJSONObject;
begin
  Json := CallForJson(Format('state %d --json', [Planted.Id]));
  Same(Planted.Number('used'), Json.FindPath('totals.usedBytes').AsInt64, 'used');
  AtLeast(AlphaInUse + BetaInUse, Json.FindPath('debug.blocks').AsInt64, 'debug blocks');
  Json.Free;
end;

procedure TStoppedDebugTests.ABlockTellsItsNumberAndThread;
begin
  CallWell(Format('state %d --at %d', [Planted.Id, Planted.Number('alpha')]));
  Has('contents: Planted.TAlpha', Printed);
  Has('debug block number ', Printed);
  Has(Format('allocated by thread %d', [Planted.Id]), Printed);
end;

procedure TStoppedDebugTests.ASoundHeapHasNoDamage;
begin
  CallWell(Format('state %d --damage', [Planted.Id]));
  Has('No damage', Printed);
end;

// ---------------------------------------------------------------------------- TProcessTests

procedure TProcessTests.AnOverwrittenFreeBlockIsFound;
var
  Planted: TPlanted;
begin
  Planted := TPlanted.Create('./Planted damage', '');
  try
    Planted.AwaitStop;
    CallWell(Format('state %d --damage', [Planted.Id]));
    Has(LowerCase(Format('$%.12x', [Planted.Number('damaged')]))
      + '  free block of 7168 bytes: its first word was overwritten', Printed);
  finally
    Planted.Free;
  end;
end;

procedure TProcessTests.AnOverrunOfADebugBlockIsFound;
var
  Planted: TPlanted;
begin
  Planted := TPlanted.Create('./Planted overrun', 'LANEMM=debug');
  try
    Planted.AwaitStop;
    CallWell(Format('state %d --damage', [Planted.Id]));
    Has(LowerCase(Format('$%.12x', [Planted.Number('overrun')]))
      + '  debug block of 50 bytes: overrun', Printed);
  finally
    Planted.Free;
  end;
end;

procedure TProcessTests.ARunningProcessIsRead;
var
  Planted: TPlanted;
  Json: TJSONObject;
  Turn: Integer;
begin
  Planted := TPlanted.Create('./Planted churn', '');
  try
    for Turn := 1 to 20 do
    begin
      Json := CallForJson(Format('state %d --contents --damage --json', [Planted.Id]));
      Same(AlphaInUse, Item(Json, 'contents', 'name', 'Planted.TAlpha').Int64s['blocks'],
        'TAlpha, which does not change');
      Same(0, Json.Arrays['damage'].Count, 'damage ' + Json.Arrays['damage'].AsJSON);
      Json.Free;
    end;
  finally
    Planted.Free;
  end;
end;

procedure TProcessTests.AProcessStoppedAnywhereIsSound;
var
  Planted: TPlanted;
  Json: TJSONObject;
  Turn: Integer;
begin
  Planted := TPlanted.Create('./Planted churn', '');
  try
    for Turn := 1 to 20 do
    begin
      Planted.Send(SIGSTOP);
      Planted.AwaitStop;
      Json := CallForJson(Format('state %d --contents --json', [Planted.Id]));
      Same(0, Json.Int64s['changedRecords'], 'records that changed');
      Same(AlphaInUse, Item(Json, 'contents', 'name', 'Planted.TAlpha').Int64s['blocks'],
        'TAlpha');
      Json.Free;
      Planted.Send(SIGCONT);
    end;
  finally
    Planted.Free;
  end;
end;

procedure TProcessTests.AProcessThatHoldsAllLocksIsRead;
var
  Planted: TPlanted;
  Json: TJSONObject;
begin
  Planted := TPlanted.Create('./Planted locked', '');
  try
    Json := CallForJson(Format('state %d --contents --json', [Planted.Id]));
    Same(Planted.Number('used'), Json.FindPath('totals.usedBytes').AsInt64, 'used');
    Same(AlphaInUse, Item(Json, 'contents', 'name', 'Planted.TAlpha').Int64s['blocks'], 'TAlpha');
    Json.Free;
  finally
    Planted.Free;
  end;
end;

procedure TProcessTests.AStrippedProgramIsRead;
var
  Planted: TPlanted;
  Json: TJSONObject;
begin
  // Without symbols and without a status page.
  Planted := TPlanted.Create('./PlantedStripped stop', 'LANEMM=live=0');
  try
    Planted.AwaitStop;
    Json := CallForJson(Format('state %d --contents --json', [Planted.Id]));
    Same(Planted.Number('used'), Json.FindPath('totals.usedBytes').AsInt64, 'used');
    Same(AlphaInUse, Item(Json, 'contents', 'name', 'Planted.TAlpha').Int64s['blocks'], 'TAlpha');
    Json.Free;
  finally
    Planted.Free;
  end;
end;

procedure TProcessTests.BlocksOfACProgramAreCounted;
var
  Planted: TPlanted;
  Json, Found: TJSONObject;
begin
  Planted := TPlanted.Create('./PlantedC', 'LD_PRELOAD=' + Root + 'build/lib/liblanemm.so');
  try
    Planted.AwaitStop;
    Json := CallForJson(Format('state %d --damage --json', [Planted.Id]));
    Found := Item(Json, 'classes', 'blockSize', '7168');
    Same(800, Found.Int64s['blocks'], 'blocks of 7,000 bytes');
    Same(5, Json.FindPath('large.blocks').AsInt64, 'large blocks');
    Same(0, Json.Arrays['damage'].Count, 'damage');
    Json.Free;
  finally
    Planted.Free;
  end;
end;

procedure TProcessTests.ARealCProgramIsRead;
var
  Planted: TPlanted;
  Json: TJSONObject;
begin
  Planted := TPlanted.Create('python3 -c "' + 'x = [bytes(5000) for i in range(2000)]; import '
    + 'os, signal; print(''ready 1'', flush=True); os.kill(os.getpid(), signal.SIGSTOP)"',
    'LD_PRELOAD=' + Root + 'build/lib/liblanemm.so');
  try
    Planted.AwaitStop;
    Json := CallForJson(Format('state %d --contents --damage --json', [Planted.Id]));
    AtLeast(2000, Item(Json, 'classes', 'blockSize', '5120').Int64s['blocks'], 'blocks');
    AtMost(2100, Item(Json, 'classes', 'blockSize', '5120').Int64s['blocks'], 'blocks');
    Same(0, Json.Arrays['damage'].Count, 'damage');
    Json.Free;
  finally
    Planted.Free;
  end;
end;

initialization
  RegisterTest(TStoppedTests);
  RegisterTest(TStoppedDebugTests);
  RegisterTest(TProcessTests);
end.
