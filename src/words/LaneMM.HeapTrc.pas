/// The environment variable HEAPTRC of Free Pascal's heaptrc.
//
// Owns:       nothing.
// Invariants: turns nothing on, and overrides no setting of LaneMM but by `disabled`, which comes
//             before the variable LANEMM.
// Callers:    LaneMM.Settings, at the start.
// Source:     FPC 3.2.2, rtl/inc/heaptrc.pp: keywords are found anywhere in the variable, in lower
//             case; unknown ones are ignored.
unit LaneMM.HeapTrc;

{$I ../LaneMM.inc}

interface

/// Clears `debug` and `leaks` if Words contains `disabled`. Before the variable LANEMM is read.
procedure HeapTrcDisable(Words: PAnsiChar; const Source: ShortString; CutAt: NativeUInt);
/// Applies Words where no source has named the settings. After the variable LANEMM is read.
procedure HeapTrcRead(Words: PAnsiChar; const Source: ShortString; CutAt: NativeUInt);

implementation

uses
  LaneMM.Layout, LaneMM.Bits, LaneMM.SettingsState;

const
  // The quarantine of `keepreleased`: bounded only by the number of blocks.
  EveryByte = High(NativeInt);
  // The exit code of heaptrc for leaks.
  NotReleased = 203;

// Returns the text after the first occurrence of Word; nil when there is none.
function Find(Words: PAnsiChar; const Word: ShortString): PAnsiChar;
begin
  while Words^ <> #0 do
  begin
    if TextBegins(Words, Word) then
      Exit(Words + Length(Word));
    Inc(Words);
  end;
  Result := nil;
end;

procedure SetDefault(Option: TOption; Value: NativeUInt);
begin
  if not (Option in Settings.Given) then
    Settings.Values[Option] := Value;
end;

procedure HeapTrcDisable(Words: PAnsiChar; const Source: ShortString; CutAt: NativeUInt);
begin
  if Find(Words, 'disabled') = nil then
    Exit;
  Settings.Values[opDebug] := 0;
  Settings.Values[opLeaks] := 0;
end;

procedure CopyPath(Words: PAnsiChar; var Path: TPath);
var
  Index: Cardinal;
begin
  Index := 0;
  while not (Words[Index] in [#0, ' ']) and (Index < High(Path)) do
  begin
    Path[Index] := Words[Index];
    Inc(Index);
  end;
  Path[Index] := #0;
end;

procedure HeapTrcRead(Words: PAnsiChar; const Source: ShortString; CutAt: NativeUInt);
var
  Path: PAnsiChar;
begin
  if Find(Words, 'keepreleased') <> nil then
    SetDefault(opQuarantine, EveryByte);
  if Find(Words, 'haltonnotreleased') <> nil then
    SetDefault(opLeaksExit, NotReleased);
  Path := Find(Words, 'log=');
  if (Path <> nil) and not (opLog in Settings.Given)
    and (Settings.Values[opDebug] or Settings.Values[opLeaks] <> 0) then
    CopyPath(Path, Settings.LogPath);
end;

end.
