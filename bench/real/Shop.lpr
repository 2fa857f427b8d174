/// A web server on Horse: the memory of each request is that of its own thread.
//
//   Shop PORT
//
// `/ping` answers with one word, so it measures the frameworks; `/products` makes fifty objects and
// writes them as JSON; `/order` reads JSON and answers with its sum. Horse runs on the HTTP server
// of Free Pascal, which gives each connection a thread. The memory manager is chosen when the
// program is built: see bench/real/run.sh. It runs until it is killed.
program Shop;

{$mode delphi}{$H+}

uses
  cthreads, SysUtils, Generics.Collections, fpjson, jsonparser, Horse;

type
  TProduct = class
  public
    Name: string;
    Tags: TArray<string>;
    Cents: Integer;
    constructor Create(Number: Integer);
    function ToJson: TJSONObject;
  end;

constructor TProduct.Create(Number: Integer);
begin
  Name := 'Product ' + IntToStr(Number);
  Tags := TArray<string>.Create('new', 'size ' + IntToStr(Number mod 7), Name + ', in stock');
  Cents := 100 + Number * 37 mod 9900;
end;

function TProduct.ToJson: TJSONObject;
var
  List: TJSONArray;
  Tag: string;
begin
  List := TJSONArray.Create;
  for Tag in Tags do
    List.Add(Tag);
  Result := TJSONObject.Create(['name', Name, 'cents', Cents, 'tags', List]);
end;

procedure Ping(Request: THorseRequest; Response: THorseResponse);
begin
  Response.Send('pong');
end;

procedure SendProducts(Request: THorseRequest; Response: THorseResponse);
var
  Products: TObjectList<TProduct>;
  Product: TProduct;
  List: TJSONArray;
  Number: Integer;
begin
  Products := TObjectList<TProduct>.Create(True);
  List := TJSONArray.Create;
  try
    for Number := 1 to 50 do
      Products.Add(TProduct.Create(Number));
    for Product in Products do
      List.Add(Product.ToJson);
    Response.Send(List.AsJSON);
  finally
    List.Free;
    Products.Free;
  end;
end;

procedure TakeOrder(Request: THorseRequest; Response: THorseResponse);
var
  Order: TJSONData;
  Lines: TJSONArray;
  Sum, Index: Integer;
begin
  Order := GetJSON(Request.Body);
  try
    Lines := Order.FindPath('lines') as TJSONArray;
    Sum := 0;
    for Index := 0 to Lines.Count - 1 do
      Inc(Sum, Lines.Objects[Index].Integers['count'] * Lines.Objects[Index].Integers['cents']);
    Response.Send(IntToStr(Sum));
  finally
    Order.Free;
  end;
end;

begin
  THorse.Get('/ping', Ping);
  THorse.Get('/products', SendProducts);
  THorse.Post('/order', TakeOrder);
  THorse.Listen(StrToInt(ParamStr(1)), '127.0.0.1');
end.
