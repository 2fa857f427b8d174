/// The modules of the target, in place of those of this process: what LaneMM.Contents reads of
/// classes it reads through here. The unit of this name in src/ has the same interface.
unit LaneMM.Modules;

{$mode delphi}{$H+}

interface

uses
  Targets;

/// Reads from Target from now on; nil: from none.
procedure ModulesUse(Target: TTarget);
/// Returns whether Size bytes from Address on are readable data of a module.
function ModulesHaveData(Address, Size: NativeUInt): Boolean;
/// Returns whether Address lies in the code of a module.
function ModulesHaveCode(Address: NativeUInt): Boolean;
/// Copies Size bytes of a module's code or data to Target; returns whether all could be read.
function ModulesRead(Address: NativeUInt; Target: Pointer; Size: NativeUInt): Boolean;

implementation

uses
  SysUtils, TargetPages;

var
  Source: TTarget;
  // Class records are read again and again: each page of them is read once.
  Pages: TTargetPages;

procedure ModulesUse(Target: TTarget);
begin
  FreeAndNil(Pages);
  Source := Target;
  if Target <> nil then
    Pages := TTargetPages.Create(Target);
end;

function ModulesHaveData(Address, Size: NativeUInt): Boolean;
var
  Region: PRegion;
begin
  Region := Source.FindRegion(Address);
  Result := (Region <> nil) and Region^.IsReadable and (Region^.Module <> '')
    and (Size <= Region^.Limit - Address);
end;

function ModulesHaveCode(Address: NativeUInt): Boolean;
var
  Region: PRegion;
begin
  Region := Source.FindRegion(Address);
  Result := (Region <> nil) and Region^.IsCode and (Region^.Module <> '');
end;

function ModulesRead(Address: NativeUInt; Target: Pointer; Size: NativeUInt): Boolean;
begin
  Result := Pages.Read(Address, Target, Size) = Size;
end;

finalization
  Pages.Free;
end.
