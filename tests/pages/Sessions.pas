/// The sessions of a shop, and what serves its requests.
unit Sessions;

{$mode delphi}{$H+}

interface

uses
  Classes, Contnrs, Catalogue;

type
  TCart = class
    Lines: TStringList;
    constructor Create;
    destructor Destroy; override;
    procedure Put(Product: TProduct; Count: Integer);
  end;

  IOwner = interface
  end;

  TAccount = class(TInterfacedObject, IOwner)
    Customer: IOwner;
    Movements: array[0..63] of Currency;
  end;

  TCustomer = class(TInterfacedObject, IOwner)
    Name: string;
    Account: IOwner;
    constructor Create(Number: Integer);
  end;

  TSession = class
    Key: string;
    Cart: TCart;
    Customer: TCustomer;
    constructor Create(Number: Integer);
    destructor Destroy; override;
  end;

  TStore = class
    Products: TCatalogue;
    Remembered: TObjectList;
    constructor Create(Catalogue: TCatalogue);
    destructor Destroy; override;
    /// Serves a request; returns the length of the answer.
    function Handle(Number: Integer): Integer;
  strict private
    procedure FillCart(Session: TSession; Number: Integer);
    procedure Keep(Session: TSession; Number: Integer);
  end;

implementation

uses
  SysUtils, Reports;

constructor TCart.Create;
begin
  Lines := TStringList.Create;
end;

destructor TCart.Destroy;
begin
  Lines.Free;
  inherited;
end;

procedure TCart.Put(Product: TProduct; Count: Integer);
begin
  Lines.Add(Format('%d x %s', [Count, Product.Name])); // planted: line
end;

constructor TCustomer.Create(Number: Integer);
var
  Opened: TAccount;
begin
  Name := 'Customer ' + IntToStr(Number);
  Opened := TAccount.Create; // planted: account
  Account := Opened;
  Opened.Customer := Self;
end;

constructor TSession.Create(Number: Integer);
begin
  Key := StringOfChar(Chr(Ord('a') + Number mod 26), 200);
  Cart := TCart.Create;
  Customer := TCustomer.Create(Number); // planted: customer
end;

destructor TSession.Destroy;
begin
  Customer.Account := nil;
  Cart.Free;
  inherited;
end;

constructor TStore.Create(Catalogue: TCatalogue);
begin
  Products := Catalogue;
  Remembered := TObjectList.Create(True);
end;

destructor TStore.Destroy;
begin
  Remembered.Free;
  Products.Free;
  inherited;
end;

procedure TStore.FillCart(Session: TSession; Number: Integer);
var
  Index: Integer;
begin
  for Index := 1 to 8 do
    Session.Cart.Put(Products.Find(Number * 7 + Index), Index);
end;

procedure TStore.Keep(Session: TSession; Number: Integer);
begin
  if Number mod 10 = 0 then
    Remembered.Add(Session)
  else
    Session.Free;
end;

function TStore.Handle(Number: Integer): Integer;
var
  Session: TSession;
begin
  Session := TSession.Create(Number); // planted: session
  FillCart(Session, Number);
  Result := Length(PageOf(Session.Cart.Lines));
  Keep(Session, Number);
end;

end.
