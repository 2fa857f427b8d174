/// The malloc of libc, where this library is the malloc of the process: its blocks go back to it.
//
// Owns:       Libc.
// Invariants: few blocks come from it: those of code that looks malloc up in libc itself. Only what
//             has the header of a block, in memory of the right kind, is passed on: in the area of
//             brk for the main arena, in an aligned heap that leads to its arena for the others, at
//             the start of a page for a block with a mapping of its own. libc checks the rest. The
//             libc of another name space (dlmopen) has the area of brk not: there a block of the
//             main arena is in memory without a name, and the next block says that it is in use.
// Limits:     a main arena that goes on outside of the area of brk, and heaps larger than 64 MB
//             (tunable glibc.malloc.hugetlb), are not recognized; nor is a malloc of another kind.
// Callers:    any thread.
// Source:     glibc 2.36: malloc/malloc.c (struct malloc_chunk), malloc/arena.c (heap_info).
unit LaneMM.C.Libc;

{$I ../src/LaneMM.inc}

interface

uses
  LaneMM.C.Modules;

type
  /// The routines of libc's malloc that blocks go back to.
  TLibc = record
    IsFound: Boolean;                              //< racy    the other fields are set
    IsOfProgram: Boolean;                          //< const   it is in the program's name space
    Names: TNames;                                 //< const   its exported names
    Malloc: function(Size: NativeUInt): Pointer; cdecl; //< const  its malloc
    Free: procedure(P: Pointer); cdecl;            //< const   its free
    UsableSize: function(P: Pointer): NativeUInt; cdecl; //< const  its malloc_usable_size
  end;

var
  /// The malloc of libc; all zero in a static program.
  Libc: TLibc;

/// Finds libc's routines, once; returns whether they are known.
function LibcFind: Boolean;
/// Returns whether P is a block of libc's malloc, as far as its header shows. Any pointer.
function LibcOwns(P: Pointer): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Os, LaneMM.OsProcess;

const
  // The word before a block: its size, and these bits.
  HasMapping = 2;
  IsOfThreadArena = 4;
  KindBits = HasMapping or IsOfThreadArena;
  FlagBits = 7;
  HeaderSize = 2 * SizeOf(NativeUInt);
  LeastSize = 4 * SizeOf(NativeUInt);
  // Threads' arenas have heaps at multiples of this.
  HeapAlignment = NativeUInt(64) shl 20;

type
  THeader = record
    Front: NativeUInt;  // bytes before it in its mapping, or of the block before it
    Size: NativeUInt;   // bytes of the block with this header, and the bits above
  end;
  PHeader = ^THeader;

  THeapInfo = record
    Arena: NativeUInt;
    Previous: NativeUInt;
    Size: NativeUInt;
  end;
  PHeapInfo = ^THeapInfo;

// Of the modules, only libc has this name. The program is the first one in its name space; Context
// is whether it was visited.
function LookAt(Module: PModule; Size: NativeUInt; Context: Pointer): LongInt; cdecl;
var
  Names: TNames;
  Malloc, Free, UsableSize: PSymbol;
begin
  Result := 0;
  if ModuleIsProgram(Module) then
    PBoolean(Context)^ := True;
  NamesOpen(Module, Names);
  if NamesFind(Names, 'gnu_get_libc_version') = nil then
    Exit;
  Malloc := NamesFind(Names, 'malloc');
  Free := NamesFind(Names, 'free');
  UsableSize := NamesFind(Names, 'malloc_usable_size');
  if (Malloc = nil) or (Free = nil) or (UsableSize = nil) then
    Exit;
  Libc.Names := Names;
  Libc.IsOfProgram := PBoolean(Context)^;
  @Libc.Malloc := Pointer(Names.Base + Malloc^.Value);
  @Libc.Free := Pointer(Names.Base + Free^.Value);
  @Libc.UsableSize := Pointer(Names.Base + UsableSize^.Value);
  Libc.IsFound := True;
  Result := 1;
end;

function LibcFind: Boolean;
var
  HasProgram: Boolean;
begin
  HasProgram := False;
  if not Libc.IsFound then
    ModulesVisit(LookAt, @HasProgram);
  Result := Libc.IsFound;
end;

function IsIn(const Mapping: TOsMapping; First, Size: NativeUInt): Boolean;
begin
  Result := (First >= Mapping.First) and (First <= Mapping.Limit)
    and (Size <= Mapping.Limit - First);
end;

// The area of brk is one mapping with this name.
function IsOfBrk(const Mapping: TOsMapping): Boolean;
const
  Name = '[heap]';
begin
  Result := CompareByte(Mapping.Path, PAnsiChar(Name)^, Length(Name) + 1) = 0;
end;

// Returns whether the header of the next block says that one in use ends there.
function IsBehindUsed(Next: PHeader; const Mapping: TOsMapping): Boolean;
const
  FollowsUsed = 1;
begin
  Result := (Mapping.Path[0] = #0) and IsIn(Mapping, NativeUInt(Next), SizeOf(THeader))
    and (Next^.Size and (BlockAlignment - 1) = FollowsUsed) and (Next^.Size > HeaderSize);
end;

// Returns the arena that the heap around Address belongs to; 0 if none can be read.
function ArenaOf(Address: NativeUInt): NativeUInt;
var
  Heap: PHeapInfo;
  Mapping: TOsMapping;
begin
  Heap := PHeapInfo(Address and not (HeapAlignment - 1));
  Result := 0;
  if OsFindMapping(NativeUInt(Heap), Mapping) and Mapping.IsReadable
    and (Mapping.Path[0] = #0) and IsIn(Mapping, Address, 0)
    and (Heap^.Size <= HeapAlignment) and (Address - NativeUInt(Heap) < Heap^.Size) then
    Result := Heap^.Arena;
end;

// The arena lies in a heap of its own, which leads to it, too.
function IsInThreadArena(Address: NativeUInt): Boolean;
var
  Arena: NativeUInt;
begin
  Arena := ArenaOf(Address);
  Result := (Arena <> 0) and (ArenaOf(Arena) = Arena);
end;

function HasOwnMapping(const Header: THeader; Address: NativeUInt; const Mapping: TOsMapping):
  Boolean;
var
  First, Size: NativeUInt;
begin
  First := Address - HeaderSize - Header.Front;
  Size := Header.Front + Header.Size and not FlagBits;
  Result := (Header.Size and FlagBits = HasMapping) and ((First or Size) mod OsPageSize = 0)
    and (Mapping.Path[0] = #0) and IsIn(Mapping, First, Size);
end;

function LibcOwns(P: Pointer): Boolean;
var
  Address, Size: NativeUInt;
  Header: THeader;
  Mapping: TOsMapping;
begin
  Address := NativeUInt(P);
  Result := False;
  if (Address and (BlockAlignment - 1) <> 0) or not OsFindMapping(Address - HeaderSize, Mapping)
    or not Mapping.IsWritable or not LibcFind then
    Exit;
  Header := PHeader(Address - HeaderSize)^;
  Size := Header.Size and not FlagBits;
  if (Size < LeastSize) or (Size and (BlockAlignment - 1) <> 0) then
    Exit;
  case Header.Size and KindBits of
    0: Result := IsIn(Mapping, Address, Size) and (IsOfBrk(Mapping) or not Libc.IsOfProgram
      and IsBehindUsed(PHeader(Address - HeaderSize + Size), Mapping));
    IsOfThreadArena: Result := IsInThreadArena(Address);
    HasMapping: Result := HasOwnMapping(Header, Address, Mapping);
  end;
end;

end.
