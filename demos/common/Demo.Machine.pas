/// The clock, the memory and the processors, as this process sees them.
//
// Source: proc(5), /proc/self/status. Where there is no such file, memory reads as 0.
unit Demo.Machine;

{$mode delphi}{$H+}

interface

/// Returns the milliseconds since some fixed moment; never goes back.
function ClockMs: Double;

/// Returns the bytes of this process that are in memory now.
function ResidentBytes: Int64;

/// Returns the most bytes of this process that were ever in memory.
function PeakResidentBytes: Int64;

/// Returns how many processors this process may use.
function ProcessorCount: Integer;

implementation

uses
  {$ifdef linux} Linux, UnixType, {$else} Windows, {$endif} SysUtils, Classes;

function ClockMs: Double;
{$ifdef linux}
const
  MsPerSecond: Double = 1e3; // typed, or the compiler computes with single precision
  NsPerMs: Double = 1e6;
var
  Time: TTimeSpec;
begin
  clock_gettime(CLOCK_MONOTONIC, @Time);
  Result := Time.tv_sec * MsPerSecond + Time.tv_nsec / NsPerMs;
end;
{$else}
const
  MsPerSecond: Double = 1e3;
var
  Ticks, PerSecond: Int64;
begin
  QueryPerformanceCounter(Ticks);
  QueryPerformanceFrequency(PerSecond);
  Result := Ticks * MsPerSecond / PerSecond;
end;
{$endif}

/// Returns the text of one field of /proc/self/status, '' when there is none.
function StatusField(const Name: string): string;
const
  StatusFile = '/proc/self/status';
var
  Status: TStringList;
begin
  if not FileExists(StatusFile) then
    Exit('');
  Status := TStringList.Create;
  try
    Status.NameValueSeparator := ':';
    Status.LoadFromFile(StatusFile);
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

end.
