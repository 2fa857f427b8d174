/// A library with its own copy of LaneMM, whose backtraces pass into the program and back; see Plugged.
library Plugin;

{$mode delphi}{$pointermath on}

uses
  LaneMM {$ifndef PLAIN}, cthreads {$endif}; // which leaves two pages when it is unloaded

type
  TVisit = procedure; cdecl;

var
  Visits: Integer;

function Make(Size: NativeUInt): PByte;
begin
  GetMem(Result, Size); // planted: made
end;

procedure Drop(P: Pointer);
begin
  FreeMem(P); // planted: dropped
end;

function PluginGet(Size: NativeUInt): PByte; cdecl;
begin
  Result := Make(Size); // planted: get
end;

procedure PluginPut(P: Pointer); cdecl;
begin
  Drop(P); // planted: put
end;

procedure PluginVisit(Visit: TVisit); cdecl;
begin
  Inc(Visits);
  Visit(); // planted: visit
  Inc(Visits);
end;

procedure Touch(P: PPointer);
begin
  Inc(PByte(P^)^); // planted: touched
  Inc(Visits);
end;

procedure PluginUse(P: PPointer); cdecl;
begin
  Touch(P); // planted: use
  Inc(Visits);
end;

exports
  PluginGet, PluginPut, PluginVisit, PluginUse;

begin
end.
