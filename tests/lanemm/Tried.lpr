/// A program for `lanemm try` whose best manager is known.
///
///   Tried WORD      is lean where LANEMM has WORD, and touches 48 MB elsewhere
///   Tried grow      two arrays that grow step by step: Free Pascal's heap copies them each time
///   Tried other     another memory manager takes the place of LaneMM, as cmem would
///   Tried rest WORD as WORD, and waits for a signal
program Tried;

{$mode delphi}

uses
  LaneMM, SysUtils, BaseUnix, SysCall;

const
  HeavyBytes = 48 shl 20; // what two managers differ by in a small program is far below a hundredth
  PageBytes = 4096;

procedure Touch;
var
  Memory: PByte;
  Offset: Integer;
begin
  // Not from the heap: the same in all of them.
  Memory := fpMMap(nil, HeavyBytes, PROT_READ or PROT_WRITE, MAP_PRIVATE or MAP_ANONYMOUS, -1, 0);
  Offset := 0;
  while Offset < HeavyBytes do
  begin
    Memory[Offset] := 1;
    Inc(Offset, PageBytes);
  end;
end;

procedure Grow;
const
  StepBytes = 64 shl 10;
  Steps = 40;
var
  Arrays: array[0..1] of Pointer;
  Step, Index: Integer;
begin
  Arrays[0] := nil;
  Arrays[1] := nil;
  for Step := 1 to Steps do
    for Index := 0 to 1 do
    begin
      ReallocMem(Arrays[Index], Step * StepBytes);
      FillChar((Arrays[Index] + (Step - 1) * StepBytes)^, StepBytes, 1);
    end;
end;

var
  Found: TMemoryManager;

function OtherGetMem(Size: PtrUInt): Pointer;
begin
  Result := Found.GetMem(Size);
end;

procedure TakeOver;
var
  Manager: TMemoryManager;
begin
  GetMemoryManager(Found);
  Manager := Found;
  Manager.GetMem := OtherGetMem;
  SetMemoryManager(Manager);
end;

const
  ControlCall = {$ifdef CPUAARCH64} 167 {$else} 157 {$endif}; // prctl
  DisableHugePages = 41;

begin
  do_syscall(ControlCall, DisableHugePages, 1, 0, 0, 0); // a page fault for each page everywhere
  if ParamStr(1) = 'grow' then
    Grow
  else if ParamStr(1) = 'other' then
    TakeOver
  else if Pos(ParamStr(ParamCount), GetEnvironmentVariable('LANEMM')) = 0 then
    Touch;
  if ParamStr(1) = 'rest' then
    fpPause;
end.
