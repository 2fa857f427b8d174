/// Conditionals are allowed here; fields have tags.
unit LaneMM.Layout;

interface

type
  /// A record.
  TLayout = record
    Bare: Byte;      // one without
  end;

implementation

{$ifdef FPC}
{$endif}

end.
