/// A shop that serves requests, for the pages of its profiles and leaks:
///   Shop REQUESTS [leak | clean]
/// A catalogue of 20,000 products is loaded and kept. Each request makes a session with a cart, and
/// answers with a text that is freed at once. Every tenth session is remembered and never forgotten,
/// so memory grows with REQUESTS. A monthly report takes 20 MB in the middle and is freed. With
/// `leak`, the end of the program frees the catalogue and nothing else; with `clean`, all. A customer
/// and its account reference each other.
program Shop;

{$mode delphi}{$H+}

uses
  LaneMM, SysUtils, Catalogue, Sessions, Reports;

var
  Requests: Integer;
  Store: TStore;

procedure Serve(First, Last: Integer);
var
  Number: Integer;
begin
  for Number := First to Last do
    if Store.Handle(Number) = 0 then // planted: serve
      Halt(1);
end;

begin
  Requests := StrToInt(ParamStr(1));
  Store := TStore.Create(TCatalogue.Create(20000));
  Serve(1, Requests div 2);
  WriteMonthlyReport(40000);
  Serve(Requests div 2 + 1, Requests);
  if ParamStr(2) = 'leak' then
    Store.Products.Free
  else if ParamStr(2) = 'clean' then
    Store.Free;
end.
