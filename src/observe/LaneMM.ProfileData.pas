/// One profile: the sites of a kind, their values, and the symbols of their frames.
//
// Owns:       nothing; a TProfile owns its symbols and mapped files until ProfileClose.
// Callers:    any thread; a TProfile belongs to one.
unit LaneMM.ProfileData;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Text, LaneMM.Elf, LaneMM.Symbols, LaneMM.Unwind, LaneMM.CallSites;

const
  /// Most values of a site.
  MaxValues = 4;

type
  /// The kinds of profiles.
  TProfileKind = (pkContention, pkGrowth, pkHeap);

  /// A value that each site of a profile has.
  TValueKind = record
    Name: PAnsiChar;      //< as pprof names it
    UnitName: PAnsiChar;  //< count or bytes
  end;

  /// A profile while it is written.
  TProfile = record
    Kind: TProfileKind;    //< its kind
    Symbols: TSymbols;     //< the symbols of all frames
    Elf: TElf;             //< the files that hold the texts of Symbols
  end;

const
  /// The names of the profiles.
  ProfileNames: array[TProfileKind] of PAnsiChar = ('contention', 'growth', 'heap');
  /// The number of values of a site.
  ValueCounts: array[TProfileKind] of Cardinal = (1, 2, 4);
  /// The index of the value that viewers show first.
  MainValues: array[TProfileKind] of Cardinal = (0, 1, 1);
  /// The values of a site, by index.
  ValueKinds: array[TProfileKind, 0..MaxValues - 1] of TValueKind = (
    ((Name: 'contentions'; UnitName: 'count'), (Name: nil; UnitName: nil),
      (Name: nil; UnitName: nil), (Name: nil; UnitName: nil)),
    ((Name: 'reallocs'; UnitName: 'count'), (Name: 'copied_space'; UnitName: 'bytes'),
      (Name: nil; UnitName: nil), (Name: nil; UnitName: nil)),
    ((Name: 'alloc_objects'; UnitName: 'count'), (Name: 'alloc_space'; UnitName: 'bytes'),
      (Name: 'inuse_objects'; UnitName: 'count'), (Name: 'inuse_space'; UnitName: 'bytes')));

/// Collects the frames of the profile and symbolizes them. Returns False when there are none, or no
/// memory; ProfileClose is due in any case.
function ProfileOpen(out Profile: TProfile; Kind: TProfileKind): Boolean;
/// Frees the symbols and unmaps the files.
procedure ProfileClose(var Profile: TProfile);
/// Returns the site at Index of the table, below SiteLimit, if it belongs to the profile; else nil.
function ProfileSite(const Profile: TProfile; Index: Cardinal): PSite;
/// Reads the frames of a site that reports show, see BacktraceFold; at least one.
procedure ProfileReadStack(const Profile: TProfile; Site: PSite; out Stack: TBacktrace);
/// Returns a value of a site; Index is below ValueCounts of the profile's kind.
function ProfileValue(const Profile: TProfile; Site: PSite; Index: Cardinal): UInt64;
/// Adds the name of a frame: its routine, else its module and offset, else its address; `(cut)` for
/// CutFrame.
procedure ProfileAddName(var Text: TText; Symbol: PSymbol);

implementation

uses
  LaneMM.Atomic, LaneMM.BacktraceText;

const
  Members: array[TProfileKind] of set of TSiteKind = ([siShardMiss..siRemoteFree], [siGrowth],
    [siAllocation]);

function ProfileSite(const Profile: TProfile; Index: Cardinal): PSite;
begin
  Result := SiteAt(Index);
  if (Result <> nil) and not (Result^.Kind in Members[Profile.Kind]) then
    Result := nil;
end;

function CountFrames(const Profile: TProfile): NativeUInt;
var
  Index: Cardinal;
  Site: PSite;
begin
  Result := 0;
  for Index := 0 to SiteLimit - 1 do
  begin
    Site := ProfileSite(Profile, Index);
    if Site <> nil then
      Inc(Result, Site^.Stack.Count);
  end;
end;

procedure AddFrames(var Profile: TProfile);
var
  Index, Frame: Cardinal;
  Site: PSite;
begin
  for Index := 0 to SiteLimit - 1 do
  begin
    Site := ProfileSite(Profile, Index);
    if Site <> nil then
      for Frame := 0 to Site^.Stack.Count - 1 do
        SymbolsAdd(Profile.Symbols, Site^.Stack.Frames[Frame]);
  end;
end;

function ProfileOpen(out Profile: TProfile; Kind: TProfileKind): Boolean;
var
  FrameCount: NativeUInt;
begin
  Profile := Default(TProfile);
  Profile.Kind := Kind;
  FrameCount := CountFrames(Profile);
  if FrameCount = 0 then
    Exit(False);
  SymbolsOpen(Profile.Symbols, FrameCount);
  AddFrames(Profile);
  SymbolsSort(Profile.Symbols);
  ElfOpen(Profile.Elf);
  ElfResolve(Profile.Elf, Profile.Symbols);
  Result := Profile.Symbols.Count > 0;
end;

procedure ProfileClose(var Profile: TProfile);
begin
  ElfClose(Profile.Elf);
  SymbolsClose(Profile.Symbols);
end;

procedure ProfileReadStack(const Profile: TProfile; Site: PSite; out Stack: TBacktrace);
begin
  Stack := Site^.Stack;
  BacktraceFold(Profile.Symbols, Stack);
end;

function ProfileValue(const Profile: TProfile; Site: PSite; Index: Cardinal): UInt64;
begin
  case Ord(Profile.Kind) * MaxValues + Index of
    Ord(pkGrowth) * MaxValues + 1: Result := LoadAcquire(Site^.CopiedBytes);
    Ord(pkHeap) * MaxValues + 1: Result := LoadAcquire(Site^.Bytes);
    Ord(pkHeap) * MaxValues + 2: Result := LoadAcquire(Site^.Count) - LoadAcquire(Site^.FreedCount);
    Ord(pkHeap) * MaxValues + 3: Result := LoadAcquire(Site^.Bytes) - LoadAcquire(Site^.FreedBytes);
  else
    Result := LoadAcquire(Site^.Count);
  end;
end;

procedure ProfileAddName(var Text: TText; Symbol: PSymbol);
begin
  if Symbol^.Address = CutFrame - 1 then
    TextAdd(Text, '(cut)')
  else if Symbol^.Routine <> nil then
    SymbolAddRoutine(Text, Symbol)
  else if Symbol^.Module <> nil then
    SymbolAddOffset(Text, Symbol)
  else
    TextAddHex(Text, Symbol^.Address, SizeOf(Symbol^.Address) * 2);
end;

end.
