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
  // What was read of a process.
  TSample = record
    Labels: string;
    IsUp: Boolean;
    Numbers: THeapNumbers;
  end;
  TSamples = array of TSample;

  TReadValue = function(const Numbers: THeapNumbers): UInt64;
  TMetric = record
    Name, Kind, Help: string;
    Read: TReadValue;
  end;

function ReadUsed(const Numbers: THeapNumbers): UInt64;
begin
  Result := Numbers.Used;
end;

function ReadBlocks(const Numbers: THeapNumbers): UInt64;
begin
  Result := Numbers.Blocks;
end;

function ReadCommitted(const Numbers: THeapNumbers): UInt64;
begin
  Result := Numbers.Committed;
end;

function ReadPeak(const Numbers: THeapNumbers): UInt64;
begin
  Result := Numbers.Peak;
end;

function ReadCached(const Numbers: THeapNumbers): UInt64;
begin
  Result := Numbers.Cached;
end;

function ReadReserved(const Numbers: THeapNumbers): UInt64;
begin
  Result := Numbers.Reserved;
end;

function ReadSpans(const Numbers: THeapNumbers): UInt64;
begin
  Result := Numbers.Spans;
end;

function ReadResizes(const Numbers: THeapNumbers): UInt64;
begin
  Result := Numbers.Resizes;
end;

function ReadMoves(const Numbers: THeapNumbers): UInt64;
begin
  Result := Numbers.Moves;
end;

function ReadCopied(const Numbers: THeapNumbers): UInt64;
begin
  Result := Numbers.CopiedBytes;
end;

function ReadContended(const Numbers: THeapNumbers): UInt64;
begin
  Result := Numbers.Contended;
end;

type
  TReadRegion = function(const Numbers: TRegionNumbers): UInt64;
  TRegionMetric = record
    Name, Help: string;
    Read: TReadRegion;
  end;

function ReadRegions(const Numbers: TRegionNumbers): UInt64;
begin
  Result := Numbers.Regions;
end;

function ReadRegionBlocks(const Numbers: TRegionNumbers): UInt64;
begin
  Result := Numbers.Blocks;
end;

function ReadRegionUsed(const Numbers: TRegionNumbers): UInt64;
begin
  Result := Numbers.Bytes;
end;

function ReadRegionCommitted(const Numbers: TRegionNumbers): UInt64;
begin
  Result := Numbers.Committed;
end;

function ReadRegionPeak(const Numbers: TRegionNumbers): UInt64;
begin
  Result := Numbers.Peak;
end;

function ReadRegionLimit(const Numbers: TRegionNumbers): UInt64;
begin
  Result := Numbers.Limit;
end;

const
  RegionMetrics: array[0..5] of TRegionMetric = (
    (Name: 'lanemm_regions'; Help: 'Regions of a name.'; Read: ReadRegions),
    (Name: 'lanemm_region_blocks'; Help: 'Blocks in use of the regions of a name.';
      Read: ReadRegionBlocks),
    (Name: 'lanemm_region_used_bytes'; Help: 'Usable bytes of these blocks.';
      Read: ReadRegionUsed),
    (Name: 'lanemm_region_committed_bytes'; Help: 'Backed memory of the regions of a name.';
      Read: ReadRegionCommitted),
    (Name: 'lanemm_region_committed_peak_bytes';
      Help: 'Highest backed memory of a single one of them.'; Read: ReadRegionPeak),
    (Name: 'lanemm_region_limit_bytes'; Help: 'Highest limit of one of them, 0 for none.';
      Read: ReadRegionLimit));

  Metrics: array[0..10] of TMetric = (
    (Name: 'lanemm_used_bytes'; Kind: 'gauge'; Help: 'Usable bytes of the blocks in use.';
      Read: ReadUsed),
    (Name: 'lanemm_blocks'; Kind: 'gauge'; Help: 'Blocks in use.'; Read: ReadBlocks),
    (Name: 'lanemm_span_bytes'; Kind: 'gauge';
      Help: 'Bytes of the spans that hold blocks, with their free blocks.'; Read: ReadSpans),
    (Name: 'lanemm_committed_bytes'; Kind: 'gauge'; Help: 'Memory in use or cached.';
      Read: ReadCommitted),
    (Name: 'lanemm_committed_peak_bytes'; Kind: 'gauge';
      Help: 'Highest committed memory since the start.'; Read: ReadPeak),
    (Name: 'lanemm_cached_bytes'; Kind: 'gauge';
      Help: 'Free memory that was not given back to the system yet.'; Read: ReadCached),
    (Name: 'lanemm_reserved_bytes'; Kind: 'gauge'; Help: 'Reserved address space.';
      Read: ReadReserved),
    (Name: 'lanemm_resizes_total'; Kind: 'counter'; Help: 'Calls of ReallocMem.';
      Read: ReadResizes),
    (Name: 'lanemm_resize_moves_total'; Kind: 'counter';
      Help: 'Calls of ReallocMem that moved the block.'; Read: ReadMoves),
    (Name: 'lanemm_resize_copied_bytes_total'; Kind: 'counter';
      Help: 'Bytes that ReallocMem copied.'; Read: ReadCopied),
    (Name: 'lanemm_lock_contended_total'; Kind: 'counter';
      Help: 'Tries that found the lock of a shard taken.'; Read: ReadContended));

  OsCallNames: array[TOsCall] of string = ('reserve', 'release', 'commit', 'huge', 'purge',
    'move', 'wait', 'wake', 'clock');

// Returns Text as the value of a label.
function Quoted(const Text: string): string;
begin
  Result := StringReplace(Text, '\', '\\', [rfReplaceAll]);
  Result := StringReplace(Result, '"', '\"', [rfReplaceAll]);
  Result := '"' + StringReplace(Result, #10, '\n', [rfReplaceAll]) + '"';
end;

procedure TakeTotals(const Totals: TPageTotals; var Numbers: THeapNumbers);
var
  Kind: TOsCall;
begin
  Numbers := Default(THeapNumbers);
  Numbers.Used := Totals.UsedBytes;
  Numbers.Blocks := Totals.Small.Blocks + Totals.Medium.Blocks + Totals.Large.Blocks;
  Numbers.Spans := Totals.Small.SpanBytes + Totals.Medium.SpanBytes + Totals.Large.SpanBytes;
  Numbers.Committed := Totals.CommittedBytes;
  Numbers.Peak := Totals.PeakBytes;
  Numbers.Cached := Totals.CachedBytes;
  Numbers.Reserved := Totals.ReservedBytes;
  Numbers.Resizes := Totals.Resizes;
  Numbers.Moves := Totals.Moves;
  Numbers.CopiedBytes := Totals.CopiedBytes;
  Numbers.Contended := Totals.Contended;
  for Kind := Low(TOsCall) to High(TOsCall) do
    Numbers.OsCalls[Kind] := Totals.OsCalls[Ord(Kind)];
end;

// Takes the totals of the status page, if the process writes them now.
procedure ReadPage(ProcessId: Integer; var Sample: TSample);
var
  Page: TPageCopy;
begin
  if not AskForTotals(ProcessId) then
    Exit;
  for Page in OpenPages(ProcessId) do
    if Page.HasTotals and not Page.IsParents then
    begin
      TakeTotals(Page.Page.Totals, Sample.Numbers);
      Sample.IsUp := True;
    end;
end;

// Reads one process; IsUp is false when the system refuses, or it has another version.
function ReadSample(ProcessId: Integer; Arguments: TArguments; out Error: string): TSample;
var
  Opened: TOpened;
begin
  Result := Default(TSample);
  Error := '';
  Result.Labels := Format('pid="%d",program=%s', [ProcessId, Quoted(ProcessName(ProcessId))]);
  try
    Opened := OpenTarget(TProcessTarget.Create(ProcessId), Arguments);
    try
      ReadNumbers(Opened.Image, Result.Numbers);
      Result.IsUp := True;
    finally
      Opened.Free;
    end;
  except
    on Failure: ETool do
    begin
      // Of all processes, one may end meanwhile, or not have started LaneMM yet.
      if (Failure.Code in [ecNoProcess, ecNotOnLaneMM]) and (Arguments.Words.Count > 0) then
        raise;
      if Failure.Code in [ecNotPermitted, ecOtherVersion] then
        ReadPage(ProcessId, Result);
      if not Result.IsUp then
        Error := Failure.Message;
    end;
    on Failure: Exception do // of this process alone
      Error := Format('process %d: %s', [ProcessId, Failure.Message]);
  end;
end;

procedure AddHead(Lines: TStrings; const Name, Kind, Help: string);
begin
  Lines.Add('# HELP ' + Name + ' ' + Help);
  Lines.Add('# TYPE ' + Name + ' ' + Kind);
end;

procedure AddMetric(Lines: TStrings; const Metric: TMetric; const Samples: TSamples);
var
  Sample: TSample;
begin
  AddHead(Lines, Metric.Name, Metric.Kind, Metric.Help);
  for Sample in Samples do
    if Sample.IsUp then
      Lines.Add(Format('%s{%s} %d', [Metric.Name, Sample.Labels, Metric.Read(Sample.Numbers)]));
end;

procedure AddUp(Lines: TStrings; const Samples: TSamples);
var
  Sample: TSample;
begin
  AddHead(Lines, 'lanemm_up', 'gauge', 'Whether the process could be read, or has answered.');
  for Sample in Samples do
    Lines.Add(Format('lanemm_up{%s} %d', [Sample.Labels, Ord(Sample.IsUp)]));
end;

procedure AddOsCalls(Lines: TStrings; const Samples: TSamples);
var
  Sample: TSample;
  Call: TOsCall;
begin
  AddHead(Lines, 'lanemm_system_calls_total', 'counter', 'System calls of LaneMM by kind.');
  for Sample in Samples do
    if Sample.IsUp then
      for Call := Low(TOsCall) to High(TOsCall) do
        Lines.Add(Format('lanemm_system_calls_total{%s,call="%s"} %d', [Sample.Labels,
          OsCallNames[Call], Sample.Numbers.OsCalls[Call]]));
end;

procedure AddClasses(Lines: TStrings; const Samples: TSamples);
type
  TClassValue = (cvBlocks, cvFree, cvSpanBytes);
const
  Names: array[TClassValue] of string = ('lanemm_class_blocks', 'lanemm_class_free_blocks',
    'lanemm_class_span_bytes');
  Helps: array[TClassValue] of string = ('Blocks in use by size class.',
    'Free blocks in the spans of a size class.', 'Bytes of the spans of a size class.');
var
  Value: TClassValue;
  Sample: TSample;
  Each: TClassNumbers;
  Values: array[TClassValue] of UInt64;
begin
  for Value := Low(TClassValue) to High(TClassValue) do
  begin
    AddHead(Lines, Names[Value], 'gauge', Helps[Value]);
    for Sample in Samples do
      if Sample.IsUp then
        for Each in Sample.Numbers.Classes do
          if Each.Spans > 0 then
          begin
            Values[cvBlocks] := Each.Blocks;
            Values[cvFree] := Each.FreeBlocks;
            Values[cvSpanBytes] := Each.SpanBytes;
            Lines.Add(Format('%s{%s,size="%d"} %d', [Names[Value], Sample.Labels,
              Each.BlockSize, Values[Value]]));
          end;
  end;
end;

procedure AddRegions(Lines: TStrings; const Samples: TSamples);
const
  Most = 100; // names; the sum of the others has an empty one
var
  Metric: TRegionMetric;
  Sample: TSample;
  Region: TRegionNumbers;
begin
  for Metric in RegionMetrics do
  begin
    AddHead(Lines, Metric.Name, 'gauge', Metric.Help);
    for Sample in Samples do
      if Sample.IsUp then
        for Region in ShownRegions(Sample.Numbers, Most) do
          Lines.Add(Format('%s{%s,region=%s} %d', [Metric.Name, Sample.Labels,
            Quoted(Region.Name), Metric.Read(Region)]));
  end;
end;

// Pipes, terminals and devices such as /dev/null must stay what they are.
function IsPlainOrNew(const FileName: string): Boolean;
var
  Status: TStat;
begin
  Result := (fpStat(FileName, Status) <> 0) or fpS_ISREG(Status.st_mode);
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
  Samples: TSamples;
  Processes: TArray<Integer>;
  Lines: TStringList;
  Metric: TMetric;
  Error, Output: string;
  Index: Integer;
begin
  Samples := nil;
  Processes := ProcessesOnLaneMM;
  if Arguments.Words.Count > 0 then
    Processes := [Arguments.ProcessId];
  Lines := TStringList.Create;
  try
    for Index := 0 to High(Processes) do
    begin
      Insert(ReadSample(Processes[Index], Arguments, Error), Samples, Length(Samples));
      if Error <> '' then
        WriteLn(StdErr, 'lanemm: ', Error);
    end;
    AddUp(Lines, Samples);
    for Metric in Metrics do
      AddMetric(Lines, Metric, Samples);
    AddOsCalls(Lines, Samples);
    AddClasses(Lines, Samples);
    AddRegions(Lines, Samples);
    Output := Arguments.Value('output', '');
    if not Arguments.Has('output') then
      Write(Lines.Text)
    else if IsPlainOrNew(Output) then
      ReplaceFile(Output, Lines)
    else
      WriteInto(Output, Lines);
  finally
    Lines.Free;
  end;
end;

end.
