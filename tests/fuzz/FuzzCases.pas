/// What the kinds of cases share: a generator, damage to text, and child processes.
unit FuzzCases;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  /// How a child process ended.
  TOutcome = record
    Status: LongInt;      // as of wait
    Kilobytes: Int64;     // most resident memory
  end;

var
  Random: TGenerator;
  /// The folder where everything is written.
  Scratch: string;

/// One of the texts.
function OneOf(const Texts: array of string): string;
/// Changes, removes, repeats and inserts some bytes; never a #0 or a slash, which would lead to
/// other folders.
function Damaged(const Text: string): string;
/// Random bytes without #0 and slash.
function RandomText(Length: Integer): string;

/// Starts a child process: 0 in the child, whose time and memory are limited from now on.
function StartChild: LongInt;
/// Waits for its end.
function AwaitChild(Child: LongInt): TOutcome;
/// Ends the child process at once.
procedure EndChild(Code: Integer);
/// Returns what is wrong with the end of a child, or ''.
function Complaint(const Outcome: TOutcome): string;

function ReadBytes(const FileName: string): string;
procedure WriteBytes(const FileName, Bytes: string);

implementation

uses
  SysUtils, Classes, BaseUnix, Syscall;

const
  SecondsOfCpu = 20;
  SecondsAtAll = 200;          // on a busy machine
  MostKilobytes = 300 * 1024;

type
  TResourceUse = record
    Times: array[0..3] of Int64;
    Kilobytes: Int64;
    Others: array[0..20] of Int64;
  end;

function OneOf(const Texts: array of string): string;
begin
  Result := Texts[Random.Below(Length(Texts))];
end;

function RandomChar: AnsiChar;
begin
  repeat
    Result := AnsiChar(Random.Below(256));
    if Random.Below(2) = 0 then
      Result := OneOf(['=', ':', ',', '*', '-', '#', '0', '9', 'K', ' ', #10, 'a'])[1];
  until not (Result in [#0, '/']);
end;

function RandomText(Length: Integer): string;
var
  Index: Integer;
begin
  SetLength(Result, Length);
  for Index := 1 to Length do
    Result[Index] := RandomChar;
end;

function Damaged(const Text: string): string;
var
  Turn, Place: Integer;
begin
  Result := Text;
  for Turn := 0 to Random.Below(4) do
  begin
    Place := Random.Below(Length(Result) + 1) + 1;
    case Random.Below(5) of
      0: Delete(Result, Place, 1 + Random.Below(8));
      1: Insert(RandomChar, Result, Place);
      2: Insert(Copy(Result, Place, Random.Below(20)), Result, Place);
      3: Insert(StringOfChar(RandomChar, 1 shl Random.Below(12)), Result, Place);
    else
      if Place <= Length(Result) then
        Result[Place] := RandomChar;
    end;
  end;
end;

function ReadBytes(const FileName: string): string;
var
  Stream: TFileStream;
begin
  Stream := TFileStream.Create(FileName, fmOpenRead);
  SetLength(Result, Stream.Size);
  if Result <> '' then
    Stream.ReadBuffer(Result[1], Length(Result));
  Stream.Free;
end;

procedure WriteBytes(const FileName, Bytes: string);
var
  Stream: TFileStream;
begin
  Stream := TFileStream.Create(FileName, fmCreate);
  if Bytes <> '' then
    Stream.WriteBuffer(Bytes[1], Length(Bytes));
  Stream.Free;
end;

// ---------------------------------------------------------------------------- child processes

procedure Limit(Resource: Integer; Value: NativeUInt);
var
  Limits: TRLimit;
begin
  Limits.rlim_cur := Value;
  Limits.rlim_max := Value;
  FpSetRLimit(Resource, @Limits);
end;

function StartChild: LongInt;
begin
  Result := FpFork;
  if Result < 0 then
    raise EOSError.Create('no child process can be started');
  if Result > 0 then
    Exit;
  FpSignal(SIGSEGV, SignalHandler(SIG_DFL));
  FpSignal(SIGBUS, SignalHandler(SIG_DFL));
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_CPU, SecondsOfCpu);
  FpAlarm(SecondsAtAll);
end;

function AwaitChild(Child: LongInt): TOutcome;
var
  Used: TResourceUse;
begin
  FillChar(Used, SizeOf(Used), 0);
  Do_SysCall(syscall_nr_wait4, Child, TSysParam(@Result.Status), 0, TSysParam(@Used));
  Result.Kilobytes := Used.Kilobytes;
end;

procedure EndChild(Code: Integer);
begin
  Do_SysCall(syscall_nr_exit_group, Code);
end;

function Complaint(const Outcome: TOutcome): string;
begin
  Result := '';
  if WIfSignaled(Outcome.Status) then
    Result := 'ended by signal ' + IntToStr(WTermSig(Outcome.Status))
  else if Outcome.Kilobytes > MostKilobytes then
    Result := 'took ' + IntToStr(Outcome.Kilobytes) + ' KB';
end;

end.
