/// `lanemm prom`: the numbers as Prometheus text.
unit ToolProm;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Writes the metrics of a process, or of all processes on LaneMM.
procedure RunProm(Arguments: TArguments);

const
  PromCommand: TCommand = (
    Name: 'prom';
    Usage: '[PID] [--output=FILE]';
    Help: 'Writes metrics as Prometheus text';
    Details: '  --output=FILE  replaces FILE as a whole, as the textfile collector needs it;'#10
      + '                 FILE may also be a pipe or a device'#10
      + '  --copy=N       the Nth copy of LaneMM of a process with several'#10#10
      + 'Without PID: all processes on LaneMM. The labels are pid and program, size for the'#10
      + 'size classes, and region for the regions, which are summed up by name: the 100 largest,'#10
      + 'and all others with an empty name. A process whose memory you may not read is asked for'#10
      + 'its totals, and has no metric of classes and regions; one that does not answer has'#10
      + 'lanemm_up 0 and no other.'#10;
    Options: 'output: copy:';
    MostWords: 1;
    Run: RunProm);

implementation

uses
  SysUtils, Classes, BaseUnix, LaneMM.Layout, LaneMM.StatusPage, Targets, StatusPages, HeapNumbers,
  ToolMailbox, ToolOpen, ToolPs;

type
  TMetric = record
    Name, Kind, Help: string;
  end;
  // What a table of metrics says of one process, size class or region.
  TRow = record
    Labels: string;
    Values: TArray<UInt64>; // in the order of the table
  end;
  TRows = TArray<TRow>;
  TTable = (taUp, taTotals, taCalls, taClasses, taRegions);
  TTables = array[TTable] of TRows;

const
  UpMetrics: array[0..0] of TMetric = (
    (Name: 'lanemm_up'; Kind: 'gauge';
      Help: 'Whether the process could be read, or has answered.'));

  TotalMetrics: array[0..10] of TMetric = (
    (Name: 'lanemm_used_bytes'; Kind: 'gauge'; Help: 'Usable bytes of the blocks in use.'),
    (Name: 'lanemm_blocks'; Kind: 'gauge'; Help: 'Blocks in use.'),
    (Name: 'lanemm_span_bytes'; Kind: 'gauge';
      Help: 'Bytes of the spans that hold blocks, with their free blocks.'),
    (Name: 'lanemm_committed_bytes'; Kind: 'gauge'; Help: 'Memory in use or cached.'),
    (Name: 'lanemm_committed_peak_bytes'; Kind: 'gauge';
      Help: 'Highest committed memory since the start.'),
    (Name: 'lanemm_cached_bytes'; Kind: 'gauge';
      Help: 'Free memory that was not given back to the system yet.'),
    (Name: 'lanemm_reserved_bytes'; Kind: 'gauge'; Help: 'Reserved address space.'),
    (Name: 'lanemm_resizes_total'; Kind: 'counter'; Help: 'Calls of ReallocMem.'),
    (Name: 'lanemm_resize_moves_total'; Kind: 'counter';
      Help: 'Calls of ReallocMem that moved the block.'),
    (Name: 'lanemm_resize_copied_bytes_total'; Kind: 'counter';
      Help: 'Bytes that ReallocMem copied.'),
    (Name: 'lanemm_lock_contended_total'; Kind: 'counter';
      Help: 'Tries that found the lock of a shard taken.'));

  CallMetrics: array[0..0] of TMetric = (
    (Name: 'lanemm_system_calls_total'; Kind: 'counter'; Help: 'System calls of LaneMM by kind.'));

  ClassMetrics: array[0..2] of TMetric = (
    (Name: 'lanemm_class_blocks'; Kind: 'gauge'; Help: 'Blocks in use by size class.'),
    (Name: 'lanemm_class_free_blocks'; Kind: 'gauge';
      Help: 'Free blocks in the spans of a size class.'),
    (Name: 'lanemm_class_span_bytes'; Kind: 'gauge'; Help: 'Bytes of the spans of a size class.'));

  RegionMetrics: array[0..5] of TMetric = (
    (Name: 'lanemm_regions'; Kind: 'gauge'; Help: 'Regions of a name.'),
    (Name: 'lanemm_region_blocks'; Kind: 'gauge'; Help: 'Blocks in use of the regions of a name.'),
    (Name: 'lanemm_region_used_bytes'; Kind: 'gauge'; Help: 'Usable bytes of these blocks.'),
    (Name: 'lanemm_region_committed_bytes'; Kind: 'gauge';
      Help: 'Backed memory of the regions of a name.'),
    (Name: 'lanemm_region_committed_peak_bytes'; Kind: 'gauge';
      Help: 'Highest backed memory of a single one of them.'),
    (Name: 'lanemm_region_limit_bytes'; Kind: 'gauge';
      Help: 'Highest limit of one of them, 0 for none.'));

  OsCallNames: array[TOsCall] of string = ('reserve', 'release', 'commit', 'huge', 'purge',
    'move', 'wait', 'wake', 'clock');

// Returns Text as the value of a label.
function Quoted(const Text: string): string;
begin
  Result := StringReplace(Text, '\', '\\', [rfReplaceAll]);
  Result := StringReplace(Result, '"', '\"', [rfReplaceAll]);
  Result := '"' + StringReplace(Result, #10, '\n', [rfReplaceAll]) + '"';
end;

procedure AddRow(var Rows: TRows; const Labels: string; const Values: TArray<UInt64>);
var
  Row: TRow;
begin
  Row.Labels := Labels;
  Row.Values := Values;
  Insert(Row, Rows, Length(Rows));
end;

procedure AddCalls(const Labels: string; const Calls: array of UInt64; var Rows: TRows);
var
  Call: TOsCall;
begin
  for Call := Low(TOsCall) to High(TOsCall) do
    AddRow(Rows, Format('%s,call="%s"', [Labels, OsCallNames[Call]]), [Calls[Ord(Call)]]);
end;

procedure AddNumbers(const Labels: string; const Numbers: THeapNumbers; var Tables: TTables);
const
  MostNames = 100; // of regions; the sum of the others has an empty name
var
  Each: TClassNumbers;
  Region: TRegionNumbers;
begin
  AddRow(Tables[taTotals], Labels, [Numbers.Used, Numbers.Blocks, Numbers.Spans, Numbers.Committed,
    Numbers.Peak, Numbers.Cached, Numbers.Reserved, Numbers.Resizes, Numbers.Moves,
    Numbers.CopiedBytes, Numbers.Contended]);
  AddCalls(Labels, Numbers.OsCalls, Tables[taCalls]);
  for Each in Numbers.Classes do
    if Each.Spans > 0 then
      AddRow(Tables[taClasses], Format('%s,size="%d"', [Labels, Each.BlockSize]),
        [Each.Blocks, Each.FreeBlocks, Each.SpanBytes]);
  for Region in ShownRegions(Numbers, MostNames) do
    AddRow(Tables[taRegions], Format('%s,region=%s', [Labels, Quoted(Region.Name)]),
      [Region.Regions, Region.Blocks, Region.Bytes, Region.Committed, Region.Peak, Region.Limit]);
end;

// Adds the totals of the status page; false: the process does not write them now.
function AddPage(ProcessId: Integer; const Labels: string; var Tables: TTables): Boolean;
var
  Pages: TPageCopies;
  Totals: TPageTotals;
begin
  Result := AskForTotals(ProcessId, Pages) and (Pages <> nil);
  if not Result then
    Exit;
  Totals := Pages[0].Page.Totals;
  AddRow(Tables[taTotals], Labels, [Totals.UsedBytes,
    Totals.Small.Blocks + Totals.Medium.Blocks + Totals.Large.Blocks,
    Totals.Small.SpanBytes + Totals.Medium.SpanBytes + Totals.Large.SpanBytes,
    Totals.CommittedBytes, Totals.PeakBytes, Totals.CachedBytes, Totals.ReservedBytes,
    Totals.Resizes, Totals.Moves, Totals.CopiedBytes, Totals.Contended]);
  AddCalls(Labels, Totals.OsCalls, Tables[taCalls]);
end;

// Adds one process, which is not up when the system refuses, or it has another version.
procedure AddProcess(ProcessId: Integer; Arguments: TArguments; var Tables: TTables);
var
  Opened: TOpened;
  Numbers: THeapNumbers;
  Labels, Error: string;
  IsUp: Boolean;
begin
  Labels := Format('pid="%d",program=%s', [ProcessId, Quoted(ProcessName(ProcessId))]);
  Error := '';
  IsUp := False;
  try
    Opened := OpenTarget(TProcessTarget.Create(ProcessId), Arguments);
    try
      ReadNumbers(Opened.Image, Numbers);
      AddNumbers(Labels, Numbers, Tables);
      IsUp := True;
    finally
      Opened.Free;
    end;
  except
    on Failure: ETool do
    begin
      // Of all processes, one may end meanwhile, or not have started LaneMM yet.
      if (Failure.Code in [ecNoProcess, ecNotOnLaneMM]) and (Arguments.Words.Count > 0) then
        raise;
      IsUp := (Failure.Code in [ecNotPermitted, ecOtherVersion])
        and AddPage(ProcessId, Labels, Tables);
      if not IsUp then
        Error := Failure.Message;
    end;
    on Failure: Exception do // of this process alone
      Error := Format('process %d: %s', [ProcessId, Failure.Message]);
  end;
  AddRow(Tables[taUp], Labels, [Ord(IsUp)]);
  if Error <> '' then
    WriteLn(StdErr, 'lanemm: ', Error);
end;

procedure AddLines(Lines: TStrings; const Metrics: array of TMetric; const Rows: TRows);
var
  Index: Integer;
  Name: string;
  Row: TRow;
begin
  for Index := 0 to High(Metrics) do
  begin
    Name := Metrics[Index].Name;
    Lines.Add('# HELP ' + Name + ' ' + Metrics[Index].Help);
    Lines.Add('# TYPE ' + Name + ' ' + Metrics[Index].Kind);
    for Row in Rows do
      Lines.Add(Format('%s{%s} %d', [Name, Row.Labels, Row.Values[Index]]));
  end;
end;

// Creates a file that was not there; what has its name is no file of this call, maybe a link to a
// file of others.
procedure WriteNew(const FileName: string; Lines: TStrings);
var
  Handle: LongInt;
  Target: THandleStream;
begin
  fpUnlink(FileName);
  Handle := fpOpen(FileName, O_WRONLY or O_CREAT or O_EXCL, &666);
  if Handle < 0 then
    raise ETool.Create(ecFailed, 'cannot write %s: %s', [FileName, SysErrorMessage(fpGetErrno)]);
  Target := THandleStream.Create(Handle);
  try
    Lines.SaveToStream(Target);
  finally
    Target.Free;
    fpClose(Handle);
  end;
end;

// Writes a file beside FileName and gives it that name at once.
procedure ReplaceFile(const FileName: string; Lines: TStrings);
var
  NewName: string;
begin
  NewName := Format('%s.%d.new', [FileName, fpGetPid]);
  try
    WriteNew(NewName, Lines);
    if fpRename(NewName, FileName) <> 0 then
      raise ETool.Create(ecFailed, 'cannot write %s: %s', [FileName, SysErrorMessage(fpGetErrno)]);
  except
    DeleteFile(NewName);
    raise;
  end;
end;

// SaveToFile opens a file twice, which a pipe cannot bear.
procedure WriteInto(const FileName: string; Lines: TStrings);
var
  Output: TextFile;
begin
  AssignFile(Output, FileName);
  Rewrite(Output);
  try
    Write(Output, Lines.Text);
  finally
    CloseFile(Output);
  end;
end;

procedure RunProm(Arguments: TArguments);
var
  Tables: TTables;
  Processes: TArray<Integer>;
  Lines: TStringList;
  Output: string;
  ProcessId: Integer;
begin
  Tables := Default(TTables);
  if Arguments.Words.Count > 0 then
    Processes := [Arguments.ProcessId]
  else
    Processes := ProcessesOnLaneMM;
  for ProcessId in Processes do
    AddProcess(ProcessId, Arguments, Tables);
  Lines := TStringList.Create;
  try
    AddLines(Lines, UpMetrics, Tables[taUp]);
    AddLines(Lines, TotalMetrics, Tables[taTotals]);
    AddLines(Lines, CallMetrics, Tables[taCalls]);
    AddLines(Lines, ClassMetrics, Tables[taClasses]);
    AddLines(Lines, RegionMetrics, Tables[taRegions]);
    Output := Arguments.Value('output', '');
    if not Arguments.Has('output') then
      Write(Lines.Text)
    else if IsPlainFile(Output) or not FileExists(Output) then
      ReplaceFile(Output, Lines)
    else
      WriteInto(Output, Lines); // pipes, terminals and devices such as /dev/null stay what they are
  finally
    Lines.Free;
  end;
end;

end.
