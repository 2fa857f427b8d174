/// Tests that a library which is unloaded leaves nothing behind that leads into its code, in a program
/// without LaneMM.
unit Test.Unloading;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, Test.Programs;

type
  TUnloadingTests = class(TLaneTest)
  strict private
    Library_, Host: TTestProgram;
    procedure ExpectNothingLeft(const Settings: string; const What: string = 'handlers');
    procedure ExpectSameMemory(const Settings, What: string);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure SignalsAndFilesAreThoseOfBefore;
    procedure SignalsAndFilesAreThoseOfBeforeInDebugMode;
    procedure SignalsOfASettingAreFreeAgain;
    procedure FaultAfterwardsIsTheProgramsOwn;
    procedure MemoryIsThatOfTheFirstLoads;
    procedure MemoryIsThatOfTheFirstLoadsInDebugMode;
    procedure MemoryIsThatOfTheFirstLoadsWithReports;
    procedure LibraryWithThreadsLeavesTwoPagesOfTheRunTimeLibrary;
    procedure BlocksInUseStayReadableAndNoMoreIsKept;
    procedure ThreadThatStaysIsServedByEachLoad;
    procedure TwoCopiesAtOnceLeaveNothing;
  end;

implementation

uses
  testregistry;

const
  Options = '-O1 -Cg -gl -Xs-';

procedure TUnloadingTests.SetUp;
begin
  Library_ := TTestProgram.Create('Plugin', Options);
  Host := TTestProgram.Create('Loader', Options);
end;

procedure TUnloadingTests.TearDown;
begin
  Library_.Free;
  Host.Free;
end;

procedure TUnloadingTests.ExpectSameMemory(const Settings, What: string);
begin
  Library_.Free;
  Host.Free;
  Library_ := TTestProgram.Create('Plugin', Options + ' -dPLAIN');
  Host := TTestProgram.Create('Loader', Options + ' -dPLAIN');
  ExpectNothingLeft(Settings, What);
end;

procedure TUnloadingTests.ExpectNothingLeft(const Settings, What: string);
begin
  Host.Run(Settings, [What]);
  AssertEquals(Settings, '', Host.Errors);
  Host.EndedWith(0, Settings);
end;

procedure TUnloadingTests.SignalsAndFilesAreThoseOfBefore;
begin
  ExpectNothingLeft('');
end;

procedure TUnloadingTests.SignalsAndFilesAreThoseOfBeforeInDebugMode;
begin
  ExpectNothingLeft('debug,leaks');
end;

procedure TUnloadingTests.SignalsOfASettingAreFreeAgain;
begin
  ExpectNothingLeft('contention,signal=12,log=/dev/null');
end;

procedure TUnloadingTests.FaultAfterwardsIsTheProgramsOwn;
const
  Unhandled = 217;
begin
  Host.Run('debug', ['fault']);
  Host.EndedWith(Unhandled);
  Has('EAccessViolation', Host.Errors);
end;

procedure TUnloadingTests.MemoryIsThatOfTheFirstLoads;
begin
  ExpectSameMemory('', 'memory');
end;

procedure TUnloadingTests.MemoryIsThatOfTheFirstLoadsInDebugMode;
begin
  ExpectSameMemory('debug,guard=pages,quarantine=1M,log=/dev/null', 'memory');
end;

procedure TUnloadingTests.MemoryIsThatOfTheFirstLoadsWithReports;
begin
  ExpectSameMemory('leaks,stacks,contention,growth,log=/dev/null', 'memory');
end;

// cthreads leaves them, without LaneMM too.
procedure TUnloadingTests.LibraryWithThreadsLeavesTwoPagesOfTheRunTimeLibrary;
begin
  ExpectNothingLeft('', 'pages');
end;

procedure TUnloadingTests.BlocksInUseStayReadableAndNoMoreIsKept;
begin
  ExpectSameMemory('', 'blocks');
end;

procedure TUnloadingTests.ThreadThatStaysIsServedByEachLoad;
begin
  ExpectSameMemory('', 'thread');
end;

procedure TUnloadingTests.TwoCopiesAtOnceLeaveNothing;
begin
  ExpectSameMemory('', 'two');
end;

initialization
  RegisterTest(TUnloadingTests);
end.
