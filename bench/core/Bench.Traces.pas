/// Reads what bench/traces/TraceRecorder.pas has written, where the format is described.
unit Bench.Traces;

{$mode delphi}{$H+}

interface

uses
  Classes;

const
  /// Operations on a block: allocate, free, resize.
  KindNew = 0;
  KindFree = 1;
  KindResize = 2;

/// Reads a number in groups of 7 bits, the lowest first.
function TraceNumber(Trace: TStream): UInt64;

implementation

function TraceNumber(Trace: TStream): UInt64;
var
  Shift: Integer;
  Group: Byte;
begin
  Result := 0;
  Shift := 0;
  repeat
    Group := Trace.ReadByte;
    Result := Result or UInt64(Group and 127) shl Shift;
    Inc(Shift, 7);
  until Group < 128;
end;

end.
