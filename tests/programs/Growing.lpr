/// Grows what programs grow, through routines of the libraries of Free Pascal; with the argument
/// `wrapped`, what grows inside other containers, inside a package, and in routines whose names are
/// those of libraries; with `replace`, puts larger blocks in the place of others instead.
program Growing;

{$mode delphi}{$H+}

uses
  LaneMM, cthreads, Classes, SysUtils, Contnrs, FGL, Generics.Collections, FpJson;

type
  TNumbers = TFPGList<Integer>;

const
  Times = 100000;

procedure Replace;
var
  Small, Large: Pointer;
  Time: Integer;
begin
  for Time := 1 to Times do
  begin
    Small := GetMem(1000);
    Large := GetMem(2000);
    FreeMem(Small);
    FreeMem(Large);
  end;
end;

procedure Grow;
var
  Numbers: TNumbers;
  Others: TList<Integer>;
  Objects: TObjectList;
  Strings: TStringList;
  Places: TDictionary<Integer, Integer>;
  Stream: TMemoryStream;
  Builder: TStringBuilder;
  Text: string;
  Index: Integer;
begin
  Numbers := TNumbers.Create;
  Others := TList<Integer>.Create;
  Objects := TObjectList.Create;
  Strings := TStringList.Create;
  Places := TDictionary<Integer, Integer>.Create;
  Stream := TMemoryStream.Create;
  Builder := TStringBuilder.Create;
  Text := '';
  for Index := 1 to Times do
  begin
    Numbers.Add(Index); // planted: numbers
    Others.Add(Index); // planted: others
    Objects.Add(nil); // planted: objects
    Strings.Add('part'); // planted: strings
    Places.Add(Index, Index); // planted: places
    Stream.Write(Index, SizeOf(Index)); // planted: stream
    Builder.Append('part'); // planted: builder
    Text := Text + 'part'; // planted: text
  end;
  if Length(Text) = Builder.Length then
    ExitCode := 5;
end;

procedure GrowWrapped;
var
  Queue: TQueue;
  Items: TCollection;
  Shared: TThreadList;
  Bits: TBits;
  Known: THashSet<Integer>;
  Map: TFPGMap<Integer, Integer>;
  Values: TJSONArray;
  Index: Integer;
begin
  Queue := TQueue.Create;
  Items := TCollection.Create(TCollectionItem);
  Shared := TThreadList.Create;
  Bits := TBits.Create;
  Known := THashSet<Integer>.Create;
  Map := TFPGMap<Integer, Integer>.Create;
  Values := TJSONArray.Create;
  for Index := 1 to 2000 do
  begin
    Queue.Push(Queue); // planted: queue
    Items.Add; // planted: items
    Shared.Add(Pointer(PtrInt(Index))); // planted: shared
    Bits[Index * 100] := True; // planted: bits
    Known.Add(Index); // planted: known
    Map.Add(Index, Index); // planted: map
    Values.Add(Index); // planted: values
  end;
end;

type
  // A collection of the program's own, with a name of a library's.
  TStack<T> = class
    Items: array of T;
    procedure Push(const Item: T);
  end;

procedure TStack<T>.Push(const Item: T);
begin
  SetLength(Items, Length(Items) + 1); // planted: own stack
  Items[High(Items)] := Item;
end;

procedure GrowOwnStack;
var
  Stack: TStack<Integer>;
  Index: Integer;
begin
  Stack := TStack<Integer>.Create;
  for Index := 1 to 2000 do
    Stack.Push(Index);
end;

procedure StreamDictionary_SetCapacity;
var
  Text: string;
  Index: Integer;
begin
  Text := '';
  for Index := 1 to Times do
    Text := Text + 'part'; // planted: own
  if Length(Text) = 4 * Times then
    ExitCode := 5;
end;

begin
  if ParamStr(1) = 'replace' then
    Replace
  else if ParamStr(1) = 'wrapped' then
  begin
    GrowWrapped;
    GrowOwnStack;
    StreamDictionary_SetCapacity;
  end
  else
    Grow;
end.
