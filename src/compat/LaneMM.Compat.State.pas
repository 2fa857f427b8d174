/// The state of the heap as FastMM gives it: by block size, as a map of the address space, and the
/// suppressions.
//
// Callers:    any thread; exact while no other thread allocates or frees.
unit LaneMM.Compat.State;

{$I ../LaneMM.inc}

interface

{$ifdef FPC}
type
  /// The blocks of one size, as in Delphi's unit System.
  TSmallBlockTypeState = packed record
    InternalBlockSize: Cardinal;      //< bytes of a block; LaneMM has no headers
    UseableBlockSize: Cardinal;       //< the same
    AllocatedBlockCount: NativeUInt;  //< blocks in use
    ReservedAddressSpace: NativeUInt; //< bytes of their spans
  end;

  /// What 64 KB of addresses are used for, as in Delphi's unit System.
  TChunkStatus = (
    csUnallocated,   //< nothing
    csAllocated,     //< spans and large blocks of LaneMM
    csReserved,      //< addresses that LaneMM reserved
    csSysAllocated,  //< memory of others: the program's code and data, stacks, libraries
    csSysReserved    //< addresses of others that cannot be read
  );
  /// The lower 4 GB of the address space.
  TMemoryMap = array[0..65535] of TChunkStatus;
{$endif}

type
  /// Number and bytes of blocks of one tier.
  TTierState = record
    Count: Cardinal;        //< blocks in use
    Bytes: NativeUInt;      //< their usable bytes
    Reserved: NativeUInt;   //< bytes of their spans
  end;

  /// A registered leak; of the first three fields one is set.
  TFastMM_RegisteredMemoryLeak = record
    LeakAddress: Pointer; //< the block
    LeakedClass: TClass;  //< class of the objects
    LeakSize: NativeInt;  //< size of the blocks
    LeakCount: Integer;   //< number of leaks
  end;
  TFastMM_RegisteredMemoryLeaks = array of TFastMM_RegisteredMemoryLeak;

const
  /// Most small block sizes that FastMM5's records have.
  MostSmallTypes = 64;
  /// The number of small block sizes.
  SmallTypes = 56;

/// Fills the states of the small block sizes; returns their number. Medium receives those of the
/// sizes above, Large the large blocks.
function ReadStates(out Small: array of TSmallBlockTypeState; out Medium, Large: TTierState):
  Cardinal;
/// Fills the map. On 64-bit systems LaneMM's own blocks usually lie above it.
procedure ReadMap(out Map: TMemoryMap);

/// Returns all suppressions.
function RegisteredLeaks: TFastMM_RegisteredMemoryLeaks;

implementation

uses
  LaneMM, LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.OsProcess, LaneMM.Arena;

type
  PMemoryMap = ^TMemoryMap;

{$if SmallTypes > MostSmallTypes}
  {$message fatal 'LaneMM has more small block sizes than the records of FastMM5'}
{$ifend}

procedure AddMedium(const Status: TLaneMM_ClassStatus; var Medium: TTierState);
begin
  Inc(Medium.Count, Status.BlockCount);
  Inc(Medium.Bytes, Status.BlockCount * Status.BlockSize);
  Inc(Medium.Reserved, Status.SpanBytes);
end;

procedure SetSmall(const Status: TLaneMM_ClassStatus; out Small: TSmallBlockTypeState);
begin
  Small.InternalBlockSize := Status.BlockSize;
  Small.UseableBlockSize := Status.BlockSize;
  Small.AllocatedBlockCount := Status.BlockCount;
  Small.ReservedAddressSpace := Status.SpanBytes;
end;

function ReadStates(out Small: array of TSmallBlockTypeState; out Medium, Large: TTierState):
  Cardinal;
var
  Classes: TLaneMM_ClassStatuses;
  Tier: TLaneMM_TierStatus;
  Index: Cardinal;
begin
  Medium := Default(TTierState);
  FillChar(Small, Length(Small) * SizeOf(Small[0]), 0);
  Result := 0;
  LaneMM_ReadClasses(Classes);
  for Index := 0 to High(Classes) do
    if (Classes[Index].BlockSize > MaxSmallSize) or (Result > High(Small)) then
      AddMedium(Classes[Index], Medium)
    else
    begin
      SetSmall(Classes[Index], Small[Result]);
      Inc(Result);
    end;
  Tier := LaneMM_HeapStatus.Large;
  Large.Count := Tier.BlockCount;
  Large.Bytes := Tier.UsedBytes;
  Large.Reserved := Tier.SpanBytes;
end;

// Marks the 64 KB that a range begins or lies in.
procedure Mark(Map: PMemoryMap; First, Size: NativeUInt; Status: TChunkStatus);
var
  Index, Last: NativeUInt;
begin
  if Size = 0 then
    Exit;
  Index := First shr SliceShift;
  Last := NativeUInt(First + Size - 1) shr SliceShift;
  while (Index <= Last) and (Index <= High(Map^)) do
  begin
    Map^[Index] := Status;
    Inc(Index);
  end;
end;

procedure SeeMapping(const Mapping: TOsMapping; Context: Pointer);
const
  Statuses: array[Boolean] of TChunkStatus = (csSysReserved, csSysAllocated);
begin
  Mark(Context, Mapping.First, Mapping.Limit - Mapping.First, Statuses[Mapping.IsReadable]);
end;

procedure SeeSpan(const Span: TLaneMM_SpanInfo; Context: Pointer);
begin
  Mark(Context, NativeUInt(Span.Address), Span.Bytes, csAllocated);
end;

procedure ReadMap(out Map: TMemoryMap);
var
  Index: NativeUInt;
  Arena: PArena;
begin
  FillChar(Map, SizeOf(Map), 0);
  OsVisitMappings(SeeMapping, @Map);
  Index := 0;
  Arena := FrontierArena(Index);
  while Arena <> nil do
  begin
    Mark(@Map, NativeUInt(Arena^.Base), LoadAcquire(Arena^.Reserved) * SliceSize, csReserved);
    Inc(Index);
    Arena := FrontierArena(Index);
  end;
  LaneMM_WalkSpans(SeeSpan, @Map);
end;

// ---------------------------------------------------------------------------- suppressions

type
  PRegisteredMemoryLeaks = ^TFastMM_RegisteredMemoryLeaks;

procedure AddLeak(const Suppression: TLaneMM_SuppressionInfo; Context: Pointer);
var
  Leaks: PRegisteredMemoryLeaks;
  Leak: TFastMM_RegisteredMemoryLeak;
begin
  Leaks := Context;
  Leak.LeakAddress := Suppression.Block;
  Leak.LeakedClass := Suppression.AnyClass;
  Leak.LeakSize := Suppression.Size;
  Leak.LeakCount := Suppression.Count;
  SetLength(Leaks^, Length(Leaks^) + 1);
  Leaks^[High(Leaks^)] := Leak;
end;

function RegisteredLeaks: TFastMM_RegisteredMemoryLeaks;
begin
  Result := nil;
  LaneMM_WalkSuppressions(AddLeak, @Result);
end;

end.
