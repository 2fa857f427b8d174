/// Tests of what a child process after fork reports as leaks at its end.
unit Test.ForkedLeaks;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TForkedLeaksTests = class(TLaneTest)
  strict private
    procedure ExpectSilence(const Settings, What: string);
    procedure ExpectOwnLeaks(const What: string; Count: Integer; const Mark: string);
  published
    procedure ChildWithoutBlocksOfItsOwnReportsNothing;
    procedure ChildThatFreesItsBlocksReportsNothing;
    procedure ChildReportsItsOwnBlocksAlone;
    procedure BlockThatAnInheritedOneRefersToIsALeakOfTheChild;
    procedure ThreadOfTheChildIsNamedNotThatOfTheParent;
    procedure ChildWithLeaksReportsThemWithoutNumbersToo;
  end;

implementation

uses
  SysUtils, StrUtils, testregistry, Test.Programs;

var
  Forked: TTestProgram;

procedure RunForked(const Settings, What: string);
begin
  if Forked = nil then
    Forked := TTestProgram.Create('ForkedLeaks', '-O1 -gl -Xs-');
  Forked.Run(Settings, [What]);
  Forked.EndedWith(0, Settings + ' ' + What);
end;

const
  WithNumbers: array[0..2] of string = ('leaks,stacks', 'leaks,debug', 'leaks,stacks,debug');

procedure TForkedLeaksTests.ExpectSilence(const Settings, What: string);
begin
  RunForked(Settings + ',quiet=0,leaks:exit=9', What);
  AssertEquals(Settings, '', Forked.Errors);
end;

procedure TForkedLeaksTests.ExpectOwnLeaks(const What: string; Count: Integer; const Mark: string);
const
  Head = 'Memory leaks: ';
  OwnSize = 700;
var
  Settings, Blocks: string;
begin
  Blocks := Format('%.0n block%s', [1.0 * Count, Copy('s', 1, Ord(Count > 1))]);
  for Settings in WithNumbers do
  begin
    RunForked(Settings, What);
    Same(Pos(Head, Forked.Errors), RPos(Head, Forked.Errors), 'one report');
    Has(Format(Head + '%s, %.0n bytes:', [Blocks, 1.0 * Count * OwnSize]), Forked.Errors);
    Has(Format('ForkedLeaks.lpr:%d', [Forked.PlantedLine(Mark)]), Forked.Errors);
  end;
end;

procedure TForkedLeaksTests.ChildWithoutBlocksOfItsOwnReportsNothing;
var
  Settings: string;
begin
  ExpectSilence('leaks', 'none');
  for Settings in WithNumbers do
    ExpectSilence(Settings, 'none');
end;

procedure TForkedLeaksTests.ChildThatFreesItsBlocksReportsNothing;
var
  Settings: string;
begin
  ExpectSilence('leaks', 'freed');
  for Settings in WithNumbers do
    ExpectSilence(Settings, 'freed');
end;

procedure TForkedLeaksTests.ChildReportsItsOwnBlocksAlone;
begin
  ExpectOwnLeaks('own', 2000, 'leak of the child');
end;

procedure TForkedLeaksTests.BlockThatAnInheritedOneRefersToIsALeakOfTheChild;
begin
  ExpectOwnLeaks('inherited', 1, 'leak in a block of the parent');
end;

procedure TForkedLeaksTests.ThreadOfTheChildIsNamedNotThatOfTheParent;
const
  Head = 'process ';
var
  Settings, Child: string;
begin
  for Settings in WithNumbers do
  begin
    RunForked(Settings, 'inherited');
    Child := Copy(Forked.Errors, Pos(Head, Forked.Errors) + Length(Head));
    Child := Copy(Child, 1, Pos(',', Child) - 1);
    Has(Format(' by thread %s, at'#10, [Child]), Forked.Errors);
  end;
end;

// With those that it inherited: nothing tells them apart.
procedure TForkedLeaksTests.ChildWithLeaksReportsThemWithoutNumbersToo;
begin
  RunForked('leaks', 'own');
  Has('Memory leaks: 5,0', Forked.Errors);
end;

initialization
  RegisterTest(TForkedLeaksTests);
finalization
  Forked.Free;
end.
