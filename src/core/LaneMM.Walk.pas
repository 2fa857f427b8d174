/// Visits all blocks in use, and finds the block that holds an address.
//
// Owns:       nothing.
// Invariants: takes no lock and allocates nothing; reads span records and the first word of blocks.
//             That word alone shows whether a block is free (see LaneMM.Span), so no list is
//             walked: a thread that allocates or frees blocks meanwhile changes the answer for
//             these blocks only. Exact while no other thread allocates or frees.
// Callers:    any thread.
unit LaneMM.Walk;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Hooks;

/// Calls Visitor for each block in use, by address.
procedure WalkBlocks(Visitor: TBlockVisitor; Context: Pointer);
/// Finds the block in use that holds P, any pointer; returns whether it exists. In a large block it
/// finds addresses in the first and the last slice only: the records between do not lead to it.
function WalkFind(P: Pointer; out Block: TBlockInfo): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Arena, LaneMM.Span;

type
  TWalk = record
    Visitor: TBlockVisitor;
    Context: Pointer;
  end;
  PWalk = ^TWalk;

procedure Describe(Span: PSpan; Address: PByte; Size: NativeUInt; out Block: TBlockInfo);
begin
  Block := Default(TBlockInfo);
  Block.Address := Address;
  Block.UsableSize := Size;
  Block.Kind := Span^.Kind;
end;

procedure VisitBlocks(Span: PSpan; Walk: PWalk);
var
  Block: TBlockInfo;
  Address, Limit: PByte;
  Size: NativeUInt;
begin
  // Read once: while other threads run, the record may become that of another span.
  Size := Span^.BlockSize;
  Address := Span^.Start;
  Limit := Address + Span^.CarvedBytes;
  if Size = 0 then
    Exit;
  while Address + Size <= Limit do
  begin
    if not BlockLooksFree(Span, PBlock(Address)) then
    begin
      Describe(Span, Address, Size, Block);
      Walk^.Visitor(Block, Walk^.Context);
    end;
    Inc(Address, Size);
  end;
end;

procedure VisitSpan(Span: PSpan; Context: Pointer);
var
  Walk: PWalk;
  Block: TBlockInfo;
begin
  Walk := Context;
  case Span^.Kind of
    skBlocks:
      VisitBlocks(Span, Walk);
    skLarge:
      begin
        Describe(Span, Span^.Start, Span^.BlockSize, Block);
        Walk^.Visitor(Block, Walk^.Context);
      end;
    skDebug:
      if @Hooks.DebugVisit <> nil then
        Hooks.DebugVisit(Span, Walk^.Visitor, Walk^.Context);
  end;
end;

procedure WalkBlocks(Visitor: TBlockVisitor; Context: Pointer);
var
  Walk: TWalk;
begin
  Walk.Visitor := Visitor;
  Walk.Context := Context;
  ArenaVisit(VisitSpan, @Walk);
end;

// Returns the first record of the span in use that holds P, or nil.
function FindSpan(P: Pointer): PSpan;
const
  Kinds = [skBlocks, skLarge, skDebug];
begin
  Result := ArenaSpan(P);
  if (Result <> nil) and not (Result^.Kind in Kinds) then
    Result := ArenaFirst(Result, Kinds);
end;

function WalkFind(P: Pointer; out Block: TBlockInfo): Boolean;
var
  Span: PSpan;
  Offset, Size: NativeUInt;
begin
  Block := Default(TBlockInfo);
  Result := False;
  Span := FindSpan(P);
  if Span = nil then
    Exit;
  if (Span^.Kind = skDebug) and (@Hooks.DebugFind <> nil) then
    Exit(Hooks.DebugFind(Span, P, Block));
  if not (Span^.Kind in [skBlocks, skLarge]) then
    Exit;
  Offset := NativeUInt(P) - NativeUInt(Span^.Start);
  Size := Span^.BlockSize;
  if Size = 0 then
    Exit;
  Describe(Span, Span^.Start + Offset - Offset mod Size, Size, Block);
  if Span^.Kind = skLarge then
    Result := Offset < Size
  else
    Result := (Offset < Span^.CarvedBytes)
      and not BlockLooksFree(Span, PBlock(Block.Address));
end;

end.
