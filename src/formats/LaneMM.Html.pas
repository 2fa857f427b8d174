/// Reports as self-contained HTML pages, from the files in src/formats/page.
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
  LaneMM.Os, LaneMM.Inflate, LaneMM.PageParts;

// Writes the stream from Target on, up to a whole word.
procedure ReadDigits(Target: PCardinal);
const
  FirstDigit = '(';
  Base = 85;
  DigitCount = 5;
var
  Line, Index: Cardinal;
  Digits: PAnsiChar;
begin
  for Line := 0 to High(StreamDigits) do
  begin
    Digits := StreamDigits[Line];
    while Digits^ <> #0 do
    begin
      Target^ := 0;
      for Index := 0 to DigitCount - 1 do
        Target^ := Target^ * Base + (Ord(Digits[Index]) - Ord(FirstDigit));
      Inc(Digits, DigitCount);
      Inc(Target);
    end;
  end;
end;

// Adds parts of the page, in their order; without memory none, as if they did not fit.
procedure AddParts(var Text: TText; Parts: TPageParts);
const
  PackedSize = StreamSize + SizeOf(Cardinal);
var
  Packed_: PByte;
  Page: PAnsiChar;
  Part: TPagePart;
  First: NativeUInt;
begin
  Packed_ := OsTakePages(PackedSize + PageSize);
  if Packed_ <> nil then
    ReadDigits(PCardinal(Packed_));
  Page := PAnsiChar(Packed_ + PackedSize);
  if (Packed_ = nil) or not Inflate(Packed_, StreamSize, PByte(Page), PageSize) then
  begin
    Parts := [];
    Text.IsCut := True;
  end;
  First := 0;
  for Part := Low(TPagePart) to High(TPagePart) do
  begin
    if Part in Parts then
      TextAddSome(Text, Page + First, NativeUInt(PartLimits[Part] - First));
    First := PartLimits[Part];
  end;
  OsReleasePages(Packed_, PackedSize + PageSize);
end;

procedure HtmlOpen(var Text: TText);
begin
  AddParts(Text, [ppStart]);
end;

procedure HtmlClose(var Text: TText; Page: TPage);
const
  Parts: array[TPage] of TPageParts = ([ppScript, ppProfiles, ppEnd], [ppScript, ppLeaks, ppEnd]);
begin
  AddParts(Text, Parts[Page]);
end;

end.
