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
  TMistake = record
    Name: string;
    Run: TUse;
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

procedure FreeTwice;
begin
  UseFree(FreeTarget);
end;

procedure ResizeFreed;
begin
  UseFree(ResizeTarget);
end;

procedure MeasureFreed;
begin
  UseFree(MeasureTarget);
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

procedure FreeInner;
begin
  UseInner(FreeTarget);
end;

procedure ResizeInner;
begin
  UseInner(ResizeTarget);
end;

procedure MeasureInner;
begin
  UseInner(MeasureTarget);
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

procedure FreeWild;
begin
  UseStray(Pointer(12345), FreeTarget);
end;

procedure ResizeWild;
begin
  UseStray(Pointer(12345), ResizeTarget);
end;

procedure MeasureWild;
begin
  UseStray(Pointer(12345), MeasureTarget);
end;

procedure FreeStack;
var
  Local: Int64;
begin
  UseStray(@Local, FreeTarget);
end;

procedure ResizeStack;
var
  Local: Int64;
begin
  UseStray(@Local, ResizeTarget);
end;

procedure FreeVariable;
begin
  UseStray(@Size, FreeTarget);
end;

var
  Zeros: array[0..65535] of Int64; // pages that no file backs

procedure FreeZeroVariable;
begin
  UseStray(@Zeros[High(Zeros) div 2], FreeTarget);
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

procedure CallMethodOfFreed;
begin
  UseFreedObject(CallMethod);
end;

procedure TestClassOfFreed;
begin
  UseFreedObject(TestClass);
end;

procedure ConvertClassOfFreed;
begin
  UseFreedObject(ConvertClass);
end;

procedure NameClassOfFreed;
begin
  UseFreedObject(NameClass);
end;

procedure AskAncestorOfFreed;
begin
  UseFreedObject(AskAncestor);
end;

procedure AskSizeOfFreed;
begin
  UseFreedObject(AskSize);
end;

procedure AskInterfaceOfFreed;
begin
  UseFreedObject(AskInterface);
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
    (Name: 'free-twice'; Run: FreeTwice; Least: 1; Most: MostKept),
    (Name: 'free-twice-threads'; Run: FreeTwiceFromThreads; Least: 1; Most: MostKept),
    (Name: 'realloc-freed'; Run: ResizeFreed; Least: 1; Most: MostKept),
    (Name: 'size-freed'; Run: MeasureFreed; Least: 1; Most: MostKept),
    (Name: 'free-inner'; Run: FreeInner; Least: 1; Most: Largest),
    (Name: 'realloc-inner'; Run: ResizeInner; Least: 1; Most: Largest),
    (Name: 'size-inner'; Run: MeasureInner; Least: 1; Most: Largest),
    (Name: 'wrong-size'; Run: FreeWithWrongSize; Least: 1; Most: Largest),
    (Name: 'free-wild'; Run: FreeWild; Least: OneSize; Most: OneSize),
    (Name: 'realloc-wild'; Run: ResizeWild; Least: OneSize; Most: OneSize),
    (Name: 'size-wild'; Run: MeasureWild; Least: OneSize; Most: OneSize),
    (Name: 'free-stack'; Run: FreeStack; Least: OneSize; Most: OneSize),
    (Name: 'realloc-stack'; Run: ResizeStack; Least: OneSize; Most: OneSize),
    (Name: 'free-variable'; Run: FreeVariable; Least: OneSize; Most: OneSize),
    (Name: 'free-zero-variable'; Run: FreeZeroVariable; Least: OneSize; Most: OneSize),
    (Name: 'free-foreign'; Run: FreeForeign; Least: 1; Most: 100000),
    (Name: 'before'; Run: WriteBefore; Least: 1; Most: Largest),
    (Name: 'far-before'; Run: WriteFarBefore; Least: 1; Most: Largest),
    (Name: 'behind'; Run: WriteBehind; Least: 1; Most: Largest),
    (Name: 'far-behind'; Run: WriteFarBehind; Least: 1; Most: Largest),
    (Name: 'behind-check'; Run: WriteBehindAndCheck; Least: 1; Most: Largest),
    (Name: 'behind-shrunk'; Run: WriteBehindShrunk; Least: 8; Most: Largest),
    (Name: 'behind-grown'; Run: WriteBehindGrown; Least: 1; Most: Largest),
    (Name: 'freed-first'; Run: WriteFirstAfterFree; Least: 1; Most: MostKept),
    (Name: 'freed-middle'; Run: WriteMiddleAfterFree; Least: 1; Most: MostKept),
    (Name: 'freed-last'; Run: WriteLastAfterFree; Least: 1; Most: MostKept),
    (Name: 'freed-scattered'; Run: WriteScatteredAfterFree; Least: 16; Most: MostShared),
    (Name: 'method'; Run: CallMethodOfFreed; Least: ThingSize; Most: MostKept),
    (Name: 'is'; Run: TestClassOfFreed; Least: ThingSize; Most: MostKept),
    (Name: 'as'; Run: ConvertClassOfFreed; Least: ThingSize; Most: MostKept),
    (Name: 'name'; Run: NameClassOfFreed; Least: ThingSize; Most: MostKept),
    (Name: 'inherits'; Run: AskAncestorOfFreed; Least: ThingSize; Most: MostKept),
    (Name: 'instance-size'; Run: AskSizeOfFreed; Least: ThingSize; Most: MostKept),
    (Name: 'supports'; Run: AskInterfaceOfFreed; Least: ThingSize; Most: MostKept),
    (Name: 'interface'; Run: CallInterfaceOfFreed; Least: ActorSize; Most: MostKept),
    (Name: 'use-new'; Run: UseNew; Least: SizeOf(Pointer); Most: Largest),
    (Name: 'use-freed'; Run: UseFreed; Least: SizeOf(Pointer); Most: MostKept),
    (Name: 'notes'; Run: SpoilNotes; Least: 1; Most: Largest),
    (Name: 'guard-write'; Run: WriteIntoGuard; Least: 1; Most: Largest),
    (Name: 'guard-freed'; Run: ReadFreedGuarded; Least: 1; Most: Largest),
    (Name: 'guard-across'; Run: WriteAcrossGuard; Least: 1; Most: Largest));

procedure Make(const Mistake: TMistake);
begin
  for Size in Sizes do
    if (Size >= Mistake.Least) and (Size <= Mistake.Most) then
      try
        ChurnLimit(MostChurn);
        Mistake.Run;
      except
        on E: EInvalidPointer do ;
        on E: EAccessViolation do ;
      end;
end;

var
  Mistake: TMistake;
begin
  ChurnStart(StrToIntDef(ParamStr(2), 0));
  IsWrong := ParamStr(1) <> 'none';
  for Mistake in Mistakes do
    if not IsWrong or (Mistake.Name = ParamStr(1)) then
      Make(Mistake);
  CheckAll;
  ChurnEnd;
end.
