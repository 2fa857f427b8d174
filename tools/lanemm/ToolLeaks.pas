/// `lanemm report PID leaks`: what nothing in a process points to.
unit ToolLeaks;

{$mode delphi}{$H+}

interface

uses
  ToolCommands, ToolOpen, Targets, ProcessPauses, HeapLeaks;

/// Pauses a process if `--pause` asks for that, and one that is stopped: it stays as it is. Nil for one
/// that runs, and for a core file. Registers are those of all threads, nil if they are unknown.
function PauseFor(Opened: TOpened; Arguments: TArguments; out Registers: TArray<TRegisters>): TPause;
/// Shows the leaks of the process, or the core file, that the first word names.
procedure ShowLeaks(Arguments: TArguments);
/// Writes leaks, or a tree of that form, as JSON of a leak report.
procedure WriteLeaksJson(Opened: TOpened; const Leaks: TLeaks; const Topic: string);
/// Writes the page of leak reports with that JSON.
procedure WriteLeaksPage(Opened: TOpened; const Leaks: TLeaks; const Topic: string);

implementation

uses
  SysUtils, fpJson, BoxPages, HeapJson, HeapText;

function PauseFor(Opened: TOpened; Arguments: TArguments; out Registers: TArray<TRegisters>): TPause;
begin
  Result := nil;
  Registers := Opened.Target.Registers;
  if not (Opened.Target is TProcessTarget)
    or not (Arguments.Has('pause') or IsStopped(Opened.Target.ProcessId)) then
    Exit;
  Result := TPause.Create(Opened.Target.ProcessId);
  Registers := Result.Registers;
  Opened.Target.RefreshRegions;
  Opened.Image.Refresh;
end;

procedure WriteLimits(const Leaks: TLeaks);
begin
  if Leaks.Threads = 0 then
    WriteLn(StdErr, 'lanemm: the process runs: listed are the blocks that each of ',
      Leaks.Looks, ' searches found. One whose only address was in a register, or was being moved,'
      + ' during each search is listed, too, though it is not a leak. --pause is exact.');
end;

procedure WriteLeaksJson(Opened: TOpened; const Leaks: TLeaks; const Topic: string);
var
  Json: TJSONObject;
begin
  Json := LeaksToJson(Opened.Image, Leaks, Topic);
  WriteLn(Json.FormatJSON);
  Json.Free;
end;

procedure WriteLeaksPage(Opened: TOpened; const Leaks: TLeaks; const Topic: string);
var
  Json: TJSONObject;
  Start, Rest: string;
begin
  Json := LeaksToJson(Opened.Image, Leaks, Topic);
  SplitPage(Start, Rest);
  WriteLn(Start, StringReplace(Json.AsJSON, '<', '\u003c', [rfReplaceAll]), Rest);
  Json.Free;
end;

procedure ShowLeaks(Arguments: TArguments);
var
  Opened: TOpened;
  Pause: TPause;
  Registers: TArray<TRegisters>;
  Leaks: TLeaks;
begin
  Pause := nil;
  Opened := OpenHeap(Arguments);
  try
    Pause := PauseFor(Opened, Arguments, Registers);
    Leaks := FindLeaks(Opened.Image, Registers);
    FreeAndNil(Pause);
    Opened.Target.CheckThere;
    WriteLimits(Leaks);
    if Arguments.Has('json') then
      WriteLeaksJson(Opened, Leaks, LeaksTopic)
    else if Arguments.Has('html') then
      WriteLeaksPage(Opened, Leaks, LeaksTopic)
    else
    begin
      WriteLn(DescribeTarget(Opened));
      WriteLeaks(Leaks, Arguments.Number('most', 20, 0));
    end;
  finally
    Pause.Free;
    Opened.Free;
  end;
end;

end.
