/// Reports of what the engine itself notices: memory limits, and corrupt spans.
//
// Owns:       Observe.Spare, ReportSpare, LimitReports.
// Callers:    any thread that holds no lock: LimitReport is set as Hooks.LimitReached,
//             CorruptionReport as Hooks.Corruption.
unit LaneMM.EngineReports;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types, LaneMM.Hooks;

/// Takes memory that the next report of LimitReport may use, unless there is some.
procedure LimitReportKeep;
/// Reports the event with the backtrace of the request; Size is the request in bytes, or 0. With
/// `limit:report` the first one of each cause says what holds the memory; leRefused has no other.
procedure LimitReport(Event: TLimitEvent; Size: NativeUInt);
/// Reports that Span is corrupt at Block, with the backtrace of the call that noticed it; nil: the
/// block is unknown.
procedure CorruptionReport(Corruption: TCorruption; Span: PSpan; Block: PBlock);

implementation

uses
  LaneMM.Atomic, LaneMM.Os, LaneMM.Layout, LaneMM.Backed, LaneMM.ReportState, LaneMM.ReportStack,
  LaneMM.Events, LaneMM.Messages, LaneMM.ReportHead, LaneMM.Text, LaneMM.SettingsState,
  LaneMM.BacktraceText, LaneMM.Modules, LaneMM.Unwind, LaneMM.ObserveState, LaneMM.HeapReport;

const
  // What a report takes that names what holds the memory, and the stack of LaneMM.ReportStack.
  SpareBytes = 5 shl 18;
  // What one takes besides that has call sites, classes and groups.
  ReportSpareBytes = 16 shl 20;

type
  // What LimitReport is called with.
  PLimitNews = ^TLimitNews;
  TLimitNews = record
    Event: TLimitEvent;
    Size: NativeUInt;
    IsWhole: Boolean;
    Here: TBacktrace;
  end;
  // What CorruptionReport is called with.
  PCorruptionNews = ^TCorruptionNews;
  TCorruptionNews = record
    Corruption: TCorruption;
    Span: PSpan;
    Block: PBlock;
    Here: TBacktrace;
  end;

// Returns the size in bytes of the limit, or of the reserve.
function BytesOf(Event: TLimitEvent): NativeUInt;
begin
  case Event of
    leSoft: Result := Process.Limits[lkSoft].Slices;
    leHard: Result := Process.Limits[lkHard].Slices;
    leRegion: Result := OsThreadHeap^.Region^.Data.Limit;
  else
    Result := Process.ReserveSlices;
  end;
  Result := Result shl SliceShift;
end;

procedure AddStack(var Text: TText; Message: TMessage; const Fields: TFields;
  const Here: TBacktrace);
var
  Symbolizer: TSymbolizer;
begin
  ModulesLook;
  SymbolizerOpen(Symbolizer, 1);
  SymbolizerAdd(Symbolizer, Here);
  SymbolizerResolve(Symbolizer);
  MessageAdd(Text, Message, Fields);
  if Here.Frames[0] <> CutFrame then
    BacktraceAddText(Text, Symbolizer, Here)
  else
    MessageAdd(Text, msNoStack, Fields);
  SymbolizerClose(Symbolizer);
end;

procedure LimitReportKeep;
begin
  OsTakeTable(Observe.Spare, SpareBytes);
  if IsSet(opLimitReport) then
    OsTakeTable(Observe.ReportSpare, ReportSpareBytes);
end;

// Returns whether the report of an event says all that holds the memory: the first one of its
// cause.
function TakesAll(Event: TLimitEvent): Boolean;
begin
  Result := IsSet(opLimitReport) and (Event <> leRegion);
  if Event = leReserve then
  begin
    Event := leRefused; // there is no memory either, unless the limit is why
    Result := Result and (LoadAcquire(Process.Limits[lkHard].State) = Ord(lsBelow));
  end;
  Result := Result and (Swap(Observe.LimitReports[Event], 1) = 0);
end;

procedure AddLimit(var Text: TText; var Fields: TFields; News: PLimitNews);
const
  Messages: array[TLimitEvent] of TMessage = (msLimitSoft, msLimitHard, msReserve,
    msLimitRegion, msRefused, msContainer);
  OfContainer: array[Boolean] of TMessage = (msContainer, msContainerWaits);
begin
  FieldNumber(Fields, fiUsable, '%g byte%+', BackedSlices shl SliceShift);
  HeadAdd(Text, Fields);
  if News^.Event = leContainer then // no call of the program's is to blame
  begin
    FieldNumber(Fields, fiSize, '%g byte%+', Observe.Group.Limit);
    FieldNumber(Fields, fiGiven, '%g byte%+', Observe.Group.Used);
    MessageAdd(Text, OfContainer[Observe.Group.IsWaiting], Fields);
  end
  else
  begin
    FieldNumber(Fields, fiSize, '%g byte%+', BytesOf(News^.Event));
    FieldNumber(Fields, fiGiven, '%g byte%+', News^.Size);
    if News^.Event = leRegion then
      FieldChars(Fields, fiRegion, PAnsiChar(OsThreadHeap^.Region^.Data.Name));
    MessageAdd(Text, Messages[News^.Event], Fields);
    AddStack(Text, msHereStack, Fields, News^.Here);
  end;
  if News^.IsWhole then // what holds the memory: by call site and class as sampled, then the blocks
  begin
    HeapReportAdd(Text, hrInUse);
    if @Observe.AddInUse <> nil then
      Observe.AddInUse(Text);
  end
  else if @Observe.AddMostUsed <> nil then
    Observe.AddMostUsed(Text);
end;

// Reports the limit that a PLimitNews leads to.
procedure ReportLimit(Context: Pointer);
var
  Opened: TEvent;
  Fields: TFields;
begin
  ModulesLook; // first: the text takes half of what is left
  FieldsOpen(Fields);
  if EventOpen(Opened, evLimit) then
  begin
    AddLimit(Opened.Text, Fields, Context);
    EventClose(Opened);
  end;
  FieldsClose(Fields);
  LimitReportKeep;
end;

procedure Release(var Spare: TAtomicWord; Bytes: NativeUInt);
begin
  OsReleasePages(Pointer(Swap(Spare, 0)), Bytes);
end;

procedure LimitReport(Event: TLimitEvent; Size: NativeUInt);
var
  News: TLimitNews;
begin
  News.Event := Event;
  News.Size := Size;
  News.IsWhole := EventIsWanted(evLimit) and TakesAll(Event);
  if not News.IsWhole and (Event = leRefused) then
    Exit;
  Release(Observe.Spare, SpareBytes);
  if News.IsWhole then
    Release(Observe.ReportSpare, ReportSpareBytes);
  BacktraceTake(News.Here);
  ReportRun(ReportLimit, @News);
end;

// Adds the bytes of a block's first word, in hexadecimal digits and as characters.
procedure AddWord(var Text: TText; Block: PByte);
var
  Index: Integer;
begin
  for Index := 0 to SizeOf(TBlock) - 1 do
  begin
    TextAddHex(Text, Block[Index], 2);
    TextAdd(Text, ' ');
  end;
  for Index := 0 to SizeOf(TBlock) - 1 do
    if Block[Index] in [32..126] then
      TextAdd(Text, AnsiChar(Block[Index]))
    else
      TextAdd(Text, '.');
end;

procedure FillBlock(var Fields: TFields; Span: PSpan; Block: PBlock);
begin
  FieldNumber(Fields, fiSize, '%g byte%+', Span^.BlockSize);
  if Block = nil then
    Exit;
  FieldNumber(Fields, fiAddress, '%p', NativeUInt(Block));
  FieldNumber(Fields, fiBlock, '%p', NativeUInt(NativeUInt(Block) - Span^.BlockSize));
  FieldStart(Fields, fiText);
  AddWord(Fields.Values, PByte(Block));
end;

// Reports what a PCorruptionNews leads to.
procedure ReportCorruption(Context: Pointer);
const
  Messages: array[Boolean, TCorruption] of TMessage = ((msCorruptLink, msCorruptCount),
    (msCorruptList, msCorruptCount));
var
  Opened: TEvent;
  Fields: TFields;
  News: PCorruptionNews;
begin
  News := Context;
  if not EventOpen(Opened, evCorruption) then
    Exit;
  FieldsOpen(Fields);
  FillBlock(Fields, News^.Span, News^.Block);
  HeadAdd(Opened.Text, Fields);
  MessageAdd(Opened.Text, Messages[News^.Block = nil, News^.Corruption], Fields);
  if (News^.Corruption = coLink) and (News^.Block <> nil) then
  begin
    if IsSet(opDump) then
      MessageAdd(Opened.Text, msCorruptWord, Fields);
    if PByte(News^.Block) <> News^.Span^.Start then
      MessageAdd(Opened.Text, msBlockBefore, Fields);
  end;
  MessageAdd(Opened.Text, msDebugAdvice, Fields);
  AddStack(Opened.Text, msFoundStack, Fields, News^.Here);
  FieldsClose(Fields);
  EventClose(Opened);
end;

procedure CorruptionReport(Corruption: TCorruption; Span: PSpan; Block: PBlock);
var
  News: TCorruptionNews;
begin
  News.Corruption := Corruption;
  News.Span := Span;
  News.Block := Block;
  BacktraceTake(News.Here);
  ReportRun(ReportCorruption, @News);
end;

end.
