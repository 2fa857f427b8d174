/// Counts the cache lines that threads take from each other, out of a trace of bench/Turns.lpr.
//
// Reads what `valgrind --tool=lackey --trace-mem=yes` writes. A line is in the caches of any number
// of threads as it was read last, or in that of the one that wrote it (MSI, caches without limit):
//   owned    a store to a line that another thread has: all copies are taken away
//   fetched  a load from a line that another thread has written since
//   shared   lines that an operation writes and that more than one thread has touched
// The kernel's accesses are not in a trace.
program SharedLines;

{$I Bench.inc}

uses
  SysUtils, Classes, Bench.Marks;

const
  Usage =
    'SharedLines WORDS [--top N]    reads a trace on stdin' + LineEnding +
    '  Prints per operation: shared lines written, lines owned, lines fetched; then the same of' +
    LineEnding + '  each word that WORDS names, and its writes. --top: the N words that cost most, by' +
    LineEnding + '  address, with the instruction that cost it last.' + LineEnding;
  LineShift = 6;
  WordShift = 3;
  TableSize = 1 shl 20;

type
  // A line, or a word of 8 bytes.
  TPlace = record
    Key: PtrUInt;       // its number plus 1; 0: none
    Copies: Cardinal;   // threads that have the line, a bit each
    IsModified: Boolean;
    Touched: Cardinal;  // threads that touched it since the warm-up
    WrittenBy: Int64;   // the last operation that wrote it, plus 1
    Writes: Int64;      // of a line, operations that wrote it; of a word, stores
    Owned, Fetched: Int64;
    Instruction: PtrUInt;
  end;
  PPlace = ^TPlace;

  TPlaces = record
    Entries: array of TPlace;
    Count: Integer;
  end;

var
  Lines, Words: TPlaces;
  Thread: Integer = -1;    // whose accesses these are; -1: nobody's
  IsMeasured: Boolean;
  Operations: Int64;       // since the warm-up
  Owned, Fetched: Int64;
  Instruction: PtrUInt;

// Returns the place of Number; a new one is empty.
function PlaceOf(var Places: TPlaces; Number: PtrUInt): PPlace;
var
  I: PtrUInt;
begin
  I := (Number * 11400714819323198485) shr (64 - 20);
  while (Places.Entries[I].Key <> Number + 1) and (Places.Entries[I].Key <> 0) do
    I := (I + 1) mod TableSize;
  Result := @Places.Entries[I];
  if Result^.Key <> 0 then
    Exit;
  Inc(Places.Count);
  if Places.Count > TableSize div 2 then
    raise Exception.Create('The trace touches too many lines');
  Result^.Key := Number + 1;
end;

procedure TakeMark(Address: PtrUInt);
begin
  Thread := -1;
  case TMark((Address - MarksBase) div MarksStep) of
    maThread:
      Thread := (Address - MarksBase) mod MarksStep div 8;
    maOperation:
      if IsMeasured then
        Inc(Operations);
    maMeasure:
      IsMeasured := True;
  end;
end;

procedure CountAccess(Word: PPlace; IsOwned, IsFetched: Boolean);
begin
  Inc(Owned, Ord(IsOwned));
  Inc(Fetched, Ord(IsFetched));
  Inc(Word^.Owned, Ord(IsOwned));
  Inc(Word^.Fetched, Ord(IsFetched));
  if IsOwned or IsFetched then
    Word^.Instruction := Instruction;
end;

procedure Access(Address: PtrUInt; IsWrite: Boolean);
var
  Line, Word: PPlace;
  Mine: Cardinal;
  IsOwned, IsFetched: Boolean;
begin
  Line := PlaceOf(Lines, Address shr LineShift);
  Mine := Cardinal(1) shl Thread;
  IsOwned := IsWrite and (Line^.Copies and not Mine <> 0);
  IsFetched := not IsWrite and (Line^.Copies and Mine = 0) and Line^.IsModified;
  if IsWrite then
    Line^.Copies := Mine
  else
    Line^.Copies := Line^.Copies or Mine;
  if IsWrite or IsFetched then
    Line^.IsModified := IsWrite;
  if not IsMeasured then
    Exit;
  Line^.Touched := Line^.Touched or Mine;
  Word := PlaceOf(Words, Address shr WordShift);
  CountAccess(Word, IsOwned, IsFetched);
  if not IsWrite then
    Exit;
  Inc(Word^.Writes);
  if Line^.WrittenBy = Operations + 1 then
    Exit;
  Line^.WrittenBy := Operations + 1;
  Inc(Line^.Writes);
end;

// An access: ` S 1ffeffe7f8,8`. Of one that crosses a line the first line counts.
procedure TakeLine(const Text: ShortString);
var
  Address: PtrUInt;
  I: Integer;
begin
  if (Length(Text) < 5) or not (Text[1] in ['I', ' ']) then
    Exit;
  Address := 0;
  I := 4;
  while (I <= Length(Text)) and (Text[I] <> ',') do
  begin
    if Text[I] <= '9' then
      Address := Address shl 4 + PtrUInt(Ord(Text[I]) - Ord('0'))
    else
      Address := Address shl 4 + PtrUInt(Ord(Text[I]) or 32 - Ord('a') + 10);
    Inc(I);
  end;
  if Text[1] = 'I' then
    Instruction := Address
  else if (Address >= MarksBase) and (Address < MarksBase + (Ord(High(TMark)) + 1) * MarksStep) then
    TakeMark(Address)
  else if Thread >= 0 then
    Access(Address, Text[2] <> 'L');
end;

procedure ReadTrace;
var
  Buffer: array[0..65535] of Byte;
  Line: ShortString;
begin
  SetTextBuf(Input, Buffer, SizeOf(Buffer));
  while not Eof do
  begin
    ReadLn(Line);
    TakeLine(Line);
  end;
  if not IsMeasured or (Operations = 0) then
    raise Exception.Create('There are no operations in the trace');
end;

function PerOperation(Count: Int64): string;
begin
  Str(Count / Operations:0:4, Result);
end;

// Writes to lines that more than one thread has touched.
function SharedWrites: Int64;
var
  Line: TPlace;
begin
  Result := 0;
  for Line in Lines.Entries do
    if Line.Touched and (Line.Touched - 1) <> 0 then
      Inc(Result, Line.Writes);
end;

procedure PrintSum(const Name: string; const Sum: TPlace);
begin
  if (Sum.Owned or Sum.Fetched or Sum.Writes) <> 0 then
    WriteLn(Name, ',', PerOperation(Sum.Writes), ',', PerOperation(Sum.Owned), ',',
      PerOperation(Sum.Fetched));
end;

procedure AddTo(var Sum: TPlace; const Word: TPlace);
begin
  Inc(Sum.Writes, Word.Writes);
  Inc(Sum.Owned, Word.Owned);
  Inc(Sum.Fetched, Word.Fetched);
end;

// A line of WORDS: name, address, size, step, count. A word counts for the first one that has it.
procedure SumNamed(const Fields: TStringArray; var Sum: TPlace);
var
  Address, Size, Step, Count, Offset: PtrUInt;
  I: Integer;
begin
  Address := StrToQWord(Fields[1]);
  Size := StrToQWord(Fields[2]);
  Step := StrToQWord(Fields[3]);
  Count := StrToQWord(Fields[4]);
  for I := 0 to TableSize - 1 do
    if Words.Entries[I].Key <> 0 then
    begin
      Offset := (Words.Entries[I].Key - 1) shl WordShift - Address;
      if (Offset div Step < Count) and (Offset mod Step < Size) then
      begin
        AddTo(Sum, Words.Entries[I]);
        Words.Entries[I].Key := 0;
      end;
    end;
end;

// Prints the sums of the names of WORDS; several lines may have one name.
procedure PrintWords(const FileName: string);
var
  Texts, Names: TStringList;
  Sums: array of TPlace;
  Fields: TStringArray;
  I, Index: Integer;
begin
  Texts := TStringList.Create;
  Names := TStringList.Create;
  Texts.LoadFromFile(FileName);
  Sums := nil;
  SetLength(Sums, Texts.Count + 1);
  for I := 0 to Texts.Count - 1 do
  begin
    Fields := Texts[I].Split([',']);
    if Length(Fields) <> 5 then
      raise Exception.Create('Not a word: ' + Texts[I]);
    Index := Names.IndexOf(Fields[0]);
    if Index < 0 then
      Index := Names.Add(Fields[0]);
    SumNamed(Fields, Sums[Index]);
  end;
  for I := 0 to TableSize - 1 do
    if Words.Entries[I].Key <> 0 then
      AddTo(Sums[Texts.Count], Words.Entries[I]);
  for I := 0 to Names.Count - 1 do
    PrintSum(Names[I], Sums[I]);
  if Names.Count > 0 then
    PrintSum('stacks and others', Sums[Texts.Count]);
  Texts.Free;
  Names.Free;
end;

procedure PrintTop(Count: Integer);
var
  I: Integer;
  Most, Word: PPlace;
begin
  for Count := Count downto 1 do
  begin
    Most := @Words.Entries[0];
    for I := 1 to TableSize - 1 do
    begin
      Word := @Words.Entries[I];
      if Word^.Owned + Word^.Fetched > Most^.Owned + Most^.Fetched then
        Most := Word;
    end;
    PrintSum(Format('%x by %x', [(Most^.Key - 1) shl WordShift, Most^.Instruction]), Most^);
    Most^.Owned := 0;
    Most^.Fetched := 0;
  end;
end;

procedure Main;
begin
  if not (ParamCount in [1, 3]) then
  begin
    Write(Usage);
    Halt(2);
  end;
  SetLength(Lines.Entries, TableSize);
  SetLength(Words.Entries, TableSize);
  ReadTrace;
  WriteLn('all,', PerOperation(SharedWrites), ',', PerOperation(Owned), ',', PerOperation(Fetched));
  if ParamCount = 3 then
    PrintTop(StrToInt(ParamStr(3)));
  PrintWords(ParamStr(1));
end;

begin
  try
    Main;
  except
    on Error: Exception do
    begin
      WriteLn(StdErr, Error.Message);
      Halt(1);
    end;
  end;
end.
