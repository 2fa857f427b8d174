/// Holds the entries: the conditionals of assembler entries are allowed here, and no others.
unit LaneMM.Allocate;

{$I ../LaneMM.inc}

interface

implementation

{$ifdef LANEMM_ASM}
{$endif}
{$ifdef LANEMM_ASM_LINUX}
{$endif}
{$ifdef MSWINDOWS}
{$endif}

end.
