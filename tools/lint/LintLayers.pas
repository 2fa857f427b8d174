/// The layer order of src/: read from the table in src/README.md, checked in every uses clause.
unit LintLayers;

{$mode delphi}{$H+}

interface

uses
  Classes, LintReport, LintSource;

type
  /// The table of lines `| LaneMM.Unit | layer | ... |`. A row that says `uses LaneMM.Other`
  /// allows its unit to use that one, of the same layer.
  TLayers = class
  private
    FileName: string;
    Rows, Seen: TStringList;
    Report: TReport;
    function LayerOf(const UnitName: string): Integer;
    procedure CheckUse(Source: TSource; Line: Integer; const Used: string);
  public
    constructor Create(const Path, NameInMessages: string; Findings: TReport);
    destructor Destroy; override;
    /// Checks the uses clauses of one unit.
    procedure Check(Source: TSource);
    /// Reports the rows of units that Check never saw. Call it last.
    procedure CheckRows;
  end;

/// Whether Line of Source lies in a uses clause.
function InUsesClause(Source: TSource; Line: Integer): Boolean;

implementation

uses
  SysUtils;

const
  RowPattern = '^\|\s*`?(LaneMM[\w.]*)`?\s*\|\s*\d+\s*\|';
  LayerPattern = '^\|[^|]*\|\s*(\d+)\s*\|';
  // Units outside LaneMM may be used here only: the system's own interface.
  SystemUnit = 'LaneMM.Os';

constructor TLayers.Create(const Path, NameInMessages: string; Findings: TReport);
begin
  inherited Create;
  FileName := NameInMessages;
  Report := Findings;
  Rows := TStringList.Create;
  Seen := TStringList.Create;
  if FileExists(Path) then
    Rows.LoadFromFile(Path)
  else
    Report.Add(ruLayers, FileName, 1, 'missing: it holds the table of layers');
end;

destructor TLayers.Destroy;
begin
  Rows.Free;
  Seen.Free;
  inherited Destroy;
end;

// -1 when the table does not have the unit.
function TLayers.LayerOf(const UnitName: string): Integer;
var
  Row: string;
begin
  for Row in Rows do
    if SameText(FirstGroup(RowPattern, Row), UnitName) then
      Exit(StrToInt(FirstGroup(LayerPattern, Row)));
  Result := -1;
end;

procedure TLayers.CheckUse(Source: TSource; Line: Integer; const Used: string);
var
  Row: string;
  OwnLayer, UsedLayer: Integer;
begin
  if not Matches('^LaneMM\b', Used) then
  begin
    if Source.Name <> SystemUnit then
      Report.Add(ruLayers, Source.FileName, Line, Used + ' is not part of LaneMM');
    Exit;
  end;
  OwnLayer := LayerOf(Source.Name);
  UsedLayer := LayerOf(Used);
  if (OwnLayer < 0) or (UsedLayer < OwnLayer) then
    Exit;
  if UsedLayer = OwnLayer then
    for Row in Rows do
      if SameText(FirstGroup(RowPattern, Row), Source.Name)
        and Matches('\buses\b.*\b' + StringReplace(Used, '.', '\.', []) + '\b', Row) then
        Exit;
  Report.Add(ruLayers, Source.FileName, Line, Format('%s (layer %d) uses %s (layer %d)',
    [Source.Name, OwnLayer, Used, UsedLayer]));
end;

function InUsesClause(Source: TSource; Line: Integer): Boolean;
begin
  repeat
    if Matches('^uses\b', Source.Code[Line]) then
      Exit(True);
    Dec(Line);
  until (Line = 0) or Matches(';', Source.Code[Line]);
  Result := False;
end;

procedure TLayers.Check(Source: TSource);
var
  Line: Integer;
  Used: string;
begin
  if Source.IsInclude then
    Exit;
  Seen.Add(Source.Name);
  if LayerOf(Source.Name) < 0 then
    Report.Add(ruLayers, Source.FileName, 1, Source.Name + ' is not in ' + FileName);
  for Line := 1 to Source.LineCount do
    if InUsesClause(Source, Line) then
      for Used in Source.Code[Line].Split([' ', ',', ';']) do
        if (Used <> '') and not SameText(Used, 'uses') then
          CheckUse(Source, Line, Used);
end;

procedure TLayers.CheckRows;
var
  Row: Integer;
  UnitName: string;
begin
  for Row := 0 to Rows.Count - 1 do
  begin
    UnitName := FirstGroup(RowPattern, Rows[Row]);
    if (UnitName <> '') and (Seen.IndexOf(UnitName) < 0) then
      Report.Add(ruLayers, FileName, Row + 1, UnitName + ' does not exist');
  end;
end;

end.
