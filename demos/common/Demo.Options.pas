/// The command line of a demo: `--name=value` and `--name`.
//
// Every demo knows --manager=NAME, --csv and --help. A bad argument ends the program with
// exit code 2 and one line on the standard error.
unit Demo.Options;

{$mode delphi}{$H+}

interface

/// Reads the command line; ends the program after --help or a bad argument.
/// Names: what this demo knows besides, `count=` with and `fast` without a value.
/// Usage: what --help prints above the options that every demo has.
procedure OptionsRead(const Usage: string; const Names: array of string);

/// Returns whether --Name was given.
function OptionGiven(const Name: string): Boolean;

/// Returns the value of --Name=, or Default.
function OptionText(const Name, Default: string): string;

/// Returns the value of --Name=, or Default; ends the program unless it is in 1 .. Highest.
function OptionNumber(const Name: string; Default, Highest: Integer): Integer;

/// Says on the standard error what is wrong with the arguments, and ends the program.
procedure OptionFail(const Problem: string);

/// Returns the name of this program, without folder and extension.
function ProgramName: string;

implementation

uses
  SysUtils, Classes, StrUtils;

const
  CommonUsage =
    '  --manager=NAME  name of the memory manager in this build, for the first line'#10 +
    '  --csv           print lines key=value instead of a table'#10 +
    '  --help          print this text';

var
  Given: TStringList;

function ProgramName: string;
begin
  Result := ChangeFileExt(ExtractFileName(ParamStr(0)), '');
end;

procedure OptionFail(const Problem: string);
begin
  WriteLn(StdErr, ProgramName, ': ', Problem, '; --help lists the options');
  Halt(2);
end;

procedure OptionAdd(const Argument: string; const Names: array of string);
var
  Name: string;
begin
  Name := Copy(Argument, 3, Length(Argument));
  if Pos('=', Name) > 0 then
    Name := Copy(Name, 1, Pos('=', Name));
  if not StartsStr('--', Argument) or not
    (MatchStr(Name, Names) or MatchStr(Name, ['manager=', 'csv', 'help'])) then
    OptionFail('unknown argument ' + Argument);
  Given.Add(Copy(Argument, 3, Length(Argument)));
end;

procedure OptionsRead(const Usage: string; const Names: array of string);
var
  I: Integer;
begin
  for I := 1 to ParamCount do
    OptionAdd(ParamStr(I), Names);
  if OptionGiven('help') then
  begin
    WriteLn(Usage, CommonUsage);
    Halt(0);
  end;
end;

function OptionGiven(const Name: string): Boolean;
begin
  Result := Given.IndexOf(Name) >= 0;
end;

function OptionText(const Name, Default: string): string;
begin
  Result := Default;
  if Given.IndexOfName(Name) >= 0 then
    Result := Given.Values[Name];
end;

function OptionNumber(const Name: string; Default, Highest: Integer): Integer;
var
  Text: string;
begin
  Text := OptionText(Name, IntToStr(Default));
  if not TryStrToInt(Text, Result) or (Result < 1) or (Result > Highest) then
    OptionFail(Format('--%s=%s is not a whole number from 1 to %d', [Name, Text, Highest]));
end;

initialization
  Given := TStringList.Create;

finalization
  Given.Free;

end.
