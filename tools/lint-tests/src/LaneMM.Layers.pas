/// Uses a unit of a higher layer, one of the same layer's rows that is missing, and the RTL.
unit LaneMM.Layers;

interface

uses LaneMM.Types, LaneMM.Good,
  Windows;

implementation

uses
  LaneMM.Missing,
  LaneMM.Words;

end.
