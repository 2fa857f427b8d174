/// The library that the memory manager comes from: a check that it is the one that the name says.
unit Bench.Origin;

{$I Bench.inc}

interface

var
  /// Returns the version that the library states itself; nil where it states none.
  LibraryVersion: function: string; //< const   written at start, by the unit of the manager

/// Returns the path of the file that has the routines of the memory manager, and on a second line the
/// version that it states; nothing if GetMem, FreeMem and MemSize lie in different files.
function ManagerOrigin: string;

implementation

// Without SysUtils, which would be initialized before cthreads.

type
  /// As dladdr fills it.
  TSymbolPlace = record
    FileName: PAnsiChar; //< const   the file that was mapped there
    Base: Pointer;       //< const   where it begins
    Symbol: PAnsiChar;   //< const   the symbol before the address, nil for none
    Address: Pointer;    //< const   of that symbol
  end;

function DlAddr(Address: Pointer; out Place: TSymbolPlace): LongInt; cdecl; external 'c' name 'dladdr';

/// Returns the path of the file that a routine lies in, '' for none.
function FileOf(Routine: Pointer): string;
var
  Place: TSymbolPlace;
begin
  Result := '';
  if DlAddr(Routine, Place) <> 0 then
    Result := Place.FileName;
end;

function ManagerOrigin: string;
var
  Manager: TMemoryManager;
begin
  GetMemoryManager(Manager);
  Result := FileOf(@Manager.GetMem);
  if (FileOf(@Manager.FreeMem) <> Result) or (FileOf(@Manager.MemSize) <> Result) then
    Exit('');
  if Assigned(LibraryVersion) then
    Result := Result + LineEnding + LibraryVersion;
end;

end.
