/// The names of locks: the variable that a lock is, or that holds the object with it.
unit ThreadLocks;

{$mode delphi}{$H+}

interface

uses
  Targets, HeapImages;

/// Returns the name of the lock at an address: its variable, or its class and address, as far as they
/// are known. Image may be nil.
function LockName(Target: TTarget; Image: THeapImage; Address: UInt64): string;

implementation

uses
  SysUtils, TargetSymbols, HeapContents;

function LockName(Target: TTarget; Image: THeapImage; Address: UInt64): string;
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
  if Result = '' then
    Result := 'the lock';
  Result := Format('%s (at $%s)', [Result, LowerCase(HexStr(Address, 12))]);
end;

end.
