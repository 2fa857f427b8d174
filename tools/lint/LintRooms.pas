/// The rooms of src/ and their order, checked in every uses clause; the depth of each unit.
unit LintRooms;

{$mode delphi}{$H+}

interface

uses
  Generics.Collections, LintProject, LintReport, LintSource;

const
  /// The rooms, lowest first. A unit uses only units of its own room and of earlier ones.
  Rooms: array[0..11] of string = ('core', 'system', 'words', 'stacks', 'record', 'debug',
    'find', 'formats', 'control', 'door', 'compat', 'lib');
  /// The unit that holds GetMem, and how many units its closure may have, itself included.
  EntryUnit = 'LaneMM.Allocate';
  MaxEntryClosure = 29;

type
  /// Which unit of src/ and lib/ uses which.
  TUnitGraph = class
  private
    Project: TProject;
    Report: TReport;
    Depths: TDictionary<TModule, Integer>;
    Path: TList<TModule>;
    function Visit(Module: TModule): Integer;
    procedure AddCycle(Module, Used: TModule; Line: Integer);
    procedure AddClosure(Module: TModule; Closure: TList<TModule>);
  public
    /// Computes the depths; adds each cycle to Findings.
    constructor Create(Units: TProject; Findings: TReport);
    destructor Destroy; override;
    /// Returns 0 for a unit that uses no other, else one more than its deepest used unit.
    function DepthOf(Module: TModule): Integer;
    /// Returns Module and all that it uses, directly or not. The caller frees the list.
    function ClosureOf(Module: TModule): TList<TModule>;
  end;

/// Returns the room of a file; empty outside of the known rooms.
function RoomOf(const FileName: string): string;
/// Returns the place of a room in the order, from 0; -1 for an unknown one.
function RoomIndex(const Room: string): Integer;
/// Checks the places of the units and their uses clauses.
procedure CheckRooms(Project: TProject; Report: TReport);
/// Checks that the files that list the rooms name all of them.
procedure CheckRoomLists(const Root: string; Report: TReport);
/// Checks that the entry unit exists and that its closure is small.
procedure CheckClosure(Project: TProject; Graph: TUnitGraph; Report: TReport);

implementation

uses
  SysUtils, StrUtils, LintPatterns, LintText;

const
  DoorFiles: array[0..1] of string = ('src/LaneMM.pas', 'src/LaneMMLean.pas');
  // Units outside LaneMM may be used here only: the system's own interface.
  SystemUnit = 'LaneMM.Os';
  // Rooms that write no report, and the units of the room words that they may use.
  QuietRooms: array[0..1] of string = ('record', 'find');
  QuietUnits: array[0..2] of string = ('LaneMM.SettingsState', 'LaneMM.ReportState', 'LaneMM.Text');
  // No folders of the engine and of what observes it.
  OwnPlaces: array[0..2] of string = ('door', 'compat', 'lib');

function RoomIndex(const Room: string): Integer;
begin
  for Result := Low(Rooms) to High(Rooms) do
    if Rooms[Result] = Room then
      Exit;
  Result := -1;
end;

function RoomOf(const FileName: string): string;
begin
  if MatchStr(FileName, DoorFiles) then
    Exit('door');
  if StartsStr('lib/', FileName) then
    Exit('lib');
  Result := FirstGroup('^src/(\w+)/[^/]+$', FileName);
  if (RoomIndex(Result) < 0) or (Result = 'door') or (Result = 'lib') then
    Result := '';
end;

procedure CheckUse(Project: TProject; Source: TSource; const Use: TUse; Report: TReport);
var
  Used: TModule;
  OwnRoom, UsedRoom: string;
begin
  OwnRoom := RoomOf(Source.FileName);
  Used := Project.Find(Use.Name);
  if (Used = nil) or not IsProduct(Used.Source.FileName) then
  begin
    if Matches('^LaneMM\b', Use.Name) then
      Report.Add(ruRooms, Source.FileName, Use.Line, Use.Name + ' does not exist')
    else if (OwnRoom <> 'lib') and (Source.Name <> SystemUnit) then
      Report.Add(ruRooms, Source.FileName, Use.Line, Use.Name + ' is not part of LaneMM');
    Exit;
  end;
  UsedRoom := RoomOf(Used.Source.FileName);
  if (OwnRoom <> '') and (RoomIndex(UsedRoom) > RoomIndex(OwnRoom)) then
    Report.Add(ruRooms, Source.FileName, Use.Line, Format('%s (%s) uses %s (%s), a later room',
      [Source.Name, OwnRoom, Used.Source.Name, UsedRoom]))
  else if (UsedRoom = 'words') and AnsiMatchStr(OwnRoom, QuietRooms)
    and not AnsiMatchStr(Used.Source.Name, QuietUnits) then
    Report.Add(ruRooms, Source.FileName, Use.Line, Format('%s uses %s: %s writes no report',
      [Source.Name, Used.Source.Name, OwnRoom]));
end;

procedure CheckRooms(Project: TProject; Report: TReport);
var
  Module: TModule;
  Use: TUse;
begin
  for Module in Project.Modules do
    if IsProduct(Module.Source.FileName) then
    begin
      if RoomOf(Module.Source.FileName) = '' then
        Report.Add(ruRooms, Module.Source.FileName, 1, Module.Source.Name + ' is in no known room');
      for Use in Module.Source.UsedUnits do
        CheckUse(Project, Module.Source, Use, Report);
    end;
end;

procedure CheckRoomLists(const Root: string; Report: TReport);
const
  Files: array[0..2] of string = ('packages/lazarus/lanemm_units.lpk', 'docs/delphi.md',
    'src/README.md');
  Forms: array[0..2] of string = ('../src/%s[;"]', 'L\\%s[;"]', '\*\*%s\*\*');
var
  Text, Room: string;
  Index: Integer;
begin
  for Index := 0 to High(Files) do
    if FileExists(Root + Files[Index]) then
    begin
      Text := ReadFile(Root + Files[Index]);
      for Room in Rooms do
        if not AnsiMatchStr(Room, OwnPlaces) and not Matches(Format(Forms[Index], [Room]), Text) then
          Report.Add(ruRooms, Files[Index], 1, 'does not name the room ' + Room);
    end;
end;

procedure CheckClosure(Project: TProject; Graph: TUnitGraph; Report: TReport);
var
  Entry: TModule;
  Closure: TList<TModule>;
begin
  Entry := Project.Find(EntryUnit);
  if Entry = nil then
  begin
    Report.Add(ruClosure, 'src/core/' + EntryUnit + '.pas', 1, 'missing: it holds GetMem');
    Exit;
  end;
  Closure := Graph.ClosureOf(Entry);
  if Closure.Count > MaxEntryClosure then
    Report.Add(ruClosure, Entry.Source.FileName, 1, Format('%s needs %d units, more than %d',
      [EntryUnit, Closure.Count, MaxEntryClosure]));
  Closure.Free;
end;

// ---------------------------------------------------------------------------- TUnitGraph

constructor TUnitGraph.Create(Units: TProject; Findings: TReport);
var
  Module: TModule;
begin
  inherited Create;
  Project := Units;
  Report := Findings;
  Depths := TDictionary<TModule, Integer>.Create;
  Path := TList<TModule>.Create;
  for Module in Project.Modules do
    if IsProduct(Module.Source.FileName) then
      Visit(Module);
end;

destructor TUnitGraph.Destroy;
begin
  Path.Free;
  Depths.Free;
  inherited Destroy;
end;

// Returns the depth of Module; a use that closes a cycle counts for nothing.
function TUnitGraph.Visit(Module: TModule): Integer;
var
  Use: TUse;
  Used: TModule;
begin
  if Depths.TryGetValue(Module, Result) then
    Exit;
  Result := 0;
  Path.Add(Module);
  for Use in Module.Source.UsedUnits do
  begin
    Used := Project.Find(Use.Name);
    if (Used = nil) or not IsProduct(Used.Source.FileName) then
      Continue;
    if Path.Contains(Used) then
      AddCycle(Module, Used, Use.Line)
    else if Visit(Used) >= Result then
      Result := DepthOf(Used) + 1;
  end;
  Path.Delete(Path.Count - 1);
  Depths.Add(Module, Result);
end;

procedure TUnitGraph.AddCycle(Module, Used: TModule; Line: Integer);
var
  Names: string;
  Index: Integer;
begin
  Names := '';
  for Index := Path.IndexOf(Used) to Path.Count - 1 do
    Names := Names + Path[Index].Source.Name + ' > ';
  Report.Add(ruCycles, Module.Source.FileName, Line,
    'cycle of units: ' + Names + Used.Source.Name);
end;

function TUnitGraph.DepthOf(Module: TModule): Integer;
begin
  Result := Depths[Module];
end;

procedure TUnitGraph.AddClosure(Module: TModule; Closure: TList<TModule>);
var
  Use: TUse;
begin
  if (Module = nil) or not IsProduct(Module.Source.FileName) or Closure.Contains(Module) then
    Exit;
  Closure.Add(Module);
  for Use in Module.Source.UsedUnits do
    AddClosure(Project.Find(Use.Name), Closure);
end;

function TUnitGraph.ClosureOf(Module: TModule): TList<TModule>;
begin
  Result := TList<TModule>.Create;
  AddClosure(Module, Result);
end;

end.
