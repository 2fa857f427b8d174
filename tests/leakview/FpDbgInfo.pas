/// Stands in for the debugger's unit of this name, see FpDbgLoader.
unit FpDbgInfo;

{$mode objfpc}

interface

uses
  LazClasses;

type
  TFpSymbol = class(TRefCountedObject)
    Line: Cardinal;
    FileName: string;
  end;

implementation

end.
