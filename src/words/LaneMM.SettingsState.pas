/// The state of settings: the settings and their values.
//
// Owns:       Settings. LaneMM.Settings reads them.
unit LaneMM.SettingsState;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout;

const
  /// Highest and initial value of opDepth, the most frames of a backtrace.
  MaxFrames = 256;
  DefaultFrames = 64;
  /// Highest value of opLeaksDump.
  MostDump = 4096;

type
  /// The settings; LaneMM.Settings has their names.
  TOption = (opOff, opHelp, opQuiet, opContention, opGrowth, opProfile, opPprof, opFolded,
    opSpeedscope, opHtml, opJson, opTop, opLeast, opDepth, opHide, opRate, opTemporary, opEvery,
    opKeep, opBlackBox, opRecord, opRecordMost, opSignal, opLive, opAttach,
    opBackground, opCalls, opHuge, opLog,
    opLogMost, opSyslog, opDump, opEvent,
    opStacks, opAbort, opHard, opLeaks, opLeaksExit, opLeaksDump, opLeaksFormat, opLeaksIgnore,
    opDebug, opDebugExit, opDebugAbort, opCheck, opQuarantine, opFill, opFreeFill, opErase,
    opGuard, opBreak, opLimit, opLimitSoft, opLimitReport, opReserve,
    opTrace, opTraceSize, opTraceNumber, opTraceGroup, opTraceClass, opTraceMost,
    opMixes);
  /// Formats of the leak report besides the log, bits of opLeaksFormat.
  TLeakFormat = (lfJson, lfJunit, lfHeaptrc, lfHtml);
  /// When memory is filled, bits of opErase: blocks on free and pages before their purge with
  /// zeros, new blocks with opFill.
  TErasure = (erFree, erReturn, erNew);

  /// Some of the settings.
  TOptions = set of TOption;

  /// A range of numbers.
  TSettingsRange = record
    First: NativeUInt;                    //< racy    lowest number
    Last: NativeUInt;                     //< racy    highest number
  end;
  /// The values of the settings. A program changes them seldom and from one thread; a thread that
  /// reads an old value applies it to one event more.
  TSettings = record
    Values: array[TOption] of NativeUInt; //< racy    0 or 1, or a number
    SaysClean: Boolean;                   //< racy    the end says that nothing was found: `leaks`
                                          //  or `debug` was on at the start; not in child processes
    IsPrivileged: Boolean;                //< const   the process has more rights than its user
    Given: TOptions;                      //< racy    settings that a source has named so far
    Readers: TAtomicWord;                 //< shared  threads that are reading settings
    LogPath: TPath;                       //< racy    opLog; empty: beside the program
    SyslogPath: TPath;                    //< racy    opSyslog; empty: /dev/log
    Ranges: array[opTraceSize..opTraceGroup] of TSettingsRange; //< racy    ranges of these settings
    BoxPath: TPath;                       //< racy    of opBlackBox; empty: beside the logs
    RecordPath: TPath;                    //< racy    of opRecord
    HasContainer: Boolean;                //< racy    `limit=container`
    GroupPath: TPath;                     //< racy    where its files are; empty: /sys/fs/cgroup
    TraceClass: TPath;                    //< racy    opTraceClass, a pattern
    Hidden: TPath;                        //< racy    opHide: patterns, each ended by #0, then one
                                          //  more #0
    IgnorePath: TPath;                    //< racy    opLeaksIgnore; empty: beside the program
  end;

var
  /// The current settings.
  Settings: TSettings;

/// Returns whether a switch is on, or a number is not 0.
function IsSet(Option: TOption): Boolean; inline;
/// Returns whether allocations are sampled: for profiles, the black box, or reports at limits.
function IsSampling: Boolean; inline;
/// Returns whether freed blocks are erased.
function IsErasingFreed: Boolean; inline;
/// Returns whether new blocks are filled.
function IsErasingNew: Boolean; inline;

implementation

function IsSet(Option: TOption): Boolean;
begin
  Result := Settings.Values[Option] <> 0;
end;

function IsSampling: Boolean;
begin
  Result := IsSet(opProfile) or IsSet(opBlackBox) or IsSet(opLimitReport);
end;

function IsErasingFreed: Boolean;
begin
  Result := Odd(Settings.Values[opErase] shr Ord(erFree));
end;

function IsErasingNew: Boolean;
begin
  Result := Odd(Settings.Values[opErase] shr Ord(erNew));
end;

end.
