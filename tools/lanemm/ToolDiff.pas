/// `lanemm diff`: what grew between two files.
unit ToolDiff;

{$mode delphi}{$H+}
{$I Comparers.inc}

interface

uses
  ToolCommands;

/// Shows the differences of two files, largest growth first.
procedure RunDiff(Arguments: TArguments);

const
  DiffCommand: TCommand = (
    Name: 'diff';
    Usage: 'BEFORE AFTER [OPTIONS]';
    Help: 'Shows what grew between two states, reports or profiles';
    Details: '  --most=N      at most N lines, 20 by default; 0: all'#10
      + '  --value=NAME  the values of a profile: inuse_space, alloc_space, ...'#10
      + '  --folded      stacks with both amounts, the input of a difference flame graph'#10
      + '  --format=NAME text, markdown, or junit: a test case, failed by too much growth'#10
      + '  --fail-over=N exit code 8 if the sum grew by more than N bytes (or 64K, 2M, 1G), or by'#10
      + '                more than N percent (5%)'#10
      + '  --each        exit code 8 also if a single name grew by more than that'#10#10
      + 'Both files must be of one kind: contents of blocks (JSON of `lanemm state PID --contents'#10
      + '--json`, or of an in-use report), leaks (JSON or pages of leak reports), size classes'#10
      + '(JSON of `lanemm state PID --json`), or call sites (profiles as pages, JSON, folded'#10
      + 'stacks, or for pprof).'#10;
    Options: 'most: value: folded format: fail-over: each';
    MostWords: 2;
    Run: RunDiff);

implementation

uses
  SysUtils, StrUtils, Math, Generics.Defaults, Generics.Collections, ProfileFiles, Targets,
  ToolText;

type
  TGrowth = record
    Name: string;
    Before, After: TAmount;
  end;
  TGrowths = TArray<TGrowth>;

  // What --fail-over allows.
  TLimit = record
    IsSet, IsPart: Boolean; // there is one; it is a part of the amount before
    Most: Double;           // bytes, or that part
    Text: string;           // as it was given
  end;

function Change(const Growth: TGrowth): Int64;
begin
  Result := Growth.After.Bytes - Growth.Before.Bytes;
end;

// Most growth first; the same by name.
function CompareGrowths(constref Left, Right: TGrowth): Integer;
begin
  Result := CompareValue(Change(Right), Change(Left));
  if Result = 0 then
    Result := CompareStr(Left.Name, Right.Name);
end;

// Returns all names of both with their amounts.
function Compare(Before, After: TAmounts): TGrowths;
var
  Growth: TGrowth;
  Name: string;
begin
  Result := nil;
  for Name in After.Keys do
  begin
    Growth := Default(TGrowth);
    Growth.Name := Name;
    Growth.After := After[Name];
    Before.TryGetValue(Name, Growth.Before);
    Insert(Growth, Result, Length(Result));
  end;
  for Name in Before.Keys do
    if not After.ContainsKey(Name) then
    begin
      Growth := Default(TGrowth);
      Growth.Name := Name;
      Growth.Before := Before[Name];
      Insert(Growth, Result, Length(Result));
    end;
  TArrayHelper<TGrowth>.Sort(Result, TComparer<TGrowth>.Construct(CompareGrowths));
end;

// Returns the index of the innermost frame to show: the routine that the innermost frame with a line
// calls, or the last one where none has a line.
function InnermostOf(const Frames: TStringArray): Integer;
begin
  Result := High(Frames);
  while (Result >= 0) and (Pos(#9, Frames[Result]) = 0) do
    Dec(Result);
  if (Result < 0) or (Result = High(Frames)) then
    Exit(High(Frames));
  Inc(Result);
end;

// Returns a stack with its innermost frames first, as many as a line shows.
function ShownName(const Name: string): string;
const
  MostFrames = 4;
var
  Frames: TStringArray;
  Index, Innermost: Integer;
begin
  Frames := Name.Split([';']);
  if Frames = nil then
    Exit('');
  Innermost := InnermostOf(Frames);
  Result := Frames[Innermost];
  for Index := Innermost - 1 downto 0 do
  begin
    if Index <= Innermost - MostFrames then
      Exit(Result + ' < ...');
    Result := Result + ' < ' + Frames[Index];
  end;
end;

function Signed(const Text: string; Value: Int64): string;
begin
  Result := Text;
  if Value > 0 then
    Result := '+' + Text;
end;

// The columns of a growth.
function Cells(const Growth: TGrowth): TStringArray;
var
  Blocks: Int64;
begin
  Blocks := Growth.After.Blocks - Growth.Before.Blocks;
  Result := [Signed(BytesText(Change(Growth)), Change(Growth)), Signed(Grouped(Blocks), Blocks),
    BytesText(Growth.Before.Bytes), BytesText(Growth.After.Bytes),
    Printable(ShownName(Growth.Name).Replace(#9, ' '))];
end;

// ---------------------------------------------------------------------------- limits

// Returns the limit behind --fail-over; raises ETool for what is none.
function ReadLimit(const Text: string): TLimit;
const
  Units = 'KMG%';
var
  Place: Integer;
begin
  Result := Default(TLimit);
  Result.Text := Text;
  if Text = '' then
    Exit;
  Result.IsSet := True;
  Place := Pos(UpCase(Text[Length(Text)]), Units);
  Result.IsPart := Place = Length(Units);
  if not TryStrToFloat(Copy(Text, 1, Length(Text) - Ord(Place > 0)), Result.Most)
    or IsNan(Result.Most) or (Result.Most < 0) then
    raise ETool.Create(ecUsage, '--fail-over needs a number of bytes as 4096, 64K, 2M, or of percent'
      + ' as 5%%, not `%s`', [Text]);
  if Result.IsPart then
    Result.Most := Result.Most / 100
  else
    Result.Most := Result.Most * IntPower(1024, Place);
end;

function IsOver(const Limit: TLimit; const Growth: TGrowth): Boolean;
var
  Most: Double;
begin
  Most := Limit.Most;
  if Limit.IsPart then
    Most := Most * Growth.Before.Bytes;
  Result := Limit.IsSet and (Change(Growth) > Most);
end;

function SumOf(const Growths: TGrowths): TGrowth;
var
  Growth: TGrowth;
begin
  Result := Default(TGrowth);
  Result.Name := 'all';
  for Growth in Growths do
  begin
    Inc(Result.Before.Bytes, Growth.Before.Bytes);
    Inc(Result.Before.Blocks, Growth.Before.Blocks);
    Inc(Result.After.Bytes, Growth.After.Bytes);
    Inc(Result.After.Blocks, Growth.After.Blocks);
  end;
end;

// Returns what a growth is, and whether that is more than the limit.
function Judgement(const Growth: TGrowth; const Limit: TLimit): string;
begin
  Result := Format('%s: %s', [Cells(Growth)[4], Cells(Growth)[0]]);
  if Growth.Before.Bytes > 0 then
    Result := Result + Format(' (%s)', [Percent(Change(Growth), Growth.Before.Bytes)]);
  if IsOver(Limit, Growth) then
    Result := Result + ', more than ' + Limit.Text
  else if Limit.IsSet then
    Result := Result + ', not more than ' + Limit.Text;
end;

// Returns those that are judged: the sum, before it with IsEach all that grew too much.
function Judged(const Growths: TGrowths; const Limit: TLimit; IsEach: Boolean): TGrowths;
var
  Growth: TGrowth;
begin
  Result := nil;
  if IsEach then
    for Growth in Growths do
      if IsOver(Limit, Growth) then
        Insert(Growth, Result, Length(Result));
  Insert(SumOf(Growths), Result, Length(Result));
end;

// ---------------------------------------------------------------------------- formats

// Returns the lines to show: the first Most that have changed, and the sum.
function Shown(const Growths: TGrowths; Most: Integer; out Hidden: Integer): TGrowths;
var
  Growth: TGrowth;
begin
  Result := nil;
  Hidden := 0;
  for Growth in Growths do
    if (Change(Growth) = 0) and (Growth.After.Blocks = Growth.Before.Blocks) then
      Continue
    else if (Most > 0) and (Length(Result) >= Most) then
      Inc(Hidden)
    else
      Insert(Growth, Result, Length(Result));
  Insert(SumOf(Growths), Result, Length(Result));
end;

const
  TableHead = '      change      blocks      before       after  what'#10;

function RowText(const Growth: TGrowth): string;
var
  Parts: TStringArray;
begin
  Parts := Cells(Growth);
  Result := Right(Parts[0], 12) + Right(Parts[1], 12) + Right(Parts[2], 12) + Right(Parts[3], 12)
    + '  ' + Parts[4] + #10;
end;

function TableText(const Growths: TGrowths; Most: Integer): string;
var
  Growth: TGrowth;
  Hidden: Integer;
begin
  Result := TableHead;
  for Growth in Shown(Growths, Most, Hidden) do
    Result := Result + RowText(Growth);
  if Hidden > 0 then
    Result := Result + Format('%d more have changed; --most=0 shows all'#10, [Hidden]);
end;

function MarkdownText(const Growths: TGrowths; Most: Integer): string;
var
  Growth: TGrowth;
  Parts: TStringArray;
  Hidden: Integer;
begin
  Result := #10'| change | blocks | before | after | what |'#10'|---:|---:|---:|---:|---|'#10;
  for Growth in Shown(Growths, Most, Hidden) do
  begin
    Parts := Cells(Growth);
    Parts[4] := '`' + Parts[4].Replace('|', '\|').Replace('`', '''') + '`';
    Result := Result + '| ' + string.Join(' | ', Parts) + ' |'#10;
  end;
  if Hidden > 0 then
    Result := Result + Format(#10'%d more have changed.'#10, [Hidden]);
end;

// A test case for each that is judged, in the form that continuous-integration servers read: the sum,
// which is the last, has the whole table, all others their rows.
function JunitText(const Growths, All: TGrowths; const Limit: TLimit; Most: Integer): string;
var
  Cases, Text: string;
  Index, Failures: Integer;
begin
  Cases := '';
  Failures := 0;
  for Index := 0 to High(All) do
  begin
    Cases := Cases + Format('    <testcase classname="lanemm.diff" name="%s">',
      [XmlText(Cells(All[Index])[4])]);
    if IsOver(Limit, All[Index]) then
    begin
      Inc(Failures);
      Text := TableHead + RowText(All[Index]);
      if Index = High(All) then
        Text := TableText(Growths, Most);
      Cases := Cases + Format('<failure type="growth" message="%s">%s</failure>',
        [XmlText(Judgement(All[Index], Limit)), XmlText(Text)]);
    end;
    Cases := Cases + '</testcase>'#10;
  end;
  Result := Format('<?xml version="1.0" encoding="UTF-8"?>'#10'<testsuites>'#10
    + '  <testsuite name="lanemm diff" tests="%d" failures="%d" errors="0" skipped="0">'#10'%s'
    + '  </testsuite>'#10'</testsuites>'#10, [Length(All), Failures, Cases]);
end;

procedure WriteFolded(const Growths: TGrowths);
var
  Growth: TGrowth;
begin
  for Growth in Growths do
    WriteLn(Growth.Name, ' ', Growth.Before.Bytes, ' ', Growth.After.Bytes);
end;

// Returns the differences of the two files that the arguments name.
function ReadGrowths(Arguments: TArguments): TGrowths;
var
  Before, After: TAmounts;
begin
  After := nil;
  Before := ReadAmounts(Arguments.Word(0, 'BEFORE'), Arguments.Value('value', ''));
  try
    After := ReadAmounts(Arguments.Word(1, 'AFTER'), Arguments.Value('value', ''));
    if Before.Kind <> After.Kind then
      raise ETool.Create(ecUsage, 'the files cannot be compared: %s has %s, %s has %s',
        [Arguments.Words[0], KindNames[Before.Kind], Arguments.Words[1], KindNames[After.Kind]]);
    // Folded stacks have no lines, nor has a program without line information; and lines move.
    if Arguments.Has('folded') or Arguments.Has('each') or (Before.HasLines <> After.HasLines)
      and (Before.Count > 0) and (After.Count > 0) then
    begin
      Before := WithoutLines(Before);
      After := WithoutLines(After);
    end;
    Result := Compare(Before, After);
  finally
    After.Free;
    Before.Free;
  end;
end;

procedure RunDiff(Arguments: TArguments);
const
  FormatNames: array[0..2] of string = ('text', 'markdown', 'junit');
var
  Growths, All: TGrowths;
  Limit: TLimit;
  Growth: TGrowth;
  Most, Kind: Integer;
begin
  Kind := IndexStr(Arguments.Value('format', FormatNames[0]), FormatNames);
  if Kind < 0 then
    raise ETool.Create(ecUsage, '--format needs text, markdown or junit, not `%s`',
      [Arguments.Value('format', '')]);
  Limit := ReadLimit(Arguments.Value('fail-over', ''));
  if Arguments.Has('each') and not Limit.IsSet then
    raise ETool.Create(ecUsage, '--each needs --fail-over=N');
  Most := Arguments.Number('most', 20, 0);
  Growths := ReadGrowths(Arguments);
  All := Judged(Growths, Limit, Arguments.Has('each'));
  if Arguments.Has('folded') then
    WriteFolded(Growths)
  else
    case Kind of
      0: Write(TableText(Growths, Most));
      1: Write('**', Judgement(All[High(All)], Limit), '**'#10, MarkdownText(Growths, Most));
      2: Write(JunitText(Growths, All, Limit, Most));
    end;
  for Growth in All do
    if IsOver(Limit, Growth) then
      raise ETool.Create(ecGrown, '%s', [Judgement(Growth, Limit)]);
end;

end.
