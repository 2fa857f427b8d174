/// The library that this copy of LaneMM is part of: its reports and files say so, for those of the
/// program are beside them.
//
// Owns:       nothing.
// Callers:    any thread; uses system calls only.
unit LaneMM.OwnLibrary;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

/// Returns the file name of the library, ended by #0, which lies in Path; nil in a program, in the
/// library that is the malloc of a program, and where it is not known.
function OwnLibrary(out Path: TPath): PAnsiChar;

implementation

uses
  LaneMM.Types, LaneMM.Os, LaneMM.OsProcess, LaneMM.Text;

function OwnLibrary(out Path: TPath): PAnsiChar;
var
  Mapping: TOsMapping;
begin
  Result := nil;
  if not IsLibrary or Process.IsMalloc
    or not OsFindMapping(NativeUInt(@OwnLibrary), Mapping) or (Mapping.Path[0] = #0) then
    Exit;
  Path := Mapping.Path;
  Result := TextFileName(@Path);
end;

end.
