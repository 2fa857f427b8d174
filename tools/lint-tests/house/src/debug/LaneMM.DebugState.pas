/// The state of a room above core: fields have tags.
unit LaneMM.DebugState;

interface

type
  /// A record.
  TDebugState = record
    Bare: Byte;
    Racy: Byte;      //< racy
    Why: Byte;       //< racy    a lost count does no harm
    Locked: Byte;    //< lock Debug  meaning
  end;

implementation

end.
