/// Marks in a trace of memory accesses: which thread runs, and whether its accesses count.
//
// A mark is a store to a page that nothing else touches, so it stands in the trace itself. The
// program that is traced writes marks, bench/SharedLines.lpr reads them.
unit Bench.Marks;

{$I Bench.inc}

interface

const
  /// Address of the first mark.
  MarksBase = PtrUInt($200000000);
  /// Bytes between the marks of two kinds.
  MarksStep = 4096;
  /// Most threads of a trace.
  MostThreads = 32;

type
  /// What happens from the mark on.
  TMark = (
    maNobody,    //< accesses belong to no thread: the threads take turns
    maThread,    //< a thread, the index, is inside of the manager, or touches a block
    maOperation, //< an operation has ended
    maMeasure    //< what comes before was warm-up
  );

/// Maps the page; ends the program if the system refuses. Before the first Mark.
procedure MarksStart;
/// Writes a mark; Index is a thread for maThread, else 0.
procedure Mark(Kind: TMark; Index: Integer = 0); inline;

implementation

uses
  BaseUnix;

const
  MapFixed = $10;

procedure MarksStart;
begin
  if FpMmap(Pointer(MarksBase), MarksStep * (Ord(High(TMark)) + 1), PROT_READ or PROT_WRITE,
    MAP_PRIVATE or MAP_ANONYMOUS or MapFixed, -1, 0) <> Pointer(MarksBase) then
    RunError(203);
end;

procedure Mark(Kind: TMark; Index: Integer);
begin
  PPtrUInt(MarksBase + PtrUInt(Ord(Kind)) * MarksStep + PtrUInt(Index) * 8)^ := 0;
end;

end.
