/// FastMM5's walk over blocks and spans, on top of LaneMM's three walks.
//
// Owns:       nothing.
// Callers:    any thread; blocks that other threads allocate or free meanwhile may be missing.
unit LaneMM.Compat.Walks;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Compat.Reasons;

type
  /// The record of a debug block in use, a copy that is valid during a call of the visitor. The last
  /// fields have no counterpart.
  TFastMM_DebugBlockHeader = record
    AllocationNumber: Cardinal;   //< see LaneMM_LastAllocationNumber
    UserSize: NativeInt;          //< requested size
    PreviouslyUsedByClass: Pointer; //< nil: the block is in use
    AllocationGroup: Cardinal;    //< allocation group; 0: none
    AllocatedByThread: Cardinal;  //< the system's number of the thread that allocated it
    FreedByThread: Cardinal;      //< 0: the block is in use
    StackTraceEntryCount: Byte;   //< number of entries of a stack trace: the setting `depth`
    DebugFooter_AllocationStackTracePtr: PNativeUInt; //< backtrace of the allocation, then zeros
    DebugFooter_FreeStackTracePtr: PNativeUInt; //< zeros: the block is in use
    AllocationTickCount: LaneMM_records_no_time_of_allocation
      deprecated 'LaneMM records no time of allocation'; //< not recorded
    HeaderCheckSum, DebugBlockFlags, DebugFooterPtr, CalculateHeaderCheckSum,
      CalculateFooterCheckSum, CalculateAndSetHeaderAndFooterCheckSums, Reserved1, Reserved2,
      ReservedSpace1, ReservedSpace2: Use_LaneMM_CheckBlock_debug_blocks_have_no_header
      deprecated 'use LaneMM_CheckBlock: debug blocks have no header'; //< no such header
  end;
  PFastMM_DebugBlockHeader = ^TFastMM_DebugBlockHeader;

  /// What FastMM_WalkBlocks visits. Blocks up to 8,192 bytes are small, up to 65,536 medium. Debug
  /// blocks have spans of their own, which are walked as spans of small blocks.
  TFastMM_WalkAllocatedBlocksBlockType = (btLargeBlock, btMediumBlockSpan, btMediumBlock,
    btSmallBlockSpan, btSmallBlock);
  TFastMM_WalkBlocksBlockTypes = set of TFastMM_WalkAllocatedBlocksBlockType;

  /// A block or a span. The last fields have no counterpart.
  TFastMM_WalkAllocatedBlocks_BlockInfo = record
    BlockAddress: Pointer;                     //< its first byte
    DebugInformation: PFastMM_DebugBlockHeader; //< of a debug block, else nil
    BlockSize: NativeInt;                      //< its bytes; LaneMM has no headers
    UsableSize: NativeInt;                     //< the same; of a debug block, the requested size
    UserData: Pointer;                         //< the caller's
    BlockType: TFastMM_WalkAllocatedBlocksBlockType; //< its type
    BlockIsFree: Boolean;                      //< a free block
    SmallBlockSpanBlockSize: Word;             //< block size of a span of small blocks, else 0
    ArenaIndex: LaneMM_has_thread_heaps_instead_of_arenas
      deprecated 'LaneMM has thread heaps instead of arenas'; //< no such number
    IsSequentialFeedMediumBlockSpan, MediumBlockSequentialFeedSpanUnusedBytes,
      IsSequentialFeedSmallBlockSpan, SmallBlockSequentialFeedSpanUnusedBytes:
      LaneMM_has_no_sequential_feed_spans__remove_this
      deprecated 'LaneMM has no sequential feed spans: remove this'; //< no such spans
  end;
  TFastMM_WalkBlocksCallback = procedure(const BlockInfo: TFastMM_WalkAllocatedBlocks_BlockInfo);

/// The walk of FastMM_WalkBlocks.
procedure BlocksWalk(CallBack: TFastMM_WalkBlocksCallback; WalkBlockTypes:
  TFastMM_WalkBlocksBlockTypes; WalkUsedBlocksOnly: Boolean; UserData: Pointer;
  FirstGroup, LastGroup: Cardinal);

implementation

uses
  LaneMM, LaneMM.Layout, LaneMM.Compat.Modes;

type
  TEntries = array[0..High(Byte) - 1] of NativeUInt;
  TWalk = record
    CallBack: TFastMM_WalkBlocksCallback;
    Types: TFastMM_WalkBlocksBlockTypes;
    Info: TFastMM_WalkAllocatedBlocks_BlockInfo; // what all visits share
    Header: TFastMM_DebugBlockHeader;            // likewise
    FirstGroup, LastGroup: Cardinal;
    AllocationEntries: TEntries; // the backtrace of the block that is visited
    FreeEntries: TEntries;       // zeros
  end;
  PWalk = ^TWalk;

function TypeOf(Size: NativeUInt): TFastMM_WalkAllocatedBlocksBlockType;
begin
  if Size <= MaxSmallSize then
    Result := btSmallBlock
  else if Size <= MaxClassSize then
    Result := btMediumBlock
  else
    Result := btLargeBlock;
end;

procedure Visit(var Walk: TWalk; Address: Pointer; Size: NativeUInt;
  BlockType: TFastMM_WalkAllocatedBlocksBlockType);
begin
  Walk.Info.BlockAddress := Address;
  Walk.Info.BlockSize := Size;
  Walk.Info.UsableSize := Size;
  Walk.Info.BlockType := BlockType;
  if BlockType in Walk.Types then
    Walk.CallBack(Walk.Info);
end;

procedure FillHeader(var Walk: TWalk; const Block: TLaneMM_BlockInfo);
var
  Count: Cardinal;
begin
  Count := Walk.Header.StackTraceEntryCount;
  FillChar(Walk.AllocationEntries, Count * SizeOf(NativeUInt), 0);
  LaneMM_ReadStack(Block.Stack, @Walk.AllocationEntries, Count);
  Walk.Header.AllocationNumber := Block.Number;
  Walk.Header.UserSize := Block.UsableSize;
  Walk.Header.AllocationGroup := Block.Group;
  Walk.Header.AllocatedByThread := Block.Thread;
end;

procedure VisitBlock(const Block: TLaneMM_BlockInfo; Context: Pointer);
var
  Walk: PWalk;
begin
  Walk := Context;
  if (Block.Group < Walk^.FirstGroup) or (Block.Group > Walk^.LastGroup) then
    Exit;
  Walk^.Info.DebugInformation := nil;
  if Block.Kind = skDebug then
  begin
    FillHeader(Walk^, Block);
    Walk^.Info.DebugInformation := @Walk^.Header;
  end;
  Visit(Walk^, Block.Address, Block.UsableSize, TypeOf(Block.UsableSize));
end;

procedure VisitSpan(const Span: TLaneMM_SpanInfo; Context: Pointer);
var
  Walk: PWalk;
begin
  Walk := Context;
  Walk^.Info.SmallBlockSpanBlockSize := 0;
  if (Span.Kind = skBlocks) and (TypeOf(Span.BlockSize) = btSmallBlock) then
    Walk^.Info.SmallBlockSpanBlockSize := Span.BlockSize;
  if (Span.Kind = skDebug) or (Walk^.Info.SmallBlockSpanBlockSize <> 0) then
    Visit(Walk^, Span.Address, Span.Bytes, btSmallBlockSpan)
  else if Span.Kind = skBlocks then
    Visit(Walk^, Span.Address, Span.Bytes, btMediumBlockSpan);
end;

procedure BlocksWalk(CallBack: TFastMM_WalkBlocksCallback; WalkBlockTypes:
  TFastMM_WalkBlocksBlockTypes; WalkUsedBlocksOnly: Boolean; UserData: Pointer;
  FirstGroup, LastGroup: Cardinal);
const
  SpanTypes = [btMediumBlockSpan, btSmallBlockSpan];
  AllTypes = [btLargeBlock..btSmallBlock];
var
  Walk: TWalk;
begin
  if WalkBlockTypes = [] then
    WalkBlockTypes := AllTypes;
  FillChar(Walk, SizeOf(Walk), 0);
  Walk.CallBack := CallBack;
  Walk.Types := WalkBlockTypes;
  Walk.Info.UserData := UserData;
  Walk.Header.StackTraceEntryCount := FrameLimit;
  Walk.Header.DebugFooter_AllocationStackTracePtr := @Walk.AllocationEntries;
  Walk.Header.DebugFooter_FreeStackTracePtr := @Walk.FreeEntries;
  Walk.FirstGroup := FirstGroup;
  Walk.LastGroup := LastGroup;
  LaneMM_WalkBlocks(VisitBlock, @Walk);
  Walk.Info.DebugInformation := nil;
  if WalkBlockTypes * SpanTypes <> [] then
    LaneMM_WalkSpans(VisitSpan, @Walk);
  Walk.Info.SmallBlockSpanBlockSize := 0;
  Walk.Info.BlockIsFree := True;
  if not WalkUsedBlocksOnly then
    LaneMM_WalkFreeBlocks(VisitBlock, @Walk);
end;

end.
