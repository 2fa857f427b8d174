/// The numbers of a heap as text.
unit HeapText;

{$mode delphi}{$H+}

interface

uses
  HeapImages, HeapNumbers, HeapContents, HeapDamage, HeapLeaks;

/// Writes the totals.
procedure WriteTotals(const Numbers: THeapNumbers);
/// Writes a line for each size class with spans, for large blocks and for debug blocks.
procedure WriteClasses(const Numbers: THeapNumbers);
/// Writes a line for each thread with a heap.
procedure WriteThreads(const Numbers: THeapNumbers);
/// Writes a line for the regions of each name, Most of them, 0: all, and one for the others; nothing
/// without regions.
procedure WriteRegions(const Numbers: THeapNumbers; Most: Integer);
/// Returns the name of regions, or of the others that are summed up.
function RegionsName(const Numbers: TRegionNumbers): string;
/// Returns their limit, if they have one.
function LimitText(const Numbers: TRegionNumbers): string;
/// Writes the free runs by length.
procedure WriteRuns(const Numbers: THeapNumbers);
/// Writes a title, at most Most groups, 0: all, and a line for the rest.
procedure WriteGroups(const Groups: TContentsGroups; const Title: string; Most: Integer);
/// Writes the damage, or that there is none.
procedure WriteDamage(const Damages: TDamages);
/// Writes the leaks: Most of those that nothing points to, 0: all, each with what it retains.
procedure WriteLeaks(const Leaks: TLeaks; Most: Integer);
/// Writes what lies at Address, and, if asked for, Most of the places that hold its block, 0: all.
procedure WritePlace(Image: THeapImage; Address: UInt64; WithHolders: Boolean; Most: Integer);

implementation

uses
  SysUtils, LaneMM.Layout, LaneMM.DebugState, TargetSymbols, HeapPlaces, ToolText;

procedure WriteTotals(const Numbers: THeapNumbers);

  procedure Line(const Name: string; Bytes: UInt64; const More: string);
  begin
    WriteLn(Left(Name, 12), Right(BytesText(Bytes), 12), '  ', More);
  end;

begin
  Line('used', Numbers.Used, Format('%s blocks', [Grouped(Numbers.Blocks)]));
  Line('spans', Numbers.Spans, Format('that hold them: %s are in blocks in use',
    [Percent(Numbers.Used, Numbers.Spans)]));
  Line('committed', Numbers.Committed, 'memory held from the system, in use or cached');
  Line('peak', Numbers.Peak, 'highest so far');
  Line('cached', Numbers.Cached, 'of committed: free, not yet given back');
  Line('returned', Numbers.Returned, 'free, given back to the system');
  Line('reserved', Numbers.Reserved, Format('addresses; %s never used',
    [BytesText(Numbers.Untouched)]));
  WriteLn(Left('resizes', 12), Right(Grouped(Numbers.Resizes), 12), Format('  %s moves, %s copied',
    [Grouped(Numbers.Moves), BytesText(Numbers.CopiedBytes)]));
  WriteLn(Left('locks', 12), Right(Grouped(Numbers.Contended), 12), '  found taken');
end;

procedure WriteClass(const Name: string; const Numbers: TClassNumbers);
begin
  WriteLn(Right(Name, 8), Right(Grouped(Numbers.Blocks), 12), Right(BytesText(Numbers.Bytes), 11),
    Right(BytesText(SlackOf(Numbers)), 11), Right(Grouped(Numbers.Spans), 9),
    Right(Grouped(Numbers.FullSpans), 9), Right(Grouped(Numbers.PartlySpans), 9),
    Right(Grouped(Numbers.EmptySpans), 7), Right(Grouped(Numbers.Owners), 7));
end;

procedure WriteClasses(const Numbers: THeapNumbers);
var
  Each: TClassNumbers;
begin
  WriteLn('A span is a run of pages with blocks of one size; slack is what it has beside those in'
    + ' use.');
  WriteLn('    size      blocks       used      slack    spans     full   partly  empty owners');
  for Each in Numbers.Classes do
    if Each.Spans > 0 then
      WriteClass(Grouped(Each.BlockSize), Each);
  if Numbers.Large.Spans > 0 then
    WriteClass('large', Numbers.Large);
  if Numbers.Debug.Spans > 0 then
    WriteClass('debug', Numbers.Debug);
end;

procedure WriteThread(const Number, Name: string; const Thread: TThreadNumbers);
begin
  WriteLn(Right(Number, 8), '  ', Left(Name, 18), Right(Grouped(Thread.Blocks), 12),
    Right(BytesText(Thread.Bytes), 11), Right(BytesText(Thread.SpanBytes), 11),
    Right(Grouped(Thread.RemoteBlocks), 17), Right(BytesText(Thread.KeptBytes), 11));
end;

procedure WriteThreads(const Numbers: THeapNumbers);
var
  Thread: TThreadNumbers;
  Name: string;
begin
  WriteLn('  thread  name                    blocks       used      spans  freed by others'
    + '       kept');
  for Thread in Numbers.Threads do
  begin
    if Thread.Heap^.IsUnused or Thread.Heap^.IsOfRegion
      or (Thread.Heap^.IsAbandoned and (Thread.Spans = 0)) then
      Continue;
    Name := Thread.Heap^.Name;
    if Thread.Heap^.IsAbandoned then
      Name := '(ended threads)';
    WriteThread(IntToStr(Thread.Heap^.Head.ThreadNumber), Name, Thread);
  end;
  if Numbers.Unowned.Spans > 0 then
    WriteThread('-', '(full spans)', Numbers.Unowned);
end;

function RegionsName(const Numbers: TRegionNumbers): string;
begin
  Result := Numbers.Name;
  if Result = '' then
    Result := '(others)';
end;

function LimitText(const Numbers: TRegionNumbers): string;
begin
  Result := '-';
  if Numbers.Limit > 0 then
    Result := BytesText(Numbers.Limit);
end;

procedure WriteRegions(const Numbers: THeapNumbers; Most: Integer);
var
  Region: TRegionNumbers;
begin
  if Numbers.Regions = nil then
    Exit;
  WriteLn('  regions  name                    blocks       used     memory  most of one'
    + '      limit  inside');
  for Region in ShownRegions(Numbers, Most) do
    WriteLn(Right(Grouped(Region.Regions), 9), '  ', Left(RegionsName(Region), 19),
      Right(Grouped(Region.Blocks), 11), Right(BytesText(Region.Bytes), 11),
      Right(BytesText(Region.Committed), 11), Right(BytesText(Region.Peak), 13),
      Right(LimitText(Region), 11), Right(Grouped(Region.Inside), 8));
  WriteLn;
end;

procedure WriteRuns(const Numbers: THeapNumbers);
var
  Index: Integer;
begin
  WriteLn('free runs from      cached             returned');
  for Index := 0 to High(Numbers.Warm) do
    if Numbers.Warm[Index].Runs + Numbers.Cold[Index].Runs > 0 then
      WriteLn(Right(BytesText(Int64(SliceSize) shl Index), 14),
        Right(Grouped(Numbers.Warm[Index].Runs), 8),
        Right(BytesText(Numbers.Warm[Index].Bytes), 12),
        Right(Grouped(Numbers.Cold[Index].Runs), 9),
        Right(BytesText(Numbers.Cold[Index].Bytes), 12));
end;

procedure WriteGroups(const Groups: TContentsGroups; const Title: string; Most: Integer);
var
  Index: Integer;
  Blocks, Bytes: UInt64;
begin
  WriteLn('        used      blocks  ', Title);
  Blocks := 0;
  Bytes := 0;
  for Index := 0 to High(Groups) do
    if (Most = 0) or (Index < Most) then
      WriteLn(Right(BytesText(Groups[Index].Bytes), 12), Right(Grouped(Groups[Index].Blocks), 12),
        '  ', Groups[Index].Name)
    else
    begin
      Inc(Blocks, Groups[Index].Blocks);
      Inc(Bytes, Groups[Index].Bytes);
    end;
  if Blocks > 0 then
    WriteLn(Right(BytesText(Bytes), 12), Right(Grouped(Blocks), 12), '  ',
      Format('%d more; --most=0 shows all', [Length(Groups) - Most]));
end;

procedure WriteDamage(const Damages: TDamages);
var
  Damage: TDamage;
begin
  if Damages = nil then
    WriteLn('No damage: the lists and guards of all spans are sound.');
  for Damage in Damages do
    WriteLn(HexAddress(Damage.Address), '  ', Damage.Text);
end;

procedure WriteChain(const Leaks: TLeaks; Index: Integer; const Prefix: string);
var
  Chain: TLeakChain;
begin
  Chain := Leaks.Chains[Index];
  WriteLn(Right(Grouped(Chain.Blocks), 12), Right(BytesText(Chain.Bytes), 12),
    Right(BytesText(Chain.Retained), 12), '  ', Prefix, Leaks.Groups[Chain.Group].Name);
end;

// Writes the lines that allocated the leaks of a group, as far as they are known.
procedure WritePlaces(const Leaks: TLeaks; Group: Integer);
const
  MostPlaces = 3;
var
  Index: Integer;
  Known: TArray<Integer>;
begin
  Known := PlacesOf(Leaks, Group);
  for Index := 0 to High(Known) do
    if Index < MostPlaces then
      WriteLn(Right(Grouped(Leaks.Places[Known[Index]].Blocks), 12), Right(BytesText(
        Leaks.Places[Known[Index]].Bytes), 12), Left('', 14), '   at ', Leaks.Places[Known[Index]].Line);
end;

procedure WriteLeaks(const Leaks: TLeaks; Most: Integer);
const
  Prefixes: array[Boolean] of string = ('', 'cycles with ');
  MostRetained = 3;
var
  Roots, Retained: TArray<Integer>;
  Index, Inner: Integer;
begin
  if Leaks.Blocks = 0 then
  begin
    WriteLn(Format('No leak: the program reaches each of its %s blocks in use.',
      [Grouped(Leaks.InUse)]));
    Exit;
  end;
  WriteLn(Format('Leaks: %s of %s blocks in use, %s; the program reaches none of them.',
    [Grouped(Leaks.Blocks), Grouped(Leaks.InUse), BytesText(Leaks.Bytes)]));
  WriteLn('      blocks        used    retained  nothing points to, -> what it retains');
  Roots := ChainsBelow(Leaks, 0);
  for Index := 0 to High(Roots) do
    if (Most = 0) or (Index < Most) then
    begin
      WriteChain(Leaks, Roots[Index], Prefixes[Leaks.Chains[Roots[Index]].IsCycle]);
      WritePlaces(Leaks, Leaks.Chains[Roots[Index]].Group);
      Retained := ChainsBelow(Leaks, Roots[Index] + 1);
      for Inner := 0 to High(Retained) do
        if Inner < MostRetained then
          WriteChain(Leaks, Retained[Inner], '-> ');
    end;
  if (Most > 0) and (Length(Roots) > Most) then
    WriteLn(Format('%d more; --most=0 shows all', [Length(Roots) - Most]));
  if Leaks.Regions <> nil then
    WriteGroups(Leaks.Regions, 'leaks in region', Most);
  if Leaks.Places = nil then
    WriteLn('Where they were allocated is not recorded: LANEMM=stacks at the start, or'
      + ' `lanemm do PID stacks` for blocks from then on, records it.');
end;

procedure WriteHolders(Image: THeapImage; const Place: TPlace; Most: Integer);
var
  Holders: THolders;
  Holder: THolder;
  Line: string;
  Variables: TTargetSymbols;
  Found: Integer;
begin
  Holders := FindHolders(Image, Place.Block.Address, Place.Block.Size);
  Found := Length(Holders);
  if (Most > 0) and (Found > Most) then
    SetLength(Holders, Most);
  Variables := TTargetSymbols.Create(Image.Target);
  for Holder in Holders do
    if Holder.Block = 0 then
      Variables.AddVariable(Holder.Address);
  Variables.Resolve;
  WriteLn(Found, ' places hold its address:');
  for Holder in Holders do
  begin
    Line := '  ' + HexAddress(Holder.Address) + '  ';
    if Holder.Block <> 0 then
      Line := Line + Format('%s at $%x, offset %d', [Holder.Name, Holder.Block,
        Holder.Address - Holder.Block])
    else if Variables.VariableAt(Holder.Address) <> '' then
      Line := Line + 'variable ' + Variables.VariableAt(Holder.Address)
    else
      Line := Line + Holder.Name;
    if Holder.Target <> Place.Block.Address then
      Line := Line + Format(', to byte %d', [Holder.Target - Place.Block.Address]);
    WriteLn(Line);
  end;
  if Found > Length(Holders) then
    WriteLn(Format('%d more; --most=0 shows all', [Found - Length(Holders)]));
  Variables.Free;
end;

procedure WriteOwner(Image: THeapImage; const Place: TPlace);
var
  Owner: PHeapRecord;
begin
  Owner := Image.OwnerOfSpan(Place.Block.Run^.Span);
  if Place.Block.Run^.Kind = skLarge then
    WriteLn('large block; the thread that frees it releases it')
  else if Place.HasDebug then
    WriteLn('debug block number ', Place.Debug.Number)
  else if Owner = nil then
    WriteLn('its span is full and given up, or of the sampler: no thread owns it')
  else if Owner^.IsOfRegion then
    WriteLn('its span belongs to a region')
  else if Owner^.IsAbandoned then
    WriteLn('its span was left by a thread that has ended')
  else
    WriteLn(Format('its span is owned by thread %d %s', [Owner^.Head.ThreadNumber, Owner^.Name]));
end;

procedure WriteStack(Places: TPlaces; const Title: string; Stack: Integer);
var
  Frame: TPlaceFrame;
begin
  if Stack < 0 then
    Exit;
  WriteLn(Title, ' at');
  for Frame in Places.TextOf(Stack) do
    WriteLn('    ', FrameLine(Frame));
end;

// Writes where the block was allocated and freed, as far as records have it.
procedure WriteOrigin(Image: THeapImage; var Place: TPlace);
const
  Threads: array[Boolean] of string = ('', ' by thread %d');
var
  Places: TPlaces;
  Allocated, Freed: Integer;
begin
  Place.Block.Debug := nil;
  if Place.HasDebug then
    Place.Block.Debug := @Place.Debug;
  Places := TPlaces.Create(Image);
  Allocated := -1;
  if Place.HasDebug or not Place.Block.IsFree then
    Allocated := Places.StackOf(Place.Block);
  Freed := Places.FreeStackOf(Place.Block);
  Places.Resolve;
  WriteStack(Places, 'allocated' + Format(Threads[Place.HasDebug], [Place.Debug.AllocThread]), Allocated);
  WriteStack(Places, 'freed' + Format(Threads[Place.HasDebug], [Place.Debug.FreeThread]), Freed);
  if Allocated < 0 then
    WriteLn('Where it was allocated is not recorded: LANEMM=stacks at the start records it, and'
      + ' LANEMM=debug also where it was freed.');
  Places.Free;
end;

procedure WritePlace(Image: THeapImage; Address: UInt64; WithHolders: Boolean; Most: Integer);
const
  States: array[Boolean] of string = ('in use', 'free');
var
  Place: TPlace;
begin
  Place := FindPlace(Image, Address);
  if Place.Block.Run = nil then
  begin
    WriteLn(Format('$%x is %s.', [Address, Place.Where]));
    Exit;
  end;
  WriteLn(Format('$%x is byte %d of the block at $%x: %d bytes, %s', [Address,
    Address - Place.Block.Address, Place.Block.Address, Place.Block.Size,
    States[Place.Block.IsFree]]));
  if Place.Name <> '' then
    WriteLn(Trim(Format('contents: %s %s', [Place.Name, Place.Text])));
  WriteLn(Format('span at $%x: %d KB, blocks of %d bytes', [Place.Block.Run^.Address,
    Place.Block.Run^.SliceCount * SliceSize div 1024, Place.Block.Run^.Span^.BlockSize]));
  WriteOwner(Image, Place);
  WriteOrigin(Image, Place);
  if WithHolders then
    WriteHolders(Image, Place, Most);
end;

end.
