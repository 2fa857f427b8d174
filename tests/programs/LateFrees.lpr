/// A unit before LaneMM, whose blocks are freed after all other units, and LaneMM itself, are
/// finalized.
program LateFrees;

{$mode delphi}{$H+}

uses
  LateUnit, LaneMM;

begin
end.
