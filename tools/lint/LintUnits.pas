/// The table of units that `Lint --units` prints.
unit LintUnits;

{$mode delphi}{$H+}

interface

uses
  LintProject, LintRooms;

/// Writes one line per unit of src/ and lib/ to the standard output: room, depth, unit, lines,
/// first sentence; then the size of the closure of the entry unit.
procedure PrintUnits(Project: TProject; Graph: TUnitGraph);

implementation

uses
  SysUtils, StrUtils, Generics.Collections, LintSource;

const
  Columns = '%-8s  %5s  %-24s  %5s  %s';

// The first sentence of the `///` lines at the top.
function FirstSentence(Source: TSource): string;
var
  Line, Stop: Integer;
begin
  Result := '';
  for Line := 1 to Source.LineCount do
  begin
    if not StartsStr('///', Source.Raw[Line]) then
      Break;
    Result := Trim(Result + ' ' + Trim(Copy(Source.Raw[Line], 4, MaxInt)));
  end;
  Stop := Pos('. ', Result);
  if Stop > 0 then
    SetLength(Result, Stop);
end;

procedure PrintRoom(const Room: string; Project: TProject; Graph: TUnitGraph);
var
  Module: TModule;
  Depth, Deepest: Integer;
begin
  Deepest := 0;
  Depth := 0;
  while Depth <= Deepest do
  begin
    for Module in Project.Modules do
      if IsProduct(Module.Source.FileName) and (RoomOf(Module.Source.FileName) = Room) then
      begin
        if Graph.DepthOf(Module) > Deepest then
          Deepest := Graph.DepthOf(Module);
        if Graph.DepthOf(Module) = Depth then
          WriteLn(Format(Columns, [IfThen(Room = '', '?', Room), IntToStr(Depth),
            Module.Source.Name, IntToStr(Module.Source.LineCount), FirstSentence(Module.Source)]));
      end;
    Inc(Depth);
  end;
end;

procedure PrintClosure(Project: TProject; Graph: TUnitGraph);
var
  Entry, Module: TModule;
  Closure: TList<TModule>;
  CodeLines: Integer;
begin
  Entry := Project.Find(EntryUnit);
  if Entry = nil then
    Exit;
  Closure := Graph.ClosureOf(Entry);
  CodeLines := 0;
  for Module in Closure do
    Inc(CodeLines, Module.CodeLineCount);
  WriteLn(Format('%s needs %d units with %d lines of code, itself included',
    [EntryUnit, Closure.Count, CodeLines]));
  Closure.Free;
end;

procedure PrintUnits(Project: TProject; Graph: TUnitGraph);
var
  Room: string;
begin
  WriteLn(Format(Columns, ['room', 'depth', 'unit', 'lines', 'what it does']));
  PrintRoom('', Project, Graph);
  for Room in Rooms do
    PrintRoom(Room, Project, Graph);
  PrintClosure(Project, Graph);
end;

end.
