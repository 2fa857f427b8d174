/// Nothing to find here: try, with, string and asm stand in comments and literals only.
//
// Owns:       class, WriteLn.
unit LaneMM.Good;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Types,
  {$ifdef MSWINDOWS} LaneMM.Words, {$endif}
  LaneMM.Atomic;

const
  /// A text.
  Text: ShortString = 'try WriteLn(''string'') { asm';

/// Does what its name says; (* not a comment: goto *)
procedure WriteLines(Shown: Boolean); {inline with assembler}
/// Documented above a directive.
{$warn 6018 off}
function Withdraw: Boolean;

implementation

(* A comment of two lines:
   {$ifdef FPC} try *)
function Answer: LongInt; external name 'FPC_WITH';

procedure WriteLines(Shown: Boolean);
begin
  if Shown then
    Exit; // with a label
end;

function Withdraw: Boolean;
begin
  Result := Answer = Length('//'); { raise }
  Bad(First);
  Count(Second);
end;

end.
