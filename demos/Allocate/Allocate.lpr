/// What a node costs as an object and as a record, in time and in memory.
//
// Every kind of node runs in a process of its own: none finds the memory of another.
program Allocate;

{$mode delphi}{$H+}

uses
  {$ifdef unix} cthreads, {$endif}
  SysUtils, StrUtils, Demo.Options, Demo.Report, Demo.Machine, NodeKinds;

const
  Usage =
    'Makes N nodes and frees them: objects, records, and the nodes of a TTree<string> as'#10 +
    'both. Prints the time and the memory that the nodes take.'#10 +
    '  --count=N       nodes, 10,000,000'#10 +
    '  --kind=NAME     print one row: objects, records, tree_objects or tree_records'#10;

procedure PrintKind(const Kind: TKind; Count: Integer);
var
  Nodes: TNodes;
  Start, MakeMs, FreeMs: Double;
  Bytes: Int64;
begin
  Nodes := Kind.Nodes.Create;
  Bytes := ResidentBytes;
  Start := ClockMs;
  Nodes.Make(Count);
  MakeMs := ClockMs - Start;
  Bytes := ResidentBytes - Bytes;
  Start := ClockMs;
  if Nodes.FreeAll <> Count then
    raise Exception.Create('nodes were lost');
  FreeMs := ClockMs - Start;
  Nodes.Free;
  ReportText('%-24s%10.1f%10.1f%11.1f%16s',
    [Kind.Title, MakeMs, FreeMs, Bytes / BytesPerMb, Kind.Book]);
  ReportValue(Kind.Key + '.make_ms', MakeMs);
  ReportValue(Kind.Key + '.free_ms', FreeMs);
  ReportValue(Kind.Key + '.resident_bytes', Bytes);
end;

/// Prints the row of Kind from a new process, which the command RUN of the environment runs, if it is
/// set (another target, see tests/matrix); a program of Windows needs none inside.
procedure PrintKindApart(const Kind: TKind; Count: Integer);
var
  Starter, Arguments: string;
begin
  Flush(Output);
  Starter := ParamStr(0);
  Arguments := Format('--kind=%s --count=%d%s',
    [Kind.Key, Count, IfThen(OptionGiven('csv'), ' --csv')]);
  if (GetEnvironmentVariable('RUN') <> '') and (PathDelim = '/') then
  begin
    Arguments := Starter + ' ' + Arguments;
    Starter := GetEnvironmentVariable('RUN');
  end;
  if ExecuteProcess(Starter, Arguments) <> 0 then
    Halt(1);
end;

procedure PrintAll(Count: Integer);
var
  Kind: TKind;
begin
  ReportTitle(Grouped(Count) + ' nodes');
  ReportText('%-24s%10s%10s%11s%16s', ['', 'make ms', 'free ms', 'MB in use', 'book ms, Delphi']);
  for Kind in Kinds do
    PrintKindApart(Kind, Count);
  ReportText('An object has %d hidden pointer(s): %.0f MB for all. Book, 10 million: two, 76 MB.',
    [TObject.InstanceSize div SizeOf(Pointer), TObject.InstanceSize / BytesPerMb * Count]);
end;

procedure PrintOne(const Key: string; Count: Integer);
var
  Kind: TKind;
begin
  for Kind in Kinds do
    if Kind.Key = Key then
    begin
      PrintKind(Kind, Count);
      Exit;
    end;
  OptionFail('unknown kind ' + Key);
end;

var
  Count: Integer;
begin
  OptionsRead(Usage, ['count=', 'kind=']);
  Count := OptionNumber('count', 10000000, 1000000000);
  if OptionText('kind', '') = '' then
    PrintAll(Count)
  else
    PrintOne(OptionText('kind', ''), Count);
end.
