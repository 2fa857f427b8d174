/// Call stacks of programs in C: through all modules, without the frames of this library.
//
// Owns:       Stacks.TakeFrames, CodeFirst, CodeLimit.
// Invariants: what watches runs below an entry of LaneMM.C.Malloc, which has a frame pointer; what
//             lies between has one or leaves rbp alone. So the walk finds out of this library,
//             which has no unwind tables.
// Callers:    FramesStart: one thread. The walk: any thread.
unit LaneMM.C.Frames;

{$I ../src/LaneMM.inc}

interface

/// Lets LaneMM.Unwind walk through all modules.
procedure FramesStart;

implementation

uses
  LaneMM.Layout, LaneMM.Os, LaneMM.StacksState, LaneMM.Unwind, LaneMM.C.Unwind;

// Whether the library is part of the program's file: its code is not told from the program's then.
function IsStatic(const Mapping: TOsMapping): Boolean;
var
  Path: TPath;
  Length: NativeUInt;
begin
  Length := OsProgramPath(@Path, SizeOf(Path));
  Result := (Length > 0) and (CompareByte(Path, Mapping.Path, Length + 1) = 0);
end;

// Any number of threads may do it: all find the same.
procedure FindOwnCode;
var
  Mapping: TOsMapping;
begin
  if OsFindMapping(NativeUInt(@FindOwnCode), Mapping) and not IsStatic(Mapping) then
  begin
    Stacks.CodeLimit := Mapping.Limit;
    Stacks.CodeFirst := Mapping.First;
  end
  else
    Stacks.CodeFirst := High(NativeUInt);
end;

function IsOwn(Address: NativeUInt): Boolean; inline;
begin
  Result := (Address >= Stacks.CodeFirst) and (Address < Stacks.CodeLimit);
end;

// One frame at least.
function Take(Frames: PNativeUInt; Limit: Cardinal): Cardinal;
var
  Unwind: TTableUnwind;
begin
  if Stacks.CodeFirst = 0 then
    FindOwnCode;
  Unwind.Frame := NativeUInt(get_frame);
  Unwind.Sp := Unwind.Frame;
  Unwind.Limit := StackEnd(Unwind.Sp);
  Unwind.Pc := NativeUInt(@Take) + 1;
  Result := 0;
  while (Result < Limit) and TableUnwindStep(Unwind) do
    if not IsOwn(Unwind.Pc) then
    begin
      Frames[Result] := Unwind.Pc;
      Inc(Result);
    end;
  if Result > 0 then
    Exit;
  Frames^ := Unwind.Pc;
  Result := 1;
end;

procedure FramesStart;
begin
  Stacks.TakeFrames := Take;
end;

end.
