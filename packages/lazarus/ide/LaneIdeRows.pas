/// Rows of a view: a tree of names with amounts and places in the source.
//
// Callers: one thread at a time.
unit LaneIdeRows;

{$mode objfpc}{$H+}

interface

uses
  Classes, contnrs;

const
  /// Most columns with numbers that a view has.
  MostAmounts = 5;
  /// In place of a column: rows in the order of their names.
  ByName = -1;

type
  TAmounts = array[0..MostAmounts - 1] of Int64;
  TAmountUnit = (auBytes, auCount);

  /// A line of a view, and the lines below it.
  TRow = class
  private
    Rows: TFPObjectList;       // nil while there are none
    Index: TFPDataHashTable;   // of Rows by key, once there are many
    SortKey: Int64;
    function RowAt(Number: Integer): TRow;
    procedure FillIndex;
  public
    Text: string;
    Note: string;              // advice, what retains it
    FileName: string;          // as in the report; empty: no place
    Line: Integer;
    Amounts: TAmounts;
    IsOpen: Boolean;
    destructor Destroy; override;
    /// Adds a row at the end.
    function Add(const RowText: string): TRow;
    /// Returns the row of this name and place, a new one if there is none.
    function Obtain(const RowText, RowFile: string; RowLine: Integer): TRow;
    /// Returns the row of this name and place; nil if there is none.
    function Find(const RowText, RowFile: string; RowLine: Integer): TRow;
    /// Sorts all rows below, the most in Column first; equal ones by name.
    procedure Sort(Column: Integer);
    /// Opens the rows that are open below Other, which has the same view of another time.
    procedure OpenAs(Other: TRow);
    function Count: Integer;
    /// `Unit.pas:12`; empty without a place.
    function Place: string;
    /// Returns this row, or the first one below it, that has a place; nil if there is none.
    function Placed: TRow;
    property Items[Number: Integer]: TRow read RowAt; default;
  end;

  TColumn = record
    Title: string;
    AmountUnit: TAmountUnit;
  end;

  /// A tree of rows, and its columns.
  TView = class
  public
    Title: string;
    RowTitle: string;          // of the column of names
    NoteTitle: string;         // empty: no column of notes
    Columns: array of TColumn;
    Root: TRow;
    Summary: string;           // above the rows
    Advice: string;            // what to do where there are no rows
    constructor Create(const ViewTitle, FirstTitle: string; const Amounts: array of TColumn);
    destructor Destroy; override;
    /// Replaces the rows; what was open stays so.
    procedure TakeRows(NewRoot: TRow);
    /// Returns a view with the changes of the amounts from Before to this one. Rows of the same name
    /// and place are compared; those that have not changed are left out.
    function Since(Before: TView): TView;
  end;

/// Returns a column of bytes.
function BytesColumn(const Title: string): TColumn;
/// Returns a column of numbers.
function CountColumn(const Title: string): TColumn;
/// Returns `1.5 MB`; up to 9,999 bytes without rounding.
function BytesText(Bytes: Int64): string;
/// Returns `12,345`.
function CountText(Count: Int64): string;
/// Returns an amount with its unit.
function AmountText(Amount: Int64; AmountUnit: TAmountUnit): string;

implementation

uses
  SysUtils;

const
  IndexedRows = 16;   // as many are found without an index

function KeyOf(const Text, FileName: string; Line: Integer): string;
begin
  Result := Text + #0 + FileName + #0 + IntToStr(Line);
end;

// ---------------------------------------------------------------------------- rows

destructor TRow.Destroy;
begin
  Index.Free;
  Rows.Free;
  inherited Destroy;
end;

function TRow.Count: Integer;
begin
  if Rows = nil then
    Exit(0);
  Result := Rows.Count;
end;

function TRow.RowAt(Number: Integer): TRow;
begin
  Result := TRow(Rows[Number]);
end;

function TRow.Place: string;
begin
  if FileName = '' then
    Exit('');
  Result := FileName + ':' + IntToStr(Line);
end;

function TRow.Placed: TRow;
var
  Number: Integer;
begin
  if Line > 0 then
    Exit(Self);
  Result := nil;
  for Number := 0 to Count - 1 do
  begin
    Result := Items[Number].Placed;
    if Result <> nil then
      Exit;
  end;
end;

function TRow.Add(const RowText: string): TRow;
begin
  if Rows = nil then
    Rows := TFPObjectList.Create;
  Result := TRow.Create;
  Result.Text := RowText;
  Rows.Add(Result);
  FreeAndNil(Index);
end;

procedure TRow.FillIndex;
var
  Number: Integer;
  Key: string;
begin
  Index := TFPDataHashTable.CreateWith(Count * 4, @RSHash);
  for Number := 0 to Count - 1 do
  begin
    Key := KeyOf(Items[Number].Text, Items[Number].FileName, Items[Number].Line);
    if Index.Find(Key) = nil then
      Index.Add(Key, Items[Number]);
  end;
end;

function TRow.Find(const RowText, RowFile: string; RowLine: Integer): TRow;
var
  Number: Integer;
  Node: THTCustomNode;
begin
  Result := nil;
  if Count > IndexedRows then
  begin
    if Index = nil then
      FillIndex;
    Node := Index.Find(KeyOf(RowText, RowFile, RowLine));
    if Node <> nil then
      Result := TRow(THTDataNode(Node).Data);
    Exit;
  end;
  for Number := 0 to Count - 1 do
    if (Items[Number].Line = RowLine) and (Items[Number].Text = RowText)
      and (Items[Number].FileName = RowFile) then
      Exit(Items[Number]);
end;

function TRow.Obtain(const RowText, RowFile: string; RowLine: Integer): TRow;
var
  Kept: TFPDataHashTable;
begin
  Result := Find(RowText, RowFile, RowLine);
  if Result <> nil then
    Exit;
  Kept := Index;
  Index := nil;
  Result := Add(RowText);
  Result.FileName := RowFile;
  Result.Line := RowLine;
  // An index that would have long chains is made anew when it is needed next.
  if (Kept <> nil) and (Count <= LongInt(Kept.HashTableSize) * 2) then
  begin
    Kept.Add(KeyOf(RowText, RowFile, RowLine), Result);
    Index := Kept;
  end
  else
    Kept.Free;
end;

function CompareRows(Left, Right: Pointer): Integer;
begin
  if TRow(Left).SortKey <> TRow(Right).SortKey then
  begin
    Result := 1;
    if TRow(Left).SortKey > TRow(Right).SortKey then
      Result := -1;
    Exit;
  end;
  Result := CompareStr(TRow(Left).Text, TRow(Right).Text);
  if Result = 0 then
    Result := TRow(Left).Line - TRow(Right).Line;
end;

procedure TRow.Sort(Column: Integer);
var
  Number: Integer;
begin
  for Number := 0 to Count - 1 do
  begin
    if Column = ByName then
      Items[Number].SortKey := 0
    else
      Items[Number].SortKey := Items[Number].Amounts[Column];
    Items[Number].Sort(Column);
  end;
  if Count > 1 then
    Rows.Sort(@CompareRows);
end;

procedure TRow.OpenAs(Other: TRow);
var
  Number: Integer;
  Known: TRow;
begin
  for Number := 0 to Other.Count - 1 do
    if Other[Number].IsOpen then
    begin
      Known := Find(Other[Number].Text, Other[Number].FileName, Other[Number].Line);
      if Known <> nil then
      begin
        Known.IsOpen := True;
        Known.OpenAs(Other[Number]);
      end;
    end;
end;

// ---------------------------------------------------------------------------- views

constructor TView.Create(const ViewTitle, FirstTitle: string; const Amounts: array of TColumn);
var
  Number: Integer;
begin
  Title := ViewTitle;
  RowTitle := FirstTitle;
  SetLength(Columns, Length(Amounts));
  for Number := 0 to High(Amounts) do
    Columns[Number] := Amounts[Number];
  Root := TRow.Create;
end;

destructor TView.Destroy;
begin
  Root.Free;
  inherited Destroy;
end;

procedure TView.TakeRows(NewRoot: TRow);
begin
  NewRoot.OpenAs(Root);
  Root.Free;
  Root := NewRoot;
end;

// Adds to Into what has changed from Before to After below it; each of both may be nil.
procedure AddChanges(Into, Before, After: TRow); forward;

// Adds the change of one row, and what changed below it.
procedure AddChange(Into, Before, After: TRow);
var
  Named, Row: TRow;
  Column: Integer;
  IsChanged: Boolean;
begin
  Named := After;
  if Named = nil then
    Named := Before;
  Row := Into.Add(Named.Text);
  Row.Note := Named.Note;
  Row.FileName := Named.FileName;
  Row.Line := Named.Line;
  IsChanged := False;
  for Column := 0 to MostAmounts - 1 do
  begin
    if After <> nil then
      Row.Amounts[Column] := After.Amounts[Column];
    if Before <> nil then
      Dec(Row.Amounts[Column], Before.Amounts[Column]);
    IsChanged := IsChanged or (Row.Amounts[Column] <> 0);
  end;
  AddChanges(Row, Before, After);
  if not IsChanged and (Row.Count = 0) and (Before <> nil) and (After <> nil) then
    Into.Rows.Remove(Row);
end;

procedure AddChanges(Into, Before, After: TRow);
var
  Number: Integer;
  Other: TRow;
begin
  if After <> nil then
    for Number := 0 to After.Count - 1 do
    begin
      Other := nil;
      if Before <> nil then
        Other := Before.Find(After[Number].Text, After[Number].FileName, After[Number].Line);
      AddChange(Into, Other, After[Number]);
    end;
  if Before <> nil then
    for Number := 0 to Before.Count - 1 do
      if (After = nil) or (After.Find(Before[Number].Text, Before[Number].FileName,
        Before[Number].Line) = nil) then
        AddChange(Into, Before[Number], nil);
end;

function TView.Since(Before: TView): TView;
begin
  Result := TView.Create(Title, RowTitle, Columns);
  Result.NoteTitle := NoteTitle;
  AddChanges(Result.Root, Before.Root, Root);
end;

// ---------------------------------------------------------------------------- amounts

function BytesColumn(const Title: string): TColumn;
begin
  Result.Title := Title;
  Result.AmountUnit := auBytes;
end;

function CountColumn(const Title: string): TColumn;
begin
  Result.Title := Title;
  Result.AmountUnit := auCount;
end;

function CountText(Count: Int64): string;
var
  Position: Integer;
begin
  Result := IntToStr(Abs(Count));
  Position := Length(Result) - 2;
  while Position > 1 do
  begin
    Insert(',', Result, Position);
    Dec(Position, 3);
  end;
  if Count < 0 then
    Result := '-' + Result;
end;

function BytesText(Bytes: Int64): string;
const
  Units: array[0..4] of string = ('KB', 'MB', 'GB', 'TB', 'PB');
  Exactly = 9999;
var
  Amount: Double;
  Step: Integer;
begin
  if Abs(Bytes) <= Exactly then
    Exit(CountText(Bytes));
  Amount := Bytes / 1024;
  Step := 0;
  while (Abs(Amount) >= 1024) and (Step < High(Units)) do
  begin
    Amount := Amount / 1024;
    Inc(Step);
  end;
  Str(Amount: 0: 1, Result);
  Result := Result + ' ' + Units[Step];
end;

function AmountText(Amount: Int64; AmountUnit: TAmountUnit): string;
begin
  if AmountUnit = auBytes then
    Result := BytesText(Amount)
  else
    Result := CountText(Amount);
end;

end.
