/// Tests of `lanemm blackbox` and `lanemm ps --dead` on boxes that are made here. tests/boxes has those of programs.
unit Test.Lanemm.Boxes;

{$mode delphi}{$H+}

interface

uses
  Test.Lanemm.Tools;

type
  /// Boxes of a process that has ended; the frame of their call sites is a routine of Planted.
  TBoxTests = class(TPlantedTest)
  private
    procedure WriteBox(const Name, State: string);
    function Site(const Class_: string; Bytes, PeakBytes: Integer): string;
    function SentenceOf(const Sites: array of string): string;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure ACallSiteOfThePeakAloneIsOfNoClass;
    procedure CallSitesOfTwoClassesAreSaidToBe;
    procedure NothingIsSaidOfMemoryWhereNoneIsInUse;
    procedure ANameCannotControlTheTerminal;
    procedure AFolderThatIsNotThereIsAnError;
    procedure ATextThatIsNestedTooDeeplyIsDamaged;
    procedure BoxesThatCannotBeReadHideNoOthers;
    procedure AnEventWithADamagedNumberHidesNoOthers;
    procedure ABoxOfALivingProcessIsKnownByAnyPath;
  end;

implementation

uses
  SysUtils, StrUtils, Classes, testregistry, LaneMM.BoxFormat;

const
  EndedId = 4194303; // no process has this number
  StateForm = '{"head":{"command":"./Planted"},"heap":{"used":5000,"blocks":3,"committed":1048576,'
    + '"peak":1048576,"threads":1,"earlier_time":1000000000,"sampled_in_use":5000},"sites":[%s]}';

procedure TBoxTests.SetUp;
begin
  Shell('rm -rf made; mkdir made');
end;

procedure TBoxTests.TearDown;
begin
  inherited TearDown;
  Shell('rm -rf made');
end;

// Writes a box with one state.
procedure TBoxTests.WriteBox(const Name, State: string);
const
  Magic: PAnsiChar = BoxMagic;
var
  Box: PBox;
  Target: TFileStream;
begin
  New(Box);
  FillChar(Box^, SizeOf(Box^), 0);
  Move(Magic^, Box^.Head.Magic, SizeOf(Box^.Head.Magic));
  Box^.Head.Layout := BoxLayout;
  Box^.Head.HalfBytes := SizeOf(TBoxHalf);
  Box^.Head.ProcessId := EndedId;
  Box^.Halves[0].Mark.Number := 1;
  Box^.Halves[0].Mark.Seconds := 1000000000;
  Box^.Halves[0].Mark.Length := Length(State);
  Move(State[1], Box^.Halves[0].Text, Length(State));
  Box^.Halves[0].Mark.Checksum := BoxChecksum(Box^.Halves[0].Mark, 1);
  Target := TFileStream.Create(Built + 'made/' + Name, fmCreate);
  Target.WriteBuffer(Box^, SizeOf(Box^));
  Target.Free;
  Dispose(Box);
end;

// Returns a call site; without a class, as one that has no block in use any more.
function TBoxTests.Site(const Class_: string; Bytes, PeakBytes: Integer): string;
var
  Offset: string;
begin
  Offset := Trim(Shell('nm Planted | sed -n "s/^0*\(.*\) [Tt] .*MAKEBETAS.*/\1/p"'));
  AtLeast(1, Length(Offset), 'digits of ' + Offset);
  Result := Format('{"blocks":1,"bytes":%d,"peak_blocks":1,"peak_bytes":%d,"stack":["Planted+0x%s"]%s}',
    [Bytes, PeakBytes, Offset, IfThen(Class_ <> '', ',"class":"' + Class_ + '"', '')]);
end;

// Returns the first line about a box with these call sites.
function TBoxTests.SentenceOf(const Sites: array of string): string;
begin
  WriteBox('sites.lanebox', Format(StateForm, [string.Join(',', Sites)]));
  CallWell('blackbox made/sites.lanebox');
  Result := Printed.Split([#10])[0];
end;

procedure TBoxTests.ACallSiteOfThePeakAloneIsOfNoClass;
begin
  Has('; 80.0 % are Planted.TAlpha, allocated at Planted.lpr:', SentenceOf([Site('Planted.TAlpha', 4000, 4000),
    Site('', 0, 9000)]));
end;

procedure TBoxTests.CallSitesOfTwoClassesAreSaidToBe;
begin
  Has('; 100.0 % are blocks of several classes, allocated at Planted.lpr:',
    SentenceOf([Site('Planted.TAlpha', 4000, 4000), Site('Planted.TBeta', 1000, 1000)]));
end;

procedure TBoxTests.NothingIsSaidOfMemoryWhereNoneIsInUse;
begin
  AssertEquals('Killed at 1.0 MB; 1 thread.', SentenceOf([Site('', 0, 9000), Site('', 0, 8000)]));
end;

procedure TBoxTests.ANameCannotControlTheTerminal;
begin
  Has(' are ?[31mred, ', SentenceOf([Site('\u001b[31mred', 4000, 4000)]));
  HasNot(#27, Printed);
end;

procedure TBoxTests.AFolderThatIsNotThereIsAnError;
begin
  Refuses('ps --dead made/none', 1, 'there is no folder made/none');
end;

procedure TBoxTests.ATextThatIsNestedTooDeeplyIsDamaged;
begin
  WriteBox('deep.lanebox', '{"heap":' + StringOfChar('[', 100000));
  Refuses('blackbox made/deep.lanebox', 7, 'deep.lanebox is damaged: its text is no state of a process');
end;

// Nor is one of them waited for.
procedure TBoxTests.BoxesThatCannotBeReadHideNoOthers;
begin
  WriteBox('a.lanebox', '{"heap":{"used":1e99999}}');
  WriteBox('b.lanebox', '{"heap":' + StringOfChar('[', 100000));
  Shell('mkfifo made/c.lanebox; mkdir made/d.lanebox');
  WriteBox('e.lanebox', Format(StateForm, ['']));
  CallWell('ps --dead made');
  Has('made/b.lanebox is damaged', Printed);
  Has('made/c.lanebox is no black box', Printed);
  Has('made/d.lanebox is no black box', Printed);
  Has('  made/e.lanebox', Printed);
end;

// Adds the event that is whole, and one of which only the number is there.
procedure TBoxTests.AnEventWithADamagedNumberHidesNoOthers;
const
  Text: string = 'the event that is whole';
  Damaged: array[0..1] of UInt64 = (1000000, High(UInt64));
var
  Box: PBox;
  Source: TFileStream;
  Number: UInt64;
begin
  WriteBox('events.lanebox', Format(StateForm, ['']));
  New(Box);
  for Number in Damaged do
  begin
    Source := TFileStream.Create(Built + 'made/events.lanebox', fmOpenReadWrite);
    Source.ReadBuffer(Box^, SizeOf(Box^));
    Box^.Events[1].Mark.Number := 1;
    Box^.Events[1].Mark.Seconds := 1000000000;
    Box^.Events[1].Mark.Length := Length(Text);
    Move(Text[1], Box^.Events[1].Text, Length(Text));
    Box^.Events[1].Mark.Checksum := BoxChecksum(Box^.Events[1].Mark, 1);
    Box^.Events[2].Mark.Number := Number;
    Source.Position := 0;
    Source.WriteBuffer(Box^, SizeOf(Box^));
    Source.Free;
    Has(Text, Shell('timeout 20 ../lanemm blackbox made/events.lanebox'));
    AssertEquals('exit code', 0, ExitStatus);
  end;
  Dispose(Box);
end;

// Its first state is written within a second.
procedure TBoxTests.ABoxOfALivingProcessIsKnownByAnyPath;
var
  Look: Integer;
begin
  Shell('ln -s . made/linked');
  Start('./Planted churn', 'LANEMM=blackbox=' + Built + 'made/');
  Look := 0;
  repeat
    Inc(Look);
    Sleep(100);
    Call(Format('blackbox made/linked/Planted.%d.lanebox', [Planted.Id]));
  until (ExitStatus = 0) or (Look = 600);
  Has('Runs at ', Printed);
  CallWell('ps --dead made/linked');
  HasNot('lanebox', Printed);
end;

initialization
  RegisterTest(TBoxTests);
end.
