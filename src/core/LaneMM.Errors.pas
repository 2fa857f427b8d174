/// The two errors of the memory manager, raised as the run-time library does.
//
// Owns:       nothing.
// Callers:    any thread that holds no lock.
unit LaneMM.Errors;

{$I ../LaneMM.inc}

interface

/// No memory for Size bytes: tells Process.MemoryFailed, then run-time error 203 (EOutOfMemory), or
/// nil with ReturnNilIfGrowHeapFails.
function ErrorOutOfMemory(Size: NativeUInt): Pointer;
/// Not a block, or a free one: run-time error 204 (EInvalidPointer). Returns 0.
function ErrorInvalidPointer: NativeUInt;

implementation

uses
  LaneMM.Types;

const
  OutOfMemory = 203;
  InvalidPointer = 204;

procedure HandleError(Code: LongInt); external name 'FPC_HANDLEERROR';

function ErrorOutOfMemory(Size: NativeUInt): Pointer;
begin
  Result := nil;
  if @Process.MemoryFailed <> nil then
    Process.MemoryFailed(Size);
  if not ReturnNilIfGrowHeapFails then
    HandleError(OutOfMemory);
end;

function ErrorInvalidPointer: NativeUInt;
begin
  Result := 0;
  HandleError(InvalidPointer);
end;

end.
