program Server;

{$mode objfpc}{$H+}

uses
  Orders;

var
  Order: TOrder;
begin
  Order := Accept('Miller');
  WriteLn(Order.Count, ' lines');
  Order.Free;
end.
