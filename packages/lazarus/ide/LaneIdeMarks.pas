/// Marks in the gutter of the editor: what each line has allocated in the last profile.
//
// How:     a mark of SynEdit for each line, so it moves with the text; a part of the gutter writes its
//          text. Files are known by their names without folders, as reports have them.
// Callers: the thread of the user interface.
unit LaneIdeMarks;

{$mode objfpc}{$H+}

interface

uses
  Classes, Graphics, SynEditMarks, SynGutterBase, LaneIdeRows;

type
  /// What a line has allocated.
  TLaneMark = class(TSynEditMark)
  public
    Words: string;
  end;

  /// The part of the gutter that shows the marks.
  TLaneGutterPart = class(TSynGutterPartBase)
  private
    Characters: Integer;   // of the longest mark
    function MarkAt(Line: Integer): TLaneMark;
  protected
    function PreferedWidthAtCurrentPPI: Integer; override;
  public
    procedure Paint(Canvas: TCanvas; AClip: TRect; FirstLine, LastLine: Integer); override;
  end;

/// Marks the lines of all open files; Lines are rows of the view of lines.
procedure MarkEditors(Lines: TRow);
/// Marks the lines of an editor, which is a TSynEdit. Returns how many there are.
function MarkEditor(Editor: TObject; const FileName: string; Lines: TRow): Integer;

implementation

uses
  SysUtils, Types, Math, SynEdit, SynEditMiscProcs, LazSynEditText, SrcEditorIntf,
  LaneIdeReports, LaneIdeWords;

const
  Margin = 6;   // pixels

// ---------------------------------------------------------------------------- the gutter

function TLaneGutterPart.PreferedWidthAtCurrentPPI: Integer;
begin
  Result := 0;
  if Characters > 0 then
    Result := Characters * Gutter.TextDrawer.CharWidth + Margin;
end;

function TLaneGutterPart.MarkAt(Line: Integer): TLaneMark;
var
  Marks: TSynEditMarkLine;
  Number: Integer;
begin
  Result := nil;
  Marks := TCustomSynEdit(SynEdit).Marks.Line[Line];
  if Marks <> nil then
    for Number := 0 to Marks.Count - 1 do
      if Marks[Number] is TLaneMark then
        Exit(TLaneMark(Marks[Number]));
end;

procedure TLaneGutterPart.Paint(Canvas: TCanvas; AClip: TRect; FirstLine, LastLine: Integer);
var
  Number, First, Line: Integer;
  Mark: TLaneMark;
  Range: TLineRange;
begin
  if not Visible then
    Exit;
  Canvas.Brush.Color := Gutter.Color;
  Canvas.FillRect(AClip);
  Canvas.Font.Assign(SynEdit.Font);
  Canvas.Font.Color := clNavy;
  Canvas.Brush.Style := bsClear;
  First := ToIdx(GutterArea.TextArea.TopLine);
  for Number := First + FirstLine to First + LastLine do
  begin
    Line := ToPos(ViewedTextBuffer.DisplayView.ViewToTextIndexEx(Number, Range));
    if Line > TCustomSynEdit(SynEdit).Lines.Count then
      Break;
    Mark := nil;
    if Number = Range.Top then
      Mark := MarkAt(Line);
    if Mark <> nil then
      Canvas.TextRect(AClip, AClip.Left + Margin div 2,
        AClip.Top + (Number - First - FirstLine) * TCustomSynEdit(SynEdit).LineHeight, Mark.Words);
  end;
  Canvas.Brush.Style := bsSolid;
end;

// ---------------------------------------------------------------------------- marks

// Returns the part of an editor's gutter, a new one if needed.
function PartOf(Edit: TCustomSynEdit): TLaneGutterPart;
var
  Number: Integer;
begin
  for Number := 0 to Edit.Gutter.Parts.Count - 1 do
    if Edit.Gutter.Parts[Number] is TLaneGutterPart then
      Exit(TLaneGutterPart(Edit.Gutter.Parts[Number]));
  Result := TLaneGutterPart.Create(Edit.Gutter.Parts);
end;

procedure DropMarks(Edit: TCustomSynEdit);
var
  Number: Integer;
begin
  for Number := Edit.Marks.Count - 1 downto 0 do
    if Edit.Marks[Number] is TLaneMark then
      Edit.Marks[Number].Free;
end;

function MarkEditor(Editor: TObject; const FileName: string; Lines: TRow): Integer;
var
  Edit: TCustomSynEdit;
  Part: TLaneGutterPart;
  Mark: TLaneMark;
  Number: Integer;
begin
  Result := 0;
  Edit := Editor as TCustomSynEdit;
  DropMarks(Edit);
  Part := PartOf(Edit);
  Part.Characters := 0;
  for Number := 0 to Lines.Count - 1 do
    if SameText(Lines[Number].FileName, ExtractFileName(FileName))
      and (Lines[Number].Line <= Edit.Lines.Count) and (Lines[Number].Amounts[AllocatedBlocks] > 0)
    then
    begin
      Mark := TLaneMark.Create(Edit);
      Mark.Words := Format(rsMark, [BytesText(Lines[Number].Amounts[AllocatedBytes]),
        CountText(Lines[Number].Amounts[AllocatedBlocks])]);
      Mark.Line := Lines[Number].Line;
      Mark.ImageIndex := -1; // no picture among those of breakpoints
      Mark.Visible := True;
      Edit.Marks.Add(Mark);
      Part.Characters := Max(Part.Characters, Length(Mark.Words));
      Inc(Result);
    end;
  Part.Visible := Result > 0;
  Part.AutoSize := False;
  Part.AutoSize := True; // takes the new width
  Edit.Invalidate;
end;

procedure MarkEditors(Lines: TRow);
var
  Number: Integer;
  Editor: TSourceEditorInterface;
begin
  for Number := 0 to SourceEditorManagerIntf.SourceEditorCount - 1 do
  begin
    Editor := SourceEditorManagerIntf.SourceEditors[Number];
    MarkEditor(Editor.EditorControl, Editor.FileName, Lines);
  end;
end;

end.
