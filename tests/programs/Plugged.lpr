/// A program whose library, Plugin, has a copy of LaneMM of its own. Blocks are written past their end
/// and found when the other side frees them:
///   Plugged given      the library allocates, the program frees
///   Plugged returned   the program allocates, the library frees
///   Plugged visited    the library calls the program, which allocates and frees
///   Plugged lost       the library allocates a block that is never freed, and is unloaded
///   Plugged used       the library uses the contents of a freed block as an address
///   Plugged both       the program loses a block, too
///   Plugged twice      the library allocates and frees a block, the program frees it once more
///   Plugged fault      both allocate much, then the program writes to address 0 and catches that
///   Plugged gone       the same after the library was unloaded
///   Plugged again      loads and unloads the library 20 times, with a visit each time; no mistake
///   Plugged none       all of it without a mistake
program Plugged;

{$mode delphi}{$H+}{$pointermath on}

uses
  LaneMM, cthreads, SysUtils, Dynlibs;

const
  Size = 100;
  Mark = $42;
  LoadCount = 20;

type
  TVisit = procedure; cdecl;

var
  Plugin: TLibHandle;
  PluginGet: function(Size: NativeUInt): PByte; cdecl;
  PluginPut: procedure(P: Pointer); cdecl;
  PluginVisit: procedure(Visit: TVisit); cdecl;
  PluginUse: procedure(P: PPointer); cdecl;
  IsWrong: Boolean;

procedure Load;
begin
  Plugin := LoadLibrary(ExtractFilePath(ParamStr(0))
    + {$ifdef MSWINDOWS} 'Plugin.dll' {$else} 'libPlugin.so' {$endif});
  if Plugin = NilHandle then
    Halt(99);
  PluginGet := GetProcedureAddress(Plugin, 'PluginGet');
  PluginPut := GetProcedureAddress(Plugin, 'PluginPut');
  PluginVisit := GetProcedureAddress(Plugin, 'PluginVisit');
  PluginUse := GetProcedureAddress(Plugin, 'PluginUse');
end;

procedure Spoil(P: PByte);
begin
  if IsWrong then
    P[Size] := Mark;
end;

procedure FreeGiven(P: PByte);
begin
  FreeMem(P); // planted: given freed
end;

procedure Give;
var
  P: PByte;
begin
  P := PluginGet(Size); // planted: given
  Spoil(P);
  FreeGiven(P); // planted: give
end;

procedure GiveBack;
var
  P: PByte;
begin
  GetMem(P, Size); // planted: own
  Spoil(P);
  PluginPut(P); // planted: returned
end;

procedure Visit; cdecl;
var
  P: PByte;
begin
  GetMem(P, Size); // planted: visit got
  Spoil(P);
  FreeMem(P); // planted: visit freed
end;

procedure BeVisited;
begin
  PluginVisit(Visit); // planted: visited
end;

procedure Lose;
var
  P: PByte;
begin
  P := PluginGet(Size); // planted: lost
  if not IsWrong then
    FreeMem(P);
end;

procedure UseFreed;
var
  P: PPointer;
begin
  GetMem(P, Size);
  P^ := @IsWrong;
  if IsWrong then
    FreeMem(P);
  try
    PluginUse(P); // planted: used
  except
    on EAccessViolation do;
  end;
  if not IsWrong then
    FreeMem(P);
end;

procedure LoseBoth;
var
  P: PByte;
begin
  P := GetMem(Size);
  if not IsWrong then
    FreeMem(P);
  P := nil;
  Lose;
end;

procedure FreeTwice;
var
  P: PByte;
begin
  P := PluginGet(Size); // planted: twice got
  if IsWrong then
    PluginPut(P); // planted: twice put
  try
    FreeMem(P); // planted: twice freed
  except
    on EInvalidPointer do;
  end;
end;

// Both look for the handlers of faults once more every few thousand allocations.
procedure AllocateMuch;
const
  Turns = 20000;
var
  Turn: Integer;
begin
  for Turn := 1 to Turns do
  begin
    FreeMem(PluginGet(Size));
    Visit;
  end;
end;

procedure WriteNowhere;
var
  Nowhere: PByte;
begin
  Nowhere := nil;
  try
    Nowhere^ := Mark;
    Halt(98);
  except
    on EAccessViolation do;
  end;
end;

procedure LoadAgain;
var
  Time: Integer;
begin
  for Time := 1 to LoadCount do
  begin
    UnloadLibrary(Plugin);
    Load;
    PluginVisit(Visit);
  end;
end;

procedure Run(const Name: string; Work: TProcedure);
begin
  IsWrong := ParamStr(1) = Name;
  if IsWrong or (ParamStr(1) = 'none') then
    Work(); // planted: run
end;

begin
  Load;
  Run('given', Give); // planted: run given
  Run('returned', GiveBack); // planted: run returned
  Run('visited', BeVisited); // planted: run visited
  Run('lost', Lose); // planted: run lost
  if ParamStr(1) = 'used' then
    Run('used', UseFreed); // planted: run used
  Run('both', LoseBoth);
  Run('twice', FreeTwice); // planted: run twice
  if ParamStr(1) = 'fault' then
  begin
    AllocateMuch;
    WriteNowhere;
  end;
  if ParamStr(1) = 'again' then
    LoadAgain;
  if ParamStr(1) = 'gone' then
    AllocateMuch;
  UnloadLibrary(Plugin);
  if ParamStr(1) = 'gone' then
    WriteNowhere;
end.
