/// What a machine is, in words for a report: no name of it, no path, no user.
unit MachineFacts;

{$mode delphi}{$H+}

interface

uses
  Classes;

/// Adds lines NAME=VALUE: machine, system, memory, limits, container.
procedure AddMachine(Facts: TStrings);
/// Returns the memory that the container allows, in bytes; 0: any.
function MemoryLimit: UInt64;
/// Returns the settings of the system for pages, to stand behind their size.
function PagesText: string;

implementation

uses
  SysUtils, StrUtils, BaseUnix, LaneMM.OsGroup, Targets, ToolText;

const
  // Of getrlimit.
  DataLimit = 2;
  LockedLimit = 8;
  AddressLimit = 9;

// Returns what follows Name and Sign in a line of the text; empty without such a line.
function ValueIn(const Text, Name: string; Sign: AnsiChar): string;
var
  Line: string;
begin
  for Line in Text.Split([#10]) do
    if Trim(Copy(Line, 1, Pos(Sign, Line) - 1)) = Name then
      Exit(Trim(Copy(Line, Pos(Sign, Line) + 1, MaxInt)).DeQuotedString('"'));
  Result := '';
end;

// Returns the text of a file; `unknown` where it cannot be read.
function FileText(const Path: string): string;
begin
  Result := Printable(Trim(ReadSmallFile(Path)));
  if Result = '' then
    Result := 'unknown';
end;

function ProcessorText: string;
var
  Text, Model: string;
  Name: TUtsName;
begin
  Text := ReadSmallFile('/proc/cpuinfo');
  Model := ValueIn(Text, 'model name', ':');
  if Model = '' then
    Model := FileText('/proc/device-tree/model'); // of boards with ARM
  FpUName(Name);
  Result := Format('%s, %d processors, %s', [Printable(Model),
    Length(Text.Split(['processor'#9])) - 1, string(Name.Machine)]);
  if Pos(' hypervisor', Text) > 0 then
    Result := Result + ', virtual';
end;

function SystemText: string;
var
  Name: TUtsName;
begin
  FpUName(Name);
  Result := Format('%s %s, %s', [string(Name.SysName), string(Name.Release),
    Printable(ValueIn(ReadSmallFile('/etc/os-release'), 'PRETTY_NAME', '='))]);
end;

function PagesText: string;
var
  Huge: string;
begin
  Huge := FileText('/sys/kernel/mm/transparent_hugepage/enabled');
  if Pos('[', Huge) > 0 then
    Huge := Copy(Huge, Pos('[', Huge) + 1, Pos(']', Huge) - Pos('[', Huge) - 1);
  Result := Format('transparent huge pages %s, overcommit %s', [Huge,
    FileText('/proc/sys/vm/overcommit_memory')]);
end;

function LimitText(Limit: Integer): string;
var
  Found: TRLimit;
begin
  if FpGetRLimit(Limit, @Found) <> 0 then
    Result := 'unknown'
  else if Int64(Found.rlim_cur) < 0 then
    Result := 'unlimited'
  else
    Result := BytesText(Found.rlim_cur);
end;

function MemoryLimit: UInt64;
var
  Group: TGroupMemory;
begin
  OsGroupRead(nil, nil, Group);
  Result := Group.Limit;
end;

function ContainerText: string;
const
  Marks: array[0..1, 0..1] of string = (('/.dockerenv', 'Docker'),
    ('/run/.containerenv', 'Podman'));
var
  Index: Integer;
begin
  Result := Printable(Trim(ReadSmallFile('/run/systemd/container')));
  for Index := 0 to High(Marks) do
    if (Result = '') and FileExists(Marks[Index, 0]) then
      Result := Marks[Index, 1];
  if Result = '' then
    Result := 'none seen';
  if MemoryLimit > 0 then
    Result := Format('%s, at most %s of memory', [Result, BytesText(MemoryLimit)]);
end;

procedure AddMachine(Facts: TStrings);
var
  Memory: string;
begin
  Facts.Values['machine'] := ProcessorText;
  Facts.Values['system'] := SystemText;
  Memory := ValueIn(ReadSmallFile('/proc/meminfo'), 'MemTotal', ':'); // in KB
  Facts.Values['memory'] := BytesText(1024 * StrToInt64Def(Copy(Memory, 1, Pos(' ', Memory + ' ') - 1), 0));
  Facts.Values['limits'] := Format('addresses %s, data %s, locked memory %s, seccomp %s, ptrace %s',
    [LimitText(AddressLimit), LimitText(DataLimit), LimitText(LockedLimit),
    StatusValue('/proc/self', 'Seccomp'), FileText('/proc/sys/kernel/yama/ptrace_scope')]);
  Facts.Values['container'] := ContainerText;
end;

end.
