/// Threads use a library with a copy of LaneMM until the process ends with exit code 3. Windows
/// ends them wherever they are, maybe inside of that copy, and then finalizes the library.
program LastGuest;

{$mode delphi}{$pointermath on}

uses
  LaneMM, cthreads, SysUtils, Dynlibs;

const
  ThreadCount = 4;
  SlotCount = 64;
  // Blocks before the end.
  Enough = 20000;

var
  GuestGet: function(Size: NativeUInt): Pointer; cdecl;
  GuestFree: function(P: Pointer): LongInt; cdecl;
  Slots: array[0..SlotCount - 1] of Pointer;
  Count, BegunCount: LongInt;

procedure Load;
var
  Guest: TLibHandle;
begin
  Guest := LoadLibrary(ExtractFilePath(ParamStr(0))
    + {$ifdef MSWINDOWS} 'Guest.dll' {$else} 'libGuest.so' {$endif});
  GuestGet := GetProcedureAddress(Guest, 'GuestGet');
  GuestFree := GetProcedureAddress(Guest, 'GuestFree');
end;

// Blocks of 1 byte to 512 KB, each freed by the next thread that comes to its slot.
function UseForEver(Seed: Pointer): PtrInt;
var
  Random: Cardinal;
  P: Pointer;
begin
  Random := Cardinal(PtrUInt(Seed));
  InterlockedIncrement(BegunCount);
  repeat
    Random := Random * 1664525 + 1013904223;
    P := GuestGet(1 + Random shr 13 shr (Random shr 8 and 15));
    P := InterlockedExchange(Slots[Random shr 16 mod SlotCount], P);
    if P <> nil then
      GuestFree(P);
    InterlockedIncrement(Count);
  until False;
end;

var
  Index: PtrUInt;
begin
  Load;
  for Index := 1 to ThreadCount do
    BeginThread(UseForEver, Pointer(Index));
  // Under wine a 32-bit process that ends while a thread starts may die of it.
  while (InterlockedExchangeAdd(BegunCount, 0) < ThreadCount)
    or (InterlockedExchangeAdd(Count, 0) < Enough) do
    ThreadSwitch;
  Halt(3);
end.
