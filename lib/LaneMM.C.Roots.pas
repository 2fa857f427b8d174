/// The roots of the leak search in a C program: the data of all modules, the thread-local variables
/// and the stack of the ending thread. Blocks reachable from them are not leaks.
//
// Owns:       Leaks.VisitRoots.
// Invariants: the data of this library are left out: every block is reachable from them.
// Callers:    the end of the program, while all other threads are stopped.
// Source:     glibc: nptl/descr.h.
unit LaneMM.C.Roots;

{$I ../src/LaneMM.inc}

interface

/// Makes LaneMM.Leaks leave out reachable blocks.
procedure RootsStart;

implementation

uses
  LaneMM.Types, LaneMM.Unwind, LaneMM.LeaksState, LaneMM.C.Modules;

const
  // Bytes of a thread's control block, which holds the values of its keys.
  ControlBlockSize = 2304;

type
  TRoots = record
    Visitor: TRangeCall;
    Context: Pointer;
  end;
  PRoots = ^TRoots;

procedure Visit(Roots: PRoots; First, Size: NativeUInt);
begin
  First := First and not (SizeOf(Pointer) - 1);
  Size := Size and not (SizeOf(Pointer) - 1);
  if NativeUInt(@Process) - First >= Size then
    Roots^.Visitor(First, First + Size, Roots^.Context);
end;

function VisitModule(Module: PModule; Size: NativeUInt; Context: Pointer): LongInt; cdecl;
var
  Index: NativeInt;
  Segment: PSegment;
begin
  Result := 0;
  for Index := 0 to NativeInt(Module^.SegmentCount) - 1 do
  begin
    Segment := @Module^.Segments[Index];
    if (Segment^.Kind = LoadSegment) and (Segment^.Flags and IsWritable <> 0) then
      Visit(Context, Module^.Base + Segment^.Address, Segment^.Size)
    else if (Segment^.Kind = TlsSegment) and (Module^.TlsData <> 0) then
      Visit(Context, Module^.TlsData, Segment^.Size);
  end;
end;

// Returns the thread control block, which begins with its own address.
function ControlBlock: NativeUInt; assembler; nostackframe;
asm
  mov rax, fs:[0]
end;

procedure VisitRoots(Visitor: TRangeCall; Context: Pointer);
var
  Roots: TRoots;
  Frame: NativeUInt;
begin
  Roots.Visitor := Visitor;
  Roots.Context := Context;
  ModulesVisit(VisitModule, @Roots);
  Visit(@Roots, ControlBlock, ControlBlockSize);
  Frame := NativeUInt(get_frame);
  Visit(@Roots, Frame, StackEnd(Frame) - Frame);
end;

procedure RootsStart;
begin
  Leaks.VisitRoots := VisitRoots;
end;

end.
