/// Classifies pointers: a block of this copy of LaneMM or not, its span, free or in use.
//
// Owns:       nothing.
// Invariants: any pointer is compared with address ranges before it is dereferenced. The check for
//             a free block reads the block's first word and, if it is that of a free block, the
//             lists: what a program left in a block in use never makes it free (see LaneMM.Span).
// Callers:    any thread.
unit LaneMM.Blocks;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Arena, LaneMM.Span;

/// Returns the first record of the span of blocks or large block that holds P, or nil. Any pointer;
/// of a large block it finds the first slice only, whose record alone is written.
function BlockSpan(P: Pointer): PSpan; inline;
/// Returns the first record of the span that has Slice as a later record, or nil.
function BlockSpanOfSlice(Slice: PSpan): PSpan;
/// Returns the span of the block P; nil when no block begins at P. Any pointer.
function BlockSpanExact(P: Pointer): PSpan;
/// Returns true if the first word looks like that of a free block; rarely true for a block in use.
function BlockMayBeFree(Span: PSpan; P: PBlock): Boolean; inline;
/// Returns true if the block is free: its first word is that of a free block, and it is on one of
/// the span's lists or shelved. Never true for a block that stays in use meanwhile.
function BlockIsFree(Span: PSpan; P: Pointer): Boolean;
/// Returns true if P, in no span of blocks, lies where debug blocks may be.
function BlockMayBeDebug(P: Pointer): Boolean;
/// Returns true if P is a block in use of this copy of LaneMM.
function BlockIsOurs(P: Pointer): Boolean;
/// Returns the usable size of P; 0 for nil. Run-time error 204 when P lies in no span; does not
/// check that a block in use begins at P.
function BlockUsableSize(P: Pointer): TSize;
/// BlockUsableSize without its fast path.
function AnyUsableSize(P: Pointer): NativeUInt;
/// Reports P, which is no block in use.
procedure BlockReportInvalid(P: Pointer; Call: TInvalidCall);
/// Reports P, which is no block in use, by the copy of LaneMM whose arena holds it, and raises
/// run-time error 204. Returns 0.
function BlockInvalid(P: Pointer; Call: TInvalidCall): NativeUInt;

implementation

uses
  LaneMM.Atomic, LaneMM.Errors, LaneMM.Foreign;

function BlockSpanOfSlice(Slice: PSpan): PSpan;
begin
  Result := ArenaFirst(Slice, [skBlocks, skLarge]);
end;

function BlockSpan(P: Pointer): PSpan;
begin
  Result := ArenaSpan(P);
  if (Result <> nil) and not (Result^.Kind in [skBlocks, skLarge]) then
    Result := BlockSpanOfSlice(Result);
end;

function BlockSpanExact(P: Pointer): PSpan;
begin
  Result := BlockSpan(P);
  if (Result <> nil) and not SpanBlockIsValid(Result, P) then
    Result := nil;
end;

function BlockMayBeFree(Span: PSpan; P: PBlock): Boolean;
begin
  Result := WordMayBeLink(Span, P^.Link);
end;

function BlockIsFree(Span: PSpan; P: Pointer): Boolean;
begin
  Result := BlockLooksFree(Span, P) and SpanHasFreeBlock(Span, P);
end;

function BlockMayBeDebug(P: Pointer): Boolean;
begin
  Result := (@Hooks.DebugFree <> nil) and (ArenaSpan(P) <> nil);
  // Acquire: the other hooks of debug mode after this one. Pairs with DebugStart.
  AcquireFence;
end;

function BlockIsOurs(P: Pointer): Boolean;
var
  Span: PSpan;
begin
  Span := BlockSpanExact(P);
  if (Span = nil) and BlockMayBeDebug(P) then
    Exit(Hooks.DebugOwns(P));
  Result := (Span <> nil) and ((Span^.Kind = skLarge) or not BlockIsFree(Span, P));
end;

procedure BlockReportInvalid(P: Pointer; Call: TInvalidCall);
begin
  if @Hooks.InvalidPointer <> nil then
    Hooks.InvalidPointer(P, Call);
end;

function BlockInvalid(P: Pointer; Call: TInvalidCall): NativeUInt;
begin
  // This copy, too, is among those that are asked.
  if not ForeignReportInvalid(P, Call) then
    BlockReportInvalid(P, Call);
  Result := ErrorInvalidPointer;
end;

// BlockUsableSize where no block of a span begins.
function UnknownUsableSize(P: Pointer): NativeUInt;
begin
  if P = nil then
    Exit(0);
  if BlockMayBeDebug(P) then
    Exit(Hooks.DebugSize(P));
  if (ArenaSpan(P) <> nil) or not ForeignSize(P, Result) then
    Result := BlockInvalid(P, icSize);
end;

function AnyUsableSize(P: Pointer): NativeUInt;
var
  Span: PSpan;
begin
  Span := BlockSpanExact(P);
  if Span = nil then
    Result := UnknownUsableSize(P)
  else if (Span^.Kind = skBlocks) and BlockMayBeFree(Span, P) and BlockIsFree(Span, P) then
    Result := BlockInvalid(P, icSize)
  else
    Result := Span^.BlockSize;
end;

{$ifdef LANEMM_ASM_LINUX}
  {$I LaneMM.Blocks.x64.inc}
{$else}
function BlockUsableSize(P: Pointer): TSize;
begin
  Result := AnyUsableSize(P);
end;
{$endif}

end.
