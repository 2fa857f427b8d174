/// Uses the Lazarus IDE as a user does, step by step, and writes what each step took: for tests/stories/lazarus.sh.
//
// LANEMM_STORY:       the file for the lines; without it nothing happens.
// LANEMM_STORY_STEPS: words between commas: `open=FILE` (a project or a unit), `units`, `forms`, `code`, `type`,
//                     `close` (a new project in place of the open one), `rest`, `window` (View > LaneMM on this
//                     process), `pause`. The IDE ends after the last.
// A line: the step; CPU time of the process so far in ms; anonymous, resident and most resident memory in KB; charged
// and most charged memory in KB, 0 outside of a group of MemoryGroup. A dialog that would wait for a user is closed,
// and has a line.
unit LazarusStory;

{$mode objfpc}{$H+}

interface

implementation

uses
  Classes, SysUtils, Linux, UnixType, StrUtils, Controls, StdCtrls, Forms, ExtCtrls, SynEdit,
  SynEditKeyCmds, LazIDEIntf, SrcEditorIntf, IDECommands, MenuIntf, ProjectIntf, Project,
  MemoryGroup, LaneIdeReports, LaneIdeWindow, LaneIdeMenu;

const
  TurnMs = 30;
  SettleMs = 700;   // what the IDE does when it is idle belongs to the step before
  RestTurns = 100;
  DialogMs = 1500;
  UnitCount = 60;
  FormCount = 10;
  TypedLines = 60;

type
  TStory = class
  private
    Clock, Guard: TTimer;
    FileName: string;
    Steps, Units: TStringList;
    Step, Turn: Integer;
    IsSettling: Boolean;
    Dialog: TCustomForm;   // the one that was there at the last tick
    procedure Tick(Sender: TObject);
    procedure CloseDialog(Sender: TObject);
    procedure Note(const Name: string);
    procedure FindUnits;
    function OpenUnit: Boolean;
    function OpenForm: Boolean;
    function Complete: Boolean;
    function TypeText: Boolean;
    function Pause: Boolean;
    procedure OpenFile(const Name: string);
    procedure OpenNew;
    procedure ShowWindow;
    function Perform(const Words: string): Boolean;
  public
    constructor Create(const TheFile: string);
    destructor Destroy; override;
  end;

var
  Story: TStory;

// Returns the number behind a name in a file of /proc.
function NumberOf(const FileName, Name: string): string;
var
  Lines: TStringList;
  Line: string;
begin
  Result := '0';
  Lines := TStringList.Create;
  try
    Lines.LoadFromFile(FileName);
    for Line in Lines do
      if StartsStr(Name, Line) then
        Exit(ExtractDelimited(1, Trim(Copy(Line, Length(Name) + 1, MaxInt)), [' ']));
  finally
    Lines.Free;
  end;
end;

procedure TStory.Note(const Name: string);
var
  Used: TTimeSpec;
  Output: TextFile;
  Group: TGroupFolder;
begin
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, @Used);
  Group := GroupOfProcess;
  AssignFile(Output, FileName);
  if FileExists(FileName) then
    Append(Output)
  else
    Rewrite(Output);
  WriteLn(Output, Name, ',', Used.tv_sec * 1000 + Used.tv_nsec div 1000000,
    ',', NumberOf('/proc/self/smaps_rollup', 'Anonymous:'), ',',
    NumberOf('/proc/self/status', 'VmRSS:'), ',', NumberOf('/proc/self/status', 'VmHWM:'), ',',
    GroupCharged(Group) div 1024, ',', GroupPeak(Group) div 1024);
  CloseFile(Output);
end;

// ---------------------------------------------------------------------------- steps

// The units of the open project that exist, in the order of the project.
procedure TStory.FindUnits;
var
  Number: Integer;
  Name: string;
begin
  Units.Clear;
  for Number := 0 to LazarusIDE.ActiveProject.FileCount - 1 do
  begin
    Name := LazarusIDE.ActiveProject.Files[Number].GetFullFilename;
    if LazarusIDE.ActiveProject.Files[Number].IsPartOfProject and FileExists(Name)
      and AnsiMatchStr(ExtractFileExt(Name), ['.pas', '.pp']) then
      Units.Add(Name);
  end;
end;

// Opens one more unit and goes to its end, which has the whole file highlighted.
function TStory.OpenUnit: Boolean;
var
  Editor: TSourceEditorInterface;
begin
  if Turn = 0 then
    FindUnits;
  Result := (Turn < UnitCount) and (Turn < Units.Count);
  if not Result then
    Exit;
  LazarusIDE.DoOpenEditorFile(Units[Turn], -1, -1,
    [ofOnlyIfExists, ofQuiet, ofRegularFile, ofDoNotLoadResource]);
  Editor := SourceEditorManagerIntf.ActiveEditor;
  if Editor <> nil then
    Editor.CursorTextXY := Point(1, Editor.LineCount);
end;

// Opens one more form in the designer.
function TStory.OpenForm: Boolean;
var
  Name: string;
  Number, Count: Integer;
begin
  Count := 0;
  Result := False;
  for Number := 0 to Units.Count - 1 do
  begin
    Name := Units[Number];
    if not FileExists(ChangeFileExt(Name, '.lfm')) then
      Continue;
    if Count = Turn then
    begin
      LazarusIDE.DoOpenEditorFile(Name, -1, -1,
        [ofOnlyIfExists, ofQuiet, ofRegularFile, ofDoLoadResource]);
      Result := Turn < FormCount;
      Break;
    end;
    Inc(Count);
  end;
end;

// Puts the cursor into the first routine.
procedure GoToCode(Editor: TSourceEditorInterface);
var
  Line: Integer;
begin
  for Line := 0 to Editor.LineCount - 2 do
    if SameText(Trim(Editor.Lines[Line]), 'begin') then
    begin
      Editor.CursorTextXY := Point(1, Line + 2);
      Exit;
    end;
end;

// Asks for the identifiers that may stand in the first routine of one more editor.
function TStory.Complete: Boolean;
begin
  SourceEditorManagerIntf.DeactivateCompletionForm;
  Result := Turn < SourceEditorManagerIntf.SourceEditorCount;
  if not Result then
    Exit;
  SourceEditorManagerIntf.ActiveEditor := SourceEditorManagerIntf.SourceEditors[Turn];
  GoToCode(SourceEditorManagerIntf.ActiveEditor);
  SourceEditorManagerIntf.ActiveEditor.DoEditorExecuteCommand(ecIdentCompletion);
end;

// Types a line of code; after the last one all are undone.
function TStory.TypeText: Boolean;
const
  Text = '  Caption := Format(''%s of %d'', [Name, Width]);';
var
  Editor: TSourceEditorInterface;
  Edit: TCustomSynEdit;
  Sign: Char;
begin
  Editor := SourceEditorManagerIntf.ActiveEditor;
  Edit := Editor.EditorControl as TCustomSynEdit;
  if Turn = 0 then
    GoToCode(Editor);
  Result := Turn < TypedLines;
  if not Result then
  begin
    while Edit.CanUndo do
      Edit.Undo;
    Editor.Modified := False;
    Exit;
  end;
  for Sign in Text do
    Edit.CommandProcessor(ecChar, Sign, nil);
  Edit.CommandProcessor(ecLineBreak, ' ', nil);
end;

// Writes the number of the process into a file, and waits until it is gone.
function TStory.Pause: Boolean;
var
  Output: TextFile;
begin
  AssignFile(Output, FileName + '.pause');
  if Turn = 0 then
  begin
    Rewrite(Output);
    WriteLn(Output, GetProcessID);
    CloseFile(Output);
  end;
  Result := FileExists(FileName + '.pause');
end;

procedure TStory.OpenFile(const Name: string);
begin
  Project1.ClearModifieds(True); // else a dialog asks whether to save
  if SameText(ExtractFileExt(Name), '.lpi') then
    LazarusIDE.DoOpenProjectFile(Name, [ofOnlyIfExists])
  else
    LazarusIDE.DoOpenEditorFile(Name, -1, -1, [ofOnlyIfExists]);
end;

procedure TStory.OpenNew;
begin
  Project1.ClearModifieds(True);
  LazarusIDE.DoNewProject(ProjectDescriptorApplication);
end;

// Opens the window of LaneMM and has it look at this process.
procedure TStory.ShowWindow;
var
  Number: Integer;
begin
  LaneIdeMenu.Register;
  (itmViewMainWindows.FindByName('LaneMM') as TIDEMenuCommand).DoOnClick;
  for Number := 0 to TheWindow.ComponentCount - 2 do
    if TheWindow.Components[Number] = TheWindow.SettingsEdit then
      (TheWindow.Components[Number + 2] as TEdit).Text := IntToStr(GetProcessID);
  TheWindow.SetBounds(30, 250, 1150, 560);
  TheWindow.ShowView(vkLive);
end;

// One turn of a step. Returns whether there may be another one.
function TStory.Perform(const Words: string): Boolean;
begin
  Result := False;
  case ExtractDelimited(1, Words, ['=']) of
    'start': ;
    'open': OpenFile(ExtractDelimited(2, Words, ['=']));
    'units': Result := OpenUnit;
    'forms': Result := OpenForm;
    'code': Result := Complete;
    'type': Result := TypeText;
    'close': OpenNew;
    'rest': Result := Turn < RestTurns;
    'window': ShowWindow;
    'pause': Result := Pause;
  else
    Note('unknown: ' + Words);
  end;
end;

// ---------------------------------------------------------------------------- clock

procedure TStory.Tick(Sender: TObject);
const
  Intervals: array[Boolean] of Integer = (SettleMs, TurnMs);
var
  HasMore: Boolean;
begin
  if not LazarusIDE.IDEStarted or (Project1 = nil) then
    Exit;
  Clock.Enabled := False;
  if IsSettling then
  begin
    Note(ExtractDelimited(1, Steps[Step], ['=']));
    Inc(Step);
    Turn := 0;
  end;
  if Step = Steps.Count then
  begin
    Project1.ClearModifieds(True);
    LazarusIDE.GetMainBar.Close;
    Exit;
  end;
  HasMore := Perform(Steps[Step]);
  IsSettling := not HasMore;
  Inc(Turn);
  Clock.Interval := Intervals[HasMore];
  Clock.Enabled := True;
end;

// Closes a dialog that was there at the tick before, too.
procedure TStory.CloseDialog(Sender: TObject);
var
  Form: TCustomForm;
  Number: Integer;
begin
  for Number := 0 to Screen.CustomFormCount - 1 do
  begin
    Form := Screen.CustomForms[Number];
    if not (fsModal in Form.FormState) then
      Continue;
    if Form = Dialog then
    begin
      Note('dialog ' + Form.ClassName);
      Form.ModalResult := mrCancel;
    end;
    Dialog := Form;
    Exit;
  end;
  Dialog := nil;
end;

function NewTimer(Interval: Integer; Action: TNotifyEvent): TTimer;
begin
  Result := TTimer.Create(nil);
  Result.Interval := Interval;
  Result.OnTimer := Action;
end;

constructor TStory.Create(const TheFile: string);
begin
  FileName := TheFile;
  Units := TStringList.Create;
  Steps := TStringList.Create;
  Steps.CommaText := 'start,' + GetEnvironmentVariable('LANEMM_STORY_STEPS');
  Clock := NewTimer(SettleMs, @Tick);
  Guard := NewTimer(DialogMs, @CloseDialog);
end;

destructor TStory.Destroy;
begin
  Clock.Free;
  Guard.Free;
  Steps.Free;
  Units.Free;
  inherited Destroy;
end;

// Called when the IDE has read its options.
procedure Begins;
begin
  if GetEnvironmentVariable('LANEMM_STORY') <> '' then
    Story := TStory.Create(GetEnvironmentVariable('LANEMM_STORY'));
end;

initialization
  AddBootHandler(libhEnvironmentOptionsLoaded, @Begins);

finalization
  Story.Free;

end.
