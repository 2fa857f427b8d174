/// Backtraces of the threads of a target, from their registers.
//
// x86_64 alone. Modules and stacks are copied to memory of lanemm, and what points into them there is
// moved to the copies: then the rules that LaneMM unwinds its own threads by hold for them, too. C code
// is left by the unwind tables of its module, code of Free Pascal, which has none, by its prologues.
unit ThreadStacks;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  Targets;

const
  /// Whether this is there for the processor.
  CanWalk = {$ifdef CPUX86_64} True {$else} False {$endif};

type
  /// A module, and the place of its copy.
  TModuleCopy = record
    First, Limit: UInt64; //< its addresses in the target
    Path: string;         //< its file
    Local: NativeUInt;    //< where its copy begins
    Table: PByte;         //< its sorted unwind table, in the copy; nil: none
    IsRead: Boolean;      //< it has been copied
  end;
  PModuleCopy = ^TModuleCopy;

  /// Unwinds the threads of a target.
  TThreadStacks = class
  private
    Target: TTarget;
    Modules: array of TModuleCopy;
    First, Limit: NativeUInt; // of the memory for all copies
    procedure AddModule(Region: PRegion);
    procedure ReadModule(Module: PModuleCopy);
    procedure FindTable(Module: PModuleCopy);
    function ModuleAt(Address: UInt64): PModuleCopy;
    function ModuleOfLocal(Address: NativeUInt): PModuleCopy;
    function LocalOf(Address: UInt64): NativeUInt;
    function TargetOf(Address: NativeUInt): UInt64;
  public
    constructor Create(Source: TTarget);
    destructor Destroy; override;
    /// Returns the return addresses of a thread, the innermost first; the first one is the address
    /// after the first byte of the instruction where it is. Where no caller is found they end.
    function Walk(const Registers: TRegisters): TArray<UInt64>;
  end;

implementation

uses
  SysUtils, BaseUnix, LaneMM.StacksState, LaneMM.Unwind, LaneMM.CallCode, TargetCores,
  LaneMM.C.FrameTables;

const
  FrameRegister = 4;
  PcRegister = 16;
  PageBytes = 4096;
  // Bytes that LaneMM.CallCode may read before and behind an address of code.
  Margin = 4 * PageBytes;
  MostStack = 1 shl 23; // bytes of a stack that are read
  MostModule = UInt64(1) shl 36; // longer ones are of a damaged core file
  MostDepth = 256;
  VirtualModule = '[vdso]';

// ---------------------------------------------------------------------------- modules

constructor TThreadStacks.Create(Source: TTarget);
var
  Region: PRegion;
  Index: Integer;
  Size: UInt64;
begin
  inherited Create;
  Target := Source;
  for Region in Target.AllRegions do
    if Region^.IsCode and ((Region^.Module <> '') or (Region^.Path = VirtualModule)) then
      AddModule(Region);
  Size := Margin;
  for Index := 0 to High(Modules) do
    Inc(Size, Modules[Index].Limit - Modules[Index].First + Margin);
  First := NativeUInt(Fpmmap(nil, Size, PROT_READ or PROT_WRITE,
    MAP_PRIVATE or MAP_ANONYMOUS, -1, 0));
  if First = NativeUInt(-1) then
    raise EOutOfMemory.Create('there is no memory for copies of the modules');
  Limit := First + Size;
  Size := Margin;
  for Index := 0 to High(Modules) do
  begin
    Modules[Index].Local := First + Size;
    Inc(Size, Modules[Index].Limit - Modules[Index].First + Margin);
  end;
  Stacks.CodeFirst := First;
  Stacks.CodeLimit := Limit;
end;

destructor TThreadStacks.Destroy;
begin
  Stacks.CodeFirst := 0;
  Stacks.CodeLimit := 0;
  Fpmunmap(Pointer(First), Limit - First);
  inherited Destroy;
end;

// Adds the module of a region with code, unless it was added: all regions of its file around it.
procedure TThreadStacks.AddModule(Region: PRegion);
var
  Module: TModuleCopy;
  Each, Last: PRegion;
begin
  if ModuleAt(Region^.First) <> nil then
    Exit;
  Last := Target.Regions[Target.RegionCount - 1];
  Each := Region;
  while (Each > Target.Regions[0]) and ((Each - 1)^.Path = Region^.Path) do
    Dec(Each);
  Module := Default(TModuleCopy);
  Module.First := Each^.First;
  Module.Path := Region^.Path;
  while (Each < Last) and ((Each + 1)^.Path = Region^.Path) do
    Inc(Each);
  Module.Limit := Each^.Limit;
  if Module.Limit - Module.First <= MostModule then
    Insert(Module, Modules, Length(Modules));
end;

function TThreadStacks.ModuleAt(Address: UInt64): PModuleCopy;
var
  Low, High, Middle: Integer;
begin
  Low := 0;
  High := Length(Modules);
  while Low < High do
  begin
    Middle := (Low + High) div 2;
    if Modules[Middle].Limit <= Address then
      Low := Middle + 1
    else
      High := Middle;
  end;
  Result := nil;
  if (Low < Length(Modules)) and (Modules[Low].First <= Address) then
    Result := @Modules[Low];
end;

function TThreadStacks.ModuleOfLocal(Address: NativeUInt): PModuleCopy;
var
  Index: Integer;
begin
  for Index := 0 to High(Modules) do
    if Address - Modules[Index].Local < Modules[Index].Limit - Modules[Index].First then
      Exit(@Modules[Index]);
  Result := nil;
end;

procedure TThreadStacks.ReadModule(Module: PModuleCopy);
var
  Region: PRegion;
begin
  Module^.IsRead := True;
  Region := Target.FindRegion(Module^.First);
  while (Region <= Target.Regions[Target.RegionCount - 1]) and (Region^.Limit <= Module^.Limit) do
  begin
    if Region^.IsReadable then
      Target.Read(Region^.First, Pointer(Module^.Local + (Region^.First - Module^.First)),
        Region^.Limit - Region^.First);
    Inc(Region);
  end;
  FindTable(Module);
end;

// Finds the unwind table by the segments that the head of the module lists.
procedure TThreadStacks.FindTable(Module: PModuleCopy);
const
  TableSegment = $6474E550; // PT_GNU_EH_FRAME
var
  Head: PElfHead;
  Segment: PElfSegment;
  Index: Integer;
  Lowest, Place: UInt64;
begin
  Head := PElfHead(Module^.Local);
  if (Head^.Magic <> ElfMagic) or (Head^.Segments > PageBytes div 2) then
    Exit;
  Lowest := High(UInt64);
  Place := 0;
  for Index := 0 to Head^.SegmentCount - 1 do
  begin
    Segment := PElfSegment(Module^.Local + Head^.Segments) + Index;
    if NativeUInt(Segment) >= Module^.Local + PageBytes - SizeOf(TElfSegment) then
      Break;
    case Segment^.Kind of
      LoadSegment:
        if Segment^.Address < Lowest then
          Lowest := Segment^.Address;
      TableSegment: Place := Segment^.Address;
    end;
  end;
  Place := Place - Lowest and not UInt64(PageBytes - 1);
  if (Module^.Limit - Module^.First > PageBytes)
    and (Place < Module^.Limit - Module^.First - PageBytes) then
    Module^.Table := PByte(Module^.Local + Place);
end;

// Returns where an address of a module's code lies in its copy; any other address as it is.
function TThreadStacks.LocalOf(Address: UInt64): NativeUInt;
var
  Module: PModuleCopy;
begin
  Result := Address;
  Module := ModuleAt(Address);
  if Module = nil then
    Exit;
  if not Module^.IsRead then
    ReadModule(Module);
  Result := Module^.Local + (Address - Module^.First);
end;

function TThreadStacks.TargetOf(Address: NativeUInt): UInt64;
var
  Module: PModuleCopy;
begin
  Result := Address;
  Module := ModuleOfLocal(Address);
  if Module <> nil then
    Result := Module^.First + (Address - Module^.Local);
end;

// ---------------------------------------------------------------------------- steps

// Finds the frame pointer of a routine where the register is not known: the innermost place of the
// stack that has the address of an outer one, and above it a return address.
procedure GuessFrame(var Walk: TUnwind);
var
  Place: NativeUInt;
  Ignored: NativeUInt;
begin
  Place := Walk.Sp;
  while Place + 2 * SizeOf(NativeUInt) <= Walk.Limit do
  begin
    if (PNativeUInt(Place)^ > Place) and (PNativeUInt(Place)^ < Walk.Limit)
      and (CallBefore(PNativeUInt(Place)[1], Ignored) <> ckNone) then
    begin
      Walk.Frame := Place;
      Exit;
    end;
    Inc(Place, SizeOf(NativeUInt));
  end;
end;

// Unwinds a routine of the module; returns whether a caller was found.
function Step(Module: PModuleCopy; var Walk: TUnwind; IsFirst: Boolean): Boolean;
var
  Entry: PByte;
  Rules: TFrameRules;
  Rule: TUnwindRule;
begin
  Entry := FrameEntry(Module^.Table, Walk.Pc - 1);
  if (Entry <> nil) and FrameRules(Entry, Walk.Pc - 1, Rules) then
    Exit(FrameLeave(Walk, Rules));
  if Walk.Frame = 0 then
    GuessFrame(Walk);
  if IsFirst then
    Result := UnwindInterrupted(Walk, Rule)
  else
    Result := UnwindStep(Walk, Rule);
end;

function TThreadStacks.Walk(const Registers: TRegisters): TArray<UInt64>;
var
  Copy: array of UInt64;
  Region: PRegion;
  Module: PModuleCopy;
  Sp, Size: UInt64;
  Index: NativeInt;
  Each: TUnwind;
begin
  Result := [Registers[PcRegister] + 1];
  Sp := Registers[StackRegister];
  Region := Target.FindRegion(Sp);
  if (Region = nil) or (Sp and (SizeOf(UInt64) - 1) <> 0) then
    Exit;
  Size := Target.ReadableLimit(Region) - Sp;
  if Size > MostStack then
    Size := MostStack;
  SetLength(Copy, Size div SizeOf(UInt64) + 1);
  SetLength(Copy, Target.Read(Sp, Pointer(Copy), Size) div SizeOf(UInt64));
  if Copy = nil then
    Exit;
  for Index := 0 to High(Copy) do
    if Copy[Index] - Sp < Size then
      Copy[Index] := NativeUInt(Copy) + (Copy[Index] - Sp)
    else
      Copy[Index] := LocalOf(Copy[Index]);
  Each := Default(TUnwind);
  Each.Sp := NativeUInt(Copy);
  Each.Limit := NativeUInt(Copy) + NativeUInt(Length(Copy)) * SizeOf(UInt64);
  Each.Pc := LocalOf(Registers[PcRegister]) + 1;
  Each.Frame := 0;
  if Registers[FrameRegister] - Sp < Size then
    Each.Frame := NativeUInt(Copy) + (Registers[FrameRegister] - Sp);
  try
    repeat
      Module := ModuleOfLocal(Each.Pc - 1);
      if (Module = nil) or not Step(Module, Each, Length(Result) = 1) then
        Break;
      Insert(TargetOf(Each.Pc), Result, Length(Result));
    until Length(Result) = MostDepth;
  except
    on EAccessViolation do; // a table that is damaged: up to there
  end;
end;

end.
