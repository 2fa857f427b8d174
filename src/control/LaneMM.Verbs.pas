/// The words of a request: settings, and verbs that are obeyed at once.
//
// Owns:       Verbs; Report.Tell.
// Invariants: it runs in a signal handler, one request at a time, see LaneMM.Mailbox: it uses no
//             heap and nothing of the C library, and never acts as the owner of the interrupted
//             thread's heap.
// Callers:    LaneMM.Mailbox.
unit LaneMM.Verbs;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.StatusPage;

/// Obeys the words, separated as settings are, up to #0; changes them. Writes the answer, ended by
/// #0, to Answer, which has room for AnswerBytes.
function VerbsObey(Words, Answer: PAnsiChar): TPageOutcome;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Bits, LaneMM.Os, LaneMM.Backed, LaneMM.Shards,
  LaneMM.Heap, LaneMM.Threads, LaneMM.Stats, LaneMM.ReportState, LaneMM.Text, LaneMM.SettingsState,
  LaneMM.SettingTable, LaneMM.SettingValues, LaneMM.Settings, LaneMM.ObserveState,
  LaneMM.EventLog, LaneMM.HeapReport, LaneMM.Profile, LaneMM.Snapshot, LaneMM.Leaks, LaneMM.Watch;

type
  // The request that is being answered.
  TVerbs = record
    Thread: Cardinal;        //< racy    number of the thread that answers; 0: none. Another thread
                             //  that reads it finds that it is not the one
    Answer: TText;           //< owner   its text so far
    Outcome: TPageOutcome;   //< owner   how it ends
    FileCount: Cardinal;     //< owner   files written for it
    IsChanged: Boolean;      //< owner   settings were read that are not applied yet
    Earlier: PSnapshot;      //< owner   the last snapshot, or nil
  end;

var
  Verbs: TVerbs;

// ---------------------------------------------------------------------------- the answer

procedure Add(const Text: ShortString);
begin
  TextAdd(Verbs.Answer, Text);
end;

procedure Fail(const Text: ShortString);
begin
  Verbs.Outcome := poFailed;
  Add(Text);
end;

// Set as Report.Tell.
function Tell(Kind: TTellKind; Text: PAnsiChar; Length: NativeUInt): Boolean;
const
  Prefix: ShortString = 'LaneMM: ';
begin
  Result := (Verbs.Thread <> 0) and (Verbs.Thread = OsThreadId);
  if not Result or (Kind = tkEvent) then
    Exit;
  if Kind = tkFile then
  begin
    Inc(Verbs.FileCount);
    Add('file ');
  end;
  if (Length > System.Length(Prefix)) and TextBegins(Text, Prefix) then
  begin
    Inc(Text, System.Length(Prefix));
    Dec(Length, System.Length(Prefix));
  end;
  TextAddSome(Verbs.Answer, Text, Length);
  if Kind = tkFile then
    Add(LineEnd);
end;

// Says what became of files that were to be written.
procedure AddFiles(IsWritten: Boolean);
begin
  if not IsWritten then
    Fail('a file could not be written'#10)
  else if Verbs.FileCount = 0 then
    Add('nothing was counted so far'#10);
end;

// ---------------------------------------------------------------------------- verbs

procedure Status(Value: PAnsiChar);
var
  Found: TStatus;
begin
  StatusRead(Found);
  TextAddForm(Verbs.Answer, 'used %b in blocks, committed %b from the system, of these cached %b,'
    + ' peak %b'#10, Found.UsedBytes, Found.CommittedBytes, Found.CachedBytes, Found.PeakBytes);
end;

// Sweeps all heaps as another thread would: ProcessTrim may change the caller's heap, in which the
// interrupted thread may be at work.
procedure Trim(Value: PAnsiChar);
var
  Heap: PHeap;
begin
  TextAddForm(Verbs.Answer, 'committed %b', BackedSlices * SliceSize);
  Heap := ThreadsFirstHeap;
  while Heap <> nil do
  begin
    HeapSweep(Heap);
    Heap := Heap^.NextHeap;
  end;
  ShardsPurge(AllSlices);
  TextAddForm(Verbs.Answer, ', now %b'#10, BackedSlices * SliceSize);
end;

// Takes a snapshot, and reports the growth since the one before.
procedure TakeSnapshot(Value: PAnsiChar);
var
  Later: PSnapshot;
begin
  Later := SnapshotTake;
  if Later = nil then
  begin
    Fail('no memory for a snapshot'#10);
    Exit;
  end;
  if Verbs.Earlier = nil then
    Add('first snapshot taken; the next one reports the growth since')
  else
    TextAddForm(Verbs.Answer, 'grown since the last snapshot: %b', SnapshotCompare(Verbs.Earlier,
      Later));
  Add(LineEnd);
  SnapshotFree(Verbs.Earlier);
  Verbs.Earlier := Later;
end;

procedure WriteLogs(Value: PAnsiChar);
begin
  AddFiles(WatchWrite);
end;

// ---------------------------------------------------------------------------- reports

type
  // The format of a report; without one that of the settings.
  TReportFormat = (rfSettings, rfJson, rfHtml, rfPprof, rfFolded, rfSpeedscope);

const
  // The numbers of the reports are those of THeapReport, then of these.
  ProfileReport = Ord(High(THeapReport)) + 1;
  LastReport = ProfileReport + 2;
  CountNames: array[ProfileReport..LastReport] of ShortString = ('profile', 'contention', 'growth');
  // The settings that these need; those of THeapReport need the first one.
  CountOptions: array[ProfileReport..LastReport] of TOption = (opProfile, opContention, opGrowth);
  FormatNames: array[TReportFormat] of ShortString = ('', ':json', ':html', ':pprof', ':folded',
    ':speedscope');
  // The settings of the formats of profiles; the first one is not read.
  FormatOptions: array[TReportFormat] of TOption = (opProfile, opJson, opHtml, opPprof, opFolded,
    opSpeedscope);

// By address: the C library has no copy of strings.
function NameOf(Number: Cardinal): PShortString;
begin
  if Number < ProfileReport then
    Result := @HeapReportNames[THeapReport(Number)]
  else
    Result := @CountNames[Number];
end;

procedure WriteInUse(Format: TReportFormat);
const
  // The formats of reports of blocks.
  Files: array[TReportFormat] of NativeUInt = (0, 1 shl Ord(lfJson), 1 shl Ord(lfHtml), 0, 0, 0);
begin
  if Observe.Samples <> nil then
    HeapReportWrite(hrInUse);
  LeaksReportInUse(0, High(Cardinal), Files[Format]);
  if Verbs.FileCount = 0 then
    Fail('no file was written: no block in use, or an event rule'#10);
end;

// Writes a report of counts, if there are any. Returns False when a file could not be written.
function WriteCounts(Number: Cardinal; Format: TReportFormat): Boolean;
begin
  if LoadAcquire(Observe.SiteKeys) = 0 then
    Result := True
  else if Format <> rfSettings then
    Result := ProfileWriteAs(FormatOptions[Format])
  else if Number = ProfileReport then
    Result := ProfileWrite
  else if Number > ProfileReport then
    Result := EventLogWrite
  else
    Result := HeapReportWrite(THeapReport(Number)) or (Observe.Samples <> nil)
      or not IsSet(opProfile);
end;

// Writes a report that a setting counts for.
procedure WriteCounted(Number, Count: Cardinal; Format: TReportFormat);
var
  IsWritten: Boolean;
begin
  IsWritten := WriteCounts(Number, Format);
  if not IsWritten or (Verbs.FileCount > 0) or IsSet(CountOptions[Count]) then
  begin
    AddFiles(IsWritten);
    Exit;
  end;
  Add(CountNames[Count]);
  Add(' is off: `lanemm do PID ');
  Add(CountNames[Count]);
  Fail('` turns it on'#10);
end;

procedure WriteReport(Number: Cardinal; Format: TReportFormat);
begin
  if Number = Ord(hrInUse) then
    WriteInUse(Format)
  else if Number < ProfileReport then
    WriteCounted(Number, ProfileReport, Format)
  else
    WriteCounted(Number, Number, Format);
end;

procedure SayUnknown(Value: PAnsiChar);
var
  Number: Cardinal;
begin
  Verbs.Outcome := poWrongWords;
  Add('unknown report `');
  TextAddChars(Verbs.Answer, Value);
  Add('`; known: ');
  for Number := 0 to LastReport do
  begin
    Add(NameOf(Number)^);
    if Number < LastReport then
      Add(', ');
  end;
  Add('; then :json, :html, :pprof, :folded or :speedscope'#10);
end;

procedure WantReport(Value: PAnsiChar);
var
  Number: Cardinal;
  Name: PShortString;
  Format: TReportFormat;
begin
  for Number := 0 to LastReport do
  begin
    Name := NameOf(Number);
    if TextBegins(Value, Name^) then
      for Format := Low(Format) to High(Format) do
        if TextIs(Value + Length(Name^), FormatNames[Format]) then
        begin
          WriteReport(Number, Format);
          Exit;
        end;
  end;
  SayUnknown(Value);
end;

// ---------------------------------------------------------------------------- words

type
  // Obeys a verb; Value follows its name.
  TVerbCall = procedure(Value: PAnsiChar);
  TVerb = record
    Name: ShortString;
    Call: TVerbCall;
  end;

const
  ReportName = 'report=';
  KnownVerbs: array[0..4] of TVerb = (
    (Name: 'status'; Call: Status),
    (Name: 'trim'; Call: Trim),
    (Name: 'snapshot'; Call: TakeSnapshot),
    (Name: 'write'; Call: WriteLogs),
    (Name: ReportName; Call: WantReport));

// Returns whether Words is this verb; one that ends with `=` takes a value.
function IsVerb(Words: PAnsiChar; const Name: ShortString): Boolean;
begin
  Result := TextBegins(Words, Name)
    and ((Words[Length(Name)] = #0) or (Name[Length(Name)] = '='));
end;

// Applies the settings that were read; names those that are off again: there was no memory for
// them, or no file.
procedure ApplyChanges;
var
  Wanted: array[TOption] of NativeUInt;
  Option: TOption;
begin
  if not Verbs.IsChanged then
    Exit;
  Verbs.IsChanged := False;
  Move(Settings.Values, Wanted, SizeOf(Wanted));
  WatchApply;
  for Option := Low(TOption) to High(TOption) do
    if (Wanted[Option] <> 0) and not IsSet(Option) then
    begin
      Fail('no memory or no file for `');
      TextAddChars(Verbs.Answer, OptionTexts[Option].Name);
      Add('`: it stays off'#10);
    end;
end;

// Obeys one word, ended by #0. Settings before a verb apply to it.
procedure ObeyWord(Words: PAnsiChar);
var
  Index: Cardinal;
begin
  for Index := 0 to High(KnownVerbs) do
    if IsVerb(Words, KnownVerbs[Index].Name) then
    begin
      ApplyChanges;
      KnownVerbs[Index].Call(Words + Length(KnownVerbs[Index].Name));
      Exit;
    end;
  if not SettingsRead(Words, 'request') then
    Verbs.Outcome := poWrongWords;
  Verbs.IsChanged := True;
end;

procedure ObeyWords(Words: PAnsiChar);
var
  Next: PAnsiChar;
begin
  while Words^ <> #0 do
  begin
    Next := Words;
    ValueSkip(Next);
    if Next^ <> #0 then
    begin
      Next^ := #0;
      Inc(Next);
    end;
    if Words^ <> #0 then
      ObeyWord(Words);
    Words := Next;
  end;
  ApplyChanges;
end;

function VerbsObey(Words, Answer: PAnsiChar): TPageOutcome;
begin
  TextOpenAt(Verbs.Answer, Answer, AnswerBytes);
  Verbs.Outcome := poDone;
  Verbs.FileCount := 0;
  Report.Tell := Tell;
  Verbs.Thread := OsThreadId;
  ObeyWords(Words);
  Verbs.Thread := 0;
  Result := Verbs.Outcome;
end;

end.
