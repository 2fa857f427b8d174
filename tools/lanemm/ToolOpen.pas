/// The first word of a command: a process or a core file, and the heap in it.
unit ToolOpen;

{$mode delphi}{$H+}

interface

uses
  ToolCommands, Targets, HeapImages;

type
  /// A heap that was opened.
  TOpened = class
  public
    Target: TTarget;
    Image: THeapImage;
    /// Number of copies of LaneMM in the target, and that of this one, from 1.
    CopyCount, CopyNumber: Integer;
    destructor Destroy; override;
  end;

/// Opens the process or the core file that the first word names.
function OpenHeap(Arguments: TArguments): TOpened;
/// The same for a process alone.
function OpenProcess(Arguments: TArguments): TOpened;
/// Makes the heap of a target; the target belongs to it from now on.
function OpenTarget(Target: TTarget; Arguments: TArguments): TOpened;
/// Opens what the first word names; Image is nil where that does not run on LaneMM, or its records are
/// damaged.
function OpenAny(Arguments: TArguments): TOpened;
/// Returns a line that says what was opened.
function DescribeTarget(Opened: TOpened): string;
/// Writes the sentence on records that changed while they were read to the standard error output,
/// if there is one.
procedure NoteChanges(Image: THeapImage);

implementation

uses
  SysUtils, LaneMM.Modules, TargetCores;

destructor TOpened.Destroy;
begin
  ModulesUse(nil);
  Image.Free;
  Target.Free;
  inherited Destroy;
end;

procedure OpenImage(Opened: TOpened; Arguments: TArguments);
var
  Engines: TArray<UInt64>;
begin
  Engines := FindEngines(Opened.Target);
  Opened.CopyCount := Length(Engines);
  Opened.CopyNumber := Arguments.Number('copy', 1, 1);
  if Opened.CopyNumber > Opened.CopyCount then
    raise ETool.Create(ecUsage, '--copy=%d: %s has %d', [Opened.CopyNumber, Opened.Target.Name,
      Opened.CopyCount]);
  Opened.Image := THeapImage.Create(Opened.Target, Engines[Opened.CopyNumber - 1]);
  ModulesUse(Opened.Target);
end;

function OpenTarget(Target: TTarget; Arguments: TArguments): TOpened;
begin
  Result := TOpened.Create;
  try
    Result.Target := Target;
    OpenImage(Result, Arguments);
  except
    Result.Free;
    raise;
  end;
end;

function OpenProcess(Arguments: TArguments): TOpened;
begin
  Result := OpenTarget(TProcessTarget.Create(Arguments.ProcessId), Arguments);
end;

function NamedTarget(Arguments: TArguments): TTarget;
var
  Number: Integer;
begin
  if TryProcessId(Arguments.Word(0, 'PID or FILE'), Number) then
    Result := TProcessTarget.Create(Number)
  else
    Result := TCoreTarget.Create(Arguments.Words[0], '');
end;

function OpenHeap(Arguments: TArguments): TOpened;
begin
  Result := OpenTarget(NamedTarget(Arguments), Arguments);
end;

function OpenAny(Arguments: TArguments): TOpened;
begin
  Result := TOpened.Create;
  try
    Result.Target := NamedTarget(Arguments);
    try
      OpenImage(Result, Arguments);
    except
      on Error: ETool do
        if not (Error.Code in [ecNotOnLaneMM, ecDamaged]) then
          raise;
    end;
  except
    Result.Free;
    raise;
  end;
end;

function DescribeTarget(Opened: TOpened): string;
begin
  Result := Opened.Target.Name;
  if Opened.Target.ProgramPath <> '' then
    Result := Result + ', ' + Printable(Opened.Target.ProgramPath);
  if Opened.CopyCount > 1 then
    Result := Format('%s, copy %d of %d of LaneMM', [Result, Opened.CopyNumber,
      Opened.CopyCount]);
end;

procedure NoteChanges(Image: THeapImage);
begin
  if Image.ChangeNote <> '' then
    WriteLn(StdErr, 'lanemm: ', Image.ChangeNote);
end;

end.
