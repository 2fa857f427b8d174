/// Debug blocks one at a time, whatever the mode: for the blocks of one part of a program.
//
// Owns:       nothing.
// Invariants: FreeMem and ReallocMem know a debug block in any mode; but outside of debug mode
//             ReallocMem may move it to a normal block, SingleRealloc does not.
// Callers:    any thread.
// Errors:     as GetMem and ReallocMem. Without memory for debug mode, normal blocks.
unit LaneMM.SingleBlocks;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

/// Allocates a debug block.
function SingleGet(Size: TSize): Pointer;
/// Allocates a debug block of zeros.
function SingleGetZero(Size: TSize): Pointer;
/// Moves the contents of P, a block of any kind or nil, to a new debug block of Size bytes; frees P
/// if Size is 0. The block always moves, so that uses of the old address are detected.
function SingleRealloc(var P: Pointer; Size: TSize): Pointer;
/// Moves the contents of P, a block of UsableSize bytes or nil, to Target, a block for Size bytes,
/// frees P and sets it to Target; without a target only frees it.
procedure SingleReplace(var P: Pointer; Target: Pointer; UsableSize, Size: NativeUInt);

implementation

uses
  LaneMM.Blocks, LaneMM.Erase, LaneMM.SeenCalls, LaneMM.Debug, LaneMM.Watch;

function SingleGet(Size: TSize): Pointer;
begin
  if not WatchDebugStart then
  begin
    GetMem(Result, Size);
    Exit;
  end;
  Result := DebugGet(Size);
  CallsSee(Result, Size, BlockAlignment);
end;

function SingleGetZero(Size: TSize): Pointer;
begin
  if not WatchDebugStart then
    Exit(AllocMem(Size));
  Result := DebugGetZero(Size);
  CallsSee(Result, Size, BlockAlignment);
end;

procedure SingleReplace(var P: Pointer; Target: Pointer; UsableSize, Size: NativeUInt);
begin
  if Target = nil then
  begin
    ReallocMem(P, 0);
    Exit;
  end;
  if UsableSize > Size then
    UsableSize := Size;
  if P <> nil then
    EraseCopy(P, Target, UsableSize);
  FreeMem(P);
  P := Target;
end;

function SingleRealloc(var P: Pointer; Size: TSize): Pointer;
var
  OldSize: NativeUInt;
begin
  if Size = 0 then
  begin
    FreeMem(P);
    P := nil;
    Exit(nil);
  end;
  OldSize := 0;
  if P <> nil then
    OldSize := BlockUsableSize(P);
  SingleReplace(P, SingleGet(Size), OldSize, Size);
  Result := P;
end;

end.
