/// JSON, piece by piece: keys, values, and the commas between them.
//
// Owns:       nothing.
// Invariants: a comma stands before each key and item but the first after a bracket.
// Callers:    any thread.
unit LaneMM.Json;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text;

/// Adds a comma unless Text ends with an opening bracket.
procedure JsonAddComma(var Text: TText);
/// Adds a key, after a comma where one is due.
procedure JsonAddKey(var Text: TText; const Key: ShortString);
/// Adds a key and the bracket that opens its value, `{` or `[`.
procedure JsonOpen(var Text: TText; const Key: ShortString; Bracket: AnsiChar);
/// Opens an object that is an item of a list.
procedure JsonOpenItem(var Text: TText);
/// JsonOpenItem on a line of its own.
procedure JsonOpenLine(var Text: TText);
/// Adds a number that is an item of a list.
procedure JsonAddItem(var Text: TText; Value: UInt64);
/// Adds a string in quotes; Value ends with #0, or is nil: an empty one.
procedure JsonAddString(var Text: TText; Value: PAnsiChar);
/// Adds a key and a number.
procedure JsonAddNumber(var Text: TText; const Key: ShortString; Value: UInt64);
/// Adds a key and a string that ends with #0.
procedure JsonAddText(var Text: TText; const Key: ShortString; Value: PAnsiChar);
/// Adds a key and `true` or `false`.
procedure JsonAddFlag(var Text: TText; const Key: ShortString; Value: Boolean);

implementation

procedure JsonAddComma(var Text: TText);
begin
  if not (Text.Start[Text.Length - 1] in ['[', '{']) then
    TextAdd(Text, ',');
end;

procedure JsonAddKey(var Text: TText; const Key: ShortString);
begin
  JsonAddComma(Text);
  TextAdd(Text, '"');
  TextAdd(Text, Key);
  TextAdd(Text, '":');
end;

procedure JsonOpen(var Text: TText; const Key: ShortString; Bracket: AnsiChar);
begin
  JsonAddKey(Text, Key);
  TextAdd(Text, Bracket);
end;

procedure JsonOpenItem(var Text: TText);
begin
  JsonAddComma(Text);
  TextAdd(Text, '{');
end;

procedure JsonOpenLine(var Text: TText);
begin
  JsonAddComma(Text);
  TextAdd(Text, LineEnd);
  TextAdd(Text, '{');
end;

procedure JsonAddItem(var Text: TText; Value: UInt64);
begin
  JsonAddComma(Text);
  TextAddNumber(Text, Value);
end;

procedure JsonAddString(var Text: TText; Value: PAnsiChar);
begin
  TextAdd(Text, '"');
  if Value <> nil then
    TextAddJson(Text, Value);
  TextAdd(Text, '"');
end;

procedure JsonAddNumber(var Text: TText; const Key: ShortString; Value: UInt64);
begin
  JsonAddKey(Text, Key);
  TextAddNumber(Text, Value);
end;

procedure JsonAddText(var Text: TText; const Key: ShortString; Value: PAnsiChar);
begin
  JsonAddKey(Text, Key);
  JsonAddString(Text, Value);
end;

procedure JsonAddFlag(var Text: TText; const Key: ShortString; Value: Boolean);
const
  Words: array[Boolean] of PAnsiChar = ('false', 'true');
begin
  JsonAddKey(Text, Key);
  TextAddChars(Text, Words[Value]);
end;

end.
