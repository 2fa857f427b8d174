/// `lanemm top`: a process in the terminal, once a second.
unit ToolTop;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Shows the process until a key ends it, or once.
procedure RunTop(Arguments: TArguments);

const
  TopCommand: TCommand = (
    Name: 'top';
    Usage: 'PID [--every=TIME] [--once] [--lines=N]';
    Help: 'Watches a process: totals, rates, regions, size classes, threads';
    Details: '  --every=TIME  between two pictures: 500ms, 2s; 1s by default'#10
      + '  --once        one picture, without keys'#10
      + '  --lines=N     N lines of the table; by default as many as the terminal has'#10
      + '  --sort=KEY    used, blocks, slack, growth or size'#10
      + '  --threads     threads, not size classes; full spans belong to no thread until one of'#10
      + '                their blocks is freed'#10
      + '  --regions     regions alone, as many as fit; otherwise the five largest come first'#10
      + '  --copy=N      the Nth copy of LaneMM of a process with several'#10#10
      + 'Keys: c size classes, t threads, e regions; sorted by u used, b blocks, f slack, g growth, s size;'#10
      + 'r counts growth from now on, space pauses, q quits.'#10
      + 'p starts a profile in the process, and p again writes its page and ends it.'#10#10
      + 'Growth is the change of used bytes since lanemm started. A span is a run of'#10
      + 'pages with blocks of one size; slack is what it has beside the blocks in use.'#10
      + 'Regions of the same name share a line: their number, their sums, and the peak of memory and'#10
      + 'the limit of a single one.'#10;
    Options: 'every: once lines: sort: threads regions copy:';
    MostWords: 1;
    Run: RunTop);

implementation

uses
  SysUtils, Classes, StrUtils, Math, LaneMM.Layout, LaneMM.StatusPage, HeapNumbers, HeapText, ToolOpen,
  ToolMailbox, ToolScreen, ToolText;

type
  TSortKey = (skUsed, skBlocks, skSlack, skGrowth, skSize);

  // The table that is shown.
  TShown = (shClasses, shThreads, shRegions);

  // A line of the table: a size class, large blocks, debug blocks, a thread, or regions.
  TTopRow = record
    Name: string;
    Order: Integer;  // of its size
    Blocks, Bytes, Slack, Spans: Int64;
    Growth: Int64;   // bytes since the base
    Rate: Double;    // bytes in a second, since the picture before
  end;
  TTopRows = array of TTopRow;

  // What is shown, and what it is compared with.
  TTop = class
  private
    Opened: TOpened;
    Pid: Integer;
    Base, Last, Current: THeapNumbers;
    LastMs, NowMs: UInt64;
    SortedBy: TSortKey;
    Shown: TShown;
    IsPaused, IsDone, IsProfiling: Boolean;
    Note: string;
    procedure Look;
    procedure AddRow(var Rows: TTopRows; const Name: string; const Current, Last,
      Base: TClassNumbers);
    function ClassRows: TTopRows;
    procedure AddThread(var Rows: TTopRows; const Name: string; const Thread: TThreadNumbers;
      LastBytes, BaseBytes: UInt64);
    function ThreadRows: TTopRows;
    function Rate(Current, Last: UInt64): Double;
    procedure Sort(var Rows: TTopRows);
    procedure AddHead(Lines: TStrings; Columns: Integer);
    procedure AddRegions(Lines: TStrings; Most: Integer);
    procedure AddRows(Lines: TStrings; Most: Integer);
    procedure AddTable(Lines: TStrings; Most: Integer);
    function Ask(const Words: string): Boolean;
    procedure Profile;
    procedure Press(const Key: string);
  end;

const
  KeyNames: array[TSortKey] of string = ('used', 'blocks', 'slack', 'growth', 'size');
  KeySigns: array[TSortKey] of AnsiChar = ('u', 'b', 'f', 'g', 's');
  HeadLines = 7; // with the title of the table
  Escape = #27;

// ---------------------------------------------------------------------------- the picture

procedure TTop.Look;
begin
  if NowMs <> 0 then
    Opened.Image.Refresh;
  Last := Current;
  LastMs := NowMs;
  ReadNumbers(Opened.Image, Current);
  NowMs := GetTickCount64;
  if LastMs <> 0 then
    Exit;
  Base := Current;
  Last := Current;
end;

// Returns the change in a second.
function TTop.Rate(Current, Last: UInt64): Double;
begin
  Result := 0;
  if (LastMs <> 0) and (NowMs > LastMs) then
    Result := 1000.0 * (Int64(Current) - Int64(Last)) / (NowMs - LastMs);
end;

procedure TTop.AddRow(var Rows: TTopRows; const Name: string; const Current, Last,
  Base: TClassNumbers);
var
  Row: TTopRow;
begin
  if Current.Spans = 0 then
    Exit;
  Row.Name := Name;
  Row.Order := Length(Rows);
  Row.Blocks := Current.Blocks;
  Row.Bytes := Current.Bytes;
  Row.Slack := SlackOf(Current);
  Row.Spans := Current.Spans;
  Row.Growth := Int64(Current.Bytes) - Int64(Base.Bytes);
  Row.Rate := Rate(Current.Bytes, Last.Bytes);
  Insert(Row, Rows, Length(Rows));
end;

function TTop.ClassRows: TTopRows;
var
  Index: Integer;
begin
  Result := nil;
  for Index := 0 to SizeClassCount - 1 do
    AddRow(Result, Grouped(Current.Classes[Index].BlockSize), Current.Classes[Index],
      Last.Classes[Index], Base.Classes[Index]);
  AddRow(Result, 'large', Current.Large, Last.Large, Base.Large);
  AddRow(Result, 'debug', Current.Debug, Last.Debug, Base.Debug);
end;

// Returns the bytes of the same heap in other numbers.
function BytesOf(const Numbers: THeapNumbers; Index: Integer): UInt64;
var
  Other: Integer;
begin
  Result := 0;
  // New heaps come first in the list: the distance to its end stays.
  Other := Length(Numbers.Threads) - Index;
  if (Other >= 0) and (Other < Length(Numbers.Threads)) then
    Result := Numbers.Threads[Other].Bytes;
end;

procedure TTop.AddThread(var Rows: TTopRows; const Name: string; const Thread: TThreadNumbers;
  LastBytes, BaseBytes: UInt64);
var
  Row: TTopRow;
begin
  Row.Name := Name;
  Row.Order := Length(Rows);
  Row.Blocks := Thread.Blocks;
  Row.Bytes := Thread.Bytes;
  Row.Spans := Thread.Spans;
  Row.Slack := Int64(Thread.SpanBytes) - Row.Bytes;
  Row.Growth := Row.Bytes - Int64(BaseBytes);
  Row.Rate := Rate(Row.Bytes, LastBytes);
  Insert(Row, Rows, Length(Rows));
end;

function TTop.ThreadRows: TTopRows;
var
  Index, FromEnd: Integer;
  Name: string;
begin
  Result := nil;
  for Index := 0 to High(Current.Threads) do
  begin
    if Current.Threads[Index].Heap^.IsUnused or Current.Threads[Index].Heap^.IsOfRegion then
      Continue;
    Name := IntToStr(Current.Threads[Index].Heap^.Head.ThreadNumber) + ' '
      + Current.Threads[Index].Heap^.Name;
    if Current.Threads[Index].Heap^.IsAbandoned then
      Name := 'ended threads';
    FromEnd := Length(Current.Threads) - Index;
    AddThread(Result, Name, Current.Threads[Index], BytesOf(Last, FromEnd), BytesOf(Base, FromEnd));
  end;
  AddThread(Result, 'full spans', Current.Unowned, Last.Unowned.Bytes, Base.Unowned.Bytes);
end;

// Returns what Row is sorted by, the largest first.
function ValueOf(const Row: TTopRow; Key: TSortKey): Int64;
begin
  case Key of
    skUsed: Result := Row.Bytes;
    skBlocks: Result := Row.Blocks;
    skSlack: Result := Row.Slack;
    skGrowth: Result := Row.Growth;
  else
    Result := -Row.Order;
  end;
end;

procedure TTop.Sort(var Rows: TTopRows);
var
  Index, Place: Integer;
  Row: TTopRow;
begin
  for Index := 1 to High(Rows) do
  begin
    Row := Rows[Index];
    Place := Index;
    while (Place > 0) and (ValueOf(Rows[Place - 1], SortedBy) < ValueOf(Row, SortedBy)) do
    begin
      Rows[Place] := Rows[Place - 1];
      Dec(Place);
    end;
    Rows[Place] := Row;
  end;
end;

// Returns a bar of Width characters: used, then cached, then the rest up to the peak.
function BarOf(const Numbers: THeapNumbers; Width: Integer): string;
var
  Whole: UInt64;

  function Part(Bytes: UInt64): Integer;
  begin
    Result := EnsureRange(Round(1.0 * Bytes * Width / Whole), 0, Width);
  end;

begin
  Whole := Max(Numbers.Peak, Numbers.Committed);
  if Whole = 0 then
    Exit(StringOfChar(' ', Width));
  Result := StringOfChar('#', Part(Numbers.Used));
  Result := Result + StringOfChar('-', Part(Numbers.Committed - Min(Numbers.Cached,
    Numbers.Committed)) - Length(Result));
  Result := Result + StringOfChar('c', Part(Numbers.Committed) - Length(Result));
  Result := Left(Result, Width);
end;

function RateText(Rate: Double): string;
begin
  Result := BytesText(Round(Rate)) + '/s';
  if Rate > 0 then
    Result := '+' + Result;
end;

procedure TTop.AddHead(Lines: TStrings; Columns: Integer);
begin
  Lines.Add(Format('%s   %s', [DescribeTarget(Opened), FormatDateTime('hh:nn:ss', Now)]));
  Lines.Add('[' + BarOf(Current, Columns - 2) + ']');
  Lines.Add(Format('# used %s   - slack beside it %s   c cached %s   of peak %s',
    [BytesText(Current.Used),
    BytesText(Max(0, Int64(Current.Committed) - Int64(Current.Cached) - Int64(Current.Used))),
    BytesText(Current.Cached), BytesText(Current.Peak)]));
  Lines.Add(Format('committed %s, held from the system   returned %s   %s blocks   %d heaps',
    [BytesText(Current.Committed), BytesText(Current.Returned), Grouped(Current.Blocks),
    Length(Current.Threads)]));
  Lines.Add(Format('used %s   committed %s   resizes %s/s   since the start of this view %s',
    [RateText(Rate(Current.Used, Last.Used)), RateText(Rate(Current.Committed, Last.Committed)),
    Grouped(Round(Rate(Current.Resizes, Last.Resizes))),
    BytesText(Int64(Current.Used) - Int64(Base.Used))]));
  Lines.Add(Note);
end;

// Returns the bytes of the regions of a name; of all for an empty one.
function RegionBytes(const Numbers: THeapNumbers; const Name: string): Int64;
var
  Region: TRegionNumbers;
begin
  Result := 0;
  for Region in Numbers.Regions do
    if (Region.Name = Name) or (Name = '') then
      Inc(Result, Region.Bytes);
end;

// Adds the regions with most bytes, and the sum of the others: at most Most lines with the title.
procedure TTop.AddRegions(Lines: TStrings; Most: Integer);
var
  Region: TRegionNumbers;
  Last, LastOthers: Int64;
begin
  Dec(Most);
  if Length(Current.Regions) > Most then
    Dec(Most);
  if (Current.Regions = nil) or (Most < 1) then
    Exit;
  Lines.Add('region       number    blocks      used    memory      peak    limit        rate');
  LastOthers := RegionBytes(Self.Last, '');
  for Region in ShownRegions(Current, Most) do
  begin
    Last := LastOthers;
    if Region.Name <> '' then
      Last := RegionBytes(Self.Last, Region.Name);
    Dec(LastOthers, Last);
    Lines.Add(Left(Start(RegionsName(Region), 13), 13) + Right(Grouped(Region.Regions), 6)
      + Right(Grouped(Region.Blocks), 10) + Right(BytesText(Region.Bytes), 10)
      + Right(BytesText(Region.Committed), 10) + Right(BytesText(Region.Peak), 10)
      + Right(LimitText(Region), 9) + Right(RateText(Rate(Region.Bytes, Last)), 12));
  end;
end;

procedure TTop.AddRows(Lines: TStrings; Most: Integer);
var
  Rows: TTopRows;
  Index: Integer;
begin
  if Shown = shThreads then
    Rows := ThreadRows
  else
    Rows := ClassRows;
  Sort(Rows);
  Lines.Add(Left(IfThen(Shown = shThreads, 'thread', 'size'), 16)
    + '   blocks       used      slack   spans      growth        rate   by '
    + KeyNames[SortedBy]);
  for Index := 0 to Min(Most, Length(Rows)) - 1 do
    Lines.Add(Left(Start(Rows[Index].Name, 14), 14) + Right(Grouped(Rows[Index].Blocks), 11)
      + Right(BytesText(Rows[Index].Bytes), 11) + Right(BytesText(Rows[Index].Slack), 11)
      + Right(Grouped(Rows[Index].Spans), 8) + Right(BytesText(Rows[Index].Growth), 12)
      + Right(RateText(Rows[Index].Rate), 14));
end;

// Adds a title and at most Most lines.
procedure TTop.AddTable(Lines: TStrings; Most: Integer);
const
  RegionLines = 7; // the title, five names, the others
begin
  if Shown = shRegions then
    AddRegions(Lines, Most + 1)
  else
  begin
    AddRegions(Lines, Min(RegionLines, Most div 3));
    AddRows(Lines, Max(1, Most + HeadLines - 1 - Lines.Count));
  end;
end;

// ---------------------------------------------------------------------------- the keys

// Sends words to the process; Note shows the answer. Returns whether it did what they say.
function TTop.Ask(const Words: string): Boolean;
const
  PatienceMs = 10000;
var
  Mailbox: TMailbox;
begin
  Result := False;
  try
    Mailbox := TMailbox.Create(Pid);
    try
      Mailbox.Ask(Words, PatienceMs);
      Note := Trim(Mailbox.PrintableAnswer).Replace(#10, ', ');
      Result := Mailbox.Outcome = poDone;
    finally
      Mailbox.Free;
    end;
  except
    on Error: ETool do
      Note := Error.Message;
  end;
end;

procedure TTop.Profile;
var
  Written: string;
begin
  if not IsProfiling then
  begin
    IsProfiling := Ask('profile');
    if IsProfiling then
      Note := 'a profile runs; p writes its page and ends it';
    Exit;
  end;
  IsProfiling := not Ask('report=profile:html');
  Written := Note;
  if not IsProfiling and Ask('profile=0') then
    Note := Written;
end;

procedure TTop.Press(const Key: string);
var
  Sign: AnsiChar;
  Each: TSortKey;
begin
  if Key = Escape then
    IsDone := True;
  if Key.StartsWith(Escape) then
    Exit; // an arrow, or another key without a letter
  for Sign in Key do
  begin
    for Each := Low(TSortKey) to High(TSortKey) do
      if Sign = KeySigns[Each] then
        SortedBy := Each;
    case Sign of
      'q': IsDone := True;
      'c': Shown := shClasses;
      't': Shown := shThreads;
      'e': Shown := shRegions;
      'p': Profile;
      'r': Base := Current;
      ' ': IsPaused := not IsPaused;
    end;
  end;
end;

// ---------------------------------------------------------------------------- the terminal

procedure Draw(Top: TTop; MostRows: Integer; OnTerminal: Boolean);
var
  Lines: TStringList;
  Columns, Rows, Index: Integer;
begin
  TerminalSize(Columns, Rows);
  if MostRows = 0 then
    MostRows := Max(1, Rows - HeadLines - 1);
  Lines := TStringList.Create;
  Top.AddHead(Lines, Columns);
  Top.AddTable(Lines, MostRows);
  if OnTerminal then
    Write(#27'[H');
  if not OnTerminal then
    Rows := Lines.Count;
  for Index := 0 to Min(Lines.Count, Rows) - 1 do
    if OnTerminal then
      Write(Start(Lines[Index], Columns), #27'[K', IfThen(Index < Rows - 1, #13#10, ''))
    else
      WriteLn(TrimRight(Lines[Index]));
  if OnTerminal then
    Write(#27'[J');
  Flush(Output);
  Lines.Free;
end;

procedure Watch(Top: TTop; DelayMs: Int64; MostRows: Integer);
const
  Forever = -1;
var
  Screen: TScreen;
  LeftMs: Int64;
begin
  Screen := TScreen.Create;
  try
    repeat
      Draw(Top, MostRows, True);
      LeftMs := Max(0, Int64(Top.NowMs) + DelayMs - Int64(GetTickCount64));
      if Top.IsPaused then
        LeftMs := Forever;
      Top.Press(Screen.Wait(LeftMs));
      if not Top.IsPaused and (Int64(GetTickCount64 - Top.NowMs) >= DelayMs) then
        Top.Look;
    until Top.IsDone or Screen.IsClosed;
  finally
    Screen.Free;
  end;
end;

function KeyOf(Arguments: TArguments): TSortKey;
var
  Name: string;
begin
  Name := Arguments.Value('sort', KeyNames[skUsed]);
  for Result := Low(TSortKey) to High(TSortKey) do
    if KeyNames[Result] = Name then
      Exit;
  raise ETool.Create(ecUsage, '--sort is used, blocks, slack, growth or size, not `%s`', [Name]);
end;

procedure RunTop(Arguments: TArguments);
var
  Top: TTop;
  DelayMs, MostRows: Int64;
begin
  DelayMs := Arguments.Milliseconds('every', 1000);
  MostRows := Arguments.Number('lines', 0, 1);
  Top := TTop.Create;
  Top.Pid := Arguments.ProcessId;
  Top.SortedBy := KeyOf(Arguments);
  if Arguments.Has('threads') then
    Top.Shown := shThreads
  else if Arguments.Has('regions') then
    Top.Shown := shRegions;
  Top.Opened := OpenProcess(Arguments);
  try
    Top.Look;
    if Arguments.Has('once') then
      Draw(Top, MostRows, False)
    else
    begin
      Top.Note := 'keys: c t e shown, u b f g s sorted by, r growth from now, space, p profile, q end';
      Watch(Top, DelayMs, MostRows);
    end;
  finally
    Top.Opened.Free;
    Top.Free;
  end;
end;

end.
