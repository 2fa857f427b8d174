/// Looks at programs that run on LaneMM: see `lanemm help` and docs/live.md.
program lanemm;

{$mode delphi}{$H+}

uses
  ToolCommands, ToolPs;

const
  // Help lists them in this order.
  Commands: array[0..0] of PCommand = (@PsCommand);

begin
  ExitCode := Ord(RunCommands(Commands));
end.
