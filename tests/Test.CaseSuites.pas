/// The suites that are cases alone.
unit Test.CaseSuites;

{$mode delphi}{$H+}

interface

implementation

uses
  Test.Cases;

initialization
  RegisterCases(TProgramTest, 'words/Reports');
  RegisterCases(TProgramTest, 'formats/LimitReports');
  RegisterCases(TProgramTest, 'formats/ForkedLeaks');
  RegisterCases(TProgramTest, 'control/Unloading');
  RegisterCases(TProgramTest, 'stacks/DebugFiles');
end.
