/// The window of the IDE without the IDE: runs Shop with leaks, debug and profile, and looks at each view.
/// Pictures go to the folder that the second parameter names.
//
//   WindowTest SHOP PICTURES LANEMM     prints a line for each promise: `passed: ...`, `failed: ...`
program WindowTest;

{$mode objfpc}{$H+}

uses
  {$ifdef UNIX} cthreads, {$endif}
  Interfaces, Classes, SysUtils, Controls, Forms, Graphics, Grids, LCLType, LCLIntf,
  LaneIdeRows, LaneIdeReports, LaneIdeRuns, LaneIdeWindow, LaneIdeWords;

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
var
  Number: Integer;
begin
  for Number := 1 to 5 do
  begin
    Application.ProcessMessages;
    Sleep(20);
  end;
end;

// Runs the program, and waits until its reports are read.
procedure RunShop(Kind: TRunKind; const Parameters: string);
var
  Start: QWord;
begin
  Host.Parameters := Parameters;
  Window.Run(Kind);
  Start := GetTickCount64;
  while Window.IsRunning and (GetTickCount64 - Start < MostMs) do
  begin
    Application.ProcessMessages;
    Sleep(5);
  end;
  Check('a run ends: ' + Parameters, not Window.IsRunning);
end;

// Writes what the window shows to a file.
procedure Picture(const Name: string);
var
  Bitmap: TBitmap;
  Png: TPortableNetworkGraphic;
  Device: HDC;
begin
  Show;
  Bitmap := TBitmap.Create;
  Png := TPortableNetworkGraphic.Create;
  Device := GetDC(Window.Handle);
  try
    Bitmap.LoadFromDevice(Device);
    Png.Assign(Bitmap);
    Png.SaveToFile(IncludeTrailingPathDelimiter(ParamStr(2)) + 'lazarus-ide-' + Name + '.png');
  finally
    ReleaseDC(Window.Handle, Device);
    Png.Free;
    Bitmap.Free;
  end;
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

procedure TestLive;
var
  Start: QWord;
begin
  Host.Parameters := 'wait';
  Window.Run(rkProfile);
  Window.ShowView(vkLive);
  Start := GetTickCount64;
  while ((First(vkLive) = nil) or (First(vkLive).Amounts[0] <= 0))
    and (GetTickCount64 - Start < MostMs) do
  begin
    Application.ProcessMessages;
    Sleep(5);
  end;
  Check('live: what grows comes first: ' + Window.SummaryLabel.Caption,
    (First(vkLive) <> nil) and (First(vkLive).Amounts[0] > 0));
  Picture('live');
  Window.Stop;
  Start := GetTickCount64;
  while Window.IsRunning and (GetTickCount64 - Start < MostMs) do
    Application.ProcessMessages;
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

// The orders, below the variable that holds them: they grow until they are the most.
procedure TestHeld;
var
  Start: QWord;
  Row: TRow;
  Link: string;
begin
  Host.Parameters := 'wait';
  Window.Run(rkDebug);
  Window.ShowView(vkHeld);
  Start := GetTickCount64;
  while ((First(vkHeld) = nil) or (First(vkHeld).Text <> 'variable SHOP.ORDERS'))
    and (GetTickCount64 - Start < MostMs) do
  begin
    Application.ProcessMessages;
    Sleep(5);
  end;
  Check('what holds memory: a variable comes first: ' + Window.SummaryLabel.Caption,
    (First(vkHeld) <> nil) and (First(vkHeld).Text = 'variable SHOP.ORDERS'));
  Row := First(vkHeld);
  for Link in TStringArray.Create('Classes.TList', 'Classes.TFPList', 'data', 'Shop.TOrder') do
    if Row <> nil then
      Row := RowOf(Row, Link);
  Check('and below it the lists and the orders', Row <> nil);
  Check('with their line', (Row <> nil) and (Row.FileName = 'Shop.lpr'));
  OpenRows(5);
  Picture('held');
  Window.Stop;
  Start := GetTickCount64;
  while Window.IsRunning and (GetTickCount64 - Start < MostMs) do
    Application.ProcessMessages;
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
  Window.Free;
  ExitCode := Ord(Failed > 0);
end.
