/// Reports as self-contained HTML pages, from the files in src/observe/page.
//
// Owns:       nothing.
// Invariants: a page holds its data as one JSON object in the element `data`; the names in it never
//             hold `<`, see TextAddJson.
// Callers:    any thread. HtmlOpen, one JSON object, HtmlClose, in this order.
unit LaneMM.Html;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text;

type
  /// The pages.
  TPage = (pgProfiles, pgLeaks);

/// Adds the page up to its data.
procedure HtmlOpen(var Text: TText);
/// Adds the page after its data.
procedure HtmlClose(var Text: TText; Page: TPage);

implementation

uses
  LaneMM.PageParts;

procedure AddParts(var Text: TText; Parts: PPAnsiChar; Count: Cardinal);
var
  Index: Cardinal;
begin
  for Index := 0 to Count - 1 do
    TextAddChars(Text, Parts[Index]);
end;

procedure HtmlOpen(var Text: TText);
begin
  AddParts(Text, @PageStart, Length(PageStart));
end;

procedure HtmlClose(var Text: TText; Page: TPage);
begin
  AddParts(Text, @PageScript, Length(PageScript));
  case Page of
    pgProfiles: AddParts(Text, @ProfileScript, Length(ProfileScript));
    pgLeaks: AddParts(Text, @LeaksScript, Length(LeaksScript));
  end;
  AddParts(Text, @PageEnd, Length(PageEnd));
end;

end.
