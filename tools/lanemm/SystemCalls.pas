/// The system calls of x86_64 in which threads wait.
unit SystemCalls;

{$mode delphi}{$H+}

interface

uses
  Targets;

const
  /// The call in which threads wait for each other.
  FutexCall = 202;
  /// Places of registers.
  R10 = 7; R9 = 8; R8 = 9; Rax = 10; Rdx = 12; Rsi = 13; Rdi = 14; CallNumber = 15; Pc = 16;
  /// The last of what a call returns that a stop has interrupted.
  LastRestart = -512;

type
  /// A system call.
  TSystemCall = record
    Number: Integer; //< as the system has it
    Name: string;    //< what a thread waits for in it
    /// `~` stays what it is where a stop interrupts it: the system goes on with it. Others return to
    /// the program, or some of them do. `@` its first argument is a descriptor. `+` it takes a limited
    /// time.
    Traits: string;
  end;

/// Returns the call with this number; without any traits if it is not known.
function SystemCallOf(Number: Int64): TSystemCall;
/// Takes the registers of a line of /proc: `running`; or the number of the system call, -1 for none,
/// with its arguments, the stack pointer and the program counter. The others are not known. Returns
/// whether the thread may be paused.
function RegistersOfLine(const Line: string; var Registers: TRegisters; var AreKnown: Boolean): Boolean;

implementation

uses
  SysUtils;

const
  RestartCall = 219; // a wait of limited time that was interrupted before
  Known: array[0..31] of TSystemCall = (
    (Number: FutexCall; Name: 'futex'; Traits: '~'),
    (Number: RestartCall; Name: 'a limited time'; Traits: '~+'),
    (Number: 35; Name: 'a limited time'; Traits: '~+'),
    (Number: 230; Name: 'a limited time'; Traits: '~+'),
    (Number: 7; Name: 'poll'; Traits: '~'),
    (Number: 271; Name: 'poll'; Traits: '~'),
    (Number: 23; Name: 'select'; Traits: '~'),
    (Number: 270; Name: 'select'; Traits: '~'),
    (Number: 34; Name: 'a signal'; Traits: '~'),
    (Number: 130; Name: 'a signal'; Traits: '~'),
    (Number: 128; Name: 'a signal'; Traits: ''),
    (Number: 61; Name: 'a child process'; Traits: '~'),
    (Number: 247; Name: 'a child process'; Traits: '~'),
    (Number: 72; Name: 'the lock of a file'; Traits: '~@'),
    (Number: 73; Name: 'the lock of a file'; Traits: '~@'),
    (Number: 0; Name: 'read'; Traits: '@'),
    (Number: 19; Name: 'read'; Traits: '@'),
    (Number: 1; Name: 'write'; Traits: '@'),
    (Number: 20; Name: 'write'; Traits: '@'),
    (Number: 42; Name: 'connect'; Traits: '@'),
    (Number: 43; Name: 'accept'; Traits: '@'),
    (Number: 288; Name: 'accept'; Traits: '@'),
    (Number: 44; Name: 'send'; Traits: '@'),
    (Number: 46; Name: 'send'; Traits: '@'),
    (Number: 45; Name: 'receive'; Traits: '@'),
    (Number: 47; Name: 'receive'; Traits: '@'),
    (Number: 299; Name: 'receive'; Traits: '@'),
    (Number: 232; Name: 'epoll'; Traits: '@'),
    (Number: 281; Name: 'epoll'; Traits: '@'),
    (Number: 441; Name: 'epoll'; Traits: '@'),
    (Number: 65; Name: 'a semaphore of the system'; Traits: ''),
    (Number: 426; Name: 'io_uring'; Traits: '@'));

function SystemCallOf(Number: Int64): TSystemCall;
begin
  for Result in Known do
    if Result.Number = Number then
      Exit;
  Result.Number := Number;
  Result.Name := Format('system call %d', [Number]);
  Result.Traits := '';
end;

function RegistersOfLine(const Line: string; var Registers: TRegisters; var AreKnown: Boolean): Boolean;
const
  Arguments: array[0..5] of Integer = (Rdi, Rsi, Rdx, R10, R8, R9);
var
  Parts: TStringArray;
  Index: Integer;
  Number: Int64;
begin
  Parts := Trim(Line).Split([' ']);
  Result := (Length(Parts) < 3) or not TryStrToInt64(Parts[0], Number);
  if Result then
    Exit;
  AreKnown := True;
  Registers[CallNumber] := UInt64(Number);
  Registers[Rax] := UInt64(Int64(LastRestart));
  for Index := 1 to High(Parts) - 2 do
    Registers[Arguments[Index - 1]] := StrToQWord(Parts[Index]);
  Registers[StackRegister] := StrToQWord(Parts[High(Parts) - 1]);
  Registers[Pc] := StrToQWord(Parts[High(Parts)]);
  Result := (Number < 0) or SystemCallOf(Number).Traits.StartsWith('~');
end;

end.
