/// LaneMM without reports: the first unit of a program instead of LaneMM, or -FaLaneMMLean.
///
/// The engine with its checks, its limits, and the status page that the tool lanemm reads. What
/// would be a report is one line on stderr. Of the settings, those of LeanNames apply.
//
// Owns:       the installed TMemoryManager, as LaneMM; Hooks.LimitReached, Corruption and
//             ChildStarted.
// Callers:    any thread, unless a routine says otherwise. Sizes are bytes.
unit LaneMMLean;

{$define LANEMM_DOOR} // it lies above the rooms
{$I LaneMM.inc}

interface

uses
  LaneMM.Stats, LaneMM.Version;

type
  /// The state of the heap of the whole process, see LaneMM.Stats.
  TLaneMM_HeapStatus = TStatus;

const
  /// The version of LaneMM.
  LaneMM_Version = ThisVersion;

/// Returns the state of the heap by a walk, exact while no other thread changes it. Any thread.
function LaneMM_HeapStatus: TLaneMM_HeapStatus;
/// Sets the soft limit, the hard limit and the emergency reserve, each rounded to 64 KB; 0: none.
/// The same as the settings `limit:soft`, `limit` and `reserve`. Any thread, one at a time.
procedure LaneMM_SetLimits(Soft, Hard, Reserve: NativeUInt);
/// Purges all free memory of all threads now, but keeps their addresses. Any thread.
procedure LaneMM_Trim;

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks, LaneMM.Bits, LaneMM.Os, LaneMM.Threads, LaneMM.Limits,
  LaneMM.Huge, LaneMM.Purge, LaneMM.Engine, LaneMM.OsProcess, LaneMM.OsThread,
  LaneMM.OsFiles, LaneMM.Text, LaneMM.SettingValues, LaneMM.SettingSources, LaneMM.StatusPage,
  LaneMM.LivePage;

type
  // The settings that apply here, by the names of LaneMM.SettingTable.
  TLeanSetting = (lwOff, lwQuiet, lwLive, lwCalls, lwHuge, lwLimit, lwLimitSoft, lwReserve);

const
  LeanNames: array[TLeanSetting] of PAnsiChar = ('off', 'quiet', 'live', 'calls', 'huge', 'limit',
    'limit:soft', 'reserve');
  MostName = 31;

var
  // Their values.
  Lean: array[TLeanSetting] of NativeUInt = (0, 0, 1, 1, HugeFromDefault, 0, 0, 0);

function LaneMM_HeapStatus: TLaneMM_HeapStatus;
begin
  StatusRead(Result);
end;

procedure LaneMM_SetLimits(Soft, Hard, Reserve: NativeUInt);
begin
  LimitsSet(Soft, Hard, Reserve);
end;

procedure LaneMM_Trim;
begin
  ProcessTrim;
end;

// ---------------------------------------------------------------------------- lines

procedure Add(var Line: ShortString; const Text: ShortString);
begin
  Line := Line + Text; // both short: with a constant the compiler would allocate
end;

// Says one line: where, the word in question, and what of it, with the end of the line.
procedure Say(const Source, Word, Text: ShortString);
var
  Line: ShortString;
begin
  Line := 'LaneMM: ';
  Add(Line, Source);
  Add(Line, ': `');
  Add(Line, Word);
  Add(Line, '` ');
  Add(Line, Text);
  OsFileWrite(OsStandardError, @Line[1], Length(Line));
end;

// Set as Hooks.LimitReached.
procedure SayLimit(Event: TLimitEvent; Size: NativeUInt);
const
  Text: ShortString = 'is reached'#10;
begin
  case Event of
    leSoft: Say('memory', 'limit:soft', Text);
    leHard: Say('memory', 'limit', Text);
    leReserve: Say('memory', 'reserve', Text);
  end;
end;

// Set as Hooks.Corruption.
procedure SayCorruption(Corruption: TCorruption; Span: PSpan; Block: PBlock);
begin
  Say('heap corruption', 'debug', 'of `uses LaneMM` finds where a free block was modified'#10);
end;

// ---------------------------------------------------------------------------- settings

// Obeys a setting; a switch may go without a value. Returns False for a wrong one.
function Obey(Setting: TLeanSetting; Value: PAnsiChar): Boolean;
var
  Number: NativeUInt;
begin
  if (Value = nil) and (Setting <= lwQuiet) then
    Value := '1';
  Result := (Value <> nil) and ValueNumber(Value, Number);
  if Result then
    Lean[Setting] := Number;
end;

// Reads one setting; Words moves past it.
procedure ReadWord(var Words: PAnsiChar; const Source: ShortString);
var
  Name: ShortString;
  Value: PAnsiChar;
  Setting: TLeanSetting;
begin
  Name := '';
  Value := nil;
  repeat
    if (Words^ = '=') and (Value = nil) then
      Value := Words + 1
    else if (Value = nil) and (Length(Name) < MostName) then
      Name := Name + TextLower(Words^);
    Inc(Words);
  until ValueEnds(Words^);
  for Setting := Low(Setting) to High(Setting) do
    if TextIs(LeanNames[Setting], Name) then
    begin
      if not Obey(Setting, Value) then
        Say(Source, Name, 'has an invalid value'#10);
      Exit;
    end;
  Say(Source, Name, 'needs `uses LaneMM`; this program has LaneMMLean, with off, quiet, live,'
    + ' calls, huge, limit, limit:soft, reserve'#10);
end;

procedure ReadSource(Words: PAnsiChar; const Source: ShortString; CutAt: NativeUInt);
begin
  while Words^ <> #0 do
    if Words^ = '#' then
      while not (Words^ in [#0, #10]) do
        Inc(Words)
    else if ValueEnds(Words^) then
      Inc(Words)
    else
      ReadWord(Words, Source);
end;

// ---------------------------------------------------------------------------- start, end

// Set as Hooks.ChildStarted.
procedure ChildStarted(IsTorn: Boolean);
begin
  LivePageForget;
end;

procedure Install;
const
  NoPlan: TBareThreadPlan = (Code: 0; Flags: 0; Bytes: 0);
begin
  if Process.IsStarted then
    Exit; // by LaneMM
  if not OsIsPrivileged then
  begin
    SourceReadFile(ReadSource);
    SourceReadVariable('LANEMM', ReadSource);
  end;
  if (Lean[lwOff] <> 0) or not EngineStart then
    Exit;
  if Lean[lwCalls] = 0 then
    ProcessConfine;
  Hooks.LimitReached := SayLimit;
  Hooks.Corruption := SayCorruption;
  Hooks.ChildStarted := ChildStarted;
  HugeFromSet(Lean[lwHuge]);
  LimitsSet(Lean[lwLimitSoft], Lean[lwLimit], Lean[lwReserve]);
  EngineInstall;
  if (Lean[lwLive] <> 0) and (Lean[lwCalls] <> 0) and OsPageIsAllowed then
    LivePageStart(nil, NoPlan);
  if LivePage <> nil then
    LivePage^.Head.HasMailbox := MailboxOfLean;
end;

initialization
  Install;
finalization
  if IsLibrary and Process.IsStarted and EngineStop then
    LivePageEnd;
end.
