/// A real server under load: mORMot 2's own tests of its services, clients and threads.
//
// The services of TTestServiceOrientedArchitecture are called directly, over HTTP and over
// WebSockets of this process, by its threads. The memory manager is chosen when the program is
// built: see bench/real/run.sh. The exit code is 1 when one of the tests fails.
program Soa;

{$mode objfpc}{$H+}

uses
  cthreads, cwstring, SysUtils, mormot.core.base, mormot.core.log, mormot.core.test, test.soa.core;

type
  /// The one case of the suite.
  TServerTests = class(TSynTests)
  published
    /// Adds the services' tests.
    procedure Services;
  end;

procedure TServerTests.Services;
begin
  AddCase([TTestServiceOrientedArchitecture]);
end;

var
  Tests: TServerTests;
begin
  Tests := TServerTests.Create('services');
  try
    if not Tests.Run then
      ExitCode := 1;
  finally
    Tests.Free;
  end;
end.
