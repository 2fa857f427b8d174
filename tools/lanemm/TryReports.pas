/// What runs under several memory managers have shown: a table, sentences, JSON.
unit TryReports;

{$mode delphi}{$H+}

interface

uses
  Classes, fpJson, TryRuns, TryStatistics;

type
  /// A memory manager, or LaneMM with a setting, and what it took.
  TCandidate = class
  public
    Name: string;
    Preloaded: string;   //< the library; empty: none
    Settings: string;    //< for the variable LANEMM; empty: none
    IsMalloc: Boolean;   //< of a replay: the calls are those of malloc, not of GetMem
    Failure: string;     //< why it is out; empty: it is not
    Values: array[TMeasure] of TValues;
    /// Adds what was measured.
    procedure Add(const Measures: TMeasures);
  end;
  /// The first one is what the program has without any choice.
  TCandidates = TArray<TCandidate>;

/// Writes a line for each, what is significant, and a verdict.
procedure WriteCandidates(const All: TCandidates);
/// Adds all numbers, what is significant, and a verdict.
procedure AddCandidates(Json: TJSONObject; const All: TCandidates);

implementation

uses
  SysUtils, StrUtils, Math, ToolText;

type
  // What the runs say about a measure.
  TConclusion = record
    Best: TCandidate;    // by its median; nil: not measured
    Same: TCandidates;   // the others that do not differ from it, and
    Worse: TCandidates;  // those that do; best first
  end;

const
  Names: array[TMeasure] of string = ('time', 'CPU', 'peak', 'at rest', 'faults');
  LongNames: array[TMeasure] of string = ('time', 'CPU time', 'peak memory', 'memory at rest',
    'page faults');
  // Page faults are a reason for the others, and no aim.
  Aims = [meTime, meCpu, mePeak, meRest];

procedure TCandidate.Add(const Measures: TMeasures);
var
  Measure: TMeasure;
begin
  for Measure in TMeasure do
    if Measures[Measure] <> NotMeasured then
      Insert(Measures[Measure], Values[Measure], Length(Values[Measure]));
end;

// ---------------------------------------------------------------------------- conclusions

// Returns those that have values, lowest median first.
function Ranked(const All: TCandidates; Measure: TMeasure): TCandidates;
var
  Candidate: TCandidate;
  Place: Integer;
begin
  Result := nil;
  for Candidate in All do
  begin
    if (Candidate.Failure <> '') or (Candidate.Values[Measure] = nil) then
      Continue;
    Place := Length(Result);
    while (Place > 0)
      and (Median(Result[Place - 1].Values[Measure]) > Median(Candidate.Values[Measure])) do
      Dec(Place);
    Insert(Candidate, Result, Place);
  end;
end;

function Conclude(const All: TCandidates; Measure: TMeasure): TConclusion;
var
  List: TCandidates;
  Index: Integer;
begin
  Result := Default(TConclusion);
  List := Ranked(All, Measure);
  if Length(List) < 2 then
    Exit;
  Result.Best := List[0];
  for Index := 1 to High(List) do
    if Differ(List[0].Values[Measure], List[Index].Values[Measure]) then
      Insert(List[Index], Result.Worse, Length(Result.Worse))
    else
      Insert(List[Index], Result.Same, Length(Result.Same));
end;

function Contains(const List: TCandidates; Candidate: TCandidate): Boolean;
var
  Each: TCandidate;
begin
  Result := False;
  for Each in List do
    Result := Result or (Each = Candidate);
end;

function NamesOf(const List: TCandidates): string;
var
  Candidate: TCandidate;
begin
  Result := '';
  for Candidate in List do
    Result := Result + ', ' + Candidate.Name;
  Result := Result.Substring(2);
end;

function Capital(const Text: string): string;
begin
  Result := UpCase(Text[1]) + Text.Substring(1);
end;

// Returns a sentence for a measure: how far the best is below the first candidate, or if that is as
// good, below the next one.
function Sentence(const All: TCandidates; Measure: TMeasure; const Found: TConclusion): string;
var
  Other: TCandidate;
  Less: Double;
begin
  Result := Capital(LongNames[Measure]) + ': no significant difference.';
  if Found.Worse = nil then
    Exit;
  Other := Found.Worse[0];
  if Contains(Found.Worse, All[0]) then
    Other := All[0];
  Less := 1 - Median(Found.Best.Values[Measure]) / Median(Other.Values[Measure]);
  Result := Format('%s: %s is best, %s below %s.', [Capital(LongNames[Measure]), Found.Best.Name,
    Percent(Less, 1), Other.Name]);
  if Found.Same <> nil then
    Result := Result + ' Not significantly different: ' + NamesOf(Found.Same) + '.';
end;

// Returns those that nothing is significantly better than, in any aim.
function Winners(const All: TCandidates): TCandidates;
var
  Measure: TMeasure;
  Candidate: TCandidate;
  Found: TConclusion;
  IsWinner: Boolean;
begin
  Result := nil;
  for Candidate in All do
  begin
    IsWinner := Candidate.Failure = '';
    for Measure in Aims do
    begin
      Found := Conclude(All, Measure);
      IsWinner := IsWinner and ((Found.Best = nil) or (Found.Best = Candidate)
        or Contains(Found.Same, Candidate));
    end;
    if IsWinner then
      Insert(Candidate, Result, Length(Result));
  end;
end;

// Returns the best of each aim in which there is a difference.
function BestByAim(const All: TCandidates): string;
var
  Measure: TMeasure;
  Found: TConclusion;
begin
  Result := '';
  for Measure in Aims do
  begin
    Found := Conclude(All, Measure);
    if Found.Worse <> nil then
      Result := Result + ', ' + LongNames[Measure] + ' ' + Found.Best.Name;
  end;
  Result := Result.Substring(2);
end;

function Verdict(const All: TCandidates): string;
var
  Best: TCandidates;
begin
  Best := Winners(All);
  if BestByAim(All) = '' then
    Result := 'No manager makes a significant difference to this program: keep ' + All[0].Name + '.'
  else if Best = nil then
    Result := 'None is best in everything: ' + BestByAim(All) + '.'
  else if Best[0] = All[0] then
    Result := All[0].Name + ' wins: nothing is significantly better in anything.'
  else
    Result := NamesOf(Best) + IfThen(Length(Best) > 1, ' win', ' wins')
      + ': nothing is significantly better in anything.';
end;

function FewRounds(const All: TCandidates): Boolean;
begin
  Result := Length(All[0].Values[meCpu]) < FewestValues;
end;

// Returns all sentences, the verdict at the end.
function Sentences(const All: TCandidates): TArray<string>;
var
  Measure: TMeasure;
  Found: TConclusion;
begin
  Result := nil;
  if FewRounds(All) then
    Exit([Format('With fewer than %d rounds no difference is significant.', [FewestValues])]);
  for Measure in TMeasure do
  begin
    Found := Conclude(All, Measure);
    if Found.Best <> nil then
      Insert(Sentence(All, Measure, Found), Result, Length(Result));
  end;
  Insert(Verdict(All), Result, Length(Result));
end;

// ---------------------------------------------------------------------------- text

function ValueText(Measure: TMeasure; Value: Int64): string;
const
  Second = 1000000000;
begin
  case Measure of
    meTime, meCpu:
      if Value < Second then
        Result := Format('%.1f ms', [Value / 1000000])
      else
        Result := Format('%.3f s', [Value / Second]);
    mePeak, meRest: Result := BytesText(Value);
  else
    Result := Grouped(Value);
  end;
end;

function IsMeasured(const All: TCandidates; Measure: TMeasure): Boolean;
var
  Candidate: TCandidate;
begin
  Result := False;
  for Candidate in All do
    Result := Result or (Candidate.Values[Measure] <> nil);
end;

procedure WriteCandidate(const All: TCandidates; Candidate: TCandidate; Width: Integer);
var
  Measure: TMeasure;
begin
  Write(Left(Candidate.Name, Width));
  if Candidate.Failure <> '' then
    Write('  fails: ', Candidate.Failure)
  else
    for Measure in TMeasure do
      if IsMeasured(All, Measure) then
        if Candidate.Values[Measure] = nil then
          Write(Right('-', 11), Right('', 7))
        else
          Write(Right(ValueText(Measure, Median(Candidate.Values[Measure])), 11),
            Right(Format('±%.0f %%', [100 * Noise(Candidate.Values[Measure])]), 7));
  WriteLn;
end;

procedure WriteCandidates(const All: TCandidates);
var
  Candidate: TCandidate;
  Measure: TMeasure;
  Width: Integer;
  Line: string;
begin
  Width := Length('manager');
  for Candidate in All do
    Width := Max(Width, Length(Candidate.Name));
  Write(Left('manager', Width));
  for Measure in TMeasure do
    if IsMeasured(All, Measure) then
      Write(Right(Names[Measure], 11), Right('noise', 7));
  WriteLn;
  for Candidate in All do
    WriteCandidate(All, Candidate, Width);
  WriteLn;
  for Line in Sentences(All) do
    WriteLn(Line);
end;

// ---------------------------------------------------------------------------- JSON

function CandidateToJson(Candidate: TCandidate): TJSONObject;
var
  Measure: TMeasure;
  Value: Int64;
  Runs, Medians: TJSONObject;
  List: TJSONArray;
begin
  Result := TJSONObject.Create(['name', Candidate.Name, 'library', Candidate.Preloaded, 'settings',
    Candidate.Settings, 'failure', Candidate.Failure]);
  Runs := TJSONObject.Create;
  Medians := TJSONObject.Create;
  for Measure in TMeasure do
  begin
    if Candidate.Values[Measure] = nil then
      Continue;
    List := TJSONArray.Create;
    for Value in Candidate.Values[Measure] do
      List.Add(Value);
    Runs.Add(MeasureKeys[Measure], List);
    Medians.Add(MeasureKeys[Measure], Median(Candidate.Values[Measure]));
  end;
  Result.Add('medians', Medians);
  Result.Add('runs', Runs);
end;

function ListToJson(const List: TCandidates): TJSONArray;
var
  Candidate: TCandidate;
begin
  Result := TJSONArray.Create;
  for Candidate in List do
    Result.Add(Candidate.Name);
end;

procedure AddCandidates(Json: TJSONObject; const All: TCandidates);
var
  Candidate: TCandidate;
  Measure: TMeasure;
  Found: TConclusion;
  List, Conclusions, Text: TJSONArray;
  Line: string;
begin
  List := TJSONArray.Create;
  for Candidate in All do
    List.Add(CandidateToJson(Candidate));
  Json.Add('managers', List);
  Conclusions := TJSONArray.Create;
  for Measure in TMeasure do
  begin
    Found := Conclude(All, Measure);
    if Found.Best <> nil then
      Conclusions.Add(TJSONObject.Create(['measure', MeasureKeys[Measure], 'best', Found.Best.Name,
        'same', ListToJson(Found.Same), 'worse', ListToJson(Found.Worse)]));
  end;
  Json.Add('conclusions', Conclusions);
  Text := TJSONArray.Create;
  for Line in Sentences(All) do
    Text.Add(Line);
  Json.Add('text', Text);
end;

end.
