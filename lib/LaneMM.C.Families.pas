/// Debug mode for C++: which routines allocated a block, and which free it, with which size.
//
// Owns:       nothing; the family of a block is in its bookkeeping record.
// Invariants: blocks of malloc have the family faPlain; a block that was allocated while debug mode
//             was off has none and is never reported.
// Callers:    any thread, on the slow paths of malloc and the operators.
unit LaneMM.C.Families;

{$I ../src/LaneMM.inc}

interface

uses
  LaneMM.DebugState;

/// Sets the family of the block P, which was just allocated, or nil; returns P.
function FamilySet(P: Pointer; Family: TFamily): Pointer;
/// Reports a call that frees or resizes the block P with another family than its own, or with a
/// Size that is not its own: the first that is wrong. Size 0 is not checked.
procedure FamilyCheck(P: Pointer; Size: NativeUInt; Family: TFamily);

implementation

uses
  LaneMM.SettingsState, LaneMM.Hard, LaneMM.Debug;

function FamilySet(P: Pointer; Family: TFamily): Pointer;
begin
  Result := P;
  if not Debug.IsStarted then
    Exit;
  HardSetFamily(P, Family);
  DebugSetFamily(P, Family);
end;

procedure FamilyCheck(P: Pointer; Size: NativeUInt; Family: TFamily);
begin
  if not Debug.IsStarted then
    Exit;
  HardCheckCall(P, Size, Family);
  // The compiler passes the size of one object where delete[] would be right.
  if (Settings.Values[opMixes] = 0) or DebugFamilyCheck(P, Family) then
    DebugSizeCheck(P, Size);
end;

end.
