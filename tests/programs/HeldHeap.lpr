/// Leaks an object and ends while another thread has the lock of the system's heap most of the time:
/// the leak report pauses that thread. Windows only; elsewhere the thread sleeps.
program HeldHeap;

{$mode delphi}

uses
  LaneMM, cthreads, {$ifdef MSWINDOWS} Windows, {$endif} SysUtils;

{$ifdef MSWINDOWS}
function HeapLock(Heap: THandle): LongBool; stdcall; external 'kernel32.dll';
function HeapUnlock(Heap: THandle): LongBool; stdcall; external 'kernel32.dll';
{$endif}

var
  Turns: Integer;

function Hold(Unused: Pointer): PtrInt;
begin
  Result := 0;
  repeat
    {$ifdef MSWINDOWS} HeapLock(GetProcessHeap); {$endif}
    Sleep(20);
    {$ifdef MSWINDOWS} HeapUnlock(GetProcessHeap); {$endif}
    Inc(Turns);
  until False;
end;

begin
  TObject.Create;
  BeginThread(@Hold);
  while Turns < 2 do
    Sleep(1);
end.
