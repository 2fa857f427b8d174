/// The roots of the leak search in a C program: the data of all modules, the thread-local variables
/// of all threads, and the stacks of the calling thread. Blocks reachable from them are not leaks.
//
// Owns:       Leaks.VisitRoots.
// Invariants: the data of this library are left out: every block is reachable from them. In a
//             static program they are among the program's; there only Process is left out. glibc
//             lists its threads for debuggers, with tables of its exported names that say where the
//             lists are; a list that is not linked both ways is not followed. Of an ended thread
//             whose stack glibc keeps for the next one, only the vector of thread-local variables
//             is a root: glibc uses it again.
// Limits:     other thread libraries and static programs have no such tables: there, a thread that
//             blocks the signal of LaneMM.Pause does not show its variables.
// Callers:    searches for leaks, while all other threads are stopped.
// Source:     glibc 2.36: nptl/descr.h, nptl_db/structs.def, sysdeps/generic/ldsodefs.h.
unit LaneMM.C.Roots;

{$I ../src/LaneMM.inc}

interface

/// Makes LaneMM.Leaks leave out reachable blocks.
procedure RootsStart;

implementation

uses
  LaneMM.Types, LaneMM.Os, LaneMM.OsProcess, LaneMM.Pause, LaneMM.LeaksState, LaneMM.C.Handlers,
  LaneMM.C.Libc, LaneMM.C.Modules;

const
  // Bytes of a thread's control block, which holds the values of its keys, where glibc does not say.
  UsualControlSize = 2304;

type
  TRoots = record
    Visitor: TRangeCall;
    Context: Pointer;
    OwnControl: NativeUInt;    // the control block of the calling thread
    ControlSize: NativeUInt;   // bytes of a control block
    VariablesSize: NativeUInt; // bytes of thread-local variables before it
  end;
  PRoots = ^TRoots;

  // glibc's list_t, a ring through the control blocks of threads and the head of the list.
  PLink = ^TLink;
  TLink = record
    Next, Prev: PLink;
  end;

procedure Visit(Roots: PRoots; First, Size: NativeUInt);
begin
  First := First and not (SizeOf(Pointer) - 1);
  Size := Size and not (SizeOf(Pointer) - 1);
  if NativeUInt(@Process) - First >= Size then
    Roots^.Visitor(First, First + Size, Roots^.Context);
end;

// The variables of modules that were loaded at the start lie before the control block; later ones
// are heap blocks, which the vector leads to.
procedure NoteVariables(Roots: PRoots; Variables: NativeUInt);
const
  MostBytes = NativeUInt(1) shl 20;
var
  Distance: NativeUInt;
begin
  Distance := Roots^.OwnControl - Variables;
  if (Distance <= MostBytes) and (Distance > Roots^.VariablesSize) then
    Roots^.VariablesSize := Distance;
end;

procedure VisitData(Roots: PRoots; Module: PModule; Segment: PSegment);
var
  First, Front, Rear: NativeUInt;
begin
  First := Module^.Base + Segment^.Address;
  Front := NativeUInt(@Process) - First;
  if not ModuleIsProgram(Module) or (Front >= Segment^.Size) then
    Visit(Roots, First, Segment^.Size)
  else
  begin
    Rear := Front + SizeOf(Process);
    Visit(Roots, First, Front);
    Visit(Roots, First + Rear, Segment^.Size - Rear);
  end;
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
      VisitData(Context, Module, Segment)
    else if (Segment^.Kind = TlsSegment) and (Module^.TlsData <> 0) then
    begin
      Visit(Context, Module^.TlsData, Segment^.Size);
      NoteVariables(Context, Module^.TlsData);
    end;
  end;
end;

// ---------------------------------------------------------------------------- threads

// Returns the address of a name of libc, or nil.
function LibcData(Name: PAnsiChar): Pointer;
var
  Symbol: PSymbol;
begin
  Result := nil;
  if not LibcFind then
    Exit;
  Symbol := NamesFind(Libc.Names, Name);
  if Symbol <> nil then
    Result := Pointer(Libc.Names.Base + Symbol^.Value);
end;

// Reads where a field lies; its table has the bits of an element, their number, and the offset.
function FieldOffset(Name: PAnsiChar; out Offset: NativeUInt): Boolean;
const
  OffsetIndex = 2;
var
  Table: PCardinal;
begin
  Table := LibcData(Name);
  Result := Table <> nil;
  if Result then
    Offset := Table[OffsetIndex];
end;

const
  // Of the pointer to the vector in a control block.
  VectorOffset = SizeOf(Pointer);

// The vector of the first thread is no heap block: the dynamic linker makes it before any malloc. It
// leads to the variables of unloaded modules, too, which are freed late. Its length is before it.
procedure VisitVector(Roots: PRoots; Control: NativeUInt);
const
  EntrySize = 2 * SizeOf(Pointer);
  MostEntries = 1 shl 16;
var
  Vector, Count: NativeUInt;
begin
  Vector := PNativeUInt(Control + VectorOffset)^;
  if Vector = 0 then
    Exit;
  Count := PNativeUInt(Vector - EntrySize)^;
  if Count <= MostEntries then
    Visit(Roots, Vector, (Count + 1) * EntrySize);
end;

procedure VisitLive(Roots: PRoots; Control: NativeUInt);
begin
  Visit(Roots, Control - Roots^.VariablesSize, Roots^.VariablesSize + Roots^.ControlSize);
  VisitVector(Roots, Control);
end;

procedure VisitEnded(Roots: PRoots; Control: NativeUInt);
begin
  Visit(Roots, Control + VectorOffset, SizeOf(Pointer));
end;

type
  TControlCall = procedure(Roots: PRoots; Control: NativeUInt);

// Calls VisitControl for each control block of a list; Offset is that of the link in it.
procedure VisitList(Roots: PRoots; Head: PLink; Offset: NativeUInt; VisitControl: TControlCall);
const
  MostThreads = 1 shl 20;
var
  Link: PLink;
  Count: Cardinal;
begin
  Link := Head^.Next;
  Count := 0;
  while (Link <> nil) and (Link <> Head) and (Link^.Next <> nil) and (Link^.Next^.Prev = Link)
    and (Count < MostThreads) do
  begin
    VisitControl(Roots, NativeUInt(Link) - Offset);
    Link := Link^.Next;
    Inc(Count);
  end;
end;

function ControlSize: NativeUInt;
var
  Size: PCardinal;
begin
  Size := LibcData('_thread_db_sizeof_pthread');
  Result := UsualControlSize;
  if Size <> nil then
    Result := Size^;
end;

// glibc has three lists, one after the other: threads on its stacks, on the program's stacks, and
// stacks of ended threads; its tables have the first two.
procedure VisitThreads(Roots: PRoots);
var
  Global: ^PByte;
  OnOwnStacks, OnUserStacks, LinkOffset: NativeUInt;
begin
  Global := LibcData('__nptl_rtld_global');
  if (Global = nil) or not FieldOffset('_thread_db_pthread_list', LinkOffset)
    or not FieldOffset('_thread_db_rtld_global__dl_stack_used', OnOwnStacks)
    or not FieldOffset('_thread_db_rtld_global__dl_stack_user', OnUserStacks) then
    Exit;
  VisitList(Roots, PLink(Global^ + OnOwnStacks), LinkOffset, VisitLive);
  VisitList(Roots, PLink(Global^ + OnUserStacks), LinkOffset, VisitLive);
  if OnUserStacks = OnOwnStacks + SizeOf(TLink) then
    VisitList(Roots, PLink(Global^ + OnUserStacks) + 1, LinkOffset, VisitEnded);
end;

// musl links its threads in a ring. The values of a thread's keys follow its control block; those of
// the first one are data of libc.
procedure VisitRing(Roots: PRoots);
const
  NextOffset = 3 * SizeOf(Pointer);
var
  Control, Size: NativeUInt;
  Mapping: TOsMapping;
begin
  Control := Roots^.OwnControl;
  repeat
    Size := Roots^.ControlSize;
    if OsFindMapping(Control, Mapping) and (Mapping.Limit - Control < Size) then
      Size := Mapping.Limit - Control;
    Visit(Roots, Control - Roots^.VariablesSize, Roots^.VariablesSize + Size);
    Control := PNativeUInt(Control + NextOffset)^;
  until Control = Roots^.OwnControl;
end;

// Returns the thread control block, which begins with its own address.
function ControlBlock: NativeUInt; assembler; nostackframe;
asm
  mov rax, fs:[0]
end;

// Visits the stack of the calling thread from Frame on. If that is in another one, of a coroutine, the
// whole stack that the thread began on is a root, too, but for guard pages at its end and what it never
// used: it is not known where the thread left it.
procedure VisitStack(Roots: PRoots; Frame: NativeUInt);
var
  Place, First, Word: NativeUInt;
  Touched: PByte;
  Mapping: TOsMapping;
begin
  Visit(Roots, Frame, PauseStackEnd(Frame) - Frame);
  Place := Roots^.OwnControl; // above the stack of any other thread
  if OsThreadIsMain then
    Place := ModulesAuxiliary(RandomBytes);
  if not OsFindMapping(Place, Mapping) or (Frame - Mapping.First < Place - Mapping.First) then
    Exit;
  First := Mapping.First;
  while (First < Place) and not OsRead(First, @Word, SizeOf(Word)) do
    Inc(First, OsPageSize);
  Touched := PByte(First);
  OsTouched(Touched, PByte(Place));
  Visit(Roots, NativeUInt(Touched), Place - NativeUInt(Touched));
end;

// Visits the address of the alternate signal stack: often the system alone has it. Those of other
// threads lie in the frames of the signal that stops them.
procedure VisitSignalStack(Roots: PRoots);
const
  NrSignalStack = 131;
var
  Stack: record
    First, Flags, Size: NativeUInt;
  end;
begin
  if SystemCall(NrSignalStack, 0, NativeUInt(@Stack), 0, 0, 0, 0) = 0 then
    Visit(Roots, NativeUInt(@Stack), SizeOf(Stack.First));
end;

procedure VisitRoots(Visitor: TRangeCall; Context: Pointer; Frame: NativeUInt);
var
  Roots: TRoots;
begin
  Roots.Visitor := Visitor;
  Roots.Context := Context;
  Roots.OwnControl := ControlBlock;
  Roots.VariablesSize := 0;
  ModulesVisit(VisitModule, @Roots);
  Roots.ControlSize := ControlSize;
  if LibcIsGlibc then
  begin
    Visit(@Roots, Roots.OwnControl, Roots.ControlSize);
    VisitVector(@Roots, Roots.OwnControl);
    VisitThreads(@Roots);
  end
  else
    VisitRing(@Roots);
  VisitStack(@Roots, Frame);
  VisitSignalStack(@Roots);
end;

procedure RootsStart;
begin
  Leaks.VisitRoots := VisitRoots;
end;

end.
