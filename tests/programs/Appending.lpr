/// A thread that appends to a string and an array takes memory for their sizes, in any mode: its
/// first blocks come from larger classes.
program Appending;

{$mode delphi}

uses
  LaneMM, cthreads, SysUtils;

const
  Length = 1000;
  MostKilobytes = 8192;

function AppendInThread(Parameter: Pointer): PtrInt;
var
  Index: Integer;
  Text: string;
  Bytes: array of Byte;
begin
  Text := '';
  for Index := 1 to Length do
  begin
    Text := Text + 'x';
    SetLength(Bytes, Index);
  end;
  Result := 0;
end;

var
  Peak: NativeUInt;

begin
  WaitForThreadTerminate(BeginThread(AppendInThread, nil), 0);
  Peak := LaneMM_HeapStatus.PeakBytes shr 10;
  if Peak > MostKilobytes then
  begin
    WriteLn(Peak, ' KB, expected at most ', MostKilobytes);
    Halt(1);
  end;
end.
