/// Conditionals and assembler where they may not be, and lines that are too long: this one is not..
unit LaneMM.Places;

interface

uses
  {$ifdef FPC} LaneMM.Types, {$endif}
  LaneMM.Words;

/// This line has a hundred columns, though more bytes: ééééééééééééééééééééééééééééééééééééééééééé.
procedure Bad; {$ifdef FPC} inline; {$endif}
/// This line has a hundred and one columns: ........................................................
procedure Worse; assembler;

implementation

{$ifndef LANEMM_ASM}
{$ifend}

{$if SizeOf(Pointer) <> 8}
{$ifend}

procedure Bad;
begin
  LaneMM.Words.Bad(First);
end;

procedure Worse; assembler;
asm
end;

end.
