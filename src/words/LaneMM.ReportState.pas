/// The state of reports: the rules of events, the callback, replaced messages.
//
// Owns:       Report.
unit LaneMM.ReportState;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Text;

type
  /// The kinds of events; LaneMM.EventRules has their names.
  TEventKind = (
    evLeaks,           //< leaks at the end, blocks in use, or growth between two snapshots
    evDoubleFree,      //< double free
    evInvalidFree,     //< invalid free: the pointer is no block in use
    evWriteBefore,     //< underrun of a block
    evWriteAfter,      //< overrun of a block
    evWriteAfterFree,  //< use after free: a freed block was written
    evFreedCall,       //< use after free: a method of a freed object was called, its class read
    evWrongSize,       //< free with a size that is not the block's
    evUninitialised,   //< contents of a new or freed block used as an address
    evGuard,           //< access to a guard page
    evBookkeeping,     //< corrupt bookkeeping record of a block
    evNumber,          //< allocation of the number that the setting `break` names
    evMismatch,        //< mismatched free: New or an object with FreeMem; in C++, families
    evAllocation,      //< allocation of a chosen block
    evFree,            //< free of a chosen block
    evLimit,           //< the heap reached a limit, or the emergency reserve is in use
    evCorruption       //< a free block was overwritten, or a block freed twice, found in any mode
  );
  /// The targets of reports: the event log, stderr, the callback, the system's log.
  TEventTarget = (etFile, etScreen, etCall, etSystemLog);
  /// A set of targets.
  TEventTargets = set of TEventTarget;
  /// The rule for events of one kind.
  TEventRule = record
    Count: TAtomicWord;       //< shared  events of this kind so far
    Targets: TEventTargets;   //< racy    targets of the reports; an old value of this and of the
                              //  next three applies to one event more
    IsOnce: Boolean;          //< racy    only the first event is reported
    Halts: Boolean;           //< racy    the program ends after the report
    ExitCode: Byte;           //< racy    its exit code then
  end;
  /// The rules of all kinds.
  TEventRules = array[TEventKind] of TEventRule;
  /// Receives the report of an event, in the thread that caused or detected it; may use the heap.
  /// Text has Length bytes and is valid during the call only.
  TEventCall = procedure(Kind: TEventKind; Text: PAnsiChar; Length: NativeUInt);

  /// What a tool may get: the path of a file that was written, a message for stderr, the text of an
  /// event.
  TTellKind = (tkFile, tkMessage, tkEvent);
  /// Passes text to the tool that the calling thread answers; returns whether it answers one.
  TTellCall = function(Kind: TTellKind; Text: PAnsiChar; Length: NativeUInt): Boolean;

  /// The state that the room shares.
  TReport = record
    Rules: TEventRules;     //< racy    the rules by kind, see LaneMM.EventRules
    Call: TEventCall;       //< racy    the callback; nil: none. An old one may get one event more
    Keep: TEventCall;       //< racy    keeps events, see LaneMM.BlackBox; nil: nothing does
    Tell: TTellCall;        //< racy    see LaneMM.Mailbox; nil: no tool has asked so far
    Aborts: Boolean;        //< racy    a reported memory error ends the process, see LaneMM.Events
    DamageCount: TAtomicWord; //< shared  reported memory errors, see LaneMM.Events
    LogState: TAtomicWord;  //< shared  bits of LaneMM.LogFile
    SystemLogFailures: TAtomicWord; //< shared  reports that the system's log has not taken
    Messages: TAtomicWord;  //< shared  replaced messages, see LaneMM.Messages; 0: none
  end;

var
  /// The state of reports.
  Report: TReport;

/// Passes text to the tool outside of the process that the calling thread answers. Returns False
/// when it answers none.
function ReportTaken(Kind: TTellKind; Text: PAnsiChar; Length: NativeUInt): Boolean;
/// Passes `LaneMM: `, Line and the end of the line, at most 240 characters, to that tool, or prints
/// it to stderr.
procedure ReportSayLine(const Line: ShortString);
/// The same of a text and the end of its line; closes it.
procedure ReportSayText(var Text: TText);

implementation

uses
  LaneMM.Os, LaneMM.OsFiles;

function ReportTaken(Kind: TTellKind; Text: PAnsiChar; Length: NativeUInt): Boolean;
begin
  Result := (@Report.Tell <> nil) and Report.Tell(Kind, Text, Length);
end;

procedure ReportSay(Message: PAnsiChar; Length: NativeUInt);
begin
  if not ReportTaken(tkMessage, Message, Length) then
    OsFileWrite(OsStandardError, Message, Length); // no signal where nothing reads it
end;

procedure ReportSayLine(const Line: ShortString);
const
  Prefix: ShortString = 'LaneMM: ';
var
  Whole: array[0..High(Byte)] of AnsiChar;
begin
  Move(Prefix[1], Whole, Length(Prefix));
  Move(Line[1], Whole[Length(Prefix)], Length(Line));
  Whole[Length(Prefix) + Length(Line)] := #10;
  ReportSay(@Whole, Length(Prefix) + Length(Line) + 1);
end;

procedure ReportSayText(var Text: TText);
begin
  TextAdd(Text, LineEnd);
  ReportSay(Text.Start, Text.Length);
  TextClose(Text);
end;

end.
