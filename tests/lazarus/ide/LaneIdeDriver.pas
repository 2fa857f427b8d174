/// Uses the window of LaneMM in a real IDE, as a user does, and ends the IDE: for tests/lazarus/ide.sh.
//
// LANEMM_IDE_TEST: the file for lines `passed: ...` and `failed: ...`; pictures go beside it. Without the
// variable it does nothing.
unit LaneIdeDriver;

{$mode objfpc}{$H+}

interface

/// Called by the IDE when it loads the package.
procedure Register;

implementation

uses
  Classes, SysUtils, Forms, ExtCtrls, Graphics, LCLIntf, LCLType, MenuIntf, LazIDEIntf, IDEWindowIntf,
  SrcEditorIntf, SynEdit, SynEditMarks, LaneIdeRows, LaneIdeReports, LaneIdeWindow, LaneIdeMenu,
  LaneIdeMarks;

const
  Variable = 'LANEMM_IDE_TEST';
  MostMs = 60000;

type
  TDriver = class
    Clock: TTimer;
    Results: TStringList;
    procedure Tick(Sender: TObject);
    procedure Check(const Promise: string; IsKept: Boolean);
    procedure Picture(const Name: string);
    procedure Await;
    procedure Drive;
  end;

procedure TDriver.Check(const Promise: string; IsKept: Boolean);
const
  Words: array[Boolean] of string = ('failed: ', 'passed: ');
begin
  Results.Add(Words[IsKept] + Promise);
  Results.SaveToFile(GetEnvironmentVariable(Variable));
end;

// Writes the screen to a file.
procedure TDriver.Picture(const Name: string);
var
  Bitmap: TBitmap;
  Png: TPortableNetworkGraphic;
  Device: HDC;
  Number: Integer;
begin
  for Number := 1 to 20 do
  begin
    Application.ProcessMessages;
    Sleep(20);
  end;
  Bitmap := TBitmap.Create;
  Png := TPortableNetworkGraphic.Create;
  Device := GetDC(0);
  Bitmap.LoadFromDevice(Device);
  Png.Assign(Bitmap);
  Png.SaveToFile(ExtractFilePath(GetEnvironmentVariable(Variable)) + 'lazarus-ide-' + Name + '.png');
  ReleaseDC(0, Device);
  Png.Free;
  Bitmap.Free;
end;

procedure TDriver.Await;
var
  Start: QWord;
begin
  Start := GetTickCount64;
  while TheWindow.IsRunning and (GetTickCount64 - Start < MostMs) do
  begin
    Application.ProcessMessages;
    Sleep(10);
  end;
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

procedure TDriver.Drive;
var
  Item: TIDEMenuItem;
  Editor: TSourceEditorInterface;
  Row: TRow;
begin
  Item := itmViewMainWindows.FindByName('LaneMM');
  Check('the menu View has an item LaneMM', Item is TIDEMenuCommand);
  TIDEMenuCommand(Item).DoOnClick;
  Check('the window is one of the IDE', (IDEWindowCreators.FindWithName('LaneMM') <> nil)
    and TheWindow.IsVisible);
  TheWindow.SettingsEdit.Text := 'rate=1';
  TheWindow.Run(rkProfile);
  Check('the project is built and runs: ' + TheWindow.StatusLine.SimpleText, TheWindow.IsRunning);
  Await;
  Row := TheWindow.LastReport.Views[vkLines].Root;
  Check('its profile is read', Row.Count > 0);
  TheWindow.ShowView(vkLines);
  TheWindow.View.Jump;
  Editor := SourceEditorManagerIntf.ActiveEditor;
  Check('a line is opened in the editor', (Editor <> nil) and (Row.Count > 0)
    and (ExtractFileName(Editor.FileName) = Row[0].FileName)
    and (Editor.CursorTextXY.Y = Row[0].Line));
  if Editor <> nil then
    Check('lines that allocate are marked', MarkCount(Editor) > 3);
  Picture('marks');
  TheWindow.SettingsEdit.Text := '';
  TheWindow.Run(rkLeaks);
  Await;
  Row := TheWindow.LastReport.Views[vkRetained].Root;
  Check('leaks of the project are read', (Row.Count > 0) and (Row[0].Text = 'Shop.TOrder'));
end;

procedure TDriver.Tick(Sender: TObject);
begin
  if not LazarusIDE.IDEStarted or (LazarusIDE.ActiveProject = nil) then
    Exit;
  Clock.Enabled := False;
  Results := TStringList.Create;
  try
    Drive;
  except
    on Error: Exception do
      Check(Error.ClassName + ': ' + Error.Message, False);
  end;
  Check('the end was reached', True);
  Halt;
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
