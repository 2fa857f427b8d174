// Somebody may stand in tests.
unit Test.Allocate;

interface

implementation

end.
