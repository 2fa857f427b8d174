/// What lanemm looks at: the memory of a process, running or dead.
unit Targets;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  SysUtils, Classes, Generics.Collections, ToolCommands;

type
  /// A range of addresses of the target that is mapped.
  TRegion = record
    First, Limit: UInt64;  //< its addresses
    FileOffset: UInt64;    //< offset of First in the file at Path
    IsReadable: Boolean;   //< its rights
    IsWritable: Boolean;
    IsCode: Boolean;
    IsShared: Boolean;     //< other processes may see the same; of a core file it is not known
    Path: string;          //< the file, a name in brackets, or nothing
    Module: string;        //< the executable file or library that it belongs to, or nothing
    CoreOffset: UInt64;    //< offset of First in a core file
    CoreBytes: UInt64;     //< bytes that the core file has of it; 0: none
  end;
  PRegion = ^TRegion;

  /// The registers of a thread, as the system stores them in core files and hands them to tracers.
  TRegisters = array[0..{$ifdef CPUAARCH64} 33 {$else} 26 {$endif}] of UInt64;

  /// Memory that can be read. Addresses are those of the target.
  TTarget = class
  private
    function GetRegion(Index: Integer): PRegion;
  protected
    List: array of TRegion; // by address
    /// Adds a region; called in the order of address.
    procedure AddRegion(const Region: TRegion);
    /// Sets Module of all regions.
    procedure FindModules;
  public
    /// The number of the process; 0: unknown.
    ProcessId: Integer;
    /// The path of its program; empty: unknown.
    ProgramPath: string;
    /// The registers of all threads; nil: unknown.
    Registers: TArray<TRegisters>;
    /// Copies at most Size bytes from Address on; returns the number of bytes up to the first that
    /// cannot be read.
    function Read(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt; virtual;
      abstract;
    /// What it is, for messages: `process 12`, or `core file X`.
    function Name: string; virtual; abstract;
    /// Returns the numbers of all threads, as they know themselves; nil: unknown.
    function Threads: TArray<Cardinal>; virtual;
    /// Returns that of the main thread; 0: unknown.
    function MainThread: Cardinal; virtual;
    /// Reads the regions anew; for a target that changes.
    procedure RefreshRegions; virtual;
    /// Returns the name of a thread; empty if it is unknown or has ended.
    function ThreadName(Thread: Cardinal): string; virtual;
    /// Returns whether all of Size bytes could be read.
    function ReadAll(Address: UInt64; Buffer: Pointer; Size: NativeUInt): Boolean;
    /// The same; raises ETool, that What cannot be read, if they could not.
    procedure Need(Address: UInt64; Buffer: Pointer; Size: NativeUInt; const What: string);
      virtual;
    /// Raises ETool if it has ended: then some of what was read may be missing, or be that of
    /// another process, which has got its number.
    procedure CheckThere; virtual;
    /// Raises ETool if a part of it is missing, which may have what was not found.
    procedure CheckWhole; virtual;
    /// Returns the end of what there is to read of a region; at most its own.
    function ReadableLimit(Region: PRegion): UInt64; virtual;
    /// Returns the region that holds Address, or nil.
    function FindRegion(Address: UInt64): PRegion;
    /// Returns the number of regions.
    function RegionCount: Integer;
    /// Returns them all, in the order of address; until the regions are read anew.
    function AllRegions: TArray<PRegion>;
    /// The same, each by its number.
    property Regions[Index: Integer]: PRegion read GetRegion;
  end;

  /// A process that runs, is stopped, or hangs: it takes no part in being read.
  TProcessTarget = class(TTarget)
  private
    MemoryFile: TFileStream;
    TaskOf: TDictionary<Cardinal, Cardinal>; // by own number, of a thread in a container
    StartTime: string; // of the process, by which another one with its number is known
    OpenedProgram: TArray<string>; // see ProgramOf
    procedure CheckProgram;
    procedure ReadMappings;
    procedure OpenMemory;
    procedure RaiseRefused;
  public
    /// Raises ETool when there is no such process or the system refuses to name its memory.
    constructor Create(Id: Integer);
    destructor Destroy; override;
    function Read(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt; override;
    function Name: string; override;
    function Threads: TArray<Cardinal>; override;
    function MainThread: Cardinal; override;
    procedure RefreshRegions; override;
    function ThreadName(Thread: Cardinal): string; override;
    procedure Need(Address: UInt64; Buffer: Pointer; Size: NativeUInt; const What: string);
      override;
    procedure CheckThere; override;
    /// Returns the number by which the system outside knows one of Threads.
    function TaskOfThread(Thread: Cardinal): Cardinal;
  end;

const
  /// The stack pointer among the registers.
  StackRegister = {$ifdef CPUAARCH64} 31 {$else} 19 {$endif};

/// Returns the contents of a small file of /proc; empty when it cannot be read.
function ReadSmallFile(const Path: string): string;
/// Returns whether a path leads to a regular file: a pipe would be waited for.
function IsPlainFile(const Path: string): Boolean;
/// Returns Text with `?` for each byte that is no text: control characters, which a terminal would
/// obey, and what is no UTF-8, such as the rest of a name that was cut.
function Printable(const Text: string): string;
/// Returns the name of a process as /proc knows it, printable; empty without such a process.
function ProcessName(Id: Integer): string;
/// Returns the value of a line `Name: value` in the status file of a process or, below its folder,
/// of a thread; empty without one.
function StatusValue(const Folder, Name: string): string;
/// Returns a field of the file `stat` there, which /proc counts from 1; empty without one.
function StatField(const Folder: string; Number: Integer): string;
/// Returns the numbers that files and folders in a folder have as names.
function NumbersIn(const Folder: string): TArray<Integer>;
/// Returns the numbers of the threads of a process.
function ThreadsOf(ProcessId: Integer): TArray<Integer>;
/// Returns whether the process has ended, maybe unnoticed by its parent; also for a thread of the
/// system, which has no memory of its own.
function HasEnded(Id: Integer): Boolean;
/// Returns the number of a thread that goes on, but for the main one; 0: there is none.
function LivingThread(Id: Integer): Integer;
/// Raises ETool that says that the process has ended.
procedure RaiseEnded(Id: Integer);
/// Returns the number by which a process, or that of a thread, knows itself: in a container it is
/// another one.
function OwnNumber(Id: Integer): Integer;
/// Returns bytes of the memory of a process; empty when the system refuses.
function MemoryOf(Id: Integer; Address: UInt64; Size: Integer): string;
/// Returns the path by which this program reaches what a process calls Path: one in a container, or
/// with a folder for temporary files of its own, has other mounted file systems.
function PathFrom(Id: Integer; const Path: string): string;
/// Returns the path by which this program opens the file that a process has mapped at these addresses,
/// also one that was deleted since; that of a library only with the rights of root.
function FileOf(Id: Integer; const Path: string; First, Limit: UInt64): string;

implementation

uses
  BaseUnix, SysCall, LaneMM.Text;

const
  ReadForeignCall = {$ifdef CPUAARCH64} 270 {$else} 310 {$endif};

type
  TMemoryRange = record
    Base: Pointer;
    Length: NativeUInt;
  end;

function ReadSmallFile(const Path: string): string;
var
  Handle: THandle;
  Buffer: array[0..4095] of AnsiChar;
  Count: Integer;
begin
  Result := '';
  Handle := FileOpen(Path, fmOpenRead or fmShareDenyNone);
  if Handle = THandle(-1) then
    Exit;
  repeat
    Count := FileRead(Handle, Buffer, SizeOf(Buffer));
    if Count > 0 then
    begin
      SetLength(Result, Length(Result) + Count);
      Move(Buffer, Result[Length(Result) - Count + 1], Count);
    end;
  until Count <= 0;
  FileClose(Handle);
end;

function IsPlainFile(const Path: string): Boolean;
var
  Status: TStat;
begin
  Result := (fpStat(Path, Status) = 0) and fpS_ISREG(Status.st_mode);
end;

function Printable(const Text: string): string;
var
  Index, Length: Integer;
begin
  Result := Text;
  Index := 1;
  while Index <= System.Length(Result) do
  begin
    Length := TextCharLength(@Result[Index]);
    if (Length = 0) or (Result[Index] in [#1..#31, #127])
      or (Result[Index] = #$C2) and (Result[Index + 1] < #$A0) then
    begin
      Result[Index] := '?';
      Length := 1;
    end;
    Inc(Index, Length);
  end;
end;

function ProcessName(Id: Integer): string;
begin
  Result := Printable(Trim(ReadSmallFile(Format('/proc/%d/comm', [Id]))));
end;

function StatusValue(const Folder, Name: string): string;
var
  Line: string;
begin
  Result := '';
  for Line in ReadSmallFile(Folder + '/status').Split([#10]) do
    if Line.StartsWith(Name + ':') then
      Exit(Trim(Copy(Line, Length(Name) + 2)));
end;

// A process may have no command line, so that is no sign. One that is ending gives up its memory before
// its state says so.
function HasEnded(Id: Integer): Boolean;
const
  StateField = 3;
  FlagsField = 9;
  Gone = $200004; // PF_KTHREAD, PF_EXITING
var
  Folder: string;
begin
  Folder := Format('/proc/%d', [Id]);
  Result := (StrToInt64Def(StatField(Folder, FlagsField), Gone) and Gone <> 0)
    or (Pos(StatField(Folder, StateField), 'ZX') > 0);
end;

function NumbersIn(const Folder: string): TArray<Integer>;
var
  Found: TSearchRec;
  Number: Integer;
begin
  Result := nil;
  if FindFirst(Folder + '/*', faDirectory, Found) = 0 then
    repeat
      if TryStrToInt(Found.Name, Number) then
        Insert(Number, Result, Length(Result));
    until FindNext(Found) <> 0;
  FindClose(Found);
end;

function ThreadsOf(ProcessId: Integer): TArray<Integer>;
begin
  Result := NumbersIn(Format('/proc/%d/task', [ProcessId]));
end;

function StatField(const Folder: string; Number: Integer): string;
const
  NameField = 2; // in parentheses, the last that may have blanks in it
var
  Text: string;
  Fields: TStringArray;
begin
  Text := ReadSmallFile(Folder + '/stat');
  Fields := Text.Substring(Text.LastIndexOf(')') + 1).Split([' ']); // the first one is empty
  Result := '';
  if Length(Fields) > Number - NameField then
    Result := Fields[Number - NameField];
end;

function LivingThread(Id: Integer): Integer;
begin
  for Result in ThreadsOf(Id) do
    if (Result <> Id) and not HasEnded(Result) then
      Exit;
  Result := 0;
end;

procedure RaiseEnded(Id: Integer);
var
  Thread: Integer;
begin
  Thread := LivingThread(Id);
  if Thread <> 0 then
    raise ETool.Create(ecNoProcess, 'the main thread of process %d has ended, with which the system'
      + ' forgets what is mapped; name another one of its threads: %d', [Id, Thread]);
  raise ETool.Create(ecNoProcess, 'process %d has ended, or is a thread of the system', [Id]);
end;

// Returns the last number of the line NSpid or NStgid, that in the innermost container.
function InnermostNumber(const Folder, Name: string; Number: Integer): Integer;
var
  Text: string;
begin
  Text := StatusValue(Folder, Name);
  Result := StrToIntDef(Copy(Text, Text.LastIndexOf(#9) + 2), Number);
end;

function OwnNumber(Id: Integer): Integer;
begin
  Result := InnermostNumber(Format('/proc/%d', [Id]), 'NStgid', Id);
end;

function PathFrom(Id: Integer; const Path: string): string;
const
  Own = '/proc/self/';
var
  Folder: string;
begin
  Result := Path;
  Folder := Format('/proc/%d/', [Id]);
  if (fpReadLink(Folder + 'ns/mnt') <> fpReadLink(Own + 'ns/mnt'))
    or (fpReadLink(Folder + 'root') <> fpReadLink(Own + 'root')) then
    Result := Folder + 'root' + Path;
end;

function FileOf(Id: Integer; const Path: string; First, Limit: UInt64): string;
begin
  if not Path.EndsWith(' (deleted)') then
  begin
    Result := PathFrom(Id, Path);
    // In a list of mappings, paths are those of the reader, but of what only the process can reach.
    if not FileExists(Result)
      and (fpReadLink(Format('/proc/%d/ns/mnt', [Id])) = fpReadLink('/proc/self/ns/mnt')) then
      Result := Path;
    Exit;
  end;
  Result := Format('/proc/%d/exe', [Id]);
  if fpReadLink(Result) <> Path then
    Result := LowerCase(Format('/proc/%d/map_files/%x-%x', [Id, First, Limit]));
end;

// ---------------------------------------------------------------------------- TTarget

function TTarget.GetRegion(Index: Integer): PRegion;
begin
  Result := @List[Index];
end;

function TTarget.RegionCount: Integer;
begin
  Result := Length(List);
end;

function TTarget.AllRegions: TArray<PRegion>;
var
  Index: Integer;
begin
  Result := nil;
  SetLength(Result, Length(List));
  for Index := 0 to High(List) do
    Result[Index] := @List[Index];
end;

procedure TTarget.AddRegion(const Region: TRegion);
begin
  Insert(Region, List, Length(List));
end;

// A module is a file with code; what lies without a name right behind its last mapping are its
// variables.
procedure TTarget.FindModules;
var
  Codes: TStringList;
  Index: Integer;
begin
  Codes := TStringList.Create;
  Codes.Sorted := True;
  Codes.Duplicates := dupIgnore;
  for Index := 0 to High(List) do
    if List[Index].IsCode and List[Index].Path.StartsWith('/') then
      Codes.Add(List[Index].Path);
  for Index := 0 to High(List) do
    if Codes.IndexOf(List[Index].Path) >= 0 then
      List[Index].Module := List[Index].Path
    else if (List[Index].Path = '') and (Index > 0)
      and (List[Index].First = List[Index - 1].Limit) then
      List[Index].Module := List[Index - 1].Module;
  Codes.Free;
end;

function TTarget.FindRegion(Address: UInt64): PRegion;
var
  Low, High, Middle: Integer;
begin
  Low := 0;
  High := Length(List);
  while Low < High do
  begin
    Middle := (Low + High) div 2;
    if List[Middle].Limit <= Address then
      Low := Middle + 1
    else
      High := Middle;
  end;
  Result := nil;
  if (Low < Length(List)) and (List[Low].First <= Address) then
    Result := @List[Low];
end;

function TTarget.ReadableLimit(Region: PRegion): UInt64;
begin
  Result := Region^.Limit;
end;

function TTarget.ReadAll(Address: UInt64; Buffer: Pointer; Size: NativeUInt): Boolean;
begin
  Result := Read(Address, Buffer, Size) = Size;
end;

procedure TTarget.Need(Address: UInt64; Buffer: Pointer; Size: NativeUInt; const What: string);
begin
  if not ReadAll(Address, Buffer, Size) then
    raise ETool.Create(ecDamaged, '%s: %s at $%x, %d bytes, cannot be read',
      [Name, What, Address, Size]);
end;

function TTarget.ThreadName(Thread: Cardinal): string;
begin
  Result := '';
end;

function TTarget.Threads: TArray<Cardinal>;
begin
  Result := nil;
end;

function TTarget.MainThread: Cardinal;
begin
  Result := ProcessId;
end;

procedure TTarget.RefreshRegions;
begin
end;

procedure TTarget.CheckThere;
begin
end;

procedure TTarget.CheckWhole;
begin
end;

// ---------------------------------------------------------------------------- TProcessTarget

// Returns when a process began, as the system counts; empty without such a process.
function StartTimeOf(Id: Integer): string;
const
  StartField = 22;
begin
  Result := StatField(Format('/proc/%d', [Id]), StartField);
end;

// Returns what differs when a process has become another program: where its stack begins, which is a random
// place, and the number of its file. Each may be hidden: empty then.
function ProgramOf(Id: Integer): TArray<string>;
const
  StackField = 28;
  Hidden = '0';
var
  Status: TStat;
begin
  Result := [StatField(Format('/proc/%d', [Id]), StackField), ''];
  if Result[0] = Hidden then
    Result[0] := '';
  if fpStat(Format('/proc/%d/exe', [Id]), Status) = 0 then
    Result[1] := UIntToStr(Status.st_ino);
end;

constructor TProcessTarget.Create(Id: Integer);
begin
  inherited Create;
  ProcessId := Id;
  if not DirectoryExists(Format('/proc/%d', [Id])) then
    raise ETool.Create(ecNoProcess, 'there is no process %d', [Id]);
  ProgramPath := fpReadLink(Format('/proc/%d/exe', [Id]));
  TaskOf := TDictionary<Cardinal, Cardinal>.Create;
  StartTime := StartTimeOf(Id);
  OpenedProgram := ProgramOf(Id);
  ReadMappings;
end;

destructor TProcessTarget.Destroy;
begin
  MemoryFile.Free;
  TaskOf.Free;
  inherited Destroy;
end;

function TProcessTarget.Name: string;
begin
  Result := Format('process %d', [ProcessId]);
end;

function TProcessTarget.TaskOfThread(Thread: Cardinal): Cardinal;
begin
  if not TaskOf.TryGetValue(Thread, Result) then
    Result := Thread;
end;

function TProcessTarget.ThreadName(Thread: Cardinal): string;
begin
  Result := Printable(Trim(ReadSmallFile(Format('/proc/%d/task/%d/comm',
    [ProcessId, TaskOfThread(Thread)]))));
end;

// Names what keeps the caller from looking at the process.
procedure TProcessTarget.RaiseRefused;
const
  Scopes: array['1'..'3'] of string = (
    'only its parent process and root may look (with sysctl kernel.yama.ptrace_scope=0 all of its'
    + ' user)', 'only root may look', 'no process may look until the next start of the system');
var
  Scope, Reason: string;
  Info: Stat;
  IsOwn: Boolean;
begin
  Scope := Trim(ReadSmallFile('/proc/sys/kernel/yama/ptrace_scope'));
  IsOwn := (fpStat(Format('/proc/%d', [ProcessId]), Info) = 0) and (Info.st_uid = fpGetUid);
  Reason := 'it belongs to another user, or has more rights than you; try as root';
  if fpGetUid = 0 then
    Reason := 'this root lacks CAP_SYS_PTRACE, as in a container; or a security module refuses';
  if (Scope = '3') or IsOwn and ((Scope = '1') or (Scope = '2')) then
    Reason := Format('kernel.yama.ptrace_scope is %s: %s', [Scope, Scopes[Scope[1]]]);
  raise ETool.Create(ecNotPermitted, 'not permitted to read the memory of process %d (%s): %s',
    [ProcessId, ProcessName(ProcessId), Reason]);
end;

// Cuts the first field, up to a blank, off Line.
function CutField(var Line: string): string;
var
  Place: Integer;
begin
  Place := Pos(' ', Line + ' ');
  Result := Copy(Line, 1, Place - 1);
  Line := TrimLeft(Copy(Line, Place, MaxInt));
end;

// Reads a line of /proc/PID/maps: `First-Limit rwxp Offset Device Inode   Path`.
function ParseMapping(Line: string): TRegion;
var
  Range, Rights: string;
begin
  Result := Default(TRegion);
  Range := CutField(Line);
  Result.First := StrToQWord('$' + Copy(Range, 1, Pos('-', Range) - 1));
  Result.Limit := StrToQWord('$' + Copy(Range, Pos('-', Range) + 1, MaxInt));
  Rights := CutField(Line);
  Result.IsReadable := Rights[1] = 'r';
  Result.IsWritable := Rights[2] = 'w';
  Result.IsCode := Rights[3] = 'x';
  Result.IsShared := Rights[4] = 's';
  Result.FileOffset := StrToQWord('$' + CutField(Line));
  CutField(Line); // device
  CutField(Line); // inode
  Result.Path := Line;
end;

procedure TProcessTarget.ReadMappings;
var
  Line: string;
  Text: string;
begin
  Text := ReadSmallFile(Format('/proc/%d/maps', [ProcessId]));
  if Text = '' then
  begin
    if HasEnded(ProcessId) then
      RaiseEnded(ProcessId);
    RaiseRefused;
  end;
  for Line in Text.Split([#10], TStringSplitOptions.ExcludeEmpty) do
    AddRegion(ParseMapping(Line));
  FindModules;
end;

procedure TProcessTarget.RefreshRegions;
begin
  List := nil;
  ReadMappings;
end;

function TProcessTarget.Threads: TArray<Cardinal>;
var
  Task, Number: Integer;
  IsContained: Boolean;
begin
  Result := nil;
  IsContained := MainThread <> Cardinal(ProcessId);
  for Task in ThreadsOf(ProcessId) do
  begin
    Number := Task;
    if IsContained then
    begin
      Number := InnermostNumber(Format('/proc/%d/task/%d', [ProcessId, Task]), 'NSpid', Task);
      TaskOf.AddOrSetValue(Number, Task);
    end;
    Insert(Cardinal(Number), Result, Length(Result));
  end;
end;

function TProcessTarget.MainThread: Cardinal;
begin
  Result := OwnNumber(ProcessId);
end;

procedure TProcessTarget.OpenMemory;
begin
  if MemoryFile = nil then
    MemoryFile := TFileStream.Create(Format('/proc/%d/mem', [ProcessId]),
      fmOpenRead or fmShareDenyNone);
end;

// Copies what can be read; a negative number when the system refuses.
function CopyForeign(Id: Integer; Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeInt;
var
  Here, There: TMemoryRange;
begin
  Here.Base := Buffer;
  Here.Length := Size;
  There.Base := Pointer(Address);
  There.Length := Size;
  Result := do_syscall(ReadForeignCall, Id, TSysParam(@Here), 1, TSysParam(@There), 1, 0);
end;

function MemoryOf(Id: Integer; Address: UInt64; Size: Integer): string;
begin
  SetLength(Result, Size);
  if CopyForeign(Id, Address, Pointer(Result), Size) <> Size then
    Result := '';
end;

function TProcessTarget.Read(Address: UInt64; Buffer: Pointer; Size: NativeUInt): NativeUInt;
var
  Count: NativeInt;
begin
  Count := CopyForeign(ProcessId, Address, Buffer, Size);
  Result := 0;
  if Count > 0 then
    Result := Count;
  if Result = Size then
    Exit;
  // The file reads pages without the right to read, too, such as guard pages, and stands in for a
  // call that a filter of system calls refuses.
  try
    OpenMemory;
    MemoryFile.Position := Address;
    Count := MemoryFile.Read(Buffer^, Size);
    if Count > NativeInt(Result) then
      Result := Count;
  except
    on EStreamError do; // without the file: what the call has read
  end;
end;

procedure TProcessTarget.Need(Address: UInt64; Buffer: Pointer; Size: NativeUInt;
  const What: string);
var
  Own: Byte;
begin
  if ReadAll(Address, Buffer, Size) then
    Exit;
  if HasEnded(ProcessId) then
    raise ETool.Create(ecNoProcess, 'process %d has ended', [ProcessId]);
  CheckProgram;
  if (RegionCount > 0) and (Read(Regions[0]^.First, @Own, 1) = 0) then
    RaiseRefused;
  inherited Need(Address, Buffer, Size, What);
end;

// Raises ETool if it runs another program by now: then its memory is not that of the one that was opened.
procedure TProcessTarget.CheckProgram;
var
  Present: TArray<string>;
  Index: Integer;
begin
  Present := ProgramOf(ProcessId);
  for Index := 0 to High(Present) do
    if (Present[Index] <> '') and (OpenedProgram[Index] <> '') and (Present[Index] <> OpenedProgram[Index]) then
      raise ETool.Create(ecNoProcess, 'process %d has become another program', [ProcessId]);
end;

procedure TProcessTarget.CheckThere;
begin
  if HasEnded(ProcessId) or (StartTimeOf(ProcessId) <> StartTime) then
    raise ETool.Create(ecNoProcess, 'process %d has ended while it was read', [ProcessId]);
  CheckProgram;
end;

end.
