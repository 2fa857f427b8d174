/// The first line of each report: process, thread, version of LaneMM, time, command line.
//
// Owns:       nothing.
// Callers:    any thread; uses system calls only.
unit LaneMM.ReportHead;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Text, LaneMM.Messages;

/// Returns the file name of the library that this copy of LaneMM is part of, ended by #0, which
/// lies in Path: its reports and files say so, for those of the program are beside them. Nil in a
/// program, in the library that is the malloc of a program, and where it is not known.
function HeadLibrary(out Path: TPath): PAnsiChar;
/// Sets the fields of the head and adds it. In a library its name follows the command line.
procedure HeadAdd(var Text: TText; var Fields: TFields);
/// Adds the same as keys of a JSON object: program, process, command, in a library its name, time.
procedure HeadAddJson(var Text: TText);
/// Adds the same for files without a place for each:
/// `./program x, process 1588, version 1.0.0, 2026-11-22 14:08:01 UTC`.
procedure HeadAddLine(var Text: TText);
/// Adds a line with the same for a text that is no event, Title: `event log`.
procedure HeadAddTitle(var Text: TText; Title: PAnsiChar);
/// Adds the time and the command line.
procedure HeadAddMoment(var Text: TText);
/// Adds a time, in seconds since 1970: `2026-11-22 14:08:01 UTC`.
procedure HeadAddTime(var Text: TText; Seconds: UInt64);

implementation

uses
  LaneMM.Types, LaneMM.Os, LaneMM.OsProcess, LaneMM.OsFiles, LaneMM.Json, LaneMM.SettingsState,
  LaneMM.Version;

type
  TDate = record
    Year, Month, Day: Cardinal;
  end;

function HeadLibrary(out Path: TPath): PAnsiChar;
var
  Mapping: TOsMapping;
begin
  Result := nil;
  if not IsLibrary or Process.IsMalloc
    or not OsFindMapping(NativeUInt(@HeadLibrary), Mapping) or (Mapping.Path[0] = #0) then
    Exit;
  Path := Mapping.Path;
  Result := TextFileName(@Path);
end;

// Returns the date that is Days after 1970-01-01. Counts years from March on, so that a leap day is
// the last of its year.
// Source: Hinnant, "chrono-Compatible Low-Level Date Algorithms" (2014).
function DateOf(Days: Cardinal): TDate;
const
  DaysToEpoch = 719468;     // from 0000-03-01
  DaysOfCycle = 146097;     // of 400 years
  DaysOfCentury = 36524;
  DaysOfFour = 1461;
  DaysOfYear = 365;
  DaysOfFiveMonths = 153;
var
  Cycle, Rest, Year, Month: Cardinal;
begin
  Inc(Days, DaysToEpoch);
  Cycle := Days div DaysOfCycle;
  Rest := Days mod DaysOfCycle;
  Year := (Rest - Rest div (DaysOfFour - 1) + Rest div DaysOfCentury - Rest div (DaysOfCycle - 1))
    div DaysOfYear;
  Dec(Rest, Year * DaysOfYear + Year div 4 - Year div 100);
  Month := (5 * Rest + 2) div DaysOfFiveMonths;
  Result.Day := Rest - (DaysOfFiveMonths * Month + 2) div 5 + 1;
  Result.Month := (Month + 2) mod 12 + 1;
  Result.Year := Cycle * 400 + Year + Cardinal(Ord(Result.Month <= 2));
end;

procedure HeadAddTime(var Text: TText; Seconds: UInt64);
const
  SecondsOfDay = 86400;
var
  Date: TDate;
  Rest: Cardinal;
begin
  Date := DateOf(Seconds div SecondsOfDay);
  Rest := Seconds mod SecondsOfDay;
  TextAddForm(Text, '%u-%2-%2 %2:%2:%2 UTC', Date.Year, Date.Month, Date.Day, Rest div 3600,
    Rest div 60 mod 60, Rest mod 60);
end;

// Adds the command line of the process, cut to 200 bytes, and to the program alone where
// `dump` is 0. Control characters become `?`.
procedure AddCommand(var Text: TText);
const
  Most = 200;
var
  Line: array[0..Most + 1] of AnsiChar;
  Length, Index: NativeUInt;
begin
  Length := OsCommandLine(@Line, SizeOf(Line));
  Index := 0;
  while (Index < Length) and (Index < Most)
    and (IsSet(opDump) or (Line[Index] <> ' ')) do
  begin
    if Line[Index] in [#0..#31, #127] then
      Line[Index] := '?';
    Inc(Index);
  end;
  if (Index = Most) and (Length > Most) then
  begin
    TextAddSome(Text, @Line, TextWhole(@Line, Most));
    TextAdd(Text, '...');
  end
  else
    TextAddSome(Text, @Line, Index);
end;

// Adds the library that this copy of LaneMM is part of, if it is.
procedure AddLibrary(var Text: TText);
var
  Characters: TPath;
  Name: PAnsiChar;
begin
  Name := HeadLibrary(Characters);
  if Name = nil then
    Exit;
  TextAdd(Text, ', library ');
  TextAddChars(Text, Name);
end;

procedure HeadAdd(var Text: TText; var Fields: TFields);
begin
  FieldNumber(Fields, fiProcess, '%u', OsProcessId);
  FieldNumber(Fields, fiThread, '%u', OsThreadId);
  FieldChars(Fields, fiVersion, ThisVersion);
  FieldStart(Fields, fiTime);
  HeadAddTime(Fields.Values, OsUnixSeconds);
  FieldStart(Fields, fiCommand);
  AddCommand(Fields.Values);
  AddLibrary(Fields.Values);
  MessageAdd(Text, msHead, Fields);
end;

procedure HeadAddLine(var Text: TText);
begin
  AddCommand(Text);
  AddLibrary(Text);
  TextAddForm(Text, ', process %u, version ' + ThisVersion + ', ', OsProcessId);
  HeadAddTime(Text, OsUnixSeconds);
end;

procedure HeadAddMoment(var Text: TText);
begin
  HeadAddTime(Text, OsUnixSeconds);
  TextAdd(Text, ', ');
  AddCommand(Text);
end;

procedure HeadAddTitle(var Text: TText; Title: PAnsiChar);
begin
  TextAddForm(Text, 'LaneMM %s of process %u, version ' + ThisVersion + ', ', NativeUInt(Title),
    OsProcessId);
  HeadAddMoment(Text);
  TextAdd(Text, LineEnd);
end;

procedure HeadAddJson(var Text: TText);
var
  Value: TText;
  Characters: TPath;
  Library_: PAnsiChar;
begin
  OsProgramPath(@Characters, High(Characters));
  JsonAddText(Text, 'program', @Characters);
  JsonAddNumber(Text, 'process', OsProcessId);
  TextOpenAt(Value, @Characters, SizeOf(Characters));
  AddCommand(Value);
  JsonAddText(Text, 'command', @Characters);
  Library_ := HeadLibrary(Characters);
  if Library_ <> nil then
    JsonAddText(Text, 'library', Library_);
  JsonAddNumber(Text, 'time', OsUnixSeconds);
end;

end.
