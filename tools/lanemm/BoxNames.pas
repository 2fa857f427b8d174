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
    function Most(Site: TJSONObject): string;
    function Fate: string;
  public
    /// Opens the box that the first word names; the other words are files and folders with the
    /// modules. A line on stderr for each module without names.
    constructor Create(Arguments: TArguments);
    destructor Destroy; override;
    /// Returns the frames of a call site from the routine on that calls LaneMM.
    function Frames(Site: TJSONObject): TBoxFrames;
    /// Returns the innermost line outside of the C library; empty: none is known.
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

function TNamedBox.PlaceOf(Site: TJSONObject): string;
var
  Frame: TBoxFrame;
begin
  for Frame in Frames(Site) do
    if (Frame.Place <> '') and not Frame.Place.StartsWith('LaneMM.')
      and not Frame.Module.StartsWith('libc.') then
      Exit(Frame.Place);
  Result := '';
end;

function TNamedBox.Share(Bytes: Int64): string;
begin
  Result := Percent(Bytes, Max(Heap('sampled_in_use'), 1));
end;

// Returns the part of the sentence about the call site with most bytes.
function TNamedBox.Most(Site: TJSONObject): string;
var
  Kind: string;
  Grown, Since: Int64;
begin
  Kind := Site.Get('class', 'other');
  if Kind = 'other' then
    Kind := 'blocks of no known class';
  Result := '; ' + Share(Number(Site, 'bytes')) + ' are ' + Kind;
  if PlaceOf(Site) <> '' then
    Result := Result + ', allocated at ' + PlaceOf(Site)
  else if Length(Frames(Site)) > 0 then
    Result := Result + ', allocated by ' + Frames(Site)[0].Name;
  Grown := Number(Site, 'bytes') - Number(Site, 'earlier_bytes');
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
    Result := Result + Most(List('sites').Objects[0]);
  Result := Result + '; ' + Grouped(Heap('threads')) + IfThen(Heap('threads') = 1, ' thread.', ' threads.');
end;

end.
