/// Memory that is purged is not charged any more, also where it is a part of a huge page.
//
// Fills 192 MB of blocks, most of them in huge pages, frees all but those in one slice of 2 MB, and
// purges. Without a group of its own the program looks at the number of huge pages that the system has
// split. Exit code 3 where the system has neither, or no huge pages.
program ChargedMemory;

{$mode delphi}{$H+}

uses
  LaneMM, SysUtils, MemoryGroup, ProcessInGroup, Promises;

const
  Megabyte = 1 shl 20;
  CannotSee = 3;
  BlockSize = 1008;
  BlockCount = 192 * 1024;
  // Blocks of a little more than 2 MB, of which those in a little more than a slice stay.
  KeepOf = 2080;
  Keep = 65;
  // What stays, 6 MB, and what the system charges beside the heap.
  MostCharged = 24 * Megabyte;
  FewestSplits = 40;
  SplitsFile = '/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/stats/split';

/// Returns the number behind Key in a file; -1 if there is none.
function NumberBehind(const FileName, Key: string): Int64;
var
  Source: TextFile;
  Line: string;
begin
  Result := -1;
  if not FileExists(FileName) then
    Exit;
  AssignFile(Source, FileName);
  Reset(Source);
  while (Result < 0) and not Eof(Source) do
  begin
    ReadLn(Source, Line);
    if Line.StartsWith(Key) then
      Result := StrToInt64(Line.Substring(Length(Key)).Replace('kB', '').Trim);
  end;
  CloseFile(Source);
end;

/// Allocates the blocks, frees most and purges. Returns the megabytes that were in huge pages.
function PurgeMost: Int64;
var
  Blocks: array of Pointer;
  I: Integer;
begin
  SetLength(Blocks, BlockCount);
  for I := 0 to BlockCount - 1 do
    Blocks[I] := FilledBlock(BlockSize, I);
  Result := NumberBehind('/proc/self/smaps_rollup', 'AnonHugePages:') div 1024;
  for I := 0 to BlockCount - 1 do
    if I mod KeepOf >= Keep then
      FreeMem(Blocks[I]);
  LaneMM_Trim;
  for I := 0 to BlockCount - 1 do
    if I mod KeepOf < Keep then
      Expect(IsFilled(Blocks[I], BlockSize, I), 'blocks in use keep their contents');
end;

/// Returns the exit code.
function PurgeInGroup(const Group: TGroupFolder): Integer;
var
  Splits, Huge: Int64;
begin
  if (Group <> '') and not GroupEnter(Group) then
    Exit(CannotSee);
  Splits := NumberBehind(SplitsFile, '');
  Huge := PurgeMost;
  WriteLn(Huge, ' MB in huge pages, ', GroupCharged(Group), ' bytes charged, ',
    NumberBehind(SplitsFile, '') - Splits, ' pages split');
  if (Huge < 100) or (Group = '') and (Splits < 0) then
    Exit(CannotSee);
  if Group <> '' then
    Expect(GroupCharged(Group) < MostCharged, 'memory that is purged is not charged')
  else
    Expect(NumberBehind(SplitsFile, '') - Splits >= FewestSplits, 'huge pages are split');
  Result := Ord(BrokenCount > 0);
end;

begin
  RunInGroup(PurgeInGroup);
end.
