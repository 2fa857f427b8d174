/// Names LaneMM's shared words for bench/lines.sh, and keeps the purge thread out of its traces.
unit LaneMMWords;

{$I Bench.inc}

interface

implementation

uses
  LaneMM, LaneMM.Layout, LaneMM.Types, Bench.Words;

const
  ShardsEnd = SizeOf(TShard) * ShardLimit;

procedure Name(const Word: string; Address: Pointer; Size: PtrUInt; Step: PtrUInt = 1 shl 40;
  Count: PtrUInt = 1);
begin
  WriteLn(Word, ',', PtrUInt(Address), ',', Size, ',', Step, ',', Count);
end;

// A field, up to the next one.
procedure NameTo(const Word: string; Address, Next: Pointer);
begin
  Name(Word, Address, PtrUInt(Next) - PtrUInt(Address));
end;

procedure NameProcess;
begin
  NameTo('Process.SweepWanted', @Process.SweepWanted, @Process.SweepNext);
  NameTo('Process.SweepNext', @Process.SweepNext, @Process.SweepFrom);
  NameTo('Process.SweepFrom', @Process.SweepFrom, @Process.PurgeState);
  NameTo('Process.PurgeState', @Process.PurgeState, @Process.BellSeen);
  NameTo('Process.ShelveFrom', @Process.ShelveFrom, @Process.ShelveNext);
  NameTo('Process.ShelveNext', @Process.ShelveNext, @Process.BackedLine);
  NameTo('Process.Backed', @Process.Backed, @Process.PeakSlices);
  NameTo('Process.PeakSlices', @Process.PeakSlices, @Process.LargeDensity);
  NameTo('Process.LargeDensity and the like', @Process.LargeDensity, @Process.PeakUsed);
  NameTo('Process.LookedMs', @Process.LookedMs, @Process.PurgesUnderWay);
  NameTo('Process.PurgesUnderWay', @Process.PurgesUnderWay, @Process.PurgesHeld);
  NameTo('Process.PurgesHeld', @Process.PurgesHeld, @Process.CommitsUnderWay);
  NameTo('Process.CommitsUnderWay', @Process.CommitsUnderWay, @Process.UnusedHeaps);
  NameTo('Process.UnusedHeaps', @Process.UnusedHeaps, @Process.UnusedRegions);
  NameTo('Process.VacantHeaps', @Process.VacantHeaps, @Process.FreshHeaps);
  NameTo('Process.FreshHeaps', @Process.FreshHeaps, @Process.LeavingThreads);
  NameTo('Process.LeavingThreads', @Process.LeavingThreads, @Process.OsCalls);
  NameTo('Process.OsCalls', @Process.OsCalls, PByte(@Process) + SizeOf(Process));
  Name('TShard.Lock', @Process.Shards[1].Lock, SizeOf(TLock), SizeOf(TShard), ShardLimit);
  Name('TShard.Released', @Process.Shards[1].Released, SizeOf(TAtomicWord), SizeOf(TShard),
    ShardLimit);
  Name('TShard: the rest', @Process.Shards, ShardsEnd);
  Name('Process: the rest', @Process, SizeOf(Process));
end;

procedure NameArena(Arena: PArena);
var
  Records: PtrUInt;
begin
  Name('TArena.Frontier', @Arena^.Frontier, SizeOf(TAtomicWord));
  Name('TArena: the rest', Arena, SizeOf(TArena));
  Records := Arena^.MostSlices;
  Name('TSpan: owner''s line', @Arena^.Spans^.FreeList, CacheLineSize, SizeOf(TSpan), Records);
  Name('TSpan: second line', @Arena^.Spans^.Owner, CacheLineSize, SizeOf(TSpan), Records);
  Name('TSpan.Remote', @Arena^.Spans^.Remote, CacheLineSize, SizeOf(TSpan), Records);
  Name('blocks', Arena^.Base, Records * SliceSize);
end;

procedure NameHeap(Heap: PHeap; const Whose: string);
begin
  NameTo(Whose + ': owner fields', Heap, @Heap^.Queues);
  NameTo(Whose + '.Queues', @Heap^.Queues, @Heap^.Roomy);
  NameTo(Whose + '.Roomy', @Heap^.Roomy, @Heap^.Lock);
  NameTo(Whose + '.Lock', @Heap^.Lock, @Heap^.Taken);
  NameTo(Whose + '.Taken', @Heap^.Taken, @Heap^.Arriving);
  NameTo(Whose + '.Section and RunsClaimed', @Heap^.Section, @Heap^.KeptCounts);
  NameTo(Whose + ': the rest', Heap, PByte(Heap) + SizeOf(THeap));
end;

procedure PrintAll;
var
  Heap: PHeap;
begin
  NameProcess;
  NameHeap(Process.Abandoned, 'Abandoned');
  Heap := PHeap(Process.Heaps);
  while Heap <> nil do
  begin
    if Heap <> Process.Abandoned then
      NameHeap(Heap, 'THeap');
    Heap := Heap^.NextHeap;
  end;
  NameArena(PArena(Process.Arenas[0]));
end;

initialization
  PrintWords := PrintAll;
  Process.PurgeDelayMs := 3600 * 1000;

end.
