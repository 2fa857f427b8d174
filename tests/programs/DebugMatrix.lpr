/// Makes one memory error in blocks of all size tiers, at known lines; a test compares the reports
/// of debug mode with the errors.
///   DebugMatrix MISTAKE [THREADS]
/// THREADS threads churn meanwhile. Before each error a line describes the block:
///   planted: SIZE ADDRESS NUMBER THREAD FREEING-THREAD OFFSET CLASS
/// OFFSET is the place of the error, from the start of the block, or the wrong size. MISTAKE `none`
/// does the same work without the errors, and writes nothing.
program DebugMatrix;

{$mode delphi}{$H+}{$pointermath on}
{$unitpath ../../src/core} {$unitpath ../../src/debug} // behind the door

uses
  LaneMM, cthreads, SysUtils, Churning, LaneMM.Os, LaneMM.DebugSpans;

const
  // Bytes of a TThing and of a TActor; from Free Pascal 3.3 on an object has a monitor.
  MonitorSize = {$if FPC_FULLVERSION < 30300} 0 {$else} SizeOf(Pointer) {$endif};
  ThingSize = SizeOf(Pointer) + MonitorSize;
  // The class, two counts of references and destructions, two tables of methods.
  ActorSize = 3 * SizeOf(Pointer) + 2 * SizeOf(LongInt) + MonitorSize;
  OneSize = 100;

type
  TUse = procedure;
  TWay = procedure(Use: TUse);
  TMistake = record
    Name: string;
    Way: TWay; // what leads to Use, or nil
    Use: TUse;
    Least, Most: NativeInt; // sizes of blocks in bytes
  end;

  TThing = class
  public
    procedure Act; virtual;
  end;
  TThing24 = class(TThing) Room: array[1..24 - ThingSize] of Byte; end;
  TThing100 = class(TThing) Room: array[1..OneSize - ThingSize] of Byte; end;
  TThing1000 = class(TThing) Room: array[1..1000 - ThingSize] of Byte; end;
  TThing32736 = class(TThing) Room: array[1..32736 - ThingSize] of Byte; end;
  TThing100000 = class(TThing) Room: array[1..100000 - ThingSize] of Byte; end;
  TThing3000000 = class(TThing) Room: array[1..3000000 - ThingSize] of Byte; end;
  TThingClass = class of TThing;

  IActor = interface
    procedure Act;
  end;
  TActor = class(TInterfacedObject, IActor)
  public
    procedure Act;
  end;
  TActor1000 = class(TActor) Room: array[1..1000 - ActorSize] of Byte; end;
  TActor32736 = class(TActor) Room: array[1..32736 - ActorSize] of Byte; end;
  TActor3000000 = class(TActor) Room: array[1..3000000 - ActorSize] of Byte; end;
  TActorClass = class of TActor;

const
  Mark = $42;
  Largest = 20000000;
  // Blocks that are larger do not wait before they are used again.
  MostKept = 8000000;
  // Larger blocks have pages of their own, which are inaccessible while they are free.
  MostShared = 65000;
  // Operations of the threads during a mistake: far fewer bytes than the quarantine of the tests.
  MostChurn = 4000;
  // The same where each block has a guard page: with those of all sizes fewer than the 16,384 that a process
  // has, of which each freed block keeps one while it waits, where guards are mappings.
  MostGuardedChurn = 1000;
  Sizes: array[0..13] of NativeInt = (1, ThingSize, 16, 24, ActorSize, OneSize, 1000, 5000, 32736,
    32737, 100000, 1100000, 3000000, Largest);
  Things: array[0..6] of TThingClass = (TThing, TThing24, TThing100, TThing1000, TThing32736,
    TThing100000, TThing3000000);
  Actors: array[0..3] of TActorClass = (TActor, TActor1000, TActor32736, TActor3000000);

var
  IsWrong: Boolean;
  Size: NativeInt;
  Block, Target: PByte;
  FreeingThread: Cardinal;
  Info: TLaneMM_BlockInfo;

// ---------------------------------------------------------------------------- what is done right

procedure Note(P: PByte);
begin
  Block := P;
  FreeingThread := 0;
  if not LaneMM_BlockInfo(P, Info) then
    Halt(99);
end;

procedure GetBlock;
begin
  GetMem(Block, Size); // planted: got
  Note(Block);
end;

procedure FreeBlock;
begin
  FreeingThread := Info.Thread;
  FreeMem(Block); // planted: freed
end;

procedure Check;
begin
  LaneMM_CheckBlock(Block); // planted: check
end;

procedure CheckAll;
begin
  LaneMM_CheckHeap; // planted: check all
end;

// Prints the error that is about to be made; returns False where none is wanted.
function Wants(Offset: NativeInt; const ClassName: string = '-'): Boolean;
begin
  Result := IsWrong;
  if Result then
    WriteLn(StdErr, 'planted: ', Size, ' ', HexStr(Block), ' ', Info.Number, ' ', Info.Thread, ' ',
      FreeingThread, ' ', Offset, ' ', ClassName);
  Flush(StdErr);
  Target := Block + Offset;
end;

// ---------------------------------------------------------------------------- wrong pointers

procedure FreeTarget;
begin
  FreeMem(Target); // planted: free
end;

procedure ResizeTarget;
begin
  ReallocMem(Target, Size + 1); // planted: realloc
end;

procedure MeasureTarget;
begin
  MemSize(Target); // planted: size
end;

// A block that is free already.
procedure UseFree(Use: TUse);
begin
  GetBlock;
  FreeBlock;
  if Wants(0) then
    Use;
end;

function FreeAside(Unused: Pointer): PtrInt;
begin
  FreeMem(Block); // planted: freed aside
  FreeingThread := OsThreadId;
  Result := 0;
end;

procedure FreeTwiceFromThreads;
begin
  GetBlock;
  WaitForThreadTerminate(BeginThread(FreeAside), 0);
  if Wants(0) then
    FreeTarget;
end;

// An address inside a block.
procedure UseInner(Use: TUse);
begin
  GetBlock;
  try
    if Wants((Size + 1) div 2) then
      Use;
  finally
    FreeBlock;
  end;
end;

procedure FreeWithWrongSize;
var
  Given: NativeInt;
begin
  GetBlock;
  Given := Size;
  if Wants(Size + 3) then
    Given := Size + 3;
  FreeMem(Block, Given); // planted: given
end;

// ---------------------------------------------------------------------------- no blocks at all

function LibcMalloc(Bytes: NativeUInt): Pointer; cdecl;
  external {$ifdef MSWINDOWS} 'msvcrt' {$else} 'c' {$endif} name 'malloc';

procedure UseStray(Address: Pointer; Use: TUse);
begin
  GetBlock;
  FreeBlock;
  if not Wants(0) then
    Exit;
  Target := Address;
  Use;
end;

procedure UseWild(Use: TUse);
begin
  UseStray(Pointer(12345), Use);
end;

procedure UseStack(Use: TUse);
var
  Local: Int64;
begin
  UseStray(@Local, Use);
end;

procedure UseVariable(Use: TUse);
begin
  UseStray(@Size, Use);
end;

var
  Zeros: array[0..65535] of Int64; // pages that no file backs

procedure UseZeros(Use: TUse);
begin
  UseStray(@Zeros[High(Zeros) div 2], Use);
end;

// Large enough for a mapping of its own: not every emulator tells the C library's heap from the
// program's variables.
procedure FreeForeign;
begin
  UseStray(LibcMalloc(1 shl 20 + Size), FreeTarget);
end;

// ---------------------------------------------------------------------------- writes

// Writes one byte at the offset while the block is in use, and frees it.
procedure WriteOutside(Offset: NativeInt);
begin
  GetBlock;
  FillChar(Block^, Size, Mark);
  if Wants(Offset) then
    Target^ := Mark;
  FreeBlock;
end;

procedure WriteBefore;
begin
  WriteOutside(-1);
end;

procedure WriteFarBefore;
begin
  WriteOutside(-32);
end;

procedure WriteBehind;
begin
  WriteOutside(Size);
end;

procedure WriteFarBehind;
begin
  WriteOutside(Size + 15);
end;

procedure WriteBehindAndCheck;
begin
  GetBlock;
  if Wants(Size) then
    Target^ := Mark;
  CheckAll;
  FreeBlock;
end;

procedure WriteBehindShrunk;
var
  Full: NativeInt;
begin
  GetBlock;
  Full := Size;
  Size := Full - Full div 8;
  ReallocMem(Block, Size);
  if Wants(Size) then
    Target^ := Mark;
  FreeBlock;
  Size := Full;
end;

procedure WriteBehindGrown;
var
  Full: NativeInt;
begin
  GetBlock;
  Full := Size;
  Size := Full * 3 + 40;
  ReallocMem(Block, Size); // planted: grown
  Note(Block);
  if Wants(Size) then
    Target^ := Mark;
  FreeBlock;
  Size := Full;
end;

procedure WriteAfterFree(Offset: NativeInt);
begin
  GetBlock;
  FreeBlock;
  if Wants(Offset) then
    Target^ := Mark; // planted: written
  Check;
end;

procedure WriteFirstAfterFree;
begin
  WriteAfterFree(0);
end;

procedure WriteMiddleAfterFree;
begin
  WriteAfterFree(Size div 2);
end;

procedure WriteLastAfterFree;
begin
  WriteAfterFree(Size - 1);
end;

procedure WriteScatteredAfterFree;
begin
  GetBlock;
  FreeBlock;
  if Wants(Size div 2) then
  begin
    Block[1] := Mark;
    FillChar(Target^, 3, Mark);
    Block[Size - 1] := Mark;
  end;
  Check;
end;

// ---------------------------------------------------------------------------- objects

procedure TThing.Act;
begin
end;

procedure TActor.Act;
begin
end;

var
  Thing: TThing; // no register and no stack holds it during its use
  IsKind: Boolean;
  KindName: ShortString;

// Uses a freed object, at once: threads may push it out of the quarantine. A use that raises nothing
// is a line that no report has.
procedure UseFreedObject(Use: TUse);
var
  Kind: TThingClass;
  IsWanted: Boolean;
begin
  for Kind in Things do
    if Kind.InstanceSize = Size then
    begin
      Thing := Kind.Create; // planted: created
      Note(Pointer(Thing));
      Thing.Act;
      FreeingThread := Info.Thread;
      IsWanted := Wants(0, 'DebugMatrix.' + Kind.ClassName);
      Thing.Free; // planted: destroyed
      if IsWanted then
      begin
        Use;
        WriteLn(StdErr, 'nothing was raised');
      end;
    end;
end;

procedure CallMethod;
begin
  Thing.Act; // planted: method
end;

procedure TestClass;
begin
  IsKind := TObject(Thing) is TActor; // planted: is
end;

procedure ConvertClass;
begin
  IsKind := (TObject(Thing) as TActor) = nil; // planted: as
end;

procedure NameClass;
begin
  KindName := Thing.ClassName; // planted: name
end;

procedure AskAncestor;
begin
  IsKind := Thing.InheritsFrom(TActor); // planted: inherits
end;

procedure AskSize;
begin
  Size := Thing.InstanceSize; // planted: instance size
end;

procedure AskInterface;
begin
  IsKind := Supports(Thing, IUnknown); // planted: supports
end;

procedure CallInterfaceOfFreed;
var
  Kind: TActorClass;
  Actor: IActor;
  Address: Pointer absolute Actor;
  Kept: Pointer;
begin
  for Kind in Actors do
    if Kind.InstanceSize = Size then
    begin
      Actor := Kind.Create; // planted: actor
      Note(Pointer(Actor as TObject));
      Kept := Address;
      Actor.Act;
      FreeingThread := Info.Thread;
      Actor := nil; // planted: released
      if Wants(0, 'DebugMatrix.' + Kind.ClassName) then
        try
          Address := Kept;
          Actor.Act; // planted: interface
        finally
          Address := nil;
        end;
    end;
end;

// ---------------------------------------------------------------------------- contents

// Where the last pointer of the block lies.
function LastPointer: NativeInt;
begin
  Result := (Size and not (SizeOf(Pointer) - 1)) - SizeOf(Pointer);
end;

// A string at the end of the block.
procedure UseNew;
begin
  GetBlock;
  if not Wants(LastPointer) then
    Initialize(PString(Target)^);
  try
    PString(Target)^ := ParamStr(1); // planted: text
    Finalize(PString(Target)^);
  finally
    FreeBlock;
  end;
end;

procedure UseFreed;
begin
  GetBlock;
  FreeBlock;
  if Wants(LastPointer) then
    Target := PByte(PPointer(Target)^ + PNativeInt(PPointer(Target)^)^); // planted: followed
end;

procedure SpoilNotes;
begin
  GetBlock;
  if Wants(0) then
    DebugBlockOf(Block)^.Number := 0;
  Check;
  FreeBlock;
end;

// ---------------------------------------------------------------------------- guard pages

// Writes into the first inaccessible page.
procedure WriteIntoGuard;
begin
  GetBlock;
  try
    if Wants((Size + 15) and not 15) then
      Target^ := Mark; // planted: overrun
  finally
    FreeBlock;
  end;
end;

// A word whose first half lies before the guard page.
procedure WriteAcrossGuard;
begin
  GetBlock;
  try
    if Wants((Size + 15) and not 15 - SizeOf(Pointer) div 2) then
      PNativeInt(Target)^ := Mark; // planted: across
  finally
    FreeBlock;
  end;
end;

procedure ReadFreedGuarded;
begin
  GetBlock;
  FreeBlock;
  if Wants(Size - 1) then
    Target := PByte(PtrUInt(Target^)); // planted: read
end;

// ---------------------------------------------------------------------------- all

const
  Mistakes: array[0..40] of TMistake = (
    (Name: 'free-twice'; Way: UseFree; Use: FreeTarget; Least: 1; Most: MostKept),
    (Name: 'free-twice-threads'; Way: nil; Use: FreeTwiceFromThreads; Least: 1; Most: MostKept),
    (Name: 'realloc-freed'; Way: UseFree; Use: ResizeTarget; Least: 1; Most: MostKept),
    (Name: 'size-freed'; Way: UseFree; Use: MeasureTarget; Least: 1; Most: MostKept),
    (Name: 'free-inner'; Way: UseInner; Use: FreeTarget; Least: 1; Most: Largest),
    (Name: 'realloc-inner'; Way: UseInner; Use: ResizeTarget; Least: 1; Most: Largest),
    (Name: 'size-inner'; Way: UseInner; Use: MeasureTarget; Least: 1; Most: Largest),
    (Name: 'wrong-size'; Way: nil; Use: FreeWithWrongSize; Least: 1; Most: Largest),
    (Name: 'free-wild'; Way: UseWild; Use: FreeTarget; Least: OneSize; Most: OneSize),
    (Name: 'realloc-wild'; Way: UseWild; Use: ResizeTarget; Least: OneSize; Most: OneSize),
    (Name: 'size-wild'; Way: UseWild; Use: MeasureTarget; Least: OneSize; Most: OneSize),
    (Name: 'free-stack'; Way: UseStack; Use: FreeTarget; Least: OneSize; Most: OneSize),
    (Name: 'realloc-stack'; Way: UseStack; Use: ResizeTarget; Least: OneSize; Most: OneSize),
    (Name: 'free-variable'; Way: UseVariable; Use: FreeTarget; Least: OneSize; Most: OneSize),
    (Name: 'free-zero-variable'; Way: UseZeros; Use: FreeTarget; Least: OneSize; Most: OneSize),
    (Name: 'free-foreign'; Way: nil; Use: FreeForeign; Least: 1; Most: 100000),
    (Name: 'before'; Way: nil; Use: WriteBefore; Least: 1; Most: Largest),
    (Name: 'far-before'; Way: nil; Use: WriteFarBefore; Least: 1; Most: Largest),
    (Name: 'behind'; Way: nil; Use: WriteBehind; Least: 1; Most: Largest),
    (Name: 'far-behind'; Way: nil; Use: WriteFarBehind; Least: 1; Most: Largest),
    (Name: 'behind-check'; Way: nil; Use: WriteBehindAndCheck; Least: 1; Most: Largest),
    (Name: 'behind-shrunk'; Way: nil; Use: WriteBehindShrunk; Least: 8; Most: Largest),
    (Name: 'behind-grown'; Way: nil; Use: WriteBehindGrown; Least: 1; Most: Largest),
    (Name: 'freed-first'; Way: nil; Use: WriteFirstAfterFree; Least: 1; Most: MostKept),
    (Name: 'freed-middle'; Way: nil; Use: WriteMiddleAfterFree; Least: 1; Most: MostKept),
    (Name: 'freed-last'; Way: nil; Use: WriteLastAfterFree; Least: 1; Most: MostKept),
    (Name: 'freed-scattered'; Way: nil; Use: WriteScatteredAfterFree; Least: 16; Most: MostShared),
    (Name: 'method'; Way: UseFreedObject; Use: CallMethod; Least: ThingSize; Most: MostKept),
    (Name: 'is'; Way: UseFreedObject; Use: TestClass; Least: ThingSize; Most: MostKept),
    (Name: 'as'; Way: UseFreedObject; Use: ConvertClass; Least: ThingSize; Most: MostKept),
    (Name: 'name'; Way: UseFreedObject; Use: NameClass; Least: ThingSize; Most: MostKept),
    (Name: 'inherits'; Way: UseFreedObject; Use: AskAncestor; Least: ThingSize; Most: MostKept),
    (Name: 'instance-size'; Way: UseFreedObject; Use: AskSize; Least: ThingSize; Most: MostKept),
    (Name: 'supports'; Way: UseFreedObject; Use: AskInterface; Least: ThingSize; Most: MostKept),
    (Name: 'interface'; Way: nil; Use: CallInterfaceOfFreed; Least: ActorSize; Most: MostKept),
    (Name: 'use-new'; Way: nil; Use: UseNew; Least: SizeOf(Pointer); Most: Largest),
    (Name: 'use-freed'; Way: nil; Use: UseFreed; Least: SizeOf(Pointer); Most: MostKept),
    (Name: 'notes'; Way: nil; Use: SpoilNotes; Least: 1; Most: Largest),
    (Name: 'guard-write'; Way: nil; Use: WriteIntoGuard; Least: 1; Most: Largest),
    (Name: 'guard-freed'; Way: nil; Use: ReadFreedGuarded; Least: 1; Most: Largest),
    (Name: 'guard-across'; Way: nil; Use: WriteAcrossGuard; Least: 1; Most: Largest));

procedure Limit;
begin
  if Copy(ParamStr(1), 1, 6) = 'guard-' then
    ChurnLimit(MostGuardedChurn)
  else
    ChurnLimit(MostChurn);
end;

procedure Make(const Mistake: TMistake);
begin
  for Size in Sizes do
    if (Size >= Mistake.Least) and (Size <= Mistake.Most) then
      try
        Limit;
        if Assigned(Mistake.Way) then
          Mistake.Way(Mistake.Use)
        else
          Mistake.Use;
      except
        on E: EInvalidPointer do ;
        on E: EAccessViolation do ;
      end;
end;

var
  Mistake: TMistake;
begin
  Limit; // from the start on: the threads may run long before the first mistake
  ChurnStart(StrToIntDef(ParamStr(2), 0));
  IsWrong := ParamStr(1) <> 'none';
  for Mistake in Mistakes do
    if not IsWrong or (Mistake.Name = ParamStr(1)) then
      Make(Mistake);
  CheckAll;
  ChurnEnd;
end.
