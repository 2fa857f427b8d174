/// Records the calls of all threads in a file, from which `lanemm replay` repeats them.
//
// Owns:       Recording: the recorder, in pages of its own; the file.
// Invariants: the lock gives the events one order. A free is recorded before the block is freed,
//             an allocation after it, a resize before and after it: in the file no two blocks in
//             use have one address. The file is opened for each part: a program that closes all
//             descriptors does no harm.
//             The lock has the number of its thread: calls of a handler that has interrupted it
//             are left in Late, and added by the next thread that takes the lock.
// Callers:    RecordCall: the entries of LaneMM.SeenCalls. RecordingStart: under the lock of
//             LaneMM.Watch. RecordingForget: the one thread of a child process.
// Progress:   blocking: threads wait for each other, and for the file. No routine uses the heap.
unit LaneMM.Recording;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.RecordFormat;

/// Creates the file that the setting names, unless it exists, and records from now on; the caller
/// then applies the entries. False, after a line on stderr, where that cannot be.
function RecordingStart: Boolean;
/// Ends the recording, if there is one, also in a signal handler: not where that has interrupted a
/// recorded call, or a thread holds the lock for long.
procedure RecordingEnd;
/// In a child process: the recording is that of the parent.
procedure RecordingForget;
/// Returns whether a recording is on.
function RecordingIsOn: Boolean;
/// Returns whether the last recording that began is one in the file that the setting names now.
/// Under the lock of LaneMM.Watch.
function RecordingIsOfSetting: Boolean;
/// Records an event of a block, if a recording is on; not for nil. Size and Alignment count where
/// the kind has them.
procedure RecordCall(Kind: TRecordKind; P: Pointer; Size, Alignment: NativeUInt);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.OsFiles, LaneMM.Lock,
  LaneMM.Threads, LaneMM.Text, LaneMM.SettingsState;

const
  EventBytes = 128; // more than an event, one of a thread before it, and the end
  MostLate = 16384; // calls that handlers can leave
  HasWaiters = 1;   // in Recording.Taker, see there

type
  // A call of a thread.
  TCall = record
    Kind: TRecordKind;
    Thread: Cardinal;
    P: Pointer;
    Size: NativeUInt;
    Alignment: NativeUInt;
  end;

  PRecorder = ^TRecorder;
  TRecorder = record
    Thread: Cardinal;       // of the last event
    Place: Int64;           // address of its block, divided by RecordUnit
    Counts: array[rkNew..rkMoved] of UInt64;
    Bytes: UInt64;          // sizes of all events
    Written: UInt64;        // bytes of the file
    Filled: NativeUInt;     // bytes of Events
    Room: NativeUInt;       // the part is written when it has these
    Path: TPath;
    Head: TRecordPartHead;
    Events: array[0..RecordPartBytes + EventBytes - 1] of Byte;
    LateCount: TAtomicWord; // calls that handlers left; above MostLate some are lost
    Late: array[0..MostLate - 1] of TCall;
  end;

  // The state of this unit.
  TRecording = record
    Taker: TAtomicWord;     // the lock, taken after that of LaneMM.Watch: the number of the thread
                            // that has it, times two, plus 1 if others may be parked; 0: none
    Recorder: TAtomicWord;  // a PRecorder; 0: no recording is on. Becomes 0 under the lock
    Setting: TPath;         // that of the last one that began
  end;

var
  Recording: TRecording;

function RecordingIsOn: Boolean;
begin
  Result := LoadAcquire(Recording.Recorder) <> 0;
end;

function RecordingIsOfSetting: Boolean;
var
  Index: Cardinal;
begin
  Index := 0;
  while (Settings.RecordPath[Index] = Recording.Setting[Index])
    and (Settings.RecordPath[Index] <> #0) do
    Inc(Index);
  Result := Settings.RecordPath[Index] = Recording.Setting[Index];
end;

// ---------------------------------------------------------------------------- the lock

// Takes the lock for the thread if it is free.
function TakeFree(Thread: Cardinal): Boolean; inline;
begin
  // Acquire: the writes of the last thread that had it. Pairs with Leave.
  Result := (LoadAcquire(Recording.Taker) = 0)
    and CompareAndSwap(Recording.Taker, 0, NativeUInt(Thread) * 2);
end;

// Returns whether the thread has the lock: the caller is the handler of a signal.
function IsOwn(Thread: Cardinal): Boolean;
begin
  Result := LoadAcquire(Recording.Taker) shr 1 = Thread;
end;

// TakeFree in a bounded spin: where many threads call, the lock is free for moments only.
function TakeSoon(Thread: Cardinal): Boolean;
var
  Turn: Cardinal;
begin
  Result := TakeFree(Thread);
  Turn := 0;
  while not Result and (Turn < Process.SpinLimit) do
  begin
    SpinHint;
    Inc(Turn);
    Result := TakeFree(Thread);
  end;
end;

// TakeSoon where the lock was taken; then the thread parks, as in LaneMM.Lock. False if the thread
// has it.
function Take(Thread: Cardinal): Boolean;
var
  Seen: NativeUInt;
begin
  if IsOwn(Thread) then
    Exit(False);
  if TakeSoon(Thread) then
    Exit(True);
  repeat
    Seen := LoadAcquire(Recording.Taker);
    if Seen = 0 then
    begin
      // As above. Others may be parked, too.
      if CompareAndSwap(Recording.Taker, 0, NativeUInt(Thread) * 2 or HasWaiters) then
        Exit(True);
    end
    // Pairs with the swap in Leave, which wakes a thread where it finds the mark.
    else if (Seen and HasWaiters <> 0)
      or CompareAndSwap(Recording.Taker, Seen, Seen or HasWaiters) then
      OsWait(Recording.Taker, Cardinal(Seen or HasWaiters));
  until False;
end;

procedure Leave;
begin
  // Release: the next one that takes it sees the writes of this one. Pairs with TakeFree and Take.
  if Swap(Recording.Taker, 0) and HasWaiters <> 0 then
    OsWake(Recording.Taker);
end;

// ---------------------------------------------------------------------------- the file

procedure AddNumber(var Recorder: TRecorder; Number: UInt64);
begin
  while Number > 127 do
  begin
    Recorder.Events[Recorder.Filled] := Byte(Number) or 128;
    Inc(Recorder.Filled);
    Number := Number shr 7;
  end;
  Recorder.Events[Recorder.Filled] := Byte(Number);
  Inc(Recorder.Filled);
end;

// Under the lock: the recording is over.
procedure Close(Recorder: PRecorder);
begin
  Settings.Values[opRecord] := 0;
  // Release: the setting before the end, after which another recording may set it. Pairs with
  // RecordingIsOn.
  StoreRelease(Recording.Recorder, 0);
  OsReleasePages(Recorder, SizeOf(TRecorder));
end;

// Appends the events as a part to the file. False, after a line and the end, where that fails.
function WritePart(Recorder: PRecorder): Boolean;
var
  Handle: TOsFile;
  Size: NativeUInt;
begin
  Size := AlignUp(Recorder^.Filled, SizeOf(UInt64));
  FillChar(Recorder^.Events[Recorder^.Filled], Size - Recorder^.Filled, 0);
  Recorder^.Head.Bytes := Recorder^.Filled;
  Recorder^.Head.Checksum := Fnv1a(FnvStart, @Recorder^.Events, Size);
  Recorder^.Filled := 0;
  Inc(Size, SizeOf(TRecordPartHead));
  Inc(Recorder^.Written, Size);
  Handle := OsFileAppend(@Recorder^.Path);
  Result := (Handle >= 0) and OsFileWrite(Handle, @Recorder^.Head, Size);
  if Handle >= 0 then
    OsFileClose(Handle);
  if Result then
    Exit;
  TextSay('the recording ends: ', @Recorder^.Path, ' cannot be written');
  Close(Recorder);
end;

procedure Finish(Recorder: PRecorder; Reason: TRecordEnd);
var
  Kind: TRecordKind;
begin
  AddNumber(Recorder^, Ord(Reason) * RecordKinds + Ord(rkEnd));
  for Kind := Low(Recorder^.Counts) to High(Recorder^.Counts) do
    AddNumber(Recorder^, Recorder^.Counts[Kind]);
  AddNumber(Recorder^, Recorder^.Bytes);
  if not WritePart(Recorder) then
    Exit;
  if Reason = reLimit then
    TextSay('the recording ends, it is as long as `record:most`: ', @Recorder^.Path, '');
  Close(Recorder);
end;

// Sets the room of the next part, so that the file can end within its limit; returns whether there
// is any.
function HasRoom(var Recorder: TRecorder): Boolean;
var
  Most, Used: UInt64;
begin
  Recorder.Room := RecordPartBytes;
  Most := Settings.Values[opRecordMost];
  Used := Recorder.Written + 2 * (SizeOf(TRecordPartHead) + EventBytes); // the end is a part, too
  Result := (Most = 0) or (Used < Most);
  if (Used < Most) and (Most - Used < Recorder.Room) then
    Recorder.Room := Most - Used;
end;

// ---------------------------------------------------------------------------- events

// Adds a call. False where the recording has ended, at its limit or by a failure.
function AddCall(Recorder: PRecorder; const Call: TCall): Boolean;
var
  Distance: Int64;
begin
  if Recorder^.Thread <> Call.Thread then
  begin
    Recorder^.Thread := Call.Thread;
    AddNumber(Recorder^, UInt64(Call.Thread) * RecordKinds + Ord(rkThread));
  end;
  Distance := (Int64(NativeUInt(Call.P) div RecordUnit) - Recorder^.Place) * 2;
  Inc(Recorder^.Place, Distance div 2);
  if Distance < 0 then
    Distance := -1 - Distance;
  AddNumber(Recorder^, UInt64(Distance) * RecordKinds + Ord(Call.Kind));
  Inc(Recorder^.Counts[Call.Kind]);
  if Call.Kind = rkAligned then
    AddNumber(Recorder^, FloorLog2(Call.Alignment));
  if not (Call.Kind in [rkFree, rkMoving]) then
  begin
    AddNumber(Recorder^, Call.Size);
    Inc(Recorder^.Bytes, Call.Size);
  end;
  if (Recorder^.Filled >= Recorder^.Room) and WritePart(Recorder) and not HasRoom(Recorder^) then
    Finish(Recorder, reLimit);
  Result := RecordingIsOn;
end;

// Leaves a call of a handler to the next thread that takes the lock. A handler that interrupts this
// one leaves its calls behind it.
procedure AddLate(Recorder: PRecorder; const Call: TCall);
var
  Index: NativeUInt;
begin
  Index := FetchAdd(Recorder^.LateCount, 1);
  if Index < MostLate then
    Recorder^.Late[Index] := Call;
end;

// Under the lock: adds the calls that handlers have left. False where the recording has ended.
function AddAllLate(Recorder: PRecorder): Boolean;
var
  Index: NativeUInt;
begin
  Result := True;
  Index := 0;
  // A look first, which costs no locked operation; acquire as in TakeFree.
  if LoadAcquire(Recorder^.LateCount) = 0 then
    Exit;
  // A handler that interrupts this loop leaves more; they end with it.
  while Result and not CompareAndSwap(Recorder^.LateCount, Index, 0) do
  begin
    Result := Index < MostLate;
    if Result then
      Result := AddCall(Recorder, Recorder^.Late[Index])
    else
    begin
      TextSay('the recording ends, the handler of a signal made too many calls: ', @Recorder^.Path,
        '');
      Finish(Recorder, reEnd);
    end;
    Inc(Index);
  end;
end;

procedure RecordCall(Kind: TRecordKind; P: Pointer; Size, Alignment: NativeUInt);
var
  Recorder: PRecorder;
  Call: TCall;
begin
  if (P = nil) or not RecordingIsOn then
    Exit;
  LockRecover; // in a child process this forgets the recording
  Call.Kind := Kind;
  Call.Thread := ThreadNumber;
  Call.P := P;
  Call.Size := Size;
  Call.Alignment := Alignment;
  if TakeFree(Call.Thread) or Take(Call.Thread) then
  begin
    Recorder := PRecorder(LoadAcquire(Recording.Recorder));
    if (Recorder <> nil) and AddAllLate(Recorder) then
      AddCall(Recorder, Call);
    Leave;
    Exit;
  end;
  Recorder := PRecorder(LoadAcquire(Recording.Recorder));
  if Recorder <> nil then
    AddLate(Recorder, Call);
end;

// ---------------------------------------------------------------------------- start and end

// Makes the path of the setting absolute, with the number of the process for `%p`, and behind it
// Turn from 2 on. Returns whether it has that number.
function SetPath(out Path: TPath; Turn: Cardinal): Boolean;
var
  Text: TText;
  Sign: PAnsiChar;
begin
  Result := False;
  TextOpenAt(Text, @Path, SizeOf(Path));
  Sign := @Settings.RecordPath;
  TextAddFolder(Text, Sign);
  while Sign^ <> #0 do
    if TextBegins(Sign, '%p') then
    begin
      TextAddNumber(Text, OsProcessId);
      if Turn > 1 then
        TextAddForm(Text, '-%d', Turn);
      Result := True;
      Inc(Sign, 2);
    end
    else
    begin
      TextAdd(Text, Sign^);
      Inc(Sign);
    end;
end;

function Exists(const Path: TPath): Boolean;
var
  Handle: TOsFile;
begin
  Handle := OsFileOpen(@Path);
  Result := Handle >= 0;
  if Result then
    OsFileClose(Handle);
end;

// Creates the file; false, after a line, where it exists or cannot be written.
function CreateFile(const Recorder: TRecorder): Boolean;
const
  Magic: PAnsiChar = RecordMagic;
  Refused: ShortString = 'nothing is recorded: ';
var
  Handle: TOsFile;
  Head: TRecordHead;
begin
  if Exists(Recorder.Path) then
  begin
    TextSay(Refused, @Recorder.Path, ' exists; %p in a name is the number of the process');
    Exit(False);
  end;
  Move(Magic^, Head.Magic, SizeOf(Head.Magic));
  Head.Layout := RecordLayout;
  Head.IsMalloc := Ord(Process.IsMalloc);
  Handle := OsFileCreate(@Recorder.Path);
  Result := (Handle >= 0) and OsFileWrite(Handle, @Head, SizeOf(Head));
  if Handle >= 0 then
    OsFileClose(Handle);
  if not Result then
    TextSay(Refused, @Recorder.Path, ' cannot be written');
end;

function RecordingStart: Boolean;
const
  MostTurns = 1000;
var
  Recorder: PRecorder;
  Turn: Cardinal;
begin
  Recorder := OsTakePages(SizeOf(TRecorder)); // zeros
  if Recorder = nil then
    Exit(False);
  Turn := 1;
  // A program that the process was before, such as `nice`, may have made a file, too.
  while SetPath(Recorder^.Path, Turn) and Exists(Recorder^.Path) and (Turn < MostTurns) do
    Inc(Turn);
  Recorder^.Written := SizeOf(TRecordHead);
  HasRoom(Recorder^);
  Result := CreateFile(Recorder^);
  Recording.Setting := Settings.RecordPath;
  if Result then
    // Release: the recorder before its address. Pairs with RecordingIsOn.
    StoreRelease(Recording.Recorder, NativeUInt(Recorder))
  else
    OsReleasePages(Recorder, SizeOf(TRecorder));
end;

procedure RecordingEnd;
const
  PatienceMs = 1000;
var
  Recorder: PRecorder;
  Thread, Round: Cardinal;
  Pause: TAtomicWord;
begin
  LockRecover;
  Thread := ThreadNumber;
  Pause := 0;
  for Round := 1 to PatienceMs do
  begin
    if not RecordingIsOn or IsOwn(Thread) then
      Exit;
    if TakeSoon(Thread) then
    begin
      Recorder := PRecorder(LoadAcquire(Recording.Recorder));
      if (Recorder <> nil) and AddAllLate(Recorder) then
        Finish(Recorder, reEnd);
      Leave;
      Exit;
    end;
    OsWaitMs(Pause, 0, 1);
  end;
end;

procedure RecordingForget;
begin
  StoreRelease(Recording.Recorder, 0);
  StoreRelease(Recording.Taker, 0);
end;

end.
