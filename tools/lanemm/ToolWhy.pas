/// `lanemm why`: what keeps blocks of a process alive.
unit ToolWhy;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Shows the ways to the blocks of a class, or to one block.
procedure RunWhy(Arguments: TArguments);

const
  WhyCommand: TCommand = (
    Name: 'why';
    Usage: 'PID|FILE [CLASS|ADDRESS|--html|--json]';
    Help: 'Shows why blocks are still there: what leads to them, from which variable';
    Details: 'CLASS is a name as `lanemm state --contents` prints it, with or without its unit. FILE'#10
      + 'is a core file. Each block counts for one of the shortest ways to it, from a variable if'#10
      + 'there is one; for an ADDRESS, as $7f1200 or 0x7f1200, each link is shown with its address.'#10
      + 'Without either: what holds the memory, as a tree; each row has all that it alone leads to.'#10
      + 'Rows of less than 1 % of the bytes in use are left out.'#10
      + '--html       the whole tree of what holds the memory, as a page like that of leak reports,'#10
      + '             with the lines that allocated it if the process records them: `do PID stacks`'#10
      + '--json       the same as JSON, for `lanemm diff` and the window of LaneMM in Lazarus'#10
      + '--most=N     at most N ways, 20 by default; 0: all'#10
      + '--copy=N     the Nth copy of LaneMM of a process with several'#10;
    Options: 'html json most: copy:';
    MostWords: 2;
    Run: RunWhy);

implementation

uses
  SysUtils, Targets, ProcessPauses, HeapWhys, HeapHeld, HeapLeaks, HeapJson, ToolLeaks, ToolOpen,
  ToolText;

procedure WriteBlock(Whys: TWhys; Address: UInt64);
var
  Index: Integer;
  Link, Arrow: string;
begin
  Index := Whys.BlockAt(Address);
  if Index < 0 then
    raise ETool.Create(ecFailed, 'no block in use lies at $%x', [Address]);
  Arrow := '';
  for Link in Whys.WayTo(Index) do
  begin
    WriteLn(Arrow, Link);
    Arrow := '-> ';
  end;
end;

// Writes the chains below one that hold a hundredth of all, most bytes first.
procedure WriteHoldings(const Tree: TLeaks; Parent, Depth: Integer);
const
  LeastShare = 100;
  Arrows: array[Boolean] of string = ('', '-> ');
var
  Index: Integer;
  Chain: TLeakChain;
begin
  for Index in ChainsBelow(Tree, Parent, Tree.Bytes div LeastShare + 1) do
  begin
    Chain := Tree.Chains[Index];
    WriteLn(Right(Grouped(Chain.AllBlocks), 12), Right(BytesText(Chain.Retained), 12), '  ',
      StringOfChar(' ', 2 * Depth), Arrows[Depth > 0], Tree.Groups[Chain.Group].Name);
    WriteHoldings(Tree, Index + 1, Depth + 1);
  end;
end;

procedure WriteTree(Opened: TOpened; Arguments: TArguments; Tree: TLeaks);
begin
  if Arguments.Has('json') or Arguments.Has('html') then
    AddHeldPlaces(Opened.Image, Tree);
  if Arguments.Has('json') then
    WriteLeaksJson(Opened, Tree, HeldTopic)
  else if Arguments.Has('html') then
    WriteLeaksPage(Opened, Tree, HeldTopic)
  else
  begin
    WriteLn('      blocks        used  held by');
    WriteHoldings(Tree, 0, 0);
  end;
end;

procedure WriteWays(const Ways: TWays; Most: Integer);
var
  Index: Integer;
begin
  WriteLn('      blocks        used  shortest way');
  for Index := 0 to High(Ways) do
    if (Most = 0) or (Index < Most) then
      WriteLn(Right(Grouped(Ways[Index].Blocks), 12), Right(BytesText(Ways[Index].Bytes), 12), '  ',
        Ways[Index].Text);
  if (Most > 0) and (Length(Ways) > Most) then
    WriteLn(Format('%d more; --most=0 shows all', [Length(Ways) - Most]));
end;

// Writes what leads to the blocks of a class, or to the block at an address.
procedure WriteWhy(Whys: TWhys; const What: string; Most: Integer);
var
  Ways: TWays;
  Address: UInt64;
begin
  if TryStrToQWord(StringReplace(What, '0x', '$', []), Address) then
  begin
    WriteBlock(Whys, Address);
    Exit;
  end;
  Ways := Whys.WaysTo(What);
  if Ways = nil then
    raise ETool.Create(ecFailed, 'no block in use holds a `%s`; `lanemm state --contents` lists what there'
      + ' is', [What]);
  WriteWays(Ways, Most);
end;

procedure RunWhy(Arguments: TArguments);
var
  Opened: TOpened;
  Pause: TPause;
  Registers: TArray<TRegisters>;
  Whys: TWhys;
begin
  if (Arguments.Words.Count > 1) and (Arguments.Has('json') or Arguments.Has('html')) then
    raise ETool.Create(ecUsage, '--json and --html are for all memory: without `%s`', [Arguments.Words[1]]);
  Whys := nil;
  Pause := nil;
  Opened := OpenHeap(Arguments);
  try
    Pause := PauseFor(Opened, Arguments, Registers);
    Whys := TWhys.Create(Opened.Image, Registers);
    FreeAndNil(Pause);
    Opened.Target.CheckThere;
    if Arguments.Words.Count > 1 then
      WriteWhy(Whys, Arguments.Words[1], Arguments.Number('most', 20, 0))
    else
      WriteTree(Opened, Arguments, Whys.Holdings);
  finally
    Pause.Free;
    Whys.Free;
    Opened.Free;
  end;
end;

end.
