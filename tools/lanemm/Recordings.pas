/// Recordings of `LANEMM=record`: read, checked, and made into a plan that lanemm-replay repeats.
//
// A plan has the calls of all threads in their order, and a number, the slot, for each block in place of
// its address. Each call begins with a number, slot * 4 + TPlanKind; a size follows pkNew and pkResize.
// A slot is free again after pkFree. pkMore has value * 4 + TPlanMore in place of a slot. Numbers are
// written as in a recording, see LaneMM.RecordFormat.
unit Recordings;

{$mode delphi}{$H+}
{$warn 4046 off} // the RTL's dictionary has abstract enumerators
{$pointermath on}

interface

uses
  Classes, Generics.Collections, LaneMM.RecordFormat, Plans;

type
  /// What a recording has.
  TRecorded = record
    IsMalloc: Boolean;        //< of a program in C
    Counts: TPlanCounts;      //< its calls
    Threads: Integer;         //< that called
    Slots: Integer;           //< most blocks at a time
    MostBytes: Int64;         //< most bytes at a time, as requested
    Unknown: Int64;           //< frees and resizes of blocks from before the recording
    HasEnd: Boolean;          //< False: the file is cut
    HasLimit: Boolean;        //< it ended at its limit
  end;

/// Reads a recording twice: checks it, and writes its plan to Plan. Raises ETool for a file that is none,
/// or is damaged. What follows the last whole part of a file that is cut is left out.
function ReadRecording(const Path: string; Plan: TStream): TRecorded;

implementation

uses
  SysUtils, BaseUnix, Linux, ToolCommands;

type
  TEvent = record
    Kind: TRecordKind;
    Address: Int64;    // divided by RecordUnit; rkThread, rkEnd: the value
    Size: Int64;
    Log2: Integer;
  end;

  // Reads the events of a file.
  TReader = class
  private
    Path: string;
    Map: PByte;
    Size: Int64;
    Place: Int64;      // of the next byte
    PartEnd, NextPart: Int64;
    Last: Int64;       // address of the event before
    Counts: array[rkNew..rkMoved] of Int64;
    Bytes: Int64;
    procedure Fail(const Text: string);
    function OpenPart: Boolean;
    function Number: UInt64;
    procedure ReadEnd;
  public
    IsMalloc, HasEnd, HasLimit: Boolean;
    constructor Create(const FilePath: string);
    destructor Destroy; override;
    procedure Rewind;
    function Next(out Event: TEvent): Boolean;
  end;

  // A thread.
  TCaller = class
    Index: Integer;
    Turns, Left: Integer; // times that it comes after another one: all, and those to come
    Moving: Integer;      // slot of the block that it resizes
    MovingFrom: Int64;    // address of that block, or of the one before; 0: it was resized
  end;

  // Makes the plan of a recording.
  TPlanner = class
  private
    Reader: TReader;
    Plan: TPlanWriter;             // nil: events are only counted
    Callers: TObjectDictionary<Int64, TCaller>;
    Caller: TCaller;
    Slots: TDictionary<Int64, Integer>;
    FreeSlots: TStack<Integer>;
    Sizes: TArray<Int64>;          // by slot
    Bytes: Int64;                  // of all blocks
    Found: TRecorded;
    procedure SetCaller(Id: Int64);
    procedure SetSize(Slot: Integer; Size: Int64);
    procedure FreeBlock(const Event: TEvent);
    procedure NewBlock(const Event: TEvent);
    procedure TakeOut(Address: Int64);
    procedure PutBack;
    procedure Resize(const Event: TEvent);
    procedure Clear;
  public
    constructor Create(Source: TReader);
    destructor Destroy; override;
    procedure Run(Target: TPlanWriter);
  end;

const
  NoSlot = -1;

// ---------------------------------------------------------------------------- the file

constructor TReader.Create(const FilePath: string);
var
  Handle: LongInt;
  Status: TStat;
  Head: ^TRecordHead;
begin
  inherited Create;
  Head := nil;
  Path := FilePath;
  Handle := FpOpen(Path, O_RDONLY or O_CLOEXEC);
  if (Handle < 0) or (FpFStat(Handle, Status) <> 0) then
    raise ETool.Create(ecFailed, '%s: %s', [Path, SysErrorMessage(fpgeterrno)]);
  Size := Status.st_size;
  if Size >= SizeOf(Head^) then
    Map := FpMMap(nil, Size, PROT_READ, MAP_PRIVATE, Handle, 0);
  FpClose(Handle);
  Head := Pointer(Map);
  if (Map = nil) or (Map = MAP_FAILED) or (Head^.Magic <> RecordMagic) then
    raise ETool.Create(ecDamaged, '%s is no recording; `LANEMM=record=FILE` makes one', [Path]);
  if Head^.Layout <> RecordLayout then
    raise ETool.Create(ecOtherVersion, '%s was recorded by another version of LaneMM', [Path]);
  IsMalloc := Head^.IsMalloc <> 0;
end;

destructor TReader.Destroy;
begin
  if (Map <> nil) and (Map <> MAP_FAILED) then
    FpMUnMap(Map, Size);
  inherited Destroy;
end;

procedure TReader.Fail(const Text: string);
begin
  raise ETool.Create(ecDamaged, '%s is damaged near byte %d: %s; nothing is replayed', [Path, Place, Text]);
end;

procedure TReader.Rewind;
begin
  NextPart := SizeOf(TRecordHead);
  Place := NextPart;
  PartEnd := Place;
  Last := 0;
  Bytes := 0;
  FillChar(Counts, SizeOf(Counts), 0);
  HasEnd := False;
end;

// Goes to the next part; returns whether it is there as a whole.
function TReader.OpenPart: Boolean;
var
  Head: ^TRecordPartHead;
  Padded: Int64;
begin
  Place := NextPart;
  Head := Pointer(Map + Place);
  if Size - Place < SizeOf(Head^) then
    Exit(False);
  if (Head^.Bytes = 0) or (Head^.Bytes > 2 * RecordPartBytes) then
    Fail('no part has that length');
  Padded := (Int64(Head^.Bytes) + 7) div 8 * 8;
  Inc(Place, SizeOf(Head^));
  Result := Size - Place >= Padded;
  if not Result then
    Exit;
  if Fnv1a(FnvStart, Pointer(Map + Place), Padded) <> Head^.Checksum then
    Fail('the checksum is wrong');
  PartEnd := Place + Int64(Head^.Bytes);
  NextPart := Place + Padded;
end;

function TReader.Number: UInt64;
var
  Shift: Integer;
  Group: Byte;
begin
  Result := 0;
  Shift := 0;
  repeat
    if (Place >= PartEnd) or (Shift > 63) then
      Fail('a number has no end');
    Group := Map[Place];
    Inc(Place);
    Result := Result or UInt64(Group and 127) shl Shift;
    Inc(Shift, 7);
  until Group < 128;
end;

procedure TReader.ReadEnd;
var
  Kind: TRecordKind;
begin
  HasEnd := True;
  for Kind := Low(Counts) to High(Counts) do
    if Number <> UInt64(Counts[Kind]) then
      Fail('events are missing');
  if Number <> UInt64(Bytes) then
    Fail('the sizes have another sum');
end;

function TReader.Next(out Event: TEvent): Boolean;
var
  Value: UInt64;
begin
  if HasEnd or (Place >= PartEnd) and not OpenPart then
    Exit(False);
  Value := Number;
  Event.Kind := TRecordKind(Value mod RecordKinds);
  Value := Value div RecordKinds;
  Event.Address := Value;
  Event.Size := 0;
  if Event.Kind = rkEnd then
  begin
    HasLimit := Value = Ord(reLimit);
    ReadEnd;
    Exit(False);
  end;
  Result := True;
  if Event.Kind = rkThread then
    Exit;
  if Odd(Value) then
    Dec(Last, (Value + 1) div 2)
  else
    Inc(Last, Value div 2);
  Event.Address := Last;
  Inc(Counts[Event.Kind]);
  if Event.Kind = rkAligned then
    Event.Log2 := Number;
  if Event.Kind in [rkFree, rkMoving] then
    Exit;
  Event.Size := Number;
  Inc(Bytes, Event.Size);
end;

// ---------------------------------------------------------------------------- the plan

constructor TPlanner.Create(Source: TReader);
begin
  inherited Create;
  Reader := Source;
  Callers := TObjectDictionary<Int64, TCaller>.Create([doOwnsValues]);
  Slots := TDictionary<Int64, Integer>.Create;
  FreeSlots := TStack<Integer>.Create;
end;

destructor TPlanner.Destroy;
begin
  FreeSlots.Free;
  Slots.Free;
  Callers.Free;
  inherited Destroy;
end;

procedure TPlanner.Clear;
begin
  Reader.Rewind;
  Slots.Clear;
  FreeSlots.Clear;
  Sizes := nil;
  Bytes := 0;
  Caller := nil;
  Found := Default(TRecorded);
  Found.IsMalloc := Reader.IsMalloc;
end;

// The events from here on are of this thread; the one before has ended if it has no turn any more.
procedure TPlanner.SetCaller(Id: Int64);
begin
  if (Plan <> nil) and (Caller <> nil) and (Caller.Left = 0) then
    Plan.Add(pmEnds, 0);
  if not Callers.TryGetValue(Id, Caller) then
  begin
    Caller := TCaller.Create;
    Caller.Index := Callers.Count;
    Caller.Moving := NoSlot;
    Callers.Add(Id, Caller);
  end;
  if Plan = nil then
    Inc(Caller.Turns)
  else
  begin
    Dec(Caller.Left);
    Plan.Add(pmThread, Caller.Index);
  end;
end;

procedure TPlanner.SetSize(Slot: Integer; Size: Int64);
begin
  if Slot >= Length(Sizes) then
    SetLength(Sizes, 2 * Slot + 64);
  Inc(Bytes, Size - Sizes[Slot]);
  Sizes[Slot] := Size;
  if Bytes > Found.MostBytes then
    Found.MostBytes := Bytes;
end;

procedure TPlanner.FreeBlock(const Event: TEvent);
var
  Slot: Integer;
begin
  if not Slots.TryGetValue(Event.Address, Slot) then
  begin
    Inc(Found.Unknown, Ord(Event.Kind = rkFree));
    Exit;
  end;
  Slots.Remove(Event.Address);
  SetSize(Slot, 0);
  FreeSlots.Push(Slot);
  Inc(Found.Counts.Frees);
  if Plan <> nil then
    Plan.Add(Slot, pkFree);
end;

procedure TPlanner.NewBlock(const Event: TEvent);
const
  UsualLog2 = 4;
var
  Slot: Integer;
begin
  FreeBlock(Event); // one that was freed without a call, such as with a region
  if FreeSlots.Count > 0 then
    Slot := FreeSlots.Pop
  else
  begin
    Slot := Found.Slots;
    Inc(Found.Slots);
  end;
  Slots.Add(Event.Address, Slot);
  SetSize(Slot, Event.Size);
  Inc(Found.Counts.Allocations);
  Inc(Found.Counts.Bytes, Event.Size);
  if Plan = nil then
    Exit;
  if Event.Kind = rkZero then
    Plan.Add(pmZero, 0)
  else if (Event.Kind = rkAligned) and (Event.Log2 > UsualLog2) then
    Plan.Add(pmAligned, Event.Log2);
  Plan.Add(Slot, pkNew, Event.Size);
end;

procedure TPlanner.TakeOut(Address: Int64);
begin
  Caller.MovingFrom := 0;
  if Slots.TryGetValue(Address, Caller.Moving) then
  begin
    Caller.MovingFrom := Address;
    Slots.Remove(Address);
  end
  else
    Caller.Moving := NoSlot; // it is 0 now, which is a slot
end;

// A resize that raised an exception has no end: the next event of the thread shows that its block stayed.
// Or the handler of a signal interrupted it, and the end follows.
procedure TPlanner.PutBack;
begin
  if Caller.Moving <> NoSlot then
    Slots.AddOrSetValue(Caller.MovingFrom, Caller.Moving);
  Caller.Moving := NoSlot;
end;

procedure TPlanner.Resize(const Event: TEvent);
begin
  if (Caller.Moving = NoSlot) and (Caller.MovingFrom <> 0) then
    TakeOut(Caller.MovingFrom);
  Caller.MovingFrom := 0;
  if (Caller.Moving = NoSlot) and (Event.Size > 0) then
  begin
    Inc(Found.Unknown);
    NewBlock(Event);
  end;
  if Caller.Moving = NoSlot then
    Exit;
  FreeBlock(Event); // likewise
  Slots.Add(Event.Address, Caller.Moving);
  if Event.Size > 0 then
  begin
    SetSize(Caller.Moving, Event.Size);
    Inc(Found.Counts.Resizes);
    Inc(Found.Counts.Bytes, Event.Size);
    if Plan <> nil then
      Plan.Add(Caller.Moving, pkResize, Event.Size);
  end;
  Caller.Moving := NoSlot;
end;

procedure TPlanner.Run(Target: TPlanWriter);
var
  Event: TEvent;
  Each: TCaller;
begin
  Plan := Target;
  for Each in Callers.Values do
  begin
    Each.Left := Each.Turns;
    Each.Moving := NoSlot;
    Each.MovingFrom := 0;
  end;
  Clear;
  while Reader.Next(Event) do
  begin
    if (Caller = nil) and (Event.Kind <> rkThread) then
      Reader.Fail('it does not begin with a thread');
    if not (Event.Kind in [rkThread, rkMoved]) then
      PutBack;
    case Event.Kind of
      rkThread: SetCaller(Event.Address);
      rkFree: FreeBlock(Event);
      rkMoving: TakeOut(Event.Address);
      rkMoved: Resize(Event);
    else
      NewBlock(Event);
    end;
  end;
  Found.Threads := Callers.Count;
  Found.HasEnd := Reader.HasEnd;
  Found.HasLimit := Reader.HasEnd and Reader.HasLimit;
end;

function ReadRecording(const Path: string; Plan: TStream): TRecorded;
var
  Reader: TReader;
  Planner: TPlanner;
  Writer: TPlanWriter;
begin
  Planner := nil;
  Writer := nil;
  Reader := TReader.Create(Path);
  try
    Planner := TPlanner.Create(Reader);
    Planner.Run(nil);
    Writer := TPlanWriter.Create(Plan);
    Planner.Run(Writer);
    Writer.Flush;
    Result := Planner.Found;
  finally
    Writer.Free;
    Planner.Free;
    Reader.Free;
  end;
end;

end.
