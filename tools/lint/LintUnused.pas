/// Units and routines that nothing needs.
unit LintUnused;

{$mode delphi}{$H+}

interface

uses
  LintProject, LintReport;

/// Checks that every unit in a uses clause is needed, and that every unit of src/ and lib/ is used.
procedure CheckUnusedUnits(Project: TProject; Report: TReport);
/// Checks that other units of src/ or lib/ use every routine in the interfaces of src/.
procedure CheckUnusedRoutines(Project: TProject; Report: TReport);

implementation

uses
  SysUtils, LintDeclarations, LintPatterns, LintRooms, LintTokens;

const
  // Routines in an interface that only tests use: a root folder to read from, a name to compare, a date; or
  // lanemm: the place of a block by copies of its records, the symbols of a file, words that point into blocks.
  TestRoutines = '^(OsCpuQuotaIn|OsPathStart|MessageName|DebugPlaceIn|ElfResolveIn|HeadAddTime|RetainersSee(Node)?|RoutineAt|Shelve(Span|Heap|End))$';
  // Routines in an interface that an inline routine of the same unit calls.
  InlineParts = '^(Fence|ArenaSpanSlow|BlockSpanOfSlice|Debug(PlaceFinish|Thread|Stack|Number)Slow)$';
  // What users of LaneMM name; nothing in the repository has to.
  PublicRooms = '^(door|compat)$';
  // Names the units of the C library to have them linked.
  LibraryRoot = 'LaneMM.C';

// A unit that declares nothing, or runs code at the start, is used for what it does.
function HasEffect(Module: TModule): Boolean;
begin
  Result := Module.Words.Has('initialization') or Module.Words.Has('finalization')
    or Module.Declarations.Names.IsEmpty;
end;

// Returns the unit that Module means by Name: one in its own folder before any other.
function UnitFor(Project: TProject; Module: TModule; const Name: string): TModule;
begin
  for Result in Project.Modules do
    if SameText(Result.Source.Name, Name) and SameText(ExtractFilePath(Result.Source.FileName),
      ExtractFilePath(Module.Source.FileName)) then
      Exit;
  Result := Project.Find(Name);
end;

// A program may name the file of a unit so that its other units find it.
function NamesFile(Module: TModule; Line: Integer; Used: TModule): Boolean;
begin
  Result := Pos(Used.Source.Name + ' in ', Module.Source.Raw[Line]) > 0;
end;

procedure CheckUses(Project: TProject; Module: TModule; Seen: TWordSet; Report: TReport);
var
  Line, Index: Integer;
  Used: TModule;
begin
  for Index := 0 to High(Module.Source.UsedUnits) do
  begin
    Line := Module.Source.UsedUnits[Index].Line;
    Used := UnitFor(Project, Module, Module.Source.UsedUnits[Index].Name);
    Seen.Add(Module.Source.UsedUnits[Index].Name);
    if (Used = nil) or (RoomOf(Used.Source.FileName) = 'door') or HasEffect(Used)
      or (Module.Source.Name = LibraryRoot) or NamesFile(Module, Line, Used) then
      Continue;
    if not Used.Declarations.Names.Meets(Module.Words) then
      Report.Add(ruUnusedUnits, Module.Source.FileName, Line,
        Used.Source.Name + ' is used, but nothing of it is needed');
  end;
end;

procedure CheckUnusedUnits(Project: TProject; Report: TReport);
var
  Module: TModule;
  Seen: TWordSet;
begin
  Seen := TWordSet.Create;
  for Module in Project.Modules do
    CheckUses(Project, Module, Seen, Report);
  for Module in Project.Modules do
    if IsProduct(Module.Source.FileName) and not Seen.Has(Module.Source.Name)
      and not Matches(PublicRooms, RoomOf(Module.Source.FileName))
      and (Module.Source.Name <> LibraryRoot) then
      Report.Add(ruUnusedUnits, Module.Source.FileName, 1,
        Module.Source.Name + ' is used nowhere');
  Seen.Free;
end;

// Returns True when the code of another module has the word; of the product, or of the rest.
function IsUsed(Project: TProject; Owner: TModule; const Name: string; ByProduct: Boolean): Boolean;
var
  Module: TModule;
begin
  for Module in Project.Modules do
    if (Module <> Owner) and (IsProduct(Module.Source.FileName) = ByProduct)
      and Module.Words.Has(Name) then
      Exit(True);
  Result := False;
end;

procedure CheckRoutine(Project: TProject; Owner: TModule; const Routine: TRoutine; Report: TReport);
begin
  if IsUsed(Project, Owner, Routine.Name, True) or Matches(InlineParts, Routine.Name) then
    Exit;
  if not IsUsed(Project, Owner, Routine.Name, False) then
    Report.Add(ruUnusedRoutines, Owner.Source.FileName, Routine.Line,
      Routine.Name + ' is used nowhere else')
  else if not Matches(TestRoutines, Routine.Name) then
    Report.Add(ruTestRoutines, Owner.Source.FileName, Routine.Line,
      Routine.Name + ' is used by tests or programs only');
end;

procedure CheckUnusedRoutines(Project: TProject; Report: TReport);
var
  Module: TModule;
  Routine: TRoutine;
  Room: string;
begin
  for Module in Project.Modules do
  begin
    Room := RoomOf(Module.Source.FileName);
    if not Matches('^src/', Module.Source.FileName) or Matches(PublicRooms, Room) then
      Continue;
    for Routine in Module.Declarations.Routines do
      CheckRoutine(Project, Module, Routine, Report);
  end;
end;

end.
