/// Uses the window of LaneMM in a real IDE, as a user does, and ends the IDE: for tests/lazarus/ide.sh.
//
// LANEMM_IDE_TEST: the file for lines `passed: ...` and `failed: ...`; pictures go beside it. Without the
// variable it does nothing. LANEMM_IDE_STEPS: dock, in an IDE with docked windows, by the mouse; again, after it,
// whether the place of the window has come back. Without it: the runs, and the marks in the editor.
unit LaneIdeDriver;

{$mode objfpc}{$H+}

interface

/// Called by the IDE when it loads the package.
procedure Register;

implementation

uses
  Classes, SysUtils, FileUtil, Types, Process, Controls, ComCtrls, Forms, ExtCtrls, Clipbrd, MenuIntf, LazIDEIntf,
  IDEWindowIntf, SrcEditorIntf, SynEdit, SynEditMarks, LaneIdeRows, LaneIdeReports, LaneIdeWindow, LaneIdeMenu,
  LaneIdeMarks, LaneIdeUse;

const
  Variable = 'LANEMM_IDE_TEST';
  Steps = 'LANEMM_IDE_STEPS';
  PlaceFile = 'place';   // beside the results: where the window was docked

type
  TDriver = class
    Clock: TTimer;
    Results: TStringList;
    procedure Tick(Sender: TObject);
    procedure Check(const Promise: string; IsKept: Boolean);
    procedure ShowWindow;
    procedure CheckRow(const Promise: string; Row: TRow);
    procedure Drive;
    procedure UseMouse;
    procedure Dock;
    procedure DockAgain;
    procedure ComeBack;
  end;

procedure TDriver.Check(const Promise: string; IsKept: Boolean);
const
  Words: array[Boolean] of string = ('failed: ', 'passed: ');
begin
  Results.Add(Words[IsKept] + Promise);
  Results.SaveToFile(GetEnvironmentVariable(Variable));
end;

// Returns the path of a file beside the results.
function Beside(const Name: string): string;
begin
  Result := ExtractFilePath(GetEnvironmentVariable(Variable)) + Name;
end;

procedure Picture(const Name: string);
begin
  Pause(400);
  SavePicture(0, Beside('lazarus-ide-' + Name + '.png'));
end;

function HasEnded: Boolean;
begin
  Result := not TheWindow.IsRunning;
end;

// Returns how many lines of an editor are marked.
function MarkCount(Editor: TSourceEditorInterface): Integer;
var
  Edit: TCustomSynEdit;
  Number: Integer;
begin
  Result := 0;
  Edit := Editor.EditorControl as TCustomSynEdit;
  for Number := 0 to Edit.Marks.Count - 1 do
    if Edit.Marks[Number] is TLaneMark then
      Inc(Result);
end;

// Chooses View > LaneMM.
procedure TDriver.ShowWindow;
var
  Item: TIDEMenuItem;
begin
  Item := itmViewMainWindows.FindByName('LaneMM');
  Check('the menu View has an item LaneMM', Item is TIDEMenuCommand);
  TIDEMenuCommand(Item).DoOnClick;
  Pause(500);
end;

// Whether the line of a row stands in the editor.
procedure TDriver.CheckRow(const Promise: string; Row: TRow);
var
  Editor: TSourceEditorInterface;
begin
  Editor := SourceEditorManagerIntf.ActiveEditor;
  Check(Promise, (Editor <> nil) and (ExtractFileName(Editor.FileName) = Row.FileName)
    and (Editor.CursorTextXY.Y = Row.Line));
end;

procedure TDriver.Drive;
var
  Row: TRow;
begin
  ShowWindow;
  Check('the window is one of the IDE', (IDEWindowCreators.FindWithName('LaneMM') <> nil)
    and TheWindow.IsVisible);
  TheWindow.SettingsEdit.Text := 'rate=1';
  TheWindow.Run(rkProfile);
  Check('the project is built and runs: ' + TheWindow.StatusLine.SimpleText, TheWindow.IsRunning);
  Await(@HasEnded);
  Row := TheWindow.LastReport.Views[vkLines].Root;
  Check('its profile is read', Row.Count > 0);
  TheWindow.ShowView(vkLines);
  TheWindow.View.Jump;
  CheckRow('a line is opened in the editor', Row[0]);
  Check('lines that allocate are marked', MarkCount(SourceEditorManagerIntf.ActiveEditor) > 3);
  Picture('marks');
  TheWindow.SettingsEdit.Text := '';
  TheWindow.Run(rkLeaks);
  Await(@HasEnded);
  Row := TheWindow.LastReport.Views[vkRetained].Root;
  Check('leaks of the project are read', (Row.Count > 0) and (Row[0].Text = 'Shop.TOrder'));
end;

// ---------------------------------------------------------------------------- docked

// Lets xdotool move and press the mouse, or press keys, while the IDE handles that.
procedure Use(const Words: string);
var
  Tool: TProcess;
begin
  Tool := TProcess.Create(nil);
  try
    Tool.Executable := FindDefaultExecutablePath('xdotool');
    CommandToList(Words, Tool.Parameters);
    Tool.Execute;
    while Tool.Running do
      Pause(10);
  finally
    Tool.Free;
  end;
  Pause(500);
end;

function MoveTo(Place: TPoint): string;
begin
  Result := Format('mousemove %d %d ', [Place.X, Place.Y]);
end;

procedure Drag(Start, Target: TPoint);
const
  StepCount = 6;
var
  Words: string;
  Number: Integer;
begin
  Words := MoveTo(Start) + 'mousedown 1 sleep 0.2 ';
  for Number := 1 to StepCount do
    Words := Words + MoveTo(Point(Start.X + (Target.X - Start.X) * Number div StepCount,
      Start.Y + (Target.Y - Start.Y) * Number div StepCount)) + 'sleep 0.2 ';
  Use(Words + 'mouseup 1');
end;

// Returns a place in the middle of a column of the row with the number Line.
function CellAt(Column, Line: Integer): TPoint;
begin
  Result := TheWindow.View.ClientToScreen(TheWindow.View.CellRect(Column, Line).CenterPoint);
end;

// Returns the part of the frame of a docked window that has this class.
function PartOf(Control: TWinControl; const Kind: string): TControl;
var
  Number: Integer;
begin
  for Number := 0 to Control.ControlCount - 1 do
    if Control.Controls[Number].ClassNameIs(Kind) then
      Exit(Control.Controls[Number]);
  raise Exception.Create('no ' + Kind);
end;

function MiddleOf(Control: TControl): TPoint;
begin
  Result := Control.ClientToScreen(Point(Control.Width div 2, Control.Height div 2));
end;

function IsDocked: Boolean;
begin
  Result := TheWindow.IsVisible and (GetParentForm(TheWindow) = LazarusIDE.GetMainBar);
end;

// Returns where the window is on the screen.
function PlaceText: string;
var
  Corner: TPoint;
begin
  Corner := TheWindow.ClientToScreen(Point(0, 0));
  Result := Format('%d,%d %dx%d', [Corner.X, Corner.Y, TheWindow.Width, TheWindow.Height]);
end;

// The pages of the messages, of which the window is one.
function ThePages: TCustomTabControl;
begin
  Result := TheWindow.Parent.Parent.Parent as TCustomTabControl;
end;

procedure TDriver.UseMouse;
var
  Row: TRow;
  Before: Integer;
begin
  Row := TheWindow.LastReport.Views[vkRetained].Root[0];
  Use(MoveTo(CellAt(1, 1)) + 'click --repeat 2 --delay 80 1');
  CheckRow('a double click opens the line in the editor', Row);
  // In one go: a menu handles what happens until it is closed.
  Use(MoveTo(CellAt(1, 1)) + 'click 3 sleep 0.5 key Down Down Down Return');
  Check('the menu of the right button copies the row: ' + Clipboard.AsText,
    Pos('Shop.TOrder'#9, Clipboard.AsText) = 1);
  Use(MoveTo(CellAt(1, 1)) + 'click 1');
  Before := TheWindow.View.RowsShown;
  Use('key asterisk');
  Check('the key * opens all below the row', TheWindow.View.RowsShown > Before);
  Use('key ctrl+2');
  Check('Ctrl+2 shows the second view', (TheWindow.View.Selected <> nil)
    and (TheWindow.View.Selected.Place <> Row.Place));
  Use('key ctrl+1');
  Picture('docked');
end;

procedure TDriver.Dock;
var
  Splitter: TPoint;
  Rows: Integer;
begin
  LazarusIDE.GetMainBar.SetBounds(0, 0, 1270, 880);
  Pause(500);
  ShowWindow;
  Check('the window is docked beside the messages',
    IsDocked and (TheWindow.Parent.Parent is TCustomPage));
  TheWindow.SettingsEdit.Text := 'rate=1'; // that of an earlier run with profile
  TheWindow.Run(rkLeaks);
  Check('the project is built and runs: ' + TheWindow.StatusLine.SimpleText, TheWindow.IsRunning);
  Await(@HasEnded);
  Check('and has place for the head and two rows',
    TheWindow.View.ClientHeight >= 3 * TheWindow.View.DefaultRowHeight);
  Splitter := ThePages.ControlOrigin + Point(ThePages.Width div 2, -6);
  Drag(Splitter, Splitter - Point(0, 150));
  UseMouse;
  Rows := TheWindow.View.RowsShown;
  TheWindow.Close;
  Pause(500);
  Check('it closes', not TheWindow.IsVisible);
  ShowWindow;
  Check('and comes back there, with its rows', IsDocked and (TheWindow.Parent.Parent is TCustomPage)
    and (TheWindow.View.RowsShown = Rows));
  ThePages.PageIndex := 0;
  Pause(200);
  Check('behind the messages it is not visible, and asks no program', not TheWindow.IsVisible);
  ShowWindow;
  DockAgain;
end;

// Out of the IDE by its tab, and below the editor by its head.
procedure TDriver.DockAgain;
var
  Editor: TWinControl;
  Tab: TPoint;
  Place: TStringList;
  Rows: Integer;
begin
  Rows := TheWindow.View.RowsShown;
  Tab := ThePages.ClientToScreen(ThePages.TabRect(ThePages.PageIndex).CenterPoint);
  Drag(Tab, Point(Tab.X, 920)); // below the IDE
  Check('a drag of its tab undocks it, with its rows', TheWindow.IsVisible and not IsDocked
    and (TheWindow.View.RowsShown = Rows));
  Editor := SourceEditorManagerIntf.ActiveSourceWindow;
  Drag(MiddleOf(PartOf(TheWindow.Parent, 'TAnchorDockHeader')),
    Editor.ClientToScreen(Point(Editor.Width div 2, Editor.Height * 5 div 6)));
  Check('a drag of its head docks it below the editor', IsDocked
    and (TheWindow.ControlOrigin.Y > Editor.ControlOrigin.Y)
    and (TheWindow.View.RowsShown = Rows));
  Use(MoveTo(CellAt(1, 2)) + 'click --repeat 2 --delay 80 1');
  CheckRow('a double click opens the line there, too',
    TheWindow.LastReport.Views[vkRetained].Root[0][0]);
  Place := TStringList.Create;
  Place.Text := PlaceText;
  Place.SaveToFile(Beside(PlaceFile));
  Place.Free;
end;

procedure TDriver.ComeBack;
begin
  Pause(1000);
  Check('after a start of the IDE the window is there', Screen.FindForm('LaneMM') <> nil);
  Check('at its place: ' + PlaceText, IsDocked and (PlaceText = Trim(ReadFileToString(Beside(PlaceFile)))));
end;

// ---------------------------------------------------------------------------- start

procedure TDriver.Tick(Sender: TObject);
begin
  if not LazarusIDE.IDEStarted or (LazarusIDE.ActiveProject = nil) then
    Exit;
  Clock.Enabled := False;
  Results := TStringList.Create;
  try
    case GetEnvironmentVariable(Steps) of
      'dock': Dock;
      'again': ComeBack;
    else
      Drive;
    end;
  except
    on Error: Exception do
      Check(Error.ClassName + ': ' + Error.Message, False);
  end;
  Check('the end was reached', True);
  if GetEnvironmentVariable(Steps) = '' then
    Halt;
  LazarusIDE.GetMainBar.Close; // it writes where its windows are
end;

procedure Register;
var
  Driver: TDriver;
begin
  if GetEnvironmentVariable(Variable) = '' then
    Exit;
  Driver := TDriver.Create;
  Driver.Clock := TTimer.Create(Application);
  Driver.Clock.Interval := 500;
  Driver.Clock.OnTimer := @Driver.Tick;
end;

end.
