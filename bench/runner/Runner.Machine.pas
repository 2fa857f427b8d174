/// The machine that the runs take place on.
unit Runner.Machine;

{$I Bench.inc}

interface

uses
  SysUtils;

/// Describes the machine in lines of `what: value`; names no host.
function MachineDescription: TStringArray;
/// Touches and frees Bytes of memory. A virtual machine's host takes idle memory back, and
/// the first touch afterwards takes up to ten times as long: no measured run shall pay for it.
procedure MemoryWarm(Bytes: NativeUInt);

implementation

uses
  Classes, BaseUnix;

const
  PageSize = 4096;
  AdviceHugePages = 14; // MADV_HUGEPAGE: eight times as fast to touch, where it is allowed

function MAdvise(Memory: Pointer; Bytes: NativeUInt; Advice: LongInt): LongInt; cdecl;
  external 'c' name 'madvise';

/// Returns the first line of a system file, or '?'.
function FirstLine(const FileName: string): string;
var
  Source: TextFile;
begin
  if not FileExists(FileName) then
    Exit('?');
  AssignFile(Source, FileName);
  Reset(Source);
  ReadLn(Source, Result);
  CloseFile(Source);
end;

/// Returns the value of the first line of /proc/cpuinfo or /proc/meminfo that is called Name.
function ProcValue(const FileName, Name: string): string;
var
  Lines: TStringList;
  Line: string;
begin
  Result := '?';
  Lines := TStringList.Create;
  try
    Lines.LoadFromFile(FileName);
    for Line in Lines do
      if Line.StartsWith(Name) then
        Exit(Trim(Copy(Line, Pos(':', Line) + 1, MaxInt)));
  finally
    Lines.Free;
  end;
end;

function MachineDescription: TStringArray;
begin
  Result := [
    'CPU: ' + ProcValue('/proc/cpuinfo', 'model name'),
    'CPUs allowed: ' + ProcValue('/proc/self/status', 'Cpus_allowed_list'),
    'memory: ' + ProcValue('/proc/meminfo', 'MemTotal'),
    'kernel: Linux ' + FirstLine('/proc/sys/kernel/osrelease').Split(['-'])[0],
    'transparent huge pages: ' + FirstLine('/sys/kernel/mm/transparent_hugepage/enabled'),
    'load average at the start: ' + FirstLine('/proc/loadavg').Split([' '])[0],
    'compiler: Free Pascal ' + {$I %FPCVERSION%}];
end;

procedure MemoryWarm(Bytes: NativeUInt);
var
  Memory: PByte;
  Offset: NativeUInt;
begin
  Memory := FpMMap(nil, Bytes, PROT_READ or PROT_WRITE, MAP_PRIVATE or MAP_ANONYMOUS, -1, 0);
  if Memory = MAP_FAILED then
    Exit;
  MAdvise(Memory, Bytes, AdviceHugePages);
  Offset := 0;
  while Offset < Bytes do
  begin
    Memory[Offset] := 1;
    Inc(Offset, PageSize);
  end;
  FpMUnmap(Memory, Bytes);
end;

end.
