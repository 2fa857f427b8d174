/// The suites of PlantedSuite with the console runner: `Planted --all --format=plain`.
program Planted;

{$mode objfpc}{$H+}

uses
  {$ifdef UNIX} cthreads, {$endif} LaneMM, LaneMM.FpcUnit, consoletestrunner, PlantedSuite;

var
  Application: TTestRunner;

begin
  Application := TTestRunner.Create(nil);
  Application.Initialize;
  Application.Run;
  Application.Free;
end.
