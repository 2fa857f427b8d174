/// In core, only certain names stand for units of shared records; this is none of them.
unit LaneMM.CpuState;

interface

type
  /// A record.
  TCpuState = record
    Bare: Byte;
  end;

implementation

end.
