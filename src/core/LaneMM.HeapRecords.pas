/// Heap records: where they come from, and the stacks on which those of no thread wait.
//
// Owns:       Process.Heaps, FreshHeaps; THeap.NextHeap, NextUnused, HomeShard.
// Invariants: a record stays one for ever. It is in Process.Heaps from its first use on, and on at
//             most one stack.
// Stacks:     threads pop one record: beside the first record the word counts its changes, so that
//             a pop which was overtaken fails (ABA).
// Callers:    any thread.
// Progress:   lock-free but for the pages of new records.
// Source:     the stack: Treiber, "Systems Programming: Coping with Parallelism", IBM RJ 5118
//             (1986), with the count of IBM System/370 "Principles of Operation", appendix A.
unit LaneMM.HeapRecords;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

/// Makes an all-zero record an empty heap.
procedure HeapFormat(Heap: PHeap);
/// Returns a record that was never used, an empty heap; nil without memory.
function HeapRecordNew: PHeap;
/// Pushes a heap of no thread on a stack: Process.UnusedHeaps, or one of VacantHeaps.
procedure HeapPush(var Stack: TAtomicWord; Heap: PHeap);
/// Takes a heap from a stack; nil if there is none.
function HeapPop(var Stack: TAtomicWord): PHeap;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os;

const
  FreshHeapsSize = SliceSize;
  // The part of a stack's word that counts its changes; the rest is the address of the first
  // record.
  CountMask = NativeUInt(1) shl HeapWordCountBits - 1;

procedure HeapFormat(Heap: PHeap);
var
  SizeClass: Cardinal;
begin
  for SizeClass := 0 to SizeClassCount - 1 do
    Heap^.Current[SizeClass] := @Process.EmptySpan;
end;

// Returns the bytes from Fresh on, a value of Process.FreshHeaps, that are not used yet.
function FreshBytes(Fresh: NativeUInt): NativeUInt;
begin
  // The pages end at a multiple of their size.
  Result := AlignUp(Fresh, FreshHeapsSize) - Fresh;
end;

// Takes the next record of the pages at hand; nil if they are used up.
function TakeFresh: PHeap;
var
  Fresh: NativeUInt;
begin
  repeat
    Fresh := LoadAcquire(Process.FreshHeaps);
    if FreshBytes(Fresh) < SizeOf(THeap) then
      Exit(nil);
  until CompareAndSwap(Process.FreshHeaps, Fresh, Fresh + SizeOf(THeap));
  Result := PHeap(Fresh);
end;

// Takes pages for further records; of several threads at once, one does. Returns false without
// memory.
function AddFreshPages: Boolean;
var
  Fresh: NativeUInt;
  Pages: Pointer;
begin
  Fresh := LoadAcquire(Process.FreshHeaps);
  if FreshBytes(Fresh) >= SizeOf(THeap) then
    Exit(True); // another thread has added pages
  Pages := OsTakeAnywhere(2 * FreshHeapsSize); // one half of which begins where it has to
  Result := Pages <> nil;
  // The first place stays unused: no record begins where those of other pages end.
  if Result and not CompareAndSwap(Process.FreshHeaps, Fresh,
    AlignUp(NativeUInt(Pages), FreshHeapsSize) + SizeOf(THeap)) then
    OsReleasePages(Pages, 2 * FreshHeapsSize);
end;

// Adds a new record to the list of all heaps.
procedure Publish(Heap: PHeap);
var
  First: NativeUInt;
begin
  HeapFormat(Heap);
  repeat
    First := LoadAcquire(Process.Heaps);
    Heap^.NextHeap := PHeap(First);
    Heap^.HomeShard := 1;
    if First <> 0 then
      Heap^.HomeShard := Heap^.NextHeap^.HomeShard and (Process.ShardCount - 1) + 1;
    // Release: the record before the list. Pairs with ThreadsFirstHeap.
  until CompareAndSwap(Process.Heaps, First, NativeUInt(Heap));
  // Of the second thread: it may run when the process ends.
  if OsMayUnload and (First <> 0) and (Heap^.NextHeap^.NextHeap <> nil)
    and (Heap^.NextHeap^.NextHeap^.NextHeap = nil) then
    OsExitWatch;
end;

function HeapRecordNew: PHeap;
begin
  repeat
    Result := TakeFresh;
  until (Result <> nil) or not AddFreshPages;
  if Result <> nil then
    Publish(Result);
end;

// ---------------------------------------------------------------------------- stacks

function StackWord(First: PHeap; Last: TAtomicWord): TAtomicWord;
begin
  Result := NativeUInt(First) shl HeapWordShift or (Last + 1) and CountMask;
end;

procedure HeapPush(var Stack: TAtomicWord; Heap: PHeap);
var
  Word: TAtomicWord;
begin
  repeat
    Word := LoadAcquire(Stack);
    Heap^.NextUnused := FirstHeapOf(Word);
    // Release: what the last thread wrote to the record and its spans. Pairs with HeapPop.
  until CompareAndSwap(Stack, Word, StackWord(Heap, Word));
end;

function HeapPop(var Stack: TAtomicWord): PHeap;
var
  Word: TAtomicWord;
begin
  repeat
    Word := LoadAcquire(Stack);
    Result := FirstHeapOf(Word);
    if Result = nil then
      Exit;
    // If another thread takes the record now, NextUnused is read too late: the count has changed.
  until CompareAndSwap(Stack, Word, StackWord(Result^.NextUnused, Word));
end;

end.
