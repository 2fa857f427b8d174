/// Names of the words that a memory manager shares between threads.
unit Bench.Words;

{$I Bench.inc}

interface

var
  /// Prints the words of the manager, one a line: name, address, size, step, count. Set by the
  /// unit of a manager that can name them.
  PrintWords: procedure;

implementation

procedure NoWords;
begin
end;

initialization
  PrintWords := NoWords;

end.
