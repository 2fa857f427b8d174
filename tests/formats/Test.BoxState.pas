/// Tests of LaneMM.BoxState: the points in time that a black box keeps.
unit Test.BoxState;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.BoxState;

type
  TBoxStateTests = class(TLaneTest)
  strict private
    State: PBoxState;
    procedure NoteAt(Seconds: UInt64);
    function SecondsAt(Index: Integer): Int64;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure PointsAreASecondApart;
    procedure PointsAreKeptWhereTheClockWasSetBack;
    procedure CallSitesAreKeptWhereTheClockWasSetBack;
  end;

implementation

uses
  testregistry;

const
  Start = 1000000;
  Earlier = 900000; // what the clock is set back to

procedure TBoxStateTests.SetUp;
begin
  New(State);
  FillChar(State^, SizeOf(State^), 0);
end;

procedure TBoxStateTests.TearDown;
begin
  Dispose(State);
end;

procedure TBoxStateTests.NoteAt(Seconds: UInt64);
var
  Point: TBoxPoint;
begin
  Point := Default(TBoxPoint);
  Point.Seconds := Seconds;
  BoxNotePoint(State^, Point);
end;

function TBoxStateTests.SecondsAt(Index: Integer): Int64;
begin
  Result := State^.Points[raSecond].Items[Index].Seconds;
end;

procedure TBoxStateTests.PointsAreASecondApart;
begin
  NoteAt(Start);
  NoteAt(Start);
  NoteAt(Start + 1);
  Same(2, State^.Points[raSecond].Count, 'points by the second');
  Same(1, State^.Points[raMinute].Count, 'points by the minute');
end;

procedure TBoxStateTests.PointsAreKeptWhereTheClockWasSetBack;
begin
  NoteAt(Start);
  NoteAt(Start + 1);
  NoteAt(Earlier);
  NoteAt(Earlier + 1);
  Same(3, State^.Points[raSecond].Count, 'points');
  Same(Earlier - 1, SecondsAt(0), 'the first');
  Same(Earlier, SecondsAt(1), 'the last before');
  Same(Earlier + 1, SecondsAt(2), 'the one after');
end;

procedure TBoxStateTests.CallSitesAreKeptWhereTheClockWasSetBack;
begin
  BoxNoteTime(State^, Start);
  BoxNoteTime(State^, Earlier);
  Same(Earlier, State^.Earlier[0].Seconds, 'the last time');
  BoxNoteTime(State^, Earlier + BoxEarlierSeconds);
  Same(Earlier + BoxEarlierSeconds, State^.Earlier[0].Seconds, 'the time after');
  Same(Earlier, State^.Earlier[1].Seconds, 'the one before it');
end;

initialization
  RegisterTest(TBoxStateTests);
end.
