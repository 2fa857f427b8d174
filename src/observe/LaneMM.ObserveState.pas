/// The state of observe/: the tables of call sites, growing blocks and samples.
//
// Owns:       Observe. SampleLock is taken before the arena lock.
unit LaneMM.ObserveState;

{$I ../LaneMM.inc}

interface


uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks;


type
  /// What the room shares.
  TObserve = record
    SiteKeys: TAtomicWord;      //< shared  see LaneMM.CallSites
    Sites: Pointer;             //< const   the records of LaneMM.CallSites
    SitesUsed: TAtomicWord;     //< shared  sites in the table
    SitesLost: TAtomicWord;     //< shared  events that found it full
    RemoteFrees: TAtomicWord;   //< shared  counted since they are watched
    LockMisses: TAtomicWord;    //< shared  see LaneMM.LockProfile
    Growths: TAtomicWord;       //< shared  see LaneMM.Growth
    GrowthStacks: TAtomicWord;  //< shared  backtraces that it took
    GrowthCall: TResizeCall;    //< shared  resizes the blocks that it counts
    SampleLock: TLock;          //< shared  guards the spans of Samples; rank before Arena
    Samples: PHeap;             //< const   owns the spans of sampled blocks; nil: none yet
    SampleTable: TAtomicWord;   //< shared  see LaneMM.Sampler
    SamplesLost: TAtomicWord;   //< shared  blocks that could not be sampled
  end;

var
  /// The state of observe/.
  Observe: TObserve;

implementation
end.
