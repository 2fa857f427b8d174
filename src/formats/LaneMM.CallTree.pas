/// The backtraces of one line of the program, as a tree of its callers.
//
// Owns:       the pages of each tree, until CallTreeClose.
// Invariants: backtraces begin at the line, in Order by weight. Of recursion the frames between two
//             calls at the same place are left out, so what follows a frame did call it. Frames
//             that all have, inside and outside of the branches, are one line each.
// Callers:    any thread; a tree belongs to one. Allocates nothing from the heap.
unit LaneMM.CallTree;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.StacksState, LaneMM.Text, LaneMM.Symbols, LaneMM.BacktraceText, LaneMM.Unwind;

const
  /// Backtraces that a tree has; the lightest ones are summed up.
  MostTreeStacks = 32;

type
  /// A backtrace, and what it stands for.
  TTreeStack = record
    Count: NativeUInt;     //< blocks or events
    Bytes: NativeUInt;     //< of the blocks; 0 of events
    First: Cardinal;       //< index of the frame with the program's line
    Stack: TBacktrace;     //< its frames
    Keys: array[0..MostFrames] of NativeUInt; //< the same of frames that read the same
  end;
  PTreeStack = ^TTreeStack;
  PCallTree = ^TCallTree;
  /// A tree.
  TCallTree = record
    Length: Cardinal;      //< of Order
    Shared: Cardinal;      //< outermost frames that all have
    Rest: TTreeStack;      //< the sums of backtraces that had no space
    Spare: PTreeStack;     //< the record of one of them; nil: there is space
    Order: array[0..MostTreeStacks] of PTreeStack; //< the heaviest first
    Stacks: array[0..MostTreeStacks] of TTreeStack; //< in any order
  end;

/// Makes an empty tree; nil without memory.
function CallTreeOpen: PCallTree;
/// Releases it; nil is allowed.
procedure CallTreeClose(Tree: PCallTree);
/// Adds a backtrace to the tree.
procedure CallTreeAdd(Tree: PCallTree; const Symbols: TSymbols; const Stack: TBacktrace;
  Count, Bytes: NativeUInt);
/// Adds its lines; the tree is empty then.
procedure CallTreeAddText(var Text: TText; Tree: PCallTree; const Symbolizer: TSymbolizer);

implementation

uses
  LaneMM.Os, LaneMM.Advice;

const
  // Branches that are shown at a fork, and forks inside each other.
  MostBranches = 4;
  MostForks = 4;

type
  // The branch of a tree: some backtraces of Order, and how far they were written.
  TBranch = record
    First, Limit: Cardinal;
    Depth: Cardinal;       // frames from First of each on
    Forks: Cardinal;       // that it lies in
  end;

function CallTreeOpen: PCallTree;
begin
  Result := OsTakePages(SizeOf(TCallTree));
end;

procedure CallTreeClose(Tree: PCallTree);
begin
  OsReleasePages(Tree, SizeOf(TCallTree));
end;

// Leaves out what no text has, and of recursion the frames between two of the same line.
procedure Fold(Item: PTreeStack; const Symbols: TSymbols);
var
  Index: NativeInt;
begin
  BacktraceFoldText(Symbols, Item^.Stack);
  Item^.First := AdvicePlaceIndex(Symbols, Item^.Stack);
  for Index := 0 to NativeInt(Item^.Stack.Count) - 1 do
    Item^.Keys[Index] := BacktraceFrameKey(Symbols, Item^.Stack.Frames[Index]);
  BacktraceFoldRecursion(Item^.Stack, Item^.First, @Item^.Keys);
end;

// Takes the backtrace that reads the same out of Order and returns it; nil if there is none.
function TakeSame(Tree: PCallTree; Item: PTreeStack): PTreeStack;
var
  Index, Frame: NativeInt;
begin
  for Index := 0 to NativeInt(Tree^.Length) - 1 do
  begin
    Result := Tree^.Order[Index];
    if (Result^.Stack.Count <> Item^.Stack.Count) or (Result^.First <> Item^.First) then
      Continue;
    Frame := NativeInt(Item^.Stack.Count) - 1;
    while (Frame >= 0) and (Result^.Keys[Frame] = Item^.Keys[Frame]) do
      Dec(Frame);
    if Frame >= 0 then
      Continue;
    Dec(Tree^.Length);
    for Frame := Index to NativeInt(Tree^.Length) - 1 do
      Tree^.Order[Frame] := Tree^.Order[Frame + 1];
    Exit;
  end;
  Result := nil;
end;

// Puts the backtrace into its place in Order, Length of which are others.
procedure Place(Tree: PCallTree; Item: PTreeStack);
var
  Index: Cardinal;
  Before: PTreeStack;
begin
  Index := Tree^.Length;
  while Index > 0 do
  begin
    Before := Tree^.Order[Index - 1];
    if (Item^.Bytes < Before^.Bytes)
      or (Item^.Bytes = Before^.Bytes) and (Item^.Count <= Before^.Count) then
      Break;
    Tree^.Order[Index] := Before;
    Dec(Index);
  end;
  Tree^.Order[Index] := Item;
  Inc(Tree^.Length);
end;

procedure AddTo(Item: PTreeStack; Count, Bytes: NativeUInt);
begin
  Inc(Item^.Count, Count);
  Inc(Item^.Bytes, Bytes);
end;

procedure CallTreeAdd(Tree: PCallTree; const Symbols: TSymbols; const Stack: TBacktrace;
  Count, Bytes: NativeUInt);
var
  Item, Known: PTreeStack;
begin
  Item := Tree^.Spare;
  if Item = nil then
    Item := @Tree^.Stacks[Tree^.Length];
  Item^.Count := Count;
  Item^.Bytes := Bytes;
  Item^.Stack := Stack;
  Fold(Item, Symbols);
  Known := TakeSame(Tree, Item);
  if Known <> nil then
  begin
    AddTo(Known, Count, Bytes);
    Item := Known;
  end;
  Place(Tree, Item);
  if Tree^.Length <= MostTreeStacks then
    Exit;
  // The lightest one makes room.
  Dec(Tree^.Length);
  Tree^.Spare := Tree^.Order[Tree^.Length];
  AddTo(@Tree^.Rest, Tree^.Spare^.Count, Tree^.Spare^.Bytes);
end;

// Returns the key of a frame of the branches; 0 where they have ended.
function KeyAt(Tree: PCallTree; Index, Depth: Cardinal): NativeUInt;
var
  Item: PTreeStack;
begin
  Item := Tree^.Order[Index];
  Result := 0;
  if Item^.First + Depth + Tree^.Shared < Item^.Stack.Count then
    Result := Item^.Keys[Item^.First + Depth];
end;

// Returns whether all of a branch go on in the same way.
function IsSame(Tree: PCallTree; const Branch: TBranch): Boolean;
var
  Index: Cardinal;
  Key: NativeUInt;
begin
  Key := KeyAt(Tree, Branch.First, Branch.Depth);
  Result := Key <> 0;
  Index := Branch.First + 1;
  while Result and (Index < Branch.Limit) do
  begin
    Result := KeyAt(Tree, Index, Branch.Depth) = Key;
    Inc(Index);
  end;
end;

// Sets the number of outermost frames that all have. The line is none of them.
procedure FindShared(Tree: PCallTree);
var
  Index: Cardinal;
  First, Item: PTreeStack;
begin
  First := Tree^.Order[0];
  Tree^.Shared := 0;
  repeat
    for Index := 0 to Tree^.Length - 1 do
    begin
      Item := Tree^.Order[Index];
      if (Item^.First + 1 + Tree^.Shared >= Item^.Stack.Count)
        or (Item^.Keys[Item^.Stack.Count - 1 - Tree^.Shared]
        <> First^.Keys[First^.Stack.Count - 1 - Tree^.Shared]) then
        Exit;
    end;
    Inc(Tree^.Shared);
  until False;
end;

// Returns whether all have the same frames inside of the line.
function IsSameInside(Tree: PCallTree): Boolean;
var
  Index, Frame: Cardinal;
  First, Item: PTreeStack;
begin
  Result := True;
  First := Tree^.Order[0];
  for Index := 1 to Tree^.Length - 1 do
  begin
    Item := Tree^.Order[Index];
    Result := Result and (Item^.First = First^.First);
    Frame := 0;
    while Result and (Frame < First^.First) do
    begin
      Result := Item^.Keys[Frame] = First^.Keys[Frame];
      Inc(Frame);
    end;
  end;
end;

// Adds `24, 768 bytes` and what they are.
procedure AddSums(var Text: TText; Forks: Cardinal; Count, Bytes: NativeUInt;
  const What: ShortString);
begin
  BacktraceAddIndent(Text, Forks);
  TextAddGrouped(Text, Count);
  if Bytes > 0 then
  begin
    TextAdd(Text, ', ');
    TextAddCount(Text, Bytes, 'byte');
  end;
  TextAdd(Text, What);
end;

// Moves those of a branch that go on as its first one to its start; returns their branch.
function TakeAlike(Tree: PCallTree; const Branch: TBranch): TBranch;
var
  Index, Other: Cardinal;
  Item: PTreeStack;
begin
  Result := Branch;
  Inc(Result.Forks);
  Result.Limit := Branch.First + 1;
  for Index := Branch.First + 1 to Branch.Limit - 1 do
    if KeyAt(Tree, Index, Branch.Depth) = KeyAt(Tree, Branch.First, Branch.Depth) then
    begin
      Item := Tree^.Order[Index];
      for Other := Index downto Result.Limit + 1 do
        Tree^.Order[Other] := Tree^.Order[Other - 1];
      Tree^.Order[Result.Limit] := Item;
      Inc(Result.Limit);
    end;
end;

procedure AddBranchSums(var Text: TText; Tree: PCallTree; const Branch: TBranch;
  const What: ShortString);
var
  Index: Cardinal;
  Count, Bytes: NativeUInt;
begin
  Count := 0;
  Bytes := 0;
  for Index := Branch.First to Branch.Limit - 1 do
  begin
    Inc(Count, Tree^.Order[Index]^.Count);
    Inc(Bytes, Tree^.Order[Index]^.Bytes);
  end;
  AddSums(Text, Branch.Forks, Count, Bytes, What);
end;

// Adds the frames of a branch, then those of each branch in it.
procedure AddBranch(var Text: TText; Tree: PCallTree; const Symbolizer: TSymbolizer;
  Branch: TBranch);
var
  Inner: TBranch;
  Item: PTreeStack;
  Shown: Cardinal;
begin
  while IsSame(Tree, Branch) do
  begin
    Item := Tree^.Order[Branch.First];
    BacktraceAddFrame(Text, Symbolizer, Item^.Stack.Frames[Item^.First + Branch.Depth],
      Branch.Forks);
    Inc(Branch.Depth);
  end;
  Shown := 0;
  while Cardinal(Branch.Limit - Branch.First) > Ord(Shown = 0) do
  begin
    if (Shown = MostBranches) or (Branch.Forks = MostForks) then
    begin
      Inc(Branch.Forks);
      AddBranchSums(Text, Tree, Branch, ' by other callers'#10);
      Exit;
    end;
    Inner := TakeAlike(Tree, Branch);
    if KeyAt(Tree, Inner.First, Inner.Depth) <> 0 then
    begin
      AddBranchSums(Text, Tree, Inner, ' by'#10);
      AddBranch(Text, Tree, Symbolizer, Inner);
    end
    else if (Shown > 0) or (Inner.Limit < Branch.Limit) then // not where all end here
      AddBranchSums(Text, Tree, Inner, ' directly'#10);
    Branch.First := Inner.Limit;
    Inc(Shown);
  end;
end;

procedure AddTree(var Text: TText; Tree: PCallTree; const Symbolizer: TSymbolizer);
var
  Branch: TBranch;
  Item: PTreeStack;
  Index: NativeInt;
begin
  FindShared(Tree);
  Item := Tree^.Order[0];
  if IsSameInside(Tree) then
    for Index := 0 to NativeInt(Item^.First) - 1 do
      BacktraceAddFrame(Text, Symbolizer, Item^.Stack.Frames[Index], 0);
  Branch := Default(TBranch);
  Branch.Limit := Tree^.Length;
  AddBranch(Text, Tree, Symbolizer, Branch);
  Item := Tree^.Order[0]; // AddBranch has changed the order
  for Index := NativeInt(Item^.Stack.Count - Tree^.Shared) to NativeInt(Item^.Stack.Count) - 1 do
    BacktraceAddFrame(Text, Symbolizer, Item^.Stack.Frames[Index], 0);
  if Tree^.Rest.Count > 0 then
    AddSums(Text, 0, Tree^.Rest.Count, Tree^.Rest.Bytes, ' by other callers'#10);
end;

procedure CallTreeAddText(var Text: TText; Tree: PCallTree; const Symbolizer: TSymbolizer);
begin
  if Tree^.Length = 1 then
    BacktraceAddText(Text, Symbolizer, Tree^.Order[0]^.Stack)
  else if Tree^.Length > 1 then
    AddTree(Text, Tree, Symbolizer);
  Tree^.Length := 0;
  Tree^.Spare := nil;
  Tree^.Rest.Count := 0;
  Tree^.Rest.Bytes := 0;
end;

end.
