/// What the tests need of the operating system: the time of a test, memory, children.
unit Test.System;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Classes;

const
  /// Bytes of the pages that BackedPages counts.
  CountedPage = 4096;

type
  TWork = procedure of object;
  TAlarmCall = procedure;

/// Calls Call, once, after so many seconds, in whatever thread; 0 cancels the call.
procedure SetAlarm(Seconds: Cardinal; Call: TAlarmCall);
/// Ends the process at once, without finalization.
procedure EndProcess(Code: Cardinal);
/// Processor seconds of this process, and of its children that have ended where the system counts
/// them.
function ProcessorSeconds: Double;
/// Bytes of physical memory of this process.
function ResidentBytes: NativeUInt;
/// Pages of a range that the system backs, in pages of 4 KB; the part of the last page counts.
function BackedPages(P: Pointer; Size: NativeUInt): NativeUInt;
/// Keeps pages in physical memory. False when the system refuses.
function LockPages(P: Pointer; Size: NativeUInt): Boolean;
/// Takes that back.
procedure UnlockPages(P: Pointer; Size: NativeUInt);
/// Sends stderr to the null device, until RestoreErrors.
procedure SilenceErrors;
/// Takes that back.
procedure RestoreErrors;
/// All that Stream still gives.
function ReadAll(Stream: TStream): string;
{$ifdef UNIX}
/// Returns whether the mapping that holds P has a flag of /proc/self/smaps: `hg`, huge pages are requested;
/// `dd`, it is left out of core files.
function MappingHasFlag(P: Pointer; const Flag: string): Boolean;
/// Makes the system refuse a call of this process, by EPERM, from now on. False if it cannot.
function SystemRefuses(Call: Cardinal): Boolean;
{$endif}
/// With huge pages the system backs free memory around a page in use, at the first touch or at any
/// later time: tests that measure resident memory would measure that, too.
procedure TurnHugePagesOff;

/// Runs Work in a child process, and returns its exit code, or -1 if it did not end by itself: 0, or
/// 1 where Work raised. Errors is what it wrote to stderr. Number counts the children of the running
/// test from 1 on. Without fork, the child is a copy of this program that runs the same test,
/// up to here.
function RunInChildProcess(Work: TWork; const Suite, Test: string; Number: Integer;
  out Errors: string): Integer;

implementation

uses
  SysUtils, {$ifdef UNIX} BaseUnix, Syscall, Forking {$else} Windows, Process {$endif};

function ReadAll(Stream: TStream): string;
var
  Part: array[0..4095] of Char;
  Count: Integer;
begin
  Result := '';
  repeat
    Count := Stream.Read(Part, SizeOf(Part));
    Result := Result + Copy(Part, 1, Count);
  until Count <= 0;
end;

// Does the work of a child process, and ends it.
procedure BeTheChild(Work: TWork);
begin
  try
    Work;
  except
    on Error: Exception do
    begin
      WriteLn('in the child: ', Error.Message);
      Flush(Output);
      EndProcess(1);
    end;
  end;
  EndProcess(0);
end;

{$ifdef UNIX}
  {$I Test.System.Unix.inc}
{$else}
  {$I Test.System.Windows.inc}
{$endif}

end.
