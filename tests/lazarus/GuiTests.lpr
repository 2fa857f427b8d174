/// The suites of tests/testing/PlantedSuite with Lazarus' runner with windows. It runs them when its
/// window is there, as its button does, prints the tree that it then shows, and ends.
program GuiTests;

{$mode objfpc}{$H+}

uses
  cthreads, LaneMM.FpcUnit, Interfaces, Forms, ComCtrls, GuiTestRunner, PlantedSuite;

type
  TClicks = class
    procedure RunAll(Data: PtrInt);
  end;

procedure TClicks.RunAll(Data: PtrInt);
var
  Node: TTreeNode;
begin
  TestRunner.TestTree.Items[0].Selected := True;
  TestRunner.RunAction.Execute;
  for Node in TestRunner.TestTree.Items do
    WriteLn(Node.Text);
  Application.Terminate;
end;

var
  Clicks: TClicks;

begin
  Clicks := TClicks.Create;
  Application.Initialize;
  Application.CreateForm(TGUITestRunner, TestRunner);
  Application.QueueAsyncCall(@Clicks.RunAll, 0);
  Application.Run;
  Clicks.Free;
end.
