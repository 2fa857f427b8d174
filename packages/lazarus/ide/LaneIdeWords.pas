/// The texts of the window, for translation.
unit LaneIdeWords;

{$mode objfpc}{$H+}

interface

resourcestring
  rsWindow = 'LaneMM';
  rsRunLeaks = 'Run with leaks';
  rsRunDebug = 'Run with debug';
  rsRunProfile = 'Run with profile';
  rsStop = 'Stop';
  rsOpen = 'Open...';
  rsGoToLine = 'Go to the line';
  rsOpenAll = 'Open all below';
  rsCopy = 'Copy';
  rsOpenTitle = 'Open reports of LaneMM';
  rsReports = 'Reports of LaneMM';
  rsCompare = 'Compare with the run before';
  rsLive = 'Live';
  rsSettings = 'Settings:';
  rsProcess = 'Process:';
  rsTool = 'Tool:';
  rsRunning = 'Running with LANEMM=%s ...';
  rsEnded = '%s: exit code %d';
  rsHead = '%s, process %s';
  rsNoProject = 'No project is open: open or create one, then run it again.';
  rsNotBuilt = 'The project was not built.';
  rsNotStarted = 'The program was not started: %s';
  rsBusy = 'The program still runs: end it, or press Stop.';
  rsNoReport = 'The program wrote no report. Either it does not run on LaneMM: add the package lanemm_units'
    + ' to the project (Project > Project Inspector > Add > New Requirement) and run it again. Or it was'
    + ' killed: a report is written at the end of a program.';
  rsDamaged = '%s is no report of LaneMM, or is not complete: %s';
  rsNotFound = 'The source file %s was not found: add its folder to the unit path of the project.';
  rsNoPlace = 'This row has no line: the file that it belongs to was compiled without debug information.';

  rsRetained = 'Leaks by retained size';
  rsLeakLines = 'Leaks by line';
  rsErrors = 'Errors';
  rsClasses = 'In use by class';
  rsLines = 'In use by line';
  rsGrowth = 'Growth';
  rsLocks = 'Locks';
  rsHeld = 'Held by';
  rsOutput = 'Output';

  rsClass = 'Class';
  rsRoutine = 'Routine';
  rsError = 'Error';
  rsWhat = 'What';
  rsText = 'Text';
  rsPlace = 'Place';
  rsNote = 'Advice';
  rsRetainedBytes = 'Retained';
  rsBytes = 'Bytes';
  rsBlocks = 'Blocks';
  rsPeakBytes = 'At the peak';
  rsAllocatedBytes = 'Allocated';
  rsAllocatedBlocks = 'Allocations';
  rsResizes = 'Resizes';
  rsCopiedBytes = 'Copied';
  rsEvents = 'Events';
  rsRemoteFrees = 'Remote frees';
  rsTakenLocks = 'Taken locks';
  rsGrowthBytes = 'Growth';

  rsCycle = '%s (cycle)';
  rsMark = '%s in %s';
  rsGrew = '%s of %s';
  rsSizes = 'Size classes';
  rsContents = 'Contents';
  rsThreads = 'Threads';
  rsSizeClass = 'blocks of %s bytes';
  rsThread = 'thread %s %s';
  rsEndedThread = 'ended threads';
  rsLarge = 'large blocks';
  rsBytesOf = '%s bytes';
  rsUnknownPlace = 'no line known';

  rsLeakSum = '%s blocks, %s';
  rsSuppressed = '; suppressed: %s blocks';
  rsNotExamined = '; not examined: %s blocks';
  rsHeapSum = '%s in use at the end of the run; from %s samples';
  rsLiveSum = 'Process %s: %s in use in %s blocks, %s from the system, %s at the peak';

  rsRunLeaksFirst = 'No run has looked for leaks yet: choose Run with leaks.';
  rsNoLeaks = 'No leaks in this run. Leaks of parts that did not run are not found: use the program as its'
    + ' users do, then end it.';
  rsRunDebugFirst = 'No run has looked for memory errors yet: choose Run with debug.';
  rsNoErrors = 'No memory errors in this run. Reads of freed memory are found with guard=pages: write it into'
    + ' the box of settings and choose Run with debug again.';
  rsRunProfileFirst = 'No run was profiled yet: choose Run with profile.';
  rsNothingInUse = 'No block was in use at the end of this run. What was allocated and freed before stands in'
    + ' the view In use by line, column Allocated.';
  rsNoSamples = 'No block was sampled: the program allocated too little. Write rate=1 into the box of settings'
    + ' and choose Run with profile again: it samples every block.';
  rsNoGrowth = 'No block grew in this run: nothing to do.';
  rsNoLocks = 'No thread freed a block of another one or found a lock of the memory manager taken: nothing to do.';
  rsNoOutput = 'The program printed nothing.';
  rsHeldSum = 'Process %s: %s in %s blocks, below the variables that hold them';
  rsNoLive = 'No program runs: choose one of the runs, or write the number of a process on LaneMM into the box Process.';
  rsSearching = 'The tool lanemm reads the memory of the program.';
  rsNoTool = 'The tool lanemm was not found (%s): make lanemm builds it, make install copies it. Its path stands in'
    + ' the box Tool.';
  rsNoChange = 'Nothing changed between the two runs in this view.';
  rsRunTwice = 'There is one run only: run the program again, then compare.';

  rsAdviceRemote = 'Free blocks in the thread that allocates them, or hand over fewer and larger ones.';
  rsAdviceLock = 'No thread waited. If there are many, keep the block and use it again.';

implementation

end.
