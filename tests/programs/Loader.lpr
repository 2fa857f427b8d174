/// A program without LaneMM that loads and unloads Plugin, which has a copy of it:
///   Loader handlers   the handlers of all signals, the open files and the mappings of files are then
///                     those of before
///   Loader fault      writes to address 0 then, and does not catch that
///   Loader memory     many times: the process has the mappings and the memory of the first times
///   Loader pages      the same, but for two pages each time
///   Loader blocks     keeps a block each time, which can be read afterwards: no more is left
///   Loader thread     another thread, which stays, uses the library each time
///   Loader two        has two copies of the library at once
program Loader;

{$mode delphi}{$H+}{$pointermath on}

uses
  cthreads, BaseUnix, SysUtils, Classes, Dynlibs;

const
  Turns = 3;
  Size = 100;
  LastSignal = 64;

type
  TGet = function(Size: NativeUInt): PByte; cdecl;
  TPut = procedure(P: Pointer); cdecl;

procedure Fail(const What: string);
begin
  WriteLn(StdErr, What);
  Halt(1);
end;

// Allocates so often that debug mode watches for faults.
procedure Use(Plugin: TLibHandle);
const
  Count = 100;
var
  Get: TGet;
  Put: TPut;
  Index: Integer;
begin
  Get := GetProcedureAddress(Plugin, 'PluginGet');
  Put := GetProcedureAddress(Plugin, 'PluginPut');
  for Index := 1 to Count do
    Put(Get(Size));
end;

function Load(const Name: string): TLibHandle;
begin
  Result := LoadLibrary(ExtractFilePath(ParamStr(0)) + Name);
  if Result = NilHandle then
    Fail(GetLoadErrorStr);
  Use(Result);
end;

procedure LoadAndUnload;
begin
  UnloadLibrary(Load('libPlugin.so'));
end;

// A line for each signal, open file and mapping of a file, without addresses.
function State: string;
var
  Signal: Integer;
  Action: SigActionRec;
  Found: TSearchRec;
  Mappings: TStringList;
  Line: string;
begin
  Result := '';
  for Signal := 1 to LastSignal do
    if FpSigAction(Signal, nil, @Action) = 0 then
      Result := Result + Format('signal %d: %x'#10, [Signal, NativeUInt(@Action.sa_handler)]);
  if FindFirst('/proc/self/fd/*', faAnyFile, Found) = 0 then
    repeat
      Result := Result + 'file ' + Found.Name + #10;
    until FindNext(Found) <> 0;
  FindClose(Found);
  Mappings := TStringList.Create;
  Mappings.LoadFromFile('/proc/self/maps');
  for Line in Mappings do
    if (Pos('SYSV', Line) > 0) or (Pos('libPlugin.so', Line) > 0) then
      Result := Result + Line + #10;
  Mappings.Free;
end;

procedure CompareStates;
var
  Before, After: string;
  Turn: Integer;
begin
  Before := State;
  for Turn := 1 to Turns do
    LoadAndUnload;
  After := State;
  if After <> Before then
    Fail('before:'#10 + Before + 'after:'#10 + After);
end;

// ---------------------------------------------------------------------------- memory

const
  FewLoads = 30;
  ManyLoads = 200;

type
  TMemory = record
    MappingCount, AddressKilobytes, ResidentKilobytes: NativeInt;
  end;

// Returns the number after Name in a file of /proc/self. VmRSS of status is not exact.
function NumberOf(const FileName, Name: string): NativeInt;
var
  Lines: TStringList;
  Line: string;
begin
  Result := 0;
  Lines := TStringList.Create;
  Lines.LoadFromFile('/proc/self/' + FileName);
  for Line in Lines do
    if Pos(Name, Line) = 1 then
      Result := StrToInt(Trim(StringReplace(Copy(Line, Length(Name) + 1), 'kB', '', [])));
  Lines.Free;
end;

function MemoryNow: TMemory;
var
  Lines: TStringList;
begin
  Lines := TStringList.Create;
  Lines.LoadFromFile('/proc/self/maps');
  Result.MappingCount := Lines.Count;
  Lines.Free;
  Result.AddressKilobytes := NumberOf('status', 'VmSize:');
  Result.ResidentKilobytes := NumberOf('smaps_rollup', 'Rss:');
end;

// Does Work many times; each time may leave so many mappings and kilobytes.
procedure DoManyTimes(Work: TProcedure; Mappings, Kilobytes: NativeInt);
const
  // The run-time library's and libc's memory varies by less than a page for ten loads, and the system
  // joins mappings that lie side by side.
  Slack = ManyLoads * 4 div 10;
  MappingSlack = ManyLoads div 40;
var
  Before, After: TMemory;
  Index: Integer;
begin
  for Index := 1 to FewLoads do
    Work();
  Before := MemoryNow;
  for Index := 1 to ManyLoads do
    Work();
  After := MemoryNow;
  if (After.MappingCount > Before.MappingCount + ManyLoads * Mappings + MappingSlack)
    or (After.AddressKilobytes > Before.AddressKilobytes + ManyLoads * Kilobytes + Slack)
    or (After.ResidentKilobytes > Before.ResidentKilobytes + ManyLoads * Kilobytes + Slack) then
    Fail(Format('%d loads: %d -> %d mappings, %d -> %d KB of addresses, %d -> %d KB resident',
      [ManyLoads, Before.MappingCount, After.MappingCount, Before.AddressKilobytes,
      After.AddressKilobytes, Before.ResidentKilobytes, After.ResidentKilobytes]));
end;

const
  KeptSize = 20000;

var
  Kept: array of PByte;

procedure CheckKept;
var
  Index, Place: Integer;
begin
  for Index := 0 to High(Kept) do
    for Place := 0 to KeptSize - 1 do
      if Kept[Index][Place] <> Byte(Index) then
        Fail(Format('block %d has changed', [Index]));
end;

procedure LoadAndKeep;
var
  Plugin: TLibHandle;
  Get: TGet;
begin
  Plugin := Load('libPlugin.so');
  Get := GetProcedureAddress(Plugin, 'PluginGet');
  SetLength(Kept, Length(Kept) + 1);
  Kept[High(Kept)] := Get(KeptSize);
  FillChar(Kept[High(Kept)]^, KeptSize, High(Kept));
  UnloadLibrary(Plugin);
end;

procedure CopyPlugin;
var
  Bytes: TMemoryStream;
begin
  Bytes := TMemoryStream.Create;
  Bytes.LoadFromFile(ExtractFilePath(ParamStr(0)) + 'libPlugin.so');
  Bytes.SaveToFile(ExtractFilePath(ParamStr(0)) + 'libPlugin2.so');
  Bytes.Free;
end;

procedure LoadTwo;
var
  First, Second: TLibHandle;
begin
  First := Load('libPlugin.so');
  Second := Load('libPlugin2.so');
  Use(First);
  UnloadLibrary(First);
  Use(Second);
  UnloadLibrary(Second);
end;

var
  Shared: TLibHandle;
  MayUse, HasUsed: PRTLEvent;

function UseForEver(Unused: Pointer): PtrInt;
begin
  repeat
    RTLEventWaitFor(MayUse);
    Use(Shared);
    RTLEventSetEvent(HasUsed);
  until False;
end;

procedure LoadForThread;
begin
  Shared := Load('libPlugin.so');
  RTLEventSetEvent(MayUse);
  RTLEventWaitFor(HasUsed);
  Use(Shared);
  UnloadLibrary(Shared);
end;

procedure StartThread;
begin
  MayUse := RTLEventCreate;
  HasUsed := RTLEventCreate;
  BeginThread(UseForEver, nil);
end;

var
  Nowhere: PByte;
  BeforeKept: NativeInt;

begin
  if ParamStr(1) = 'memory' then
    DoManyTimes(LoadAndUnload, 0, 0)
  else if ParamStr(1) = 'pages' then
    DoManyTimes(LoadAndUnload, 0, 8)
  else if ParamStr(1) = 'two' then
  begin
    CopyPlugin;
    DoManyTimes(LoadTwo, 0, 0);
  end
  else if ParamStr(1) = 'thread' then
  begin
    StartThread;
    DoManyTimes(LoadForThread, 0, 0);
  end
  else if ParamStr(1) = 'blocks' then
  begin
    LoadAndUnload;
    BeforeKept := NumberOf('smaps_rollup', 'Rss:');
    DoManyTimes(LoadAndKeep, 2, 400); // a span of some slices, and two pages of records
    if NumberOf('smaps_rollup', 'Rss:') > BeforeKept + Length(Kept) * (KeptSize div 1024 + 4 * 4) then
      Fail(Format('%d KB resident, %d before %d blocks', [NumberOf('smaps_rollup', 'Rss:'), BeforeKept,
        Length(Kept)]));
    CheckKept;
  end
  else if ParamStr(1) = 'handlers' then
    CompareStates
  else
  begin
    LoadAndUnload;
    Nowhere := nil;
    Nowhere^ := 1;
  end;
end.
