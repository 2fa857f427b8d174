/// Not needed: what other units write are a field and a parameter of the same name.
unit LaneMM.Fields;

interface

uses
  LaneMM.Records;

type
  /// A record.
  TField = record
    case Byte of
      0: (Next: TBlock);
      1: (Kind: (fkNone, fkSome));
  end;
  /// A routine.
  TFieldCall = procedure(Block: Pointer) of object;

implementation

end.
