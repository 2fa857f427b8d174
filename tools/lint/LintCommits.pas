/// The subjects of commits.
unit LintCommits;

{$mode delphi}{$H+}

interface

uses
  LintReport;

/// Checks the subjects of the commits of the repository in Root; nothing where there is none.
procedure CheckCommits(const Root: string; Report: TReport);

implementation

uses
  SysUtils, Process;

const
  MaxSubject = 72;
  // Commits up to this one are older than the rule; where it is unknown, all are checked.
  LastUnchecked = '092dc7c2682f81e0f9d03a8cec1b8bd0c9ce4841';
  // Between hash and subject.
  Separator = #9;

function Git(const Root: string; const Arguments: array of string; out Output: string): Boolean;
var
  Command: TStringArray;
  Index: Integer;
begin
  SetLength(Command, Length(Arguments) + 2);
  Command[0] := '-C';
  Command[1] := Root;
  for Index := 0 to High(Arguments) do
    Command[Index + 2] := Arguments[Index];
  Output := '';
  try
    Result := RunCommand('git', Command, Output, [poStderrToOutPut]);
  except
    on EProcess do
      Result := False;
  end;
end;

procedure CheckCommits(const Root: string; Report: TReport);
var
  Output, Line, Range: string;
  Parts: TStringArray;
begin
  // A directory, or a file in a work tree of its own.
  if not (DirectoryExists(Root + '.git') or FileExists(Root + '.git')) then
    Exit;
  Range := 'HEAD';
  if Git(Root, ['cat-file', '-e', LastUnchecked], Output) then
    Range := LastUnchecked + '..HEAD';
  if not Git(Root, ['log', '--format=%h' + Separator + '%s', Range], Output) then
  begin
    Report.AddCommit('HEAD', 'git log failed: ' + Trim(Output));
    Exit;
  end;
  for Line in Output.Split([#10]) do
  begin
    Parts := Line.Split([Separator], 2);
    if (Length(Parts) = 2) and (Length(UTF8Decode(Parts[1])) > MaxSubject) then
      Report.AddCommit(Parts[0], Format('subject longer than %d characters', [MaxSubject]));
  end;
end;

end.
