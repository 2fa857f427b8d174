// Delphi's SysInit, as far as the parser needs it.
unit SysInit;

interface

implementation

end.
