/// What does it cost to let a string, an array or a list grow one element at a time?
//
// One operation appends one element, without any hint of the final size; a container ends
// at 10,000,000 elements and the next one starts. All elements are checked.
// Source: docs/seeds.md, A2: the Reallocation demo of the book.
unit Workload.Append;

{$I Bench.inc}

interface

implementation

uses
  Classes, Bench.Blocks, Bench.Workloads;

const
  FinalCount = 10000000;

procedure CheckElement(IsRight: Boolean); inline;
begin
  Check(IsRight, 'append: an element has changed');
end;

procedure AppendString(Count: Int64);
var
  Text: AnsiString;
  I: Integer;
begin
  Text := '';
  for I := 1 to Count do
    Text := Text + AnsiChar(I);
  CheckElement(Length(Text) = Count);
  for I := 1 to Count do
    CheckElement(Text[I] = AnsiChar(I));
end;

procedure AppendArray(Count: Int64);
var
  Numbers: array of Integer;
  I: Integer;
begin
  Numbers := nil;
  for I := 0 to Count - 1 do
  begin
    SetLength(Numbers, I + 1);
    Numbers[I] := I;
  end;
  for I := 0 to Count - 1 do
    CheckElement(Numbers[I] = I);
end;

procedure AppendList(Count: Int64);
var
  List: TList;
  I: Integer;
begin
  List := TList.Create;
  for I := 0 to Count - 1 do
    List.Add(Pointer(PtrInt(I)));
  for I := 0 to Count - 1 do
    CheckElement(PtrInt(List.List^[I]) = I);
  List.Free;
end;

initialization
  AddWorkloadInParts('append-string', 10000000, FinalCount, AppendString);
  AddWorkloadInParts('append-array', 10000000, FinalCount, AppendArray);
  AddWorkloadInParts('append-list', 10000000, FinalCount, AppendList);

end.
