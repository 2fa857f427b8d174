/// How much memory does a chain of threads take that hand on documents?
//
// A document is a tree of 500 to 4,000 objects, each with two strings and an array of its children.
// The first thread makes it; each further one checks it, gives every object a new text and a new
// array, and replaces each leaf; the last one checks and frees it. 48 documents, 18 MB, are under
// way at the most. One operation is one document.
// pipeline-long does the same with four times as many documents: memory must not follow.
// Source: services that parse, transform and send; a block is freed by another thread than the one
//         that made it, and only one thread makes large numbers of blocks.
unit Workload.Pipeline;

{$I Bench.inc}

interface

implementation

uses
  Math, Bench.Blocks, Bench.Ring, Bench.Workloads;

const
  DocumentCount = 600;
  LongFactor = 4;
  PlaceCount = 48;
  SmallestTree = 500;
  TreeDoublings = 4;
  MostChildren = 8;
  ShortestText = 8;

type
  /// An element of a document. Its texts follow from its key and the stage that made them.
  TNode = class
  private
    FKey: UInt64;                //< const   what it was made from
    FName: AnsiString;           //< owner   the same in all stages
    FText: AnsiString;           //< owner   another one in each stage
    FChildren: array of TNode;   //< owner   the elements below
    procedure CheckTexts(Stage: Integer);
  public
    constructor Create(Key: UInt64; Count, Stage: Integer);
    procedure Edit(Stage: Integer);
    procedure Drop(Stage: Integer);
  end;

  /// One stage per thread. Rings[S] has the places of the documents that stage S is to work on; that
  /// of the first stage has the empty places.
  TPipeline = class(TWorkload)
  private
    FRings: array of TRing;      //< shared  one in front of each stage
    FDocuments: array[0..PlaceCount - 1] of TNode; //< owner   of its place
    procedure Work(Stage, Place: Integer; Key: UInt64);
  public
    procedure Prepare(ThreadCount: Integer); override;
    procedure Run(const Job: TJob); override;
  end;

/// Returns a text of one letter.
function TextOf(Key: UInt64; Length: Integer): AnsiString;
begin
  Result := StringOfChar(AnsiChar(Ord('a') + Key shr 32 mod 26), Length);
end;

/// Returns the length of the text that a stage gives to a node: 8 to 135.
function TextLength(Key: UInt64; Stage: Integer): Integer;
begin
  Result := ShortestText + (Key shr (7 * Stage)) and 127;
end;

/// Returns the length of the name of a node: 8 to 23.
function NameLength(Key: UInt64): Integer;
begin
  Result := ShortestText + Key shr 60;
end;

/// Makes a tree of Count nodes.
constructor TNode.Create(Key: UInt64; Count, Stage: Integer);
var
  I, ChildCount: Integer;
begin
  FKey := Key;
  FName := TextOf(Key, NameLength(Key));
  FText := TextOf(Key, TextLength(Key, Stage));
  ChildCount := Min(Count - 1, MostChildren);
  SetLength(FChildren, ChildCount);
  for I := 0 to ChildCount - 1 do
    FChildren[I] := TNode.Create(RandomNext(Key), (Count - 1 + I) div ChildCount, Stage);
end;

/// Ends the process unless the texts are those that Stage made.
procedure TNode.CheckTexts(Stage: Integer);
var
  Letter: AnsiChar;
begin
  Letter := TextOf(FKey, 1)[1];
  Check((Length(FName) = NameLength(FKey)) and (FName[1] = Letter), 'a node has lost its name');
  Check((Length(FText) = TextLength(FKey, Stage)) and (FText[1] = Letter)
    and (FText[Length(FText)] = Letter), 'a node has lost its text');
end;

/// Checks the tree, which the stage before has made, and makes it that of Stage.
procedure TNode.Edit(Stage: Integer);
var
  I: Integer;
  Key: UInt64;
begin
  CheckTexts(Stage - 1);
  FText := TextOf(FKey, TextLength(FKey, Stage));
  FChildren := Copy(FChildren);
  for I := 0 to High(FChildren) do
    if FChildren[I].FChildren <> nil then
      FChildren[I].Edit(Stage)
    else
    begin
      Key := FChildren[I].FKey;
      FChildren[I].Drop(Stage - 1);
      FChildren[I] := TNode.Create(RandomNext(Key), {Count} 1, Stage);
    end;
end;

/// Checks and frees the tree.
procedure TNode.Drop(Stage: Integer);
var
  Child: TNode;
begin
  CheckTexts(Stage);
  for Child in FChildren do
    Child.Drop(Stage);
  Free;
end;

procedure TPipeline.Prepare(ThreadCount: Integer);
var
  I: Integer;
begin
  Check(ThreadCount > 1, 'pipeline: needs a thread for each end');
  SetLength(FRings, ThreadCount);
  for I := 0 to ThreadCount - 1 do
    RingStart(FRings[I], PlaceCount);
  for I := 0 to PlaceCount - 1 do
    RingPut(FRings[0], I);
end;

procedure TPipeline.Work(Stage, Place: Integer; Key: UInt64);
begin
  if Stage = 0 then
    FDocuments[Place] := TNode.Create(Key, SmallestTree shl RandomIndex(Key, TreeDoublings), Stage)
  else if Stage < High(FRings) then
    FDocuments[Place].Edit(Stage)
  else
    FDocuments[Place].Drop(Stage - 1);
end;

procedure TPipeline.Run(const Job: TJob);
var
  I: Int64;
  Place: Integer;
  State: UInt64;
begin
  State := RandomSeed(Job.Thread);
  for I := 1 to Job.Operations * Length(FRings) do
  begin
    Place := RingTake(FRings[Job.Thread]);
    Work(Job.Thread, Place, RandomNext(State));
    RingPut(FRings[(Job.Thread + 1) mod Length(FRings)], Place);
  end;
end;

initialization
  TPipeline.Create('pipeline', DocumentCount);
  TPipeline.Create('pipeline-long', LongFactor * DocumentCount);

end.
