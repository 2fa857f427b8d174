/// Threads without a heap, whose first call of the memory manager is an unusual one.
program FreshThread;

{$mode delphi}{$pointermath on}

uses
  LaneMM, cthreads, SysUtils, Promises;

const
  AddressBits = SizeOf(Pointer) * 8;

type
  TRoutine = function(Argument: Pointer): Pointer; cdecl;

function pthread_create(out Thread: NativeUInt; Attributes: Pointer; Routine: TRoutine;
  Argument: Pointer): LongInt; cdecl; external 'c';
function pthread_join(Thread: NativeUInt; Answer: Pointer): LongInt; cdecl; external 'c';

var
  Block: PByte;
  Global: NativeUInt;

procedure Refused(P: Pointer; const What: ShortString);
begin
  try
    FreeMem(P);
    Expect(False, What);
  except
    on EInvalidPointer do;
  end;
end;

function FreeWild(Argument: Pointer): Pointer; cdecl;
begin
  Refused(Argument, 'a wild pointer is refused');
  Result := nil;
end;

function FreeNil(Argument: Pointer): Pointer; cdecl;
begin
  FreeMem(nil);
  Result := nil;
end;

function FreeBlock(Argument: Pointer): Pointer; cdecl;
begin
  FreeMem(Block);
  Result := nil;
end;

function ResizeBlock(Argument: Pointer): Pointer; cdecl;
begin
  ReallocMem(Block, PtrUInt(Argument));
  Result := nil;
end;

function MeasureBlock(Argument: Pointer): Pointer; cdecl;
begin
  Expect(MemSize(Block) >= PtrUInt(Argument), 'a block knows its size');
  Result := nil;
end;

function GetTooMuch(Argument: Pointer): Pointer; cdecl;
begin
  Result := nil;
  try
    GetMem(Result, PtrUInt(Argument));
    Expect(False, 'too much is refused');
  except
    on EOutOfMemory do;
  end;
end;

function GetZeros(Argument: Pointer): Pointer; cdecl;
begin
  Block := AllocMem(PtrUInt(Argument));
  Result := nil;
end;

procedure InThread(Routine: TRoutine; Argument: NativeUInt);
var
  Thread: NativeUInt;
begin
  Expect(pthread_create(Thread, nil, Routine, Pointer(Argument)) = 0, 'a thread starts');
  pthread_join(Thread, nil);
end;

procedure UseBlock(Size: NativeUInt);
begin
  Block := FilledBlock(Size, 1);
  InThread(FreeWild, NativeUInt(Block) + 1);
  InThread(MeasureBlock, Size);
  InThread(ResizeBlock, Size);
  Expect(IsFilled(Block, Size, 1), 'the block is what it was');
  InThread(ResizeBlock, 2 * Size + 100);
  Expect(IsFilled(Block, Size, 1), 'the contents moved along');
  InThread(FreeBlock, 0);
  InThread(FreeWild, NativeUInt(Block));
  InThread(GetZeros, Size);
  Expect(Block <> nil, 'there is a block');
  InThread(ResizeBlock, 0);
  Expect(Block = nil, 'a block of no size is none');
end;

var
  Index: Integer;
  Before: NativeUInt;
begin
  UseBlock(100);
  Before := LaneMM_HeapStatus.UsedBytes;
  for Index := 0 to High(SampleSizes) do
    UseBlock(SampleSizes[Index]);
  InThread(FreeWild, 1);
  InThread(FreeWild, NativeUInt(@Global));
  InThread(FreeWild, NativeUInt(@FreeWild));
  InThread(FreeWild, High(NativeUInt));
  InThread(FreeWild, NativeUInt(1) shl (AddressBits - 18));
  InThread(FreeNil, 0);
  InThread(GetTooMuch, High(NativeUInt));
  InThread(GetTooMuch, High(NativeUInt) - High(NativeUInt) shr 4);
  Expect(LaneMM_HeapStatus.UsedBytes = Before, 'all blocks are back');
  Finish;
end.
