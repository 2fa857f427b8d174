/// The table of the run-time settings: names, defaults, limits, and what their values may be.
//
// Owns:       nothing.
// Invariants: help, messages and the reader take the names of settings and the words of values from
//             here alone.
// Callers:    LaneMM.Settings, LaneMM.SettingMessages. Any thread.
unit LaneMM.SettingTable;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.SettingsState;

type
  /// The form of a setting: its name alone, or with a number, a text or a rule after `=`.
  TOptionKind = (okSwitch, okNumber, okLimit, okTime, okInterval, okErase, okGuard, okByte, okRange,
    okName, okText, okSocket, okFile, okRule, okFormat);
  /// The values of the settings of one kind.
  TOptionForm = record
    Words: PAnsiChar;     //< const   what may follow `=`, separated by `|`; N is a number
    More: PAnsiChar;      //< const   what messages add to that
    Initial: PAnsiChar;   //< const   the default; nil: a number, that of the setting
  end;
  /// A setting.
  TOptionText = record
    Name: PAnsiChar;      //< const   its name, in lower case
    Kind: TOptionKind;    //< const   its form
    Initial: NativeUInt;  //< const   its number where no source names it
    Help: PAnsiChar;      //< const   its description
  end;

const
  /// The most characters of a name that are read; no setting has as many.
  MaxWordLength = 31;

  /// The forms by kind. The words of okErase and okFormat are in the order of their bits.
  OptionForms: array[TOptionKind] of TOptionForm = (
    (Words: '1'; More: ', 0'; Initial: 'off'),
    (Words: 'N'; More: ', also with K, M or G'; Initial: nil),
    (Words: 'N|container'; More: ', also with K, M or G, container:PATH'; Initial: 'none'),
    (Words: 'N|Nms|Ns|Nm|Nh'; More: ', 24 days at most'; Initial: 'off'),
    (Words: 'N|always'; More: ''; Initial: 'off'),
    (Words: 'free|return|new'; More: ', 0'; Initial: 'off'),
    (Words: 'pages|sample:N'; More: ', 0'; Initial: 'off'),
    (Words: 'XX'; More: ', two hexadecimal digits'; Initial: nil),
    (Words: 'N|N-N'; More: ' from low to high'; Initial: 'off'),
    (Words: 'NAME'; More: ', 0'; Initial: 'off'),
    (Words: 'PATH'; More: ''; Initial: 'next to the program'),
    (Words: 'PATH'; More: ''; Initial: '/dev/log'),
    (Words: 'PATH'; More: ', 0'; Initial: 'off'),
    (Words: 'RULE'; More: ', such as double-free:once:halt=3'; Initial: 'file, stderr'),
    (Words: 'json|junit|heaptrc|html'; More: ', 0'; Initial: 'none'));

  /// The settings.
  OptionTexts: array[TOption] of TOptionText = (
    (Name: 'off'; Kind: okSwitch; Initial: 0;
      Help: 'leave the previous memory manager in place'),
    (Name: 'help'; Kind: okSwitch; Initial: 0;
      Help: 'print this list and continue'),
    (Name: 'quiet'; Kind: okSwitch; Initial: 0;
      Help: 'no line at the end of a program in which `leaks` or `debug` found nothing'),
    (Name: 'contention'; Kind: okSwitch; Initial: 0;
      Help: 'log taken locks and frees of other threads'' blocks, by call site'),
    (Name: 'growth'; Kind: okSwitch; Initial: 0;
      Help: 'log the call sites that grow blocks'),
    (Name: 'profile'; Kind: okSwitch; Initial: 0;
      Help: 'sample allocations; without a format: pprof,folded,speedscope'),
    (Name: 'pprof'; Kind: okSwitch; Initial: 0;
      Help: 'write the profiles for pprof'),
    (Name: 'folded'; Kind: okSwitch; Initial: 0;
      Help: 'write the profiles as folded stacks, for flame graphs'),
    (Name: 'speedscope'; Kind: okSwitch; Initial: 0;
      Help: 'write the profiles as JSON for speedscope'),
    (Name: 'html'; Kind: okSwitch; Initial: 0;
      Help: 'write the profiles as one page with a table and a flame graph'),
    (Name: 'json'; Kind: okSwitch; Initial: 0;
      Help: 'write the profiles with all numbers as one JSON object'),
    (Name: 'top'; Kind: okNumber; Initial: 10;
      Help: 'maximum lines in a list of the event log and groups in a leak report'),
    (Name: 'least'; Kind: okNumber; Initial: 10;
      Help: 'minimum events for a call site to be logged'),
    (Name: 'depth'; Kind: okNumber; Initial: DefaultFrames;
      Help: 'maximum frames of a backtrace, 1 to 256'),
    (Name: 'hide'; Kind: okName; Initial: 0;
      Help: 'routine that reports leave out, such as a wrapper of the heap; repeatable'),
    (Name: 'rate'; Kind: okNumber; Initial: 524288;
      Help: 'average bytes between two samples of the profile; without it, fewer at first'),
    (Name: 'temporary'; Kind: okNumber; Initial: 1;
      Help: 'a block freed within N further allocations of its thread is temporary'),
    (Name: 'every'; Kind: okTime; Initial: 0;
      Help: 'time after which the profiles are written again, such as 10s; 0: never'),
    (Name: 'keep'; Kind: okNumber; Initial: 0;
      Help: 'profiles of the process to keep, the newest; 0: all'),
    (Name: 'blackbox'; Kind: okSwitch; Initial: 0;
      Help: 'keep the state in a file that a killed process leaves; a path may follow `=`'),
    (Name: 'record'; Kind: okFile; Initial: 0;
      Help: 'record all calls in a new file, for `lanemm replay`; %p: number of the process'),
    (Name: 'record:most'; Kind: okNumber; Initial: 1 shl 30;
      Help: 'bytes of that file at which the recording ends; 0: any'),
    (Name: 'signal'; Kind: okNumber; Initial: 0;
      Help: 'number of the signal that writes the logs, 12 for SIGUSR2; 0: none'),
    (Name: 'live'; Kind: okNumber; Initial: 1;
      Help: '0: no status page, which shows the process to the tool lanemm'),
    (Name: 'attach'; Kind: okNumber; Initial: 1;
      Help: '0: no requests of the tool lanemm are taken; 2: a thread waits for them'),
    (Name: 'background'; Kind: okSwitch; Initial: 0;
      Help: 'C library: a thread returns free memory even while the program calls nothing'),
    (Name: 'calls'; Kind: okNumber; Initial: 1;
      Help: '0: no system calls but those of glibc''s malloc while the program runs; 1: the'
        + ' same in the C library; 2: no such limit'),
    (Name: 'huge'; Kind: okNumber; Initial: HugeFromDefault;
      Help: 'bytes of full spans from which a thread gets huge pages; 0: never'),
    (Name: 'log'; Kind: okText; Initial: 0;
      Help: 'event log file, or directory of logs and profiles'),
    (Name: 'log:most'; Kind: okNumber; Initial: 0;
      Help: 'bytes of the event log before it gets the ending .1 and a new one begins; 0: any'),
    (Name: 'syslog'; Kind: okSocket; Initial: 0;
      Help: 'socket of the system''s log, for event=KIND:syslog'),
    (Name: 'dump'; Kind: okNumber; Initial: 1;
      Help: '0: no contents of blocks and no arguments of the program in reports'),
    (Name: 'event'; Kind: okRule; Initial: 0;
      Help: 'handling of reports, e.g. double-free:stderr:once:halt=3; see below'),
    (Name: 'stacks'; Kind: okSwitch; Initial: 0;
      Help: 'record where each block is allocated, for leak reports and walks'),
    (Name: 'abort'; Kind: okSwitch; Initial: 0;
      Help: 'report invalid frees also without debug; memory errors end the process'),
    (Name: 'hard'; Kind: okSwitch; Initial: 0;
      Help: 'for production: detect overruns and double frees, then abort; at the start only'),
    (Name: 'leaks'; Kind: okSwitch; Initial: 0;
      Help: 'report leaks at exit'),
    (Name: 'leaks:exit'; Kind: okNumber; Initial: 0;
      Help: 'exit code of a program that has leaks and would exit with 0'),
    (Name: 'leaks:dump'; Kind: okNumber; Initial: 0;
      Help: 'show the first N bytes of a leaked block of each place, 4096 at most'),
    (Name: 'leaks:format'; Kind: okFormat; Initial: 0;
      Help: 'also write the leaks to a file; repeatable'),
    (Name: 'leaks:ignore'; Kind: okText; Initial: 0;
      Help: 'file of leaks to ignore, by class or routine'),
    (Name: 'debug'; Kind: okSwitch; Initial: 0;
      Help: 'detect invalid frees, overruns and use after free, with backtraces'),
    (Name: 'debug:exit'; Kind: okNumber; Initial: 0;
      Help: 'exit code of a program with memory errors that would exit with 0'),
    (Name: 'debug:abort'; Kind: okSwitch; Initial: 0;
      Help: 'abort the process after the report of a memory error'),
    (Name: 'check'; Kind: okInterval; Initial: 0;
      Help: 'check all debug blocks before every Nth heap operation'),
    (Name: 'quarantine'; Kind: okNumber; Initial: 4 shl 20;
      Help: 'bytes of freed debug blocks kept from reuse; of those above 64 KB a quarter counts'),
    (Name: 'fill'; Kind: okByte; Initial: $90;
      Help: 'byte that fills new debug blocks, two hexadecimal digits'),
    // Positive as a number, so that a freed string looks counted: a second release changes it.
    (Name: 'freefill'; Kind: okByte; Initial: $7E;
      Help: 'byte that fills freed debug blocks'),
    (Name: 'erase'; Kind: okErase; Initial: 0;
      Help: 'zero blocks when freed, memory when returned; fill new blocks; repeatable'),
    (Name: 'guard'; Kind: okGuard; Initial: 0;
      Help: 'guard pages after debug blocks; sample:N: without debug, one block per N bytes'),
    (Name: 'break'; Kind: okNumber; Initial: 0;
      Help: 'report the allocation with this number in debug mode; 0: none'),
    (Name: 'limit'; Kind: okLimit; Initial: 0;
      Help: 'maximum bytes of the heap; container: purge and report near its memory limit'),
    (Name: 'limit:soft'; Kind: okNumber; Initial: 0;
      Help: 'report when the heap exceeds this many bytes; 0: never'),
    (Name: 'limit:report'; Kind: okSwitch; Initial: 0;
      Help: 'report what holds the memory, once at each limit and once without memory'),
    (Name: 'reserve'; Kind: okNumber; Initial: 0;
      Help: 'bytes held back until memory runs out'),
    (Name: 'trace'; Kind: okSwitch; Initial: 0;
      Help: 'log every allocation and free of debug blocks'),
    (Name: 'trace:size'; Kind: okRange; Initial: 0;
      Help: 'log only blocks of these sizes'),
    (Name: 'trace:number'; Kind: okRange; Initial: 0;
      Help: 'log only these allocation numbers'),
    (Name: 'trace:group'; Kind: okRange; Initial: 0;
      Help: 'log only these allocation groups'),
    (Name: 'trace:class'; Kind: okName; Initial: 0;
      Help: 'log only frees of objects of this class; * matches any text'),
    (Name: 'trace:most'; Kind: okNumber; Initial: 1000;
      Help: 'maximum number of logged allocations and frees'),
    (Name: 'mixes'; Kind: okSwitch; Initial: 0;
      Help: 'report mismatched frees: New or an object with FreeMem, in C++ new with free'));

/// Returns whether a setting has another number than its default.
function OptionIsChanged(Option: TOption): Boolean;
/// Returns whether one of Options has.
function OptionsAreChanged(const Options: TOptions): Boolean;
/// Returns the setting with the nearest name; Distance receives the number of characters to insert,
/// delete or replace, 0 for an exact match. Word has at most MaxWordLength characters.
function OptionNearest(const Word: ShortString; out Distance: Cardinal): TOption;
/// Returns the index of Word among the words that settings of Kind accept; High(Cardinal) if it is
/// none of them.
function OptionWordIndex(Kind: TOptionKind; const Word: ShortString): Cardinal;
/// Returns the lowest number that a setting accepts.
function OptionLowest(Option: TOption): NativeUInt;
/// Returns the highest number that a setting accepts.
function OptionHighest(Option: TOption): NativeUInt;
/// Returns whether a setting accepts the number Value.
function OptionAllows(Option: TOption; Value: NativeUInt): Boolean;

implementation

uses
  LaneMM.Bits, LaneMM.OsSignals;

function OptionIsChanged(Option: TOption): Boolean;
begin
  Result := Settings.Values[Option] <> OptionTexts[Option].Initial;
end;

function OptionsAreChanged(const Options: TOptions): Boolean;
var
  Option: TOption;
begin
  Result := False;
  for Option := Low(TOption) to High(TOption) do
    Result := Result or (Option in Options) and OptionIsChanged(Option);
end;

function Least(A, B: Cardinal): Cardinal;
begin
  if A < B then
    Result := A
  else
    Result := B;
end;

// Returns the number of characters to insert, delete or replace to turn Word into Known.
// Source: Wagner and Fischer, "The String-to-String Correction Problem", JACM 21 (1974).
function EditDistance(const Word: ShortString; Known: PAnsiChar): Cardinal;
var
  Row: array[0..MaxWordLength] of Cardinal;
  Index, Diagonal, Above: Cardinal;
begin
  for Index := 0 to Length(Word) do
    Row[Index] := Index;
  while Known^ <> #0 do
  begin
    Diagonal := Row[0];
    Inc(Row[0]);
    for Index := 1 to Length(Word) do
    begin
      Above := Row[Index];
      Row[Index] := Least(Diagonal + Ord(Known^ <> Word[Index]),
        Least(Row[Index - 1], Above) + 1);
      Diagonal := Above;
    end;
    Inc(Known);
  end;
  Result := Row[Length(Word)];
end;

function OptionNearest(const Word: ShortString; out Distance: Cardinal): TOption;
var
  Option: TOption;
  Other: Cardinal;
begin
  Result := opHelp;
  Distance := High(Distance);
  for Option := Low(TOption) to High(TOption) do
  begin
    Other := EditDistance(Word, OptionTexts[Option].Name);
    if Other < Distance then
    begin
      Distance := Other;
      Result := Option;
    end;
  end;
end;

function OptionWordIndex(Kind: TOptionKind; const Word: ShortString): Cardinal;
var
  Rest: PAnsiChar;
begin
  Result := 0;
  Rest := OptionForms[Kind].Words;
  while not (TextBegins(Rest, Word) and (Rest[Length(Word)] in [#0, '|'])) do
  begin
    while not (Rest^ in [#0, '|']) do
      Inc(Rest);
    if Rest^ = #0 then
      Exit(High(Result));
    Inc(Rest);
    Inc(Result);
  end;
end;

function OptionLowest(Option: TOption): NativeUInt;
begin
  Result := Ord(Option = opDepth);
end;

function OptionHighest(Option: TOption): NativeUInt;
begin
  case Option of
    opTop: Result := 256; // call sites that the event log can list
    opDepth: Result := MaxFrames;
    opTemporary: Result := 1000; // each is numbered
    opDump, opLive: Result := 1;
    opAttach, opCalls: Result := 2;
    opLeaksDump: Result := MostDump;
    opLeaksExit, opDebugExit: Result := 255; // exit codes of a process
    opSignal: Result := 64; // of Linux
  else
    Result := High(NativeUInt);
  end;
  if OptionTexts[Option].Kind = okSwitch then
    Result := 1;
end;

function OptionAllows(Option: TOption; Value: NativeUInt): Boolean;
begin
  Result := (Value >= OptionLowest(Option)) and (Value <= OptionHighest(Option))
    and ((Option <> opSignal) or (Value = 0) or OsSignalIsFree(Value));
end;

end.
