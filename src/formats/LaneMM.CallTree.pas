/// The backtraces of one line of the program, as a tree of its callers.
//
// Owns:       the pages of each tree, until CallTreeClose.
// Invariants: backtraces begin at the line, in Order by weight. Of recursion the frames between two
//             calls at the same place are left out, so what follows a frame did call it. Frames
//             that all have, inside and outside of the branches, are one line each. A backtrace
//             without space counts where it leaves the others, as one of other callers.
// Callers:    any thread; a tree belongs to one. Allocates nothing from the heap.
unit LaneMM.CallTree;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.StacksState, LaneMM.Text, LaneMM.Symbols, LaneMM.BacktraceText, LaneMM.Unwind;

const
  /// Backtraces that a tree has; the lightest ones are summed up.
  MostTreeStacks = 32;
  /// Frames of them where sums of others are kept.
  MostTreeCuts = 32;

type
  /// What backtraces stand for.
  TTreeSums = record
    Count: UInt64;         //< blocks or events
    Bytes: UInt64;         //< of the blocks; 0 of events
  end;
  /// A backtrace, and what it stands for.
  TTreeStack = record
    Sums: TTreeSums;       //< what it stands for
    First: Cardinal;       //< index of the frame with the program's line
    IsCut: Boolean;        //< the sum of some without space that go on here: of other callers
    Stack: TBacktrace;     //< its frames
    Keys: array[0..MostFrames] of NativeUInt; //< the same of frames that read the same
  end;
  PTreeStack = ^TTreeStack;
  PCallTree = ^TCallTree;
  /// A tree.
  TCallTree = record
    Length: Cardinal;      //< of Order
    CutCount: Cardinal;    //< of Cuts
    Shared: Cardinal;      //< outermost frames that the first one shares with all compared with it
    IsMixed: Boolean;      //< one of these has other frames inside the line
    Rest: TTreeStack;      //< the sums of backtraces without space, and without a cut
    Spare: PTreeStack;     //< the record of one without space; nil: there is space
    Order: array[0..MostTreeStacks + MostTreeCuts] of PTreeStack; //< the heaviest first
    Stacks: array[0..MostTreeStacks] of TTreeStack; //< in any order
    Cuts: array[0..MostTreeCuts - 1] of TTreeStack; //< they end where others go on
  end;

/// Makes an empty tree; nil without memory.
function CallTreeOpen: PCallTree;
/// Releases it; nil is allowed.
procedure CallTreeClose(Tree: PCallTree);
/// Adds a backtrace to the tree.
procedure CallTreeAdd(Tree: PCallTree; const Symbols: TSymbols; const Stack: TBacktrace;
  Count, Bytes: UInt64);
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
  if Result <> nil then
    Result^.Shared := High(Cardinal);
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

// Returns whether First weighs more: has more bytes, or as many and a higher count.
function IsMore(const First, Second: TTreeSums): Boolean;
begin
  Result := (First.Bytes > Second.Bytes)
    or (First.Bytes = Second.Bytes) and (First.Count > Second.Count);
end;

// Puts the backtrace into its place in Order, Length of which are others.
procedure Place(Tree: PCallTree; Item: PTreeStack);
var
  Index: Cardinal;
begin
  Index := Tree^.Length;
  while (Index > 0) and IsMore(Item^.Sums, Tree^.Order[Index - 1]^.Sums) do
  begin
    Tree^.Order[Index] := Tree^.Order[Index - 1];
    Dec(Index);
  end;
  Tree^.Order[Index] := Item;
  Inc(Tree^.Length);
end;

procedure AddTo(var Sums: TTreeSums; const Item: TTreeStack);
begin
  Inc(Sums.Count, Item.Sums.Count);
  Inc(Sums.Bytes, Item.Sums.Bytes);
end;

// Returns how many frames from the line on two backtraces share.
function SharedFrames(First, Second: PTreeStack): Cardinal;
begin
  Result := 0;
  while (First^.First + Result < First^.Stack.Count)
    and (Second^.First + Result < Second^.Stack.Count)
    and (First^.Keys[First^.First + Result] = Second^.Keys[Second^.First + Result]) do
    Inc(Result);
end;

// Returns how many of the outermost frames two backtraces share. The line is none of them.
function SharedAtEnd(First, Second: PTreeStack): Cardinal;
begin
  Result := 0;
  while (First^.First + 1 + Result < First^.Stack.Count)
    and (Second^.First + 1 + Result < Second^.Stack.Count)
    and (First^.Keys[First^.Stack.Count - 1 - Result]
    = Second^.Keys[Second^.Stack.Count - 1 - Result]) do
    Inc(Result);
end;

// Returns whether two backtraces have the same frames inside of the line.
function IsSameInside(First, Second: PTreeStack): Boolean;
var
  Frame: NativeInt;
begin
  Frame := NativeInt(First^.First) - 1;
  Result := First^.First = Second^.First;
  while Result and (Frame >= 0) do
  begin
    Result := First^.Keys[Frame] = Second^.Keys[Frame];
    Dec(Frame);
  end;
end;

// Returns the sums that a backtrace without space counts for: those at the last frame that it
// shares with others. One that ends there, as where others differ inside of the line alone, has no
// other callers.
function CutFor(Tree: PCallTree; Item: PTreeStack): PTreeStack;
var
  Index: NativeInt;
  Length, Most, Shared: Cardinal;
begin
  Result := @Tree^.Rest;
  Length := 0;
  for Index := 0 to NativeInt(Tree^.CutCount) - 1 do
  begin
    Shared := SharedFrames(@Tree^.Cuts[Index], Item);
    if (Shared <= Length)
      or (Tree^.Cuts[Index].First + Shared < Tree^.Cuts[Index].Stack.Count)
      or (Tree^.Cuts[Index].IsCut <> (Item^.First + Shared < Item^.Stack.Count)) then
      Continue;
    Length := Shared;
    Result := @Tree^.Cuts[Index];
  end;
  Most := 0;
  for Index := 0 to NativeInt(Tree^.Length) - 1 do
  begin
    Shared := SharedFrames(Tree^.Order[Index], Item);
    if Shared > Most then
      Most := Shared;
  end;
  if (Most <= Length) or (Tree^.CutCount = MostTreeCuts) then
    Exit;
  Result := @Tree^.Cuts[Tree^.CutCount];
  Inc(Tree^.CutCount);
  Result^ := Item^;
  Result^.IsCut := Item^.First + Most < Item^.Stack.Count;
  Result^.Stack.Count := Item^.First + Most;
  Result^.Sums := Default(TTreeSums);
end;

// Sets Shared and IsMixed by a backtrace and the first one.
procedure Compare(Tree: PCallTree; Item: PTreeStack);
var
  Shared: Cardinal;
begin
  Shared := SharedAtEnd(Tree^.Order[0], Item);
  if Shared < Tree^.Shared then
    Tree^.Shared := Shared;
  Tree^.IsMixed := Tree^.IsMixed or not IsSameInside(Tree^.Order[0], Item);
end;

// Leaves out the lightest backtrace, but for its sums.
procedure LeaveOut(Tree: PCallTree);
var
  Item: PTreeStack;
begin
  Dec(Tree^.Length);
  Item := Tree^.Order[Tree^.Length];
  Compare(Tree, Item);
  AddTo(CutFor(Tree, Item)^.Sums, Item^);
  Tree^.Spare := Item;
end;

procedure CallTreeAdd(Tree: PCallTree; const Symbols: TSymbols; const Stack: TBacktrace;
  Count, Bytes: UInt64);
var
  Item, Known: PTreeStack;
begin
  Item := Tree^.Spare;
  if Item = nil then
    Item := @Tree^.Stacks[Tree^.Length];
  Item^.Sums.Count := Count;
  Item^.Sums.Bytes := Bytes;
  Item^.Stack := Stack;
  Fold(Item, Symbols);
  Known := TakeSame(Tree, Item);
  if Known <> nil then
  begin
    AddTo(Known^.Sums, Item^);
    Item := Known;
  end;
  Place(Tree, Item);
  if Tree^.Length > MostTreeStacks then
    LeaveOut(Tree);
end;

// Returns the key of a frame of the branches; 0 where they have ended.
function KeyAt(Tree: PCallTree; Index, Depth: Cardinal): NativeUInt;
var
  Item: PTreeStack;
  Shared: Cardinal;
begin
  Item := Tree^.Order[Index];
  Shared := Tree^.Shared;
  if Item^.IsCut then
    Shared := 0;
  Result := 0;
  if Item^.First + Depth + Shared < Item^.Stack.Count then
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

// Adds `24, 768 bytes` and what they are.
procedure AddSums(var Text: TText; Forks: Cardinal; const Sums: TTreeSums;
  const What: ShortString);
begin
  BacktraceAddIndent(Text, Forks);
  TextAddGrouped(Text, Sums.Count);
  if Sums.Bytes > 0 then
    TextAddForm(Text, ', %g byte%+', Sums.Bytes);
  TextAdd(Text, What);
end;

// Moves the backtrace at Index in Order to Place, before it.
procedure MoveTo(Tree: PCallTree; Index, Place: Cardinal);
var
  Item: PTreeStack;
begin
  Item := Tree^.Order[Index];
  while Index > Place do
  begin
    Tree^.Order[Index] := Tree^.Order[Index - 1];
    Dec(Index);
  end;
  Tree^.Order[Place] := Item;
end;

// Returns the sums of those of a branch that go on as the one at Index.
function SumsAlike(Tree: PCallTree; const Branch: TBranch; Index: Cardinal): TTreeSums;
var
  Other: Cardinal;
begin
  Result := Default(TTreeSums);
  for Other := Branch.First to Branch.Limit - 1 do
    if KeyAt(Tree, Other, Branch.Depth) = KeyAt(Tree, Index, Branch.Depth) then
      AddTo(Result, Tree^.Order[Other]^);
end;

// Moves those of a branch that go on in the same way, and that weigh most, to its start; returns
// their branch, and its sums.
function TakeHeaviest(Tree: PCallTree; const Branch: TBranch; out Most: TTreeSums): TBranch;
var
  Index: Cardinal;
  Sums: TTreeSums;
begin
  Most := Default(TTreeSums);
  for Index := Branch.First to Branch.Limit - 1 do
  begin
    Sums := SumsAlike(Tree, Branch, Index);
    if not IsMore(Sums, Most) then
      Continue;
    Most := Sums;
    MoveTo(Tree, Index, Branch.First);
  end;
  Result := Branch;
  Inc(Result.Forks);
  Result.Limit := Branch.First + 1;
  for Index := Branch.First + 1 to Branch.Limit - 1 do
    if KeyAt(Tree, Index, Branch.Depth) = KeyAt(Tree, Branch.First, Branch.Depth) then
    begin
      MoveTo(Tree, Index, Result.Limit);
      Inc(Result.Limit);
    end;
end;

// Takes those of other callers that leave the branch here out of it; adds them to Sums.
procedure TakeOthers(Tree: PCallTree; var Branch: TBranch; var Sums: TTreeSums);
var
  Index: Cardinal;
begin
  for Index := Branch.First to Branch.Limit - 1 do
  begin
    if not Tree^.Order[Index]^.IsCut or (KeyAt(Tree, Index, Branch.Depth) <> 0) then
      Continue;
    AddTo(Sums, Tree^.Order[Index]^);
    MoveTo(Tree, Index, Branch.First);
    Inc(Branch.First);
  end;
end;

// Adds the frames of a branch, then those of each branch in it.
procedure AddBranch(var Text: TText; Tree: PCallTree; const Symbolizer: TSymbolizer;
  Branch: TBranch);
var
  Inner: TBranch;
  Item: PTreeStack;
  Others, Sums: TTreeSums;
  Shown: Cardinal;
  Index: NativeInt;
begin
  while IsSame(Tree, Branch) do
  begin
    Item := Tree^.Order[Branch.First];
    BacktraceAddFrame(Text, Symbolizer, Item^.Stack.Frames[Item^.First + Branch.Depth],
      Branch.Forks);
    Inc(Branch.Depth);
  end;
  Others := Default(TTreeSums);
  TakeOthers(Tree, Branch, Others);
  Shown := 0;
  while (Branch.First < Branch.Limit) and (Shown < MostBranches) and (Branch.Forks < MostForks) do
  begin
    Inner := TakeHeaviest(Tree, Branch, Sums);
    if KeyAt(Tree, Inner.First, Inner.Depth) <> 0 then
    begin
      AddSums(Text, Inner.Forks, Sums, ' by'#10);
      AddBranch(Text, Tree, Symbolizer, Inner);
    end
    else if (Shown > 0) or (Inner.Limit < Branch.Limit) or (Others.Count > 0) then
      AddSums(Text, Inner.Forks, Sums, ' directly'#10); // not where all end here
    Branch.First := Inner.Limit;
    Inc(Shown);
  end;
  for Index := Branch.First to NativeInt(Branch.Limit) - 1 do
    AddTo(Others, Tree^.Order[Index]^);
  if Others.Count > 0 then
    AddSums(Text, Branch.Forks + 1, Others, ' by other callers'#10);
end;

procedure AddTree(var Text: TText; Tree: PCallTree; const Symbolizer: TSymbolizer);
var
  Branch: TBranch;
  Item: PTreeStack;
  Index: NativeInt;
begin
  for Index := 1 to NativeInt(Tree^.Length) - 1 do
    Compare(Tree, Tree^.Order[Index]);
  Item := Tree^.Order[0];
  if not Tree^.IsMixed then
    for Index := 0 to NativeInt(Item^.First) - 1 do
      BacktraceAddFrame(Text, Symbolizer, Item^.Stack.Frames[Index], 0);
  for Index := 0 to NativeInt(Tree^.CutCount) - 1 do
  begin
    Tree^.Order[Tree^.Length] := @Tree^.Cuts[Index];
    Inc(Tree^.Length);
  end;
  Branch := Default(TBranch);
  Branch.Limit := Tree^.Length;
  AddBranch(Text, Tree, Symbolizer, Branch);
  for Index := NativeInt(Item^.Stack.Count - Tree^.Shared) to NativeInt(Item^.Stack.Count) - 1 do
    BacktraceAddFrame(Text, Symbolizer, Item^.Stack.Frames[Index], 0);
  if Tree^.Rest.Sums.Count > 0 then
    AddSums(Text, 0, Tree^.Rest.Sums, ' by other callers'#10);
end;

procedure CallTreeAddText(var Text: TText; Tree: PCallTree; const Symbolizer: TSymbolizer);
begin
  if Tree^.Length = 1 then
    BacktraceAddText(Text, Symbolizer, Tree^.Order[0]^.Stack)
  else if Tree^.Length > 1 then
    AddTree(Text, Tree, Symbolizer);
  Tree^.Length := 0;
  Tree^.CutCount := 0;
  Tree^.IsMixed := False;
  Tree^.Shared := High(Cardinal);
  Tree^.Spare := nil;
  Tree^.Rest.Sums := Default(TTreeSums);
end;

end.
