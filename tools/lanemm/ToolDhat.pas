/// `lanemm dhat`: a profile as valgrind's DHAT writes one, for its viewer.
//
// Source: valgrind's dhat/dh_view.js, version 2 of the file.
unit ToolDhat;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Writes the profile of the heap in a file.
procedure RunDhat(Arguments: TArguments);

const
  DhatCommand: TCommand = (
    Name: 'dhat';
    Usage: 'PROFILE';
    Help: 'Writes a profile as a file of DHAT, for valgrind''s viewer';
    Details: 'PROFILE is a file of `profile,json` or `profile,html`, or of `lanemm report PID profile'#10
      + '--json`. Valgrind''s dh_view.html opens the result: lanemm dhat P.json > dhat.out'#10;
    Options: '';
    MostWords: 1;
    Run: RunDhat);

implementation

uses
  SysUtils, Math, Generics.Collections, fpJson, ProfileFiles;

const
  FileVersion = 2;
  MicrosecondsPerMs = 1000;
  ThresholdUs = 10; // shorter lifetimes are marked

type
  // The fields of an entry of the file.
  TDhatField = (dfTotalBytes, dfTotalBlocks, dfLifetimes, dfMostBytes, dfMostBlocks, dfPeakBytes,
    dfPeakBlocks, dfEndBytes, dfEndBlocks);
  // As the viewer has them: the lifetimes of 10 million blocks that stay for a month are 3e19 µs.
  TDhatValues = array[TDhatField] of Double;

  // What is read of a profile of the heap.
  TDhatSource = record
    Profile: TJSONObject;
    Times: TJSONArray; // of the points of its time line; nil: it has none
  end;

const
  FieldNames: array[TDhatField] of string = ('tb', 'tbk', 'tl', 'mb', 'mbk', 'gb', 'gbk', 'eb', 'ebk');
  // The columns that these fields have.
  Columns: array[TDhatField] of string = ('alloc_space', 'alloc_objects', 'life_ms', '', '',
    'peak_space', 'peak_objects', 'inuse_space', 'inuse_objects');

// Takes what a site had at points in time: its most bytes, and from the bytes over time how long its
// blocks, also those that were never freed, have lived.
procedure TakeLine(const Source: TDhatSource; Site: TJSONObject; var Values: TDhatValues);
var
  Line: TJSONArray;
  Index, Missing: Integer;
  ByteMs: Double;
begin
  if (Source.Times = nil) or not (Site.Find('line') is TJSONArray) then
    Exit;
  Line := Site.Arrays['line'];
  Missing := Source.Times.Count - Line.Count;
  ByteMs := 0;
  for Index := 0 to Line.Count - 1 do
  begin
    Values[dfMostBytes] := Max(Values[dfMostBytes], Line.Floats[Index]);
    if Index > 0 then
      ByteMs := ByteMs + Line.Floats[Index - 1] * (Source.Times.Floats[Missing + Index]
        - Source.Times.Floats[Missing + Index - 1]);
  end;
  if Values[dfTotalBytes] > 0 then
    Values[dfLifetimes] := Max(Values[dfLifetimes],
      ByteMs * Values[dfTotalBlocks] / Values[dfTotalBytes]);
end;

// Returns what the file has of a site.
function ValuesOf(const Source: TDhatSource; Site: TJSONObject): TDhatValues;
var
  Field: TDhatField;
  Column: Integer;
begin
  for Field in TDhatField do
  begin
    Result[Field] := 0;
    Column := FindColumn(Source.Profile, Columns[Field]);
    if (Column >= 0) and (Column < Site.Arrays['values'].Count) then
      Result[Field] := Site.Arrays['values'].Floats[Column];
  end;
  TakeLine(Source, Site, Result);
  Result[dfMostBytes] := Max(Result[dfMostBytes],
    Max(Result[dfPeakBytes], Result[dfEndBytes]));
  Result[dfMostBlocks] := Max(Result[dfPeakBlocks], Result[dfEndBlocks]);
  if Result[dfTotalBytes] > 0 then
    Result[dfMostBlocks] := Max(Result[dfMostBlocks], Result[dfMostBytes]
      * (Result[dfTotalBlocks] / Result[dfTotalBytes]));
  Result[dfLifetimes] := Result[dfLifetimes] * MicrosecondsPerMs;
end;

// Adds to a number of an entry, which stays without a fraction.
procedure AddTo(Entry: TJSONObject; const Name: string; Value: Double);
begin
  Value := Entry.Floats[Name] + Value;
  if Abs(Value) < High(Int64) then
    Entry.Int64s[Name] := Round(Value)
  else
    Entry.Floats[Name] := Value;
end;

// Adds the entry of a site. The viewer refuses two of one stack: their values are added.
procedure AddSite(Entries: TJSONArray; ByStack: TDictionary<string, TJSONObject>;
  const Source: TDhatSource; Site: TJSONObject);
var
  Stack, Frames: TJSONArray;
  Entry: TJSONObject;
  Values: TDhatValues;
  Field: TDhatField;
  Index: Integer;
begin
  Values := ValuesOf(Source, Site);
  Stack := Site.Arrays['stack'];
  if not ByStack.TryGetValue(Stack.AsJSON, Entry) then
  begin
    Entry := TJSONObject.Create;
    for Field in TDhatField do
      Entry.Add(FieldNames[Field], 0);
    Frames := TJSONArray.Create;
    for Index := Stack.Count - 1 downto 0 do
      Frames.Add(Stack.Integers[Index] + 1); // 0 is the root
    Entry.Add('fs', Frames);
    Entries.Add(Entry);
    ByStack.Add(Stack.AsJSON, Entry);
  end;
  for Field in TDhatField do
    AddTo(Entry, FieldNames[Field], Values[Field]);
end;

function EntriesOf(const Source: TDhatSource): TJSONArray;
var
  ByStack: TDictionary<string, TJSONObject>;
  Index: Integer;
begin
  Result := TJSONArray.Create;
  ByStack := TDictionary<string, TJSONObject>.Create;
  for Index := 0 to Source.Profile.Arrays['sites'].Count - 1 do
    AddSite(Result, ByStack, Source, Source.Profile.Arrays['sites'].Objects[Index]);
  ByStack.Free;
end;

function FramesOf(Profile: TJSONObject): TJSONArray;
var
  Frame: TJSONObject;
  Index: Integer;
  Name: string;
begin
  Result := TJSONArray.Create(['[root]']);
  for Index := 0 to Profile.Arrays['frames'].Count - 1 do
  begin
    Frame := Profile.Arrays['frames'].Objects[Index];
    Name := Frame.Strings['name'];
    if Frame.Get('line', 0) > 0 then
      Name := Format('%s (%s:%d)', [Name, Frame.Get('file', ''), Frame.Get('line', 0)]);
    Result.Add(Name);
  end;
end;

// Returns the last profile, that of the heap, of a file; raises ETool if it has none.
function HeapOf(Data: TJSONObject; const FileName: string): TDhatSource;
var
  Profiles: TJSONArray;
begin
  Profiles := Data.Arrays['profiles'];
  Result := Default(TDhatSource);
  if Profiles.Count > 0 then
    Result.Profile := Profiles.Objects[Profiles.Count - 1];
  if (Result.Profile = nil) or (FindColumn(Result.Profile, Columns[dfTotalBytes]) < 0) then
    raise ETool.Create(ecFailed, '%s has no profile of the heap', [FileName]);
  if Result.Profile.FindPath('line.ms') is TJSONArray then
    Result.Times := TJSONArray(Result.Profile.FindPath('line.ms'));
end;

function DhatOf(Data: TJSONObject; const FileName: string): string;
var
  Head, Json: TJSONObject;
  Source: TDhatSource;
  PeakMs: Int64;
begin
  Source := HeapOf(Data, FileName);
  Head := Data.Objects['head'];
  PeakMs := 0;
  if Source.Profile.FindPath('peak.ms') <> nil then
    PeakMs := Source.Profile.FindPath('peak.ms').AsInt64;
  Json := TJSONObject.Create(['dhatFileVersion', FileVersion, 'mode', 'heap', 'verb', 'Allocated',
    'bklt', True, 'bkacc', False, 'tu', 'µs', 'Mtu', 's', 'tuth', ThresholdUs,
    'cmd', Head.Strings['command'], 'pid', Head.Int64s['process'],
    'te', Max(1, Max(Head.Int64s['run_ms'], PeakMs) * MicrosecondsPerMs),
    'tg', PeakMs * MicrosecondsPerMs,
    'pps', EntriesOf(Source), 'ftbl', FramesOf(Source.Profile)]);
  Result := Json.AsJSON;
  Json.Free;
end;

procedure RunDhat(Arguments: TArguments);
var
  FileName, Dhat: string;
  Data: TJSONObject;
begin
  FileName := Arguments.Word(0, 'PROFILE');
  Data := ReadProfileData(FileName);
  try
    try
      Dhat := DhatOf(Data, FileName);
    except
      on ETool do
        raise;
      on Error: Exception do // such as a number where a list should be
        raise ETool.Create(ecDamaged, '%s is damaged: %s', [FileName, Error.Message]);
    end;
    WriteLn(Dhat);
  finally
    Data.Free;
  end;
end;

end.
