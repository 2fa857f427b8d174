/// Holds pages in a cache and churns in threads until it is killed: what a black box has to tell.
///
///   Boxed [PAGES [THREADS]]   pages of 4 KB that the cache gets; then a line `ready`, and work without end
///   Boxed end [CODE]          fills the cache and ends with the exit code
///   Boxed kill                fills the cache and is killed
///   Boxed lines [THREADS]     pages of two call sites of one line, each with fewer bytes than one of
///                             another line; then as with PAGES
///   Boxed regions             fills a region of a thousand pages, then a hundred of one; ends with exit code 3
///   Boxed daemon              ends; a child process fills the cache again and again
program Boxed;

{$mode delphi}

uses
  LaneMM, {$ifdef UNIX} cthreads, BaseUnix {$else} Windows {$endif}, SysUtils;

type
  TCachedPage = class
    Data: array[0..4087] of Byte;
  end;

  TNewPage = class(TCachedPage);
  TPageClass = class of TCachedPage;

var
  Cache: array of TCachedPage;

procedure FillCache(Count: Integer);
var
  Index: Integer;
begin
  SetLength(Cache, Count);
  for Index := 0 to Count - 1 do
    Cache[Index] := TCachedPage.Create; // planted: page
end;

function Churn(Seed: Pointer): PtrInt;
var
  Blocks: array[0..999] of Pointer;
  State: Cardinal;
  Index: Integer;
begin
  SetThreadDebugName(GetCurrentThreadId, 'churn');
  if Seed = Pointer(1) then
    LaneMM_RegionEnter(LaneMM_RegionCreate('requests', 0));
  FillChar(Blocks, SizeOf(Blocks), 0);
  State := PtrUInt(Seed);
  repeat
    State := State * 1664525 + 1013904223;
    Index := State shr 8 mod Length(Blocks);
    FreeMem(Blocks[Index]);
    GetMem(Blocks[Index], State shr 20 and 2047 + 1); // planted: churn
  until False;
  Result := 0;
end;

procedure Kill;
begin
  {$ifdef UNIX}
  FpKill(FpGetPid, SIGKILL);
  {$else}
  TerminateProcess(GetCurrentProcess, 9);
  {$endif}
end;

procedure Add(Kind: TPageClass; Count: Integer);
var
  Index: Integer;
begin
  for Index := 1 to Count do
    Cache[Index] := Kind.Create; // planted: two
end;

procedure FillByLines;
begin
  FillCache(1000);
  Add(TCachedPage, 700);
  Add(TNewPage, 700);
end;

procedure FillRegions;
const
  PageBytes = 4096;
var
  Region: TLaneMM_Region;
  Index: Integer;
begin
  Region := LaneMM_RegionCreate('large', 0);
  for Index := 1 to 1000 do
    LaneMM_RegionGetMem(Region, PageBytes);
  for Index := 1 to 100 do
    LaneMM_RegionGetMem(LaneMM_RegionCreate('small', 0), PageBytes);
  Halt(3);
end;

procedure BeDaemon;
begin
  {$ifdef UNIX}
  if FpFork <> 0 then
    Halt;
  repeat
    FillCache(3000);
    Sleep(10);
  until False;
  {$endif}
end;

var
  Thread: Integer;
begin
  if ParamStr(1) = 'daemon' then
    BeDaemon;
  if ParamStr(1) = 'regions' then
    FillRegions;
  if ParamStr(1) = 'kill' then
  begin
    FillCache(1000);
    Kill;
  end;
  if ParamStr(1) = 'end' then
  begin
    FillCache(1000);
    Halt(StrToIntDef(ParamStr(2), 0));
  end;
  if ParamStr(1) = 'lines' then
    FillByLines
  else
    FillCache(StrToIntDef(ParamStr(1), 10000));
  for Thread := 1 to StrToIntDef(ParamStr(2), 8) do
    BeginThread(Churn, Pointer(PtrInt(Thread)));
  WriteLn('ready');
  Flush(Output);
  repeat
    Sleep(1000);
  until False;
end.
