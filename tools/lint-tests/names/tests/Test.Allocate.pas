// Names in the comments of tests are not checked: TGone.
unit Test.Allocate;

interface

procedure TestName;

implementation

end.
