/// A profile in the format of pprof: a protocol buffer in gzip, stored without compression.
//
// Owns:       nothing.
// Callers:    any thread.
// Source:     github.com/google/pprof, proto/profile.proto; RFC 1951 (stored blocks), RFC 1952.
unit LaneMM.Pprof;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text, LaneMM.ProfileData;

/// Adds the whole file to Text; adds nothing when there is no memory to build it.
procedure PprofAdd(var Text: TText; const Profile: TProfile);

implementation

uses
  LaneMM.OsProcess, LaneMM.ReportHead, LaneMM.StacksState, LaneMM.Symbols, LaneMM.Unwind,
  LaneMM.ElfFile, LaneMM.CallSites, LaneMM.SampledClasses, LaneMM.Samples;

const
  MessageLimit = 65536;
  ProfileLimit = 64 shl 20;

  // Wire types.
  Number = 0;
  Bytes = 2;

  // Fields of Profile.
  SampleType = 1;
  Sample = 2;
  Mapping = 3;
  Location = 4;
  Function_ = 5;
  StringTable = 6;
  TimeNanos = 9;
  PeriodType = 11;
  Period = 12;
  Comment = 13;
  DefaultSampleType = 14;

type
  // The message under construction, the one inside it, and what becomes a part of that: a message,
  // or a string in UTF-8.
  TWriter = record
    All, Part, Inner: TText;
    TextCount: NativeUInt;  // strings so far
    ClassLabel: NativeUInt; // the key of labels with classes
  end;

// ---------------------------------------------------------------------------- messages

procedure AddVarint(var Text: TText; Value: UInt64);
begin
  while Value >= $80 do
  begin
    TextAdd(Text, AnsiChar(Value and $7F or $80));
    Value := Value shr 7;
  end;
  TextAdd(Text, AnsiChar(Value));
end;

procedure AddNumber(var Text: TText; Field: Cardinal; Value: UInt64);
begin
  AddVarint(Text, Field shl 3 or Number);
  AddVarint(Text, Value);
end;

procedure AddBytes(var Text: TText; Field: Cardinal; const Part: TText);
begin
  AddVarint(Text, Field shl 3 or Bytes);
  AddVarint(Text, Part.Length);
  TextAddSome(Text, Part.Start, Part.Length);
end;

// Ends the message Part and adds it to Outer as Field.
procedure EndPart(var Outer: TText; Field: Cardinal; var Part: TText);
begin
  AddBytes(Outer, Field, Part);
  Part.Length := 0;
end;

// Ends the inner message, which is a string; returns its index in the string table.
function EndText(var Writer: TWriter): NativeUInt;
begin
  if Writer.Part.Length = Writer.Part.Capacity then
    Dec(Writer.Part.Length);
  TextAdd(Writer.Part, #0);
  TextAddUtf8(Writer.Inner, Writer.Part.Start);
  EndPart(Writer.All, StringTable, Writer.Inner);
  Writer.Part.Length := 0;
  Result := Writer.TextCount;
  Inc(Writer.TextCount);
end;

function AddText(var Writer: TWriter; Text: PAnsiChar): NativeUInt;
begin
  TextAddChars(Writer.Part, Text);
  Result := EndText(Writer);
end;

// ---------------------------------------------------------------------------- parts

procedure AddSampleTypes(var Writer: TWriter; const Profile: TProfile);
var
  Value: TProfileValue;
  Name, UnitName: NativeUInt;
begin
  for Value := ValueRanges[Profile.Kind].First to ValueRanges[Profile.Kind].Shown do
  begin
    Name := AddText(Writer, ValueKinds[Value].Name);
    UnitName := AddText(Writer, ValueKinds[Value].UnitName);
    AddNumber(Writer.Part, 1, Name);
    AddNumber(Writer.Part, 2, UnitName);
    EndPart(Writer.All, SampleType, Writer.Part);
    if Value = ValueRanges[Profile.Kind].Main then
      AddNumber(Writer.All, DefaultSampleType, Name);
  end;
end;

// Adds the unit of the sampling distance, and its mean.
procedure AddPeriod(var Writer: TWriter);
var
  Name, UnitName: NativeUInt;
begin
  Name := AddText(Writer, 'space');
  UnitName := AddText(Writer, 'bytes');
  AddNumber(Writer.Part, 1, Name);
  AddNumber(Writer.Part, 2, UnitName);
  EndPart(Writer.All, PeriodType, Writer.Part);
  AddNumber(Writer.All, Period, SamplesMean);
end;

procedure AddMapping(var Writer: TWriter);
begin
  AddNumber(Writer.Part, 1, 1);
  AddNumber(Writer.Part, 2, Stacks.CodeFirst);
  AddNumber(Writer.Part, 3, Stacks.CodeLimit);
  AddNumber(Writer.Part, 7, 1); // has functions, file names and lines: pprof reads no symbols
  AddNumber(Writer.Part, 8, 1);
  AddNumber(Writer.Part, 9, 1);
  EndPart(Writer.All, Mapping, Writer.Part);
end;

// Adds one location and one function for an address; Id is its place in the order plus 1.
procedure AddLocation(var Writer: TWriter; const Symbols: TSymbols; Symbol: PSymbol;
  Id: NativeUInt);
var
  Name, FileName: NativeUInt;
begin
  ProfileAddName(Writer.Part, Symbol);
  Name := EndText(Writer);
  FileName := AddText(Writer, Symbol^.FileName);
  AddNumber(Writer.Part, 1, Id);
  AddNumber(Writer.Part, 2, Name);
  AddNumber(Writer.Part, 4, FileName);
  EndPart(Writer.All, Function_, Writer.Part);
  AddNumber(Writer.Inner, 1, Id);
  AddNumber(Writer.Inner, 2, Symbol^.Line);
  AddNumber(Writer.Part, 1, Id);
  AddNumber(Writer.Part, 2, 1);
  AddNumber(Writer.Part, 3, NativeUInt(SymbolsReturn(Symbols, Symbol^.Address + 1) - 1));
  EndPart(Writer.Part, 4, Writer.Inner);
  EndPart(Writer.All, Location, Writer.Part);
end;

// Adds a sample with a part of a site's values, and its class.
procedure AddPart(var Writer: TWriter; const Profile: TProfile; const Part: TSitePart);
var
  Stack: TBacktrace;
  Index: Cardinal;
  Value: TProfileValue;
  Name: NativeUInt;
begin
  Name := 0;
  if Part.Item <> nil then
  begin
    ClassIdAddName(Writer.Part, Part.Item^.ClassId);
    Name := EndText(Writer);
  end;
  ProfileReadStack(Profile, Part.Site, Stack);
  for Index := 0 to Stack.Count - 1 do
    AddNumber(Writer.Part, 1,
      SymbolsFind(Profile.Symbols, Stack.Frames[Index]) - Profile.Symbols.Items + 1);
  for Value := ValueRanges[Profile.Kind].First to ValueRanges[Profile.Kind].Shown do
    AddNumber(Writer.Part, 2, SitePartValue(Profile, Part, Value));
  if Part.Item <> nil then
  begin
    AddNumber(Writer.Inner, 1, Writer.ClassLabel);
    AddNumber(Writer.Inner, 2, Name);
    EndPart(Writer.Part, 3, Writer.Inner);
  end;
  EndPart(Writer.All, Sample, Writer.Part);
end;

procedure AddProfile(var Writer: TWriter; const Profile: TProfile);
const
  Second = 1000000000;
var
  Index: NativeInt;
  Site: PSite;
  Part: TSitePart;
begin
  AddText(Writer, nil); // the first string is empty
  HeadAddLine(Writer.Part);
  AddNumber(Writer.All, Comment, EndText(Writer));
  AddNumber(Writer.All, TimeNanos, OsUnixSeconds * Second);
  AddSampleTypes(Writer, Profile);
  if Profile.Kind = pkHeap then
    AddPeriod(Writer);
  Writer.ClassLabel := AddText(Writer, 'class');
  AddMapping(Writer);
  for Index := 0 to Profile.Symbols.Count - 1 do
    AddLocation(Writer, Profile.Symbols, @Profile.Symbols.Items[Index], Index + 1);
  Site := nil;
  while ProfileNext(Profile, Site) do
  begin
    SitePartFirst(Profile, Site, Part);
    repeat
      AddPart(Writer, Profile, Part);
    until not SitePartNext(Part);
  end;
end;

// ---------------------------------------------------------------------------- gzip

// Adds Count bytes of Value, lowest first.
procedure AddFixed(var Text: TText; Value: NativeUInt; Count: Cardinal);
var
  Index: Cardinal;
begin
  for Index := 1 to Count do
  begin
    TextAdd(Text, AnsiChar(Value and $FF));
    Value := Value shr 8;
  end;
end;

procedure AddGzip(var Text: TText; const Data: TText);
const
  Head: ShortString = #$1F#$8B#8#0#0#0#0#0#0#$FF;
  MostStored = 65535;
var
  Index, Length: NativeUInt;
begin
  TextAdd(Text, Head);
  Index := 0;
  repeat
    Length := Data.Length - Index;
    if Length > MostStored then
      Length := MostStored;
    AddFixed(Text, Ord(Index + Length = Data.Length), 1);
    AddFixed(Text, Length, 2);
    AddFixed(Text, not Length, 2);
    TextAddSome(Text, Data.Start + Index, Length);
    Inc(Index, Length);
  until Index = Data.Length;
  AddFixed(Text, Crc32(PByte(Data.Start), Data.Length), 4);
  AddFixed(Text, Data.Length, 4);
end;

procedure PprofAdd(var Text: TText; const Profile: TProfile);
var
  Writer: TWriter;
begin
  Writer := Default(TWriter);
  if TextOpen(Writer.All, ProfileLimit) and TextOpen(Writer.Part, MessageLimit)
    and TextOpen(Writer.Inner, MessageLimit) then
  begin
    AddProfile(Writer, Profile);
    AddGzip(Text, Writer.All);
    Text.IsCut := Text.IsCut or Writer.All.IsCut;
  end
  else
    Text.IsCut := True;
  TextClose(Writer.Inner);
  TextClose(Writer.Part);
  TextClose(Writer.All);
end;

end.
