/// Black boxes: their files, read and checked.
unit BoxFiles;

{$mode delphi}{$H+}

interface

uses
  fpJson, LaneMM.BoxFormat;

type
  /// What a black box says.
  TBoxFile = class
  strict private
    Box: TBox;
    procedure ReadFile;
    procedure Choose;
    procedure AddEvents;
  public
    Path: string;         //< of the file
    ProcessId: Integer;   //< number of the process
    Seconds: Int64;       //< when the state was written, in seconds since 1970
    IsLater: Boolean;     //< a later state was being written when the process ended
    State: TJSONObject;   //< the state, its time, and the last events
    /// Reads a file; raises ETool when it is no black box, damaged, or of another version.
    constructor Create(const FileName: string);
    destructor Destroy; override;
    /// Returns the path of the box in the same folder that a process of this number made next, after
    /// the last state of this one: a program that this one has become by exec, or, rarely, another
    /// process. Empty without one.
    function NextPath: string;
    /// Returns whether the process still runs and writes this file.
    function IsOfLivingProcess: Boolean;
    /// Returns a list: of points in time the items are lists, else objects.
    function List(const Name: string): TJSONArray;
    /// Returns a number of the heap; 0 if it is not there.
    function Heap(const Name: string): Int64;
    /// Returns what a call site has; 0 if it is not there.
    class function Number(Item: TJSONData; const Name: string): Int64;
    /// Returns a text of the head; empty if it is not there.
    function Head(const Name: string): string;
    /// Returns the exit code of a process that ended by itself; -1: it was killed, or runs.
    function ExitCode: Int64;
  end;

implementation

uses
  SysUtils, Classes, Math, BaseUnix, Generics.Collections, ToolCommands, Targets, ProfileFiles;

// Returns whether a part, of a text of at most Most characters, was written to its end.
function IsWhole(const Mark: TBoxMark; Most: Integer): Boolean;
begin
  Result := (Mark.Number <> 0) and (Mark.Length <= Most)
    and (BoxChecksum(Mark, Mark.Number) = Mark.Checksum);
end;

const
  // For each list of a state whether its items are lists; else they are objects.
  ListNames: array[0..8] of string = ('sites', 'sizes', 'regions', 'threads', 'modules', 'events',
    'seconds', 'minutes', 'hours');
  FirstOfLists = 6;

constructor TBoxFile.Create(const FileName: string);
begin
  inherited Create;
  Path := FileName;
  ReadFile;
  Choose;
  AddEvents;
end;

destructor TBoxFile.Destroy;
begin
  State.Free;
  inherited Destroy;
end;

procedure TBoxFile.ReadFile;
var
  Source: TFileStream;
begin
  if not FileExists(Path) then
    raise ETool.Create(ecFailed, 'there is no file %s', [Path]);
  FillChar(Box, SizeOf(Box), 0);
  Source := TFileStream.Create(Path, fmOpenRead or fmShareDenyNone);
  try
    Source.Read(Box, SizeOf(Box));
  finally
    Source.Free;
  end;
  if CompareByte(Box.Head.Magic, PAnsiChar(BoxMagic)^, SizeOf(Box.Head.Magic)) <> 0 then
    raise ETool.Create(ecDamaged, '%s is no black box', [Path]);
  if (Box.Head.Layout <> BoxLayout) or (Box.Head.HalfBytes <> SizeOf(TBoxHalf)) then
    raise ETool.Create(ecOtherVersion, '%s is of another version of LaneMM', [Path]);
  ProcessId := Box.Head.ProcessId;
end;

// Reads a state and gives it all lists; nil if its text is none.
function StateOf(const Text: RawByteString): TJSONObject;
var
  Parsed: TJSONData;
  Items: TJSONArray;
  Index, Item: Integer;
begin
  Result := nil;
  try
    Parsed := TextToJson(Text);
  except
    on Exception do
      Exit;
  end;
  if not (Parsed is TJSONObject) then
  begin
    Parsed.Free;
    Exit;
  end;
  Result := TJSONObject(Parsed);
  for Index := 0 to High(ListNames) do
  begin
    if not (Result.Find(ListNames[Index]) is TJSONArray) then
    begin
      Result.Delete(ListNames[Index]);
      Result.Add(ListNames[Index], TJSONArray.Create);
    end;
    Items := Result.Arrays[ListNames[Index]];
    for Item := Items.Count - 1 downto 0 do
      if (Index < FirstOfLists) and not (Items[Item] is TJSONObject)
        or (Index >= FirstOfLists) and not (Items[Item] is TJSONArray) then
        Items.Delete(Item);
  end;
end;

// Takes the last half that is whole.
procedure TBoxFile.Choose;
var
  Index, Found: Integer;
  Half: PBoxHalf;
  Text: RawByteString;
begin
  Found := -1;
  for Index := 0 to High(Box.Halves) do
    if IsWhole(Box.Halves[Index].Mark, BoxTextBytes)
      and ((Found < 0) or (Box.Halves[Index].Mark.Number > Box.Halves[Found].Mark.Number)) then
      Found := Index;
  if Found < 0 then
    raise ETool.Create(ecDamaged, '%s has no whole state: it is damaged, or the process was killed'
      + ' when it began', [Path]);
  Half := @Box.Halves[Found];
  IsLater := (Half^.Mark.Number > 1)
    and (Box.Halves[1 - Found].Mark.Number <> Half^.Mark.Number - 1);
  Seconds := Half^.Mark.Seconds;
  SetString(Text, PAnsiChar(@Half^.Text), Half^.Mark.Length);
  State := StateOf(Text);
  if State = nil then
    raise ETool.Create(ecDamaged, '%s is damaged: its text is no state of a process', [Path]);
  State.Delete('time');
  State.Add('time', Seconds);
end;

// Adds the whole events to the state, the oldest first.
procedure TBoxFile.AddEvents;
var
  Event: PBoxEvent;
  Number, Last, Behind: UInt64;
  Text: RawByteString;
begin
  Last := 0;
  for Number := 0 to BoxEventCount - 1 do
    if IsWhole(Box.Events[Number].Mark, BoxEventTextBytes) then
      Last := Max(Last, Box.Events[Number].Mark.Number);
  for Behind := Min(Last, UInt64(BoxEventCount)) downto 1 do
  begin
    Number := Last - Behind + 1;
    Event := @Box.Events[Number mod BoxEventCount];
    if (Event^.Mark.Number <> Number) or not IsWhole(Event^.Mark, BoxEventTextBytes) then
      Continue;
    SetString(Text, PAnsiChar(@Event^.Text), Event^.Mark.Length);
    List('events').Add(TJSONObject.Create(['time', Int64(Event^.Mark.Seconds), 'text', string(Text)]));
  end;
end;

// Returns when a process made its box, in seconds since 1970; 0 if the file is none of it.
function StartOf(const FileName: string; ProcessId: Integer): Int64;
var
  Head: TBoxHead;
  Source: TFileStream;
begin
  Result := 0;
  try
    Source := TFileStream.Create(FileName, fmOpenRead or fmShareDenyNone);
  except
    on EStreamError do
      Exit;
  end;
  if (Source.Read(Head, SizeOf(Head)) = SizeOf(Head)) and (Head.ProcessId = ProcessId) then
    Result := Head.StartedSeconds;
  Source.Free;
end;

function TBoxFile.NextPath: string;
var
  Folder: string;
  Found: TSearchRec;
  Start, Earliest: Int64;
begin
  Result := '';
  Earliest := High(Earliest);
  Folder := ExtractFilePath(ExpandFileName(Path));
  if FindFirst(Format('%s*.%d.lanebox', [Folder, ProcessId]), faAnyFile, Found) = 0 then
    repeat
      if not IsPlainFile(Folder + Found.Name) then
        Continue;
      Start := StartOf(Folder + Found.Name, ProcessId);
      if (Found.Name = ExtractFileName(Path)) or (Start < Seconds) or (Start >= Earliest) then
        Continue;
      Earliest := Start;
      Result := ExtractFilePath(Path) + Found.Name;
    until FindNext(Found) <> 0;
  FindClose(Found);
end;

// Returns whether a process has mapped the file at Path: that file, by whatever path it is reached.
function HasMapped(Id: Integer; const Path: string): Boolean;
const
  InodeField = 4;
var
  Status: TStat;
  Line: string;
  Fields: TStringArray;
begin
  Result := False;
  if fpStat(Path, Status) <> 0 then
    Exit;
  for Line in ReadSmallFile(Format('/proc/%d/maps', [Id])).Split([#10]) do
    if Line.EndsWith('/' + ExtractFileName(Path)) then
    begin
      Fields := Line.Split([' '], TStringSplitOptions.ExcludeEmpty);
      Result := Result or Line.EndsWith(' ' + ExpandFileName(Path))
        or (Length(Fields) > InodeField) and (Fields[InodeField] = UIntToStr(Status.st_ino));
    end;
end;

var
  // Processes in containers, by the numbers that they have here; those that they have there.
  Contained: TDictionary<Integer, Integer>;

procedure FindContained;
var
  Id: Integer;
begin
  if Contained <> nil then
    Exit;
  Contained := TDictionary<Integer, Integer>.Create;
  for Id in NumbersIn('/proc') do
    if OwnNumber(Id) <> Id then
      Contained.AddOrSetValue(Id, OwnNumber(Id));
end;

function TBoxFile.IsOfLivingProcess: Boolean;
var
  Id: Integer;
begin
  Result := HasMapped(ProcessId, Path);
  if Result then
    Exit;
  FindContained;
  for Id in Contained.Keys do
    Result := Result or (Contained[Id] = ProcessId) and HasMapped(Id, Path);
end;

class function TBoxFile.Number(Item: TJSONData; const Name: string): Int64;
var
  Found: TJSONData;
begin
  Result := 0;
  if not (Item is TJSONObject) then
    Exit;
  Found := TJSONObject(Item).Find(Name);
  if (Found is TJSONNumber) and (TJSONNumber(Found).NumberType <> ntFloat) then
    Result := Found.AsInt64;
end;

function TBoxFile.List(const Name: string): TJSONArray;
begin
  Result := State.Arrays[Name];
end;

function TBoxFile.Heap(const Name: string): Int64;
begin
  Result := Number(State.Find('heap'), Name);
end;

function TBoxFile.Head(const Name: string): string;
begin
  Result := '';
  if State.Find('head') is TJSONObject then
    Result := State.Objects['head'].Get(Name, '');
end;

function TBoxFile.ExitCode: Int64;
begin
  Result := -1;
  if State.Find('head') is TJSONObject then
    Result := State.Objects['head'].Get('exit_code', Int64(-1));
end;

finalization
  Contained.Free;

end.
