/// Pointers that belong to no copy of LaneMM, and those that are no block in use.
//
// Owns:       MallocOwner; Hooks.InvalidPointer without debug mode; supplies the memory manager
//             that LaneMM.Foreign treats as the previous one.
// Invariants: where this library is the malloc of the process, a block of libc's own malloc goes
//             back there; any other foreign pointer is an error, which ends the program with a
//             line. Otherwise (the library was loaded late, for one part of a program) foreign
//             pointers go to the malloc of the process.
// Callers:    any thread.
// Errors:     one line to stderr with the kind of address, then SIGABRT, as in glibc.
unit LaneMM.C.Foreign;

{$I ../src/LaneMM.inc}

interface

uses
  LaneMM.Hooks;

const
  /// The usable size of what is no block of libc or of the malloc of the process, as far as that is
  /// known. A block of another copy of LaneMM may have 0 bytes.
  NoBlock = High(NativeUInt);

/// Returns the routines that foreign blocks go to, as a memory manager.
procedure ForeignManager(out Manager: TMemoryManager);
/// Returns whether the malloc of the process is another one.
function ForeignIsForProcess: Boolean;
/// Returns whether the dynamic linker shows another malloc than that of this library; it may be a
/// stub that leads here. Visits no module.
function ForeignIsShown: Boolean;
/// Resizes P, no block of LaneMM, or nil, by the realloc of the process.
function ForeignRealloc(P: Pointer; Size: NativeUInt): Pointer;
/// Ends the program: P, in no arena, is no heap block.
procedure ForeignInvalid(P: Pointer; Call: TInvalidCall);
/// Has a line describe each pointer that is no block in use, before the program ends for it.
procedure ForeignWatch;
/// Returns whether there was such a line.
function ForeignIsSaid: Boolean;
/// Calls Free, a routine of libc's that frees what libc and the dynamic linker keep. That may be memory
/// that the linker had before there was a malloc, which is left alone.
procedure ForeignAllow(Free: TProcedure);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Os, LaneMM.OsProcess, LaneMM.Arena, LaneMM.Span,
  LaneMM.Walk, LaneMM.Text, LaneMM.ReportState, LaneMM.Debug, LaneMM.DebugReport,
  LaneMM.C.Libc, LaneMM.C.Modules;

// The malloc of the process: the first definitions of these names that the dynamic linker finds,
// in this library or in another one.
function ProcessMalloc(Size: NativeUInt): Pointer; cdecl; external name 'malloc';
procedure ProcessFree(P: Pointer); cdecl; external name 'free';
function ProcessRealloc(P: Pointer; Size: NativeUInt): Pointer; cdecl; external name 'realloc';
function ProcessUsableSize(P: Pointer): NativeUInt; cdecl; external name 'malloc_usable_size';
// Those of this library.
function OwnMalloc(Size: NativeUInt): Pointer; cdecl; external name 'lanemm_malloc';
function OwnUsableSize(P: Pointer): NativeUInt; cdecl; external name 'lanemm_usable_size';

procedure LibcAbort; cdecl; external name 'abort';

type
  TMallocOwner = (moUnknown, moOwn, moOther);

var
  // racy  whose malloc the process has, where another one is shown; two threads write the same
  MallocOwner: TMallocOwner;

function ForeignIsShown: Boolean;
begin
  Result := @ProcessMalloc <> @OwnMalloc;
end;

// Ends at the first module that defines malloc: also at one without a table of names, in which the
// one that is shown lies.
function FindMalloc(Module: PModule; Size: NativeUInt; Context: Pointer): LongInt; cdecl;
var
  Names: TNames;
begin
  NamesOpen(Module, Names);
  if Names.Hash = nil then
    Exit(Ord(ModuleHas(Module, NativeUInt(@ProcessMalloc))));
  Result := Ord(NamesFind(Names, 'malloc') <> nil);
  if (Result <> 0) and ModuleHas(Module, NativeUInt(@OwnMalloc)) then
    MallocOwner := moOwn;
end;

// Where a program that is not position-independent takes the address of malloc, the linker shows a
// stub in the program. It leads to the first definition.
function ForeignIsForProcess: Boolean;
begin
  if not ForeignIsShown then
    Exit(False);
  if MallocOwner = moUnknown then
    ModulesVisit(FindMalloc, nil);
  if MallocOwner = moUnknown then
    MallocOwner := moOther;
  Result := MallocOwner = moOther;
end;

function ForeignRealloc(P: Pointer; Size: NativeUInt): Pointer;
begin
  Result := ProcessRealloc(P, Size);
end;

// ---------------------------------------------------------------------------- invalid pointers

type
  // An address, and the text of what it is in.
  TPlace = record
    Address: NativeUInt;
    Kind: PAnsiChar;
    Name: PAnsiChar;
  end;
  PPlace = ^TPlace;

function KindOf(const Segment: TSegment): PAnsiChar;
begin
  if Segment.Flags and IsCode <> 0 then
    Result := 'the code of '
  else if Segment.Flags and IsWritable <> 0 then
    Result := 'the data of '
  else
    Result := 'the constants of ';
end;

function NameOf(Module: PModule): PAnsiChar;
begin
  Result := Module^.Name;
  if ModuleIsProgram(Module) then
    Result := 'the program';
end;

function LookAt(Module: PModule; Size: NativeUInt; Context: Pointer): LongInt; cdecl;
var
  Place: PPlace;
  Index: NativeInt;
  Segment: PSegment;
begin
  Result := 0;
  Place := Context;
  for Index := 0 to NativeInt(Module^.SegmentCount) - 1 do
  begin
    Segment := @Module^.Segments[Index];
    if (Segment^.Kind = LoadSegment)
      and (Place^.Address - (Module^.Base + Segment^.Address) < Segment^.Size) then
    begin
      Place^.Kind := KindOf(Segment^);
      Place^.Name := NameOf(Module);
    end
    else if (Segment^.Kind = TlsSegment) and (Module^.TlsData <> 0)
      and (Place^.Address - Module^.TlsData < Segment^.Size) then
    begin
      Place^.Kind := 'the thread-local variables of ';
      Place^.Name := NameOf(Module);
    end;
  end;
end;

procedure AddMapping(var Line: TText; Address: NativeUInt);
const
  Elsewhere: ShortString = 'is in memory that is no heap of LaneMM';
var
  Mapping: TOsMapping;
  Own: NativeUInt;
  Sign: Byte;
begin
  Own := NativeUInt(get_frame);
  if not OsFindMapping(Address, Mapping) then
  begin
    if OsRead(Address, @Sign, SizeOf(Sign)) then // without /proc
      TextAdd(Line, Elsewhere)
    else
      TextAdd(Line, 'is not mapped');
  end
  else if Own - Mapping.First < Mapping.Limit - Mapping.First then
    TextAdd(Line, 'is in the stack of this thread')
  else if Mapping.Path[0] <> #0 then
    TextAddForm(Line, 'is in %s', NativeUInt(@Mapping.Path))
  else
    TextAdd(Line, Elsewhere);
end;

procedure AddPlace(var Line: TText; Address: NativeUInt);
var
  Place: TPlace;
begin
  Place.Address := Address;
  Place.Kind := nil;
  ModulesVisit(LookAt, @Place);
  if Place.Kind = nil then
    AddMapping(Line, Address)
  else
    TextAddForm(Line, 'is in %s%s', NativeUInt(Place.Kind), NativeUInt(Place.Name));
end;

// Returns whether a block of the span began at P, and none in use holds it.
function IsFreed(Span: PSpan; P: Pointer): Boolean;
var
  Block: TBlockInfo;
begin
  Result := (Span <> nil) and (Span^.Kind = skBlocks) and SpanBlockIsValid(Span, P)
    and not WalkFind(P, Block);
end;

// Adds the place of an address in the heap at which no block in use begins.
procedure AddHeapPlace(var Line: TText; Span: PSpan; P: Pointer);
var
  Block: TBlockInfo;
begin
  if WalkFind(P, Block) then
    TextAddForm(Line, 'is in the block of %g byte%+ at 0x%x', Block.UsableSize,
      NativeUInt(Block.Address))
  else if IsFreed(Span, P) then
    TextAddForm(Line, 'was freed already, a block of %g byte%+; LANEMM=debug reports where',
      Span^.BlockSize)
  else
    TextAdd(Line, 'is in free memory of the heap');
end;

var
  IsSaid: Boolean; // racy  a line was written: the process ends

function ForeignIsSaid: Boolean;
begin
  Result := IsSaid;
end;

procedure Say(P: Pointer; Call: TInvalidCall);
const
  Calls: array[TInvalidCall] of PAnsiChar = ('free', 'realloc', 'malloc_usable_size');
var
  Buffer: array[0..1023] of AnsiChar;
  Line: TText;
  Span: PSpan;
begin
  IsSaid := True;
  Span := ArenaSpan(P);
  TextOpenAt(Line, @Buffer, SizeOf(Buffer));
  if (Call = icFree) and IsFreed(Span, P) then
    TextAdd(Line, 'LaneMM: double ')
  else
    TextAdd(Line, 'LaneMM: invalid ');
  if (Call = icSize) and (Span <> nil) then
    TextAdd(Line, 'realloc or '); // which asks for the size first
  TextAddChars(Line, Calls[Call]);
  TextAdd(Line, ': ');
  if Span = nil then
    TextAdd(Line, 'not a heap block: ');
  TextAddForm(Line, '0x%x ', NativeUInt(P));
  if Span = nil then
    AddPlace(Line, NativeUInt(P))
  else
    AddHeapPlace(Line, Span, P);
  TextAdd(Line, #10);
  OsWriteError(Line.Start, Line.Length);
end;

// With `abort` the report ends the program.
procedure SayOrReport(P: Pointer; Call: TInvalidCall);
begin
  if Report.Aborts then
    InvalidReport(P, Call);
  Say(P, Call);
end;

procedure ForeignWatch;
begin
  Hooks.InvalidPointer := SayOrReport;
end;

procedure ForeignInvalid(P: Pointer; Call: TInvalidCall);
begin
  if DebugIsOn or Report.Aborts then
    Hooks.InvalidPointer(P, Call);
  if not IsSaid then
    Say(P, Call);
  LibcAbort;
end;

// ---------------------------------------------------------------------------- the manager

var
  IsAllowed: Boolean; // owner   within ForeignAllow, when no other thread is left

procedure ForeignAllow(Free: TProcedure);
begin
  IsAllowed := True;
  Free;
  IsAllowed := False;
end;

function ForeignFree(P: Pointer): TSize;
begin
  Result := 0;
  if ForeignIsForProcess then
    ProcessFree(P)
  else if LibcOwns(P) then
    Libc.Free(P)
  else if not IsAllowed then
    ForeignInvalid(P, icFree);
end;

// Returns NoBlock also for a block of a program that has malloc alone.
function ForeignUsableSize(P: Pointer): TSize;
begin
  Result := NoBlock;
  if ForeignIsForProcess then
  begin
    if @ProcessUsableSize <> @OwnUsableSize then
      Result := ProcessUsableSize(P);
  end
  else if LibcOwns(P) then
    Result := Libc.UsableSize(P);
end;

// For a library that is called after its end.
function ForeignGet(Size: TSize): Pointer;
begin
  Result := nil;
  if ForeignIsForProcess then
    Result := ProcessMalloc(Size)
  else if LibcFind then
    Result := Libc.Malloc(Size);
end;

// Never called: with it a previous manager looks like the run-time library's, which does not exist
// here.
function RtlGet(Size: TSize): Pointer; [public, alias: 'SYSTEM_$$_SYSGETMEM$QWORD$$POINTER'];
begin
  Result := nil;
end;

procedure ForeignManager(out Manager: TMemoryManager);
begin
  FillChar(Manager, SizeOf(Manager), 0);
  Manager.GetMem := ForeignGet;
  Manager.FreeMem := ForeignFree;
  Manager.MemSize := ForeignUsableSize;
end;

end.
