/// The window of the IDE without the IDE: runs Shop with leaks, debug and profile, and looks at each view.
/// Pictures go to the folder that the second parameter names.
//
//   WindowTest SHOP PICTURES LANEMM     prints a line for each promise: `passed: ...`, `failed: ...`
program WindowTest;

{$mode objfpc}{$H+}

uses
  {$ifdef UNIX} cthreads, {$endif}
  Interfaces, Classes, SysUtils, Controls, Forms, Clipbrd, LCLType, LCLIntf, LMessages,
  LaneIdeRows, LaneIdeReports, LaneIdeRuns, LaneIdeWindow, LaneIdeWords, LaneIdeUse;

const
  MostMs = 60000;

type
  THost = class(TLaneHost)
  public
    Parameters, JumpedTo: string;
    LineCount: Integer;
    function Target(out Reason: string): TTarget; override;
    function Jump(const FileName: string; Line: Integer): string; override;
    procedure LinesChanged(Lines: TRow); override;
    procedure Keep(const Tool, Settings: string); override;
  end;

var
  Window: TLaneWindow;
  Host: THost;
  Failed: Integer;

function THost.Target(out Reason: string): TTarget;
begin
  Reason := '';
  Result := TTarget.Create;
  Result.FileName := ParamStr(1);
  Result.Parameters := Parameters;
end;

function THost.Jump(const FileName: string; Line: Integer): string;
begin
  JumpedTo := FileName + ':' + IntToStr(Line);
  Result := '';
end;

procedure THost.LinesChanged(Lines: TRow);
begin
  LineCount := Lines.Count;
end;

procedure THost.Keep(const Tool, Settings: string);
begin
end;

procedure Check(const Promise: string; IsKept: Boolean);
begin
  if IsKept then
    WriteLn('passed: ', Promise)
  else
  begin
    WriteLn('failed: ', Promise);
    Inc(Failed);
  end;
end;

procedure Show;
begin
  Pause(100);
end;

function HasEnded: Boolean;
begin
  Result := not Window.IsRunning;
end;

// Runs the program, and waits until its reports are read.
procedure RunShop(Kind: TRunKind; const Parameters: string);
begin
  Host.Parameters := Parameters;
  Window.Run(Kind);
  Await(@HasEnded);
  Check('a run ends: ' + Parameters, HasEnded);
end;

// Writes what the window shows to a file.
procedure Picture(const Name: string);
begin
  Show;
  SavePicture(Window.Handle,
    IncludeTrailingPathDelimiter(ParamStr(2)) + 'lazarus-ide-' + Name + '.png');
end;

procedure OpenRows(Depth: Integer);
var
  Number: Integer;
  Row: TRow;
begin
  Row := Window.View.Selected;
  for Number := 1 to Depth do
    if Row <> nil then
    begin
      Window.View.Open(Row, True);
      if Row.Count = 0 then
        Break;
      Row := Row[0];
    end;
  Show;
end;

function First(Kind: TViewKind): TRow;
begin
  Result := Window.LastReport.Views[Kind].Root;
  if Result.Count = 0 then
    Exit(nil);
  Result := Result[0];
end;

procedure TestLeaks;
var
  Before: Integer;
begin
  Check('without a run a view says which one to choose', Window.AdviceLabel.Visible
    and (Window.AdviceLabel.Caption = rsRunLeaksFirst) and not Window.View.Visible);
  RunShop(rkLeaks, 'sell');
  Check('leaks: what retains most comes first', (First(vkRetained) <> nil)
    and (First(vkRetained).Text = 'Shop.TOrder') and (First(vkRetained).Amounts[2] = 20));
  OpenRows(3);
  Picture('retained');
  Window.ActiveControl := Window.View;
  Before := Window.View.RowsShown;
  Window.View.Perform(CN_KEYDOWN, VK_LEFT, 0);
  Show;
  Check('the key Left closes a row', Window.View.RowsShown < Before);
  Window.View.Perform(CN_KEYDOWN, VK_RIGHT, 0);
  Check('the key Right opens it', Window.View.RowsShown = Before);
  Window.View.Perform(CN_KEYDOWN, VK_RETURN, 0);
  Check('Enter goes to the line: ' + Host.JumpedTo,
    Pos('Shop.lpr:', Host.JumpedTo) = 1);
  Window.ShowView(vkLeakLines);
  OpenRows(2);
  Picture('leak-lines');
  Window.ShowView(vkOutput);
  Check('what the program printed is shown', (First(vkOutput) <> nil)
    and (First(vkOutput).Text = '3 orders kept'));
  Picture('output');
end;

procedure TestErrors;
begin
  RunShop(rkDebug, 'damage');
  Check('debug: an error with its backtraces', (First(vkErrors) <> nil)
    and (Pos('Heap block overrun', First(vkErrors).Text) = 1)
    and (First(vkErrors).Placed.FileName = 'Shop.lpr'));
  OpenRows(1);
  Picture('errors');
  RunShop(rkDebug, 'sell');
  Check('a run without errors says what to do', Window.AdviceLabel.Visible
    and (Window.AdviceLabel.Caption = rsNoErrors));
end;

procedure TestProfile;
begin
  Window.SettingsEdit.Text := 'rate=1';
  RunShop(rkProfile, 'grow');
  RunShop(rkProfile, 'sell grow');
  Window.ShowView(vkClasses);
  Check('profile: classes in use', (First(vkClasses) <> nil)
    and (First(vkClasses).Amounts[0] > 0));
  OpenRows(2);
  Picture('classes');
  Window.ShowView(vkLines);
  OpenRows(2);
  Check('profile: lines in use', (First(vkLines) <> nil)
    and (First(vkLines).FileName = 'Shop.lpr') and (Host.LineCount > 0));
  Picture('lines');
  Window.ShowView(vkGrowth);
  Check('growth has its advice', (First(vkGrowth) <> nil)
    and (First(vkGrowth).Note = 'call SetLength once'));
  Picture('growth');
  Window.Compare(True);
  Window.ShowView(vkClasses);
  Check('the difference of two runs shows the 20 orders more', (Window.View.Selected <> nil)
    and (Window.View.Selected.Amounts[1] = 20));
  Picture('change');
  Window.Compare(False);
  Window.SettingsEdit.Text := '';
  RunShop(rkProfile, 'remote');
  Window.ShowView(vkLocks);
  Check('remote frees have their advice', (First(vkLocks) <> nil)
    and (First(vkLocks).Note = rsAdviceRemote) and (First(vkLocks).Amounts[1] > 0));
  Picture('locks');
end;

function HasGrown: Boolean;
begin
  Result := (First(vkLive) <> nil) and (First(vkLive).Amounts[0] > 0);
end;

// Starts the program that waits, and waits until a view of it shows what it should.
procedure Watch(Run: TRunKind; Kind: TViewKind; IsMet: TCondition);
begin
  Host.Parameters := 'wait';
  Window.Run(Run);
  Window.ShowView(Kind);
  Await(IsMet);
end;

procedure TestLive;
begin
  Watch(rkProfile, vkLive, @HasGrown);
  Check('live: what grows comes first: ' + Window.SummaryLabel.Caption, HasGrown);
  Picture('live');
  Window.Stop;
  Await(@HasEnded);
  Window.ShowView(vkClasses);
  Check('the reports of a program that was stopped are read', First(vkClasses) <> nil);
end;

function RowOf(Row: TRow; const Text: string): TRow;
var
  Number: Integer;
begin
  Result := nil;
  for Number := 0 to Row.Count - 1 do
    if Row[Number].Text = Text then
      Exit(Row[Number]);
end;

function HoldsOrders: Boolean;
begin
  Result := (First(vkHeld) <> nil) and (First(vkHeld).Text = 'variable SHOP.ORDERS');
end;

// The orders, below the variable that holds them: they grow until they are the most.
procedure TestHeld;
var
  Row: TRow;
  Link: string;
begin
  Watch(rkDebug, vkHeld, @HoldsOrders);
  Check('what holds memory: a variable comes first: ' + Window.SummaryLabel.Caption, HoldsOrders);
  Row := First(vkHeld);
  for Link in TStringArray.Create('Classes.TList', 'Classes.TFPList', 'data', 'Shop.TOrder') do
    if Row <> nil then
      Row := RowOf(Row, Link);
  Check('and below it the lists and the orders', Row <> nil);
  Check('with their line', (Row <> nil) and (Row.FileName = 'Shop.lpr'));
  OpenRows(5);
  Picture('held');
  Window.Stop;
  Await(@HasEnded);
end;

procedure TestMany;
var
  Start: QWord;
begin
  RunShop(rkLeaks, 'many');
  Check('50,000 leaks are read: ' + Window.SummaryLabel.Caption, (First(vkRetained) <> nil)
    and (First(vkRetained).Amounts[2] = 10000)
    and (Pos('50,000 blocks', Window.SummaryLabel.Caption) = 1));
  Start := GetTickCount64;
  Window.View.Perform(CN_KEYDOWN, VK_MULTIPLY, 0);
  Show;
  Check('and all rows opened', (Window.View.RowsShown > 4) and (GetTickCount64 - Start < MostMs));
  Host.Parameters := '';
end;

// Sends what the mouse does, at a place of the grid.
procedure Press(Message: Cardinal; Place: TPoint);
begin
  Window.View.Perform(Message, MK_LBUTTON, MakeLong(Place.X, Place.Y));
end;

// The second press of a double click is a message of its own.
procedure DoubleClick(Place: TPoint);
begin
  Host.JumpedTo := '';
  Press(LM_LBUTTONDOWN, Place);
  Press(LM_LBUTTONUP, Place);
  Press(LM_LBUTTONDBLCLK, Place);
  Press(LM_LBUTTONUP, Place);
end;

// Returns the middle of a cell, or for column 0 of the place of its triangle.
function PlaceOf(Column, Line: Integer): TPoint;
begin
  Result := Window.View.CellRect(Column, Line).CenterPoint;
  if Column = 0 then
    Result.X := Window.View.Scale96ToFont(8);
end;

procedure TestMouse;
var
  Before: Integer;
begin
  RunShop(rkLeaks, 'sell');
  DoubleClick(PlaceOf(1, 1));
  Check('a double click goes to the line: ' + Host.JumpedTo, Pos('Shop.lpr:', Host.JumpedTo) = 1);
  Before := Window.View.RowsShown;
  Press(LM_LBUTTONDOWN, PlaceOf(0, 1));
  Press(LM_LBUTTONUP, PlaceOf(0, 1));
  Check('a click on a triangle opens the row', Window.View.RowsShown > Before);
  DoubleClick(PlaceOf(0, 1));
  Check('a double click on a triangle goes to no line', Host.JumpedTo = '');
  Before := Window.View.Row;
  DoubleClick(Point(60, Window.View.ClientHeight - 4));
  Check('below the last row there is none', (Host.JumpedTo = '') and (Window.View.Row = Before));
  Press(LM_RBUTTONDOWN, PlaceOf(1, 2));
  Press(LM_RBUTTONUP, PlaceOf(1, 2));
  Check('the right button selects a row', Window.View.Row = 2);
  Window.View.PopupMenu.Items[2].Click;
  Check('and its menu copies it: ' + Clipboard.AsText,
    Pos('Classes.TStringList'#9, Clipboard.AsText) = 1);
  Window.View.Row := 1;
  Window.View.PopupMenu.Items[1].Click;
  Check('and opens all below', Window.View.RowsShown > 3);
end;

procedure Scroll;
var
  Wheel: TLMMouseEvent;
begin
  Wheel := Default(TLMMouseEvent);
  Wheel.Msg := LM_MOUSEWHEEL;
  Wheel.WheelDelta := -120;
  Window.View.Dispatch(Wheel);
end;

// As it is where it is docked below an editor.
procedure TestSmall;
begin
  Check('a window has its boxes', Window.SettingsEdit.IsVisible);
  Window.SetBounds(0, 0, 800, 200);
  Show;
  Check('one of little height leaves their place to the rows', not Window.SettingsEdit.IsVisible
    and not Window.SummaryLabel.IsVisible and (Window.View.ClientHeight > 4 * Window.View.DefaultRowHeight));
  Scroll;
  Check('the wheel scrolls, and selects nothing', (Window.View.TopRow > 1) and (Window.View.Row = 1));
  Window.SetBounds(0, 0, 150, 60);
  Show;
  Window.SetBounds(0, 0, 1000, 420);
  Show;
  Check('and a larger one has them again', Window.SettingsEdit.IsVisible
    and Window.SummaryLabel.IsVisible);
  Check('without a scroll bar below the columns', Window.View.Height - Window.View.ClientHeight < 10);
end;

begin
  Application.Initialize;
  Window := TLaneWindow.CreateNew(nil);
  Host := THost.Create;
  Window.UseHost(Host, ParamStr(3), '');
  Window.SetBounds(0, 0, 1000, 420);
  Window.Show;
  Show;
  TestLeaks;
  TestErrors;
  TestProfile;
  TestLive;
  TestHeld;
  TestMany;
  TestMouse;
  TestSmall;
  Window.Free;
  ExitCode := Ord(Failed > 0);
end.
