/// The cost of growing a string, an array and a list element by element.
program Reallocation;

{$mode delphi}{$H+}

uses
  {$ifdef unix} cthreads, {$endif}
  SysUtils, StrUtils, Demo.Options, Demo.Report, Demo.Machine, ReallocCounter, GrowCases;

const
  Usage =
    'Grows a string, an array and a list to N elements: one by one, and with the capacity'#10 +
    'set first. Prints the time, and the calls of ReallocMem of a second, counted pass.'#10 +
    '  --count=N       elements: 10,000,000; with --no-growth 200,000, as N elements then'#10 +
    '                  copy up to N * N / 2 bytes'#10 +
    '  --no-growth     in the second pass every ReallocMem moves its block to a new one of'#10 +
    '                  exactly the requested size; prints how much slower that is'#10;

var
  Count: Integer;
  NoGrowth: Boolean;

function TimeMs(const Which: TGrowCase): Double;
var
  Start: Double;
begin
  Start := ClockMs;
  Which.Run(Count);
  Result := ClockMs - Start;
end;

procedure PrintCase(const Which: TGrowCase);
var
  Ms, CountedMs: Double;
  Seen: TReallocCounts;
begin
  Ms := TimeMs(Which);
  if NoGrowth then
    CountStartWithoutGrowth
  else
    CountStart;
  CountedMs := TimeMs(Which);
  Seen := CountStop;
  ReportText('%-31s%9.1f%12s%12s%11.1f%19s', [Which.Title, Ms, Grouped(Seen.Calls),
    Grouped(Seen.Moves), Seen.BytesCopied / BytesPerMb, IfThen(NoGrowth,
    Format('%.1f (%.0f x)', [CountedMs, CountedMs / Ms]), IntToStr(Which.BookMs))]);
  ReportValue(Which.Key + '.ms', Ms);
  ReportValue(Which.Key + '.counted_ms', CountedMs);
  ReportValue(Which.Key + '.calls', Seen.Calls);
  ReportValue(Which.Key + '.moves', Seen.Moves);
  ReportValue(Which.Key + '.bytes_copied', Seen.BytesCopied);
end;

procedure PrintListRoom(const List: string; Room: Int64);
begin
  ReportText('%-31s%s slots, %s too many: %.1f MB of two-byte Char', [List, Grouped(Room),
    Grouped(Room - Count), 2 * (Room - Count) / BytesPerMb]);
end;

var
  Which: TGrowCase;

begin
  OptionsRead(Usage, ['count=', 'no-growth']);
  NoGrowth := OptionGiven('no-growth');
  if NoGrowth then
    Count := OptionNumber('count', 200000, 1000000)
  else
    Count := OptionNumber('count', 10000000, 1000000000);
  ReportTitle(Grouped(Count) + ' elements');
  ReportText('%-31s%9s%12s%12s%11s%19s', ['', 'ms', 'ReallocMem', 'moves', 'MB copied',
    IfThen(NoGrowth, 'ms without growth', 'book ms, Delphi')]);
  for Which in AllCases do
    PrintCase(Which);
  PrintListRoom('TList<Char>, Add, ends with', ListRoom);
  PrintListRoom('A list that doubles (book)', DoublingRoom(Count));
end.
