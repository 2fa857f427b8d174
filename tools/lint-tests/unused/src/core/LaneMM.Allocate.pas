/// Holds the entries.
unit LaneMM.Allocate;

interface

/// The door and compat need not use it: the library does.
function BlockGet: Pointer;
/// Assembler of the C library calls it.
function BlockGetSlow: Pointer;
/// Its own include file calls it, no other unit.
procedure BlockOwn;
/// Tests call it, nothing else.
procedure BlockTested;
/// A comment and a literal of another unit have it, no code.
procedure BlockMentioned;

implementation

uses
  LaneMM.Kinds, LaneMM.Records,
  {$ifdef FPC} LaneMM.Numbers, {$endif} LaneMM.Fields,
  LaneMM.Started, LaneMM.Silent,
  lanemm.pointers;

{$I LaneMM.Allocate.x64.inc}

function BlockGet: Pointer;
var
  Block: TBLOCK;
begin
  Block.Kind := kdlarge;
  Block.Next := nil;
end;

end.
