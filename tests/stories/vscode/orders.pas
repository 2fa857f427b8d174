unit Orders;

{$mode objfpc}{$H+}

interface

uses
  Classes;

type
  TOrder = class
  private
    FLines: TStringList;
  public
    constructor Create(const Customer: string);
    procedure Add(const Line: string);
    function Count: Integer;
  end;

function Accept(const Customer: string): TOrder;

implementation

constructor TOrder.Create(const Customer: string);
begin
  FLines := TStringList.Create;
  Add('for ' + Customer);
end;

procedure TOrder.Add(const Line: string);
begin
  FLines.Add(Line);
end;

function TOrder.Count: Integer;
begin
  Result := FLines.Count;
end;

function Accept(const Customer: string): TOrder;
begin
  Result := TOrder.Create(Customer);
  Result.Add('1 x keyboard');
end;

end.
