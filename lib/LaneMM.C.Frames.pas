/// Backtraces of programs in C: through all modules, without the frames of this library.
//
// Owns:       Stacks.TakeFrames, CodeFirst, CodeLimit.
// Invariants: Take has a frame pointer, by which the walk leaves it. From there on it uses unwind
//             tables; those of this library are written by build.sh.
// Callers:    FramesStart: one thread. The walk: any thread.
unit LaneMM.C.Frames;

{$I ../src/LaneMM.inc}

interface

/// Makes LaneMM.Unwind walk through all modules.
procedure FramesStart;

implementation

uses
  LaneMM.Layout, LaneMM.Os, LaneMM.StacksState, LaneMM.Unwind, LaneMM.C.Unwind;

// Returns whether the library is linked into the program's file. Then its code is not
// distinguished from that of the program.
function IsStatic(const Mapping: TOsMapping): Boolean;
var
  Path: TPath;
  Length: NativeUInt;
begin
  Length := OsProgramPath(@Path, SizeOf(Path));
  Result := (Length > 0) and (CompareByte(Path, Mapping.Path, Length + 1) = 0);
end;

// Any number of threads may call it: all write the same values, CodeFirst last.
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

// Returns the number of frames, at least one.
function Take(Frames: PNativeUInt; Limit: Cardinal): Cardinal;
var
  Unwind: TTableUnwind;
begin
  if Stacks.CodeFirst = 0 then
    FindOwnCode;
  Unwind.Frame := NativeUInt(get_frame);
  Unwind.Sp := Unwind.Frame;
  Unwind.Limit := StackEnd(Unwind.Sp);
  Unwind.Pc := NativeUInt(@Take);
  Result := 0;
  if TableUnwindByFrame(Unwind) then
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
  TableUnwindStart;
  Stacks.TakeFrames := Take;
end;

end.
