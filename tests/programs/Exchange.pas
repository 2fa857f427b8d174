/// Threads that get, resize and free blocks, and pass them on to each other.
unit Exchange;

{$mode delphi}{$pointermath on}

interface

const
  SlotCount = 64;
  MostThreads = 8;

type
  /// A block that says how long it is and what it holds.
  PParcel = ^TParcel;
  TParcel = record
    Size: NativeUInt;
    Key: NativeUInt;
  end;

/// A parcel of Size bytes or little more.
function ParcelGet(Size: NativeUInt; Key: Cardinal): PParcel;
/// Whether the contents are as they were.
function ParcelIsWhole(Parcel: PParcel): Boolean;
/// Checks and frees a parcel; nil is allowed.
procedure ParcelFree(Parcel: PParcel);
/// Puts Parcel into the slot and takes out what is there. Any thread.
function ParcelSwap(Slot: Cardinal; Parcel: PParcel): PParcel;

/// Works TurnCount turns with parcels, many of which go to or come from other threads.
procedure ExchangeParcels(Seed, TurnCount: Cardinal);
/// Frees what is in the slots.
procedure ExchangeEmpty;
/// Has Count threads, at most MostThreads, do that to their ends, and empties the slots. Calls
/// Meanwhile before it waits for each of them.
procedure ExchangeInThreads(Count: Cardinal; Meanwhile: TProcedure = nil);

implementation

uses
  Promises;

var
  Slots: array[0..SlotCount - 1] of Pointer;

function ParcelGet(Size: NativeUInt; Key: Cardinal): PParcel;
begin
  GetMem(Result, Size + SizeOf(TParcel));
  Result^.Size := Size;
  Result^.Key := Key;
  Fill(PByte(Result + 1), Size, Key);
end;

function ParcelIsWhole(Parcel: PParcel): Boolean;
begin
  Result := (MemSize(Parcel) >= Parcel^.Size + SizeOf(TParcel))
    and IsFilled(PByte(Parcel + 1), Parcel^.Size, Parcel^.Key);
end;

procedure ParcelFree(Parcel: PParcel);
begin
  if Parcel = nil then
    Exit;
  Expect(ParcelIsWhole(Parcel), 'a parcel keeps its contents');
  FreeMem(Parcel);
end;

function ParcelSwap(Slot: Cardinal; Parcel: PParcel): PParcel;
begin
  Result := InterlockedExchange(Slots[Slot mod SlotCount], Parcel);
end;

procedure Resize(var Parcel: PParcel; Size: NativeUInt);
begin
  ReallocMem(Parcel, Size + SizeOf(TParcel));
  if Parcel^.Size > Size then
    Parcel^.Size := Size and not 7;
  Expect(ParcelIsWhole(Parcel), 'a parcel keeps its contents when it is resized');
  Parcel^.Size := Size;
  Fill(PByte(Parcel + 1), Size, Parcel^.Key);
end;

function SomeSize(var Seed: Cardinal): NativeUInt;
begin
  case NextRandom(Seed, 64) of
    0: Result := NextRandom(Seed, 300000);
    1..4: Result := NextRandom(Seed, 30000);
  else
    Result := NextRandom(Seed, 500);
  end;
end;

procedure ExchangeParcels(Seed, TurnCount: Cardinal);
var
  Mine: array[0..31] of PParcel;
  Turn, Index: Cardinal;
begin
  FillChar(Mine, SizeOf(Mine), 0);
  for Turn := 1 to TurnCount do
  begin
    Index := NextRandom(Seed, Length(Mine));
    case NextRandom(Seed, 4) of
      0: Mine[Index] := ParcelSwap(NextRandom(Seed, SlotCount), Mine[Index]);
      1:
        if Mine[Index] <> nil then
          Resize(Mine[Index], SomeSize(Seed));
    else
      ParcelFree(Mine[Index]);
      Mine[Index] := ParcelGet(SomeSize(Seed), Turn);
    end;
  end;
  for Index := 0 to High(Mine) do
    ParcelFree(Mine[Index]);
end;

procedure ExchangeEmpty;
var
  Index: Cardinal;
begin
  for Index := 0 to SlotCount - 1 do
    ParcelFree(ParcelSwap(Index, nil));
end;

function Work(Seed: Pointer): PtrInt;
begin
  ExchangeParcels(Cardinal(PtrUInt(Seed)), 20000);
  Result := 0;
end;

procedure ExchangeInThreads(Count: Cardinal; Meanwhile: TProcedure);
var
  Threads: array[1..MostThreads] of TThreadID;
  Index: Cardinal;
begin
  for Index := 1 to Count do
    Threads[Index] := BeginThread(Work, Pointer(PtrUInt(Index)));
  for Index := 1 to Count do
  begin
    if Assigned(Meanwhile) then
      Meanwhile;
    Expect(Threads[Index] <> TThreadID(0), 'a thread starts');
    WaitForThreadTerminate(Threads[Index], 0);
  end;
  ExchangeEmpty;
end;

end.
