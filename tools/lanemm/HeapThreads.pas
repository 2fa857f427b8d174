/// The threads of a target's heaps: a heap knows the number of its thread only if a diagnosis asked
/// for it, but the thread's control block has both.
//
// x86_64 with glibc alone; elsewhere the numbers stay as they are. The control block begins with
// its own address; LaneMM keeps the heap in it at Process.ThreadSlot; the C library keeps the
// number of the thread in the block, too.
unit HeapThreads;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  HeapImages;

/// Sets ThreadNumber of the heaps that have none, and the names of all.
procedure NameThreads(Image: THeapImage);

implementation

uses
  SysUtils, Generics.Collections, Targets;

{$ifdef CPUX86_64}
const
  // Bytes of the control block; LaneMM's slot is in it.
  BlockBytes = $900;
  // Where it has the thread's number: `tid` of struct pthread in the C library.
  NumberOffset = $2D0;
  // Control blocks lie at the end of a thread's stack, or in a short mapping of the C library.
  ShortRegion = 1 shl 20;
  EndBytes = 1 shl 16;

type
  TFinder = class
    Image: THeapImage;
    Numbers: TDictionary<Cardinal, Boolean>; // of all threads
    Slot: UInt64;
    procedure FindNumber(Bytes: PByte; Count: NativeInt; Index: Integer);
    procedure SearchRegion(Region: PRegion);
    procedure SearchAll;
  end;

// Takes the number out of the control block at Bytes for the heap number Index, and for those that
// the thread has outside of the scope of a region.
procedure TFinder.FindNumber(Bytes: PByte; Count: NativeInt; Index: Integer);
var
  Depth: Integer;
begin
  if (NumberOffset + SizeOf(Cardinal) > Count)
    or not Numbers.ContainsKey(PCardinal(Bytes + NumberOffset)^) then
    Exit;
  Depth := Length(Image.Heaps); // the chain may change meanwhile
  repeat
    Image.Heaps[Index].Head.ThreadNumber := PCardinal(Bytes + NumberOffset)^;
    Dec(Depth);
  until not Image.Heaps[Index].IsOfRegion or (Depth = 0)
    or not Image.FindHeap(UInt64(Image.Heaps[Index].Head.Outer), Index);
end;

procedure TFinder.SearchRegion(Region: PRegion);
var
  Bytes: TBytes;
  First: UInt64;
  Offset, Count: NativeInt;
  Index: Integer;
begin
  First := Region^.First;
  if Region^.Limit - First > ShortRegion then
    First := Region^.Limit - EndBytes;
  SetLength(Bytes, Region^.Limit - First);
  Count := Image.Target.Read(First, Pointer(Bytes), Length(Bytes));
  Offset := 0;
  while Offset + NativeInt(Slot) + SizeOf(UInt64) <= Count do
  begin
    if (PUInt64(@Bytes[Offset])^ = First + UInt64(Offset))
      and Image.FindHeap(PUInt64(@Bytes[Offset + NativeInt(Slot)])^, Index)
      and (Image.Heaps[Index].Head.ThreadNumber = 0) and not Image.Heaps[Index].IsAbandoned
      and not Image.Heaps[Index].IsUnused then
      FindNumber(@Bytes[Offset], Count - Offset, Index);
    Inc(Offset, SizeOf(UInt64));
  end;
end;

procedure TFinder.SearchAll;
var
  Region: PRegion;
begin
  for Region in Image.Target.AllRegions do
    if Region^.IsWritable and Region^.IsReadable and (Region^.Path = '') then
      SearchRegion(Region);
end;

procedure FindNumbers(Image: THeapImage);
var
  Finder: TFinder;
  Thread: Cardinal;
begin
  if not Image.State^.HasFastSlot or (Image.State^.ThreadSlot > BlockBytes) then
    Exit;
  Finder := TFinder.Create;
  Finder.Image := Image;
  Finder.Slot := Image.State^.ThreadSlot;
  Finder.Numbers := TDictionary<Cardinal, Boolean>.Create;
  Image.Target.RefreshRegions;
  for Thread in Image.Target.Threads do
    Finder.Numbers.AddOrSetValue(Thread, True);
  Finder.SearchAll;
  Finder.Numbers.Free;
  Finder.Free;
end;
{$else}
procedure FindNumbers(Image: THeapImage);
begin
end;
{$endif}

procedure NameThreads(Image: THeapImage);
var
  Index: Integer;
begin
  FindNumbers(Image);
  // A program without threads.
  if Image.FindHeap(UInt64(Image.State^.MainHeap), Index) and not Image.State^.HasThreads then
    Image.Heaps[Index].Head.ThreadNumber := Image.Target.MainThread;
  for Index := 0 to High(Image.Heaps) do
    if (Image.Heaps[Index].Head.ThreadNumber <> 0) and not Image.Heaps[Index].IsAbandoned then
      Image.Heaps[Index].Name := Image.Target.ThreadName(Image.Heaps[Index].Head.ThreadNumber);
end;

end.
