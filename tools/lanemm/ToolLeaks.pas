/// `lanemm report PID leaks`: what nothing in a process points to.
unit ToolLeaks;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Shows the leaks of the process, or the core file, that the first word names.
procedure ShowLeaks(Arguments: TArguments);

implementation

uses
  SysUtils, fpJson, LaneMM.Text, LaneMM.Html, Targets, ProcessPauses, HeapLeaks, HeapJson, HeapText, ToolOpen;

// Pauses a process if that was asked for, and one that is stopped, for its registers: it stays as it
// is. Nil for one that runs, and for a core file.
function PauseFor(Target: TTarget; Arguments: TArguments): TPause;
begin
  Result := nil;
  if (Target is TProcessTarget)
    and (Arguments.Has('pause') or IsStopped(Target.ProcessId)) then
    Result := TPause.Create(Target.ProcessId);
end;

procedure WriteLimits(const Leaks: TLeaks);
begin
  if Leaks.Threads = 0 then
    WriteLn(StdErr, 'lanemm: the process runs: listed is what ', Leaks.Looks, ' looks in turn have'
      + ' found. A block whose only address was in a register, or on its way to another place, at'
      + ' each look is no leak. --pause is exact.');
end;

procedure WriteJson(Opened: TOpened; const Leaks: TLeaks);
var
  Json: TJSONObject;
begin
  Json := LeaksToJson(Opened.Image, Leaks);
  WriteLn(Json.FormatJSON);
  Json.Free;
end;

// Writes the page of leak reports.
procedure WritePage(Opened: TOpened; const Leaks: TLeaks);
const
  Most = 1 shl 20; // bytes of the page without its data
var
  Json: TJSONObject;
  Text: TText;
  Start, Rest: string;
begin
  Json := LeaksToJson(Opened.Image, Leaks);
  TextOpen(Text, Most);
  HtmlOpen(Text);
  SetString(Start, Text.Start, Text.Length);
  Text.Length := 0;
  HtmlClose(Text, pgLeaks);
  SetString(Rest, Text.Start, Text.Length);
  TextClose(Text);
  WriteLn(Start, StringReplace(Json.AsJSON, '<', '\u003c', [rfReplaceAll]), Rest);
  Json.Free;
end;

procedure ShowLeaks(Arguments: TArguments);
var
  Opened: TOpened;
  Pause: TPause;
  Leaks: TLeaks;
begin
  Pause := nil;
  Opened := OpenHeap(Arguments);
  try
    Pause := PauseFor(Opened.Target, Arguments);
    if Pause <> nil then
    begin
      Opened.Target.RefreshRegions;
      Opened.Image.Refresh;
      Leaks := FindLeaks(Opened.Image, Pause.Registers);
    end
    else
      Leaks := FindLeaks(Opened.Image, Opened.Target.Registers);
    FreeAndNil(Pause);
    Opened.Target.CheckThere;
    WriteLimits(Leaks);
    if Arguments.Has('json') then
      WriteJson(Opened, Leaks)
    else if Arguments.Has('html') then
      WritePage(Opened, Leaks)
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
