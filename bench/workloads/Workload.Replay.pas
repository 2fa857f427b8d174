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
  SysUtils, Classes, Bench.Traces, Bench.Blocks, Bench.Sized, Bench.Workloads;

const
  TraceFile = '../../../bench/traces/lint.trace'; // from where run.sh puts this program
  SmallestSize = 8;

type
  TEvent = record
    Slot: Cardinal;      //< const   which block
    Kind: Cardinal;      //< const   what happens to it, as in traces/TraceRecorder.pas
    Size: Cardinal;      //< const   to which size; not for KindFree
  end;

  TReplay = class(TWorkload)
  private
    FEvents: array of TEvent;
    FSlotCount: Integer;
    procedure ReadEvents(Trace: TBytesStream);
    procedure Replay(var Blocks: TSizedBlocks; Count: Int64);
  public
    procedure Prepare(ThreadCount: Integer); override;
    procedure Run(const Job: TJob); override;
  end;

function ReadEvent(Trace: TBytesStream): TEvent;
var
  Number: Cardinal;
begin
  Number := TraceNumber(Trace);
  Result.Slot := Number div 4;
  Result.Kind := Number mod 4;
  Result.Size := 0;
  if Result.Kind = KindFree then
    Exit;
  Result.Size := TraceNumber(Trace);
  if Result.Size < SmallestSize then
    Result.Size := SmallestSize;
end;

procedure TReplay.ReadEvents(Trace: TBytesStream);
var
  Count: Integer;
begin
  SetLength(FEvents, Trace.Size);
  Count := 0;
  while Trace.Position < Trace.Size do
  begin
    FEvents[Count] := ReadEvent(Trace);
    if FEvents[Count].Slot >= Cardinal(FSlotCount) then
      FSlotCount := FEvents[Count].Slot + 1;
    Inc(Count);
  end;
  SetLength(FEvents, Count);
end;

procedure TReplay.Prepare(ThreadCount: Integer);
var
  Trace: TBytesStream;
begin
  Trace := TBytesStream.Create;
  Trace.LoadFromFile(ExtractFilePath(ParamStr(0)) + TraceFile);
  ReadEvents(Trace);
  Trace.Free;
end;

procedure TReplay.Replay(var Blocks: TSizedBlocks; Count: Int64);
var
  I: Int64;
begin
  for I := 0 to Count - 1 do
    case FEvents[I].Kind of
      KindNew: SizedNew(Blocks[FEvents[I].Slot], FEvents[I].Size, RandomSeed(I));
      KindFree: SizedFree(Blocks[FEvents[I].Slot]);
      KindResize: SizedResize(Blocks[FEvents[I].Slot], FEvents[I].Size);
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
  while Left > Length(FEvents) do
  begin
    Replay(Blocks, Length(FEvents));
    Dec(Left, Length(FEvents));
  end;
  Replay(Blocks, Left);
end;

initialization
  TReplay.Create('replay', 12000000);

end.
