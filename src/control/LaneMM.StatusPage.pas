/// The status page as data: what a process shows of itself to tools outside of it, and the mailbox.
//
// Owns:       nothing; the page belongs to LaneMM.LivePage, the mailbox to LaneMM.Mailbox.
// Invariants: one page of 4,096 bytes, a segment of shared memory, see LaneMM.OsProcess;
//             little-endian. Head is constant from the moment when Magic is there.
//             Totals obey a sequence lock: Sequence is odd while they are written; a reader takes
//             them as valid if it read the same even number before and after them.
//             Mailbox: a tool holds it while Client is its thread number; the system clears that,
//             but for one bit, when the tool ends in any way (a robust futex). It writes Words,
//             then adds 1 to Requested and rings: it adds 1 to Bell, and wakes its waiter. A thread
//             that sees the change has the request answered: Taken becomes Requested, Answer,
//             Outcome and Totals are written, then Answered becomes Taken. While Answered differs,
//             the tool rings again: the process may have been where it could not answer, and has
//             then counted that in Postponed.
//             A child process after fork maps the page of its parent until it has one of its own:
//             Head.ProcessId tells them apart. A tool that wants that sets Wanted to the number of
//             the child, and rings.
// Callers:    LaneMM inside the process, and tools outside: it uses no other unit.
unit LaneMM.StatusPage;

{$I ../LaneMM.inc}

interface

const
  /// Name of the mapping in /proc/PID/maps, with ` (deleted)` after it: that of any segment without
  /// a key. The number of the segment stands where a file has that of its inode.
  PageMapping = '/SYSV00000000';
  /// First bytes of the page.
  PageMagic = 'LaneMM'#13#10;
  /// Version of the page and of the records of LaneMM.Types: raised when one of them changes, also
  /// where no size changes. A tool with another number must not read the records.
  PageLayout = 10;
  /// Bytes of the page.
  PageBytes = 4096;
  /// TPageHead.HasMailbox of a program or library with LaneMMLean.
  MailboxOfLean = 2;
  /// Room for the words of a request and for the text of an answer, with the #0 at the end.
  WordsBytes = 1024;
  AnswerBytes = 2048;

type
  /// A word that the process and tools change at once, atomically; of the same length for both
  /// sizes of pointers.
  TPageWord = record
    case Byte of
      0: (Value: NativeUInt);  //< shared  the word
      1: (Room: UInt64);       //< padding
  end;

  /// The records of LaneMM.Types whose sizes the page names.
  TPageRecord = (prProcess, prSpan, prHeap, prArena, prShard);
  /// What LaneMM is in the process: the memory manager of a Pascal program, that of a library
  /// inside a program, or malloc.
  TPageUse = (puProgram, puLibrary, puMalloc);

  /// What stays the same.
  TPageHead = record
    Magic: array[0..7] of AnsiChar;              //< const   PageMagic
    Layout: Cardinal;                            //< const   PageLayout
    PointerBytes: Cardinal;                      //< const   SizeOf(Pointer) of the process
    RecordBytes: array[TPageRecord] of Cardinal; //< const   SizeOf each record
    IsChecked: Cardinal;                         //< const   1: a build that checks itself
    Version: array[0..15] of AnsiChar;           //< const   LaneMM.Version, ended by #0
    ProcessId: UInt64;                           //< const   number of the process
    StartedMs: UInt64;                           //< const   CLOCK_MONOTONIC_COARSE at its start,
                                                 //  in ms, the low 32 bits
    Engine: UInt64;                              //< const   address of LaneMM.Types.Process
    Use: Cardinal;                               //< const   Ord of TPageUse
    HasMailbox: Cardinal;                        //< const   1: requests are answered; 0: none are,
                                                 //  by `attach=0`; MailboxOfLean: by LaneMMLean
    ThreadCode, ThreadFlags, ThreadBytes: UInt64; //< const   how a tool starts a thread that
                                                 //  answers, see LaneMM.OsThread; 0: there is none
    Answerer: UInt64;                            //< const   address of its routine
  end;

  /// Blocks of a tier, see LaneMM.Stats.
  TPageTier = record
    Blocks: UInt64;     //< shared  blocks in use
    UsedBytes: UInt64;  //< shared  their usable bytes
    SpanBytes: UInt64;  //< shared  bytes of the spans that hold them
  end;

  /// The state of the heap at the last answer, see LaneMM.Stats. Bytes, unless the name says
  /// otherwise.
  TPageTotals = record
    Count: UInt64;           //< shared  how often they were written; 0: never
    WrittenMs: UInt64;       //< shared  when, as StartedMs
    UsedBytes: UInt64;       //< shared  usable bytes of the blocks in use
    CommittedBytes: UInt64;  //< shared  memory of the heap
    CachedBytes: UInt64;     //< shared  of it, free and not yet purged
    PeakBytes: UInt64;       //< shared  highest CommittedBytes
    ReservedBytes: UInt64;   //< shared  address space
    Small: TPageTier;        //< shared  spans of one slice
    Medium: TPageTier;       //< shared  spans of more slices
    Large: TPageTier;        //< shared  large blocks
    Threads: UInt64;         //< shared  threads of the process
    Contended: UInt64;       //< shared  failed tries to take the lock of a shard
    OsCalls: array[0..15] of UInt64; //< shared  system calls, by Ord of TOsCall
    Resizes: UInt64;         //< shared  calls of ReallocMem
    Moves: UInt64;           //< shared  of them, with a new address
    CopiedBytes: UInt64;     //< shared  bytes copied by those
  end;

  /// How a request ended.
  TPageOutcome = (
    poDone,       //< as asked
    poWrongWords, //< a word is unknown or its value wrong; the other words were obeyed
    poFailed,     //< no memory, or a file could not be written
    poClosed      //< refused: the program has set `attach=0` meanwhile
  );

  /// Requests and answers.
  TPageMailbox = record
    Requested: TPageWord;  //< shared  number of the last request
    Taken: TPageWord;      //< shared  number of the request that is being answered, or was last
    Answered: TPageWord;   //< shared  number of the last request that was answered
    Postponed: TPageWord;  //< shared  how often a request had to wait: a lock was taken
    Bell: TPageWord;       //< shared  changes when a tool wants a thread to look at the mailbox
    Wanted: TPageWord;     //< shared  number of a child process that is to make a page of its own
    Client: LongInt;       //< shared  number of the tool's thread that holds the mailbox; 0: none
    ClientPadding: Cardinal; //< padding
    Outcome: UInt64;       //< shared  Ord of TPageOutcome, of the last answer
    Words: array[0..WordsBytes - 1] of AnsiChar;    //< shared  the request, ended by #0
    Answer: array[0..AnswerBytes - 1] of AnsiChar;  //< shared  the answer: lines of UTF-8, ended
                                                    //  by #0; a written file is a line `file PATH`
  end;

  PStatusPage = ^TStatusPage;
  /// The page.
  TStatusPage = record
    case Byte of
      0: (
        Head: TPageHead;         //< const   what stays the same
        Sequence: TPageWord;     //< shared  of Totals: odd while they are written
        Totals: TPageTotals;     //< shared  the state of the heap
        Mailbox: TPageMailbox;   //< shared  requests and answers
      );
      1: (Bytes: array[0..PageBytes - 1] of Byte); //< padding
  end;

implementation

{$if SizeOf(TStatusPage) <> PageBytes}
  {$message fatal 'TStatusPage: the fields no longer fit the page'}
{$ifend}

end.
