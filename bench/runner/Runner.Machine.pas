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
/// Does the same once with three quarters of the free memory, at most 8 GB: what a fresh virtual machine
/// never touched, its host has to find first.
procedure SupplyWarm;

type
  /// Processor time of the machine since it started, in ticks.
  TTicks = record
    Busy: Int64;    //< const   of all programs and the kernel
    Stolen: Int64;  //< const   that the host gave to others
    Total: Int64;   //< const   with idle time, of all processors
    Own: Int64;     //< const   of this process and its children that ended, part of Busy
  end;

/// Returns the processor time until now.
function TicksNow: TTicks;
/// Returns how many processors other programs, or the host, took since Start.
function OthersSince(const Start: TTicks): Double;

implementation

uses
  Classes, BaseUnix, Math;

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

procedure SupplyWarm;
const
  MostBytes = 8 shl 30;
var
  FreeKb: Int64;
begin
  FreeKb := StrToInt64Def(ProcValue('/proc/meminfo', 'MemAvailable').Split([' '])[0], 0);
  MemoryWarm(Min(FreeKb * 1024 div 4 * 3, MostBytes));
end;

function OwnTicks: Int64;
var
  Times: TMs;
begin
  FpTimes(Times);
  Result := Times.tms_utime + Times.tms_stime + Times.tms_cutime + Times.tms_cstime;
end;

function TicksNow: TTicks;
type
  TColumn = (coName, coEmpty, coUser, coNice, coSystem, coIdle, coIoWait, coIrq, coSoftIrq, coSteal);
var
  Fields: TStringArray;
  Ticks: array[coUser..coSteal] of Int64;
  Column: TColumn;
begin
  Fields := FirstLine('/proc/stat').Split([' ']);
  for Column := coUser to coSteal do
    if Ord(Column) <= High(Fields) then
      Ticks[Column] := StrToInt64Def(Fields[Ord(Column)], 0)
    else
      Ticks[Column] := 0;
  Result.Own := OwnTicks;
  Result.Stolen := Ticks[coSteal];
  Result.Busy := Ticks[coUser] + Ticks[coNice] + Ticks[coSystem] + Ticks[coIrq] + Ticks[coSoftIrq];
  Result.Total := Result.Busy + Result.Stolen + Ticks[coIdle] + Ticks[coIoWait];
end;

function OthersSince(const Start: TTicks): Double;
var
  Ticks: TTicks;
begin
  Ticks := TicksNow;
  if Ticks.Total <= Start.Total then
    Exit(0);
  Result := ((Ticks.Busy - Start.Busy) - (Ticks.Own - Start.Own) + (Ticks.Stolen - Start.Stolen))
    / (Ticks.Total - Start.Total) * TThread.ProcessorCount;
  Result := Max(0, Result);
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
