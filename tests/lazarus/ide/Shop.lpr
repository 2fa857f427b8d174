/// A program with planted leaks, memory errors, growth and remote frees, for the window of the IDE. Its
/// parameters name the parts that run: sell, many, grow, damage, remote, wait.
program Shop;

{$mode objfpc}{$H+}

uses
  {$ifdef UNIX} cthreads, {$endif}
  Classes, SysUtils;

type
  TOrder = class
    Name: string;
    Lines: TStringList;
    constructor Create(Number: Integer);
    destructor Destroy; override;
  end;

  TClerk = class(TThread)
    procedure Execute; override;
  end;

var
  Orders: TList;
  Numbers: array of Integer;
  Parcels: array[0..9999] of Pointer;

constructor TOrder.Create(Number: Integer);
begin
  Name := 'order ' + IntToStr(Number);
  Lines := TStringList.Create; // planted: lines
  Lines.Add('line of ' + Name);
end;

destructor TOrder.Destroy;
begin
  Lines.Free;
  inherited Destroy;
end;

procedure Sell(Count: Integer);
var
  Number: Integer;
begin
  for Number := 1 to Count do
    TOrder.Create(Number); // planted: sell
end;

procedure Keep(Count: Integer);
var
  Number: Integer;
begin
  for Number := 1 to Count do
    Orders.Add(TOrder.Create(Number));
end;

procedure Grow;
var
  Number: Integer;
begin
  for Number := 1 to 2000 do
  begin
    SetLength(Numbers, Number); // planted: grow
    Numbers[Number - 1] := Number;
  end;
end;

procedure Damage;
var
  Box: PByte;
begin
  GetMem(Box, 20);
  Box[20] := 1;
  FreeMem(Box); // planted: damage
end;

procedure TClerk.Execute;
var
  Number: Integer;
begin
  for Number := 0 to High(Parcels) do
    FreeMem(Parcels[Number]); // planted: remote
end;

procedure SendParcels;
var
  Clerk: TClerk;
  Number: Integer;
begin
  for Number := 0 to High(Parcels) do
    GetMem(Parcels[Number], 100);
  Clerk := TClerk.Create(False);
  Clerk.WaitFor;
  Clerk.Free;
end;

// Keeps more orders every tenth of a second, until it is ended.
procedure Wait;
begin
  repeat
    Keep(10);
    Sleep(100);
  until False;
end;

var
  Number: Integer;
begin
  Orders := TList.Create;
  Keep(3);
  for Number := 1 to ParamCount do
    case ParamStr(Number) of
      'sell': Sell(20);
      'many': Sell(10000); // 5 blocks each
      'grow': Grow;
      'damage': Damage;
      'remote': SendParcels;
      'wait': Wait;
    end;
  WriteLn(Orders.Count, ' orders kept');
  for Number := 0 to Orders.Count - 1 do
    TOrder(Orders[Number]).Free;
  Orders.Free;
end.
