/// Looks at programs that run on LaneMM: see `lanemm help` and docs/live.md.
program lanemm;

{$mode delphi}{$H+}

uses
  LaneMM.Modules in 'LaneMM.Modules.pas', // before any unit that uses the one in src/
  LaneMM.Demangle, ToolCommands, ToolPs, ToolState, ToolMap, ToolTop, ToolProm, ToolRecord, ToolDiff,
  ToolDhat, ToolSymbolize, ToolAsk, ToolRun, ToolTry, ToolReplay, ToolBlackBox,
  ToolWhy, ToolSelfTest;

const
  // Help lists them in this order.
  Commands: array[0..17] of PCommand = (@PsCommand, @TopCommand, @StateCommand,
    @MapCommand, @WhyCommand, @CoreCommand, @PromCommand, @RecordCommand, @DiffCommand,
    @DhatCommand, @SymbolizeCommand, @BlackBoxCommand,
    @DoCommand, @ReportCommand, @RunCommand, @TryCommand, @ReplayCommand,
    @SelfTestCommand);

begin
  ExitCode := Ord(RunCommands(Commands));
end.
