#!/bin/sh
DoExitAsm ()
{ echo "An error occurred while assembling $1"; exit 1; }
DoExitLink ()
{ echo "An error occurred while linking $1"; exit 1; }
echo Assembling lanemm.layout
/usr/bin/as --64 -o build/lib/units/LaneMM.Layout.o   build/lib/units/LaneMM.Layout.s
if [ $? != 0 ]; then DoExitAsm lanemm.layout; fi
rm build/lib/units/LaneMM.Layout.s
echo Assembling lanemm.types
/usr/bin/as --64 -o build/lib/units/LaneMM.Types.o   build/lib/units/LaneMM.Types.s
if [ $? != 0 ]; then DoExitAsm lanemm.types; fi
rm build/lib/units/LaneMM.Types.s
echo Assembling lanemm.hooks
/usr/bin/as --64 -o build/lib/units/LaneMM.Hooks.o   build/lib/units/LaneMM.Hooks.s
if [ $? != 0 ]; then DoExitAsm lanemm.hooks; fi
rm build/lib/units/LaneMM.Hooks.s
echo Assembling lanemm.atomic
/usr/bin/as --64 -o build/lib/units/LaneMM.Atomic.o   build/lib/units/LaneMM.Atomic.s
if [ $? != 0 ]; then DoExitAsm lanemm.atomic; fi
rm build/lib/units/LaneMM.Atomic.s
echo Assembling lanemm.bits
/usr/bin/as --64 -o build/lib/units/LaneMM.Bits.o   build/lib/units/LaneMM.Bits.s
if [ $? != 0 ]; then DoExitAsm lanemm.bits; fi
rm build/lib/units/LaneMM.Bits.s
echo Assembling lanemm.os
/usr/bin/as --64 -o build/lib/units/LaneMM.Os.o   build/lib/units/LaneMM.Os.s
if [ $? != 0 ]; then DoExitAsm lanemm.os; fi
rm build/lib/units/LaneMM.Os.s
echo Assembling lanemm.c.errno
/usr/bin/as --64 -o build/lib/units/LaneMM.C.Errno.o   build/lib/units/LaneMM.C.Errno.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.errno; fi
rm build/lib/units/LaneMM.C.Errno.s
echo Assembling lanemm.c.rtl
/usr/bin/as --64 -o build/lib/units/LaneMM.C.Rtl.o   build/lib/units/LaneMM.C.Rtl.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.rtl; fi
rm build/lib/units/LaneMM.C.Rtl.s
echo Assembling lanemm.c.modules
/usr/bin/as --64 -o build/lib/units/LaneMM.C.Modules.o   build/lib/units/LaneMM.C.Modules.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.modules; fi
rm build/lib/units/LaneMM.C.Modules.s
echo Assembling lanemm.c.libc
/usr/bin/as --64 -o build/lib/units/LaneMM.C.Libc.o   build/lib/units/LaneMM.C.Libc.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.libc; fi
rm build/lib/units/LaneMM.C.Libc.s
echo Assembling lanemm.c.foreign
/usr/bin/as --64 -o build/lib/units/LaneMM.C.Foreign.o   build/lib/units/LaneMM.C.Foreign.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.foreign; fi
rm build/lib/units/LaneMM.C.Foreign.s
echo Assembling lanemm.lock
/usr/bin/as --64 -o build/lib/units/LaneMM.Lock.o   build/lib/units/LaneMM.Lock.s
if [ $? != 0 ]; then DoExitAsm lanemm.lock; fi
rm build/lib/units/LaneMM.Lock.s
echo Assembling lanemm.freeruns
/usr/bin/as --64 -o build/lib/units/LaneMM.FreeRuns.o   build/lib/units/LaneMM.FreeRuns.s
if [ $? != 0 ]; then DoExitAsm lanemm.freeruns; fi
rm build/lib/units/LaneMM.FreeRuns.s
echo Assembling lanemm.arena
/usr/bin/as --64 -o build/lib/units/LaneMM.Arena.o   build/lib/units/LaneMM.Arena.s
if [ $? != 0 ]; then DoExitAsm lanemm.arena; fi
rm build/lib/units/LaneMM.Arena.s
echo Assembling lanemm.foreign
/usr/bin/as --64 -o build/lib/units/LaneMM.Foreign.o   build/lib/units/LaneMM.Foreign.s
if [ $? != 0 ]; then DoExitAsm lanemm.foreign; fi
rm build/lib/units/LaneMM.Foreign.s
echo Assembling lanemm.sizeclasses
/usr/bin/as --64 -o build/lib/units/LaneMM.SizeClasses.o   build/lib/units/LaneMM.SizeClasses.s
if [ $? != 0 ]; then DoExitAsm lanemm.sizeclasses; fi
rm build/lib/units/LaneMM.SizeClasses.s
echo Assembling lanemm.errors
/usr/bin/as --64 -o build/lib/units/LaneMM.Errors.o   build/lib/units/LaneMM.Errors.s
if [ $? != 0 ]; then DoExitAsm lanemm.errors; fi
rm build/lib/units/LaneMM.Errors.s
echo Assembling lanemm.remotelist
/usr/bin/as --64 -o build/lib/units/LaneMM.RemoteList.o   build/lib/units/LaneMM.RemoteList.s
if [ $? != 0 ]; then DoExitAsm lanemm.remotelist; fi
rm build/lib/units/LaneMM.RemoteList.s
echo Assembling lanemm.span
/usr/bin/as --64 -o build/lib/units/LaneMM.Span.o   build/lib/units/LaneMM.Span.s
if [ $? != 0 ]; then DoExitAsm lanemm.span; fi
rm build/lib/units/LaneMM.Span.s
echo Assembling lanemm.heap
/usr/bin/as --64 -o build/lib/units/LaneMM.Heap.o   build/lib/units/LaneMM.Heap.s
if [ $? != 0 ]; then DoExitAsm lanemm.heap; fi
rm build/lib/units/LaneMM.Heap.s
echo Assembling lanemm.threads
/usr/bin/as --64 -o build/lib/units/LaneMM.Threads.o   build/lib/units/LaneMM.Threads.s
if [ $? != 0 ]; then DoExitAsm lanemm.threads; fi
rm build/lib/units/LaneMM.Threads.s
echo Assembling lanemm.walk
/usr/bin/as --64 -o build/lib/units/LaneMM.Walk.o   build/lib/units/LaneMM.Walk.s
if [ $? != 0 ]; then DoExitAsm lanemm.walk; fi
rm build/lib/units/LaneMM.Walk.s
echo Assembling lanemm.fork
/usr/bin/as --64 -o build/lib/units/LaneMM.Fork.o   build/lib/units/LaneMM.Fork.s
if [ $? != 0 ]; then DoExitAsm lanemm.fork; fi
rm build/lib/units/LaneMM.Fork.s
echo Assembling lanemm.reserve
/usr/bin/as --64 -o build/lib/units/LaneMM.Reserve.o   build/lib/units/LaneMM.Reserve.s
if [ $? != 0 ]; then DoExitAsm lanemm.reserve; fi
rm build/lib/units/LaneMM.Reserve.s
echo Assembling lanemm.purge
/usr/bin/as --64 -o build/lib/units/LaneMM.Purge.o   build/lib/units/LaneMM.Purge.s
if [ $? != 0 ]; then DoExitAsm lanemm.purge; fi
rm build/lib/units/LaneMM.Purge.s
echo Assembling lanemm.stats
/usr/bin/as --64 -o build/lib/units/LaneMM.Stats.o   build/lib/units/LaneMM.Stats.s
if [ $? != 0 ]; then DoExitAsm lanemm.stats; fi
rm build/lib/units/LaneMM.Stats.s
echo Assembling lanemm.blocks
/usr/bin/as --64 -o build/lib/units/LaneMM.Blocks.o   build/lib/units/LaneMM.Blocks.s
if [ $? != 0 ]; then DoExitAsm lanemm.blocks; fi
rm build/lib/units/LaneMM.Blocks.s
echo Assembling lanemm.large
/usr/bin/as --64 -o build/lib/units/LaneMM.Large.o   build/lib/units/LaneMM.Large.s
if [ $? != 0 ]; then DoExitAsm lanemm.large; fi
rm build/lib/units/LaneMM.Large.s
echo Assembling lanemm.limits
/usr/bin/as --64 -o build/lib/units/LaneMM.Limits.o   build/lib/units/LaneMM.Limits.s
if [ $? != 0 ]; then DoExitAsm lanemm.limits; fi
rm build/lib/units/LaneMM.Limits.s
echo Assembling lanemm.allocate
/usr/bin/as --64 -o build/lib/units/LaneMM.Allocate.o   build/lib/units/LaneMM.Allocate.s
if [ $? != 0 ]; then DoExitAsm lanemm.allocate; fi
rm build/lib/units/LaneMM.Allocate.s
echo Assembling lanemm.free
/usr/bin/as --64 -o build/lib/units/LaneMM.Free.o   build/lib/units/LaneMM.Free.s
if [ $? != 0 ]; then DoExitAsm lanemm.free; fi
rm build/lib/units/LaneMM.Free.s
echo Assembling lanemm.resize
/usr/bin/as --64 -o build/lib/units/LaneMM.Resize.o   build/lib/units/LaneMM.Resize.s
if [ $? != 0 ]; then DoExitAsm lanemm.resize; fi
rm build/lib/units/LaneMM.Resize.s
echo Assembling lanemm.engine
/usr/bin/as --64 -o build/lib/units/LaneMM.Engine.o   build/lib/units/LaneMM.Engine.s
if [ $? != 0 ]; then DoExitAsm lanemm.engine; fi
rm build/lib/units/LaneMM.Engine.s
echo Assembling lanemm.c.manager
/usr/bin/as --64 -o build/lib/units/LaneMM.C.Manager.o   build/lib/units/LaneMM.C.Manager.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.manager; fi
rm build/lib/units/LaneMM.C.Manager.s
echo Assembling lanemm.debugstate
/usr/bin/as --64 -o build/lib/units/LaneMM.DebugState.o   build/lib/units/LaneMM.DebugState.s
if [ $? != 0 ]; then DoExitAsm lanemm.debugstate; fi
rm build/lib/units/LaneMM.DebugState.s
echo Assembling lanemm.settingsstate
/usr/bin/as --64 -o build/lib/units/LaneMM.SettingsState.o   build/lib/units/LaneMM.SettingsState.s
if [ $? != 0 ]; then DoExitAsm lanemm.settingsstate; fi
rm build/lib/units/LaneMM.SettingsState.s
echo Assembling lanemm.stacksstate
/usr/bin/as --64 -o build/lib/units/LaneMM.StacksState.o   build/lib/units/LaneMM.StacksState.s
if [ $? != 0 ]; then DoExitAsm lanemm.stacksstate; fi
rm build/lib/units/LaneMM.StacksState.s
echo Assembling lanemm.unwind
/usr/bin/as --64 -o build/lib/units/LaneMM.Unwind.o   build/lib/units/LaneMM.Unwind.s
if [ $? != 0 ]; then DoExitAsm lanemm.unwind; fi
rm build/lib/units/LaneMM.Unwind.s
echo Assembling lanemm.observestate
/usr/bin/as --64 -o build/lib/units/LaneMM.ObserveState.o   build/lib/units/LaneMM.ObserveState.s
if [ $? != 0 ]; then DoExitAsm lanemm.observestate; fi
rm build/lib/units/LaneMM.ObserveState.s
echo Assembling lanemm.callsites
/usr/bin/as --64 -o build/lib/units/LaneMM.CallSites.o   build/lib/units/LaneMM.CallSites.s
if [ $? != 0 ]; then DoExitAsm lanemm.callsites; fi
rm build/lib/units/LaneMM.CallSites.s
echo Assembling lanemm.sampler
/usr/bin/as --64 -o build/lib/units/LaneMM.Sampler.o   build/lib/units/LaneMM.Sampler.s
if [ $? != 0 ]; then DoExitAsm lanemm.sampler; fi
rm build/lib/units/LaneMM.Sampler.s
echo Assembling lanemm.reportstate
/usr/bin/as --64 -o build/lib/units/LaneMM.ReportState.o   build/lib/units/LaneMM.ReportState.s
if [ $? != 0 ]; then DoExitAsm lanemm.reportstate; fi
rm build/lib/units/LaneMM.ReportState.s
echo Assembling lanemm.text
/usr/bin/as --64 -o build/lib/units/LaneMM.Text.o   build/lib/units/LaneMM.Text.s
if [ $? != 0 ]; then DoExitAsm lanemm.text; fi
rm build/lib/units/LaneMM.Text.s
echo Assembling lanemm.messages
/usr/bin/as --64 -o build/lib/units/LaneMM.Messages.o   build/lib/units/LaneMM.Messages.s
if [ $? != 0 ]; then DoExitAsm lanemm.messages; fi
rm build/lib/units/LaneMM.Messages.s
echo Assembling lanemm.backtracetable
/usr/bin/as --64 -o build/lib/units/LaneMM.BacktraceTable.o   build/lib/units/LaneMM.BacktraceTable.s
if [ $? != 0 ]; then DoExitAsm lanemm.backtracetable; fi
rm build/lib/units/LaneMM.BacktraceTable.s
echo Assembling lanemm.logfile
/usr/bin/as --64 -o build/lib/units/LaneMM.LogFile.o   build/lib/units/LaneMM.LogFile.s
if [ $? != 0 ]; then DoExitAsm lanemm.logfile; fi
rm build/lib/units/LaneMM.LogFile.s
echo Assembling lanemm.events
/usr/bin/as --64 -o build/lib/units/LaneMM.Events.o   build/lib/units/LaneMM.Events.s
if [ $? != 0 ]; then DoExitAsm lanemm.events; fi
rm build/lib/units/LaneMM.Events.s
echo Assembling lanemm.modules
/usr/bin/as --64 -o build/lib/units/LaneMM.Modules.o   build/lib/units/LaneMM.Modules.s
if [ $? != 0 ]; then DoExitAsm lanemm.modules; fi
rm build/lib/units/LaneMM.Modules.s
echo Assembling lanemm.contents
/usr/bin/as --64 -o build/lib/units/LaneMM.Contents.o   build/lib/units/LaneMM.Contents.s
if [ $? != 0 ]; then DoExitAsm lanemm.contents; fi
rm build/lib/units/LaneMM.Contents.s
echo Assembling lanemm.debugspans
/usr/bin/as --64 -o build/lib/units/LaneMM.DebugSpans.o   build/lib/units/LaneMM.DebugSpans.s
if [ $? != 0 ]; then DoExitAsm lanemm.debugspans; fi
rm build/lib/units/LaneMM.DebugSpans.s
echo Assembling lanemm.debugrecords
/usr/bin/as --64 -o build/lib/units/LaneMM.DebugRecords.o   build/lib/units/LaneMM.DebugRecords.s
if [ $? != 0 ]; then DoExitAsm lanemm.debugrecords; fi
rm build/lib/units/LaneMM.DebugRecords.s
echo Assembling lanemm.guardpages
/usr/bin/as --64 -o build/lib/units/LaneMM.GuardPages.o   build/lib/units/LaneMM.GuardPages.s
if [ $? != 0 ]; then DoExitAsm lanemm.guardpages; fi
rm build/lib/units/LaneMM.GuardPages.s
echo Assembling lanemm.patterns
/usr/bin/as --64 -o build/lib/units/LaneMM.Patterns.o   build/lib/units/LaneMM.Patterns.s
if [ $? != 0 ]; then DoExitAsm lanemm.patterns; fi
rm build/lib/units/LaneMM.Patterns.s
echo Assembling lanemm.debugcheck
/usr/bin/as --64 -o build/lib/units/LaneMM.DebugCheck.o   build/lib/units/LaneMM.DebugCheck.s
if [ $? != 0 ]; then DoExitAsm lanemm.debugcheck; fi
rm build/lib/units/LaneMM.DebugCheck.s
echo Assembling lanemm.symbols
/usr/bin/as --64 -o build/lib/units/LaneMM.Symbols.o   build/lib/units/LaneMM.Symbols.s
if [ $? != 0 ]; then DoExitAsm lanemm.symbols; fi
rm build/lib/units/LaneMM.Symbols.s
echo Assembling lanemm.dwarf
/usr/bin/as --64 -o build/lib/units/LaneMM.Dwarf.o   build/lib/units/LaneMM.Dwarf.s
if [ $? != 0 ]; then DoExitAsm lanemm.dwarf; fi
rm build/lib/units/LaneMM.Dwarf.s
echo Assembling lanemm.elf
/usr/bin/as --64 -o build/lib/units/LaneMM.Elf.o   build/lib/units/LaneMM.Elf.s
if [ $? != 0 ]; then DoExitAsm lanemm.elf; fi
rm build/lib/units/LaneMM.Elf.s
echo Assembling lanemm.backtracetext
/usr/bin/as --64 -o build/lib/units/LaneMM.BacktraceText.o   build/lib/units/LaneMM.BacktraceText.s
if [ $? != 0 ]; then DoExitAsm lanemm.backtracetext; fi
rm build/lib/units/LaneMM.BacktraceText.s
echo Assembling lanemm.unwindcache
/usr/bin/as --64 -o build/lib/units/LaneMM.UnwindCache.o   build/lib/units/LaneMM.UnwindCache.s
if [ $? != 0 ]; then DoExitAsm lanemm.unwindcache; fi
rm build/lib/units/LaneMM.UnwindCache.s
echo Assembling lanemm.debugthreads
/usr/bin/as --64 -o build/lib/units/LaneMM.DebugThreads.o   build/lib/units/LaneMM.DebugThreads.s
if [ $? != 0 ]; then DoExitAsm lanemm.debugthreads; fi
rm build/lib/units/LaneMM.DebugThreads.s
echo Assembling lanemm.groups
/usr/bin/as --64 -o build/lib/units/LaneMM.Groups.o   build/lib/units/LaneMM.Groups.s
if [ $? != 0 ]; then DoExitAsm lanemm.groups; fi
rm build/lib/units/LaneMM.Groups.s
echo Assembling lanemm.debugreport
/usr/bin/as --64 -o build/lib/units/LaneMM.DebugReport.o   build/lib/units/LaneMM.DebugReport.s
if [ $? != 0 ]; then DoExitAsm lanemm.debugreport; fi
rm build/lib/units/LaneMM.DebugReport.s
echo Assembling lanemm.allocationlog
/usr/bin/as --64 -o build/lib/units/LaneMM.AllocationLog.o   build/lib/units/LaneMM.AllocationLog.s
if [ $? != 0 ]; then DoExitAsm lanemm.allocationlog; fi
rm build/lib/units/LaneMM.AllocationLog.s
echo Assembling lanemm.debugblocks
/usr/bin/as --64 -o build/lib/units/LaneMM.DebugBlocks.o   build/lib/units/LaneMM.DebugBlocks.s
if [ $? != 0 ]; then DoExitAsm lanemm.debugblocks; fi
rm build/lib/units/LaneMM.DebugBlocks.s
echo Assembling lanemm.faults
/usr/bin/as --64 -o build/lib/units/LaneMM.Faults.o   build/lib/units/LaneMM.Faults.s
if [ $? != 0 ]; then DoExitAsm lanemm.faults; fi
rm build/lib/units/LaneMM.Faults.s
echo Assembling lanemm.freedobjects
/usr/bin/as --64 -o build/lib/units/LaneMM.FreedObjects.o   build/lib/units/LaneMM.FreedObjects.s
if [ $? != 0 ]; then DoExitAsm lanemm.freedobjects; fi
rm build/lib/units/LaneMM.FreedObjects.s
echo Assembling lanemm.mismatches
/usr/bin/as --64 -o build/lib/units/LaneMM.Mismatches.o   build/lib/units/LaneMM.Mismatches.s
if [ $? != 0 ]; then DoExitAsm lanemm.mismatches; fi
rm build/lib/units/LaneMM.Mismatches.s
echo Assembling lanemm.quarantine
/usr/bin/as --64 -o build/lib/units/LaneMM.Quarantine.o   build/lib/units/LaneMM.Quarantine.s
if [ $? != 0 ]; then DoExitAsm lanemm.quarantine; fi
rm build/lib/units/LaneMM.Quarantine.s
echo Assembling lanemm.debug
/usr/bin/as --64 -o build/lib/units/LaneMM.Debug.o   build/lib/units/LaneMM.Debug.s
if [ $? != 0 ]; then DoExitAsm lanemm.debug; fi
rm build/lib/units/LaneMM.Debug.s
echo Assembling lanemm.c.aligned
/usr/bin/as --64 -o build/lib/units/LaneMM.C.Aligned.o   build/lib/units/LaneMM.C.Aligned.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.aligned; fi
rm build/lib/units/LaneMM.C.Aligned.s
echo Assembling lanemm.c.families
/usr/bin/as --64 -o build/lib/units/LaneMM.C.Families.o   build/lib/units/LaneMM.C.Families.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.families; fi
rm build/lib/units/LaneMM.C.Families.s
echo Assembling lanemm.eventrules
/usr/bin/as --64 -o build/lib/units/LaneMM.EventRules.o   build/lib/units/LaneMM.EventRules.s
if [ $? != 0 ]; then DoExitAsm lanemm.eventrules; fi
rm build/lib/units/LaneMM.EventRules.s
echo Assembling lanemm.heaptrc
/usr/bin/as --64 -o build/lib/units/LaneMM.HeapTrc.o   build/lib/units/LaneMM.HeapTrc.s
if [ $? != 0 ]; then DoExitAsm lanemm.heaptrc; fi
rm build/lib/units/LaneMM.HeapTrc.s
echo Assembling lanemm.settings
/usr/bin/as --64 -o build/lib/units/LaneMM.Settings.o   build/lib/units/LaneMM.Settings.s
if [ $? != 0 ]; then DoExitAsm lanemm.settings; fi
rm build/lib/units/LaneMM.Settings.s
echo Assembling lanemm.snapshot
/usr/bin/as --64 -o build/lib/units/LaneMM.Snapshot.o   build/lib/units/LaneMM.Snapshot.s
if [ $? != 0 ]; then DoExitAsm lanemm.snapshot; fi
rm build/lib/units/LaneMM.Snapshot.s
echo Assembling lanemm.leaksstate
/usr/bin/as --64 -o build/lib/units/LaneMM.LeaksState.o   build/lib/units/LaneMM.LeaksState.s
if [ $? != 0 ]; then DoExitAsm lanemm.leaksstate; fi
rm build/lib/units/LaneMM.LeaksState.s
echo Assembling lanemm.retainers
/usr/bin/as --64 -o build/lib/units/LaneMM.Retainers.o   build/lib/units/LaneMM.Retainers.s
if [ $? != 0 ]; then DoExitAsm lanemm.retainers; fi
rm build/lib/units/LaneMM.Retainers.s
echo Assembling lanemm.leaklist
/usr/bin/as --64 -o build/lib/units/LaneMM.LeakList.o   build/lib/units/LaneMM.LeakList.s
if [ $? != 0 ]; then DoExitAsm lanemm.leaklist; fi
rm build/lib/units/LaneMM.LeakList.s
echo Assembling lanemm.leaktext
/usr/bin/as --64 -o build/lib/units/LaneMM.LeakText.o   build/lib/units/LaneMM.LeakText.s
if [ $? != 0 ]; then DoExitAsm lanemm.leaktext; fi
rm build/lib/units/LaneMM.LeakText.s
echo Assembling lanemm.leakfiles
/usr/bin/as --64 -o build/lib/units/LaneMM.LeakFiles.o   build/lib/units/LaneMM.LeakFiles.s
if [ $? != 0 ]; then DoExitAsm lanemm.leakfiles; fi
rm build/lib/units/LaneMM.LeakFiles.s
echo Assembling lanemm.pause
/usr/bin/as --64 -o build/lib/units/LaneMM.Pause.o   build/lib/units/LaneMM.Pause.s
if [ $? != 0 ]; then DoExitAsm lanemm.pause; fi
rm build/lib/units/LaneMM.Pause.s
echo Assembling lanemm.suppressions
/usr/bin/as --64 -o build/lib/units/LaneMM.Suppressions.o   build/lib/units/LaneMM.Suppressions.s
if [ $? != 0 ]; then DoExitAsm lanemm.suppressions; fi
rm build/lib/units/LaneMM.Suppressions.s
echo Assembling lanemm.leaks
/usr/bin/as --64 -o build/lib/units/LaneMM.Leaks.o   build/lib/units/LaneMM.Leaks.s
if [ $? != 0 ]; then DoExitAsm lanemm.leaks; fi
rm build/lib/units/LaneMM.Leaks.s
echo Assembling lanemm.advice
/usr/bin/as --64 -o build/lib/units/LaneMM.Advice.o   build/lib/units/LaneMM.Advice.s
if [ $? != 0 ]; then DoExitAsm lanemm.advice; fi
rm build/lib/units/LaneMM.Advice.s
echo Assembling lanemm.growth
/usr/bin/as --64 -o build/lib/units/LaneMM.Growth.o   build/lib/units/LaneMM.Growth.s
if [ $? != 0 ]; then DoExitAsm lanemm.growth; fi
rm build/lib/units/LaneMM.Growth.s
echo Assembling lanemm.eventlog
/usr/bin/as --64 -o build/lib/units/LaneMM.EventLog.o   build/lib/units/LaneMM.EventLog.s
if [ $? != 0 ]; then DoExitAsm lanemm.eventlog; fi
rm build/lib/units/LaneMM.EventLog.s
echo Assembling lanemm.enginereports
/usr/bin/as --64 -o build/lib/units/LaneMM.EngineReports.o   build/lib/units/LaneMM.EngineReports.s
if [ $? != 0 ]; then DoExitAsm lanemm.enginereports; fi
rm build/lib/units/LaneMM.EngineReports.s
echo Assembling lanemm.lockprofile
/usr/bin/as --64 -o build/lib/units/LaneMM.LockProfile.o   build/lib/units/LaneMM.LockProfile.s
if [ $? != 0 ]; then DoExitAsm lanemm.lockprofile; fi
rm build/lib/units/LaneMM.LockProfile.s
echo Assembling lanemm.profiledata
/usr/bin/as --64 -o build/lib/units/LaneMM.ProfileData.o   build/lib/units/LaneMM.ProfileData.s
if [ $? != 0 ]; then DoExitAsm lanemm.profiledata; fi
rm build/lib/units/LaneMM.ProfileData.s
echo Assembling lanemm.speedscope
/usr/bin/as --64 -o build/lib/units/LaneMM.Speedscope.o   build/lib/units/LaneMM.Speedscope.s
if [ $? != 0 ]; then DoExitAsm lanemm.speedscope; fi
rm build/lib/units/LaneMM.Speedscope.s
echo Assembling lanemm.html
/usr/bin/as --64 -o build/lib/units/LaneMM.Html.o   build/lib/units/LaneMM.Html.s
if [ $? != 0 ]; then DoExitAsm lanemm.html; fi
rm build/lib/units/LaneMM.Html.s
echo Assembling lanemm.pprof
/usr/bin/as --64 -o build/lib/units/LaneMM.Pprof.o   build/lib/units/LaneMM.Pprof.s
if [ $? != 0 ]; then DoExitAsm lanemm.pprof; fi
rm build/lib/units/LaneMM.Pprof.s
echo Assembling lanemm.profile
/usr/bin/as --64 -o build/lib/units/LaneMM.Profile.o   build/lib/units/LaneMM.Profile.s
if [ $? != 0 ]; then DoExitAsm lanemm.profile; fi
rm build/lib/units/LaneMM.Profile.s
echo Assembling lanemm.debugsampler
/usr/bin/as --64 -o build/lib/units/LaneMM.DebugSampler.o   build/lib/units/LaneMM.DebugSampler.s
if [ $? != 0 ]; then DoExitAsm lanemm.debugsampler; fi
rm build/lib/units/LaneMM.DebugSampler.s
echo Assembling lanemm.erase
/usr/bin/as --64 -o build/lib/units/LaneMM.Erase.o   build/lib/units/LaneMM.Erase.s
if [ $? != 0 ]; then DoExitAsm lanemm.erase; fi
rm build/lib/units/LaneMM.Erase.s
echo Assembling lanemm.guardsample
/usr/bin/as --64 -o build/lib/units/LaneMM.GuardSample.o   build/lib/units/LaneMM.GuardSample.s
if [ $? != 0 ]; then DoExitAsm lanemm.guardsample; fi
rm build/lib/units/LaneMM.GuardSample.s
echo Assembling lanemm.watch
/usr/bin/as --64 -o build/lib/units/LaneMM.Watch.o   build/lib/units/LaneMM.Watch.s
if [ $? != 0 ]; then DoExitAsm lanemm.watch; fi
rm build/lib/units/LaneMM.Watch.s
echo Assembling lanemm.c.unwind
/usr/bin/as --64 -o build/lib/units/LaneMM.C.Unwind.o   build/lib/units/LaneMM.C.Unwind.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.unwind; fi
rm build/lib/units/LaneMM.C.Unwind.s
echo Assembling lanemm.c.frames
/usr/bin/as --64 -o build/lib/units/LaneMM.C.Frames.o   build/lib/units/LaneMM.C.Frames.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.frames; fi
rm build/lib/units/LaneMM.C.Frames.s
echo Assembling lanemm.c.roots
/usr/bin/as --64 -o build/lib/units/LaneMM.C.Roots.o   build/lib/units/LaneMM.C.Roots.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.roots; fi
rm build/lib/units/LaneMM.C.Roots.s
echo Assembling lanemm.c.start
/usr/bin/as --64 -o build/lib/units/LaneMM.C.Start.o   build/lib/units/LaneMM.C.Start.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.start; fi
rm build/lib/units/LaneMM.C.Start.s
echo Assembling lanemm.c.malloc
/usr/bin/as --64 -o build/lib/units/LaneMM.C.Malloc.o   build/lib/units/LaneMM.C.Malloc.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.malloc; fi
rm build/lib/units/LaneMM.C.Malloc.s
echo Assembling lanemm.c.operators
/usr/bin/as --64 -o build/lib/units/LaneMM.C.Operators.o   build/lib/units/LaneMM.C.Operators.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.operators; fi
rm build/lib/units/LaneMM.C.Operators.s
echo Assembling lanemm.c.deepbind
/usr/bin/as --64 -o build/lib/units/LaneMM.C.DeepBind.o   build/lib/units/LaneMM.C.DeepBind.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.deepbind; fi
rm build/lib/units/LaneMM.C.DeepBind.s
echo Assembling lanemm.c.status
/usr/bin/as --64 -o build/lib/units/LaneMM.C.Status.o   build/lib/units/LaneMM.C.Status.s
if [ $? != 0 ]; then DoExitAsm lanemm.c.status; fi
rm build/lib/units/LaneMM.C.Status.s
