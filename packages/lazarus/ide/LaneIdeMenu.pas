/// The window in the IDE: its menu item, its commands, and what it asks of the IDE.
//
// Callers: the thread of the user interface.
unit LaneIdeMenu;

{$mode objfpc}{$H+}

interface

uses
  LaneIdeWindow;

/// Called by the IDE when it loads the package.
procedure Register;
/// Returns the window; creates it if needed.
function TheWindow: TLaneWindow;

implementation

uses
  Classes, SysUtils, Controls, Forms, LCLType, MenuIntf, IDECommands, IDEWindowIntf, LazIDEIntf,
  ProjectIntf, MacroIntf, SrcEditorIntf, BaseIDEIntf, LazConfigStorage, CompOptsIntf,
  LaneIdeRows, LaneIdeReports, LaneIdeRuns, LaneIdeWords, LaneIdeMarks;

const
  FormName = 'LaneMM';
  StorageFile = 'lanemm.xml';

type
  // The IDE as the window sees it.
  TIdeHost = class(TLaneHost)
  private
    Lines: TRow;   // of the last profile
    procedure EditorCreated(Sender: TObject);
  public
    constructor Create;
    destructor Destroy; override;
    function Target(out Reason: string): TTarget; override;
    function Jump(const FileName: string; Line: Integer): string; override;
    procedure LinesChanged(NewLines: TRow); override;
    procedure Keep(const Tool, Settings: string); override;
  end;

// ---------------------------------------------------------------------------- host

constructor TIdeHost.Create;
begin
  SourceEditorManagerIntf.RegisterChangeEvent(semEditorActivate, @EditorCreated);
end;

destructor TIdeHost.Destroy;
begin
  if SourceEditorManagerIntf <> nil then
    SourceEditorManagerIntf.UnRegisterChangeEvent(semEditorActivate, @EditorCreated);
  inherited Destroy;
end;

function TIdeHost.Target(out Reason: string): TTarget;
var
  FileName: string;
  Mode: TAbstractRunParamsOptionsMode;
begin
  Result := nil;
  Reason := rsNoProject;
  if LazarusIDE.ActiveProject = nil then
    Exit;
  Reason := rsNotBuilt;
  if LazarusIDE.DoBuildProject(crRun, []) <> mrOK then
    Exit;
  FileName := '$(TargetFile)';
  if not IDEMacros.SubstituteMacros(FileName) then
    Exit;
  Result := TTarget.Create;
  Result.FileName := FileName;
  Result.Folder := ExtractFilePath(FileName);
  Mode := LazarusIDE.ActiveProject.RunParameters.Find(
    LazarusIDE.ActiveProject.RunParameters.ActiveModeName);
  if Mode = nil then
    Exit;
  Result.Parameters := Mode.CmdLineParams;
  IDEMacros.SubstituteMacros(Result.Parameters);
  Result.Variables.Assign(Mode.UserOverrides);
  if Mode.WorkingDirectory <> '' then
    Result.Folder := Mode.WorkingDirectory;
  IDEMacros.SubstituteMacros(Result.Folder);
end;

function TIdeHost.Jump(const FileName: string; Line: Integer): string;
var
  Path: string;
begin
  Path := '';
  if LazarusIDE.ActiveProject <> nil then
    Path := ExtractFilePath(LazarusIDE.ActiveProject.ProjectInfoFile);
  Path := LazarusIDE.FindSourceFile(FileName, Path,
    [fsfSearchForProject, fsfUseIncludePaths, fsfMapTempToVirtualFiles]);
  Result := '';
  if (Path = '') or (LazarusIDE.DoOpenFileAndJumpToPos(Path, Point(1, Line), -1, -1, -1,
    [ofRegularFile]) <> mrOK) then
    Result := Format(rsNotFound, [FileName]);
end;

procedure TIdeHost.LinesChanged(NewLines: TRow);
begin
  Lines := NewLines;
  MarkEditors(Lines);
end;

procedure TIdeHost.EditorCreated(Sender: TObject);
begin
  if Lines <> nil then
    MarkEditors(Lines);
end;

procedure TIdeHost.Keep(const Tool, Settings: string);
var
  Storage: TConfigStorage;
begin
  Storage := GetIDEConfigStorage(StorageFile, False);
  try
    Storage.SetDeleteValue('Tool', Tool, '');
    Storage.SetDeleteValue('Settings', Settings, '');
    Storage.WriteToDisk;
  finally
    Storage.Free;
  end;
end;

// ---------------------------------------------------------------------------- window and commands

procedure CreateWindow(Sender: TObject; Name: string; var Form: TCustomForm;
  WithoutSizing: Boolean);
var
  Storage: TConfigStorage;
  Window: TLaneWindow;
  Tool: string;
begin
  if not SameText(Name, FormName) then
    Exit;
  Window := TLaneWindow.CreateNew(LazarusIDE.OwningComponent);
  if WithoutSizing then
    Window.DisableAutoSizing;
  Storage := GetIDEConfigStorage(StorageFile, True);
  try
    Tool := Storage.GetValue('Tool', '');
    if Tool = '' then
      Tool := FindTool;
    Window.UseHost(TIdeHost.Create, Tool, Storage.GetValue('Settings', ''));
  finally
    Storage.Free;
  end;
  Form := Window;
end;

function TheWindow: TLaneWindow;
begin
  Result := IDEWindowCreators.GetForm(FormName, True) as TLaneWindow;
end;

procedure ShowWindow(Sender: TObject);
begin
  IDEWindowCreators.ShowForm(FormName, True);
end;

procedure RunLeaks(Sender: TObject);
begin
  ShowWindow(nil);
  TheWindow.Run(rkLeaks);
end;

procedure RunDebug(Sender: TObject);
begin
  ShowWindow(nil);
  TheWindow.Run(rkDebug);
end;

procedure RunProfile(Sender: TObject);
begin
  ShowWindow(nil);
  TheWindow.Run(rkProfile);
end;

// Registers a command that Tools > Options > Key Mappings lists.
function AddCommand(const Name, Title: string; Action: TNotifyProcedure): TIDECommand;
begin
  Result := RegisterIDECommand(IDECommandList.FindCategoryByName(CommandCategoryViewName), Name,
    Title, IDEShortCut(VK_UNKNOWN, [], VK_UNKNOWN, []), nil, Action);
end;

procedure Register;
var
  Sibling: string;
begin
  RegisterIDEMenuCommand(itmViewMainWindows, FormName, rsWindow, nil, @ShowWindow,
    AddCommand(FormName, rsWindow, @ShowWindow));
  AddCommand('LaneMMRunLeaks', rsWindow + ': ' + rsRunLeaks, @RunLeaks);
  AddCommand('LaneMMRunDebug', rsWindow + ': ' + rsRunDebug, @RunDebug);
  AddCommand('LaneMMRunProfile', rsWindow + ': ' + rsRunProfile, @RunProfile);
  Sibling := '';
  if IDEDockMaster <> nil then // else it would lie on the messages
    Sibling := 'MessagesView';
  IDEWindowCreators.Add(FormName, @CreateWindow, nil, '20%', '60%', '+60%', '+35%', Sibling, alClient);
end;

end.
