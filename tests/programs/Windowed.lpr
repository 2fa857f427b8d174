/// Frees a block twice and leaks one. On Windows it has no console: what LaneMM reports goes to its log,
/// and to the output of a debugger.
program Windowed;

{$mode delphi}
{$ifdef MSWINDOWS} {$apptype gui} {$endif}

uses
  LaneMM, SysUtils;

type
  TThing = class
  end;

var
  P: Pointer;

procedure Leak;
begin
  TThing.Create; // planted: leak
end;

begin
  Leak;
  FreeMem(GetMem(10));
  P := GetMem(100);
  FreeMem(P); // planted: first free
  try
    FreeMem(P); // planted: second free
  except
    on EInvalidPointer do
      ExitCode := 3;
  end;
end.
