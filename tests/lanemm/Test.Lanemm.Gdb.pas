/// Tests of tools/lanemm-gdb.py: its printers and commands in gdb, and what docs/debugger.md gives to
/// VS Code.
unit Test.Lanemm.Gdb;

{$mode delphi}{$H+}

interface

uses
  Test.Lanemm.Tools;

type
  /// Shown.lpr in gdb, with the debug information of -gw2, which -g writes, and of -gw3.
  TGdbTests = class(TLanemmTest)
  private
    function Debug(const Environment, Target: string; const Commands: array of string): string;
    function AtStop(const Environment, Name: string; const Commands: array of string): string;
    function Core: string;
    procedure ShowsAll(const Name: string);
    procedure KnowsBlocks(const Text: string);
  protected
    procedure TearDown; override;
  published
    procedure PrintersShowWhatVariablesHold;
    procedure FrontEndsShowClassesOfObjects;
    procedure CommandsReadAProcess;
    procedure CommandsReadACoreFile;
    procedure WhereTheSystemRefusesACoreFileIsRead;
    procedure WithoutTheToolPrintersWork;
    procedure WhatIsMissingIsNamed;
    procedure TheMatcherOfThePageFindsLinesOfReports;
  end;

implementation

uses
  SysUtils, Classes, RegExpr, testregistry;

const
  OnPath = 'PATH=..:$PATH';
  WithDebug = OnPath + ' LANEMM=debug,quiet';

function TGdbTests.Core: string;
begin
  Result := Built + 'shown.core';
end;

procedure TGdbTests.TearDown;
begin
  DeleteFile(Core);
  inherited TearDown;
end;

// Runs gdb on Target, arguments of its command line; returns what it prints.
function TGdbTests.Debug(const Environment, Target: string; const Commands: array of string): string;
var
  Script: TStringList;
begin
  Needs('gdb -batch -nx -ex run --args true | grep "exited normally"', 'debugger');
  Script := TStringList.Create;
  Script.Add('source ' + Root + 'tools/lanemm-gdb.py');
  Script.AddStrings(Commands);
  Script.SaveToFile(Built + 'shown.gdb');
  Script.Free;
  Result := Shell(Format('%s gdb -batch -nx -x shown.gdb %s < /dev/null', [Environment, Target]));
end;

// The same of Shown, where it has all its values.
function TGdbTests.AtStop(const Environment, Name: string; const Commands: array of string): string;
var
  All: TArray<string>;
  Line: string;
begin
  Line := Trim(Shell('grep -n "Reference.Rename" ../../tests/lanemm/Shown.lpr | cut -d: -f1'));
  All := ['set pagination off', 'break Shown.lpr:' + Line, 'run'];
  for Line in Commands do
    Insert(Line, All, Length(All));
  Result := Debug(Environment, Name, All);
end;

// In fields of -gw3 gdb itself shows other bytes.
procedure TGdbTests.ShowsAll(const Name: string);
const
  Shown: array[0..14, 0..1] of string = (('Text', '''Hello, 0 ''''worlds'''''''), ('Empty', ''''''),
    ('Wide', '''Grüße0'''), ('Numbers', 'array of 3 = {0, 7, 0}'),
    ('Names', 'array of 2 = {''11'', ''Hello, 0 ''''worlds''''''}'), ('Fixed', '{1, 2, 3}'),
    ('List', 'TStringList at 0x1 = {''alpha'', ''beta'' TStringList at 0x1}'),
    ('Items', 'TList at 0x1 = {TStringList at 0x1, nil}'),
    ('Hash', 'TFPHashList at 0x1 = {''key'' TList at 0x1}'), ('Named', 'TNamed at 0x1'),
    ('Reference', 'TNamed at 0x1'), ('Untyped', 'TNamed at 0x1'), ('Named.Name', '''name of 1'''),
    ('Named.Inner', 'nil'), ('Missing', 'nil'));
var
  Commands: TArray<string>;
  Printed: string;
  Index: Integer;
begin
  Commands := nil;
  for Index := 0 to High(Shown) do
  begin
    Insert('echo \n' + Shown[Index, 0] + ' is:', Commands, Length(Commands));
    Insert('output ' + Shown[Index, 0], Commands, Length(Commands));
  end;
  Insert('echo \n', Commands, Length(Commands));
  Printed := ReplaceRegExpr('0x[0-9a-f]+', AtStop(OnPath, Name, Commands), '0x1', False);
  Printed := ReplaceRegExpr('warning: can.t find linker symbol [^\n]*\n', Printed, '', False); // gdb's own
  for Index := 0 to High(Shown) do
    Has(#10 + Shown[Index, 0] + ' is:' + Shown[Index, 1] + #10, Printed);
end;

procedure TGdbTests.PrintersShowWhatVariablesHold;
begin
  ShowsAll('Shown2');
  ShowsAll('Shown3');
end;

// The value that VS Code shows.
procedure TGdbTests.FrontEndsShowClassesOfObjects;
begin
  Has('value="TNamed at 0x', AtStop(OnPath, 'Shown2', ['interpreter-exec mi "-enable-pretty-printing"',
    'interpreter-exec mi "-var-create shown * Reference"']));
end;

procedure TGdbTests.KnowsBlocks(const Text: string);
begin
  Has('contents: Shown.TNamed', Text);
  Has('allocated by thread', Text);
  Has('    SHOWN.FORGET  Shown.lpr:', Text);
  Has('freed by thread', Text);
  Has('  variable SHOWN.TEXT, to byte 24', Text);
  Has('variable SHOWN.HASH'#10'-> Contnrs.TFPHashList at $', Text);
  Has('1  Shown.TNamed', Text);
  HasNot('A span is a run of pages', Text); // of other tables
  Has('overrun', Text);
end;

procedure TGdbTests.CommandsReadAProcess;
var
  Text: string;
begin
  Text := AtStop(WithDebug, 'Shown2', ['lanemm at Named', 'lanemm at Freed', 'lanemm who Text', 'lanemm why Hash',
    'lanemm classes', 'lanemm check', 'lanemm leaks', 'lanemm threads']);
  KnowsBlocks(Text);
  Has('nothing points to', Text);
  Has('Shown.TForgotten', Text);
  Has('runs at Shown.lpr:', Text);
end;

// The core file is one that gdb writes.
procedure TGdbTests.CommandsReadACoreFile;
var
  Text: string;
begin
  AtStop(WithDebug, 'Shown2', ['generate-core-file ' + Core]);
  Check(FileExists(Core), 'gdb wrote a file');
  Text := Debug(OnPath, 'Shown2 ' + Core, ['lanemm at Named', 'lanemm at Freed', 'lanemm who Text',
    'lanemm why Hash', 'lanemm classes', 'lanemm check', 'lanemm leaks', 'output Names']);
  KnowsBlocks(Text);
  Has('Shown.TForgotten', Text);
  Has('array of 2 = {''11'', ', Text);
end;

procedure TGdbTests.WhereTheSystemRefusesACoreFileIsRead;
begin
  Shell('mkdir -p refused && printf ''#!/bin/sh\ncase $2 in [0-9]*) exit 5 ;; esac\nexec ../lanemm "$@"\n'''
    + ' > refused/lanemm && chmod 755 refused/lanemm');
  Has('contents: Shown.TNamed', AtStop('PATH=refused:$PATH', 'Shown2', ['lanemm at Named']));
end;

procedure TGdbTests.WithoutTheToolPrintersWork;
var
  Text: string;
begin
  Text := AtStop('PATH=/usr/bin:/bin', 'Shown2', ['lanemm at List', 'python FOLDER = "/none"',
    'output List', 'lanemm at List']);
  Has('contents: Classes.TStringList', Text); // by that of the repository
  Has('TStringList at 0x', Text);
  Has('the tool lanemm is not installed: `make install`', Text);
end;

procedure TGdbTests.WhatIsMissingIsNamed;
begin
  Has('there is no process and no core file', Debug(OnPath, 'Shown2', ['lanemm check']));
  Has('an expression is missing', Debug(OnPath, 'Shown2', ['lanemm at']));
end;

procedure TGdbTests.TheMatcherOfThePageFindsLinesOfReports;
begin
  Has('warning SHOWN.FORGET Shown.lpr:', Shell('LANEMM=debug,leaks ./Shown2 2>&1 | python3'
    + ' ../../tests/lanemm/matcher.py ../../docs/debugger.md'));
  Same(0, ExitStatus, 'exit code');
end;

initialization
  RegisterTest(TGdbTests);
end.
