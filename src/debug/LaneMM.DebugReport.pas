/// Reports of debug mode: the error, the block, its class, the backtraces, the bytes.
//
// Owns:       nothing.
// Invariants: reads no block: a finding is a copy, but for the start of InvalidReport. Class
//             records are read through LaneMM.Modules.
// Callers:    any thread that holds no lock, and the fault handler.
unit LaneMM.DebugReport;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Hooks, LaneMM.ReportState, LaneMM.Messages, LaneMM.DebugState, LaneMM.DebugCheck;

/// Reports a finding with the backtrace of the caller.
procedure FindingReport(const Finding: TFinding);
/// Reports Block, which the calling thread changes; State is the one that it is to have.
procedure FindingReportChange(Block: PDebugBlock; Kind: TEventKind; Message: TMessage;
  State: TDebugState);
/// Reports a finding with the backtrace of the place that a fault interrupted.
procedure FindingReportFault(const Finding: TFinding; const Fault: TFault);
/// Reports a call with P, any pointer at which no debug block in use begins, and where it lies.
/// Under no lock.
procedure InvalidReport(P: Pointer; Call: TInvalidCall);

implementation

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Atomic, LaneMM.Os, LaneMM.Arena, LaneMM.Walk, LaneMM.Blocks,
  LaneMM.SettingsState, LaneMM.ReportStack, LaneMM.Events, LaneMM.ReportHead, LaneMM.Text,
  LaneMM.Unwind, LaneMM.BacktraceTable, LaneMM.BacktraceText, LaneMM.Modules, LaneMM.Elf,
  LaneMM.Symbols, LaneMM.Contents, LaneMM.DebugSpans, LaneMM.Groups, LaneMM.GuardPages,
  LaneMM.Patterns;

type
  TReport = record
    Event: TEvent;
    Fields: TFields;
    Symbolizer: TSymbolizer;
  end;

const
  // Damage that is detected some time after the write.
  FoundLater = [evWriteBefore, evWriteAfter, evWriteAfterFree, evBookkeeping];
  BytesPerLine = 16;
  // Maximum number of backtraces in a report: allocation, free, here.
  MostStacks = 3;

// ---------------------------------------------------------------------------- fields

procedure FillBlock(var Fields: TFields; const Finding: TFinding);
begin
  FieldNumber(Fields, fiBlock, '%p', Finding.Data);
  FieldNumber(Fields, fiSize, '%g byte%+', Finding.Block.Size);
  FieldNumber(Fields, fiNumber, '%u', Finding.Block.Number);
  FieldNumber(Fields, fiOffset, '%d', NativeInt(Finding.Address - Finding.Data));
end;

// Fills in the name of the routine if it is known, else its number.
procedure FillMethod(var Report: TReport; const Finding: TFinding);
var
  Symbol: PSymbol;
begin
  if (Finding.Kind <> evFreedCall) and (Finding.Note <> noMethodCalled) then
    Exit;
  Symbol := SymbolsFind(Report.Symbolizer.Symbols, Finding.Method + 1);
  FieldStart(Report.Fields, fiMethod);
  if (Finding.Method <> 0) and (Symbol <> nil) and (Symbol^.Routine <> nil)
    and not SymbolHas(Symbol, 'FPC_EMPTYMETHOD') and not SymbolHas(Symbol, 'FPC_ABSTRACTERROR') then
    SymbolAddRoutine(Report.Fields.Values, Symbol)
  else if Finding.Slot >= 0 then
    TextAddNumber(Report.Fields.Values, Finding.Slot)
  else
    TextAdd(Report.Fields.Values, '?');
end;

// The kind of access and its bytes, as far as they are known.
procedure FillAccess(var Fields: TFields; const Finding: TFinding);
const
  Names: array[TFaultAccess] of PAnsiChar = ('access', 'read', 'write');
begin
  FieldStart(Fields, fiText);
  TextAddChars(Fields.Values, Names[Finding.Access]);
  if Finding.AccessSize <> 0 then
    TextAddForm(Fields.Values, ' of %g byte%+', Finding.AccessSize);
end;

// Both families, for msMismatchFamily. The record of the block may be corrupt.
procedure FillFamilies(var Fields: TFields; const Finding: TFinding);
const
  Allocators: array[TFamily] of PAnsiChar = ('malloc', 'operator new', 'operator new[]',
    'aligned operator new', 'aligned operator new[]');
  Deallocators: array[TFamily] of PAnsiChar = ('free or realloc', 'operator delete',
    'operator delete[]', 'aligned operator delete', 'aligned operator delete[]');
begin
  if Finding.Block.Family > High(TFamily) then
    Exit;
  FieldChars(Fields, fiAllocator, Allocators[Finding.Block.Family]);
  FieldChars(Fields, fiDeallocator, Deallocators[Finding.Family]);
end;

procedure FillFields(var Fields: TFields; const Finding: TFinding);
begin
  FieldNumber(Fields, fiAddress, '%p', Finding.Address);
  FieldNumber(Fields, fiGiven, '%g byte%+', Finding.Given);
  FieldNumber(Fields, fiSize, '%g byte%+', Finding.Block.Size);
  if Finding.Message = msMismatchFamily then
    FillFamilies(Fields, Finding);
  if Finding.State = dsNever then
    Exit;
  FillBlock(Fields, Finding);
  if ClassIsValid(Finding.FirstWord) then
  begin
    FieldStart(Fields, fiClass);
    ClassAddName(Fields.Values, Finding.FirstWord);
  end;
  if Finding.Kind = evGuard then
    FillAccess(Fields, Finding);
end;

// ---------------------------------------------------------------------------- parts

procedure AddRanges(var Report: TReport; const Finding: TFinding);
var
  Index: NativeInt;
begin
  for Index := 0 to NativeInt(Finding.RangeCount) - 1 do
  begin
    if Index = MostRanges then
    begin
      MessageAdd(Report.Event.Text, msMoreDamage, Report.Fields);
      Exit;
    end;
    FieldNumber(Report.Fields, fiOffset, '%d', Finding.Ranges[Index].Offset);
    FieldNumber(Report.Fields, fiLength, '%g byte%+', Finding.Ranges[Index].Length);
    MessageAdd(Report.Event.Text, msDamage, Report.Fields);
  end;
end;

procedure AddStack(var Report: TReport; Message: TMessage; const Stack: TBacktrace);
begin
  MessageAdd(Report.Event.Text, Message, Report.Fields);
  if (Stack.Count > 0) and (Stack.Frames[0] <> CutFrame) then
    BacktraceAddText(Report.Event.Text, Report.Symbolizer, Stack)
  else if (Message = msFoundStack) and Debug.IsEnding then
    MessageAdd(Report.Event.Text, msEndStack, Report.Fields)
  else
    MessageAdd(Report.Event.Text, msNoStack, Report.Fields);
end;

procedure AddStored(var Report: TReport; Message: TMessage; Number: Cardinal);
var
  Stack: TBacktrace;
begin
  if BacktraceRead(Number, Stack) or (Number = 0) then
    AddStack(Report, Message, Stack)
  else
  begin
    MessageAdd(Report.Event.Text, Message, Report.Fields);
    MessageAdd(Report.Event.Text, msLostStack, Report.Fields);
  end;
end;

procedure AddBlock(var Report: TReport; const Finding: TFinding);
begin
  FieldNumber(Report.Fields, fiThread, '%u', Finding.Block.AllocThread);
  FieldNumber(Report.Fields, fiFreeThread, '%u', Finding.Block.FreeThread);
  MessageAdd(Report.Event.Text, msBlock, Report.Fields);
  if Finding.Block.Group <> 0 then
  begin
    FieldStart(Report.Fields, fiGroup);
    GroupAddName(Report.Fields.Values, Finding.Block.Group);
    MessageAdd(Report.Event.Text, msGroup, Report.Fields);
  end;
  if fiClass in Report.Fields.Known then
    MessageAdd(Report.Event.Text, msClass, Report.Fields);
  AddStored(Report, msAllocStack, Finding.Block.AllocStack);
  if Finding.State = dsFreed then
    AddStored(Report, msFreeStack, Finding.Block.FreeStack);
end;

function IsDamaged(const Finding: TFinding; Offset: NativeInt): Boolean;
var
  Index: NativeInt;
begin
  Result := False;
  for Index := 0 to NativeInt(Finding.RangeCount) - 1 do
    if (Index < MostRanges) and (Offset >= Finding.Ranges[Index].Offset)
      and (Offset < Finding.Ranges[Index].Offset + NativeInt(Finding.Ranges[Index].Length)) then
      Result := True;
end;

// Adds a line of bytes; `*` precedes each damaged one.
procedure AddBytes(var Text: TText; const Finding: TFinding; First, Limit: NativeInt);
var
  Index: NativeInt;
begin
  TextAdd(Text, '      ');
  TextAddHex(Text, Finding.Data + NativeUInt(Finding.DumpOffset + First), SizeOf(Finding.Data) * 2);
  TextAdd(Text, ' ');
  for Index := First to Limit - 1 do
  begin
    if IsDamaged(Finding, Finding.DumpOffset + Index) then
      TextAdd(Text, '*')
    else
      TextAdd(Text, ' ');
    TextAddHex(Text, Finding.Dump[Index], 2);
  end;
  TextAdd(Text, '  ');
  for Index := First to Limit - 1 do
    if Finding.Dump[Index] in [32..126] then
      TextAdd(Text, AnsiChar(Finding.Dump[Index]))
    else
      TextAdd(Text, '.');
  TextAdd(Text, LineEnd);
end;

procedure AddDump(var Text: TText; const Finding: TFinding);
var
  First, Limit: NativeInt;
begin
  First := 0;
  while First < NativeInt(Finding.DumpLength) do
  begin
    Limit := First + BytesPerLine;
    if Limit > NativeInt(Finding.DumpLength) then
      Limit := Finding.DumpLength;
    AddBytes(Text, Finding, First, Limit);
    First := Limit;
  end;
end;

// ---------------------------------------------------------------------------- addresses

// Adds where an address outside of the heap lies. Finding lies on the stack of the thread; a report
// may have one of its own.
procedure AddPlace(var Report: TReport; const Finding: TFinding);
var
  Mapping: TOsMapping;
  Message: TMessage;
begin
  Mapping := Default(TOsMapping);
  if not ElfFindModule(Finding.Address, Mapping) then
    Message := msIsUnmapped
  else if NativeUInt(NativeUInt(@Finding) - Mapping.First)
    < NativeUInt(Mapping.Limit - Mapping.First) then
    Message := msIsStack
  else if Mapping.IsFile then
    Message := msIsModule
  else
    Message := msIsMemory;
  FieldChars(Report.Fields, fiPath, @Mapping.Path);
  MessageAdd(Report.Event.Text, Message, Report.Fields);
end;

procedure AddNote(var Report: TReport; const Finding: TFinding);
const
  Messages: array[TNote] of TMessage = (msHead, msIsInner, msIsFree, msNormalBlock, msHead,
    msIsFreedFill, msIsNewFill, msIsLikely, msIsUnknown, msClassRead, msMethodCalled);
begin
  if Finding.Note = noNormal then
  begin
    FieldNumber(Report.Fields, fiBlock, '%p', Finding.Data);
    FieldNumber(Report.Fields, fiOffset, '%g', NativeUInt(Finding.Address - Finding.Data));
    FieldNumber(Report.Fields, fiUsable, '%g byte%+', Finding.Block.Size);
    if Finding.Address <> Finding.Data then
      MessageAdd(Report.Event.Text, msIsInner, Report.Fields);
  end;
  if Finding.Note = noElsewhere then
    AddPlace(Report, Finding)
  else if Finding.Note <> noNone then
    MessageAdd(Report.Event.Text, Messages[Finding.Note], Report.Fields);
end;

// Adds the block before, of which an underrun may be an overrun.
procedure AddBefore(var Report: TReport; const Finding: TFinding);
begin
  if Finding.Before = 0 then
    Exit;
  FieldNumber(Report.Fields, fiBlock, '%p', Finding.Before);
  FieldNumber(Report.Fields, fiSize, '%g byte%+', Finding.BeforeSize);
  FieldNumber(Report.Fields, fiNumber, '%u', Finding.BeforeNumber);
  MessageAdd(Report.Event.Text, msMayBeOverrun, Report.Fields);
  FillBlock(Report.Fields, Finding);
end;

// Returns whether a write past the end lies before the page that follows a guarded block.
function IsNear(const Finding: TFinding): Boolean;
const
  EndMask = 15;
var
  Last: ^TDamageRange;
begin
  if (Finding.Kind <> evWriteAfter) or not (Finding.RangeCount in [1..MostRanges]) then
    Exit(False);
  Last := @Finding.Ranges[Finding.RangeCount - 1];
  Result := Last^.Offset + NativeInt(Last^.Length)
    <= NativeInt((Finding.Block.Size + EndMask) and not NativeUInt(EndMask));
end;

// Adds how to find the write that modified a block, unless that is done already.
procedure AddAdvice(var Report: TReport; const Finding: TFinding);
begin
  if IsNear(Finding) then
  begin
    if Settings.Values[opCheck] <> 1 then
      MessageAdd(Report.Event.Text, msNearAdvice, Report.Fields);
  end
  else if (Finding.Kind in [evWriteAfter, evWriteAfterFree]) and (Settings.Values[opGuard] = 0) then
    MessageAdd(Report.Event.Text, msWriteAdvice, Report.Fields);
end;

// ---------------------------------------------------------------------------- all

// Returns whether an error of this block was reported before, as far as that is known.
function IsTold(const Finding: TFinding): Boolean;
const
  OfBlocks = [evDoubleFree..evGuard, evMismatch];
var
  Place: ^TAtomicWord;
begin
  Result := False;
  if (Finding.State = dsNever) or not (Finding.Kind in OfBlocks) then
    Exit;
  Place := @Debug.Told[Finding.Block.Number mod ToldCount];
  // Any order: the word is complete by itself.
  Result := LoadAcquire(Place^) = Finding.Block.Number;
  StoreRelease(Place^, Finding.Block.Number);
end;

// Returns a key of this use of a block, or of one that is not known, with this backtrace; 0 for any
// other error.
function UseKey(const Finding: TFinding; const Here: TBacktrace): NativeUInt;
const
  OfUses = [evFreedCall, evUninitialised, evGuard];
begin
  Result := 0;
  if Finding.Kind in OfUses then
    Result := BacktraceHash(Here, NativeUInt(Finding.Block.Number + Finding.FirstWord) shl 8
      + Ord(Finding.Message)) or 1;
end;

procedure AddTraces(var Report: TReport; const Finding: TFinding; const Here: TBacktrace);
var
  Stack: TBacktrace;
begin
  SymbolizerOpen(Report.Symbolizer, MostStacks);
  SymbolizerAdd(Report.Symbolizer, Here);
  if Finding.Method <> 0 then
    SymbolizerAddCode(Report.Symbolizer, Finding.Method);
  if BacktraceRead(Finding.Block.AllocStack, Stack) then
    SymbolizerAdd(Report.Symbolizer, Stack);
  if BacktraceRead(Finding.Block.FreeStack, Stack) then
    SymbolizerAdd(Report.Symbolizer, Stack);
  SymbolizerResolveAgain(Report.Symbolizer);
end;

procedure WriteReport(const Finding: TFinding; const Here: TBacktrace);
var
  Report: TReport;
  Key: NativeUInt;
  Place: ^TAtomicWord;
begin
  Key := UseKey(Finding, Here);
  Place := @Debug.ToldUses[Key mod ToldUseCount];
  // Any order: the word is complete by itself.
  if (Key <> 0) and (LoadAcquire(Place^) = Key) or not EventOpen(Report.Event, Finding.Kind) then
    Exit;
  if Key <> 0 then
    StoreRelease(Place^, Key);
  ModulesLook;
  FieldsOpen(Report.Fields);
  FillFields(Report.Fields, Finding);
  AddTraces(Report, Finding, Here);
  FillMethod(Report, Finding);
  HeadAdd(Report.Event.Text, Report.Fields);
  MessageAdd(Report.Event.Text, Finding.Message, Report.Fields);
  AddNote(Report, Finding);
  AddRanges(Report, Finding);
  AddBefore(Report, Finding);
  if IsTold(Finding) then
    MessageAdd(Report.Event.Text, msFollows, Report.Fields);
  if Finding.State <> dsNever then
    AddBlock(Report, Finding);
  if Finding.Kind in FoundLater then
    AddStack(Report, msFoundStack, Here)
  else if not (Finding.Kind in [evAllocation, evFree])
    and not (Finding.Message in [msMismatchFree, msMismatchObject]) then
    // These have it among the backtraces of the block.
    AddStack(Report, msHereStack, Here);
  if IsSet(opDump) then
    AddDump(Report.Event.Text, Finding);
  AddAdvice(Report, Finding);
  SymbolizerKeep(Report.Symbolizer);
  FieldsClose(Report.Fields);
  EventClose(Report.Event);
end;

type
  // The arguments of WriteReport.
  TNews = record
    Finding: ^TFinding;
    Here: ^TBacktrace;
  end;
  PNews = ^TNews;

procedure WriteNews(Context: Pointer);
begin
  WriteReport(PNews(Context)^.Finding^, PNews(Context)^.Here^);
end;

// The thread, or its coroutine, may have a small stack.
procedure ReportAt(const Finding: TFinding; const Here: TBacktrace);
var
  News: TNews;
begin
  News.Finding := @Finding;
  News.Here := @Here;
  ReportRun(WriteNews, @News);
end;

procedure FindingReport(const Finding: TFinding);
var
  Here: TBacktrace;
begin
  BacktraceTake(Here);
  ReportAt(Finding, Here);
end;

procedure FindingReportFault(const Finding: TFinding; const Fault: TFault);
var
  Here: TBacktrace;
begin
  BacktraceTakeAt(Fault, Here);
  ReportAt(Finding, Here);
end;

procedure FindingReportChange(Block: PDebugBlock; Kind: TEventKind; Message: TMessage;
  State: TDebugState);
var
  Finding: TFinding;
begin
  FindingFrom(Finding, Kind, Message, Block);
  Finding.State := State;
  Finding.FirstWord := Block^.FirstWord;
  FindingReport(Finding);
end;

// ---------------------------------------------------------------------------- invalid pointers

// Returns the note about an address outside of the heap.
function NoteOutside(Address: NativeUInt): TNote;
begin
  if PatternIsNear(Address, Debug.FreeFill) then
    Result := noFreedFill
  else if PatternIsNear(Address, Debug.NewFill) then
    Result := noNewFill
  else
    Result := noElsewhere;
end;

const
  FreedMessages: array[TInvalidCall] of TMessage = (msDoubleFree, msDoubleRealloc, msFreedSize);

// Adds to Finding where P lies, which is in no debug block.
procedure LookAround(P: Pointer; Call: TInvalidCall; var Finding: TFinding);
var
  Span: PSpan;
  Info: TBlockInfo;
  IsInUse: Boolean;
begin
  Span := ArenaSpan(P);
  if Span = nil then
  begin
    Finding.Note := NoteOutside(NativeUInt(P));
    Exit;
  end;
  Finding.Note := noFree;
  GuardPagesHold;
  IsInUse := WalkFind(P, Info);
  GuardPagesLetGo;
  if IsInUse then
  begin
    Finding.Note := noNormal;
    Finding.Data := NativeUInt(Info.Address);
    Finding.Block.Size := Info.UsableSize;
    Exit;
  end;
  Span := BlockSpanExact(P);
  if (Span = nil) or (Span^.Kind <> skBlocks) then
    Exit;
  Finding.Kind := evDoubleFree;
  Finding.Message := FreedMessages[Call];
  Finding.Note := noNormal;
  Finding.Data := NativeUInt(P);
  Finding.Block.Size := Span^.BlockSize;
end;

procedure InvalidReport(P: Pointer; Call: TInvalidCall);
const
  Messages: array[TInvalidCall] of TMessage = (msInvalidFree, msInvalidRealloc, msInvalidSize);
var
  Finding: TFinding;
  Block: PDebugBlock;
begin
  Block := DebugBlockOf(P);
  if (Block <> nil) and (P = DebugBlockData(Block)) then
    FindingFrom(Finding, evDoubleFree, FreedMessages[Call], Block)
  else
    FindingFrom(Finding, evInvalidFree, Messages[Call], Block);
  if Block = nil then
    LookAround(P, Call, Finding)
  else if Finding.Kind = evInvalidFree then
    Finding.Note := noInner;
  Finding.Address := NativeUInt(P);
  FindingReport(Finding);
end;

end.
