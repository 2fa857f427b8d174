/// The variable HEAPTRC, as users of Free Pascal's heaptrc know it.
//
// Owns:       nothing.
// Invariants: turns nothing on. What a setting of LaneMM says is not changed by it.
// Callers:    LaneMM.Settings, at the start.
// Source:     FPC 3.2.2, rtl/inc/heaptrc.pp: words are looked for anywhere in the variable, as they
//             are written; what is not known is not told.
unit LaneMM.HeapTrc;

{$I ../LaneMM.inc}

interface

/// Takes `debug` and `leaks` back if Words say `disabled`. Before the variable LANEMM is read.
procedure HeapTrcDisable(Words: PAnsiChar);
/// Does what Words say where the settings say nothing. After it.
procedure HeapTrcRead(Words: PAnsiChar);

implementation

uses
  LaneMM.Layout, LaneMM.SettingsState;

const
  // What keepreleased means: as much as there is room to note.
  EveryByte = High(NativeInt);
  // The exit code of heaptrc.
  NotReleased = 203;
  DefaultQuarantine = 16 shl 20;

function BeginsWith(Words: PAnsiChar; const Word: ShortString): Boolean;
var
  Index: Cardinal;
begin
  Index := 1;
  while (Index <= Length(Word)) and (Words[Index - 1] = Word[Index]) do
    Inc(Index);
  Result := Index > Length(Word);
end;

// Behind the first place where Word stands; nil when there is none.
function Find(Words: PAnsiChar; const Word: ShortString): PAnsiChar;
begin
  while Words^ <> #0 do
  begin
    if BeginsWith(Words, Word) then
      Exit(Words + Length(Word));
    Inc(Words);
  end;
  Result := nil;
end;

procedure SetDefault(Option: TOption; Default, Value: NativeUInt);
begin
  if Settings.Values[Option] = Default then
    Settings.Values[Option] := Value;
end;

procedure HeapTrcDisable(Words: PAnsiChar);
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

procedure HeapTrcRead(Words: PAnsiChar);
var
  Path: PAnsiChar;
begin
  if Find(Words, 'keepreleased') <> nil then
    SetDefault(opQuarantine, DefaultQuarantine, EveryByte);
  if Find(Words, 'haltonnotreleased') <> nil then
    SetDefault(opLeaksExit, 0, NotReleased);
  Path := Find(Words, 'log=');
  if (Path <> nil) and (Settings.LogPath[0] = #0)
    and (Settings.Values[opDebug] or Settings.Values[opLeaks] <> 0) then
    CopyPath(Path, Settings.LogPath);
end;

end.
