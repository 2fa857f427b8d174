/// Evaluates a tree of nodes, as a script engine does its syntax tree, and frees the whole tree
/// meanwhile: then only registers and stack of the evaluation hold the nodes, and it goes on with a
/// freed one. What that raises is caught, as an engine does with the errors of a script, and the
/// evaluation of the node tried again.
///   FreedTree TRIES
/// Writes the number of errors that were caught on the standard error output.
program FreedTree;

{$mode delphi}{$H+}

uses
  LaneMM, cthreads, SysUtils;

type
  TNode = class
    Left, Right: TNode;
    Number: Integer;
    destructor Destroy; override;
  end;

  /// Frees the tree when it is evaluated.
  TDrop = class(TNode)
  end;

const
  Depth = 3;

var
  Root: TNode;
  Tries, Caught: Integer;

destructor TNode.Destroy;
begin
  Left.Free;
  Right.Free;
  inherited Destroy;
end;

function NewLeaf: TNode;
begin
  Result := TNode.Create;
  Result.Number := 1;
end;

function NewNode(Height: Integer): TNode;
begin
  if Height = 0 then
    Exit(TDrop.Create);
  Result := TNode.Create; // planted: allocated
  Result.Left := NewNode(Height - 1);
  Result.Right := NewLeaf;
end;

procedure DropTree;
begin
  FreeAndNil(Root); // planted: freed
end;

function RightOf(Node: TNode): Integer;
begin
  Result := Node.Right.Number; // planted: used
end;

function TryRight(Node: TNode): Integer;
var
  Turn: Integer;
begin
  Result := 0;
  for Turn := 1 to Tries do
    try
      Result := Result + RightOf(Node);
    except
      on EAccessViolation do
        Inc(Caught);
    end;
end;

function Evaluate(Node: TNode): Integer;
begin
  if Node is TDrop then
  begin
    DropTree;
    Exit(0);
  end;
  Result := Evaluate(Node.Left) + TryRight(Node);
end;

begin
  Tries := StrToInt(ParamStr(1));
  Root := NewNode(Depth);
  Evaluate(Root);
  WriteLn(StdErr, Caught, ' caught');
end.
