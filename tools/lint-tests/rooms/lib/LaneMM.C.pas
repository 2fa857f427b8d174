/// The library may use what it likes: LaneMM and the RTL.
unit LaneMM.C;

interface

implementation

uses
  SysUtils, LaneMM;

end.
