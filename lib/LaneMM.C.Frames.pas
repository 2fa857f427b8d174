/// Backtraces of programs in C: through all modules, without the frames of this library.
//
// Owns:       Stacks.StepFrame, FindRoutine, CodeFirst, CodeLimit, Demangle.
// Callers:    FramesStart: one thread.
unit LaneMM.C.Frames;

{$I ../src/LaneMM.inc}

interface

/// Makes LaneMM.Unwind walk through all modules, and reports name routines of C++. The unwind
/// tables of this module are written by build.sh.
procedure FramesStart;

implementation

uses
  LaneMM.Os, LaneMM.OsProcess, LaneMM.ElfFile, LaneMM.StacksState, LaneMM.Demangle,
  LaneMM.C.Unwind;

// TableModuleFind where libc has no such table.
function FindMapping(out First, Limit: NativeUInt; out IsProgram: Boolean): Boolean;
var
  Mapping: TOsMapping;
begin
  Result := OsFindMapping(NativeUInt(@FindMapping), Mapping);
  First := Mapping.First;
  Limit := Mapping.Limit;
  IsProgram := Result and ElfIsProgram(Mapping); // the library is linked into its file
end;

procedure FramesStart;
var
  First, Limit: NativeUInt;
  IsProgram: Boolean;
begin
  TableUnwindStart;
  // Code in the program's file is not distinguished from that of the program.
  if (TableModuleFind(NativeUInt(@FramesStart), First, Limit, IsProgram)
    or FindMapping(First, Limit, IsProgram)) and not IsProgram then
  begin
    Stacks.CodeFirst := First;
    Stacks.CodeLimit := Limit;
  end;
  Stacks.FindRoutine := TableFindRoutine;
  Stacks.StepFrame := TableStep;
  Stacks.Demangle := DemangleAdd;
end;

end.
