/// Holds the entries. Somebody uses it, behind
/// the end. somebodys is another word.
unit LaneMM.Allocate;

interface

const
  /// Whether it does; this one was
  ///   got by us. Asks whether it should.
  IsDone = True; //< whether nothing stands before it
  IsLast = True; // behind
  IsNext = True; // the end

implementation

// Behind

// the end, and in code: Somebody.
procedure Somebody;
begin
  Write('Written behind the end by somebody of ''somebody''');
end;

{$ifdef somebody}
{$endif}

end.
