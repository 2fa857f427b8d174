/// The roots of a search for leaks: words that a thread may still use. What they reach is no leak.
//
// Owns:       nothing.
// At the end: the stacks and variables of the other threads, exceptions, the stack of routines that
//             Halt has left. Units are finalized: their variables are no roots.
// Before:     also the data of all modules, the heap of C, and the stack, registers and variables
//             of the calling thread. The C library has roots of its own for both:
//             Leaks.VisitRoots.
// Invariants: Process and the tables of the search lead to every block: they are left out.
// Callers:    one thread, while the others are paused.
unit LaneMM.Roots;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Snapshot;

/// Marks the blocks that running threads or unfinished routines can reach, at the end of the
/// program. Frame lies in the stack of the calling thread.
procedure RootsMarkEnd(var Snapshot: TSnapshot; Frame: NativeUInt);
/// Marks the blocks that anything can reach that runs on after the search: the calling thread's
/// stack counts from Frame on. After ModulesLook.
procedure RootsMarkAll(var Snapshot: TSnapshot; Frame: NativeUInt);
/// Finds what may be the variables of the calling thread: the pages around one of them. Where they
/// begin and end is unknown. On Windows they are not aligned. False where they lie elsewhere.
function RootsOwnVariables(out First, Limit: NativeUInt): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Os, LaneMM.OsProcess, LaneMM.Arena, LaneMM.Text,
  LaneMM.Modules, LaneMM.LeaksState, LaneMM.Pause, LaneMM.Retainers, LaneMM.Rtl;

procedure MarkWords(First, Limit: NativeUInt; Context: Pointer);
begin
  RetainersMark(PSnapshot(Context)^, First, Limit, nsRunning);
end;

// A thread's variables lie in pages of their own, which a word on its stack points to.
procedure MarkStack(First, Limit: NativeUInt; Context: Pointer);
const
  MostVariables = SliceSize;
var
  Word, Variable, MappingEnd: NativeUInt;
  Address: PNativeUInt;
begin
  MarkWords(First, Limit, Context);
  Dec(Limit, SizeOf(Word) - 1); // where no whole word begins any more: First may be unaligned
  Address := PNativeUInt(First);
  while NativeUInt(Address) < Limit do
  begin
    Word := Address^;
    if (Word <> 0) and (Word and (OsPageSize - 1) = 0) and (ArenaSpan(Pointer(Word)) = nil)
      and OsRead(Word, @Variable, SizeOf(Variable)) and PauseFindNameless(Word, MappingEnd) then
    begin
      if NativeUInt(MappingEnd - Word) > MostVariables then
        MappingEnd := Word + MostVariables;
      MarkWords(Word, MappingEnd, Context);
    end;
    Inc(Address);
  end;
end;

procedure MarkEnd(var Snapshot: TSnapshot; Frame: NativeUInt);
begin
  PauseVisitStacks(MarkStack, @Snapshot);
  RetainersMarkWord(Snapshot, NativeUInt(RaiseList), nsRunning); // exceptions being handled
  // Of routines that were left through Halt or an exception.
  if ExitCode <> 0 then
    MarkWords(Frame and not (SizeOf(Pointer) - 1), PauseStackEnd(Frame), @Snapshot);
  if @Leaks.VisitRoots <> nil then
    Leaks.VisitRoots(MarkWords, @Snapshot, Frame); // below it lies what ended routines left
end;

procedure RootsMarkEnd(var Snapshot: TSnapshot; Frame: NativeUInt);
begin
  MarkEnd(Snapshot, Frame);
  if RetainersPack(Snapshot, nsRunning) then
    MarkEnd(Snapshot, Frame);
end;

// ---------------------------------------------------------------------------- a running program

type
  THole = record
    First, Limit: NativeUInt;
  end;

  TScan = record
    Snapshot: PSnapshot;
    Holes: array[0..2] of THole; // what is no root
    ModuleLimit: NativeUInt;     // end of the mapping before, if that is one of a module
  end;
  PScan = ^TScan;

procedure SetHole(var Hole: THole; First: Pointer; Size: NativeUInt);
begin
  Hole.First := NativeUInt(First);
  Hole.Limit := Hole.First + Size;
end;

// MarkWords without the holes from number Index on.
procedure MarkPart(var Scan: TScan; First, Limit: NativeUInt; Index: Cardinal);
var
  Hole: THole;
begin
  if Index > High(Scan.Holes) then
  begin
    MarkWords(First, Limit, Scan.Snapshot);
    Exit;
  end;
  Hole := Scan.Holes[Index];
  if (Hole.First >= Limit) or (Hole.Limit <= First) then
    MarkPart(Scan, First, Limit, Index + 1)
  else
  begin
    if Hole.First > First then
      MarkPart(Scan, First, Hole.First, Index + 1);
    if Hole.Limit < Limit then
      MarkPart(Scan, Hole.Limit, Limit, Index + 1);
  end;
end;

// Linux: data of a module that have no bytes in its file are a mapping without a name, behind its
// last one. Elsewhere a stack may lie there.
procedure MarkMapping(const Mapping: TOsMapping; Context: Pointer);
var
  Scan: PScan;
  IsModule: Boolean;
begin
  Scan := Context;
  IsModule := Mapping.IsFile and ModulesHaveData(Mapping.First, SizeOf(Pointer));
  if Mapping.IsWritable and (IsModule
    or OsHasThreadPages and (Mapping.First = Scan^.ModuleLimit) and (Mapping.Path[0] = #0)
    and (ArenaSpan(Pointer(Mapping.First)) = nil) or TextIs(@Mapping.Path, '[heap]')) then
    MarkPart(Scan^, Mapping.First, Mapping.Limit, 0);
  Scan^.ModuleLimit := 0;
  if IsModule then
    Scan^.ModuleLimit := Mapping.Limit;
end;

function RootsOwnVariables(out First, Limit: NativeUInt): Boolean;
const
  MostBefore = 16384;
var
  Own, Page: NativeUInt;
  Sign: Byte;
  Mapping: TOsMapping;
begin
  Own := NativeUInt(RtlThreadVariable) and not NativeUInt(OsPageSize - 1);
  Result := OsFindRegion(Own, Mapping) and not Mapping.IsFile;
  if not Result then
    Exit;
  First := Own - MostBefore;
  if First < Mapping.First then
    First := Mapping.First;
  Limit := Own + SliceSize;
  if Limit > Mapping.Limit then
    Limit := Mapping.Limit;
  Page := First;
  while Page < Limit do
  begin
    if (ArenaSpan(Pointer(Page)) <> nil) or not OsRead(Page, @Sign, SizeOf(Sign)) then
      if Page < Own then
        First := Page + OsPageSize
      else
        Limit := Page;
    Inc(Page, OsPageSize);
  end;
end;

procedure RootsMarkAll(var Snapshot: TSnapshot; Frame: NativeUInt);
var
  Scan: TScan;
  First, Limit: NativeUInt;
  Shift: Cardinal;
begin
  Frame := Frame and not (SizeOf(Pointer) - 1);
  PauseVisitStacks(MarkStack, @Snapshot);
  RetainersMarkWord(Snapshot, NativeUInt(RaiseList), nsRunning); // exceptions being handled
  if @Leaks.VisitRoots <> nil then
  begin
    Leaks.VisitRoots(MarkWords, @Snapshot, Frame);
    Exit;
  end;
  Scan.Snapshot := @Snapshot;
  Scan.ModuleLimit := 0;
  SetHole(Scan.Holes[0], @Process, SizeOf(Process));
  SetHole(Scan.Holes[1], Snapshot.Nodes, Snapshot.NodeLimit * SizeOf(TNode));
  SetHole(Scan.Holes[2], Snapshot.Groups, SnapshotTablesSize);
  OsVisitRegions(MarkMapping, @Scan);
  MarkWords(Frame, PauseStackEnd(Frame), @Snapshot);
  if RootsOwnVariables(First, Limit) then
    for Shift := 0 to SizeOf(Pointer) - 1 do
      MarkPart(Scan, First + Shift, Limit, 0);
end;

end.
