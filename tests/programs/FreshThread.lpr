/// Threads without a heap, whose first call of the memory manager is an unusual one.
program FreshThread;

{$mode delphi}{$pointermath on}

uses
  LaneMM, cthreads, SysUtils, Promises, UsedBytes, BareThreads;

const
  AddressBits = SizeOf(Pointer) * 8;

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

procedure FreeWild(Argument: Pointer);
begin
  Refused(Argument, 'a wild pointer is refused');
end;

procedure FreeNil(Argument: Pointer);
begin
  FreeMem(nil);
end;

procedure FreeBlock(Argument: Pointer);
begin
  FreeMem(Block);
end;

procedure ResizeBlock(Argument: Pointer);
begin
  ReallocMem(Block, PtrUInt(Argument));
end;

procedure MeasureBlock(Argument: Pointer);
begin
  Expect(MemSize(Block) >= PtrUInt(Argument), 'a block knows its size');
end;

procedure GetTooMuch(Argument: Pointer);
var
  P: Pointer;
begin
  try
    GetMem(P, PtrUInt(Argument));
    Expect(False, 'too much is refused');
  except
    on EOutOfMemory do;
  end;
end;

procedure GetZeros(Argument: Pointer);
begin
  Block := AllocMem(PtrUInt(Argument));
end;

procedure InThread(Routine: TBareRoutine; Argument: NativeUInt);
var
  Thread: TBareThread;
begin
  Expect(BareStart(Thread, Routine, Pointer(Argument)), 'a thread starts');
  BareJoin(Thread);
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
  ExpectUsed(Before);
  Finish;
end.
