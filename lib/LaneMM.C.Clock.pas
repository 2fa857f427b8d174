/// The clock of libc itself, for the shared library.
//
// Owns:       LibcClock; the name clock_gettime within this library.
// What:       a library that is preloaded beside this one may have a clock_gettime of its own, as
//             libfaketime does: it allocates at its first call, which comes while this library starts, and
//             its time may stand still.
// Callers:    any thread, also the dynamic loader before libc has started.
// Source:     man-pages 2, clock_gettime.
unit LaneMM.C.Clock;

{$I ../src/LaneMM.inc}

interface

implementation

uses
  LaneMM.C.Libc, LaneMM.C.Modules;

var
  // racy    the clock; two threads write the same.
  LibcClock: function(Clock: LongInt; Time: Pointer): LongInt; cdecl;

procedure FindClock;
const
  Name = 'clock_gettime';
var
  Symbol: PSymbol;
begin
  Symbol := nil;
  if LibcFind then
    Symbol := NamesFind(Libc.Names, Name);
  if Symbol <> nil then
    @LibcClock := Pointer(Libc.Names.Base + Symbol^.Value)
  else
    @LibcClock := ModulesFind(Name);
end;

// LaneMM.Os refers to it.
function OwnClock(Clock: LongInt; Time: Pointer): LongInt; cdecl;
  [public, alias: 'clock_gettime'];
begin
  if @LibcClock = nil then
    FindClock;
  Result := LibcClock(Clock, Time);
end;

end.
