/// A unit that the table does not have.
unit LaneMM.Unlisted;

interface

implementation

end.
