/// Tests of LaneMM.BlackBox: what a program that is killed leaves, on each system.
unit Test.BlackBox;

{$mode delphi}{$H+}

interface

uses
  fpJson, LaneMM.BoxFormat, Test.Tools;

type
  TBlackBoxTests = class(TLaneTest)
  strict private
    Box: PBox;
    State: TJSONObject;
    procedure ReadBox;
    procedure ReadState;
  protected
    procedure TearDown; override;
  published
    procedure KilledProgramLeavesAWholeState;
    procedure KilledProgramLeavesItsLastEvents;
    procedure ProgramThatEndsWellLeavesNone;
    procedure ProgramThatFailsLeavesItsExitCode;
    procedure LargestRegionIsTheFirst;
  end;

implementation

uses
  SysUtils, Classes, testregistry, jsonParser, Test.Programs;

function Program_: TTestProgram;
begin
  Result := TestProgram('Boxed');
end;

// The setting, with a file that the next run deletes.
function Boxed: string;
begin
  Result := 'blackbox="' + ChangeFileExt(Program_.ReportedPath, '') + '_MemoryManager_Box"';
end;

// Returns the text of a part; '' for one that is not whole.
function TextOf(const Mark: TBoxMark; Most: NativeUInt): string;
begin
  Result := '';
  if (Mark.Number <> 0) and (Mark.Length <= Most) and (BoxChecksum(Mark, Mark.Number) = Mark.Checksum) then
    SetString(Result, PAnsiChar(@Mark) + SizeOf(Mark), Mark.Length);
end;

// Reads the file of the last run; fails without one.
procedure TBlackBoxTests.ReadBox;
var
  Files: TStringList;
  Source: TFileStream;
begin
  Files := Program_.FilesOf('.lanebox');
  AssertEquals('files; ' + Program_.Errors, 1, Files.Count);
  Source := TFileStream.Create(Files[0], fmOpenRead);
  New(Box);
  AssertEquals('bytes', BoxBytes, Source.Read(Box^, BoxBytes));
  Source.Free;
  AssertEquals(BoxMagic, string(Box^.Head.Magic));
  AssertEquals('version', BoxLayout, Integer(Box^.Head.Layout));
end;

procedure TBlackBoxTests.TearDown;
begin
  FreeAndNil(State);
  if Box <> nil then
    Dispose(Box);
  Box := nil;
  inherited TearDown;
end;

// Reads the file of the last run, and its last state.
procedure TBlackBoxTests.ReadState;
var
  Index: Integer;
  Best: UInt64;
  Text: string;
begin
  ReadBox;
  Text := '';
  Best := 0;
  for Index := 0 to High(Box^.Halves) do
    if (Box^.Halves[Index].Mark.Number > Best)
      and (TextOf(Box^.Halves[Index].Mark, BoxTextBytes) <> '') then
    begin
      Best := Box^.Halves[Index].Mark.Number;
      Text := TextOf(Box^.Halves[Index].Mark, BoxTextBytes);
    end;
  State := GetJSON(Text) as TJSONObject;
end;

procedure TBlackBoxTests.KilledProgramLeavesAWholeState;
begin
  Program_.Run(Boxed, ['kill']);
  ReadState;
  Has('kill', State.Objects['head'].Get('command', ''));
  Same(-1, State.Objects['head'].Get('exit_code', -1), 'no exit code');
  AssertTrue('threads', State.Objects['heap'].Get('threads', 0) > 0);
end;

procedure TBlackBoxTests.KilledProgramLeavesItsLastEvents;
begin
  Program_.Run(Boxed + ',limit:soft=1M', ['kill']);
  ReadBox;
  Has('Soft memory limit exceeded: ', TextOf(Box^.Events[1].Mark, BoxEventTextBytes));
  AssertEquals('', TextOf(Box^.Events[2].Mark, BoxEventTextBytes));
end;

procedure TBlackBoxTests.ProgramThatEndsWellLeavesNone;
begin
  Program_.Run(Boxed, ['end']);
  Program_.EndedWith(0);
  AssertEquals('', Program_.Written('.lanebox'));
end;

procedure TBlackBoxTests.ProgramThatFailsLeavesItsExitCode;
begin
  Program_.Run(Boxed, ['end', '3']);
  Program_.EndedWith(3);
  ReadState;
  Same(3, State.Objects['head'].Get('exit_code', -1), 'exit code');
  AssertTrue('bytes in use', State.Objects['heap'].Get('used', 0) > 4000000);
end;

// It was made before all others, of which the box has space for some.
procedure TBlackBoxTests.LargestRegionIsTheFirst;
begin
  Program_.Run(Boxed, ['regions']);
  Program_.EndedWith(3);
  ReadState;
  Same(32, State.Arrays['regions'].Count, 'regions');
  AssertEquals('large', State.Arrays['regions'].Objects[0].Get('name', ''));
  AtLeast(4000000, State.Arrays['regions'].Objects[0].Get('committed', Int64(0)), 'its memory');
end;

initialization
  RegisterTest(TBlackBoxTests);
end.
