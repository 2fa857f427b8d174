/// A memory manager that records what a program asks of Free Pascal's own heap.
//
// Compile a single-threaded program with `fpc -FaTraceRecorder`; while it runs, it writes
// the file that the environment variable TRACE names. bench/traces/record.sh does both.
// Format:   events, each a number slot * 4 + kind; kind 0 allocates (the size follows),
//           1 frees, 2 resizes (the size follows). A slot is free again after kind 1.
//           Numbers are written in groups of 7 bits, the lowest first; all but the last
//           group of a number have bit 7 set.
// Blocks have a header of 16 bytes with their slot.
unit TraceRecorder;

{$mode objfpc}{$pointermath on}

interface

implementation

const
  HeaderSize = 16;
  MostSlots = 1 shl 20;
  MostEvents = 120000; // the recording ends there
  BufferSize = 1 shl 16;
  KindNew = 0;
  KindFree = 1;
  KindResize = 2;

var
  Heap: TMemoryManager;
  Trace: file;
  IsRecording: Boolean;
  EventCount: PtrUInt;
  Buffer: array[0..BufferSize - 1] of Byte;
  Filled: PtrUInt;
  FreeSlots: array[0..MostSlots - 1] of PtrUInt; // freed ones
  FreeCount, SlotCount: PtrUInt;

procedure Flush;
begin
  BlockWrite(Trace, Buffer, Filled);
  Filled := 0;
end;

procedure WriteNumber(Number: PtrUInt);
begin
  if Filled > High(Buffer) - SizeOf(Number) - 2 then
    Flush;
  while Number > 127 do
  begin
    Buffer[Filled] := Number and 127 or 128;
    Inc(Filled);
    Number := Number shr 7;
  end;
  Buffer[Filled] := Number;
  Inc(Filled);
end;

procedure WriteEvent(Slot, Kind: PtrUInt);
begin
  IsRecording := IsRecording and (EventCount < MostEvents);
  Inc(EventCount);
  if IsRecording then
    WriteNumber(Slot * 4 + Kind);
end;

procedure WriteSize(Size: PtrUInt);
begin
  if IsRecording then
    WriteNumber(Size);
end;

function TakeSlot: PtrUInt;
begin
  if FreeCount > 0 then
  begin
    Dec(FreeCount);
    Exit(FreeSlots[FreeCount]);
  end;
  Result := SlotCount;
  Inc(SlotCount);
end;

function SlotOf(P: Pointer): PPtrUInt; inline;
begin
  Result := PPtrUInt(P - HeaderSize);
end;

function RecordGetMem(Size: PtrUInt): Pointer;
begin
  Result := Heap.GetMem(Size + HeaderSize) + HeaderSize;
  SlotOf(Result)^ := TakeSlot;
  WriteEvent(SlotOf(Result)^, KindNew);
  WriteSize(Size);
end;

function RecordAllocMem(Size: PtrUInt): Pointer;
begin
  Result := RecordGetMem(Size);
  FillChar(Result^, Size, 0);
end;

function RecordFreeMem(P: Pointer): PtrUInt;
begin
  if P = nil then
    Exit(0);
  WriteEvent(SlotOf(P)^, KindFree);
  FreeSlots[FreeCount] := SlotOf(P)^;
  Inc(FreeCount);
  Result := Heap.FreeMem(P - HeaderSize);
end;

function RecordFreeMemSize(P: Pointer; Size: PtrUInt): PtrUInt;
begin
  Result := RecordFreeMem(P);
end;

function RecordMemSize(P: Pointer): PtrUInt;
begin
  Result := Heap.MemSize(P - HeaderSize) - HeaderSize;
end;

function RecordReallocMem(var P: Pointer; Size: PtrUInt): Pointer;
begin
  if P = nil then
    P := RecordGetMem(Size)
  else if Size = 0 then
  begin
    RecordFreeMem(P);
    P := nil;
  end
  else
  begin
    WriteEvent(SlotOf(P)^, KindResize);
    WriteSize(Size);
    Dec(P, HeaderSize);
    Heap.ReallocMem(P, Size + HeaderSize);
    Inc(P, HeaderSize);
  end;
  Result := P;
end;

procedure Install;
var
  Manager: TMemoryManager;
begin
  GetMemoryManager(Heap);
  Manager := Heap;
  Manager.GetMem := @RecordGetMem;
  Manager.FreeMem := @RecordFreeMem;
  Manager.FreeMemSize := @RecordFreeMemSize;
  Manager.AllocMem := @RecordAllocMem;
  Manager.ReallocMem := @RecordReallocMem;
  Manager.MemSize := @RecordMemSize;
  SetMemoryManager(Manager);
end;

function GetEnv(Name: PAnsiChar): PAnsiChar; cdecl; external 'c' name 'getenv';

initialization
  Install;
  Assign(Trace, ShortString(GetEnv('TRACE')));
  Rewrite(Trace, 1);
  IsRecording := True;

finalization
  IsRecording := False;
  Flush;
  Close(Trace);

end.
