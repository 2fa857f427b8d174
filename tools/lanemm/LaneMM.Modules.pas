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
  Generics.Collections;

const
  PageBytes = 4096;

type
  TPage = record
    IsRead: Boolean; // else it cannot be read
    Bytes: array[0..PageBytes - 1] of Byte;
  end;
  PPage = ^TPage;

var
  Source: TTarget;
  // Class records are read again and again: each page of them is read once.
  Pages: TDictionary<NativeUInt, PPage>;
  LastPage: PPage;
  LastAddress: NativeUInt;

procedure ForgetPages;
var
  Page: PPage;
begin
  if Pages <> nil then
    for Page in Pages.Values do
      Dispose(Page);
  Pages.Free;
  Pages := nil;
  LastPage := nil;
end;

procedure ModulesUse(Target: TTarget);
begin
  ForgetPages;
  Source := Target;
  if Target <> nil then
    Pages := TDictionary<NativeUInt, PPage>.Create;
end;

// Returns the page at Address, a multiple of PageBytes.
function PageAt(Address: NativeUInt): PPage;
begin
  if (LastPage <> nil) and (LastAddress = Address) then
    Exit(LastPage);
  if not Pages.TryGetValue(Address, Result) then
  begin
    New(Result);
    Result^.IsRead := Source.ReadAll(Address, @Result^.Bytes, PageBytes);
    Pages.Add(Address, Result);
  end;
  LastPage := Result;
  LastAddress := Address;
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
var
  Page: PPage;
  Offset, Part: NativeUInt;
begin
  Result := True;
  while Size > 0 do
  begin
    Offset := Address and (PageBytes - 1);
    Page := PageAt(Address - Offset);
    if not Page^.IsRead then
      Exit(False);
    Part := PageBytes - Offset;
    if Part > Size then
      Part := Size;
    Move(Page^.Bytes[Offset], Target^, Part);
    Inc(Address, Part);
    Inc(PByte(Target), Part);
    Dec(Size, Part);
  end;
end;

finalization
  ForgetPages;
end.
