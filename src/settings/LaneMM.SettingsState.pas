/// The state of settings/: what can be set at run time, and the values.
//
// Owns:       Settings. LaneMM.Settings has the words.
unit LaneMM.SettingsState;

{$I ../LaneMM.inc}

interface


uses
  LaneMM.Layout;


type
  /// What can be set at run time; LaneMM.Settings has the words.
  TOption = (opOff, opHelp, opContention, opGrowth, opProfile, opPprof, opFolded, opSpeedscope,
    opHtml, opTop, opLeast, opRate, opSignal, opHuge, opLog, opEvent,
    opLeaks, opLeaksExit, opLeaksFormat, opLeaksIgnore,
    opDebug, opCheck, opQuarantine, opFill, opFreeFill, opErase,
    opGuard, opBreak, opLimit, opLimitSoft, opReserve,
    opTrace, opTraceSize, opTraceNumber, opTraceGroup, opTraceClass, opTraceMost,
    opMixes);
  /// Files that a leak report can be written to besides the log, bits of opLeaksFormat.
  TLeakFormat = (lfJson, lfJunit, lfHeaptrc);
  /// When memory is filled with zeros, bits of opErase.
  TErasure = (erFree, erReturn);

  /// Numbers from First to Last.
  TSettingsRange = record
    First: NativeUInt;                    //< racy    lowest number
    Last: NativeUInt;                     //< racy    highest number
  end;
  /// The settings. A program changes them seldom and from one thread; a thread that reads an old
  /// value applies it to one event more.
  TSettings = record
    Values: array[TOption] of NativeUInt; //< racy    0 or 1, or a number
    LogPath: TPath;                       //< racy    of opLog; empty: beside the program
    Ranges: array[opTraceSize..opTraceGroup] of TSettingsRange; //< racy    of these options
    TraceClass: TPath;                    //< racy    of opTraceClass
    IgnorePath: TPath;                    //< racy    of opLeaksIgnore; empty: beside the program
  end;

var
  /// The settings as they are now.
  Settings: TSettings;

/// Returns whether a switch is on, or a number is not 0.
function IsSet(Option: TOption): Boolean; inline;

implementation
function IsSet(Option: TOption): Boolean;
begin
  Result := Settings.Values[Option] <> 0;
end;

end.
