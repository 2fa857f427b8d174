/// A black box and the names of its frames: who held the memory.
unit BoxNames;

{$mode delphi}{$H+}

interface

uses
  fpJson, ToolCommands, BoxFiles, FrameNames;

type
  /// A frame of a backtrace.
  TBoxFrame = record
    Name: string;       //< routine, or module and offset
    Place: string;      //< file and line; empty: not known
    Module: string;     //< file of the module
    IsInlined: Boolean; //< it is inlined into the next one
  end;
  TBoxFrames = TArray<TBoxFrame>;

  /// A black box whose frames have names.
  TNamedBox = class(TBoxFile)
  strict private
    Names: TFrameNames;
    procedure AddPlaces(Arguments: TArguments);
    procedure AddFrames;
    function IsOfLine(Site: TJSONObject; const Place: string): Boolean;
    function Sum(const Place, Name: string): Int64;
    function KindAt(const Place: string): string;
    function Most: string;
    function Fate: string;
  public
    /// Opens the box that the first word names; the other words are files and folders with the
    /// modules. A line on stderr for each module without names.
    constructor Create(Arguments: TArguments);
    destructor Destroy; override;
    /// Returns the frames of a call site from the routine on that calls LaneMM.
    function Frames(Site: TJSONObject): TBoxFrames;
    /// Returns those that a text shows: from the routine of a library on that the program called, up to
    /// its main block.
    function ShownFrames(Site: TJSONObject): TBoxFrames;
    /// Returns the innermost line outside of libraries; empty: none is known.
    function PlaceOf(Site: TJSONObject): string;
    /// Returns bytes of samples as a part of all that are in use.
    function Share(Bytes: Int64): string;
    /// Returns what happened, in one sentence.
    function Sentence: string;
  end;

implementation

uses
  SysUtils, Math, StrUtils, ToolText;

constructor TNamedBox.Create(Arguments: TArguments);
begin
  inherited Create(Arguments.Word(0, 'BOX'));
  Names := TFrameNames.Create;
  AddPlaces(Arguments);
  AddFrames;
end;

destructor TNamedBox.Destroy;
begin
  Names.Free;
  inherited Destroy;
end;

procedure TNamedBox.AddPlaces(Arguments: TArguments);
var
  Index: Integer;
begin
  Names.AddPlaces(Arguments);
  Names.Places.Add(ExtractFilePath(Path));
  Names.Places.Add('');
  for Index := 0 to List('modules').Count - 1 do
    Names.Places.Add(ExtractFilePath(List('modules').Objects[Index].Get('path', '')));
end;

// Returns the frames as they were written.
function StackOf(Site: TJSONObject): TArray<string>;
var
  Stack: TJSONArray;
  Index: Integer;
begin
  Result := nil;
  if not (Site.Find('stack') is TJSONArray) then
    Exit;
  Stack := Site.Arrays['stack'];
  SetLength(Result, Stack.Count);
  for Index := 0 to Stack.Count - 1 do
    Result[Index] := Stack[Index].AsString;
end;

procedure TNamedBox.AddFrames;
var
  Index: Integer;
  Frame: string;
begin
  for Index := 0 to List('sites').Count - 1 do
    for Frame in StackOf(List('sites').Objects[Index]) do
      Names.Add(Frame);
  Names.Resolve;
end;

// Returns a frame out of a line of LaneMM.Symbols: `UNIT.ROUTINE  Unit.pas:12  (inlined)`.
function FrameOf(Line: string; const Module: string): TBoxFrame;
const
  Inlined = '  (inlined)';
var
  After: Integer;
begin
  Line := Trim(Line);
  Result.Module := Module;
  Result.IsInlined := Line.EndsWith(Inlined);
  if Result.IsInlined then
    SetLength(Line, Length(Line) - Length(Inlined));
  After := Pos('  ', Line);
  if After = 0 then
    After := Length(Line) + 1;
  Result.Name := Copy(Line, 1, After - 1);
  Result.Place := Trim(Copy(Line, After, MaxInt));
end;

function TNamedBox.Frames(Site: TJSONObject): TBoxFrames;
var
  Written, Text, Line: string;
  IsInside: Boolean;
begin
  Result := nil;
  IsInside := True;
  for Written in StackOf(Site) do
  begin
    Text := Names.TextOf(Written);
    IsInside := IsInside and (Pos('LaneMM.', Text) > 0);
    if IsInside then
      Continue;
    if Text = '' then
      Text := Written;
    for Line in Text.Split([#10]) do
      Insert(FrameOf(Line, Copy(Written, 1, Pos('+0x', Written) - 1)), Result, Length(Result));
  end;
end;

// Returns whether a frame lies in a library, as far as names tell that.
function IsOfLibrary(const Frame: TBoxFrame): Boolean;
const
  Names: array[0..5] of string = ('LaneMM.', 'SYSTEM.', 'fpc_', 'std::', '__gnu_cxx::', 'operator new');
  Modules: array[0..1] of string = ('libc.', 'libstdc++.');
  Sources: array[0..1] of string = ('fgl.pp:', 'generics.');
var
  Part: string;
begin
  Result := Frame.Place = '';
  for Part in Names do
    Result := Result or Frame.Name.StartsWith(Part);
  for Part in Modules do
    Result := Result or Frame.Module.StartsWith(Part);
  for Part in Sources do
    Result := Result or Frame.Place.StartsWith(Part);
end;

// Returns the index of the innermost frame of the program; the number of frames if there is none.
function OwnIndex(const Frames: TBoxFrames): Integer;
begin
  Result := 0;
  while (Result < Length(Frames)) and IsOfLibrary(Frames[Result]) do
    Inc(Result);
end;

function TNamedBox.ShownFrames(Site: TJSONObject): TBoxFrames;
var
  Own, Limit: Integer;
begin
  Result := Frames(Site);
  Own := OwnIndex(Result);
  Limit := Own;
  while (Limit < Length(Result)) and (Result[Limit].Name <> 'main') do
    Inc(Limit);
  if Own = Length(Result) then
    Exit;
  SetLength(Result, Min(Limit + 1, Length(Result)));
  if (Own > 0) and not Result[Own - 1].Name.StartsWith('SYSTEM.')
    and not Result[Own - 1].Name.StartsWith('fpc_') then
    Dec(Own);
  Delete(Result, 0, Own);
end;

function TNamedBox.PlaceOf(Site: TJSONObject): string;
var
  Named: TBoxFrames;
begin
  Named := Frames(Site);
  Result := '';
  if OwnIndex(Named) < Length(Named) then
    Result := Named[OwnIndex(Named)].Place;
end;

function TNamedBox.Share(Bytes: Int64): string;
begin
  Result := Percent(Bytes, Max(Heap('sampled_in_use'), 1));
end;

function TNamedBox.IsOfLine(Site: TJSONObject; const Place: string): Boolean;
begin
  Result := (Place <> '') and (PlaceOf(Site) = Place);
end;

// Returns the sum of a number of the call sites of a line.
function TNamedBox.Sum(const Place, Name: string): Int64;
var
  Index: Integer;
begin
  Result := 0;
  for Index := 0 to List('sites').Count - 1 do
    if IsOfLine(List('sites').Objects[Index], Place) then
      Inc(Result, Number(List('sites').Objects[Index], Name));
end;

// Returns the class of the blocks in use of a line, if all have the same.
function TNamedBox.KindAt(const Place: string): string;
var
  Index: Integer;
  Site: TJSONObject;
begin
  Result := '';
  for Index := 0 to List('sites').Count - 1 do
  begin
    Site := List('sites').Objects[Index];
    if not IsOfLine(Site, Place) or (Number(Site, 'bytes') = 0) then
      Continue; // one that is there for its peak has no class
    if (Result <> '') and (Site.Get('class', 'other') <> Result) then
      Exit('blocks of several classes');
    Result := Site.Get('class', 'other');
  end;
end;

// Returns the part of the sentence about the line with most bytes; without lines, about the call site.
// Empty where nothing is in use: then the call sites are there for their peaks.
function TNamedBox.Most: string;
var
  Site: TJSONObject;
  Index: Integer;
  Place, Kind: string;
  Bytes, Grown, Since: Int64;
begin
  Site := List('sites').Objects[0];
  Place := '';
  Bytes := Number(Site, 'bytes');
  Grown := Bytes - Number(Site, 'earlier_bytes');
  Kind := Site.Get('class', 'other');
  if Bytes <= 0 then
    Exit('');
  for Index := 0 to List('sites').Count - 1 do
    if Sum(PlaceOf(List('sites').Objects[Index]), 'bytes') >= Bytes + Ord(Place <> '') then
    begin
      Place := PlaceOf(List('sites').Objects[Index]);
      Bytes := Sum(Place, 'bytes');
      Grown := Bytes - Sum(Place, 'earlier_bytes');
      Kind := KindAt(Place);
    end;
  if Kind = 'other' then
    Kind := 'blocks of no known class';
  Result := '; ' + Share(Bytes) + ' are ' + Kind;
  if Place <> '' then
    Result := Result + ', allocated at ' + Place
  else if Length(Frames(Site)) > 0 then
    Result := Result + ', allocated by ' + Frames(Site)[0].Name;
  Since := Max(1, Seconds - Heap('earlier_time'));
  if Grown > 0 then
    Result := Result + Format('; %s of them in the last %s s', [BytesText(Grown), Grouped(Since)]);
end;

// Returns how the process ended, as far as that can be known.
function TNamedBox.Fate: string;
var
  Next: string;
begin
  if ExitCode >= 0 then
    Exit(Format('Ended with exit code %d', [ExitCode]));
  if IsOfLivingProcess then
    Exit('Runs');
  Next := NextPath;
  if Next <> '' then
    Result := 'Became another program, whose box is ' + Next + ', or was killed,'
  else if Heap('blocks') = 0 then
    Result := 'Became another program, or was killed,'
  else
    Result := 'Killed';
end;

function TNamedBox.Sentence: string;
begin
  Result := Fate + ' at ' + BytesText(Heap('committed'));
  if Heap('limit') > 0 then
    Result := Result + ' of a limit of ' + BytesText(Heap('limit'))
  else if Heap('limit_container') > 0 then
    Result := Result + ' in a container with ' + BytesText(Heap('container')) + ' of '
      + BytesText(Heap('limit_container'))
  else if Heap('limit_soft') > 0 then
    Result := Result + ' of a soft limit of ' + BytesText(Heap('limit_soft'));
  if List('sites').Count > 0 then
    Result := Result + Most;
  Result := Result + '; ' + Grouped(Heap('threads')) + IfThen(Heap('threads') = 1, ' thread.', ' threads.');
end;

end.
