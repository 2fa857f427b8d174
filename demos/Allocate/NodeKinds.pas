/// Nodes of a tree as objects and as records, made and freed by the million.
unit NodeKinds;

{$mode delphi}{$H+}

interface

type
  /// A chain of nodes. It has the same two links and one value whatever its kind.
  TNodes = class
    /// Makes Count nodes.
    procedure Make(Count: Integer); virtual; abstract;
    /// Frees all nodes, newest first, and returns how many there were.
    function FreeAll: Integer; virtual; abstract;
  end;

  TNodesClass = class of TNodes;

  /// Nodes that are objects.
  TObjectNodes<T> = class(TNodes)
  private type
    TNode = class
      Left, Right: TNode;
      Data: T;
    end;
  private
    Newest: TNode;
  public
    procedure Make(Count: Integer); override;
    function FreeAll: Integer; override;
  end;

  /// Nodes that are records.
  TRecordNodes<T> = class(TNodes)
  private type
    PNode = ^TNode;
    TNode = record
      Left, Right: PNode;
      Data: T;
    end;
  private
    Newest: PNode;
  public
    procedure Make(Count: Integer); override;
    function FreeAll: Integer; override;
  end;

  TPlainObjects = TObjectNodes<NativeUInt>;
  TPlainRecords = TRecordNodes<NativeUInt>;
  TTreeObjects = TObjectNodes<string>;
  TTreeRecords = TRecordNodes<string>;

  /// One row of the demo.
  TKind = record
    Key: string;           //< its name in --kind and in the output of --csv
    Title: string;         //< its name in the table
    Book: string;          //< ms in the book, with Delphi on another machine
    Nodes: TNodesClass;    //< what does the work
  end;

const
  Kinds: array[0..3] of TKind = (
    (Key: 'objects'; Title: 'objects'; Book: '366 + 76'; Nodes: TPlainObjects),
    (Key: 'records'; Title: 'records'; Book: '76 + 56'; Nodes: TPlainRecords),
    (Key: 'tree_objects'; Title: 'TTree<string>, objects'; Book: '669'; Nodes: TTreeObjects),
    (Key: 'tree_records'; Title: 'TTree<string>, records'; Book: '133'; Nodes: TTreeRecords));

implementation

procedure TObjectNodes<T>.Make(Count: Integer);
var
  Node: TNode;
  I: Integer;
begin
  for I := 1 to Count do
  begin
    Node := TNode.Create;
    Node.Left := Newest;
    Newest := Node;
  end;
end;

function TObjectNodes<T>.FreeAll: Integer;
var
  Node: TNode;
begin
  Result := 0;
  while Newest <> nil do
  begin
    Node := Newest;
    Newest := Node.Left;
    Node.Free;
    Inc(Result);
  end;
end;

procedure TRecordNodes<T>.Make(Count: Integer);
var
  Node: PNode;
  I: Integer;
begin
  for I := 1 to Count do
  begin
    New(Node);
    Node^.Left := Newest;
    Newest := Node;
  end;
end;

function TRecordNodes<T>.FreeAll: Integer;
var
  Node: PNode;
begin
  Result := 0;
  while Newest <> nil do
  begin
    Node := Newest;
    Newest := Node^.Left;
    Dispose(Node);
    Inc(Result);
  end;
end;

end.
