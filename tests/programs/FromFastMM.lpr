/// A program that was written for FastMM5 and FastMM4, and finds LaneMM in their place. Define
/// WITHOUT_COUNTERPART to see what does not compile.
program FromFastMM;

{$mode delphi}{$H+}

uses
  FastMM5, FastMM4, Promises, SysUtils, LaneMM;

type
  TKept = class
    Number: Integer;
  end;

var
  Kept: TKept;
  Block: Pointer;
begin
  ReportMemoryLeaksOnShutdown := True;
  Expect(ReportMemoryLeaksOnShutdown, 'the report can be asked for');
  LaneMM_Configure('leaks:exit=7');

  Kept := TKept.Create;
  Expect(FastMM_RegisterExpectedMemoryLeak(Kept), 'an object can be expected');
  TKept.Create;
  Expect(RegisterExpectedMemoryLeak(TKept, 1), 'objects of a class can be expected');
  Block := FastMM_GetMem(100);
  Expect(FastMM_RegisterExpectedMemoryLeak(100, 2), 'blocks of a size can be expected');
  Expect(FastMM_UnregisterExpectedMemoryLeak(100, 1), 'that can be taken back');
  Expect(not UnregisterExpectedMemoryLeak(nil), 'what was not registered cannot');

  Expect(FastMM_EnterDebugMode, 'debug mode begins');
  Block := FastMM_AllocMem(10);
  Block := FastMM_ReallocMem(Block, 20);
  Expect(FastMM_FreeMem(Block) = 0, 'a block is freed');
  FastMM_ScanDebugBlocksForCorruption;
  FastMM_BeginEraseFreedBlockContent;
  FastMM_BeginEraseFreedBlockContent;
  FastMM_EndEraseFreedBlockContent;
  Expect(FastMM_EraseFreedBlockContentActive, 'freed blocks are erased');
  FastMM_EndEraseFreedBlockContent;
  Expect(not FastMM_EraseFreedBlockContentActive, 'freed blocks stay as they are');
  LaneMM_Configure('erase=return');
  FastMM_BeginEraseFreedBlockContent;
  FastMM_EndEraseFreedBlockContent;
  Expect(not FastMM_EraseFreedBlockContentActive, 'freed blocks stay as they are again');
  Expect(LaneMM_Settings.Values[opErase] <> 0, 'memory that goes back is still erased');
  LaneMM_Configure('erase=0');
  PushAllocationGroup(5);
  Expect(FastMM_CurrentAllocationGroup = 5, 'a group begins');
  FastMM_CurrentAllocationGroup := 6;
  Expect(GetCurrentAllocationGroup = 6, 'a group is set');
  PopAllocationGroup;
  Expect(FastMM_CurrentAllocationGroup = 0, 'it ends');
  Expect(FastMM_ExitDebugMode, 'debug mode ends');
  Expect(FastMM_GetUsageSummary.AllocatedBytes > 0, 'the summary counts');
  FastMM_SetMemoryUsageLimit(FastMM_GetCurrentMemoryUsage + 64 shl 20);
  Expect(FastMM_GetMemoryUsageLimit > 64 shl 20, 'the limit can be read');
  ReturnNilIfGrowHeapFails := True;
  Expect(FastMM_GetMem(80 shl 20) = nil, 'the limit refuses');
  ReturnNilIfGrowHeapFails := False;
  FastMM_SetMemoryUsageLimit(0);
  FastMM_FreeMem(FastMM_GetMem(80 shl 20));
  {$ifdef WITHOUT_COUNTERPART}
  FastMM_SetOptimizationStrategy(0);
  {$endif}
  Finish;
end.
