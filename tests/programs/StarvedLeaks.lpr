/// Lets LaneMM look for leaks while the process may get little more memory.
///   StarvedLeaks end SPARE    leaks 200,000 blocks, and ends with SPARE KB of addresses to spare
///   StarvedLeaks none SPARE   the same without a block in use
///   StarvedLeaks hold SPARE   the same with blocks that a running thread holds
///   StarvedLeaks full MOST    holds objects until there are no more than MOST KB of data beside those before
///   StarvedLeaks alike MOST   the same with 16 MB of large blocks of one size, and 16 MB of another
///   StarvedLeaks report MOST  reports the blocks in use with 0 to MOST KB to spare, in steps of 4 KB,
///                             which must release what they take and nothing else
program StarvedLeaks;

{$mode delphi}{$H+}{$pointermath on}

uses
  LaneMM, cthreads, BaseUnix, SysUtils, Promises;

const
  PageSize = 4096;
  DataSize = 2;     // RLIMIT_DATA
  DataField = 6;
  AddressSpace = 9; // RLIMIT_AS
  LeakedCount = 200000;

type
  TRow = class
    Next: TRow;
    Data: array[0..99] of Int64;
  end;

var
  Rows: TRow;
  Block: Pointer;
  IsHeld: Boolean;

// Returns the bytes of all mappings, or, Field 6, those of data and stack.
function MappedBytes(Field: Integer = 1): NativeUInt;
var
  Line: array[0..99] of AnsiChar;
  Start: PAnsiChar;
  Handle: cint;
  Code: Integer;
begin
  Handle := FpOpen('/proc/self/statm', O_RDONLY);
  FillChar(Line, SizeOf(Line), ' ');
  FpRead(Handle, @Line, SizeOf(Line) - 1);
  FpClose(Handle);
  Start := @Line;
  while Field > 1 do
  begin
    Dec(Field, Ord(Start^ = ' '));
    Inc(Start);
  end;
  Val(Copy(Start, 1, Pos(' ', Start) - 1), Result, Code);
  Expect(Code = 0, 'the system says how much is mapped');
  Result := Result * PageSize;
end;

procedure LimitTo(Bytes: rlim_t; Resource: cint = AddressSpace);
var
  Limits: TRLimit;
begin
  FpGetRLimit(Resource, @Limits);
  Limits.rlim_cur := Bytes;
  if Bytes > Limits.rlim_max then
    Limits.rlim_cur := Limits.rlim_max;
  Expect(FpSetRLimit(Resource, @Limits) = 0, 'the limit is set');
end;

// Uses the stack that calls will use, so that it need not grow.
procedure FillStack;
var
  Space: array[0..524287] of Byte;
begin
  FillChar(Space, SizeOf(Space), 0);
end;

procedure LeakAndEnd(Count: Integer; Spare: NativeUInt);
var
  Index: Integer;
begin
  for Index := 1 to Count do
    GetMem(Block, 100);
  Block := nil;
  FillStack;
  LimitTo(MappedBytes + Spare);
end;

// Holds a list for ever.
function Hold(Unused: Pointer): PtrInt;
var
  Head, Next: PPointer;
  Index: Integer;
begin
  Head := nil;
  for Index := 1 to LeakedCount do
  begin
    GetMem(Next, 100);
    Next^ := Head;
    Head := Next;
  end;
  IsHeld := True;
  while Head <> nil do
    Sleep(1000);
  Result := 0;
end;

procedure HoldAndEnd(Spare: NativeUInt);
begin
  BeginThread(Hold);
  while not IsHeld do
    Sleep(1);
  FillStack;
  LimitTo(MappedBytes + Spare);
end;

// Takes blocks of two sizes that have as many bytes.
procedure TakeLarge;
var
  Index: Integer;
begin
  for Index := 1 to 16 do
    GetMem(Block, 1 shl 20);
  for Index := 1 to 8 do
    GetMem(Block, 2 shl 20);
end;

procedure FillMemory(Most: NativeUInt);
var
  Row: TRow;
begin
  LimitTo(MappedBytes(DataField) + Most, DataSize);
  try
    repeat
      Row := TRow.Create; // planted: row
      Row.Next := Rows;
      Rows := Row;
    until False;
  except
    on EOutOfMemory do;
  end;
  LimitTo(High(rlim_t), DataSize);
  Expect(Rows <> nil, 'there was memory at first');
end;

// Returns how often LaneMM has released addresses.
function ReleaseCount: NativeUInt;
begin
  Result := LaneMM_HeapStatus.OsCalls[ocRelease];
end;

procedure ReportInUse(Most: NativeUInt);
var
  Spare, Mapped, Released: NativeUInt;
begin
  FillStack;
  LaneMM_ReportMemoryInUse; // what it keeps is mapped from now on
  Mapped := MappedBytes;
  Spare := 0;
  repeat
    Released := ReleaseCount;
    LimitTo(Mapped + Spare);
    LaneMM_ReportMemoryInUse;
    LimitTo(High(rlim_t));
    Expect((Spare > 0) or (ReleaseCount = Released), 'without memory nothing is released');
    Expect(MappedBytes = Mapped, 'as much is mapped as before');
    Inc(Spare, PageSize);
  until Spare > Most;
end;

begin
  if ParamStr(1) = 'end' then
    LeakAndEnd(LeakedCount, StrToInt(ParamStr(2)) * 1024)
  else if ParamStr(1) = 'none' then
    LeakAndEnd(0, StrToInt(ParamStr(2)) * 1024)
  else if ParamStr(1) = 'hold' then
    HoldAndEnd(StrToInt(ParamStr(2)) * 1024)
  else if ParamStr(1) = 'full' then
    FillMemory(StrToInt(ParamStr(2)) * 1024)
  else if ParamStr(1) = 'alike' then
  begin
    TakeLarge;
    FillMemory(StrToInt(ParamStr(2)) * 1024);
  end
  else
  begin
    ReportInUse(StrToInt(ParamStr(2)) * 1024);
    Finish;
  end;
end.
