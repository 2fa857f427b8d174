/// How fast are the strings and string lists of a Pascal program?
//
// strings-ansi, strings-unicode: 5,000 strings of 1 to 100 characters; one operation takes
// one at random, checks it, gives it another value and appends to it.
// strings-list: one operation is one line of 1,000: added to a list, inserted into another
// one, joined into one text, split again, checked, freed.
// Source: docs/seeds.md, D6 (objects under 100 bytes and strings, from many threads).
unit Workload.Strings;

{$I Bench.inc}

interface

implementation

uses
  SysUtils, Classes, Bench.Blocks, Bench.Workloads;

const
  SlotCount = 5000;
  SourceLength = 1024;
  LongestPart = 50;
  LineCount = 1000;

type
  /// Head + Tail characters of a source text, from Start.
  TPiece = record
    Start, Head, Tail: Integer;  //< owner   where it begins; characters set and appended
  end;

  /// Text is AnsiString or UnicodeString.
  TTexts<Text> = class(TWorkload)
  private
    type
      TSlot = record
        Value: Text;       //< owner   a piece of the source
        Piece: TPiece;     //< owner   which one
      end;
    class procedure CheckSlot(const Slot: TSlot); static;
  public
    procedure Run(const Job: TJob); override;
  end;

function RandomPiece(var State: UInt64): TPiece;
var
  Key: UInt64;
begin
  Key := RandomNext(State);
  Result.Start := 1 + (Key shr 40) mod (SourceLength - 2 * LongestPart);
  Result.Head := 1 + (Key shr 20) and $FFFFF mod LongestPart;
  Result.Tail := 1 + Key and $FFFFF mod LongestPart;
end;

function SourceCharacter(Index: Integer): AnsiChar; inline;
begin
  Result := AnsiChar(32 + Index mod 89);
end;

procedure CheckText(IsRight: Boolean); inline;
begin
  Check(IsRight, 'strings: a string has changed');
end;

class procedure TTexts<Text>.CheckSlot(const Slot: TSlot);
var
  Count: Integer;
begin
  Count := Slot.Piece.Head + Slot.Piece.Tail;
  CheckText((Length(Slot.Value) = Count) and
    (Ord(Slot.Value[1]) = Ord(SourceCharacter(Slot.Piece.Start))) and
    (Ord(Slot.Value[Count]) = Ord(SourceCharacter(Slot.Piece.Start + Count - 1))));
end;

procedure TTexts<Text>.Run(const Job: TJob);
var
  Slots: array of TSlot;
  Slot: ^TSlot;
  Source: Text;
  State: UInt64;
  I: Int64;
begin
  Source := '';
  for I := 1 to SourceLength do
    Source := Source + Text(SourceCharacter(I));
  SetLength(Slots, SlotCount);
  State := RandomSeed(Job.Thread);
  for I := 1 to Job.Operations do
  begin
    Slot := @Slots[RandomIndex(RandomNext(State), SlotCount)];
    if Slot^.Value <> '' then
      CheckSlot(Slot^);
    Slot^.Piece := RandomPiece(State);
    Slot^.Value := Copy(Source, Slot^.Piece.Start, Slot^.Piece.Head);
    Slot^.Value := Slot^.Value + Copy(Source, Slot^.Piece.Start + Slot^.Piece.Head,
      Slot^.Piece.Tail);
  end;
end;

/// Gives line number Index.
function LineText(Index: Integer): string;
begin
  Result := 'key' + IntToStr(Index) + '=' + StringOfChar('v', Index mod 40);
end;

/// Builds, joins, splits and frees a list of Count lines.
procedure ListRun(Count: Int64);
var
  Forwards, Backwards: TStringList;
  I: Integer;
begin
  Forwards := TStringList.Create;
  Backwards := TStringList.Create;
  for I := 0 to Count - 1 do
  begin
    Forwards.Add(LineText(I));
    Backwards.Insert(0, Forwards[I]);
  end;
  Backwards.Text := Forwards.Text;
  CheckText(Backwards.Count = Count);
  for I := 0 to Count - 1 do
    CheckText(Backwards[I] = LineText(I));
  Backwards.Free;
  Forwards.Free;
end;

initialization
  TTexts<AnsiString>.Create('strings-ansi', 3000000);
  TTexts<UnicodeString>.Create('strings-unicode', 3000000);
  AddWorkloadInParts('strings-list', 700000, LineCount, ListRun);

end.
