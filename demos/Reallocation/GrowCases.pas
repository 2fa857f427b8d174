/// A string, an array and a list that grow to Count elements: one by one, or capacity first.
unit GrowCases;

{$mode delphi}{$H+}

interface

type
  /// One way to grow.
  TGrowCase = record
    Key: string;                         //< its name in the output of --csv
    Title: string;                       //< its name in the table
    BookMs: Integer;                     //< what the book measured, with Delphi on another machine
    Run: procedure(Count: Integer);      //< does it once
  end;

procedure StringAppend(Count: Integer);
procedure StringSetLength(Count: Integer);
procedure ArrayAppend(Count: Integer);
procedure ArraySetLength(Count: Integer);
procedure ListAdd(Count: Integer);
procedure ListCapacity(Count: Integer);

const
  AllCases: array[0..5] of TGrowCase = (
    (Key: 'string_append'; Title: 'AnsiString, append'; BookMs: 142; Run: StringAppend),
    (Key: 'string_first'; Title: 'AnsiString, SetLength first'; BookMs: 33; Run: StringSetLength),
    (Key: 'array_append'; Title: 'array of Char, append'; BookMs: 230; Run: ArrayAppend),
    (Key: 'array_first'; Title: 'array of Char, SetLength first'; BookMs: 26; Run: ArraySetLength),
    (Key: 'list_append'; Title: 'TList<Char>, Add'; BookMs: 167; Run: ListAdd),
    (Key: 'list_first'; Title: 'TList<Char>, Capacity first'; BookMs: 145; Run: ListCapacity));

var
  /// The Capacity that the list of the last ListAdd had in the end.
  ListRoom: Integer;

/// The Capacity of a list of Count elements that doubles whenever it is full.
function DoublingRoom(Count: Integer): Int64;

implementation

uses
  Generics.Collections;

procedure StringAppend(Count: Integer);
var
  Text: AnsiString;
  I: Integer;
begin
  Text := '';
  for I := 1 to Count do
    Text := Text + '*';
end;

procedure StringSetLength(Count: Integer);
var
  Text: AnsiString;
  I: Integer;
begin
  SetLength(Text, Count);
  for I := 1 to Count do
    Text[I] := '*';
end;

procedure ArrayAppend(Count: Integer);
var
  Items: array of Char;
  I: Integer;
begin
  Items := nil;
  for I := 1 to Count do
  begin
    SetLength(Items, I);
    Items[I - 1] := '*';
  end;
end;

procedure ArraySetLength(Count: Integer);
var
  Items: array of Char;
  I: Integer;
begin
  SetLength(Items, Count);
  for I := 1 to Count do
    Items[I - 1] := '*';
end;

procedure ListAdd(Count: Integer);
var
  List: TList<Char>;
  I: Integer;
begin
  List := TList<Char>.Create;
  for I := 1 to Count do
    List.Add('*');
  ListRoom := List.Capacity;
  List.Free;
end;

procedure ListCapacity(Count: Integer);
var
  List: TList<Char>;
  I: Integer;
begin
  List := TList<Char>.Create;
  List.Capacity := Count;
  for I := 1 to Count do
    List.Add('*');
  List.Free;
end;

function DoublingRoom(Count: Integer): Int64;
begin
  Result := 1;
  while Result < Count do
    Result := Result * 2;
end;

end.
