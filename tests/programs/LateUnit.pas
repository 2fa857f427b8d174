/// Keeps blocks that are freed after all other units, and LaneMM's finalization, have run.
unit LateUnit;

{$mode delphi}{$H+}

interface

implementation

type
  TLate = class
    Text: string;
    destructor Destroy; override;
  end;

var
  Late: TLate;
  Numbers: array of Integer;

destructor TLate.Destroy;
begin
  Text := Text + ' and freed';
  inherited Destroy;
end;

procedure AtTheEnd;
var
  P: Pointer;
begin
  Late.Free;
  Numbers := nil;
  GetMem(P, 100000);
  ReallocMem(P, 1000000);
  FreeMem(P);
end;

initialization
  Late := TLate.Create;
  Late.Text := 'made early';
  SetLength(Numbers, 1000);
  AddExitProc(AtTheEnd);
finalization
  SetLength(Numbers, 2000);
end.
