/// A control group that counts the memory that the system charges a process.
//
// The resident size leaves out what a process has and does not map: of a huge page that was purged in
// part the rest of the page. A group can be made by root, where /sys/fs/cgroup is writable.
// Callers:  any thread; GroupCharged makes no block.
// Source:   Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst of Linux.
unit MemoryGroup;

{$mode delphi}{$H+}

interface

const
  /// How the names of all these groups begin.
  GroupPrefix = 'lanemm-';

type
  /// The folder of a group; empty if there is none.
  TGroupFolder = ShortString;

/// Makes a group; its name is GroupPrefix and Name. Returns no folder where that is not possible.
function GroupMake(const Name: ShortString): TGroupFolder;
/// Returns the group of this process if it is one of GroupMake, else no folder.
function GroupOfProcess: TGroupFolder;
/// Limits the memory of a group; False when refused.
function GroupLimitTo(const Group: TGroupFolder; Bytes: Int64): Boolean;
/// Moves this process into a group; what it has stays charged where it is. False when refused.
function GroupEnter(const Group: TGroupFolder): Boolean;
/// Removes a group of which all processes have ended or left.
procedure GroupRemove(const Group: TGroupFolder);
/// Returns what is charged to a group, in bytes, give or take 256 KB for each processor; -1 if
/// there is no such group.
function GroupCharged(const Group: TGroupFolder): Int64;
/// Returns the most that was charged to a group so far; -1 where the system does not know.
function GroupPeak(const Group: TGroupFolder): Int64;

implementation

uses
  BaseUnix;

const
  // The first version of control groups, and the second.
  Roots: array[0..1] of ShortString = ('/sys/fs/cgroup/memory/', '/sys/fs/cgroup/');
  ChargedFiles: array[0..1] of ShortString = ('/memory.usage_in_bytes', '/memory.current');
  LimitFiles: array[0..1] of ShortString = ('/memory.limit_in_bytes', '/memory.max');
  PeakFiles: array[0..1] of ShortString = ('/memory.max_usage_in_bytes', '/memory.peak');

/// Reads the number in a file of a group; -1 if there is none.
function NumberIn(const Group: TGroupFolder; const Name: ShortString): Int64;
var
  Path, Text: ShortString;
  Handle, Code: LongInt;
begin
  Path := Group + Name + #0;
  Handle := FpOpen(@Path[1], O_RDONLY);
  if Handle < 0 then
    Exit(-1);
  SetLength(Text, 30);
  Code := FpRead(Handle, @Text[1], 30);
  FpClose(Handle);
  if Code < 1 then
    Exit(-1);
  SetLength(Text, Code - 1);
  Val(Text, Result, Code);
  if Code <> 0 then
    Result := -1;
end;

/// Reads the number in the file of that name in either version.
function NumberInEither(const Group: TGroupFolder; const Names: array of ShortString): Int64;
begin
  Result := -1;
  if Group = '' then
    Exit;
  Result := NumberIn(Group, Names[0]);
  if Result < 0 then
    Result := NumberIn(Group, Names[1]);
end;

function GroupMake(const Name: ShortString): TGroupFolder;
var
  Root, Path: ShortString;
begin
  for Root in Roots do
  begin
    Result := Root + GroupPrefix + Name;
    Path := Result + #0;
    if FpMkDir(@Path[1], &755) <> 0 then
      Continue;
    if GroupCharged(Result) >= 0 then
      Exit;
    GroupRemove(Result); // a group without the controller of memory, or no group
  end;
  Result := '';
end;

function GroupOfProcess: TGroupFolder;
var
  Groups: TextFile;
  Line: string;
  Root: ShortString;
begin
  Result := '';
  AssignFile(Groups, '/proc/self/cgroup');
  {$push}{$I-}
  Reset(Groups);
  {$pop}
  if IOResult <> 0 then
    Exit;
  while not Eof(Groups) and (Result = '') do
  begin
    ReadLn(Groups, Line);
    if Pos(':/' + GroupPrefix, Line) > 0 then
      for Root in Roots do
        if GroupCharged(Root + Copy(Line, Pos(':/', Line) + 2, MaxInt)) >= 0 then
          Result := Root + Copy(Line, Pos(':/', Line) + 2, MaxInt);
  end;
  CloseFile(Groups);
end;

/// Writes to a file of a group; False when refused.
function WriteTo(const Path, Text: ShortString): Boolean;
var
  Ended: ShortString;
  Handle: LongInt;
begin
  Ended := Path + #0;
  Handle := FpOpen(@Ended[1], O_WRONLY);
  if Handle < 0 then
    Exit(False);
  Result := FpWrite(Handle, Text[1], Length(Text)) = Length(Text);
  FpClose(Handle);
end;

function GroupEnter(const Group: TGroupFolder): Boolean;
begin
  Result := WriteTo(Group + '/cgroup.procs', '0'); // the process that writes
end;

function GroupLimitTo(const Group: TGroupFolder; Bytes: Int64): Boolean;
var
  Digits, Name: ShortString;
begin
  Str(Bytes, Digits);
  Result := False;
  for Name in LimitFiles do
    Result := Result or WriteTo(Group + Name, Digits);
end;

procedure GroupRemove(const Group: TGroupFolder);
var
  Path: ShortString;
begin
  Path := Group + #0;
  FpRmDir(@Path[1]);
end;

function GroupCharged(const Group: TGroupFolder): Int64;
begin
  Result := NumberInEither(Group, ChargedFiles);
end;

function GroupPeak(const Group: TGroupFolder): Int64;
begin
  Result := NumberInEither(Group, PeakFiles);
end;

end.
