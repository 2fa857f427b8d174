/// Tests of LaneMM.RegionCalls: what regions cost where debug mode has none of their blocks.
unit Test.RegionCalls;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TRegionCallsTests = class(TQuietTest)
  published
    procedure EndOfARegionWithoutDebugBlocksWalksNoHeap;
  end;

implementation

uses
  testregistry, LaneMM, LaneMM.Types, LaneMM.Hooks, LaneMM.DebugState;

var
  Visits: Integer;

procedure CountVisit(Span: PSpan; Visitor: TBlockVisitor; Context: Pointer);
begin
  Inc(Visits);
end;

procedure SeeBlock(const Block: TBlockInfo; Context: Pointer);
begin
end;

// The debug block that stays has each walk of the heap visit its span.
procedure TRegionCallsTests.EndOfARegionWithoutDebugBlocksWalksNoHeap;
var
  Kept: Pointer;
  KeptVisit: TDebugVisit;
  HadRegions: Boolean;
  Region: TLaneMM_Region;
begin
  Kept := LaneMM_DebugGetMem(100);
  HadRegions := Debug.HasRegions;
  Debug.HasRegions := False;
  KeptVisit := Hooks.DebugVisit;
  Hooks.DebugVisit := CountVisit;
  Visits := 0;
  Region := LaneMM_RegionCreate('plain', 0);
  LaneMM_RegionGetMem(Region, 100);
  AssertTrue('is reset', LaneMM_RegionReset(Region));
  LaneMM_RegionGetMem(Region, 100);
  AssertTrue('is freed', LaneMM_RegionFree(Region));
  Same(0, Visits, 'walks of the end');
  LaneMM_WalkBlocks(SeeBlock, nil);
  Hooks.DebugVisit := KeptVisit;
  Debug.HasRegions := HadRegions;
  FreeMem(Kept);
  AtLeast(1, Visits, 'a walk visits the span');
end;

initialization
  RegisterTest(TRegionCallsTests);
end.
