/// The switches of FastMM that nest, and the routines behind its variables.
//
// Owns:       how often each kind of erasing was begun, and whether that set it; the path of
//             EventLogName.
// Callers:    any thread; settings change from one thread at a time.
unit LaneMM.Compat.Modes;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.SettingsState;

/// Begins a kind of erasing; calls nest. Returns False, and only counts, while another memory
/// manager is installed.
function ErasingBegin(Kind: TErasure): Boolean;
/// Takes back one such call; the last one ends this kind, unless the setting had it before the
/// first. Returns False when there is none to take back, or while another memory manager is
/// installed.
function ErasingEnd(Kind: TErasure): Boolean;
/// Returns whether this kind of erasing is on.
function ErasingIsOn(Kind: TErasure): Boolean;
/// Returns the path of the event log, valid until the next call of any thread.
function EventLogName: PWideChar;
/// Applies a setting, `break=` for example, with a number.
procedure SetNumber(const Setting: ShortString; Number: Cardinal);
/// Returns the setting `depth`, at most 255.
function FrameLimit: Byte;

implementation

uses
  LaneMM, LaneMM.Layout, LaneMM.Atomic, LaneMM.Watch;

const
  MostPath = 1023;

var
  Depths: array[TErasure] of TAtomicWord;
  IsAdded: array[TErasure] of Boolean; // ErasingBegin has set this kind, the setting had not
  LogName: array[0..MostPath] of WideChar;

// ---------------------------------------------------------------------------- erasing

// Sets the bits of `erase` at once: words would clear those that stay for a moment.
procedure SetErasures(Bits: NativeUInt);
begin
  Settings.Values[opErase] := Bits;
  WatchApply;
end;

function ErasingBegin(Kind: TErasure): Boolean;
var
  Bits: NativeUInt;
begin
  FetchAdd(Depths[Kind], 1);
  Result := LaneMM_IsInstalled;
  Bits := LaneMM_Settings.Values[opErase];
  if not Result or Odd(Bits shr Ord(Kind)) then
    Exit;
  IsAdded[Kind] := True;
  SetErasures(Bits or NativeUInt(1) shl Ord(Kind));
end;

function ErasingEnd(Kind: TErasure): Boolean;
var
  Depth: NativeUInt;
begin
  repeat
    Depth := LoadAcquire(Depths[Kind]);
    if Depth = 0 then
      Exit(False);
  until CompareAndSwap(Depths[Kind], Depth, Depth - 1); // lock-free: a failure is another's call
  Result := LaneMM_IsInstalled;
  if (Depth > 1) or not IsAdded[Kind] then
    Exit;
  IsAdded[Kind] := False;
  SetErasures(LaneMM_Settings.Values[opErase] and not (NativeUInt(1) shl Ord(Kind)));
end;

function ErasingIsOn(Kind: TErasure): Boolean;
begin
  Result := LaneMM_IsInstalled and Odd(LaneMM_Settings.Values[opErase] shr Ord(Kind));
end;

// ---------------------------------------------------------------------------- variables

function EventLogName: PWideChar;
var
  Path: array[0..MostPath] of AnsiChar;
  Length: NativeUInt;
begin
  Length := LaneMM_EventLogPath(@Path, SizeOf(Path));
  LogName[0] := #0;
  if Length > 0 then
    Utf8ToUnicode(@LogName, MostPath + 1, @Path, Length);
  Result := @LogName;
end;

procedure SetNumber(const Setting: ShortString; Number: Cardinal);
var
  Digits: ShortString;
begin
  Str(Number, Digits);
  LaneMM_Configure(Setting + Digits);
end;

function FrameLimit: Byte;
begin
  Result := High(Byte);
  if LaneMM_Settings.Values[opDepth] < Result then
    Result := LaneMM_Settings.Values[opDepth];
end;

end.
