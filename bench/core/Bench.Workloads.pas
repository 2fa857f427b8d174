/// What a workload is, and the list of those that this program can run.
//
// Every workload unit adds its own in its initialization section; the program only names
// the units in its uses clause. A name is group-case: 'pairs-64', 'churn-small'.
unit Bench.Workloads;

{$I Bench.inc}

interface

type
  /// The part of a run that one thread does.
  TJob = record
    Thread: Integer;     //< const   number of the thread, from 0
    Operations: Int64;   //< const   the operations of the run divided by its threads
  end;

  /// A fixed amount of work whose time is measured.
  TWorkload = class
  private
    FName: string;
    FOperations: Int64;
  public
    /// Adds the workload to the list. Operations, of all threads together: what a fast
    /// manager does in 0.2 to 0.5 seconds.
    constructor Create(const Name: string; Operations: Int64);
    /// Makes what the threads share. Called once, before the clock starts.
    procedure Prepare(ThreadCount: Integer); virtual;
    /// Does Job and checks what it reads. Called in every thread of the run at once.
    procedure Run(const Job: TJob); virtual; abstract;
    /// The row in the tables.
    property Name: string read FName;
    /// Operations of a run of scale 1.
    property Operations: Int64 read FOperations;
  end;

/// Finds a workload; nil if there is none of that name.
function WorkloadByName(const Name: string): TWorkload;
/// Names all workloads, one per line.
function WorkloadNames: string;

implementation

var
  Workloads: array of TWorkload; // filled by the initialization sections

constructor TWorkload.Create(const Name: string; Operations: Int64);
begin
  inherited Create;
  FName := Name;
  FOperations := Operations;
  Insert(Self, Workloads, Length(Workloads));
end;

procedure TWorkload.Prepare(ThreadCount: Integer);
begin
end;

function WorkloadByName(const Name: string): TWorkload;
begin
  for Result in Workloads do
    if Result.Name = Name then
      Exit;
  Result := nil;
end;

function WorkloadNames: string;
var
  Workload: TWorkload;
begin
  Result := '';
  for Workload in Workloads do
    Result := Result + Workload.Name + LineEnding;
end;

end.
