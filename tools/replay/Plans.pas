/// Plans of calls that lanemm-replay repeats; see Recordings, which makes them.
unit Plans;

{$mode delphi}{$H+}
{$pointermath on}

interface

uses
  Classes;

type
  /// A call, or what is said besides.
  TPlanKind = (pkNew, pkFree, pkResize, pkMore);
  /// What is said besides: the thread that calls from now on, that it ends with this turn, that the next
  /// block is of zeros, that it is aligned to a power of two.
  TPlanMore = (pmThread, pmEnds, pmZero, pmAligned);

  /// The calls of a plan.
  TPlanCounts = record
    Allocations, Frees, Resizes: Int64;
    Bytes: Int64; //< sizes of allocations and resizes, all together
    /// Returns a line.
    function Text: string;
  end;

  /// A call, or what is said besides.
  TPlanCall = record
    Kind: TPlanKind;
    More: TPlanMore; //< of pkMore
    Slot: Cardinal;  //< of the block; of pkMore the number of the thread, or the exponent
    Size: Int64;     //< of pkNew and pkResize
  end;

  /// Reads a plan. Uses no heap.
  TPlanReader = record
  private
    Handle: THandle;
    Buffer: array[0..65535] of Byte;
    Filled, Place: Integer;
    function NextNumber(out Number: UInt64): Boolean;
  public
    /// Opens a file; raises EInOutError where that fails.
    procedure Open(const Path: string);
    /// Reads the next one; false at the end of the file, which stays open.
    function Next(out Call: TPlanCall): Boolean;
    /// Goes back to the first one.
    procedure Rewind;
    /// Closes the file.
    procedure Close;
  end;

  /// Writes a plan.
  TPlanWriter = class
  private
    Target: TStream;
    Buffer: array[0..65535] of Byte;
    Filled: Integer;
    procedure AddNumber(Number: UInt64);
  public
    constructor Create(Stream: TStream);
    /// Adds a call for a block.
    procedure Add(Slot: Integer; Kind: TPlanKind; Size: Int64 = 0); overload;
    /// Adds what is said besides.
    procedure Add(More: TPlanMore; Value: Integer); overload;
    /// Writes what is left.
    procedure Flush;
  end;

implementation

uses
  SysUtils;

const
  Kinds = 4;
  Mores = 4;

function TPlanCounts.Text: string;
begin
  Result := Format('%d allocations, %d frees, %d resizes, %d bytes', [Allocations, Frees, Resizes, Bytes]);
end;

// ---------------------------------------------------------------------------- TPlanReader

procedure TPlanReader.Open(const Path: string);
begin
  Handle := FileOpen(Path, fmOpenRead or fmShareDenyNone);
  if Handle = THandle(-1) then
    raise EInOutError.CreateFmt('%s: %s', [Path, SysErrorMessage(GetLastOSError)]);
  Filled := 0;
  Place := 0;
end;

procedure TPlanReader.Rewind;
begin
  FileSeek(Handle, Int64(0), fsFromBeginning);
  Filled := 0;
  Place := 0;
end;

procedure TPlanReader.Close;
begin
  FileClose(Handle);
end;

function TPlanReader.NextNumber(out Number: UInt64): Boolean;
var
  Shift: Integer;
  Group: Byte;
begin
  Number := 0;
  Shift := 0;
  repeat
    if Place = Filled then
    begin
      Filled := FileRead(Handle, Buffer, SizeOf(Buffer));
      Place := 0;
      if Filled <= 0 then
        Exit(False);
    end;
    Group := Buffer[Place];
    Inc(Place);
    Number := Number or UInt64(Group and 127) shl Shift;
    Inc(Shift, 7);
  until Group < 128;
  Result := True;
end;

function TPlanReader.Next(out Call: TPlanCall): Boolean;
var
  Number: UInt64;
begin
  Result := NextNumber(Number);
  if not Result then
    Exit;
  Call.Kind := TPlanKind(Number mod Kinds);
  Number := Number div Kinds;
  if Call.Kind = pkMore then
  begin
    Call.More := TPlanMore(Number mod Mores);
    Number := Number div Mores;
  end;
  Call.Slot := Number;
  Call.Size := 0;
  if Call.Kind in [pkNew, pkResize] then
  begin
    Result := NextNumber(Number);
    Call.Size := Number;
  end;
end;

// ---------------------------------------------------------------------------- TPlanWriter

constructor TPlanWriter.Create(Stream: TStream);
begin
  inherited Create;
  Target := Stream;
end;

procedure TPlanWriter.Flush;
begin
  Target.WriteBuffer(Buffer, Filled);
  Filled := 0;
end;

procedure TPlanWriter.AddNumber(Number: UInt64);
const
  MostBytes = 10;
begin
  if Filled > High(Buffer) - MostBytes then
    Flush;
  while Number > 127 do
  begin
    Buffer[Filled] := Byte(Number) or 128;
    Inc(Filled);
    Number := Number shr 7;
  end;
  Buffer[Filled] := Byte(Number);
  Inc(Filled);
end;

procedure TPlanWriter.Add(Slot: Integer; Kind: TPlanKind; Size: Int64);
begin
  AddNumber(UInt64(Slot) * Kinds + Ord(Kind));
  if Kind in [pkNew, pkResize] then
    AddNumber(Size);
end;

procedure TPlanWriter.Add(More: TPlanMore; Value: Integer);
begin
  AddNumber((UInt64(Value) * Mores + Ord(More)) * Kinds + Ord(pkMore));
end;

end.
