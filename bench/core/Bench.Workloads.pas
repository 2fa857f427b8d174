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
    /// Checks what the threads left and frees it. Called once, after the clock has stopped.
    procedure Finish; virtual;
    /// The row in the tables.
    property Name: string read FName;
    /// Operations of a run of scale 1.
    property Operations: Int64 read FOperations;
  end;

  /// All that a simple workload is.
  TRunProcedure = procedure(const Job: TJob);
  /// A part of a job: Count operations, at most as many as a part has.
  TPartProcedure = procedure(Count: Int64);

/// Adds a workload whose threads share nothing: each one runs Run.
procedure AddWorkload(const Name: string; Operations: Int64; Run: TRunProcedure);
/// Adds a workload whose threads do their operations in parts, the last of which is smaller.
procedure AddWorkloadInParts(const Name: string; Operations, PartSize: Int64;
  Part: TPartProcedure);

/// Finds a workload; nil if there is none of that name.
function WorkloadByName(const Name: string): TWorkload;
/// Names all workloads, one per line.
function WorkloadNames: string;

/// Reports a number that only this workload knows, by the name of its measure (see
/// Runner.Suite). Main thread only.
procedure TellFact(const Measure: string; Value: Int64);
/// Gives the reported numbers, each as ',measure=value'.
function FactsTold: string;

implementation

uses
  SysUtils;

type
  TSimpleWorkload = class(TWorkload)
  private
    FRun: TRunProcedure;
  public
    procedure Run(const Job: TJob); override;
  end;

  TWorkloadInParts = class(TWorkload)
  private
    FPartSize: Int64;
    FPart: TPartProcedure;
  public
    procedure Run(const Job: TJob); override;
  end;

var
  Workloads: array of TWorkload; // filled by the initialization sections
  Facts: string;

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

procedure TWorkload.Finish;
begin
end;

procedure TSimpleWorkload.Run(const Job: TJob);
begin
  FRun(Job);
end;

procedure TWorkloadInParts.Run(const Job: TJob);
var
  Left: Int64;
begin
  Left := Job.Operations;
  while Left > FPartSize do
  begin
    FPart(FPartSize);
    Dec(Left, FPartSize);
  end;
  FPart(Left);
end;

procedure AddWorkload(const Name: string; Operations: Int64; Run: TRunProcedure);
var
  Workload: TSimpleWorkload;
begin
  Workload := TSimpleWorkload.Create(Name, Operations);
  Workload.FRun := Run;
end;

procedure AddWorkloadInParts(const Name: string; Operations, PartSize: Int64;
  Part: TPartProcedure);
var
  Workload: TWorkloadInParts;
begin
  Workload := TWorkloadInParts.Create(Name, Operations);
  Workload.FPartSize := PartSize;
  Workload.FPart := Part;
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

procedure TellFact(const Measure: string; Value: Int64);
begin
  Facts := Facts + Format(',%s=%d', [Measure, Value]);
end;

function FactsTold: string;
begin
  Result := Facts;
end;

end.
