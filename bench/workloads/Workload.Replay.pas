/// How fast is a real program's own sequence of calls?
//
// Replays bench/traces/lint.trace, 120,000 calls of a program that reads text files into
// strings and lists; again and again. One operation is one call; every block is marked when
// it is made or resized and checked when it is freed. Blocks below 8 bytes get 8.
// Source: the replay case of the FastCode memory manager challenge (docs/seeds.md, E4). The
//         trace is made by bench/traces/record.sh.
unit Workload.Replay;

{$I Bench.inc}

interface

implementation

uses
  SysUtils, Plans, Bench.Blocks, Bench.Sized, Bench.Workloads;

const
  TraceFile = '../../../bench/traces/lint.trace'; // from where run.sh puts this program
  SmallestSize = 8;

type
  TReplay = class(TWorkload)
  private
    FCalls: array of TPlanCall;
    FSlotCount: Integer;
    procedure ReadCalls(var Plan: TPlanReader);
    procedure Replay(var Blocks: TSizedBlocks; Count: Int64);
  public
    procedure Prepare(ThreadCount: Integer); override;
    procedure Run(const Job: TJob); override;
  end;

procedure TReplay.ReadCalls(var Plan: TPlanReader);
var
  Call: TPlanCall;
  Count: Integer;
begin
  Count := 0;
  while Plan.Next(Call) do
  begin
    if Call.Kind = pkMore then
      Continue;
    if Call.Size < SmallestSize then
      Call.Size := SmallestSize;
    if Count = Length(FCalls) then
      SetLength(FCalls, 2 * Count + 1024);
    FCalls[Count] := Call;
    if Call.Slot >= Cardinal(FSlotCount) then
      FSlotCount := Call.Slot + 1;
    Inc(Count);
  end;
  SetLength(FCalls, Count);
end;

procedure TReplay.Prepare(ThreadCount: Integer);
var
  Plan: ^TPlanReader;
begin
  System.New(Plan);
  Plan^.Open(ExtractFilePath(ParamStr(0)) + TraceFile);
  ReadCalls(Plan^);
  Plan^.Close;
  Dispose(Plan);
end;

procedure TReplay.Replay(var Blocks: TSizedBlocks; Count: Int64);
var
  I: Int64;
begin
  for I := 0 to Count - 1 do
    case FCalls[I].Kind of
      pkNew: SizedNew(Blocks[FCalls[I].Slot], FCalls[I].Size, RandomSeed(I));
      pkFree: SizedFree(Blocks[FCalls[I].Slot]);
      pkResize: SizedResize(Blocks[FCalls[I].Slot], FCalls[I].Size);
    end;
  SizedFreeAll(Blocks);
end;

procedure TReplay.Run(const Job: TJob);
var
  Blocks: TSizedBlocks;
  Left: Int64;
begin
  SetLength(Blocks, FSlotCount);
  Left := Job.Operations;
  while Left > Length(FCalls) do
  begin
    Replay(Blocks, Length(FCalls));
    Dec(Left, Length(FCalls));
  end;
  Replay(Blocks, Left);
end;

initialization
  TReplay.Create('replay', 12000000);

end.
