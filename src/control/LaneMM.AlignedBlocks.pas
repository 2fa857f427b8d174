/// Blocks with an alignment as programs use them: what watches them, one line for what goes wrong,
/// and the alignment of all blocks to come.
//
// Owns:       Debug.Aligned.
// Callers:    any thread; AlignmentEnter, AlignmentExit: any that holds no lock.
unit LaneMM.AlignedBlocks;

{$I ../LaneMM.inc}

interface

/// AlignedGet while a setting watches: the block is a debug block, is sampled, filled or noted. It
/// is one beside P, see AlignedGetBeside, unless that is nil.
function AlignedGetWatched(P: Pointer; Alignment, Size: NativeUInt): Pointer;
/// Allocates a block at a multiple of Alignment, a power of two up to MostAlignment; IsZero: of
/// zeros. Nil, and a line on stderr, for another alignment, or while LaneMM is not installed.
function AlignedNew(Size, Alignment: NativeUInt; IsZero: Boolean): Pointer;
/// Resizes P, a block or nil, which may move, to such a block; frees it if Size is 0. Returns P;
/// nil, and P unchanged, likewise. Without memory it fails like ReallocMem.
function AlignedResize(var P: Pointer; Size, Alignment: NativeUInt): Pointer;
/// Begins to align all blocks of the process to Alignment. False, and a line, for another one than
/// 16, 32 and 64.
function AlignmentEnter(Alignment: NativeUInt): Boolean;
/// Takes back one such call; false if there is none.
function AlignmentExit(Alignment: NativeUInt): Boolean;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Rtl, LaneMM.Arena,
  LaneMM.Blocks, LaneMM.Walk, LaneMM.Aligned, LaneMM.ReportState,
  LaneMM.SettingsState, LaneMM.SeenCalls, LaneMM.Sampler, LaneMM.DebugState, LaneMM.BlockNotes,
  LaneMM.Debug, LaneMM.Erase, LaneMM.Hard, LaneMM.GuardSample, LaneMM.Watch, LaneMM.SingleBlocks;

const
  MostAlignment = 1024 * 1024;

// ---------------------------------------------------------------------------- watched

// Allocates a block that is counted, and is sampled when its turn has come.
function GetSampled(Alignment, Size: NativeUInt): Pointer;
begin
  if Alignment > SliceSize then
  begin
    Result := AlignedGet(Alignment, Size);
    SamplerSee(Result, Size);
    Exit;
  end;
  if Alignment > BlockAlignment then
    Process.KeepsAlignment := True; // as AlignedGet
  Result := SamplerGetAligned(Size, AlignedRequest(Alignment, Size));
end;

// Returns the alignment of a debug block as a power of two; 0 for what each one has.
function ShiftOf(Alignment: NativeUInt): Byte;
begin
  Result := 0;
  if Alignment > BlockAlignment then
    Result := FloorLog2(Alignment);
end;

function GetDebug(Alignment, Size: NativeUInt): Pointer;
begin
  Result := DebugGetAligned(Size, ShiftOf(Alignment));
  if Result = nil then
    Result := AlignedGet(Alignment, Size);
  if SamplerIsOn then
    SamplerSee(Result, Size);
end;

// Allocates a block that is no debug block, or one with guard pages.
function GetNormal(P: Pointer; Alignment, Size: NativeUInt): Pointer;
begin
  Result := nil;
  if Size > NativeUInt(High(Size) - Debug.MarkBytes) then
    Dec(Size, Debug.MarkBytes); // still too many
  if GuardSampleIsOn and Debug.IsStarted then // the setting comes before it
    Result := GuardSampleTry(Size, ShiftOf(Alignment));
  if (Result = nil) and SamplerIsOn
    and ((P = nil) or not BlockIsElsewhere(P, OsThreadHeap)) then
    Result := GetSampled(Alignment, Size + Debug.MarkBytes)
  else if Result = nil then
    Result := AlignedGetBeside(P, Alignment, Size + Debug.MarkBytes);
  EraseFillNew(Result);
  HardMark(Result, Size, faPlain);
end;

function AlignedGetWatched(P: Pointer; Alignment, Size: NativeUInt): Pointer;
var
  IsDebug: Boolean;
begin
  IsDebug := DebugIsOn and Debug.IsStarted; // the setting comes before it
  AcquireFence; // the tables after it. Pairs with DebugStart
  if IsDebug then
    Result := GetDebug(Alignment, Size)
  else
  begin
    Result := GetNormal(P, Alignment, Size);
    NoteBlock(Result, Size, NativeUInt(get_frame));
  end;
  CallsSee(Result, Size, Alignment);
end;

// ---------------------------------------------------------------------------- blocks

// Returns whether blocks with this alignment can be had; False after a line. A value below
// BlockAlignment becomes that.
function CanAlign(var Alignment: NativeUInt): Boolean;
begin
  Result := IsPowerOfTwo(Alignment) and (Alignment <= MostAlignment);
  if not Result then
    ReportSayLine('an aligned block: not allocated, the alignment is no power of two up to 1 MB')
  else if not WatchIsInstalled then
  begin
    Result := False;
    ReportSayLine('an aligned block: not allocated, LaneMM is not the memory manager');
  end;
  if Alignment < BlockAlignment then
    Alignment := BlockAlignment;
end;

// Fills a new block with zeros; a large one that was never touched has them but in its first word.
procedure Clear(P: Pointer; Size: NativeUInt);
var
  Span: PSpan;
begin
  Span := ArenaSpan(P);
  if (Span^.Kind = skLarge) and Span^.IsZero and not IsErasingNew and (Size > SizeOf(TBlock)) then
    Size := SizeOf(TBlock);
  EraseRange(P, Size);
end;

function AlignedNew(Size, Alignment: NativeUInt; IsZero: Boolean): Pointer;
begin
  if not CanAlign(Alignment) then
    Exit(nil);
  Result := AlignedGetWatched(nil, Alignment, Size);
  if IsZero and (Result <> nil) then
    Clear(Result, Size);
end;

function IsAligned(P: Pointer; Alignment: NativeUInt): Boolean; inline;
begin
  Result := NativeUInt(P) and NativeUInt(Alignment - 1) = 0;
end;

function AlignedResize(var P: Pointer; Size, Alignment: NativeUInt): Pointer;
var
  UsableSize: NativeUInt;
begin
  if not CanAlign(Alignment) then
    Exit(nil);
  if (P = nil) and (Size <> 0) then
    P := AlignedGetWatched(nil, Alignment, Size)
  else if Size = 0 then
    ReallocMem(P, 0)
  else
  begin
    UsableSize := BlockUsableSize(P);
    // ReallocMem keeps the alignment of a block that stays in its place or becomes a large block,
    // but where debug mode moves it.
    if IsAligned(P, Alignment) and ((Size <= UsableSize) and (Size >= UsableSize shr KeptShift)
      or (Size > MaxClassSize) and (Alignment <= SliceSize)) then
    begin
      ReallocMem(P, Size);
      if IsAligned(P, Alignment) then // nil is, too
        Exit(P);
      UsableSize := BlockUsableSize(P);
    end;
    SingleReplace(P, AlignedGetWatched(P, Alignment, Size), UsableSize, Size);
  end;
  Result := P;
end;

// ---------------------------------------------------------------------------- all blocks

// Returns whether all blocks can have the alignment.
function IsForAll(Alignment: NativeUInt): Boolean;
begin
  Result := IsPowerOfTwo(Alignment) and (Alignment shr LeastAlignShift <> 0)
    and (Alignment shr (MostAlignShift + 1) = 0);
end;

function AlignmentEnter(Alignment: NativeUInt): Boolean;
begin
  Result := IsForAll(Alignment);
  if not Result then
  begin
    ReportSayLine('LaneMM_EnterAlignment: not done, the alignment is not 16, 32 or 64');
    Exit;
  end;
  FetchAdd(Debug.Aligned[FloorLog2(Alignment)], 1);
  WatchApply;
end;

function AlignmentExit(Alignment: NativeUInt): Boolean;
var
  Shift: Cardinal;
  Count: TAtomicWord;
begin
  Result := IsForAll(Alignment);
  if not Result then
    Exit;
  Shift := FloorLog2(Alignment);
  repeat
    Count := LoadAcquire(Debug.Aligned[Shift]);
    if Count = 0 then
      Exit(False);
  until CompareAndSwap(Debug.Aligned[Shift], Count, Count - 1);
  WatchApply;
end;

end.
