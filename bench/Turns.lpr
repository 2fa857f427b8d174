/// Plays threads that allocate and free in turns: one runs at a time, in a fixed order.
//
// bench/lines.sh traces the accesses to memory, and bench/SharedLines.lpr counts the cache lines
// that the threads take from each other. In turns the count depends on no clock and no load, and
// each line that two threads write moves each time, as it would at worst on many processors.
program Turns;

{$I Bench.inc}

uses
  cthreads, SysUtils, Bench.Marks, Bench.Semaphore, Bench.Words;

const
  Usage =
    'Turns ROW [THREADS]' + LineEnding +
    '  THREADS: 2 to 31, 4 unless given. Prints the words that the manager names.' + LineEnding +
    'Rows:' + LineEnding;
  Held = 400;     // most blocks that a thread holds
  SmallSize = 64;
  LargeSize = 128 * 1024;
  FirstSize = 48; // of the first classes

type
  // What a thread does in its turn.
  TAction = (acPair, acAllocate, acFree, acReplace, acReplaceLarge, acFirst, acEnd);

  // A thread that waits for its turn.
  TPlayer = record
    Handle: PtrUInt;
    Number: Integer;       // from 1; in a trace
    Action: TAction;
    Size: PtrUInt;         // of the blocks
    First, Count: Integer; // which of Blocks
    From: Integer;         // whose blocks
    Turn: TSemaphore;
    Blocks: array[0..Held - 1] of Pointer;
  end;
  PPlayer = ^TPlayer;

  TRowProc = procedure;

  TRow = record
    Name: string;
    About: string; // its operation
    Play: TRowProc;
  end;

var
  Players: array[1..MostThreads - 1] of TPlayer;
  PlayerCount: Integer = 4;
  Done: TSemaphore;
  Random32: Cardinal = 1; // in turns, so one generator serves all

function PthreadCreate(out Handle: PtrUInt; Attributes: Pointer; Body: Pointer; Data: Pointer): LongInt;
  cdecl; external 'c' name 'pthread_create';
function PthreadJoin(Handle: PtrUInt; Result: Pointer): LongInt; cdecl;
  external 'c' name 'pthread_join';

// Returns a number below Limit.
function NextRandom(Limit: Cardinal): Cardinal;
begin
  Random32 := Random32 xor (Random32 shl 13);
  Random32 := Random32 xor (Random32 shr 17);
  Random32 := Random32 xor (Random32 shl 5);
  Result := Random32 mod Limit;
end;

// The program writes the first word of each block, as any would.
function Allocated(Number: Integer; Size: PtrUInt): Pointer;
begin
  Mark(maThread, Number);
  Result := GetMem(Size);
  PPtrUInt(Result)^ := Size;
  Mark(maNobody);
end;

procedure Release(Number: Integer; Block: Pointer);
begin
  Mark(maThread, Number);
  FreeMem(Block);
  Mark(maNobody);
end;

procedure Replace(var Player: TPlayer; Size: PtrUInt);
var
  Place: Integer;
begin
  Place := Player.First + Integer(NextRandom(Player.Count));
  if Player.Blocks[Place] <> nil then
    Release(Player.Number, Player.Blocks[Place]);
  Player.Blocks[Place] := Allocated(Player.Number, Size);
end;

procedure Act(var Player: TPlayer);
var
  I: Integer;
begin
  case Player.Action of
    acPair:
      Release(Player.Number, Allocated(Player.Number, Player.Size));
    acAllocate:
      for I := Player.First to Player.First + Player.Count - 1 do
        Player.Blocks[I] := Allocated(Player.Number, Player.Size);
    acFree:
      for I := Player.First to Player.First + Player.Count - 1 do
        Release(Player.Number, Players[Player.From].Blocks[I]);
    acReplace:
      Replace(Player, 16 + NextRandom(1009));
    acReplaceLarge:
      Replace(Player, 65537 + NextRandom(960 * 1024));
    acFirst:
      Player.Blocks[Player.First] := Allocated(Player.Number, Player.Size);
  end;
end;

function PlayerMain(Player: PPlayer): Pointer; cdecl;
var
  IsLast: Boolean;
begin
  repeat
    SemaphoreWait(Player^.Turn);
    IsLast := Player^.Action = acEnd; // the next turn may begin after SemaphorePost
    Act(Player^);
    SemaphorePost(Done);
  until IsLast;
  Result := nil;
end;

// Lets a thread do Action, and waits for it.
procedure Turn(Number: Integer; Action: TAction; Size: PtrUInt; First, Count, From: Integer);
var
  Player: PPlayer;
begin
  Player := @Players[Number];
  Player^.Action := Action;
  Player^.Size := Size;
  Player^.First := First;
  Player^.Count := Count;
  Player^.From := From;
  SemaphorePost(Player^.Turn);
  SemaphoreWait(Done);
end;

procedure Operations(Count: Integer);
var
  I: Integer;
begin
  for I := 1 to Count do
    Mark(maOperation);
end;

function Other(Number: Integer): Integer;
begin
  Result := Number mod PlayerCount + 1;
end;

// The first half of the rounds is warm-up.
procedure BeginRound(Number, Count: Integer);
begin
  if Number = Count div 2 + 1 then
    Mark(maMeasure);
end;

// Rounds of turns of all threads, each of some operations.
procedure Rounds(Count: Integer; Action: TAction; Size: PtrUInt; Blocks: Integer);
var
  I, Number: Integer;
begin
  for I := 1 to Count do
  begin
    BeginRound(I, Count);
    for Number := 1 to PlayerCount do
    begin
      Turn(Number, Action, Size, 0, Blocks, Number);
      Operations(1);
    end;
  end;
end;

procedure PlayPairs;
begin
  Rounds(100, acPair, SmallSize, 1);
end;

procedure PlayChurn;
begin
  Rounds(800, acReplace, 0, Held div 2);
end;

procedure PlayLarge;
begin
  Rounds(100, acPair, LargeSize, 1);
end;

procedure PlayLargeChurn;
begin
  Rounds(400, acReplaceLarge, 0, 8);
end;

// Each thread allocates Blocks blocks; then the thread that is Distance further frees them.
procedure Handed(Count: Integer; Size: PtrUInt; Blocks, Distance: Integer);
var
  I, Number: Integer;
begin
  for I := 1 to Count do
  begin
    BeginRound(I, Count);
    for Number := 1 to PlayerCount do
      Turn(Number, acAllocate, Size, 0, Blocks, Number);
    for Number := 1 to PlayerCount do
      Turn((Number - 1 + Distance) mod PlayerCount + 1, acFree, Size, 0, Blocks, Number);
    Operations(Blocks * PlayerCount);
  end;
end;

procedure PlayBurst;
begin
  Handed(40, 1024, Held, 0);
end;

procedure PlayRemote;
begin
  Handed(200, SmallSize, 1, 1);
end;

procedure PlayRemoteBatch;
begin
  Handed(40, SmallSize, 100, 1);
end;

procedure PlayRemoteBurst;
begin
  Handed(20, 1024, Held, 1);
end;

procedure PlayLargeRemote;
begin
  Handed(100, LargeSize, 1, 1);
end;

// The blocks of each thread are freed by all others, one at a time in turn.
procedure PlayRemoteMany;
var
  I, Number, Block, By: Integer;
begin
  for I := 1 to 8 do
  begin
    if I = 5 then
      Mark(maMeasure);
    for Number := 1 to PlayerCount do
    begin
      Turn(Number, acAllocate, SmallSize, 0, 100, Number);
      By := Number;
      for Block := 0 to 99 do
      begin
        By := Other(By);
        if By = Number then
          By := Other(By);
        Turn(By, acFree, SmallSize, Block, 1, Number);
      end;
      Operations(100);
    end;
  end;
end;

// The first block of a thread in each of 30 size classes, from 16 to 8,192 bytes; no warm-up.
procedure PlayFirst;
var
  I, Number: Integer;
  Size: PtrUInt;
begin
  Mark(maMeasure);
  for I := 0 to 29 do
  begin
    if I < 16 then
      Size := 16 * (I + 1)
    else
      Size := PtrUInt(256) shl ((I - 14) div 3) + PtrUInt(I mod 3) * 64;
    for Number := 1 to PlayerCount do
    begin
      Turn(Number, acFirst, Size, I, 1, Number);
      Operations(1);
    end;
  end;
end;

var
  // The blocks of a thread that ends.
  Left: array[0..39] of Pointer;
  Spawned: Integer;
  SpawnedBlocks, SpawnedLeft: Integer;

// Allocates, frees the rest of Left, and frees all but some of its own; what follows until the next
// mark, the end of the thread, is the manager's and the thread library's.
function SpawnedMain(Unused: Pointer): Pointer; cdecl;
var
  I: Integer;
  Mine: array[0..39] of Pointer;
begin
  FillChar(Mine, SizeOf(Mine), 0);
  for I := 0 to SpawnedBlocks - 1 do
    Mine[I] := Allocated(Spawned, 16 + I mod 5 * 40);
  for I := 0 to SpawnedLeft - 1 do
    if Left[I] <> nil then
      Release(Spawned, Left[I]);
  for I := 0 to SpawnedBlocks - 1 do
    if I < SpawnedLeft then
      Left[I] := Mine[I]
    else
      Release(Spawned, Mine[I]);
  Mark(maThread, Spawned);
  Result := nil;
end;

// Threads that follow each other on the processors in turn.
procedure Spawn(Blocks, LeftBlocks: Integer);
var
  I: Integer;
  Handle: PtrUInt;
begin
  SpawnedBlocks := Blocks;
  SpawnedLeft := LeftBlocks;
  for I := 1 to 80 do
  begin
    if I = 41 then
      Mark(maMeasure);
    Spawned := I mod PlayerCount + 1;
    PthreadCreate(Handle, nil, @SpawnedMain, nil);
    PthreadJoin(Handle, nil);
    Mark(maNobody);
    Operations(1);
  end;
end;

procedure PlaySpawnNone;
begin
  Spawn(0, 0);
end;

procedure PlaySpawn;
begin
  Spawn(40, 0);
end;

procedure PlaySpawnLeave;
begin
  Spawn(40, 10);
end;

const
  Rows: array[0..13] of TRow = (
    (Name: 'own'; About: 'a thread allocates 64 bytes and frees them'; Play: PlayPairs),
    (Name: 'own-churn'; About: 'a thread replaces one of 200 blocks of 16 to 1,024 bytes';
      Play: PlayChurn),
    (Name: 'own-burst'; About: 'one of 400 blocks of 1 KB that a thread allocates, then frees';
      Play: PlayBurst),
    (Name: 'first'; About: 'the first block of a thread in a size class'; Play: PlayFirst),
    (Name: 'remote'; About: 'a block of 64 bytes that the next thread frees'; Play: PlayRemote),
    (Name: 'remote-batch'; About: 'one of 100 such blocks'; Play: PlayRemoteBatch),
    (Name: 'remote-burst'; About: 'one of 400 blocks of 1 KB that the next thread frees';
      Play: PlayRemoteBurst),
    (Name: 'remote-many'; About: 'one of 100 blocks that the other threads free in turn';
      Play: PlayRemoteMany),
    (Name: 'large'; About: 'a thread allocates 128 KB and frees them'; Play: PlayLarge),
    (Name: 'large-churn'; About: 'a thread replaces one of 8 blocks of 64 KB to 1 MB';
      Play: PlayLargeChurn),
    (Name: 'large-remote'; About: '128 KB that the next thread frees'; Play: PlayLargeRemote),
    (Name: 'spawn-none'; About: 'a thread begins and ends, and allocates nothing';
      Play: PlaySpawnNone),
    (Name: 'spawn'; About: 'a thread begins, allocates and frees 40 blocks, ends';
      Play: PlaySpawn),
    (Name: 'spawn-leave'; About: 'the same; 10 of the blocks are left to the next thread';
      Play: PlaySpawnLeave)
  );

procedure PlayersStart;
var
  I: Integer;
begin
  SemaphoreStart(Done, 0);
  for I := 1 to PlayerCount do
  begin
    Players[I].Number := I;
    SemaphoreStart(Players[I].Turn, 0);
    PthreadCreate(Players[I].Handle, nil, @PlayerMain, @Players[I]);
  end;
end;

procedure PlayersEnd;
var
  I: Integer;
begin
  for I := 1 to PlayerCount do
  begin
    Turn(I, acEnd, 0, 0, 0, I);
    PthreadJoin(Players[I].Handle, nil);
  end;
end;

procedure Main;
var
  Row: TRow;
begin
  if ParamCount >= 2 then
    PlayerCount := StrToInt(ParamStr(2));
  if (PlayerCount >= 2) and (PlayerCount < MostThreads) then
    for Row in Rows do
      if Row.Name = ParamStr(1) then
      begin
        MarksStart;
        PlayersStart;
        Row.Play;
        PrintWords;
        PlayersEnd;
        Exit;
      end;
  Write(Usage);
  for Row in Rows do
    WriteLn('  ', Row.Name:14, '  ', Row.About);
  Halt(2);
end;

begin
  Main;
end.
