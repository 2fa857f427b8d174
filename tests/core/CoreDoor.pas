/// A minimal door: the engine alone as the memory manager, without settings and reports.
unit CoreDoor;

{$mode delphi}

interface

implementation

uses
  LaneMM.Engine;

initialization
  if EngineStart then
    EngineInstall;
end.
