/// The clock, the memory and the processors, as this process sees them.
//
// Source: proc(5), /proc/self/status; Windows: GetProcessMemoryInfo.
unit Demo.Machine;

{$mode delphi}{$H+}

interface

/// Returns the milliseconds since some fixed moment; never goes back.
function ClockMs: Double;

/// Returns the milliseconds of processor time that this process has used.
function ProcessorMs: Double;

/// Returns the bytes of this process that are in memory now.
function ResidentBytes: Int64;

/// Returns the most bytes of this process that were ever in memory.
function PeakResidentBytes: Int64;

/// Returns how many processors this process may use.
function ProcessorCount: Integer;

implementation

{$ifdef linux}

uses
  Linux, UnixType, BaseUnix, SysUtils, Classes;

function ClockMs: Double;
const
  MsPerSecond: Double = 1e3; // typed, or the compiler computes with single precision
  NsPerMs: Double = 1e6;
var
  Time: TTimeSpec;
begin
  clock_gettime(CLOCK_MONOTONIC, @Time);
  Result := Time.tv_sec * MsPerSecond + Time.tv_nsec / NsPerMs;
end;

function ProcessorMs: Double;
const
  MsPerTick = 10;
var
  Times: TMS;
begin
  FpTimes(Times);
  Result := (Times.tms_utime + Times.tms_stime) * MsPerTick;
end;

/// Returns the text of one field of /proc/self/status, '' when there is none.
function StatusField(const Name: string): string;
var
  Status: TStringList;
begin
  Status := TStringList.Create;
  try
    Status.NameValueSeparator := ':';
    Status.LoadFromFile('/proc/self/status');
    Result := Trim(Status.Values[Name]);
  finally
    Status.Free;
  end;
end;

/// Returns a field such as `VmRSS: 1234 kB` in bytes.
function StatusBytes(const Name: string): Int64;
begin
  Result := StrToInt64Def(StatusField(Name).Replace(' kB', ''), 0) * 1024;
end;

function ResidentBytes: Int64;
begin
  Result := StatusBytes('VmRSS');
end;

function PeakResidentBytes: Int64;
begin
  Result := StatusBytes('VmHWM');
end;

function ProcessorCount: Integer;
var
  Part: string;
  Ends: TStringArray;
begin
  Result := 0;
  for Part in StatusField('Cpus_allowed_list').Split([',']) do // such as 0-3,8
  begin
    Ends := Part.Split(['-']);
    Inc(Result, StrToInt(Ends[High(Ends)]) - StrToInt(Ends[0]) + 1);
  end;
  if Result = 0 then
    Result := TThread.ProcessorCount;
end;

{$else}

uses
  Windows, Classes;

type
  /// PROCESS_MEMORY_COUNTERS.
  TMemoryCounters = record
    Size, Faults: Cardinal;
    PeakResident, Resident: NativeUInt;
    Rest: array[0..5] of NativeUInt; // quotas, page file
  end;

function GetMemoryCounters(Process: THandle; out Counters: TMemoryCounters;
  Size: Cardinal): LongBool; stdcall; external 'kernel32.dll' name 'K32GetProcessMemoryInfo';

function ClockMs: Double;
const
  MsPerSecond: Double = 1e3;
var
  Ticks, PerSecond: Int64;
begin
  QueryPerformanceCounter(Ticks);
  QueryPerformanceFrequency(PerSecond);
  Result := Ticks * MsPerSecond / PerSecond;
end;

function ProcessorMs: Double;
const
  UnitsPerMs: Double = 1e4;
var
  Start, Finish, Kernel, User: TFileTime;
begin
  if not GetProcessTimes(GetCurrentProcess, Start, Finish, Kernel, User) then
    Exit(0);
  Result := (Int64(Kernel) + Int64(User)) / UnitsPerMs;
end;

function MemoryCounters: TMemoryCounters;
begin
  if not GetMemoryCounters(GetCurrentProcess, Result, SizeOf(Result)) then
    Result := Default(TMemoryCounters);
end;

function ResidentBytes: Int64;
begin
  Result := MemoryCounters.Resident;
end;

function PeakResidentBytes: Int64;
begin
  Result := MemoryCounters.PeakResident;
end;

function ProcessorCount: Integer;
begin
  Result := TThread.ProcessorCount;
end;

{$endif}

end.
