/// The black box: the state of the process, written into a mapped file while it runs.
//
// Owns:       Observe.Box, BoxBusy; Process.BoxSlices; the file, and the record behind Observe.Box.
// Invariants: what is stored in the file stays there when the process is killed: the system has
//             its pages. The halves are written in turn, see LaneMM.BoxFormat. The record and the
//             file belong to the thread that has set BoxBusy; one that finds it set goes on.
//             The file is the process's own: a child process writes none while its parent runs, and
//             makes one of its own after that (a daemon).
//             Events lie in the file from the moment of their report on.
// Callers:    BlackBoxStart: under the lock of LaneMM.Watch. BlackBoxForget: the one thread of a
//             child process. Hooks.Box, Report.Keep: any thread that holds no lock.
// Progress:   BlackBoxEnd waits, 100 ms at most. None uses the heap.
// Limits:     another process of this user that shortens the file ends this one by SIGBUS.
unit LaneMM.BlackBox;

{$I ../LaneMM.inc}

interface

/// Makes the file, unless there is one, and has it written from now on. False, after a line on
/// stderr, where it cannot be made.
function BlackBoxStart: Boolean;
/// At the end of the process: deletes the file if the exit code is 0; else, or where it cannot be
/// deleted because the program has given up its user, writes it for the last time.
procedure BlackBoxEnd(Code: LongInt);
/// In a child process: the file is that of the parent.
procedure BlackBoxForget;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Atomic, LaneMM.Os, LaneMM.OsProcess,
  LaneMM.OsFiles, LaneMM.Stats, LaneMM.Text, LaneMM.ReportState, LaneMM.LogFile,
  LaneMM.SettingsState, LaneMM.ObserveState, LaneMM.BoxFormat, LaneMM.OsGroup, LaneMM.BoxState;

const
  // A new peak is written when it is one part in this many above the last one.
  PeakShare = 16;
  LeastLookMs = 10000; // between two looks for modules
  LeastWriteMs = 20;   // between two states
  LeastGroupMs = 200;  // between two looks at the container

type
  PBlackBox = ^TBlackBox;
  TBlackBox = record
    Map: PBox;
    ProcessId: Cardinal;
    Number: UInt64;          // of the half that was written last
    Events: TAtomicWord;     // reports so far
    WrittenMs: Cardinal;     // OsNowMs then
    State: TBoxState;
    Path: TPath;             // of the file
  end;

// ---------------------------------------------------------------------------- writing

// Begins to write a part: until PartEnd it is none.
procedure PartBegin(var Mark: TBoxMark);
begin
  Mark.Number := 0;
  ReleaseFence; // before anything else changes in it
end;

// Makes the part whole; the text behind Mark has Length characters.
procedure PartEnd(var Mark: TBoxMark; Number, Seconds, Length: UInt64);
begin
  Mark.Length := Length;
  Mark.Seconds := Seconds;
  Mark.Checksum := BoxChecksum(Mark, Number);
  ReleaseFence; // all of it before the number
  Mark.Number := Number;
end;

procedure NotePeak(var Box: TBlackBox; Seconds: UInt64);
begin
  if Process.PeakSlices > Box.State.PeakSlices then
  begin
    Box.State.PeakSlices := Process.PeakSlices;
    Box.State.PeakSeconds := Seconds;
  end;
  Process.BoxSlices := Box.State.PeakSlices + Box.State.PeakSlices div PeakShare + 1;
end;

// Writes the half that is not the last one.
procedure WriteHalf(var Box: TBlackBox; const Status: TStatus);
var
  Half: PBoxHalf;
  Text: TText;
begin
  Half := @Box.Map^.Halves[(Box.Number + 1) mod 2];
  PartBegin(Half^.Mark);
  TextOpenAt(Text, @Half^.Text, BoxTextBytes);
  BoxAddState(Text, Box.State, Status);
  PartEnd(Half^.Mark, Box.Number + 1, Box.State.Last.Seconds, Text.Length);
  Inc(Box.Number);
  Box.WrittenMs := OsNowMs;
end;

// Returns whether the stack of the calling thread is surely large enough for a look for modules or
// at the container.
function HasRoom: Boolean;
begin
  Result := (OsThreadId = Process.PurgeThread) or OsThreadIsMain;
end;

procedure WriteState(var Box: TBlackBox);
var
  Status: TStatus;
  Now: TBoxPoint;
begin
  StatusRead(Status);
  Now.Seconds := OsUnixSeconds;
  Now.Used := Status.UsedBytes;
  Now.Committed := Status.CommittedBytes;
  Now.Allocated := LoadAcquire(Observe.AllocatedBytes);
  BoxNoteTime(Box.State, Now.Seconds);
  if (Box.Number > 0) and (Box.State.Ended = 0) and (Now.Used = Box.State.Last.Used)
    and (Now.Committed = Box.State.Last.Committed)
    and (Now.Allocated = Box.State.Last.Allocated) then
    Exit;
  NotePeak(Box, Now.Seconds);
  BoxNotePoint(Box.State, Now);
  if HasRoom and Box.State.LacksModule
    and (Cardinal(OsNowMs - Box.State.LookedMs) >= LeastLookMs) then
    BoxFindModules(Box.State);
  if HasRoom and (Cardinal(OsNowMs - Box.State.GroupMs) >= LeastGroupMs) then
  begin
    Box.State.GroupMs := OsNowMs;
    OsGroupRead(nil, nil, Box.State.Group);
  end;
  Box.State.Last := Now;
  WriteHalf(Box, Status);
end;

// Keeps the first characters of a report. Two threads that write the same event at once leave none:
// the checksum is of neither.
procedure KeepEvent(Kind: TEventKind; Text: PAnsiChar; Length: NativeUInt);
var
  Box: PBlackBox;
  Map: PBox;
  Event: PBoxEvent;
  Number: NativeUInt;
begin
  Box := PBlackBox(LoadAcquire(Observe.Box));
  if (Box = nil) or (Box^.ProcessId <> OsProcessId) then
    Exit;
  Map := Box^.Map;
  if Map = nil then
    Exit;
  Number := FetchAdd(Box^.Events, 1) + 1; // any order: a count
  Event := @Map^.Events[Number mod BoxEventCount];
  if Length > BoxEventTextBytes then
    Length := TextWhole(Text, BoxEventTextBytes);
  PartBegin(Event^.Mark);
  Move(Text^, Event^.Text, Length);
  PartEnd(Event^.Mark, Number, OsUnixSeconds, Length);
end;

// ---------------------------------------------------------------------------- the file

// Stores the path of the file: what the setting names, or the name of the program, in a folder that
// it names or that of the logs; then the number of the process.
function SetPath(var Box: TBlackBox): Boolean;
var
  Path, Ending: TText;
  Characters, Folder: TPath;
  Suffix: ShortString;
  Named: PAnsiChar;
begin
  Result := OsProgramName(@Characters, SizeOf(Characters)) > 0;
  if not Result then
    Exit;
  TextOpenAt(Path, @Box.Path, SizeOf(Box.Path));
  TextOpenAt(Ending, @Suffix[1], High(Suffix));
  TextAddForm(Ending, '.%u.lanebox', Box.ProcessId);
  Suffix[0] := AnsiChar(Ending.Length);
  Named := @Settings.BoxPath;
  if Named^ = #0 then
    Exit(LogFileNewPath(Suffix, Path) and not Path.IsCut);
  TextAddFolder(Path, Named);
  TextAddChars(Path, Named);
  if (OsFolderPath(Named, @Folder, SizeOf(Folder)) > 0)
    and not (Path.Start[Path.Length - 1] in OsSeparators) then
    TextAdd(Path, '/');
  if (Path.Length > 0) and (Path.Start[Path.Length - 1] in OsSeparators) then
    TextAddChars(Path, TextFileName(@Characters));
  TextAdd(Path, Suffix);
  Result := not Path.IsCut;
end;

// Makes the file, of zeros: the system has then given it its space.
function MakeFile(const Box: TBlackBox): Boolean;
var
  Handle: TOsFile;
  Zeros: array[0..OsPageSize - 1] of Byte;
  Index: Cardinal;
begin
  Handle := OsFileCreate(@Box.Path);
  if Handle < 0 then
    Exit(False);
  FillChar(Zeros, SizeOf(Zeros), 0);
  Result := True;
  for Index := 1 to BoxBytes div SizeOf(Zeros) do
    Result := Result and OsFileWrite(Handle, @Zeros, SizeOf(Zeros));
  OsFileClose(Handle);
  if not Result then
    OsFileDelete(@Box.Path);
end;

// Makes the file of this process and maps it.
function OpenBox(var Box: TBlackBox): Boolean;
const
  Magic: PAnsiChar = BoxMagic;
begin
  FillChar(Box, SizeOf(Box), 0);
  Box.ProcessId := OsProcessId;
  if SetPath(Box) and MakeFile(Box) then
  begin
    Box.Map := OsFileShare(@Box.Path, BoxBytes);
    if Box.Map = nil then
      OsFileDelete(@Box.Path);
  end;
  Result := Box.Map <> nil;
  if not Result then
  begin
    TextSay('no black box: ', @Box.Path, ' cannot be written');
    Exit;
  end;
  BoxFindModules(Box.State);
  Box.Map^.Head.Layout := BoxLayout;
  Box.Map^.Head.HalfBytes := SizeOf(TBoxHalf);
  Box.Map^.Head.ProcessId := Box.ProcessId;
  Box.Map^.Head.StartedSeconds := OsUnixSeconds;
  ReleaseFence; // the head before its first bytes
  Move(Magic^, Box.Map^.Head.Magic, SizeOf(Box.Map^.Head.Magic));
  WriteState(Box);
end;

// Returns whether the file is this process's own; makes one in a child process whose parent has
// ended.
function IsOwn(var Box: TBlackBox): Boolean;
begin
  if Box.Map = nil then
    Exit(False);
  if Box.ProcessId = OsProcessId then
    Exit(True);
  Result := HasRoom and not OsParentIs(Box.ProcessId);
  if not Result then
    Exit;
  OsFileUnmap(Box.Map, BoxBytes);
  Result := OpenBox(Box);
end;

// Writes the state if it has changed. While the last one is young, a later call does.
procedure WriteBox;
var
  Box: PBlackBox;
begin
  Box := PBlackBox(LoadAcquire(Observe.Box));
  // Acquire: what the last writer left. Pairs with the release below.
  if (Box = nil) or not CompareAndSwap(Observe.BoxBusy, 0, 1) then
    Exit;
  if Cardinal(OsNowMs - Box^.WrittenMs) < LeastWriteMs then
    Process.BoxIsDue := True
  else if IsOwn(Box^) then
    WriteState(Box^);
  StoreRelease(Observe.BoxBusy, 0);
end;

function BlackBoxStart: Boolean;
var
  Box: PBlackBox;
begin
  if LoadAcquire(Observe.Box) <> 0 then
    Exit(True);
  Box := OsTakePages(SizeOf(TBlackBox));
  Result := (Box <> nil) and OpenBox(Box^);
  if not Result then
  begin
    OsReleasePages(Box, SizeOf(TBlackBox));
    Exit;
  end;
  // Release: the box before its address. Pairs with WriteBox.
  StoreRelease(Observe.Box, NativeUInt(Box));
  Hooks.Box := WriteBox;
  Report.Keep := KeepEvent;
end;

// Takes the box for ever. Waits a bounded time for a thread that writes it: that may be stopped.
function TakesBox: Boolean;
const
  MostRounds = 100;
  RoundMs = 1;
var
  Round: Cardinal;
begin
  for Round := 1 to MostRounds do
  begin
    if CompareAndSwap(Observe.BoxBusy, 0, 1) then
      Exit(True);
    OsWaitMs(Observe.BoxBusy, 1, RoundMs);
  end;
  Result := False;
end;

procedure BlackBoxEnd(Code: LongInt);
var
  Box: PBlackBox;
  IsGone: Boolean;
begin
  Hooks.Box := nil;
  Report.Keep := nil;
  Process.BoxSlices := High(NativeUInt);
  Box := PBlackBox(LoadAcquire(Observe.Box));
  if (Box = nil) or (Box^.Map = nil) or (Box^.ProcessId <> OsProcessId) then
    Exit;
  // Also while another thread writes it.
  IsGone := (Code = 0) and OsFileDelete(@Box^.Path);
  if not TakesBox then
    Exit;
  Box^.State.Ended := UInt64(Cardinal(Code)) + 1;
  if not IsGone then
    WriteState(Box^);
  if not OsMayUnload and (OsDeletesMapped or (Code <> 0)) then
    Exit; // mapped: another thread may just keep an event
  OsFileUnmap(Box^.Map, BoxBytes);
  if Code = 0 then
    OsFileDelete(@Box^.Path);
end;

procedure BlackBoxForget;
begin
  StoreRelease(Observe.BoxBusy, 0);
end;

end.
