/// Stands in for the debugger's unit of this name, which the leak view needs only to look up lines
/// that a report does not have: see ReadLeaks.
unit FpDbgLoader;

{$mode objfpc}

interface

type
  TDbgImageLoaderList = class
    ImageBase: PtrUInt;
    constructor Create(IsOwner: Boolean);
  end;

  TDbgImageLoader = class
    constructor Create(const FileName: string);
    procedure AddToLoaderList(List: TDbgImageLoaderList);
  end;

implementation

constructor TDbgImageLoaderList.Create(IsOwner: Boolean);
begin
  inherited Create;
end;

constructor TDbgImageLoader.Create(const FileName: string);
begin
  inherited Create;
end;

procedure TDbgImageLoader.AddToLoaderList(List: TDbgImageLoaderList);
begin
end;

end.
