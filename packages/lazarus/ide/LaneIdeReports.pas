/// The views of a run: which there are, their columns, and what stands in them while they are empty.
//
// Callers: one thread at a time.
unit LaneIdeReports;

{$mode objfpc}{$H+}

interface

uses
  LaneIdeRows;

type
  TViewKind = (vkRetained, vkLeakLines, vkErrors, vkClasses, vkLines, vkGrowth, vkLocks, vkLive,
    vkHeld, vkOutput);
  /// What a run looks for.
  TRunKind = (rkLeaks, rkDebug, rkProfile);
  TViews = array[TViewKind] of TView;

  /// All views of a run.
  TReport = class
  public
    Views: TViews;
    Head: string;        // program and process
    IsEmpty: Boolean;    // no file of LaneMM was read
    constructor Create;
    destructor Destroy; override;
    /// Sorts all views, the most in their first columns first.
    procedure Sort;
    /// Returns the changes from Before to this report.
    function Since(Before: TReport): TReport;
  end;

const
  /// Amounts of the lines in use, which the marks in the editor show.
  InUseBytes = 0;
  InUseBlocks = 1;
  PeakBytes = 2;
  AllocatedBytes = 3;
  AllocatedBlocks = 4;

implementation

uses
  LaneIdeWords;

constructor TReport.Create;
const
  Empty: array[TViewKind] of PResStringRec = (@rsRunLeaksFirst, @rsRunLeaksFirst, @rsRunDebugFirst,
    @rsRunProfileFirst, @rsRunProfileFirst, @rsRunProfileFirst, @rsRunProfileFirst, @rsNoLive,
    @rsNoLive, @rsNoOutput);
var
  Kind: TViewKind;
  Bytes, Blocks, Retained, Allocated, Allocations: TColumn;
begin
  IsEmpty := True;
  Bytes := BytesColumn(rsBytes);
  Blocks := CountColumn(rsBlocks);
  Retained := BytesColumn(rsRetainedBytes);
  Allocated := BytesColumn(rsAllocatedBytes);
  Allocations := CountColumn(rsAllocatedBlocks);
  Views[vkRetained] := TView.Create(rsRetained, rsClass, [Retained, Bytes, Blocks]);
  Views[vkLeakLines] := TView.Create(rsLeakLines, rsRoutine, [Bytes, Blocks]);
  Views[vkErrors] := TView.Create(rsErrors, rsError, []);
  Views[vkClasses] := TView.Create(rsClasses, rsClass, [Bytes, Blocks, Allocated, Allocations]);
  Views[vkLines] := TView.Create(rsLines, rsRoutine,
    [Bytes, Blocks, BytesColumn(rsPeakBytes), Allocated, Allocations]);
  Views[vkGrowth] := TView.Create(rsGrowth, rsWhat,
    [BytesColumn(rsCopiedBytes), CountColumn(rsResizes)]);
  Views[vkGrowth].NoteTitle := rsNote;
  Views[vkLocks] := TView.Create(rsLocks, rsRoutine,
    [CountColumn(rsEvents), CountColumn(rsRemoteFrees), CountColumn(rsTakenLocks)]);
  Views[vkLocks].NoteTitle := rsNote;
  Views[vkLive] := TView.Create(rsLive, rsWhat, [BytesColumn(rsGrowthBytes), Bytes, Blocks]);
  Views[vkHeld] := TView.Create(rsHeld, rsClass, [Retained, Bytes, Blocks]);
  Views[vkOutput] := TView.Create(rsOutput, rsText, []);
  for Kind in TViewKind do
    Views[Kind].Advice := LoadResString(Empty[Kind]);
end;

destructor TReport.Destroy;
var
  Kind: TViewKind;
begin
  for Kind in TViewKind do
    Views[Kind].Free;
  inherited Destroy;
end;

procedure TReport.Sort;
var
  Kind: TViewKind;
begin
  for Kind in TViewKind do
    if Length(Views[Kind].Columns) > 0 then
      Views[Kind].Root.Sort(0);
end;

function TReport.Since(Before: TReport): TReport;
var
  Kind: TViewKind;
begin
  Result := TReport.Create;
  Result.IsEmpty := IsEmpty;
  Result.Head := Before.Head + ' -> ' + Head;
  for Kind in TViewKind do
  begin
    Result.Views[Kind].Free;
    Result.Views[Kind] := Views[Kind].Since(Before.Views[Kind]);
    Result.Views[Kind].Advice := Views[Kind].Advice;
    if (Result.Views[Kind].Root.Count = 0) and (Views[Kind].Root.Count > 0) then
      Result.Views[Kind].Advice := rsNoChange;
  end;
  Result.Sort;
end;

end.
