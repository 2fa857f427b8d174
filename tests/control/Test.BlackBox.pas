/// Tests of LaneMM.BlackBox: what a program that is killed leaves, on each system.
unit Test.BlackBox;

{$mode delphi}{$H+}

interface

uses
  LaneMM.BoxFormat, Test.Tools;

type
  TBlackBoxTests = class(TLaneTest)
  strict private
    function BoxOf: PBox;
  published
    procedure KilledProgramLeavesAWholeState;
    procedure KilledProgramLeavesItsLastEvents;
    procedure ProgramThatEndsWellLeavesNone;
    procedure ProgramThatFailsLeavesItsExitCode;
    procedure LargestRegionIsTheFirst;
  end;

implementation

uses
  SysUtils, Classes, testregistry, fpJson, jsonParser, Test.Programs;

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
function TBlackBoxTests.BoxOf: PBox;
var
  Files: TStringList;
  Source: TFileStream;
begin
  Files := Program_.FilesOf('.lanebox');
  AssertEquals('files; ' + Program_.Errors, 1, Files.Count);
  Source := TFileStream.Create(Files[0], fmOpenRead);
  New(Result);
  AssertEquals('bytes', BoxBytes, Source.Read(Result^, BoxBytes));
  Source.Free;
  AssertEquals(BoxMagic, string(Result^.Head.Magic));
  AssertEquals('version', BoxLayout, Integer(Result^.Head.Layout));
end;

// Returns the last state, or nil.
function StateOf(Box: PBox): TJSONObject;
var
  Index: Integer;
  Best: UInt64;
  Text: string;
begin
  Text := '';
  Best := 0;
  for Index := 0 to High(Box^.Halves) do
    if (Box^.Halves[Index].Mark.Number > Best)
      and (TextOf(Box^.Halves[Index].Mark, BoxTextBytes) <> '') then
    begin
      Best := Box^.Halves[Index].Mark.Number;
      Text := TextOf(Box^.Halves[Index].Mark, BoxTextBytes);
    end;
  Result := GetJSON(Text) as TJSONObject;
end;

procedure TBlackBoxTests.KilledProgramLeavesAWholeState;
var
  Box: PBox;
  State: TJSONObject;
begin
  Program_.Run(Boxed, ['kill']);
  Box := BoxOf;
  State := StateOf(Box);
  Has('kill', State.Objects['head'].Get('command', ''));
  Same(-1, State.Objects['head'].Get('exit_code', -1), 'no exit code');
  AssertTrue('threads', State.Objects['heap'].Get('threads', 0) > 0);
  State.Free;
  Dispose(Box);
end;

procedure TBlackBoxTests.KilledProgramLeavesItsLastEvents;
var
  Box: PBox;
begin
  Program_.Run(Boxed + ',limit:soft=1M', ['kill']);
  Box := BoxOf;
  Has('Soft memory limit exceeded: ', TextOf(Box^.Events[1].Mark, BoxEventTextBytes));
  AssertEquals('', TextOf(Box^.Events[2].Mark, BoxEventTextBytes));
  Dispose(Box);
end;

procedure TBlackBoxTests.ProgramThatEndsWellLeavesNone;
begin
  Program_.Run(Boxed, ['end']);
  Program_.EndedWith(0);
  AssertEquals('', Program_.Written('.lanebox'));
end;

procedure TBlackBoxTests.ProgramThatFailsLeavesItsExitCode;
var
  Box: PBox;
  State: TJSONObject;
begin
  Program_.Run(Boxed, ['end', '3']);
  Program_.EndedWith(3);
  Box := BoxOf;
  State := StateOf(Box);
  Same(3, State.Objects['head'].Get('exit_code', -1), 'exit code');
  AssertTrue('bytes in use', State.Objects['heap'].Get('used', 0) > 4000000);
  State.Free;
  Dispose(Box);
end;

// It was made before all others, of which the box has space for some.
procedure TBlackBoxTests.LargestRegionIsTheFirst;
var
  Box: PBox;
  State: TJSONObject;
begin
  Program_.Run(Boxed, ['regions']);
  Program_.EndedWith(3);
  Box := BoxOf;
  State := StateOf(Box);
  Same(32, State.Arrays['regions'].Count, 'regions');
  AssertEquals('large', State.Arrays['regions'].Objects[0].Get('name', ''));
  AtLeast(4000000, State.Arrays['regions'].Objects[0].Get('committed', Int64(0)), 'its memory');
  State.Free;
  Dispose(Box);
end;

initialization
  RegisterTest(TBlackBoxTests);
end.
