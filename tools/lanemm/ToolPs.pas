/// `lanemm ps`: which processes run on LaneMM.
unit ToolPs;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Prints a line for each process on LaneMM.
procedure RunPs(Arguments: TArguments);

const
  PsCommand: TCommand = (
    Name: 'ps';
    Usage: '';
    Help: 'Lists the processes that run on LaneMM';
    Details: '';
    Options: '';
    Run: RunPs);

implementation

procedure RunPs(Arguments: TArguments);
begin
end;

end.
