/// The state of observe/: the tables of call sites, growing blocks and samples.
//
// Owns:       Observe. SampleLock is only tried, and held while shards are tried.
unit LaneMM.ObserveState;

{$I ../LaneMM.inc}

interface

uses
  LaneMM.Layout, LaneMM.Types, LaneMM.Hooks;

type
  /// Frees a block; returns its usable size.
  TFreeMemCall = function(P: Pointer): TSize;
  /// The same for a block of Size bytes.
  TFreeSizeCall = function(P: Pointer; Size: TSize): TSize;

  /// The state that the room shares.
  TObserve = record
    SiteKeys: TAtomicWord;      //< shared  keys of the sites, see LaneMM.CallSites; 0: no table
    Sites: Pointer;             //< const   records of the sites, see LaneMM.CallSites
    SitesUsed: TAtomicWord;     //< shared  sites in the table
    SitesLost: TAtomicWord;     //< shared  events that found the table full
    RemoteFrees: TAtomicWord;   //< shared  remote frees seen by LaneMM.LockProfile
    LockMisses: TAtomicWord;    //< shared  failed tries of locks seen by LaneMM.LockProfile
    Growths: TAtomicWord;       //< shared  the table of LaneMM.Growth; 0: none
    GrowthStacks: TAtomicWord;  //< shared  growth events that might take a backtrace
    GrowthCall: TResizeCall;    //< racy    resizes blocks for LaneMM.Growth, see LaneMM.Watch; an
                                //  old value resizes every block as well
    Chains: TAtomicWord;        //< shared  the table of LaneMM.Copies; 0: none
    GetCall, GetZeroCall: TSizeCall; //< racy    get blocks for LaneMM.Copies, likewise
    FreeCall: TFreeMemCall;     //< racy    frees blocks for it
    FreeSizeCall: TFreeSizeCall; //< racy   likewise
    SampleLock: TLock;          //< shared  guards the spans of Samples; only tried
    Samples: PHeap;             //< const   owns the spans of sampled blocks; nil: none yet
    SampleTable: TAtomicWord;   //< shared  the sampled blocks, see LaneMM.Sampler; 0: none
    SamplesLost: TAtomicWord;   //< shared  blocks that could not be sampled
  end;

var
  /// The state of observe/.
  Observe: TObserve;

implementation

end.
