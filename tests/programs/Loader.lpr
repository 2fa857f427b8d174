/// A program without LaneMM that loads and unloads Plugin, which has a copy of it:
///   Loader handlers   the handlers of all signals, the open files and the mappings of files are then
///                     those of before
///   Loader fault      writes to address 0 then, and does not catch that
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

procedure LoadAndUnload;
var
  Plugin: TLibHandle;
begin
  Plugin := LoadLibrary(ExtractFilePath(ParamStr(0)) + 'libPlugin.so');
  if Plugin = NilHandle then
    Fail(GetLoadErrorStr);
  Use(Plugin);
  UnloadLibrary(Plugin);
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
    if (Pos('memfd:', Line) > 0) or (Pos('libPlugin.so', Line) > 0) then
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

var
  Nowhere: PByte;

begin
  if ParamStr(1) = 'handlers' then
    CompareStates
  else
  begin
    LoadAndUnload;
    Nowhere := nil;
    Nowhere^ := 1;
  end;
end.
