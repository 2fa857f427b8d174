/// The black box as data: a file that a process leaves when it is killed.
//
// Owns:       nothing; the file belongs to LaneMM.BlackBox.
// Invariants: little-endian. Head is constant from the moment when Magic is there. A part that
//             changes begins with a TBoxMark: Number is 0 while it is written, and comes last. The
//             halves are written in turn: the one with the higher number whose checksum is right
//             has the last words, the other one those before. The events are a ring.
// Callers:    LaneMM inside the process, and tools outside.
unit LaneMM.BoxFormat;

{$I ../LaneMM.inc}

interface

const
  /// First bytes of the file.
  BoxMagic = 'LaneBox'#10;
  /// Version of the file: raised when a record changes.
  BoxLayout = 2;
  /// Bytes of the file, of its head, and of the head with the events.
  BoxBytes = 256 * 1024;
  BoxHeadBytes = 512;
  BoxStartBytes = 8192;
  /// Bytes of an event, and events that it keeps.
  BoxEventBytes = 512;
  BoxEventCount = (BoxStartBytes - BoxHeadBytes) div BoxEventBytes;
  /// Characters of a half, and of an event.
  BoxTextBytes = (BoxBytes - BoxStartBytes) div 2 - 32;
  BoxEventTextBytes = BoxEventBytes - 32;

type
  /// What stays the same.
  TBoxHead = record
    Magic: array[0..7] of AnsiChar; //< const  BoxMagic
    Layout: Cardinal;               //< const  BoxLayout
    HalfBytes: Cardinal;            //< const  SizeOf(TBoxHalf)
    ProcessId: UInt64;              //< const  number of the process
    StartedSeconds: UInt64;         //< const  when the box was made, in seconds since 1970
  end;

  /// The first words of a part, before its text.
  TBoxMark = record
    Number: UInt64;                 //< shared  counts the parts of a kind, from 1; 0: being written
    Seconds: UInt64;                //< shared  when, in seconds since 1970
    Checksum: UInt64;               //< shared  of the three others and the text
    Length: UInt64;                 //< shared  characters of the text
  end;

  PBoxHalf = ^TBoxHalf;
  /// The state of the process at a moment, a JSON object.
  TBoxHalf = record
    Mark: TBoxMark;                 //< shared  its number, time and length
    Text: array[0..BoxTextBytes - 1] of AnsiChar; //< shared  UTF-8
  end;

  PBoxEvent = ^TBoxEvent;
  /// The first characters of a report, see LaneMM.Events.
  TBoxEvent = record
    Mark: TBoxMark;                 //< shared  its number, time and length
    Text: array[0..BoxEventTextBytes - 1] of AnsiChar; //< shared  UTF-8
  end;

  PBox = ^TBox;
  /// The file.
  TBox = record
    case Byte of
      0: (Head: TBoxHead);          //< const   what stays the same
      1: (
        HeadBytes: array[0..BoxHeadBytes - 1] of Byte; //< padding
        Events: array[0..BoxEventCount - 1] of TBoxEvent; //< shared  the last ones; each at its
                                    //  number modulo BoxEventCount
        Halves: array[0..1] of TBoxHalf; //< shared  the last two states
      );
  end;

/// Returns the checksum of a part whose Number will be Number, and of the text behind Mark.
function BoxChecksum(const Mark: TBoxMark; Number: UInt64): UInt64;

implementation

uses
  LaneMM.RecordFormat;

{$if SizeOf(TBox) <> BoxBytes}
  {$message fatal 'TBox: the fields no longer fit the file'}
{$ifend}

function BoxChecksum(const Mark: TBoxMark; Number: UInt64): UInt64;
begin
  Result := Fnv1a(FnvStart, @Number, SizeOf(Number));
  Result := Fnv1a(Result, @Mark.Seconds, SizeOf(Mark.Seconds));
  Result := Fnv1a(Result, @Mark.Length, SizeOf(Mark.Length));
  Result := Fnv1a(Result, PUInt64(PByte(@Mark) + SizeOf(Mark)), Mark.Length);
end;

end.
