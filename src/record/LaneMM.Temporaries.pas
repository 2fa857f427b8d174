/// Numbers the allocations of a thread near its samples: shows how many came before a free.
//
// Owns:       Observe.Windows; THeap.SampleIn while a window is open.
// Invariants: a window is open for the temporary=N setting's N allocations after a sample and one
//             more: each of them enters the sampler, which numbers it. Then THeap.SampleIn has
//             what is left of the distance to the next sample, and allocations are not numbered.
//             So the numbers of two samples, and of a sample and a free, differ by the allocations
//             between them, or by more than N, as these are.
//             An entry of the table belongs to a heap permanently; the thread that has the heap is
//             the only one that changes the rest of the entry.
// Callers:    WindowsStart: under no lock, any number of times. The others: the thread of Heap.
// Progress:   lock-free: a thread that loses an entry to another one tries the next.
unit LaneMM.Temporaries;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types;

/// Creates the table; returns whether it exists.
function WindowsStart: Boolean;
/// Numbers an allocation of Size bytes, for which SampleIn has become negative. Returns True if it
/// is one in a window, and not to be sampled; SampleIn is set then.
function WindowPasses(Heap: PHeap; Size: NativeUInt): Boolean;
/// Opens a window at a sample that was numbered by WindowPasses; SampleIn is the distance to the
/// next one.
procedure WindowOpen(Heap: PHeap);
/// Sets the mean of the distance that begins; returns that of the one before, Next if it is unknown
/// or the table is full.
function WindowSwapMean(Heap: PHeap; Next: NativeUInt): NativeUInt;
/// Returns the number of the last allocation that was numbered; 0 when the table is full.
function WindowNumber(Heap: PHeap): NativeUInt;

implementation

uses
  LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.SettingsState, LaneMM.ObserveState;

const
  TableLength = 4096;

type
  TWindow = record
    Heap: TAtomicWord;    //< shared  the heap of the thread; 0: unused
    Number: NativeUInt;   //< owner   of the last allocation that was numbered
    Left: NativeUInt;     //< owner   allocations to number; 0: the window is closed
    Distance: NativeInt;  //< owner   while it is open, bytes to the next sample
    Mean: NativeUInt;     //< owner   average of the distance to it when that began; 0: none yet
  end;
  PWindow = ^TWindow;

const
  TableBytes = TableLength * SizeOf(TWindow);

function WindowsStart: Boolean;
begin
  Result := OsTakeTable(Observe.Windows, TableBytes); // pairs with WindowOf
end;

// Returns the entry of the heap, a new one if needed; nil when the table is full.
function WindowOf(Heap: PHeap): PWindow;
var
  Index, Probe: NativeUInt;
  Found: NativeUInt;
begin
  Index := NativeUInt(Heap) div SizeOf(THeap) * SpreadFactor shr 16;
  for Probe := 0 to TableLength - 1 do
  begin
    Result := PWindow(LoadAcquire(Observe.Windows)) + (Index + Probe) mod TableLength;
    Found := LoadAcquire(Result^.Heap);
    if (Found = 0) and CompareAndSwap(Result^.Heap, 0, NativeUInt(Heap)) then
      Exit;
    if Found = NativeUInt(Heap) then
      Exit;
  end;
  Result := nil;
end;

function WindowPasses(Heap: PHeap; Size: NativeUInt): Boolean;
var
  Window: PWindow;
begin
  Window := WindowOf(Heap);
  if Window = nil then
    Exit(False);
  Inc(Window^.Number);
  if Window^.Left = 0 then
    Exit(False);
  Dec(Window^.Left);
  Dec(Window^.Distance, Size);
  Result := Window^.Distance >= 0;
  if not Result then
    Window^.Left := 0
  else if Window^.Left = 0 then
    Heap^.SampleIn := Window^.Distance
  else
    Heap^.SampleIn := -1;
end;

procedure WindowOpen(Heap: PHeap);
var
  Window: PWindow;
begin
  Window := WindowOf(Heap);
  if Window = nil then
    Exit;
  Window^.Left := Settings.Values[opTemporary] + 1;
  Window^.Distance := Heap^.SampleIn;
  Heap^.SampleIn := -1;
end;

function WindowSwapMean(Heap: PHeap; Next: NativeUInt): NativeUInt;
var
  Window: PWindow;
begin
  Result := 0;
  Window := WindowOf(Heap);
  if Window <> nil then
  begin
    Result := Window^.Mean;
    Window^.Mean := Next;
  end;
  if Result = 0 then
    Result := Next;
end;

function WindowNumber(Heap: PHeap): NativeUInt;
var
  Window: PWindow;
begin
  Window := WindowOf(Heap);
  if Window = nil then
    Exit(0);
  Result := Window^.Number;
end;

end.
