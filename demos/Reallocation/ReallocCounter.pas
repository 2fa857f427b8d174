/// Counts what ReallocMem does, whatever memory manager is installed.
//
// Puts itself in front of the installed manager; the blocks stay that manager's own. One
// count at a time, and no other thread may allocate meanwhile.
unit ReallocCounter;

{$mode delphi}{$H+}

interface

type
  /// What the calls of ReallocMem did from the start of a count to its end.
  TReallocCounts = record
    Calls: Int64;        //< calls of ReallocMem
    Moves: Int64;        //< calls after which the block was elsewhere
    BytesCopied: Int64;  //< for every move the old usable size or the new size, the smaller
  end;

/// Starts to count.
procedure CountStart;

/// Starts to count and takes the growth away: every ReallocMem moves its block to a new one
/// of exactly the size asked for.
procedure CountStartWithoutGrowth;

/// Ends the count and puts the memory manager back.
function CountStop: TReallocCounts;

implementation

uses
  Math;

type
  TReallocMem = function(var Block: Pointer; Size: PtrUInt): Pointer;

var
  Inner: TMemoryManager;  // the manager that does the work
  Resize: TReallocMem;    // Inner's own ReallocMem, or MovingReallocMem
  Counts: TReallocCounts;

function MovingReallocMem(var Block: Pointer; Size: PtrUInt): Pointer;
begin
  if (Block = nil) or (Size = 0) then
    Exit(Inner.ReallocMem(Block, Size));
  Result := Inner.GetMem(Size);
  Move(Block^, Result^, Min(Inner.MemSize(Block), Size));
  Inner.FreeMem(Block);
  Block := Result;
end;

function CountedReallocMem(var Block: Pointer; Size: PtrUInt): Pointer;
var
  Old: Pointer;
  OldSize: NativeUInt;
begin
  Inc(Counts.Calls);
  Old := Block;
  if (Old = nil) or (Size = 0) then
    Exit(Resize(Block, Size));
  OldSize := Inner.MemSize(Old);
  Result := Resize(Block, Size);
  if Block <> Old then
  begin
    Inc(Counts.Moves);
    Inc(Counts.BytesCopied, Min(OldSize, Size));
  end;
end;

procedure CounterInstall;
var
  Counter: TMemoryManager;
begin
  Counts := Default(TReallocCounts);
  Counter := Inner;
  Counter.ReallocMem := CountedReallocMem;
  SetMemoryManager(Counter);
end;

procedure CountStart;
begin
  GetMemoryManager(Inner);
  Resize := Inner.ReallocMem;
  CounterInstall;
end;

procedure CountStartWithoutGrowth;
begin
  GetMemoryManager(Inner);
  Resize := MovingReallocMem;
  CounterInstall;
end;

function CountStop: TReallocCounts;
begin
  SetMemoryManager(Inner);
  Result := Counts;
end;

end.
