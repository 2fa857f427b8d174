/// The status page as data: what a process shows of itself to tools outside of it, and the mailbox.
//
// Owns:       nothing; the page belongs to LaneMM.LivePage, the mailbox to LaneMM.Mailbox.
// Invariants: one page of 4,096 bytes, a file in memory with the name PageName, mapped and open in
//             the process; little-endian. Head is written before the page is mapped, and constant.
//             Totals obey a sequence lock: Sequence is odd while they are written; a reader takes
//             them as valid if it read the same even number before and after them.
//             Mailbox: a tool holds it while it holds the lock of the file (flock), which the
//             system releases when the tool ends in any way. It writes Words, then adds 1 to
//             Requested and sends one of Signals. The process answers when it can:
//             it sets Taken to Requested, writes Answer, Outcome and Totals, then sets Answered to
//             Taken. While Answered differs, the tool sends the signal again: the process may have
//             been where it could not answer, and has then counted that in Postponed.
//             A child process after fork maps the page of its parent until it has one of its own:
//             Head.ProcessId tells them apart.
// Callers:    LaneMM inside the process, and tools outside: it uses no other unit.
unit LaneMM.StatusPage;

{$I ../LaneMM.inc}

interface

const
  /// Name of the memory file: /proc/PID/maps and the links in /proc/PID/fd show `/memfd:lanemm`,
  /// with ` (deleted)` after it.
  PageName = 'lanemm';
  /// First bytes of the page.
  PageMagic = 'LaneMM'#13#10;
  /// Version of the page and of the records of LaneMM.Types: raised when one of them changes, also
  /// where no size changes. A tool with another number must not read the records.
  PageLayout = 7;
  /// Bytes of the page.
  PageBytes = 4096;
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
    HasMailbox: Cardinal;                        //< const   1: requests are answered
    Signals: array[0..1] of Cardinal;            //< const   signals that ask for an answer, the
                                                 //  first one first; 0: none
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
