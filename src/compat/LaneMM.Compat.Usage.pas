/// FastMM's state file: time and command, a summary, and the blocks in use by class, in UTF-8.
//
// Owns:       nothing.
// Callers:    any thread; blocks that other threads allocate or free meanwhile may be missing.
unit LaneMM.Compat.Usage;

{$I ../LaneMM.inc}

interface

type
  /// The order of the list.
  TUsageOrder = (uoBytes, uoName);
  /// What the file contains.
  TUsageRequest = record
    Details: UnicodeString;  //< text before the list
    IsAppended: Boolean;     //< the contents of the file stay
    Order: TUsageOrder;      //< order of the list: by bytes, the most first, or by name
    AddFrom: Cardinal;       //< first allocation group that counts
    AddUpTo: Cardinal;       //< last one
    SubtractFrom: Cardinal;  //< first allocation group that is subtracted
    SubtractUpTo: Cardinal;  //< last one; below SubtractFrom: none
  end;

/// Writes the file. Returns False when it cannot be written, or without memory.
function UsageWrite(const FileName: UnicodeString; const Request: TUsageRequest): Boolean;

implementation

uses
  LaneMM, LaneMM.Os, LaneMM.Text, LaneMM.ReportHead;

const
  MostKinds = 16384;
  // Keys of blocks that are no objects.
  KindKeys: array[TLaneMM_ContentsKind] of NativeUInt = (1, 0, 2, 3, 4);
  KindNames: array[1..5] of ShortString = ('other data', 'AnsiString', 'UnicodeString',
    'dynamic array', 'further classes');
  OtherKey = 5;

type
  // The blocks of one class or kind.
  TUsage = record
    Key: NativeUInt;  // the class, or an index of KindNames; 0: unused
    Count: NativeInt;
    Bytes: NativeInt;
  end;
  PUsage = ^TUsage;

  TUsages = record
    Items: PUsage;
    Count: NativeUInt;   // entries in use
    From, UpTo: Cardinal;
    Sign: NativeInt;     // 1: blocks count, -1: they are subtracted
  end;
  PUsages = ^TUsages;

// ---------------------------------------------------------------------------- counts

function KeyOf(const Block: TLaneMM_BlockInfo): NativeUInt;
var
  Contents: TLaneMM_Contents;
begin
  Contents := LaneMM_DetectContents(Block);
  Result := Contents.ClassId;
  if Result = 0 then
    Result := KindKeys[Contents.Kind];
end;

// Returns the entry of Key, a new one when there is none; when the table is full, that of all
// further classes.
function Find(var Usages: TUsages; Key: NativeUInt): PUsage;
var
  Index: NativeUInt;
begin
  Index := (Key shr 4) mod MostKinds;
  while (Usages.Items[Index].Key <> 0) and (Usages.Items[Index].Key <> Key) do
    Index := (Index + 1) mod MostKinds;
  Result := @Usages.Items[Index];
  if Result^.Key = Key then
    Exit;
  if (Usages.Count >= MostKinds div 2) and (Key <> OtherKey) then
    Exit(Find(Usages, OtherKey));
  Inc(Usages.Count);
  Result^.Key := Key;
end;

procedure Count(const Block: TLaneMM_BlockInfo; Context: Pointer);
var
  Usages: PUsages;
  Usage: PUsage;
begin
  Usages := Context;
  if (Block.Group < Usages^.From) or (Block.Group > Usages^.UpTo) then
    Exit;
  Usage := Find(Usages^, KeyOf(Block));
  Inc(Usage^.Count, Usages^.Sign);
  Inc(Usage^.Bytes, Usages^.Sign * NativeInt(Block.UsableSize));
end;

procedure CountAll(var Usages: TUsages; const Request: TUsageRequest);
begin
  Usages.From := Request.AddFrom;
  Usages.UpTo := Request.AddUpTo;
  Usages.Sign := 1;
  LaneMM_WalkBlocks(Count, @Usages);
  Usages.From := Request.SubtractFrom;
  Usages.UpTo := Request.SubtractUpTo;
  Usages.Sign := -1;
  if Usages.From <= Usages.UpTo then
    LaneMM_WalkBlocks(Count, @Usages);
end;

// ---------------------------------------------------------------------------- order

function NameOf(const Usage: TUsage): ShortString;
begin
  if Usage.Key <= High(KindNames) then
    Result := KindNames[Usage.Key]
  else
    Result := ShortString(TClass(Usage.Key).ClassName);
end;

// Moves the entries with blocks to the front.
procedure Compact(var Usages: TUsages);
var
  Index: NativeUInt;
begin
  Usages.Count := 0;
  for Index := 0 to MostKinds - 1 do
    if (Usages.Items[Index].Count <> 0) or (Usages.Items[Index].Bytes <> 0) then
    begin
      Usages.Items[Usages.Count] := Usages.Items[Index];
      Inc(Usages.Count);
    end;
end;

function IsBefore(const First, Second: TUsage; Order: TUsageOrder): Boolean;
begin
  if Order = uoBytes then
    Result := First.Bytes > Second.Bytes
  else
    Result := NameOf(First) < NameOf(Second);
end;

// Sorts with a falling distance (Shell, 1959).
procedure Sort(var Usages: TUsages; Order: TUsageOrder);
var
  Distance, Index, Place: NativeInt;
  Usage: TUsage;
begin
  Distance := NativeInt(Usages.Count) div 2;
  while Distance > 0 do
  begin
    for Index := Distance to NativeInt(Usages.Count) - 1 do
    begin
      Usage := Usages.Items[Index];
      Place := Index;
      while (Place >= Distance) and IsBefore(Usage, Usages.Items[Place - Distance], Order) do
      begin
        Usages.Items[Place] := Usages.Items[Place - Distance];
        Dec(Place, Distance);
      end;
      Usages.Items[Place] := Usage;
    end;
    Distance := Distance div 2;
  end;
end;

// ---------------------------------------------------------------------------- the file

// Writes the time and the command line.
procedure WriteHead(var Target: Text);
var
  Line: TText;
begin
  if not TextOpen(Line, OsPageSize) then
    Exit;
  HeadAddMoment(Line);
  TextAdd(Line, #0);
  WriteLn(Target, PAnsiChar(Line.Start));
  TextClose(Line);
end;

procedure WriteSummary(var Target: Text; const Status: TLaneMM_HeapStatus);
begin
  WriteLn(Target, 'Heap: ', Status.UsedBytes, ' bytes in use, ',
    Status.CommittedBytes - Status.UsedBytes, ' bytes of overhead');
end;

procedure WriteUsage(var Target: Text; const Usage: TUsage);
begin
  Write(Target, Usage.Bytes, ' bytes: ', NameOf(Usage), ' x ', Usage.Count);
  if Usage.Count <> 0 then
    Write(Target, ' (', Usage.Bytes div Usage.Count, ' bytes on average)');
  WriteLn(Target);
end;

// Opens the file; returns whether it can be written.
function Open(var Target: Text; const FileName: UnicodeString; IsAppended: Boolean): Boolean;
begin
  {$ifdef FPC}
  Assign(Target, FileName);
  SetTextCodePage(Target, CP_UTF8);
  {$else}
  AssignFile(Target, FileName, CP_UTF8);
  {$endif}
  {$push}{$I-}
  if IsAppended then
  begin
    Append(Target);
    if IOResult = 0 then
      Exit(True);
  end;
  Rewrite(Target);
  Result := IOResult = 0;
  {$pop}
end;

// Counts the blocks, writes the lines, and closes the file; returns whether it has taken them.
function WriteAll(var Target: Text; var Usages: TUsages; const Request: TUsageRequest): Boolean;
var
  Status: TLaneMM_HeapStatus;
  Index: NativeInt;
begin
  Status := LaneMM_HeapStatus;
  Usages.Count := 0;
  CountAll(Usages, Request);
  Compact(Usages);
  Sort(Usages, Request.Order);
  {$push}{$I-}
  WriteHead(Target);
  if Request.Details <> '' then
    WriteLn(Target, Request.Details);
  WriteSummary(Target, Status);
  for Index := 0 to NativeInt(Usages.Count) - 1 do
    WriteUsage(Target, Usages.Items[Index]);
  Result := IOResult = 0; // with an error pending, Close would do nothing
  Close(Target);
  {$pop}
  Result := (IOResult = 0) and Result;
end;

function UsageWrite(const FileName: UnicodeString; const Request: TUsageRequest): Boolean;
const
  TableSize = MostKinds * SizeOf(TUsage);
var
  Usages: TUsages;
  Target: Text;
begin
  Usages.Items := OsTakePages(TableSize); // no block: the heap may be at its limit
  Result := (Usages.Items <> nil) and Open(Target, FileName, Request.IsAppended)
    and WriteAll(Target, Usages, Request);
  OsReleasePages(Usages.Items, TableSize);
end;

end.
