/// Cases of settings: LANEMM, HEAPTRC, the settings file and a file of suppressions, all at once.
unit FuzzSettings;

{$mode delphi}{$H+}

interface

/// Reads the names of all settings from the help of the program in Path.
procedure SettingsPrepare(const Path: string);
/// Makes one case and runs the program; returns what went wrong, or ''.
function SettingsCase: string;

implementation

uses
  SysUtils, Classes, StrUtils, BaseUnix, FuzzCases;

const
  SettingsFile = '.lanemm';
  IgnoreFile = 'ignored';

var
  Target: string;
  Words: TStringList;          // `name=KIND`, as LANEMM=help shows them
  Variables: TStringList;      // of the case

procedure RunTarget;
var
  Environment: array of PAnsiChar;
  Arguments: array[0..1] of PAnsiChar;
  Index: Integer;
begin
  SetLength(Environment, Variables.Count + 1);
  for Index := 0 to Variables.Count - 1 do
    Environment[Index] := PAnsiChar(Variables[Index]);
  Environment[Variables.Count] := nil;
  Arguments[0] := PAnsiChar(Target);
  Arguments[1] := nil;
  FpChDir(Scratch);
  FpDup2(FpOpen('out', O_CREAT or O_TRUNC or O_WRONLY, &644), 1);
  FpDup2(FpOpen('errors', O_CREAT or O_TRUNC or O_WRONLY, &644), 2);
  FpExecVE(Target, @Arguments, @Environment[0]);
  EndChild(127);
end;

procedure SettingsPrepare(const Path: string);
var
  Child, Index: Integer;
  Lines: TStringList;
begin
  Target := Path;
  DeleteFile(Target + SettingsFile);
  Variables := TStringList.Create;
  Variables.Add('LANEMM=help');
  Child := StartChild;
  if Child = 0 then
    RunTarget;
  AwaitChild(Child);
  Variables.Free;
  Lines := TStringList.Create;
  Lines.LoadFromFile(Scratch + 'errors');
  Words := TStringList.Create;
  for Index := 0 to Lines.Count - 1 do
    if StartsStr('  ', Lines[Index]) then
      Words.Add(ExtractWord(1, Lines[Index], [' ']));
  Lines.Free;
  if Words.Count < 20 then
    raise Exception.Create('LANEMM=help lists too few settings');
end;

function SomeNumber: string;
begin
  case Random.Below(4) of
    0: Result := OneOf(['0', '1', '2', '255', '256', '65536', '4294967295', '4294967296',
         '18446744073709551615', '18446744073709551616', '99999999999999999999999999']);
    1: Result := IntToStr(Random.Below(64));
  else
    Result := IntToStr(Random.Below(100000));
  end;
  if Random.Below(3) = 0 then
    Result := Result + OneOf(['K', 'M', 'G', 'k', 'T', 'KK', '-', '-1', '-200K']);
end;

function SomeRule: string;
var
  Index: Integer;
begin
  Result := OneOf(['all', 'leaks', 'double-free', 'invalid-free', 'write-before', 'write-after',
    'write-after-free', 'limit', 'mix', 'allocation', 'guard', 'number', 'none']);
  for Index := 0 to Random.Below(5) do
    Result := Result + ':' + OneOf(['file', 'stderr', 'callback', 'off', 'once', 'always', 'halt=3',
      'continue', 'halt=', 'halt=999', '', 'x']);
end;

function SomeValue: string;
begin
  case Random.Below(9) of
    0: Result := SomeRule;
    1: Result := OneOf(['always', 'free', 'return', 'pages', 'sample:100', 'sample:', 'json', 'junit',
         'heaptrc', '7E', '00', 'GG']);
    2: Result := OneOf(['a', '.', '..', 'nowhere', StringOfChar('p', 300), StringOfChar('p', 3000)]);
    3: Result := OneOf(['TNode', '*', '*T*N*o*d*e*', DupeString('*a', 300), '']);
  else
    Result := SomeNumber;
  end;
end;

function SomeWord: string;
begin
  Result := Words[Random.Below(Words.Count)];
  if Pos('=', Result) > 0 then
    Result := Copy(Result, 1, Pos('=', Result)) + SomeValue
  else if Random.Below(8) = 0 then
    Result := Result + '=' + SomeValue;
  if Random.Below(4) = 0 then
    Result := Damaged(Result);
end;

function SomeWords(Most: Integer): string;
var
  Index: Integer;
begin
  if Random.Below(12) = 0 then
    Exit(RandomText(1 shl Random.Below(13)));
  Result := SomeWord;
  for Index := 1 to Random.Below(Most) do
    Result := Result + OneOf([',', ',', ' ', #10, ',,', #9, #13#10, '#', ';']) + SomeWord;
  if Random.Below(8) = 0 then
    Result := Damaged(Result);
end;

function SomeSuppression: string;
begin
  Result := OneOf(['class ', 'routine ', 'Class'#9, '# ', 'class', '  routine   '])
    + OneOf(['TNode', '*', 't*e', '*main*', DupeString('*e', 250), DupeString('x', 600), 'LANEMM.*',
    '', RandomText(20)]);
  if Random.Below(4) = 0 then
    Result := Damaged(Result);
end;

function SomeSuppressions: string;
var
  Index: Integer;
begin
  if Random.Below(10) = 0 then
    Exit(RandomText(Random.Below(5000)));
  Result := '';
  for Index := 0 to Random.Below(12) do
    Result := Result + SomeSuppression + OneOf([#10, #10, #13#10, #0#10, '']);
  if Random.Below(6) = 0 then
    SetLength(Result, 4096 + Length(Result) * 0); // a whole page: nothing ends the last line
end;

function SomeHeapTrc: string;
begin
  Result := OneOf(['disabled', 'keepreleased', 'haltonnotreleased', 'log=trc', 'nohalt',
    'tail_size=10', 'log=', 'log=' + StringOfChar('h', 2000)])
    + ' ' + OneOf(['', 'skipifnoleaks', 'keepreleased disabled', RandomText(30)]);
  if Random.Below(4) = 0 then
    Result := Damaged(Result);
end;

// A limit that is set may end the program without memory; nothing else may.
function RunTimeError(const Errors, Settings: string): string;
var
  Place: Integer;
begin
  Result := '';
  Place := Pos('Runtime error ', Errors);
  if Place = 0 then
    Exit;
  Result := Copy(Errors, Place, 17);
  if (Result = 'Runtime error 203') and (Pos('limit', LowerCase(Settings)) > 0) then
    Result := '';
end;

function SettingsCase: string;
var
  Settings, FileWords: string;
  Outcome: TOutcome;
  Child: Integer;
begin
  Variables := TStringList.Create;
  Settings := SomeWords(6);
  if Random.Below(2) = 0 then
    Settings := Settings + ',leaks,leaks:ignore=' + IgnoreFile;
  Variables.Add('LANEMM=' + Settings);
  if Random.Below(3) = 0 then
    Variables.Add('HEAPTRC=' + SomeHeapTrc);
  FileWords := '';
  DeleteFile(Target + SettingsFile);
  if Random.Below(3) = 0 then
  begin
    FileWords := SomeWords(10);
    WriteBytes(Target + SettingsFile, FileWords);
  end;
  WriteBytes(Scratch + IgnoreFile, SomeSuppressions);
  Child := StartChild;
  if Child = 0 then
    RunTarget;
  Outcome := AwaitChild(Child);
  Result := Complaint(Outcome);
  if (Result = '') and (WExitStatus(Outcome.Status) = 127) then
    Result := 'the program cannot be started';
  if Result = '' then
    Result := RunTimeError(ReadBytes(Scratch + 'errors'), Settings + FileWords);
  if Result <> '' then
    Result := Result + ', ' + LeftStr(StringReplace(Variables.Text, #10, '\n', [rfReplaceAll]), 2000)
      + ' file: ' + LeftStr(FileWords, 500);
  Variables.Free;
end;

end.
