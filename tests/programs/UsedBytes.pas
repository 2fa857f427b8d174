/// A promise about the bytes of the heap that are in use.
unit UsedBytes;

{$mode delphi}

interface

/// Expects that no more than Bytes of LaneMM's heap are in use. Blocks that the thread that purges has
/// in hand count as used for that moment, so it looks again, for some seconds.
procedure ExpectUsed(Bytes: NativeUInt);

implementation

uses
  {$ifdef LEAN} LaneMMLean, {$else} LaneMM, {$endif} Promises;

procedure ExpectUsed(Bytes: NativeUInt);
const
  MostLooks = 200000;
var
  Looks: Integer;
begin
  Looks := 0;
  while (LaneMM_HeapStatus.UsedBytes > Bytes) and (Looks < MostLooks) do
  begin
    Inc(Looks);
    ThreadSwitch;
  end;
  Expect(Looks < MostLooks, 'all blocks are back');
end;

end.
