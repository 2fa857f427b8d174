/// `lanemm diff`: what grew between two files.
unit ToolDiff;

{$mode delphi}{$H+}

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
    Details: '  --most=N      so many lines, 20 by default; 0: all'#10
      + '  --value=NAME  the values of a profile: inuse_space, alloc_space, ...'#10
      + '  --folded      stacks with both amounts, the input of a difference flame graph'#10#10
      + 'The files have one kind of names: contents of blocks, of JSON of `lanemm state PID'#10
      + '--contents --json` or of an in-use report; leaks, of JSON or pages of leak reports; size'#10
      + 'classes, of JSON of `lanemm state PID --json`; or call sites, of profiles as pages,'#10
      + 'JSON, folded stacks, or for pprof.'#10;
    Options: 'most: value: folded';
    MostWords: 2;
    Run: RunDiff);

implementation

uses
  SysUtils, Math, Generics.Defaults, Generics.Collections, ProfileFiles, Targets, ToolText;

type
  TGrowth = record
    Name: string;
    Before, After: TAmount;
  end;
  TGrowths = TArray<TGrowth>;

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

procedure WriteLine(const Growth: TGrowth);
var
  Blocks: Int64;
begin
  Blocks := Growth.After.Blocks - Growth.Before.Blocks;
  WriteLn(Right(Signed(BytesText(Change(Growth)), Change(Growth)), 12),
    Right(Signed(Grouped(Blocks), Blocks), 12), Right(BytesText(Growth.Before.Bytes), 12),
    Right(BytesText(Growth.After.Bytes), 12), '  ', Printable(ShownName(Growth.Name).Replace(#9, ' ')));
end;

procedure WriteTable(const Growths: TGrowths; Most: Integer);
var
  Growth, Sum: TGrowth;
  Count, Hidden: Integer;
begin
  Sum := Default(TGrowth);
  Sum.Name := 'all';
  Count := 0;
  Hidden := 0;
  WriteLn('      change      blocks      before       after  what');
  for Growth in Growths do
  begin
    Inc(Sum.Before.Bytes, Growth.Before.Bytes);
    Inc(Sum.Before.Blocks, Growth.Before.Blocks);
    Inc(Sum.After.Bytes, Growth.After.Bytes);
    Inc(Sum.After.Blocks, Growth.After.Blocks);
    if (Change(Growth) = 0) and (Growth.After.Blocks = Growth.Before.Blocks) then
      Continue;
    Inc(Count);
    if (Most > 0) and (Count > Most) then
      Inc(Hidden)
    else
      WriteLine(Growth);
  end;
  WriteLine(Sum);
  if Hidden > 0 then
    WriteLn(Hidden, ' more have changed; --most=0 shows all');
end;

procedure WriteFolded(const Growths: TGrowths);
var
  Growth: TGrowth;
begin
  for Growth in Growths do
    WriteLn(Growth.Name, ' ', Growth.Before.Bytes, ' ', Growth.After.Bytes);
end;

procedure RunDiff(Arguments: TArguments);
var
  Before, After: TAmounts;
  Growths: TGrowths;
begin
  After := nil;
  Before := ReadAmounts(Arguments.Word(0, 'BEFORE'), Arguments.Value('value', ''));
  try
    After := ReadAmounts(Arguments.Word(1, 'AFTER'), Arguments.Value('value', ''));
    if Before.Kind <> After.Kind then
      raise ETool.Create(ecUsage, 'the files cannot be compared: %s has %s, %s has %s',
        [Arguments.Words[0], KindNames[Before.Kind], Arguments.Words[1], KindNames[After.Kind]]);
    // Folded stacks have no lines, nor has a program without line information.
    if Arguments.Has('folded') or (Before.HasLines <> After.HasLines)
      and (Before.Count > 0) and (After.Count > 0) then
    begin
      Before := WithoutLines(Before);
      After := WithoutLines(After);
    end;
    Growths := Compare(Before, After);
  finally
    After.Free;
    Before.Free;
  end;
  if Arguments.Has('folded') then
    WriteFolded(Growths)
  else
    WriteTable(Growths, Arguments.Number('most', 20, 0));
end;

end.
