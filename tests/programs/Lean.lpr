/// The lean door: its limits refuse memory with a line for each, a modified free block has its line,
/// and `off` leaves the previous manager in place.
program Lean;

{$mode delphi}{$H+}

uses
  LaneMMLean, Promises;

type
  PLink = ^TLink;
  TLink = record
    Next: PLink;
    Rest: array[0..65535] of Byte;
  end;

// Takes memory until there is none, then frees it.
procedure FillMemory;
var
  List, Link: PLink;
  Count: Integer;
begin
  List := nil;
  Count := 0;
  ReturnNilIfGrowHeapFails := True;
  repeat
    Link := GetMem(SizeOf(TLink));
    if Link <> nil then
    begin
      Link^.Next := List;
      List := Link;
      Inc(Count);
    end;
  until Link = nil;
  Expect((Count > 400) and (Count < 1000), 'the limit of 64 MB refuses memory');
  Expect(LaneMM_HeapStatus.CommittedBytes <= 64 shl 20, 'and holds');
  while List <> nil do
  begin
    Link := List;
    List := Link^.Next;
    FreeMem(Link);
  end;
end;

procedure ModifyFreeBlock;
var
  P: PNativeUInt;
  Count: Integer;
begin
  P := GetMem(48);
  FreeMem(P);
  P^ := not P^;
  for Count := 1 to 3 do
    Expect(GetMem(48) <> nil, 'blocks are allocated although a free one was modified');
end;

begin
  if ParamStr(1) = 'off' then
    Expect((GetMem(100) <> nil) and (LaneMM_HeapStatus.ReservedBytes = 0), 'another manager works')
  else
  begin
    FillMemory;
    ModifyFreeBlock;
  end;
  Finish;
end.
