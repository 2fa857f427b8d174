/// What does it cost to let a string, an array or a list grow one element at a time?
//
// One operation appends one element, without any hint of the final size; a container ends
// at 10,000,000 elements and the next one starts. Its contents are checked in places.
// Source: docs/seeds.md, A2: the Reallocation demo of the book.
unit Workload.Append;

{$I Bench.inc}

interface

implementation

uses
  Classes, Bench.Blocks, Bench.Workloads;

const
  FinalCount = 10000000;
  CheckStep = 61;

type
  TAppend = class(TWorkload)
  protected
    procedure Grow(Count: Integer); virtual; abstract;
  public
    procedure Run(const Job: TJob); override;
  end;

  TAppendString = class(TAppend)
  protected
    procedure Grow(Count: Integer); override;
  end;

  TAppendArray = class(TAppend)
  protected
    procedure Grow(Count: Integer); override;
  end;

  TAppendList = class(TAppend)
  protected
    procedure Grow(Count: Integer); override;
  end;

procedure Check(IsRight: Boolean); inline;
begin
  if not IsRight then
    Fail('append: an element has changed');
end;

procedure TAppend.Run(const Job: TJob);
var
  Left: Int64;
begin
  Left := Job.Operations;
  while Left > FinalCount do
  begin
    Grow(FinalCount);
    Dec(Left, FinalCount);
  end;
  Grow(Left);
end;

procedure TAppendString.Grow(Count: Integer);
var
  Text: AnsiString;
  I: Integer;
begin
  Text := '';
  for I := 1 to Count do
    Text := Text + AnsiChar(I);
  Check(Length(Text) = Count);
  for I := 0 to (Count - 1) div CheckStep do
    Check(Text[I * CheckStep + 1] = AnsiChar(I * CheckStep + 1));
end;

procedure TAppendArray.Grow(Count: Integer);
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
  for I := 0 to (Count - 1) div CheckStep do
    Check(Numbers[I * CheckStep] = I * CheckStep);
end;

procedure TAppendList.Grow(Count: Integer);
var
  List: TList;
  I: Integer;
begin
  List := TList.Create;
  for I := 0 to Count - 1 do
    List.Add(Pointer(PtrInt(I)));
  for I := 0 to (Count - 1) div CheckStep do
    Check(PtrInt(List[I * CheckStep]) = I * CheckStep);
  List.Free;
end;

initialization
  TAppendString.Create('append-string', 20000000);
  TAppendArray.Create('append-array', 10000000);
  TAppendList.Create('append-list', 20000000);

end.
