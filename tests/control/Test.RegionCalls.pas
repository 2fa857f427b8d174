/// Tests of LaneMM.RegionCalls: what regions cost where debug mode has none of their blocks; walks
/// without a routine to call.
unit Test.RegionCalls;

{$mode delphi}{$H+}

interface

uses
  Test.Tools;

type
  TRegionCallsTests = class(TQuietTest)
  published
    procedure EndOfARegionWithoutDebugBlocksWalksNoHeap;
    {$ifdef LINUX} procedure WalkWithoutARoutineToCallIsALine; {$endif}
  end;

implementation

uses
  {$ifdef LINUX} BaseUnix, {$endif} SysUtils, testregistry, LaneMM, LaneMM.Types, LaneMM.Hooks, LaneMM.DebugState;

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

{$ifdef LINUX}
// Nothing is held: memory can be purged afterwards.
procedure TRegionCallsTests.WalkWithoutARoutineToCallIsALine;
const
  Line = 'LaneMM: LaneMM_%s: no routine to call'#10;
var
  Ends: TFilDes;
  Kept: LongInt;
  Region: TLaneMM_Region;
  Text: array[0..999] of AnsiChar;
begin
  Region := LaneMM_RegionCreate('plain', 0);
  AssertTrue('pipe', fpPipe(Ends) = 0);
  Kept := fpDup(StdErrorHandle);
  fpDup2(Ends[1], StdErrorHandle);
  LaneMM_WalkBlocks(nil, nil);
  LaneMM_WalkFreeBlocks(nil, nil);
  LaneMM_WalkSpans(nil, nil);
  LaneMM_WalkSuppressions(nil, nil);
  LaneMM_RegionWalk(Region, nil, nil);
  LaneMM_OnPressure(nil, nil);
  fpDup2(Kept, StdErrorHandle);
  fpClose(Kept);
  fpClose(Ends[1]);
  FillChar(Text, SizeOf(Text), 0);
  fpRead(Ends[0], Text, SizeOf(Text) - 1);
  fpClose(Ends[0]);
  LaneMM_RegionFree(Region);
  AssertEquals(Format(Line + Line + Line + Line + Line + Line, ['WalkBlocks', 'WalkFreeBlocks',
    'WalkSpans', 'WalkSuppressions', 'RegionWalk', 'OnPressure']), string(PAnsiChar(@Text)));
  Same(0, Process.PurgesHeld, 'readers');
end;
{$endif}

initialization
  RegisterTest(TRegionCallsTests);
end.
