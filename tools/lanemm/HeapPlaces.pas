/// Where the blocks of a target were allocated, as far as it knows: from the records of debug blocks,
/// the notes of `stacks`, and the samples of `profile`. Symbols are read from the files of its modules.
unit HeapPlaces;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  SysUtils, Generics.Collections, LaneMM.Layout, LaneMM.Types, LaneMM.Unwind, LaneMM.StacksState,
  LaneMM.BacktraceTable, LaneMM.BlockNotes, TargetSymbols, HeapImages, HeapWalks;

type
  /// The backtraces of allocations in a target.
  TPlaces = class
  private
    Image: THeapImage;
    Pieces: array[0..MostPieces - 1] of TAtomicWord; // of the table of backtraces
    Parts: TNoteParts;
    HasNotes: Boolean;
    Recorded: TStacks;
    Sites: TDictionary<UInt64, UInt64>;    // of sampled blocks
    Numbers: TDictionary<UInt64, Integer>; // of Frames, by number or site
    Frames: array of TArray<UInt64>;
    Lines: array of string;
    Symbols: TTargetSymbols;
    procedure ReadSamples(First: UInt64);
    function NoteOf(const Block: TBlockFound): Cardinal;
    function ReadNode(Number: Cardinal; out Node: TCallNode): Boolean;
    function FramesOf(Number: Cardinal): TArray<UInt64>;
    function FramesAt(Site: UInt64): TArray<UInt64>;
    function Numbered(Number: Cardinal): Integer;
    function Keep(Key: UInt64; const Stack: TArray<UInt64>): Integer;
    function Folded(Stack: Integer): TBacktrace;
  public
    constructor Create(Heap: THeapImage);
    destructor Destroy; override;
    /// Returns the number of the backtrace that allocated a block; -1: unknown.
    function StackOf(const Block: TBlockFound): Integer;
    /// The same of the one that freed it.
    function FreeStackOf(const Block: TBlockFound): Integer;
    /// Finds the symbols of all backtraces so far. Once.
    procedure Resolve;
    /// Returns the line of the program that such a backtrace is named by. After Resolve.
    function LineOf(Stack: Integer): string;
    /// Returns its frames, the innermost first. After Resolve.
    function TextOf(Stack: Integer): TArray<TPlaceFrame>;
  end;

implementation

uses
  LaneMM.SettingsState, LaneMM.ObserveState, LaneMM.CallSites, LaneMM.DebugState,
  LaneMM.BacktraceText;

const
  SiteMark = UInt64(1) shl 63;

constructor TPlaces.Create(Heap: THeapImage);
var
  Observed: TObserve;
  Watched: TDebug;
begin
  inherited Create;
  Image := Heap;
  Sites := TDictionary<UInt64, UInt64>.Create;
  Numbers := TDictionary<UInt64, Integer>.Create;
  Symbols := TTargetSymbols.Create(Image.Target);
  StacksSetDepth(MaxFrames);
  if not Image.Target.ReadAll(UInt64(Image.State^.Rooms[rrSettings]), @Settings, SizeOf(Settings))
    or not Image.Target.ReadAll(UInt64(Image.State^.Rooms[rrStacks]), @Recorded, SizeOf(Recorded))
    or not Image.Target.ReadAll(UInt64(Image.State^.Rooms[rrObserve]), @Observed, SizeOf(Observed))
    or not Image.Target.ReadAll(UInt64(Image.State^.Rooms[rrDebug]), @Watched, SizeOf(Watched)) then
    Exit; // it has not applied settings yet
  if (Recorded.Table = 0) or not Image.Target.ReadAll(UInt64(Recorded.Table)
    + NativeUInt(@PCallTable(nil)^.Pieces), @Pieces, SizeOf(Pieces)) then
    FillChar(Pieces, SizeOf(Pieces), 0);
  HasNotes := IsSet(opStacks) and Image.Target.ReadAll(UInt64(Watched.Notes), @Parts, SizeOf(Parts));
  if Observed.SampleTable <> 0 then
    ReadSamples(Observed.SampleTable);
end;

destructor TPlaces.Destroy;
begin
  Symbols.Free;
  Numbers.Free;
  Sites.Free;
  inherited Destroy;
end;

// ---------------------------------------------------------------------------- records

procedure TPlaces.ReadSamples(First: UInt64);
var
  Samples: array of TSample;
  Each: TSample;
begin
  SetLength(Samples, SampleLimit);
  if Image.Target.ReadAll(First, Pointer(Samples), SampleLimit * SizeOf(TSample)) then
    for Each in Samples do
      if Each.Block > 1 then
        Sites.AddOrSetValue(Each.Block, UInt64(Each.Site));
end;

// Returns the number that `stacks` noted; 0: none.
function TPlaces.NoteOf(const Block: TBlockFound): Cardinal;
var
  Offset, Notes: UInt64;
  Slots: PNoteSlots;
  Index: NativeUInt;
  Note: TNote;
begin
  Result := 0;
  Offset := Block.Run^.Address - Image.State^.Base;
  if not HasNotes or (Offset shr PartShift >= PartCount) then
    Exit;
  Index := 0;
  if Block.Run^.Kind = skBlocks then
    Index := (Block.Address - Block.Run^.Address) div Block.Run^.Span^.BlockSize;
  Slots := PNoteSlots(Parts[Offset shr PartShift]);
  if (Slots <> nil)
    and Image.Target.ReadAll(UInt64(@Slots^[Offset shr SliceShift and High(TNoteSlots)]), @Notes,
      SizeOf(Notes))
    and (Notes <> 0) and (Index shr (Notes and NotesMask) = 0)
    and Image.Target.ReadAll(Notes and not UInt64(NotesMask) + Index * SizeOf(Note), @Note,
      SizeOf(Note)) then
    Result := Note.Stack;
end;

// Reads a node; returns False if its number is none, or that of one that was swept.
function TPlaces.ReadNode(Number: Cardinal; out Node: TCallNode): Boolean;
var
  Index: Cardinal;
  Piece: PCallPiece;
  Life: Word;
begin
  Index := Number and (PieceNodes - 1);
  Piece := PCallPiece(Pieces[Number and NodeMask shr PieceBits]);
  Result := (Piece <> nil) and Image.Target.ReadAll(UInt64(@Piece^.Nodes[Index]), @Node, SizeOf(Node))
    and Image.Target.ReadAll(UInt64(@Piece^.Lives[Index]), @Life, SizeOf(Life))
    and (Node.Return <> 0) and (Life = Number shr NodeBits);
end;

function TPlaces.FramesOf(Number: Cardinal): TArray<UInt64>;
var
  Node: TCallNode;
  Steps: Integer; // in a damaged table a node may lead to itself
begin
  Result := nil;
  Steps := 0;
  while (Number <> 0) and (Length(Result) < MostFrames) and (Steps <= MostFrames) do
  begin
    Inc(Steps);
    if not ReadNode(Number, Node) then
      Exit(nil); // a part would be another backtrace
    // As BacktraceAdd: none of the C library's own.
    if (@Recorded.StepFrame = nil) or (Node.Return < Recorded.CodeFirst)
      or (Node.Return >= Recorded.CodeLimit) then
      Insert(Node.Return, Result, Length(Result));
    Number := Node.Outer;
  end;
end;

function TPlaces.FramesAt(Site: UInt64): TArray<UInt64>;
var
  Read: TSite;
  Index: Integer;
begin
  Result := nil;
  if not Image.Target.ReadAll(Site, @Read, SizeOf(Read)) or (Read.IsReady = 0)
    or (Read.Stack.Count > MostFrames + 1) then
    Exit;
  SetLength(Result, Read.Stack.Count);
  for Index := 0 to High(Result) do
    Result[Index] := Read.Stack.Frames[Index];
end;

function TPlaces.Keep(Key: UInt64; const Stack: TArray<UInt64>): Integer;
begin
  Result := -1;
  if Stack <> nil then
  begin
    Result := Length(Frames);
    Insert(Stack, Frames, Result);
  end;
  Numbers.Add(Key, Result);
end;

// Returns that of a number in the target's table.
function TPlaces.Numbered(Number: Cardinal): Integer;
begin
  if not Numbers.TryGetValue(Number, Result) then
    Result := Keep(Number, FramesOf(Number));
end;

function TPlaces.FreeStackOf(const Block: TBlockFound): Integer;
begin
  Result := -1;
  if Block.IsFree and (Block.Debug <> nil) then
    Result := Numbered(Block.Debug^.FreeStack);
end;

function TPlaces.StackOf(const Block: TBlockFound): Integer;
var
  Number: Cardinal;
  Site: UInt64;
begin
  if Block.Debug <> nil then
    Number := Block.Debug^.AllocStack
  else
    Number := NoteOf(Block);
  if Number <> 0 then
    Result := Numbered(Number)
  else if not Sites.TryGetValue(Block.Address, Site) then
    Result := -1
  else if not Numbers.TryGetValue(Site or SiteMark, Result) then
    Result := Keep(Site or SiteMark, FramesAt(Site));
end;

// ---------------------------------------------------------------------------- symbols

procedure TPlaces.Resolve;
var
  Stack: TArray<UInt64>;
  Frame: UInt64;
begin
  SetLength(Lines, Length(Frames));
  for Stack in Frames do
    for Frame in Stack do
      Symbols.Add(Frame);
  Symbols.Resolve;
end;

// Returns a backtrace as reports show it.
function TPlaces.Folded(Stack: Integer): TBacktrace;
begin
  Result := Symbols.BacktraceOf(Frames[Stack]);
  BacktraceFold(Symbols.Symbols, Result);
end;

function TPlaces.TextOf(Stack: Integer): TArray<TPlaceFrame>;
begin
  Result := Symbols.FramesOf(Folded(Stack));
end;

function TPlaces.LineOf(Stack: Integer): string;
begin
  if Lines[Stack] = '' then
    Lines[Stack] := FrameLine(Symbols.PlaceOf(Folded(Stack)));
  Result := Lines[Stack];
end;

end.
