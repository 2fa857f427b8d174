/// Record fields with and without a tag.
unit LaneMM.Types;

interface

const
  /// Two constants share this comment.
  First = 1;
  Second = 2;

  Third = 3;

type
  PGood = ^TGood;
  /// All fields have a tag.
  TGood = packed record
    case Byte of
      0: (
        One: Byte;                //< const   meaning
        Two, Three: Byte;         //< lock Heap or Arena  meaning
      );
      1: (Line: array[0..1] of Byte); //< padding
  end;

  /// No field has a tag.
  TBad = record
    One: Byte;
    Two: Byte;                    // owner   not the right kind of comment
    Three: Byte;                  //< Owner  not the right case
    Four: Byte;                   //< lock   of whom
  end;

  TUndocumented = Byte;

procedure Undocumented;

implementation

{$ifdef FPC}
type
  TPrivate = record
    Untagged: Byte;
  end;
{$endif}

procedure Undocumented;
begin
end;

end.
