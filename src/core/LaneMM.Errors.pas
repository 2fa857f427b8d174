/// The failures: run-time errors 203 and 204, and the fatal end for corrupt memory.
//
// Owns:       nothing.
// Callers:    any thread. ErrorOutOfMemory and ErrorInvalidPointer: under no lock.
unit LaneMM.Errors;

{$I ../LaneMM.inc}

interface

/// Raises run-time error 203 (EOutOfMemory), or returns nil with ReturnNilIfGrowHeapFails.
function ErrorOutOfMemory: Pointer;
/// Raises run-time error 204 (EInvalidPointer). Returns 0.
function ErrorInvalidPointer: NativeUInt;

/// Ends the program for corrupt memory: one line to stderr, unless another file has its number;
/// then run-time error 204.
procedure Fatal(const Text: ShortString);
/// Checks an invariant of LaneMM.Types; call it after `if Checked then`.
procedure Check(Law: Boolean; const Text: ShortString);

implementation

uses
  LaneMM.Hooks, LaneMM.Os;

const
  OutOfMemory = 203;
  InvalidPointer = 204;

{$ifdef FPC}
procedure HandleError(Code: Integer); external name 'FPC_HANDLEERROR';
{$else}
const
  ReturnNilIfGrowHeapFails = False;

procedure HandleError(Code: Integer);
begin
  if Code = OutOfMemory then
    System.Error(reOutOfMemory)
  else
    System.Error(reInvalidPtr);
end;
{$endif}

function ErrorOutOfMemory: Pointer;
begin
  Result := nil;
  if not ReturnNilIfGrowHeapFails then
    HandleError(OutOfMemory);
end;

function ErrorInvalidPointer: NativeUInt;
begin
  Result := 0;
  HandleError(InvalidPointer);
end;

procedure Fatal(const Text: ShortString);
const
  Prefix: ShortString = 'LaneMM: ';
  LineEnd: ShortString = #10;
var
  Line: ShortString;
begin
  Line := Prefix + Text;
  Line := Line + LineEnd;
  if (@Hooks.ErrorIsTaken = nil) or not Hooks.ErrorIsTaken then
    OsWriteError(@Line[1], Length(Line));
  RunError(InvalidPointer);
end;

procedure Check(Law: Boolean; const Text: ShortString);
begin
  if not Law then
    Fatal(Text);
end;

end.
