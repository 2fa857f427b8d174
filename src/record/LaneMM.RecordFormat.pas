/// The recording of a program's calls as data: a file that `lanemm replay` reads.
//
// Owns:       nothing; the file belongs to LaneMM.Recording.
// Format:     little-endian. A TRecordHead, then parts, each a TRecordPartHead and whole events,
//             filled up with zeros to words of eight bytes. An event begins with a number, value *
//             RecordKinds + TRecordKind. Of a block the value is the distance of its address from
//             that of the event before, divided by RecordUnit, then doubled, or -1 minus that if
//             it is negative. Numbers are written in groups of 7 bits, the lowest first; all but
//             the last group of a number have bit 7 set.
//             The events of all threads are in one order: what a thread frees, another one
//             allocates later.
// Callers:    LaneMM inside the process, and tools outside.
unit LaneMM.RecordFormat;

{$I ../LaneMM.inc}

interface

const
  /// First bytes of the file.
  RecordMagic = 'LaneRec'#10;
  /// Version of the file: raised when its format changes.
  RecordLayout = 1;
  /// Most bytes of the events of a part.
  RecordPartBytes = 65536;
  /// See above.
  RecordKinds = 8;
  RecordUnit = 8;
  /// The checksum of nothing.
  FnvStart = UInt64(14695981039346656037);

type
  /// The kinds of events.
  TRecordKind = (
    rkNew,      //< a block was allocated; its size follows
    rkZero,     //< a block of zeros was allocated; its size follows
    rkAligned,  //< an aligned block was allocated; the exponent of its alignment, its size follow
    rkFree,     //< a block is freed
    rkMoving,   //< a block is resized by the thread, whose next event is, unless that raises:
    rkMoved,    //< it was; the address is the new one, the size follows; 0: it was not resized
    rkThread,   //< the events from here on are of the thread of the system's number value
    rkEnd       //< the end, for the reason TRecordEnd; how many events of the kinds before rkThread
                //  there are, and the sum of their sizes follow
  );
  /// Why a recording ended.
  TRecordEnd = (
    reEnd,      //< the program ended, or switched it off
    reLimit     //< the file has as many bytes as the setting allows
  );

  /// The head of the file.
  TRecordHead = record
    Magic: array[0..7] of AnsiChar; //< const  RecordMagic
    Layout: Cardinal;               //< const  RecordLayout
    IsMalloc: Cardinal;             //< const  1: of the C library; 0: of a program in Pascal
  end;
  /// The head of a part.
  TRecordPartHead = record
    Bytes: UInt64;                  //< const  those of its events, without the zeros
    Checksum: UInt64;               //< const  Fnv1a of the events with the zeros
  end;

/// Returns the checksum Sum, FnvStart at first, with Bytes more at Words, rounded up to whole words
/// of eight bytes; FNV-1a, by words. Of other files, too.
function Fnv1a(Sum: UInt64; Words: PUInt64; Bytes: UInt64): UInt64;

implementation

{$push} {$Q-} {$R-}
function Fnv1a(Sum: UInt64; Words: PUInt64; Bytes: UInt64): UInt64;
var
  Index: NativeUInt;
begin
  Result := Sum;
  for Index := 1 to NativeUInt(Bytes + 7) div 8 do
  begin
    Result := (Result xor Words^) * UInt64(1099511628211);
    Inc(Words);
  end;
end;
{$pop}

end.
