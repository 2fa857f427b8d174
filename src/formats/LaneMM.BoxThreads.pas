/// What a black box says of threads, and lists of what has most bytes.
//
// Owns:       nothing; the records belong to LaneMM.BlackBox.
// Invariants: a list has its keys by bytes, most first, but for threads without any at its end.
// Callers:    the thread that has the black box.
unit LaneMM.BoxThreads;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text, LaneMM.OsFiles;

const
  /// Call sites with most bytes in use that a box has, as many with most at the peak, and as many
  /// threads.
  MostBoxKeys = 24;
  /// Threads whose bytes it adds up.
  MostBoxThreads = 256;

type
  /// Call sites or threads, those with most bytes first.
  TBoxTop = record
    Seconds: UInt64;                                  //< owner  when, in seconds since 1970
    Count: NativeUInt;                                //< owner  keys
    Keys: array[0..MostBoxKeys - 1] of NativeUInt;   //< owner  sites, or numbers of threads
    Bytes: array[0..MostBoxKeys - 1] of NativeUInt;  //< owner  their bytes
  end;
  /// The sampled bytes in use of a thread.
  TBoxThread = record
    Id: NativeUInt;    //< owner  its number; 0: an unused entry
    Bytes: NativeUInt; //< owner  bytes
  end;
  /// The threads that run.
  TBoxThreads = record
    Total: UInt64;     //< owner  all of them
    SeenMs: Cardinal;  //< owner  OsNowMs when they were counted
    Top: TBoxTop;      //< owner  those with most bytes, then any
    Names: array[0..MostBoxKeys - 1] of TThreadName;     //< owner  their names
    Sums: array[0..MostBoxThreads - 1] of TBoxThread;     //< owner  by number, a hash table
  end;

/// Adds a key with these bytes, if they are more than none, and it is one of those with most.
procedure BoxTopAdd(var Top: TBoxTop; Key, Bytes: NativeUInt);
/// Returns the index of a key; Top.Count: it is not there.
function BoxTopFind(const Top: TBoxTop; Key: NativeUInt): NativeUInt;
/// Adds bytes of a thread to Threads.Sums; where the table is crowded, none.
procedure BoxAddOfThread(var Threads: TBoxThreads; Id, Bytes: NativeUInt);
/// Lists the threads by Threads.Sums and reads their names. Asks the system which there are at most
/// once in as many milliseconds as there are.
procedure BoxFindThreads(var Threads: TBoxThreads);
/// Adds the threads to the state.
procedure BoxAddThreads(var Text: TText; const Threads: TBoxThreads);

implementation

uses
  LaneMM.Os, LaneMM.OsProcess, LaneMM.Json;

procedure BoxTopAdd(var Top: TBoxTop; Key, Bytes: NativeUInt);
var
  Index: NativeUInt;
begin
  if (Bytes = 0) or (Top.Count = MostBoxKeys) and (Bytes <= Top.Bytes[MostBoxKeys - 1]) then
    Exit;
  if Top.Count < MostBoxKeys then
    Inc(Top.Count);
  Index := Top.Count - 1;
  while (Index > 0) and (Top.Bytes[Index - 1] < Bytes) do
  begin
    Top.Keys[Index] := Top.Keys[Index - 1];
    Top.Bytes[Index] := Top.Bytes[Index - 1];
    Dec(Index);
  end;
  Top.Keys[Index] := Key;
  Top.Bytes[Index] := Bytes;
end;

function BoxTopFind(const Top: TBoxTop; Key: NativeUInt): NativeUInt;
begin
  Result := 0;
  while (Result < Top.Count) and (Top.Keys[Result] <> Key) do
    Inc(Result);
end;

procedure BoxAddOfThread(var Threads: TBoxThreads; Id, Bytes: NativeUInt);
const
  MostProbes = 8;
var
  Probe: NativeUInt;
  Sum: ^TBoxThread;
begin
  for Probe := Id to Id + MostProbes - 1 do
  begin
    Sum := @Threads.Sums[Probe mod MostBoxThreads];
    if Sum^.Id = 0 then
      Sum^.Id := Id;
    if Sum^.Id <> Id then
      Continue;
    Inc(Sum^.Bytes, Bytes);
    Exit;
  end;
end;

// Lists a thread behind those with bytes, where there is space.
procedure ListThread(var Top: TBoxTop; Id: NativeUInt);
begin
  if (Top.Count = MostBoxKeys) or (BoxTopFind(Top, Id) < Top.Count) then
    Exit;
  Top.Keys[Top.Count] := Id;
  Top.Bytes[Top.Count] := 0;
  Inc(Top.Count);
end;

procedure SeeThread(Id: Cardinal; Context: Pointer);
var
  Threads: ^TBoxThreads;
begin
  Threads := Context;
  Inc(Threads^.Total);
  ListThread(Threads^.Top, Id);
end;

procedure BoxFindThreads(var Threads: TBoxThreads);
var
  Before: TBoxTop;
  Index: NativeInt;
begin
  Before := Threads.Top;
  Threads.Top.Count := 0;
  for Index := 0 to MostBoxThreads - 1 do
    BoxTopAdd(Threads.Top, Threads.Sums[Index].Id, Threads.Sums[Index].Bytes);
  if Cardinal(OsNowMs - Threads.SeenMs) >= Threads.Total then
  begin
    Threads.SeenMs := OsNowMs;
    Threads.Total := 0;
    OsVisitThreads(SeeThread, @Threads);
  end
  else
    for Index := 0 to NativeInt(Before.Count) - 1 do
      ListThread(Threads.Top, Before.Keys[Index]);
  for Index := 0 to NativeInt(Threads.Top.Count) - 1 do
    OsThreadName(Threads.Top.Keys[Index], Threads.Names[Index]);
end;

procedure BoxAddThreads(var Text: TText; const Threads: TBoxThreads);
var
  Index: NativeInt;
begin
  JsonOpen(Text, 'threads', '[');
  for Index := 0 to NativeInt(Threads.Top.Count) - 1 do
  begin
    JsonOpenItem(Text);
    JsonAddNumber(Text, 'thread', Threads.Top.Keys[Index]);
    JsonAddText(Text, 'name', @Threads.Names[Index]);
    JsonAddNumber(Text, 'bytes', Threads.Top.Bytes[Index]);
    TextAdd(Text, '}');
  end;
  TextAdd(Text, ']');
end;

end.
