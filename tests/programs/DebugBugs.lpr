/// Plants one bug that debug mode is to find, at known lines: run it with LANEMM=debug.
///   DebugBugs BUG SIZE [THREADS]
/// SIZE is that of the block in bytes. THREADS threads get and free blocks meanwhile.
program DebugBugs;

{$mode delphi}{$H+}{$pointermath on}

uses
  LaneMM, cthreads, SysUtils, Classes;

type
  TBug = procedure;

  TThing = class
  public
    Room: array[0..63] of Byte;
    procedure Act; virtual;
  end;

  IThing = interface
    procedure Act;
  end;
  TCountedThing = class(TInterfacedObject, IThing)
  public
    Room: array[0..63] of Byte;
    procedure Act;
  end;

  PTexts = ^TTexts;
  TTexts = record
    First, Second, Third, Fourth: string;
  end;

var
  Size: NativeInt;
  Block, Target: PByte;
  Ending: Boolean;
  OnStack: PByte;

procedure GetBlock;
begin
  GetMem(Block, Size); // planted: got
end;

procedure FreeBlock;
begin
  FreeMem(Block); // planted: freed
end;

procedure UseBlock;
begin
  FreeMem(Target); // planted: here
end;

procedure DoubleFree;
begin
  GetBlock;
  FreeBlock;
  Target := Block;
  UseBlock;
end;

procedure TwiceDoubleFree;
begin
  try
    DoubleFree;
  except
    UseBlock;
  end;
end;

procedure DoubleRealloc;
begin
  GetBlock;
  FreeBlock;
  ReallocMem(Block, Size + 1); // planted: realloc
end;

procedure WrongSize;
begin
  GetBlock;
  FreeMem(Block, Size + 3); // planted: size
end;

procedure InnerFree;
begin
  GetBlock;
  Target := Block + 5;
  UseBlock;
end;

procedure StackFree;
var
  Local: array[0..15] of Byte;
begin
  OnStack := @Local;
  Target := OnStack;
  UseBlock;
end;

procedure WildFree;
begin
  Target := Pointer(12345);
  UseBlock;
end;

procedure ModuleFree;
begin
  Target := @Size;
  UseBlock;
end;

function LibcMalloc(Bytes: NativeUInt): Pointer; cdecl; external 'c' name 'malloc';

procedure ForeignFree;
begin
  Target := LibcMalloc(Size);
  UseBlock;
end;

// A block of the time before debug mode.
procedure NormalDoubleFree;
begin
  LaneMM_Configure('debug=0');
  GetBlock;
  LaneMM_Configure('debug');
  FreeBlock;
  Target := Block;
  UseBlock;
end;

procedure WriteBefore;
begin
  GetBlock;
  Block[-3] := 65;
  FreeBlock;
end;

procedure WriteAfter;
begin
  GetBlock;
  Block[Size] := 66;
  Block[Size + 1] := 67;
  FreeBlock;
end;

procedure WriteBoth;
begin
  GetBlock;
  Block[-1] := 65;
  Block[Size + 2] := 66;
end;

procedure WriteAfterRealloc;
begin
  GetBlock;
  ReallocMem(Block, Size + 1);
  Block[Size + 1] := 66;
  FreeBlock;
end;

procedure WriteAfterFree;
begin
  GetBlock;
  FreeBlock;
  Block[Size - 1] := 1;
end;

// Found when the memory is used again.
procedure WriteBeforeReuse;
begin
  LaneMM_Configure('quarantine=0');
  GetBlock;
  FreeBlock;
  Block[0] := 1;
  GetMem(Block, Size);
end;

procedure WriteScattered;
begin
  GetBlock;
  FreeBlock;
  Block[1] := 1;
  Block[4] := 1;
  Block[5] := 1;
  Block[9] := 1;
end;

// Nobody frees it: only a check before the next operation can tell so early.
procedure WriteAfterEarly;
begin
  GetBlock;
  Block[Size] := 1;
  Target := AllocMem(Size); // planted: next
end;

procedure TThing.Act;
begin
  WriteLn('a thing acts');
end;

procedure TCountedThing.Act;
begin
  WriteLn('a counted thing acts');
end;

procedure FreedMethod;
var
  Thing: TThing;
begin
  Thing := TThing.Create; // planted: created
  Thing.Free; // planted: destroyed
  Thing.Act; // planted: method
end;

procedure FreedTwice;
var
  Thing: TThing;
begin
  Thing := TThing.Create;
  Thing.Free;
  Thing.Free; // planted: again
end;

procedure FreedInterface;
var
  Thing: IThing;
  Address: Pointer absolute Thing;
  Kept: Pointer;
begin
  Thing := TCountedThing.Create;
  Kept := Address;
  Thing := nil;
  Address := Kept;
  try
    Thing.Act; // planted: interface
  finally
    Address := nil;
  end;
end;

procedure Uninitialised;
var
  Texts: PTexts;
begin
  GetMem(Texts, SizeOf(TTexts)); // planted: texts
  Texts^.Third := ParamStr(1); // planted: uninitialised
  FreeMem(Texts);
end;

procedure FreedTexts;
var
  Texts: PTexts;
begin
  New(Texts);
  Dispose(Texts); // planted: disposed
  Texts^.Third := ParamStr(1);
end;

// Behind the alignment of the block.
procedure Overrun;
begin
  GetBlock;
  Block[(Size + 15) and not 15] := 1; // planted: overrun
end;

procedure ReadFreed;
begin
  GetBlock;
  FreeBlock;
  Target := PPointer(Block)^; // planted: read
end;

procedure Nothing;
begin
  GetBlock;
  FillChar(Block^, Size, 1);
  ReallocMem(Block, Size * 2);
  FillChar(Block^, Size * 2, 1);
  FreeBlock;
end;

function Churn(Seed: Pointer): PtrInt;
var
  Blocks: array[0..63] of PByte;
  Random: Cardinal;
  Index, Bytes: Integer;
begin
  FillChar(Blocks, SizeOf(Blocks), 0);
  Random := Cardinal(PtrUInt(Seed)) * 2654435761 + 1;
  repeat
    Random := Random * 1664525 + 1013904223;
    Index := Random shr 26;
    Bytes := Random shr 8 and 1023;
    if Random shr 18 and 15 = 0 then
      Bytes := Bytes * 100;
    if Random shr 22 and 3 = 0 then
      ReallocMem(Blocks[Index], Bytes)
    else
    begin
      FreeMem(Blocks[Index]);
      Blocks[Index] := AllocMem(Bytes);
    end;
    if Blocks[Index] <> nil then
      FillChar(Blocks[Index]^, Bytes, Index);
  until Ending;
  for Index := 0 to High(Blocks) do
    FreeMem(Blocks[Index]);
  Result := 0;
end;

procedure Run(Bug: TBug);
begin
  try
    Bug;
  except
    on E: Exception do
      WriteLn(E.ClassName);
  end;
end;

procedure Plant(const Bug: string);
const
  Names: array[0..25] of string = ('double-free', 'double-realloc', 'wrong-size', 'inner',
    'stack', 'wild', 'module', 'foreign', 'normal', 'before', 'after', 'both', 'realloc',
    'freed', 'reuse', 'scattered', 'none', 'twice', 'early', 'method', 'again', 'interface',
    'uninitialised', 'disposed', 'overrun', 'read');
  Bugs: array[0..25] of TBug = (DoubleFree, DoubleRealloc, WrongSize, InnerFree,
    StackFree, WildFree, ModuleFree, ForeignFree, NormalDoubleFree, WriteBefore, WriteAfter,
    WriteBoth, WriteAfterRealloc, WriteAfterFree, WriteBeforeReuse, WriteScattered, Nothing,
    TwiceDoubleFree, WriteAfterEarly, FreedMethod, FreedTwice, FreedInterface, Uninitialised,
    FreedTexts, Overrun, ReadFreed);
var
  Index: Integer;
begin
  for Index := 0 to High(Names) do
    if Names[Index] = Bug then
      Run(Bugs[Index]);
end;

var
  Threads: array of TThreadID;
  Index: Integer;
begin
  Size := StrToInt(ParamStr(2));
  SetLength(Threads, StrToIntDef(ParamStr(3), 0));
  for Index := 0 to High(Threads) do
    Threads[Index] := BeginThread(Churn, Pointer(PtrInt(Index)));
  Plant(ParamStr(1));
  for Index := 1 to 20 do
    if Length(Threads) > 0 then
    begin
      LaneMM_CheckHeap;
      Sleep(5);
    end;
  Ending := True;
  for Index := 0 to High(Threads) do
    WaitForThreadTerminate(Threads[Index], 0);
end.
