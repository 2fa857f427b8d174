/// The products of a shop.
unit Catalogue;

{$mode delphi}{$H+}

interface

uses
  Contnrs;

type
  TProduct = class
    Name, Text: string;
    Pictures: array of Byte;
    constructor Create(Number: Integer);
  end;

  TCatalogue = class
    Products: TObjectList;
    constructor Create(Count: Integer);
    destructor Destroy; override;
    function Find(Number: Integer): TProduct;
  strict private
    procedure Load(Count: Integer);
  end;

implementation

uses
  SysUtils;

constructor TProduct.Create(Number: Integer);
begin
  Name := 'Product ' + IntToStr(Number);
  Text := StringOfChar('t', 500); // planted: text
  SetLength(Pictures, 300);
end;

constructor TCatalogue.Create(Count: Integer);
begin
  Products := TObjectList.Create(True);
  Load(Count);
end;

destructor TCatalogue.Destroy;
begin
  Products.Free;
  inherited;
end;

procedure TCatalogue.Load(Count: Integer);
var
  Number: Integer;
begin
  for Number := 1 to Count do
    Products.Add(TProduct.Create(Number)); // planted: product
end;

function TCatalogue.Find(Number: Integer): TProduct;
begin
  Result := TProduct(Products[Number mod Products.Count]);
end;

end.
