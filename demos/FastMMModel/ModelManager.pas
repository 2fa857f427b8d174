/// A model of FastMM's small blocks: one lock for each size class, and a policy for threads that
/// find it taken. Larger blocks, and all blocks while no policy is chosen, go to the manager in
/// use.
unit ModelManager;

{$mode delphi}{$H+}{$pointermath on}

interface

type
  /// The policy of a thread that finds a lock taken. All try the next two sizes first in GetMem.
  TPolicy = (
    poNone,          //< the memory manager that this program was built with
    poSleep,         //< yields the CPU, then sleeps a millisecond: the default
    poNeverSleep,    //< spins until the lock is free: NeverSleepOnThreadContention
    poReleaseStack); //< FreeMem leaves the block on a stack for the next holder of the lock

const
  PolicyNames: array[TPolicy] of string = ('the manager of this build', 'lock per class, sleep',
    'lock per class, never sleep', 'lock per class, release stack');

var
  /// Failed first tries of GetMem and of FreeMem, and blocks left on release stacks.
  GetWaits, FreeWaits, LeftBlocks: PtrInt;

/// Puts the model in front of the memory manager.
procedure ModelInstall;
/// Chooses the policy; no block of the last one may be in use.
procedure ModelUse(Policy: TPolicy);

implementation

uses
  {$ifdef unix} BaseUnix, {$endif} SysUtils;

const
  Step = 16;
  ClassCount = 164;          // up to 2,608 bytes, plus the header
  HeaderSize = 16;           // keeps the class, and the alignment
  PoolSize = PtrUInt(1) shl {$ifdef CPU64} 30 {$else} 28 {$endif};
  PortionSize = 65536;
  StackSize = 16;

type
  PBlock = ^TBlock;
  TBlock = record
    Next: PBlock;
  end;
  TClass = record
    Lock: LongInt;
    Free: PBlock;
    Room, RoomEnd: PByte;
    Left: array[0..StackSize - 1] of Pointer;
    Padding: array[1..64] of Byte;
  end;

var
  Old: TMemoryManager;
  Policy: TPolicy;
  Classes: array[0..ClassCount + 2] of TClass;
  Pool: PByte;
  PoolUsed: PtrInt;

// Adds to a count, and returns what it was.
function CountUp(var Count: PtrInt; Step: PtrInt = 1): PtrInt;
begin
  {$ifdef CPU64}
  Result := InterlockedExchangeAdd64(Count, Step);
  {$else}
  Result := InterlockedExchangeAdd(Count, Step);
  {$endif}
end;

function TryLock(var Which: TClass): Boolean;
begin
  Result := InterlockedCompareExchange(Which.Lock, 1, 0) = 0;
end;

procedure Unlock(var Which: TClass);
begin
  InterlockedExchange(Which.Lock, 0);
end;

procedure Pause(var Turn: Integer);
begin
  if Policy = poNeverSleep then
    Exit;
  Inc(Turn);
  if Turn = 1 then
    ThreadSwitch
  else
    Sleep(1);
end;

procedure NewRoom(var Which: TClass);
begin
  Which.Room := Pool + CountUp(PoolUsed, PortionSize);
  Which.RoomEnd := Which.Room + PortionSize;
end;

// A block of the class, whose lock this thread has.
function Take(Index: Integer): Pointer;
var
  BlockSize: PtrUInt;
begin
  BlockSize := (Index + 1) * Step + HeaderSize;
  Result := Classes[Index].Free;
  if Result <> nil then
    Classes[Index].Free := PBlock(Result)^.Next
  else
  begin
    if Classes[Index].Room + BlockSize > Classes[Index].RoomEnd then
      NewRoom(Classes[Index]);
    Result := Classes[Index].Room + HeaderSize;
    Inc(Classes[Index].Room, BlockSize);
    PPtrInt(Result)[-1] := Index;
  end;
end;

procedure Put(P: Pointer);
var
  Index: Integer;
begin
  Index := PPtrInt(P)[-1];
  PBlock(P)^.Next := Classes[Index].Free;
  Classes[Index].Free := P;
end;

// The class, the next two, and again: the loop of FastMM's GetMem.
function ModelGet(Size: PtrUInt): Pointer;
var
  Index, Turn, Larger: Integer;
begin
  if (Policy = poNone) or (Size > (ClassCount - 1) * Step) then
    Exit(Old.GetMem(Size));
  Index := (Size + Step - 1) div Step;
  if Index > 0 then
    Dec(Index);
  Turn := 0;
  repeat
    for Larger := 0 to 2 do
      if TryLock(Classes[Index + Larger]) then
      begin
        Result := Take(Index + Larger);
        Unlock(Classes[Index + Larger]);
        Exit;
      end;
    CountUp(GetWaits);
    Pause(Turn);
  until False;
end;

function LeaveOnStack(var Which: TClass; P: Pointer): Boolean;
var
  Index: Integer;
begin
  for Index := 0 to StackSize - 1 do
    if (Which.Left[Index] = nil)
      and (InterlockedCompareExchange(Which.Left[Index], P, nil) = nil) then
    begin
      CountUp(LeftBlocks);
      Exit(True);
    end;
  Result := False;
end;

procedure Drain(var Which: TClass);
var
  Index: Integer;
begin
  for Index := 0 to StackSize - 1 do
    if Which.Left[Index] <> nil then
      Put(InterlockedExchange(Which.Left[Index], nil));
end;

function IsModels(P: Pointer): Boolean; inline;
begin
  Result := PtrUInt(PtrUInt(P) - PtrUInt(Pool)) < PoolSize;
end;

function ModelFree(P: Pointer): PtrUInt;
var
  Index, Turn: Integer;
begin
  if not IsModels(P) then
    Exit(Old.FreeMem(P));
  Index := PPtrInt(P)[-1];
  Result := (Index + 1) * Step;
  Turn := 0;
  while not TryLock(Classes[Index]) do
  begin
    CountUp(FreeWaits);
    if (Policy = poReleaseStack) and LeaveOnStack(Classes[Index], P) then
      Exit;
    Pause(Turn);
  end;
  Put(P);
  if Policy = poReleaseStack then
    Drain(Classes[Index]);
  Unlock(Classes[Index]);
end;

function ModelFreeSize(P: Pointer; Size: PtrUInt): PtrUInt;
begin
  Result := ModelFree(P);
end;

function ModelSize(P: Pointer): PtrUInt;
begin
  if IsModels(P) then
    Result := (PPtrInt(P)[-1] + 1) * Step
  else
    Result := Old.MemSize(P);
end;

function ModelGetZero(Size: PtrUInt): Pointer;
begin
  Result := ModelGet(Size);
  FillChar(Result^, ModelSize(Result), 0);
end;

function ModelRealloc(var P: Pointer; Size: PtrUInt): Pointer;
var
  Kept: PtrUInt;
begin
  if not IsModels(P) and ((P <> nil) or (Policy = poNone)) then
    Exit(Old.ReallocMem(P, Size));
  Result := nil;
  if Size > 0 then
    Result := ModelGet(Size);
  if P <> nil then
  begin
    Kept := ModelSize(P);
    if Size < Kept then
      Kept := Size;
    Move(P^, Result^, Kept);
    ModelFree(P);
  end;
  P := Result;
end;

{$ifdef windows}
// The unit Windows has another InterlockedExchange.
function VirtualAlloc(Address: Pointer; Size: PtrUInt; Kind, Protection: Cardinal): Pointer;
  stdcall; external 'kernel32.dll';
{$endif}

function NewPool: Pointer;
{$ifdef windows}
const
  ReserveAndCommit = $3000;
  ReadWrite = 4;
{$endif}
begin
  {$ifdef unix}
  Result := FpMmap(nil, PoolSize, PROT_READ or PROT_WRITE, MAP_PRIVATE or MAP_ANONYMOUS
    or $4000 {no reserve}, -1, 0);
  {$else}
  Result := VirtualAlloc(nil, PoolSize, ReserveAndCommit, ReadWrite);
  {$endif}
end;

procedure ModelInstall;
var
  Manager: TMemoryManager;
begin
  Pool := NewPool;
  GetMemoryManager(Old);
  Manager := Old;
  Manager.GetMem := ModelGet;
  Manager.FreeMem := ModelFree;
  Manager.FreeMemSize := ModelFreeSize;
  Manager.AllocMem := ModelGetZero;
  Manager.ReallocMem := ModelRealloc;
  Manager.MemSize := ModelSize;
  SetMemoryManager(Manager);
end;

procedure ModelUse(Policy: TPolicy);
begin
  ModelManager.Policy := Policy;
  GetWaits := 0;
  FreeWaits := 0;
  LeftBlocks := 0;
end;

end.
