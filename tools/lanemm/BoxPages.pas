/// The page of a black box.
unit BoxPages;

{$mode delphi}{$H+}

interface

uses
  BoxNames;

/// Returns the page of leak reports up to its data, and behind it.
procedure SplitPage(out Start, Rest: string);
/// Prints the page: one file, with its data in it.
procedure BoxWritePage(Box: TNamedBox);

implementation

uses
  SysUtils, fpJson, LaneMM.Text, LaneMM.Html, LaneMM.PageParts, BoxScript;

// Returns a frame as the page reads it.
function JsonOf(const Frame: TBoxFrame): TJSONObject;
var
  Colon: Integer;
begin
  Result := TJSONObject.Create(['name', Frame.Name]);
  Colon := LastDelimiter(':', Frame.Place);
  if Colon = 0 then
    Exit;
  Result.Add('file', Copy(Frame.Place, 1, Colon - 1));
  Result.Add('line', StrToIntDef(Copy(Frame.Place, Colon + 1, MaxInt), 0));
end;

// Gives the call sites of the state the names of their frames, and the state its sentence.
procedure AddNames(Box: TNamedBox);
var
  Index: Integer;
  Site: TJSONObject;
  Stack: TJSONArray;
  Frame: TBoxFrame;
begin
  Box.State.Add('sentence', Box.Sentence);
  for Index := 0 to Box.List('sites').Count - 1 do
  begin
    Site := Box.List('sites').Objects[Index];
    Site.Add('place', Box.PlaceOf(Site));
    Stack := TJSONArray.Create;
    for Frame in Box.Frames(Site) do
      Stack.Add(JsonOf(Frame));
    Site.Delete('stack');
    Site.Add('stack', Stack);
  end;
end;

procedure SplitPage(out Start, Rest: string);
const
  Most = 1 shl 20; // bytes of the page without its data
var
  Text: TText;
begin
  TextOpen(Text, Most);
  HtmlOpen(Text);
  SetString(Start, Text.Start, Text.Length);
  Text.Length := 0;
  HtmlClose(Text, pgLeaks);
  SetString(Rest, Text.Start, Text.Length);
  TextClose(Text);
end;

procedure BoxWritePage(Box: TNamedBox);
var
  Start, Rest: string;
  Line: PAnsiChar;
begin
  AddNames(Box);
  SplitPage(Start, Rest); // the script of that page is left out
  TJSONData.CompressedJSON := True;
  Write(Start, StringReplace(Box.State.AsJSON, '<', '\u003c', [rfReplaceAll]),
    Copy(Rest, 1, PartLimits[ppScript] - PartLimits[ppStart]));
  for Line in BoxScriptLines do
    WriteLn(Line);
  WriteLn(Copy(Rest, Length(Rest) - Integer(PageSize - PartLimits[ppLeaks]) + 1, MaxInt));
end;

end.
