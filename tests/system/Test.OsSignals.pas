/// Tests of LaneMM.OsSignals for Linux.
unit Test.OsSignals;

{$mode delphi}{$H+}

interface

uses
  BaseUnix, Test.Tools;

type
  TOsSignalsTests = class(TLaneTest)
  strict private
    Used: SigActionRec; // the action of the signal before
    procedure ExpectNoHandler;
    procedure Send(Flags: NativeUInt);
    procedure SendToAStackOfItsOwn;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure HandlerThatRunsIsFound;
    procedure WithoutAHandlerNoneIsFound;
    procedure HandlerOnAStackOfItsOwnIsFound;
    procedure HandlerOfASignalIsKnown;
    procedure SignalToAThreadThatHasEndedIsNone;
  end;

implementation

uses
  SysUtils, Syscall, testregistry, LaneMM.Os, LaneMM.OsSignals;

const
  UserSignal = 10;
  StackBytes = 64 shl 10; // more than the registers of any processor take

var
  SentCount: Integer;
  IsFound: Boolean;

procedure Look(Signal: Integer); cdecl;
begin
  Inc(SentCount);
  IsFound := OsHandlerIsBelow(NativeUInt(get_frame));
end;

procedure DoNothing(Signal: Integer); cdecl;
begin
end;

procedure TOsSignalsTests.SetUp;
begin
  SentCount := 0;
  IsFound := False;
  AssertTrue(FpSigAction(UserSignal, nil, @Used) = 0);
end;

procedure TOsSignalsTests.TearDown;
begin
  FpSigAction(UserSignal, @Used, nil);
end;

// Sends the signal to this thread, whose handler runs before the call returns.
procedure TOsSignalsTests.Send(Flags: NativeUInt);
var
  Action, Usual: SigActionRec;
begin
  Action := Default(SigActionRec);
  Action.sa_handler := SigActionHandler(@Look);
  AssertTrue(FpSigAction(UserSignal, @Action, nil) = 0);
  AssertTrue(FpSigAction(UserSignal, nil, @Usual) = 0);
  Usual.sa_flags := Usual.sa_flags or Flags; // the run-time library adds no place to return to then
  AssertTrue(FpSigAction(UserSignal, @Usual, nil) = 0);
  AssertTrue('the thread gets the signal', OsSignalSendTo(OsThreadId, UserSignal));
end;

procedure TOsSignalsTests.HandlerThatRunsIsFound;
begin
  Send(0);
  Same(1, SentCount, 'calls');
  AssertTrue('found', IsFound);
end;

procedure TOsSignalsTests.ExpectNoHandler;
begin
  AssertFalse('none is found', OsHandlerIsBelow(NativeUInt(get_frame)));
end;

// On a new stack: another one has words of handlers that have returned.
procedure TOsSignalsTests.WithoutAHandlerNoneIsFound;
begin
  AssertTrue(OsSignalSet(UserSignal, Look, suAgain));
  InThread(ExpectNoHandler);
end;

// The page behind the stack cannot be read.
procedure TOsSignalsTests.SendToAStackOfItsOwn;
type
  TStack = record
    Start: Pointer;
    Flags: LongInt;
    Size: NativeUInt;
  end;
const
  Disabled = 2;
var
  Stack, Before: TStack;
begin
  Stack := Default(TStack);
  Stack.Start := OsReserve(StackBytes + OsPageSize);
  Stack.Size := StackBytes;
  OsCommit(Stack.Start, StackBytes);
  AssertTrue(Do_SysCall(syscall_nr_sigaltstack, TSysParam(@Stack), TSysParam(@Before)) = 0);
  try
    Send(SA_ONSTACK);
  finally
    Stack.Flags := Disabled;
    Do_SysCall(syscall_nr_sigaltstack, TSysParam(@Stack), 0);
    OsRelease(Stack.Start, StackBytes + OsPageSize);
  end;
end;

procedure TOsSignalsTests.HandlerOnAStackOfItsOwnIsFound;
begin
  InThread(SendToAStackOfItsOwn);
  Same(1, SentCount, 'calls');
  AssertTrue('found', IsFound);
end;

procedure TOsSignalsTests.HandlerOfASignalIsKnown;
begin
  AssertFalse('none', OsSignalIs(UserSignal, Look));
  AssertTrue(OsSignalSet(UserSignal, Look, suAgain));
  AssertTrue('its own', OsSignalIs(UserSignal, Look));
  AssertFalse('another one', OsSignalIs(UserSignal, DoNothing));
end;

procedure TOsSignalsTests.SignalToAThreadThatHasEndedIsNone;
const
  NoThread = High(LongInt);
begin
  AssertFalse(OsSignalSendTo(NoThread, UserSignal));
end;

initialization
  RegisterTest(TOsSignalsTests);
end.
