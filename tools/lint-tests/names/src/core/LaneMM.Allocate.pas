/// Holds the entries. See LaneMM.Gone, LaneMM.C.Gone, LaneMM.Allocate.BlockGet.
/// And LaneMM.Allocate.BlockPut.
//
// What exists: LaneMM.C, LaneMM.inc, src/LaneMM.inc, LaneMM.Allocate.pas, LaneMM.Allocate.x64.inc,
// LaneMM.Allocate.x64, LaneMM.Allocate.ppu, LaneMM.log.
// What does not: LaneMM.Gone.pas, LaneMM.Allocate.arm.inc.
unit LaneMM.Allocate;

{$I ../LaneMM.inc}

interface

/// Calls BlockGetFast, then BLOCKGETSLOW; returns a TGone with skGone in it (see TRecord, rkSome).
/// Not names: IDs, CPUs, a CPU, LANEMM, Word, iOS, eBPF, x86_64, http://example.org/BrokenLink/.
function BlockGet: Pointer; { by BlockTaker } (* as Blocks and EInOutError want it *)

implementation

type
  TRecord = (rkSome);

{$I LaneMM.Allocate.x64.inc}

function BlockGet: Pointer;
begin
  Result := BlockGetSlow('NotInComments'); //< ends in LaneMM_Gone
end;

end.
