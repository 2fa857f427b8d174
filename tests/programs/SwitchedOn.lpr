/// Settings are switched on one after the other while threads allocate, resize and free blocks, also
/// with alignments: each one has its tables before a thread needs them. Exit code 0 on success.
program SwitchedOn;

{$mode delphi}{$H+}

uses
  LaneMM, {$ifdef UNIX} cthreads, {$endif} Classes, SysUtils, Promises;

type
  TWorker = class(TThread)
    Rounds: NativeUInt;
    procedure Execute; override;
  end;

const
  // A table is made once in a process. `guard=sample` counts as a profile does, with the same entries.
  Steps: array[0..8] of ShortString = ('least=1G', 'guard=sample:1K', 'profile,rate=1K', 'profile=0',
    'growth', 'contention', 'stacks', 'debug', 'debug=0,guard=0,growth=0,contention=0,stacks=0');

var
  Workers: array[0..2] of TWorker;

procedure TWorker.Execute;
var
  P, Q: Pointer;
begin
  repeat
    P := LaneMM_GetMemAligned(100, 64);
    Q := GetMem(200);
    ReallocMem(P, 400);
    ReallocMem(Q, 5000);
    FreeMem(P);
    FreeMem(Q);
    Inc(Rounds);
  until Terminated;
end;

// Waits until each thread has met what is switched on, or has ended.
procedure AwaitRounds;
const
  Many = 1000;
var
  Worker: TWorker;
  Before: NativeUInt;
begin
  for Worker in Workers do
  begin
    Before := Worker.Rounds;
    while (NativeUInt(Worker.Rounds - Before) < Many) and not Worker.Finished do
      ThreadSwitch;
  end;
end;

var
  Worker: TWorker;
  Step: ShortString;
  Index: Integer;
begin
  for Index := 0 to High(Workers) do
    Workers[Index] := TWorker.Create(False);
  for Step in Steps do
  begin
    AwaitRounds;
    Expect(LaneMM_Configure(Step), Step);
  end;
  for Worker in Workers do
  begin
    Worker.Terminate;
    Worker.WaitFor;
    Expect(Worker.FatalException = nil, 'a thread goes on while a setting is switched on');
    Expect(Worker.Rounds > 0, 'it has allocated');
    Worker.Free;
  end;
  Finish;
end.
