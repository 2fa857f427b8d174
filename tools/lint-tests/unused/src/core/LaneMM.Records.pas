/// Needed for a record type.
unit LaneMM.Records;

interface

type
  /// A record.
  TBlock = record
    Kind, Next: Byte;
  end;

implementation

end.
