/// Tests of `lanemm selftest`: it passes here, and a suite fails where LaneMM does not do its work.
unit Test.Lanemm.SelfTests;

{$mode delphi}{$H+}

interface

uses
  Test.Lanemm.Tools;

type
  /// The command. In a folder of its own it starts a script in place of lanemm-replay, and a
  /// library that loses contents in place of LaneMM's.
  TSelfTestTests = class(TLanemmTest)
  private
    /// Calls `lanemm selftest --quick` with Options and such a script.
    procedure CallBeside(const Script, Options: string);
  published
    procedure AllSuitesPassHere;
    procedure EverySuiteFailsWithoutLaneMM;
    procedure ASuiteFailsWithoutItsReport;
    procedure WhatIsSkippedHasItsReason;
    procedure AnotherVersionIsRefused;
    procedure AMissingProgramIsNamed;
  end;

implementation

uses
  SysUtils, testregistry, LaneMM;

const
  SuiteCount = 19;
  Machine = '[ $2 = machine ] && exec ../../lanemm-replay "$@"; ';

procedure TSelfTestTests.CallBeside(const Script, Options: string);
begin
  Shell('mkdir -p beside; ln -f ../lanemm beside/lanemm; printf "#include <stdlib.h>\n'
    + 'void *realloc(void *old, size_t size) { return calloc(1, size); }\n" > beside/lost.c;'
    + ' gcc -w -O1 -fPIC -shared -o beside/lost.so beside/lost.c');
  WriteText('beside/lanemm-replay', '#!/bin/sh'#10'cd "$(dirname "$0")"'#10 + Script);
  Printed := Shell('chmod +x beside/lanemm-replay; LIBLANEMM=$PWD/beside/lost.so'
    + ' beside/lanemm selftest --quick ' + Options);
end;

// Of a machine that allows what the other tests of lanemm need, too.
procedure TSelfTestTests.AllSuitesPassHere;
begin
  Ask('selftest --quick --json');
  AssertEquals('version', LaneMM_Version, Answer.Strings['version']);
  Same(SuiteCount, Answer.Integers['passed'], 'suites in ' + Printed);
end;

procedure TSelfTestTests.EverySuiteFailsWithoutLaneMM;
begin
  CallBeside(Machine + 'LANEMM=off exec ../../lanemm-replay "$@"', '--json 2> beside/errors');
  Same(1, ExitStatus, 'exit code');
  TakeAnswer(Printed);
  Same(SuiteCount, Answer.Integers['failed'], 'suites in ' + Printed);
  Has(', seen other bytes', Item(Answer, 'suites', 'name', 'C library').Strings['text']);
end;

procedure TSelfTestTests.ASuiteFailsWithoutItsReport;
const
  Suites: array[0..7] of string = ('threads, debug mode', 'memory limit', 'overrun',
    'write after free', 'freed object', 'guard pages', 'leaks at the end', 'names in backtraces');
var
  Suite: string;
begin
  CallBeside(Machine + 'case $2 in blocks | threads | contents | malloc | fork | return | live) exit 0 ;; '
    + 'esac; LANEMM=event=all:stderr exec ../../lanemm-replay "$@"', '--json 2> beside/errors');
  TakeAnswer(Printed);
  for Suite in Suites do
  begin
    AssertEquals(Suite, 'failed', Item(Answer, 'suites', 'name', Suite).Strings['outcome']);
    Has('on stderr', Item(Answer, 'suites', 'name', Suite).Strings['text']);
  end;
end;

procedure TSelfTestTests.WhatIsSkippedHasItsReason;
begin
  CallBeside('case $2 in machine | live) exec ../../lanemm-replay "$@" ;; esac; echo not allowed here; exit 3',
    '2> beside/errors');
  Same(0, ExitStatus, 'exit code');
  Has(', 0 failed, 16 skipped', Printed);
  Has('fork beside threads'#10 + StringOfChar(' ', 19) + 'not allowed here'#10, Printed);
  Has(#10'| ' + LaneMM_Version + ', ', Printed);
end;

procedure TSelfTestTests.AnotherVersionIsRefused;
begin
  CallBeside('echo 0.0.1; echo; echo', '2>&1');
  Same(6, ExitStatus, 'exit code');
  Has('has LaneMM 0.0.1, this is ' + LaneMM_Version, Printed);
end;

procedure TSelfTestTests.AMissingProgramIsNamed;
begin
  CallBeside('', '; rm beside/lanemm-replay; beside/lanemm selftest --quick 2>&1');
  Same(1, ExitStatus, 'exit code');
  Has('the program lanemm-replay is missing', Printed);
end;

initialization
  RegisterTest(TSelfTestTests);
end.
