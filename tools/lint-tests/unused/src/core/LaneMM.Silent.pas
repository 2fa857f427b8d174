/// Declares nothing: it is used for what it brings along.
unit LaneMM.Silent;

interface

implementation

end.
