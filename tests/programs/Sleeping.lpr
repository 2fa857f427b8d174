/// Allocates some blocks, and then nothing more: all threads sleep. Each line of its standard input is
/// settings, which it applies; `rights` stands for a change of its user, `allocate` allocates more.
/// Ends with its input.
///   Sleeping              with a second thread; without the thread library if ALONE is defined
///   Sleeping rights       with a change of its user before all else
///   Sleeping fork         so does a child process
///   Sleeping idle-child   a child process only sleeps
program Sleeping;

{$mode delphi}

uses
  LaneMM, {$ifndef ALONE} cthreads, {$endif} BaseUnix, SysCall;

var
  Blocks: array[0..99] of Pointer;

procedure Say(const Text: ShortString);
begin
  FpWrite(StdOutputHandle, @Text[1], Length(Text));
end;

procedure Allocate;
var
  Index: Integer;
begin
  for Index := 0 to High(Blocks) do
    GetMem(Blocks[Index], 1000);
end;

// Reads a line; returns False at the end of the input.
function ReadWords(out Words: ShortString): Boolean;
var
  Character: AnsiChar;
begin
  Words := '';
  Character := #0;
  repeat
    Result := FpRead(StdInputHandle, Character, 1) = 1;
    if Result and (Character <> #10) then
      Words := Words + Character;
  until not Result or (Character = #10);
end;

// What the system does for a program that changes its user, which only root can do.
procedure ChangeRights;
const
  ProcessControl = 157;
  SetDumpable = 4;
begin
  Do_SysCall(ProcessControl, SetDumpable, 0, 0, 0, 0);
end;

procedure Obey;
var
  Words: ShortString;
begin
  Say('ready'#10);
  while ReadWords(Words) do
  begin
    if Words = 'rights' then
      ChangeRights
    else if Words = 'allocate' then
      Allocate
    else
      LaneMM_Configure(Words);
    Say('done'#10);
  end;
end;

{$ifndef ALONE}
function Rest(Unused: Pointer): PtrInt;
begin
  repeat
    FpPause;
  until False;
  Result := 0;
end;
{$endif}

var
  Part: ShortString;
  Child: TPid;
  Status: Integer;

begin
  Part := ParamStr(1);
  if Part = 'rights' then
    ChangeRights;
  {$ifndef ALONE}
  BeginThread(Rest);
  {$endif}
  Allocate;
  Child := -1;
  if (Part = 'fork') or (Part = 'idle-child') then
    Child := FpFork;
  if (Child = 0) and (Part = 'fork') then
    Allocate;
  Obey;
  if Child > 0 then
    FpWaitPid(Child, Status, 0);
end.
