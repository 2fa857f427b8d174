/// The window: runs a program with LANEMM set, and shows what it wrote.
//
// Owns:    the reports of the last two runs, and the program that runs.
// How:     it knows nothing of the IDE; Host says what runs and where lines are shown.
// Callers: the thread of the user interface.
unit LaneIdeWindow;

{$mode objfpc}{$H+}

interface

uses
  Classes, Controls, ComCtrls, ExtCtrls, Forms, StdCtrls,
  LaneIdeRows, LaneIdeReports, LaneIdeRuns, LaneIdeGrid;

type
  /// What the window asks of the program that it is part of.
  TLaneHost = class
  public
    /// Builds what is to run. Returns nil, and why in Reason, where there is none.
    function Target(out Reason: string): TTarget; virtual; abstract;
    /// Shows a line. Returns an empty text, or why not.
    function Jump(const FileName: string; Line: Integer): string; virtual; abstract;
    /// The lines in use have changed.
    procedure LinesChanged(Lines: TRow); virtual; abstract;
    /// The folder of the tool, or the settings, have changed: keep them.
    procedure Keep(const Tool, Settings: string); virtual; abstract;
  end;

  TLaneWindow = class(TForm)
  private
    Host: TLaneHost;
    Report, Earlier, Change: TReport;   // of the last run, of the one before, their difference
    Task, State: TTask;                 // the program; the tool that looks at it
    RunKind: TRunKind;
    Folder: string;
    Asked: TViewKind;                   // the view that State is for
    LiveId: Integer;                    // the process that LiveStart is of
    LiveStart: TRow;                    // as it was first seen
    Clock: TTimer;
    Ticks, AskedAt, NextHeld: Integer;  // as Ticks: when State was asked, and when for vkHeld again
    Runs: array[TRunKind] of TButton;
    StopButton, OpenButton: TButton;
    CompareBox: TCheckBox;
    Boxes: TFlowPanel;                  // the bar of the edits below
    Settings, Process, Tool: TEdit;
    Tabs: TTabControl;
    Grid: TLaneGrid;
    Summary, Advice: TLabel;
    Status: TStatusBar;
    function AddBar(Below: Integer): TFlowPanel;
    procedure AddControls;
    function AddButton(Bar: TWinControl; const Title: string; Pressed: TNotifyEvent): TButton;
    function AddEdit(Bar: TWinControl; const Title: string; Pixels: Integer): TEdit;
    procedure AddViews;
    procedure RunClick(Sender: TObject);
    procedure StopClick(Sender: TObject);
    procedure OpenClick(Sender: TObject);
    procedure ViewChanged(Sender: TObject);
    procedure ToolChanged(Sender: TObject);
    procedure Tick(Sender: TObject);
    procedure ShowLine(Row: TRow);
    procedure Ended;
    procedure Ask(Kind: TViewKind);
    procedure ReadGrowth;
    procedure Answered;
    procedure SetState;
    procedure FitHeight;
    function Current: TReport;
    procedure TakeReport(NewReport: TReport);
  protected
    procedure KeyDown(var Key: Word; Shift: TShiftState); override;
    procedure Resize; override;
  public
    constructor CreateNew(TheOwner: TComponent; Number: Integer = 0); override;
    destructor Destroy; override;
    /// The window owns the host.
    procedure UseHost(NewHost: TLaneHost; const ToolFile, Words: string);
    /// Builds and starts the program with the settings of Kind.
    procedure Run(Kind: TRunKind);
    /// Asks the program to end; its reports are read then.
    procedure Stop;
    /// Shows what files hold.
    procedure OpenFiles(Names: TStrings);
    procedure ShowView(Kind: TViewKind);
    procedure Compare(IsOn: Boolean);
    /// Returns whether a program runs that the window has started.
    function IsRunning: Boolean;
    property View: TLaneGrid read Grid;
    property LastReport: TReport read Report;
    property AdviceLabel: TLabel read Advice;
    property SummaryLabel: TLabel read Summary;
    property StatusLine: TStatusBar read Status;
    property SettingsEdit: TEdit read Settings;
  end;

/// Returns the path of the tool `lanemm` of this system; its name where it is not found.
function FindTool: string;

implementation

uses
  SysUtils, Dialogs, LCLType, LaneIdeReading, LaneIdeWords;

const
  TickMs = 100;
  LiveTicks = 10;   // a second
  BoxesHeight = 240;   // of the window: below it boxes and summary leave their place to the rows
  ViewKeys = 10;    // from 1 to 9, and 0: as many as there are views

function FindTool: string;
begin
  Result := ExeSearch('lanemm', GetEnvironmentVariable('PATH'));
  if Result = '' then
    Result := 'lanemm';
end;

// ---------------------------------------------------------------------------- controls

function TLaneWindow.AddButton(Bar: TWinControl; const Title: string;
  Pressed: TNotifyEvent): TButton;
begin
  Result := TButton.Create(Self);
  Result.Parent := Bar;
  Result.Caption := Title;
  Result.AutoSize := True;
  Result.BorderSpacing.Right := 4;
  Result.OnClick := Pressed;
end;

function TLaneWindow.AddEdit(Bar: TWinControl; const Title: string; Pixels: Integer): TEdit;
var
  Before: TLabel;
begin
  Before := TLabel.Create(Self);
  Before.Parent := Bar;
  Before.Caption := Title;
  Before.BorderSpacing.Left := 8;
  Before.BorderSpacing.Right := 4;
  Before.BorderSpacing.Top := 6;
  Result := TEdit.Create(Self);
  Result.Parent := Bar;
  Result.Width := Scale96ToFont(Pixels);
  Before.FocusControl := Result;
end;

function TLaneWindow.AddBar(Below: Integer): TFlowPanel;
begin
  Result := TFlowPanel.Create(Self);
  Result.Parent := Self;
  Result.Align := alTop;
  Result.Top := Below;
  Result.AutoSize := True;
  Result.BevelOuter := bvNone;
  Result.BorderSpacing.Around := 2;
end;

procedure TLaneWindow.AddControls;
var
  Bar: TFlowPanel;
begin
  Bar := AddBar(0);
  Runs[rkLeaks] := AddButton(Bar, rsRunLeaks, @RunClick);
  Runs[rkDebug] := AddButton(Bar, rsRunDebug, @RunClick);
  Runs[rkProfile] := AddButton(Bar, rsRunProfile, @RunClick);
  StopButton := AddButton(Bar, rsStop, @StopClick);
  OpenButton := AddButton(Bar, rsOpen, @OpenClick);
  CompareBox := TCheckBox.Create(Self);
  CompareBox.Parent := Bar;
  CompareBox.Caption := rsCompare;
  CompareBox.BorderSpacing.Top := 3;
  CompareBox.OnChange := @ViewChanged;
  Boxes := AddBar(Bar.Height);
  Settings := AddEdit(Boxes, rsSettings, 160);
  Process := AddEdit(Boxes, rsProcess, 70);
  Tool := AddEdit(Boxes, rsTool, 160);
  Settings.OnEditingDone := @ToolChanged;
  Tool.OnEditingDone := @ToolChanged;
end;

procedure TLaneWindow.AddViews;
var
  Kind: TViewKind;
begin
  Tabs := TTabControl.Create(Self);
  Tabs.Parent := Self;
  Tabs.Align := alClient;
  for Kind in TViewKind do
    Tabs.Tabs.Add(Report.Views[Kind].Title);
  Tabs.OnChange := @ViewChanged;
  Summary := TLabel.Create(Self);
  Summary.Parent := Tabs;
  Summary.Align := alTop;
  Summary.BorderSpacing.Around := 4;
  Advice := TLabel.Create(Self);
  Advice.Parent := Tabs;
  Advice.Align := alTop;
  Advice.WordWrap := True;
  Advice.BorderSpacing.Around := 12;
  Grid := TLaneGrid.Create(Self);
  Grid.Parent := Tabs;
  Grid.Align := alClient;
  Grid.OnJump := @ShowLine;
  Status := TStatusBar.Create(Self);
  Status.Parent := Self;
  Status.SimplePanel := True;
end;

constructor TLaneWindow.CreateNew(TheOwner: TComponent; Number: Integer);
begin
  inherited CreateNew(TheOwner, Number);
  Name := 'LaneMM';
  Caption := rsWindow;
  SetBounds(Left, Top, Scale96ToFont(960), Scale96ToFont(520));
  KeyPreview := True;
  Report := TReport.Create;
  AddControls;
  AddViews;
  Clock := TTimer.Create(Self);
  Clock.Interval := TickMs;
  Clock.OnTimer := @Tick;
  ViewChanged(nil);
end;

destructor TLaneWindow.Destroy;
begin
  Clock.Free;
  Grid.ShowView(nil);
  State.Free;
  Task.Free; // the program goes on
  DropFolder(Folder);
  Report.Free;
  Earlier.Free;
  Change.Free;
  LiveStart.Free;
  Host.Free;
  inherited Destroy;
end;

procedure TLaneWindow.UseHost(NewHost: TLaneHost; const ToolFile, Words: string);
begin
  Host := NewHost;
  Tool.Text := ToolFile;
  Settings.Text := Words;
  SetState;
end;

procedure TLaneWindow.ToolChanged(Sender: TObject);
begin
  if Host <> nil then
    Host.Keep(Tool.Text, Settings.Text);
end;

// ---------------------------------------------------------------------------- views

function TLaneWindow.Current: TReport;
begin
  Result := Report;
  if Change <> nil then
    Result := Change;
end;

procedure TLaneWindow.ViewChanged(Sender: TObject);
var
  Shown: TView;
  Kind: TViewKind;
begin
  if Sender = CompareBox then
  begin
    Grid.ShowView(nil);
    FreeAndNil(Change);
    if CompareBox.Checked and (Earlier <> nil) then
      Change := Report.Since(Earlier);
  end;
  Kind := TViewKind(Tabs.TabIndex);
  Shown := Current.Views[Kind];
  if Kind in [vkLive, vkHeld, vkOutput] then
    Shown := Report.Views[Kind];
  Summary.Caption := Shown.Summary;
  if (Shown.Summary = '') and (Change <> nil) then
    Summary.Caption := Change.Head;
  FitHeight;
  Advice.Caption := Shown.Advice;
  if CompareBox.Checked and (Change = nil) then
    Advice.Caption := rsRunTwice;
  Advice.Visible := (Shown.Root.Count = 0) or (CompareBox.Checked and (Change = nil));
  Grid.ShowView(Shown);
  Grid.Visible := not Advice.Visible;
end;

procedure TLaneWindow.ShowView(Kind: TViewKind);
begin
  Tabs.TabIndex := Ord(Kind);
  ViewChanged(Tabs);
end;

procedure TLaneWindow.Compare(IsOn: Boolean);
begin
  CompareBox.Checked := IsOn;
  ViewChanged(CompareBox);
end;

// Makes a report the one that is shown, and keeps the one before for the difference.
procedure TLaneWindow.TakeReport(NewReport: TReport);
begin
  Grid.ShowView(nil);
  if not Report.IsEmpty then
  begin
    Earlier.Free;
    Earlier := Report;
  end
  else
    Report.Free;
  Report := NewReport;
  ViewChanged(CompareBox);
  if Host <> nil then
    Host.LinesChanged(Report.Views[vkLines].Root);
end;

procedure TLaneWindow.ShowLine(Row: TRow);
begin
  Row := Row.Placed;
  if Row = nil then
    Status.SimpleText := rsNoPlace
  else if Host <> nil then
    Status.SimpleText := Host.Jump(Row.FileName, Row.Line);
end;

procedure TLaneWindow.KeyDown(var Key: Word; Shift: TShiftState);
begin
  if (ssCtrl in Shift) and (Key >= VK_0) and (Key <= VK_9) then
  begin
    ShowView(TViewKind((Key - VK_1 + ViewKeys) mod ViewKeys));
    if Grid.Visible then
      Grid.SetFocus;
    Key := 0;
  end;
  inherited KeyDown(Key, Shift);
end;

procedure TLaneWindow.Resize;
begin
  inherited Resize;
  if Status <> nil then // all controls are there
    FitHeight;
end;

// Without much height the rows come first.
procedure TLaneWindow.FitHeight;
begin
  Boxes.Visible := ClientHeight >= Scale96ToFont(BoxesHeight);
  Summary.Visible := Boxes.Visible and (Summary.Caption <> '');
end;

// ---------------------------------------------------------------------------- runs

procedure TLaneWindow.SetState;
var
  Kind: TRunKind;
begin
  for Kind in TRunKind do
    Runs[Kind].Enabled := Task = nil;
  StopButton.Enabled := Task <> nil;
end;

function TLaneWindow.IsRunning: Boolean;
begin
  Result := Task <> nil;
end;

procedure TLaneWindow.RunClick(Sender: TObject);
var
  Kind: TRunKind;
begin
  for Kind in TRunKind do
    if Sender = Runs[Kind] then
      Run(Kind);
end;

procedure TLaneWindow.Run(Kind: TRunKind);
var
  Target: TTarget;
  Reason: string;
begin
  if Task <> nil then
  begin
    Status.SimpleText := rsBusy;
    Exit;
  end;
  Target := Host.Target(Reason);
  if Target = nil then
  begin
    Status.SimpleText := Reason;
    Exit;
  end;
  try
    RunKind := Kind;
    NextHeld := 0;
    Folder := NewFolder;
    Status.SimpleText := Format(rsRunning, [SettingsOf(Kind, Folder)]);
    Task := StartTarget(Target, SettingsOf(Kind, Folder), Trim(Settings.Text));
  except
    on Error: Exception do
    begin
      Status.SimpleText := Format(rsNotStarted, [Error.Message]);
      DropFolder(Folder);
      Folder := '';
    end;
  end;
  Target.Free;
  SetState;
end;

procedure TLaneWindow.StopClick(Sender: TObject);
begin
  Stop;
end;

procedure TLaneWindow.Stop;
begin
  if Task <> nil then
    Task.Stop;
end;

// Reads what the program has left.
procedure TLaneWindow.Ended;
const
  First: array[TRunKind] of TViewKind = (vkRetained, vkErrors, vkClasses);
var
  NewReport: TReport;
  Lines: TStringList;
  Printed: string;
begin
  NewReport := TReport.Create;
  Status.SimpleText := Format(rsEnded, [ExtractFileName(Task.Process.Executable),
    Task.Process.ExitCode]);
  Lines := TStringList.Create;
  Lines.Text := Task.Output;
  for Printed in Lines do
    NewReport.Views[vkOutput].Root.Add(Printed);
  Lines.Free;
  FreeAndNil(Task);
  try
    ReadFolder(NewReport, Folder, RunKind);
  except
    on Error: ELaneIde do
      Status.SimpleText := Error.Message;
  end;
  DropFolder(Folder);
  Folder := '';
  if NewReport.IsEmpty then
    NewReport.Views[First[RunKind]].Advice := rsNoReport;
  TakeReport(NewReport);
  Tabs.TabIndex := Ord(First[RunKind]);
  ViewChanged(Tabs);
  SetState;
end;

procedure TLaneWindow.OpenFiles(Names: TStrings);
var
  NewReport: TReport;
  FileName: string;
begin
  NewReport := TReport.Create;
  Status.SimpleText := '';
  for FileName in Names do
    try
      ReadFile(NewReport, FileName);
    except
      on Error: ELaneIde do
        Status.SimpleText := Error.Message;
    end;
  TakeReport(NewReport);
end;

procedure TLaneWindow.OpenClick(Sender: TObject);
var
  Dialog: TOpenDialog;
begin
  Dialog := TOpenDialog.Create(nil);
  try
    Dialog.Title := rsOpenTitle;
    Dialog.Filter := rsReports + '|*_MemoryManager_*;*.json';
    Dialog.Options := Dialog.Options + [ofAllowMultiSelect, ofFileMustExist];
    if Dialog.Execute then
      OpenFiles(Dialog.Files);
  finally
    Dialog.Free;
  end;
end;

// ---------------------------------------------------------------------------- the running program

// Asks the tool for what a view of the running program shows.
procedure TLaneWindow.Ask(Kind: TViewKind);
var
  Id: Integer;
begin
  if not TryStrToInt(Trim(Process.Text), Id) then
  begin
    if Task = nil then
      Exit;
    Id := Task.Process.ProcessID;
  end;
  if Id <> LiveId then
    FreeAndNil(LiveStart);
  LiveId := Id;
  Asked := Kind;
  AskedAt := Ticks;
  try
    if Kind = vkHeld then
      State := StartTool(Tool.Text, 'why', Id, ['--json'])
    else
      State := StartTool(Tool.Text, 'state', Id, ['--contents', '--json']);
    if (Kind = vkHeld) and (Report.Views[Kind].Root.Count = 0) then
      Status.SimpleText := rsSearching;
  except
    on Error: Exception do
      Report.Views[Kind].Advice := Format(rsNoTool, [Error.Message]);
  end;
end;

// Shows the running program, with its growth since the first look.
procedure TLaneWindow.ReadGrowth;
var
  IsFirst: Boolean;
begin
  IsFirst := LiveStart = nil;
  ReadLive(Report, State.Output, LiveStart);
  Report.Views[vkLive].Root.Sort(0);
  if not IsFirst then
    Exit;
  LiveStart := Report.Views[vkLive].Root;
  Report.Views[vkLive].Root := TRow.Create;
  ReadLive(Report, State.Output, LiveStart);
  Report.Views[vkLive].Root[0].IsOpen := True;
  Report.Views[vkLive].Root.Sort(0);
end;

// What holds memory is asked for again after ten times the time that it took.
procedure TLaneWindow.Answered;
begin
  try
    Grid.ShowView(nil);
    if Asked = vkLive then
      ReadGrowth
    else
    begin
      NextHeld := Ticks + LiveTicks + 10 * (Ticks - AskedAt);
      Status.SimpleText := '';
      ReadHeld(Report, State.Output);
      Report.Views[vkHeld].Root.Sort(0);
    end;
  except
    on Error: Exception do // it has ended, does not run on LaneMM, or may not be looked at
      Report.Views[Asked].Advice := Trim(State.Errors) + LineEnding + rsNoLive;
  end;
  FreeAndNil(State);
  ViewChanged(nil);
end;

procedure TLaneWindow.Tick(Sender: TObject);
begin
  Inc(Ticks);
  if (Task <> nil) and not Task.Poll then
    Ended;
  if (State <> nil) and not State.Poll then
    Answered;
  if (State <> nil) or (Ticks mod LiveTicks <> 0) or not IsVisible then
    Exit;
  if Tabs.TabIndex = Ord(vkLive) then
    Ask(vkLive)
  else if (Tabs.TabIndex = Ord(vkHeld)) and (Ticks >= NextHeld) then
    Ask(vkHeld);
end;

end.
