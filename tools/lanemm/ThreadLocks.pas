/// The names of locks and other words that threads wait for: the variable that one is, or that holds
/// the object with it.
unit ThreadLocks;

{$mode delphi}{$H+}

interface

uses
  Generics.Collections, Targets, HeapImages;

type
  /// Names of words by address, empty where none is known: many threads may wait for one word, and
  /// what holds it is searched for in all variables.
  TWordNames = TDictionary<UInt64, string>;

/// Returns the name of the word at an address, and that: its variable, or its class, as far as they are
/// known, else Noun. Image may be nil. Names: those found before.
function WordName(Target: TTarget; Image: THeapImage; Names: TWordNames; Address: UInt64;
  const Noun: string): string;

/// Returns whether no other process shares the word at an address. A core file does not tell that of
/// memory without a name.
function WordIsOwn(Target: TTarget; Image: THeapImage; Address: UInt64): Boolean;

implementation

uses
  SysUtils, TargetSymbols, HeapContents, ToolText;

// Returns the name of the variable or the class, or nothing.
function FindName(Target: TTarget; Image: THeapImage; Address: UInt64): string;
var
  Region: PRegion;
  Place: TPlace;
  Holder: THolder;
begin
  Region := Target.FindRegion(Address);
  Result := '';
  if (Region <> nil) and (Region^.Module <> '') then
    Result := VariableName(Target, Address)
  else if Image <> nil then
  begin
    Place := FindPlace(Image, Address);
    if (Place.Block.Run <> nil) and not Place.Name.StartsWith(DataName) then
      Result := Place.Name;
    if Place.Block.Run <> nil then
      for Holder in FindVariables(Image.Target, Place.Block.Address, 1) do
        if VariableName(Target, Holder.Address) <> '' then
          Result := VariableName(Target, Holder.Address);
  end;
end;

function WordName(Target: TTarget; Image: THeapImage; Names: TWordNames; Address: UInt64;
  const Noun: string): string;
begin
  if not Names.TryGetValue(Address, Result) then
  begin
    Result := FindName(Target, Image, Address);
    Names.Add(Address, Result);
  end;
  if Result = '' then
    Result := Noun;
  Result := Format('%s (at %s)', [Result, HexAddress(Address)]);
end;

function WordIsOwn(Target: TTarget; Image: THeapImage; Address: UInt64): Boolean;
var
  Region: PRegion;
begin
  Region := Target.FindRegion(Address);
  Result := (Region <> nil) and not Region^.IsShared;
  if Result and not (Target is TProcessTarget) then
    Result := (Region^.Module <> '')
      or (Image <> nil) and (FindPlace(Image, Address).Block.Run <> nil);
end;

end.
