/// Uses the engine.
unit LaneMM.C.Malloc;

interface

/// Routines of lib/ are called from C.
function malloc: Pointer;

implementation

uses
  LaneMM.Allocate;

function malloc: Pointer; assembler;
asm
  call BlockGet
  jmp BlockGetSlow
end;

end.
