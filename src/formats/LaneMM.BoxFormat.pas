/// The black box as data: a file that a process leaves when it is killed.
//
// Owns:       nothing; the file belongs to LaneMM.BlackBox.
// Invariants: little-endian. Head is constant from the moment when Magic is there. The halves are
//             written in turn: Number is 0 while one is written, and comes last. The half with the
//             higher number whose checksum is right has the last words; the other one has those
//             before.
// Callers:    LaneMM inside the process, and tools outside.
unit LaneMM.BoxFormat;

{$I ../LaneMM.inc}

interface

const
  /// First bytes of the file.
  BoxMagic = 'LaneBox'#10;
  /// Version of the file: raised when a record changes.
  BoxLayout = 1;
  /// Bytes of the file, and of its head.
  BoxBytes = 256 * 1024;
  BoxHeadBytes = 4096;
  /// Characters of a half.
  BoxTextBytes = (BoxBytes - BoxHeadBytes) div 2 - 32;

type
  /// What stays the same.
  TBoxHead = record
    Magic: array[0..7] of AnsiChar; //< const  BoxMagic
    Layout: Cardinal;               //< const  BoxLayout
    HalfBytes: Cardinal;            //< const  SizeOf(TBoxHalf)
    ProcessId: UInt64;              //< const  number of the process
    StartedSeconds: UInt64;         //< const  when the box was made, in seconds since 1970
  end;

  PBoxHalf = ^TBoxHalf;
  /// The state of the process at a moment, a JSON object.
  TBoxHalf = record
    Number: UInt64;                 //< shared  counts the states, from 1; 0: being written
    Seconds: UInt64;                //< shared  when, in seconds since 1970
    Checksum: UInt64;               //< shared  of the three others
    Length: UInt64;                 //< shared  characters of Text
    Text: array[0..BoxTextBytes - 1] of AnsiChar; //< shared  UTF-8
  end;

  PBox = ^TBox;
  /// The file.
  TBox = record
    case Byte of
      0: (Head: TBoxHead);          //< const   what stays the same
      1: (
        HeadBytes: array[0..BoxHeadBytes - 1] of Byte; //< padding
        Halves: array[0..1] of TBoxHalf; //< shared  the last two states
      );
  end;

/// Returns the checksum of a half whose Number will be Number; FNV-1a, by words of eight bytes.
function BoxChecksum(const Half: TBoxHalf; Number: UInt64): UInt64;

implementation

{$if SizeOf(TBox) <> BoxBytes}
  {$message fatal 'TBox: the fields no longer fit the file'}
{$ifend}

{$push} {$Q-} {$R-}
procedure Mix(var Sum: UInt64; Value: UInt64); inline;
begin
  Sum := (Sum xor Value) * UInt64(1099511628211);
end;

function BoxChecksum(const Half: TBoxHalf; Number: UInt64): UInt64;
var
  Words: PUInt64;
  Index: NativeUInt;
begin
  Result := UInt64(14695981039346656037);
  Mix(Result, Number);
  Mix(Result, Half.Seconds);
  Mix(Result, Half.Length);
  Words := PUInt64(@Half.Text);
  if Half.Length <= BoxTextBytes then
    for Index := 1 to NativeUInt(Half.Length + 7) div 8 do
    begin
      Mix(Result, Words^);
      Inc(Words);
    end;
end;
{$pop}

end.
