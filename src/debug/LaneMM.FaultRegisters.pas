/// The registers of a fault, by the numbers that instructions have for them.
//
// Owns:       nothing.
// Callers:    LaneMM.FaultOrigin.
// Source:     the contexts of signals, see LaneMM.Os.*.Faults.inc.
unit LaneMM.FaultRegisters;

{$I ../LaneMM.inc}

interface

const
  /// Place in TFault.Registers of the first of these, and their numbers in instructions.
  {$if defined(LANEMM_X64)}
  OrderFirst = 0;
  Order: array[0..15] of Byte =
    {$ifdef MSWINDOWS}
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    {$else}
    (8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4);
    {$endif}
  {$elseif defined(LANEMM_X86)}
  OrderFirst = {$ifdef MSWINDOWS} 0 {$else} 4 {$endif};
  Order: array[0..{$ifdef MSWINDOWS} 6 {$else} 7 {$endif}] of Byte =
    {$ifdef MSWINDOWS} (7, 6, 3, 2, 1, 0, 5); {$else} (7, 6, 5, 4, 3, 2, 1, 0); {$endif}
  {$else}
  OrderFirst = 0;
  Order: array[0..30] of Byte = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
    19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
  {$ifend}
  /// Numbers of the stack pointer and of the frame pointer.
  StackRegister = {$ifdef LANEMM_X86} 4 {$else} 31 {$endif};
  FrameRegister = {$ifdef LANEMM_X86} 5 {$else} 29 {$endif};

implementation

end.
