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
begin
  IsEmpty := True;
  Views[vkRetained] := TView.Create(rsRetained, rsClass);
  Views[vkRetained].AddColumn(rsRetainedBytes, auBytes);
  Views[vkRetained].AddColumn(rsBytes, auBytes);
  Views[vkRetained].AddColumn(rsBlocks, auCount);
  Views[vkRetained].Advice := rsRunLeaksFirst;
  Views[vkLeakLines] := TView.Create(rsLeakLines, rsRoutine);
  Views[vkLeakLines].AddColumn(rsBytes, auBytes);
  Views[vkLeakLines].AddColumn(rsBlocks, auCount);
  Views[vkLeakLines].Advice := rsRunLeaksFirst;
  Views[vkErrors] := TView.Create(rsErrors, rsError);
  Views[vkErrors].Advice := rsRunDebugFirst;
  Views[vkClasses] := TView.Create(rsClasses, rsClass);
  Views[vkLines] := TView.Create(rsLines, rsRoutine);
  Views[vkClasses].AddColumn(rsBytes, auBytes);
  Views[vkClasses].AddColumn(rsBlocks, auCount);
  Views[vkClasses].AddColumn(rsAllocatedBytes, auBytes);
  Views[vkClasses].AddColumn(rsAllocatedBlocks, auCount);
  Views[vkLines].AddColumn(rsBytes, auBytes);
  Views[vkLines].AddColumn(rsBlocks, auCount);
  Views[vkLines].AddColumn(rsPeakBytes, auBytes);
  Views[vkLines].AddColumn(rsAllocatedBytes, auBytes);
  Views[vkLines].AddColumn(rsAllocatedBlocks, auCount);
  Views[vkGrowth] := TView.Create(rsGrowth, rsWhat);
  Views[vkGrowth].AddColumn(rsCopiedBytes, auBytes);
  Views[vkGrowth].AddColumn(rsResizes, auCount);
  Views[vkGrowth].NoteTitle := rsNote;
  Views[vkLocks] := TView.Create(rsLocks, rsRoutine);
  Views[vkLocks].AddColumn(rsEvents, auCount);
  Views[vkLocks].AddColumn(rsRemoteFrees, auCount);
  Views[vkLocks].AddColumn(rsTakenLocks, auCount);
  Views[vkLocks].NoteTitle := rsNote;
  Views[vkClasses].Advice := rsRunProfileFirst;
  Views[vkLines].Advice := rsRunProfileFirst;
  Views[vkGrowth].Advice := rsRunProfileFirst;
  Views[vkLocks].Advice := rsRunProfileFirst;
  Views[vkLive] := TView.Create(rsLive, rsWhat);
  Views[vkLive].AddColumn(rsGrowthBytes, auBytes);
  Views[vkLive].AddColumn(rsBytes, auBytes);
  Views[vkLive].AddColumn(rsBlocks, auCount);
  Views[vkLive].Advice := rsNoLive;
  Views[vkHeld] := TView.Create(rsHeld, rsClass);
  Views[vkHeld].AddColumn(rsRetainedBytes, auBytes);
  Views[vkHeld].AddColumn(rsBytes, auBytes);
  Views[vkHeld].AddColumn(rsBlocks, auCount);
  Views[vkHeld].Advice := rsNoLive;
  Views[vkOutput] := TView.Create(rsOutput, rsText);
  Views[vkOutput].Advice := rsNoOutput;
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
