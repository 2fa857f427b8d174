/// FastMM5's events: which of LaneMM's they are, and where their reports go.
//
// Owns:       nothing; the targets are those of LaneMM_EventTargets.
// Callers:    any thread.
unit LaneMM.Compat.Events;

{$I ../LaneMM.inc}

interface

uses
  LaneMM;

type
  /// Kinds of events. The first three never occur; both kinds of leaks are the event evLeaks, both
  /// uses of freed blocks evDoubleFree.
  TFastMM_MemoryManagerEventType = (
    mmetAnotherThirdPartyMemoryManagerAlreadyInstalled,
    mmetCannotInstallAfterDefaultMemoryManagerHasBeenUsed,
    mmetCannotSwitchToSharedMemoryManagerWithLivePointers,
    mmetUnexpectedMemoryLeakDetail, mmetUnexpectedMemoryLeakSummary, mmetDebugBlockDoubleFree,
    mmetDebugBlockReallocOfFreedBlock, mmetDebugBlockHeaderCorruption,
    mmetDebugBlockFooterCorruption, mmetDebugBlockModifiedAfterFree,
    mmetVirtualMethodCallOnFreedObject);
  TFastMM_MemoryManagerEventTypeSet = set of TFastMM_MemoryManagerEventType;

/// Returns the events whose reports have the target; leaks also need the setting.
function EventsTo(Target: TLaneMM_EventTarget): TFastMM_MemoryManagerEventTypeSet;
/// Sets the events whose reports have the target; the kinds of leaks set the setting `leaks`.
procedure SetEventsTo(Target: TLaneMM_EventTarget; Events: TFastMM_MemoryManagerEventTypeSet);

implementation

type
  TEventKinds = set of TLaneMM_EventKind;

const
  LeakEvents = [mmetUnexpectedMemoryLeakDetail, mmetUnexpectedMemoryLeakSummary];
  KindsOf: array[TFastMM_MemoryManagerEventType] of TEventKinds = ([], [], [], [evLeaks], [evLeaks],
    [evDoubleFree], [evDoubleFree], [evWriteBefore, evBookkeeping], [evWriteAfter],
    [evWriteAfterFree], [evFreedCall]);
  AllKinds = [evLeaks, evDoubleFree, evWriteBefore, evBookkeeping, evWriteAfter, evWriteAfterFree,
    evFreedCall];

// Returns whether there are kinds, and all of them have the target.
function HasTarget(const Kinds: TEventKinds; Target: TLaneMM_EventTarget): Boolean;
var
  Kind: TLaneMM_EventKind;
begin
  Result := Kinds <> [];
  for Kind := Low(Kind) to High(Kind) do
    if Kind in Kinds then
      Result := Result and (Target in LaneMM_EventTargets(Kind));
end;

function EventsTo(Target: TLaneMM_EventTarget): TFastMM_MemoryManagerEventTypeSet;
var
  Event: TFastMM_MemoryManagerEventType;
begin
  Result := [];
  for Event := Low(Event) to High(Event) do
    if HasTarget(KindsOf[Event], Target) then
      Include(Result, Event);
  if LaneMM_Settings.Values[opLeaks] = 0 then
    Result := Result - LeakEvents;
end;

procedure SetTarget(Kind: TLaneMM_EventKind; Target: TLaneMM_EventTarget; IsWanted: Boolean);
var
  Targets: TLaneMM_EventTargets;
begin
  Targets := LaneMM_EventTargets(Kind) - [Target];
  if IsWanted then
    Include(Targets, Target);
  LaneMM_SetEventTargets(Kind, Targets);
end;

procedure SetEventsTo(Target: TLaneMM_EventTarget; Events: TFastMM_MemoryManagerEventTypeSet);
var
  Event: TFastMM_MemoryManagerEventType;
  Kind: TLaneMM_EventKind;
  Kinds: TEventKinds;
begin
  Kinds := [];
  for Event := Low(Event) to High(Event) do
    if Event in Events then
      Kinds := Kinds + KindsOf[Event];
  for Kind := Low(Kind) to High(Kind) do
    if Kind in AllKinds then
      SetTarget(Kind, Target, Kind in Kinds);
  if Events * LeakEvents <> [] then
    LaneMM_ReportMemoryLeaksOnShutdown;
end;

end.
