/// A library with its own copy of LaneMM; see Host.
library Guest;

{$mode delphi}

uses
  {$ifdef LEAN} LaneMMLean, {$else} LaneMM, {$endif} cthreads, SysUtils;

function GuestGet(Size: NativeUInt): Pointer; cdecl;
begin
  GetMem(Result, Size);
end;

// 0 when the block was freed, 204 when it was refused.
function GuestFree(P: Pointer): LongInt; cdecl;
begin
  Result := 0;
  try
    FreeMem(P);
  except
    on EInvalidPointer do
      Result := 204;
  end;
end;

function GuestResize(P: Pointer; Size: NativeUInt): Pointer; cdecl;
begin
  Result := P;
  ReallocMem(Result, Size);
end;

function GuestSize(P: Pointer): NativeUInt; cdecl;
begin
  Result := MemSize(P);
end;

function GuestUsed: NativeUInt; cdecl;
begin
  Result := LaneMM_HeapStatus.UsedBytes;
end;

exports
  GuestGet, GuestFree, GuestResize, GuestSize, GuestUsed;

begin
end.
