/// A grid that shows a view: a tree with columns, of which only the visible cells are drawn.
//
// Keys: Right and Left open and close a row, or go to the first row below it and to the one above;
//       Enter goes to its line; + - open and close it, * all below it; Ctrl+C copies it.
// Mouse: a double click goes to the line, the right button has a menu of the row, the wheel scrolls.
unit LaneIdeGrid;

{$mode objfpc}{$H+}

interface

uses
  Classes, Types, Controls, Grids, Menus, LaneIdeRows;

type
  TRowEvent = procedure(Item: TRow) of object;

  TShownRow = record
    Row: TRow;
    Depth: Integer;
  end;

  /// Shows the rows of a view that are open. The view stays its owner's.
  TLaneGrid = class(TCustomDrawGrid)
  private
    Shown: array of TShownRow;
    ShownCount: Integer;
    View: TView;
    SortedBy: Integer;
    JumpEvent: TRowEvent;
    Pressed: TPoint;     // where the mouse was pressed last
    FitWidth: Integer;   // the width that columns were sized for
    procedure AddShown(Item: TRow; Depth: Integer);
    procedure AddBelow(Item: TRow; Depth: Integer);
    procedure FillShown;
    function AmountOf(Column: Integer): Integer;
    function CellText(Column: Integer; Item: TRow): string;
    function HeadText(Column: Integer): string;
    procedure DrawMark(const Area: TRect; IsOpen: Boolean);
    procedure AddChoice(const Title: string; Chosen: TNotifyEvent);
    procedure MarkRows(Item: TRow; var Most: Integer);
    procedure Step(IsInto: Boolean);
    procedure MenuShown(Sender: TObject);
    procedure JumpChosen(Sender: TObject);
    procedure OpenAll(Sender: TObject);
    procedure CopyRow(Sender: TObject);
    function MarkAt(const Place: TPoint): TRow;
    procedure Fit(Data: PtrInt);
    procedure SizeColumns;
  protected
    procedure DrawCell(Column, Line: Integer; Area: TRect; State: TGridDrawState); override;
    procedure HeaderClick(IsColumn: Boolean; Index: Integer); override;
    procedure KeyDown(var Key: Word; Shift: TShiftState); override;
    procedure KeyPress(var Key: Char); override;
    procedure MouseDown(Button: TMouseButton; Shift: TShiftState; X, Y: Integer); override;
    procedure DblClick; override;
    procedure Paint; override;
  public
    constructor Create(TheOwner: TComponent); override;
    destructor Destroy; override;
    /// Shows a view, the rows of which may have changed; nil: nothing.
    procedure ShowView(NewView: TView);
    /// Opens or closes a row, and shows it so.
    procedure Open(Item: TRow; IsOpen: Boolean);
    /// The selected row; nil without one.
    function Selected: TRow;
    /// Returns how many rows are shown.
    function RowsShown: Integer;
    /// Goes to the line of the selected row.
    procedure Jump;
    /// Sorts by a column of the grid: 0 the names, then amounts.
    procedure SortBy(Column: Integer);
    /// Called with the row whose line is to be shown.
    property OnJump: TRowEvent read JumpEvent write JumpEvent;
  end;

implementation

uses
  SysUtils, Math, Forms, StdCtrls, Graphics, LCLType, Clipbrd, LaneIdeWords;

const
  Indent = 16;        // pixels a level
  Border = 4;
  MostOpened = 5000;  // rows that one key opens
  AmountWidth = 96;

constructor TLaneGrid.Create(TheOwner: TComponent);
begin
  inherited Create(TheOwner);
  FixedCols := 0;
  FixedRows := 1;
  Options := [goFixedHorzLine, goVertLine, goRowSelect, goColSizing, goThumbTracking,
    goSmoothScroll, goHeaderPushedLook];
  DefaultDrawing := False;
  TabStop := True;
  Flat := True;
  ScrollBars := ssAutoVertical;
  MouseWheelOption := mwGrid;
  AllowOutboundEvents := False; // below the last row there is none
  PopupMenu := TPopupMenu.Create(Self);
  PopupMenu.OnPopup := @MenuShown;
  AddChoice(rsGoToLine, @JumpChosen);
  AddChoice(rsOpenAll, @OpenAll);
  AddChoice(rsCopy, @CopyRow);
end;

destructor TLaneGrid.Destroy;
begin
  Application.RemoveAsyncCalls(Self);
  inherited Destroy;
end;

procedure TLaneGrid.AddChoice(const Title: string; Chosen: TNotifyEvent);
var
  Choice: TMenuItem;
begin
  Choice := TMenuItem.Create(Self);
  Choice.Caption := Title;
  Choice.OnClick := Chosen;
  PopupMenu.Items.Add(Choice);
end;

// ---------------------------------------------------------------------------- rows

procedure TLaneGrid.AddShown(Item: TRow; Depth: Integer);
begin
  if ShownCount = Length(Shown) then
    SetLength(Shown, Max(64, ShownCount * 2));
  Shown[ShownCount].Row := Item;
  Shown[ShownCount].Depth := Depth;
  Inc(ShownCount);
end;

procedure TLaneGrid.AddBelow(Item: TRow; Depth: Integer);
var
  Number: Integer;
begin
  for Number := 0 to Item.Count - 1 do
  begin
    AddShown(Item[Number], Depth);
    if Item[Number].IsOpen then
      AddBelow(Item[Number], Depth + 1);
  end;
end;

procedure TLaneGrid.FillShown;
begin
  ShownCount := 0;
  if View <> nil then
    AddBelow(View.Root, 0);
  RowCount := Max(ShownCount, 1) + 1;
  Invalidate;
end;

procedure TLaneGrid.ShowView(NewView: TView);
var
  IsOther: Boolean;
begin
  IsOther := (View = nil) or (NewView = nil) or (View.Title <> NewView.Title);
  View := NewView;
  if IsOther then
    SortedBy := 1;
  if NewView <> nil then
    ColCount := 2 + Length(View.Columns) + Ord(View.NoteTitle <> '');
  FillShown;
  if IsOther then
  begin
    SizeColumns;
    TopRow := 1;
    Row := 1;
  end;
end;

function TLaneGrid.RowsShown: Integer;
begin
  Result := ShownCount;
end;

function TLaneGrid.Selected: TRow;
begin
  Result := nil;
  if (Row >= 1) and (Row <= ShownCount) then
    Result := Shown[Row - 1].Row;
end;

procedure TLaneGrid.Open(Item: TRow; IsOpen: Boolean);
begin
  if (Item = nil) or (Item.Count = 0) or (Item.IsOpen = IsOpen) then
    Exit;
  Item.IsOpen := IsOpen;
  FillShown;
end;

// Marks the rows as open, Most of them.
procedure TLaneGrid.MarkRows(Item: TRow; var Most: Integer);
var
  Number: Integer;
begin
  Item.IsOpen := Item.Count > 0;
  Dec(Most, Item.Count);
  for Number := 0 to Item.Count - 1 do
    if Most > 0 then
      MarkRows(Item[Number], Most);
end;

// ---------------------------------------------------------------------------- cells

// Returns the amount of a column; below 0: another one.
function TLaneGrid.AmountOf(Column: Integer): Integer;
begin
  Result := Column - 1;
  if Result >= Length(View.Columns) then
    Result := -1;
end;

function TLaneGrid.HeadText(Column: Integer): string;
begin
  if Column = 0 then
    Result := View.RowTitle
  else if AmountOf(Column) >= 0 then
    Result := View.Columns[AmountOf(Column)].Title
  else if Column = Length(View.Columns) + 1 then
    Result := rsPlace
  else
    Result := View.NoteTitle;
  if (Column = SortedBy) and (AmountOf(Column) >= 0) then
    Result := Result + ' ▼';
end;

function TLaneGrid.CellText(Column: Integer; Item: TRow): string;
begin
  if Column = 0 then
    Result := Item.Text
  else if AmountOf(Column) >= 0 then
    Result := AmountText(Item.Amounts[AmountOf(Column)], View.Columns[AmountOf(Column)].AmountUnit)
  else if Column = Length(View.Columns) + 1 then
    Result := Item.Place
  else
    Result := Item.Note;
end;

procedure TLaneGrid.SizeColumns;
var
  Number, Rest, Least: Integer;
begin
  if View = nil then
    Exit;
  FitWidth := ClientWidth;
  Rest := FitWidth;
  for Number := 1 to ColCount - 1 do
  begin
    if AmountOf(Number) >= 0 then
      ColWidths[Number] := Scale96ToFont(AmountWidth)
    else if Number = Length(View.Columns) + 1 then
      ColWidths[Number] := EnsureRange(FitWidth div 6, Scale96ToFont(AmountWidth),
        Scale96ToFont(AmountWidth * 3 div 2))
    else
      ColWidths[Number] := Max(Scale96ToFont(AmountWidth * 3), FitWidth * 2 div 5);
    Dec(Rest, ColWidths[Number]);
  end;
  Least := Scale96ToFont(AmountWidth * 4 div 3);
  ColWidths[0] := Max(Least, Rest);
  if HandleAllocated and (Rest < Least) then
    ScrollBars := ssAutoBoth // made with it, the window of GTK would show it always
  else
    ScrollBars := ssAutoVertical;
end;

// Another size of the window, or a scroll bar has come or gone.
procedure TLaneGrid.Paint;
begin
  inherited Paint;
  if ClientWidth <> FitWidth then
    Application.QueueAsyncCall(@Fit, 0); // nothing may change while it is painted
end;

procedure TLaneGrid.Fit(Data: PtrInt);
begin
  SizeColumns;
end;

// Draws the triangle of a row that has others below it.
procedure TLaneGrid.DrawMark(const Area: TRect; IsOpen: Boolean);
var
  X, Y, Half: Integer;
begin
  Half := Scale96ToFont(4);
  X := Area.Left + Scale96ToFont(Indent) div 2;
  Y := (Area.Top + Area.Bottom) div 2;
  Canvas.Brush.Color := Canvas.Font.Color;
  Canvas.Pen.Color := Canvas.Font.Color;
  if IsOpen then
    Canvas.Polygon([Point(X - Half, Y - Half div 2), Point(X + Half, Y - Half div 2),
      Point(X, Y + Half)])
  else
    Canvas.Polygon([Point(X - Half div 2, Y - Half), Point(X - Half div 2, Y + Half),
      Point(X + Half, Y)]);
end;

procedure TLaneGrid.DrawCell(Column, Line: Integer; Area: TRect; State: TGridDrawState);
var
  Style: TTextStyle;
  Words: string;
  Item: TRow;
begin
  Canvas.Font := Font;
  Canvas.Font.Color := clWindowText;
  Canvas.Brush.Color := clWindow;
  if Line = 0 then
    Canvas.Brush.Color := clBtnFace
  else if gdSelected in State then
  begin
    Canvas.Brush.Color := clHighlight;
    Canvas.Font.Color := clHighlightText;
  end;
  Canvas.FillRect(Area);
  if (View = nil) or (Line > ShownCount) then
    Exit;
  Style := Canvas.TextStyle;
  Style.Layout := tlCenter;
  Style.SingleLine := True;
  Style.Clipping := True;
  Style.EndEllipsis := True;
  if AmountOf(Column) >= 0 then
    Style.Alignment := taRightJustify
  else
    Style.Alignment := taLeftJustify;
  if Line = 0 then
    Words := HeadText(Column)
  else
  begin
    Item := Shown[Line - 1].Row;
    Words := CellText(Column, Item);
    if Column = 0 then
    begin
      Inc(Area.Left, Scale96ToFont(Indent) * Shown[Line - 1].Depth);
      if Item.Count > 0 then
        DrawMark(Area, Item.IsOpen);
      Inc(Area.Left, Scale96ToFont(Indent));
    end;
  end;
  InflateRect(Area, -Border, 0);
  Canvas.Brush.Style := bsClear;
  Canvas.TextRect(Area, Area.Left, Area.Top, Words, Style);
  Canvas.Brush.Style := bsSolid;
end;

// ---------------------------------------------------------------------------- keys and mouse

procedure TLaneGrid.SortBy(Column: Integer);
var
  Known: TRow;
  Number: Integer;
begin
  if (View = nil) or (Column > Length(View.Columns)) then
    Exit;
  Known := Selected;
  SortedBy := Column;
  View.Root.Sort(Column - 1);
  FillShown;
  for Number := 0 to ShownCount - 1 do
    if Shown[Number].Row = Known then
      Row := Number + 1;
end;

procedure TLaneGrid.HeaderClick(IsColumn: Boolean; Index: Integer);
begin
  inherited HeaderClick(IsColumn, Index);
  if IsColumn then
    SortBy(Index);
end;

procedure TLaneGrid.Jump;
begin
  if (Selected <> nil) and Assigned(JumpEvent) then
    JumpEvent(Selected);
end;

// Opens the selected row, or goes into it; closes it, or goes to the row above it.
procedure TLaneGrid.Step(IsInto: Boolean);
var
  Depth: Integer;
begin
  if Selected = nil then
    Exit;
  if IsInto then
  begin
    if Selected.Count = 0 then
      Exit;
    if Selected.IsOpen then
      Row := Row + 1
    else
      Open(Selected, True);
  end
  else if Selected.IsOpen then
    Open(Selected, False)
  else
  begin
    Depth := Shown[Row - 1].Depth;
    while (Row > 1) and (Depth > 0) and (Shown[Row - 1].Depth >= Depth) do
      Row := Row - 1;
  end;
end;

procedure TLaneGrid.MenuShown(Sender: TObject);
begin
  PopupMenu.Items[0].Enabled := (Selected <> nil) and (Selected.Placed <> nil);
  PopupMenu.Items[1].Enabled := (Selected <> nil) and (Selected.Count > 0);
  PopupMenu.Items[2].Enabled := Selected <> nil;
end;

procedure TLaneGrid.JumpChosen(Sender: TObject);
begin
  Jump;
end;

procedure TLaneGrid.OpenAll(Sender: TObject);
var
  Most: Integer;
begin
  Most := MostOpened;
  if Selected <> nil then
    MarkRows(Selected, Most);
  FillShown;
end;

procedure TLaneGrid.CopyRow(Sender: TObject);
var
  Column: Integer;
  Words: string;
begin
  Words := '';
  for Column := 0 to ColCount - 1 do
    Words := Words + CellText(Column, Selected) + #9;
  Clipboard.AsText := TrimRight(Words);
end;

procedure TLaneGrid.KeyDown(var Key: Word; Shift: TShiftState);
begin
  if Selected <> nil then
  begin
    case Key of
      VK_RIGHT: Step(True);
      VK_LEFT: Step(False);
      VK_ADD, VK_OEM_PLUS: Open(Selected, True);
      VK_SUBTRACT, VK_OEM_MINUS: Open(Selected, False);
      VK_MULTIPLY: OpenAll(nil);
      VK_RETURN: Jump;
      VK_C:
        if ssCtrl in Shift then
          CopyRow(nil)
        else
          Exit;
    else
      inherited KeyDown(Key, Shift);
      Exit;
    end;
    Key := 0;
  end
  else
    inherited KeyDown(Key, Shift);
end;

// Each keyboard has its own key for `*`, besides that of the keypad.
procedure TLaneGrid.KeyPress(var Key: Char);
begin
  if Key = '*' then
    OpenAll(nil);
  inherited KeyPress(Key);
end;

// Returns the row whose triangle is there; else nil.
function TLaneGrid.MarkAt(const Place: TPoint): TRow;
var
  Cell: TPoint;
  X: Integer;
begin
  Result := nil;
  Cell := MouseToCell(Place);
  if (Cell.X <> 0) or (Cell.Y < 1) or (Cell.Y > ShownCount) then
    Exit;
  X := Place.X - CellRect(0, Cell.Y).Left - Scale96ToFont(Indent) * Shown[Cell.Y - 1].Depth;
  if (X >= 0) and (X < Scale96ToFont(Indent)) and (Shown[Cell.Y - 1].Row.Count > 0) then
    Result := Shown[Cell.Y - 1].Row;
end;

procedure TLaneGrid.MouseDown(Button: TMouseButton; Shift: TShiftState; X, Y: Integer);
var
  Marked: TRow;
begin
  inherited MouseDown(Button, Shift, X, Y);
  Pressed := Point(X, Y);
  if (Button = mbRight) and (MouseToCell(Pressed).Y >= 1) then
    Row := MouseToCell(Pressed).Y;
  Marked := MarkAt(Pressed);
  if (Button = mbLeft) and (Marked <> nil) then
    Open(Marked, not Marked.IsOpen);
end;

procedure TLaneGrid.DblClick;
begin
  inherited DblClick;
  if (MouseToCell(Pressed).Y >= 1) and (MarkAt(Pressed) = nil) then
    Jump;
end;

end.
