/// A database server: many threads that build and drop sets of records and their pages.
//
// Each transaction makes 40 blocks of the small mix, 8 of 1 KB to 64 KB and a result that
// grows to 8 KB, and frees them in another order; 16 transactions are open in each thread,
// and a random one ends to make room for the next. One operation is one transaction.
// Source: the kind of work of the NexusDB case of the FastCode challenge, of which
//         docs/seeds.md, D7 gives the times for 2 to 64 threads; written anew.
unit Workload.Nexus;

{$I Bench.inc}

interface

implementation

uses
  Bench.Blocks, Bench.Slots, Bench.Workloads;

const
  OpenCount = 16;
  RowCount = 40;
  PageCount = 8;
  ResultSize = 8192;
  ResultStep = 512;

type
  TTransaction = record
    Rows, Pages: TSlots;       //< owner   small blocks; blocks of 1 KB to 64 KB
    Answer: Pointer;           //< owner   ResultSize bytes marked with Key
    Key: UInt64;               //< owner   contents of Answer
  end;

procedure AnswerGrow(var Transaction: TTransaction);
var
  Size: Integer;
begin
  Size := ResultStep;
  Transaction.Answer := GetMem(Size);
  BlockMark(Transaction.Answer, Size, Transaction.Key);
  while Size < ResultSize do
  begin
    ReallocMem(Transaction.Answer, Size + ResultStep);
    BlockCheck(Transaction.Answer, Size, Transaction.Key);
    Inc(Size, ResultStep);
    BlockMark(Transaction.Answer, Size, Transaction.Key);
  end;
end;

procedure TransactionBegin(var Transaction: TTransaction; var State: UInt64);
begin
  Transaction.Key := RandomNext(State);
  SlotsFill(Transaction.Rows, RowCount, SmallMix, State);
  SlotsFill(Transaction.Pages, PageCount, MidMix, State);
  AnswerGrow(Transaction);
end;

procedure TransactionEnd(var Transaction: TTransaction);
begin
  SlotsFree(Transaction.Pages, MidMix);
  SlotsFree(Transaction.Rows, SmallMix);
  BlockCheck(Transaction.Answer, ResultSize, Transaction.Key);
  FreeMem(Transaction.Answer);
  Transaction := Default(TTransaction);
end;

procedure NexusRun(const Job: TJob);
var
  Open: array[0..OpenCount - 1] of TTransaction;
  State: UInt64;
  I: Int64;
  Place: Cardinal;
begin
  State := RandomSeed(Job.Thread);
  for I := 0 to High(Open) do
    TransactionBegin(Open[I], State);
  for I := 1 to Job.Operations do
  begin
    Place := RandomIndex(RandomNext(State), OpenCount);
    TransactionEnd(Open[Place]);
    TransactionBegin(Open[Place], State);
  end;
  for I := 0 to High(Open) do
    TransactionEnd(Open[I]);
end;

initialization
  AddWorkload('nexus', 80000, NexusRun);

end.
