/// Stands in for the debugger's unit of this name, see FpDbgLoader.
unit FpDbgDwarf;

{$mode objfpc}

interface

uses
  FpDbgLoader, FpDbgInfo;

type
  TFpDwarfInfo = class
    constructor Create(List: TDbgImageLoaderList; Model: TObject);
    procedure LoadCompilationUnits;
    function FindProcSymbol(Address: PtrUInt): TFpSymbol;
  end;

implementation

constructor TFpDwarfInfo.Create(List: TDbgImageLoaderList; Model: TObject);
begin
  inherited Create;
end;

procedure TFpDwarfInfo.LoadCompilationUnits;
begin
end;

function TFpDwarfInfo.FindProcSymbol(Address: PtrUInt): TFpSymbol;
begin
  Result := nil;
end;

end.
