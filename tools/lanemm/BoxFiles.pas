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
  public
    Path: string;         //< of the file
    ProcessId: Integer;   //< number of the process
    Seconds: Int64;       //< when the state was written, in seconds since 1970
    IsLater: Boolean;     //< a later state was being written when the process ended
    Text: RawByteString;  //< the state as it was written
    State: TJSONObject;   //< the same
    /// Reads a file; raises ETool when it is no black box, damaged, or of another version.
    constructor Create(const FileName: string);
    destructor Destroy; override;
    /// Returns whether the process still runs and writes this file.
    function IsOfLivingProcess: Boolean;
    /// Returns a number of the heap; 0 if it is not there.
    function Heap(const Name: string): Int64;
    /// Returns what a call site has; 0 if it is not there.
    class function Number(Item: TJSONData; const Name: string): Int64;
    /// Returns the call sites with most bytes in use first.
    function Sites: TJSONArray;
  end;

implementation

uses
  SysUtils, Classes, jsonParser, ToolCommands;

constructor TBoxFile.Create(const FileName: string);
var
  Parsed: TJSONData;
begin
  inherited Create;
  Path := FileName;
  ReadFile;
  Choose;
  Parsed := nil;
  try
    Parsed := GetJSON(Text);
  except
    on EJSON do
      ; // below
  end;
  if not (Parsed is TJSONObject) then
  begin
    Parsed.Free;
    raise ETool.Create(ecDamaged, '%s is damaged: its text is no state of a process', [Path]);
  end;
  State := TJSONObject(Parsed);
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

// Takes the last half that is whole.
procedure TBoxFile.Choose;
var
  Index, Found: Integer;
  Half: PBoxHalf;
begin
  Found := -1;
  for Index := 0 to High(Box.Halves) do
  begin
    Half := @Box.Halves[Index];
    if (Half^.Number = 0) or (Half^.Length > BoxTextBytes)
      or (BoxChecksum(Half^, Half^.Number) <> Half^.Checksum) then
      Continue;
    if (Found < 0) or (Half^.Number > Box.Halves[Found].Number) then
      Found := Index;
  end;
  if Found < 0 then
    raise ETool.Create(ecDamaged, '%s has no whole state: it is damaged, or the process was killed'
      + ' when it began', [Path]);
  Half := @Box.Halves[Found];
  IsLater := (Half^.Number > 1) and (Box.Halves[1 - Found].Number <> Half^.Number - 1);
  Seconds := Half^.Seconds;
  SetString(Text, PAnsiChar(@Half^.Text), Half^.Length);
end;

function TBoxFile.IsOfLivingProcess: Boolean;
var
  Mappings: TStringList;
  Line: string;
begin
  Result := False;
  Mappings := TStringList.Create;
  try
    try
      Mappings.LoadFromFile(Format('/proc/%d/maps', [ProcessId]));
    except
      on EStreamError do
        Exit;
    end;
    for Line in Mappings do
      Result := Result or Line.EndsWith(' ' + ExpandFileName(Path));
  finally
    Mappings.Free;
  end;
end;

class function TBoxFile.Number(Item: TJSONData; const Name: string): Int64;
var
  Found: TJSONData;
begin
  Result := 0;
  if not (Item is TJSONObject) then
    Exit;
  Found := TJSONObject(Item).Find(Name);
  if Found is TJSONNumber then
    Result := Found.AsInt64;
end;

function TBoxFile.Heap(const Name: string): Int64;
begin
  Result := Number(State.Find('heap'), Name);
end;

function TBoxFile.Sites: TJSONArray;
begin
  if State.Find('sites') is TJSONArray then
    Result := State.Arrays['sites']
  else
    raise ETool.Create(ecDamaged, '%s is damaged: it has no call sites', [Path]);
end;

end.
