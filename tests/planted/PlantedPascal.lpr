/// 57 mistakes with the heap in Pascal. For run.sh.
///
///   PlantedPascal NAME   makes one mistake
///   PlantedPascal none   does the same work without any
///   PlantedPascal work N replaces a random one of 1,000 blocks N times
///   PlantedPascal list   a line for each: name, kind, marks of the lines that a report may name
///
/// The lines of the mistakes have the comment `bad: MARK`, those that allocate `got: MARK`.
program PlantedPascal;

{$mode objfpc}{$H+}{$pointermath on}{$R-}{$Q-}{$inline off}

uses
  {$if defined(unix) and not defined(HAS_THREADS)} cthreads, {$ifend} Classes, SysUtils;

type
  TMake = procedure;
  TMistake = record
    Name, Kind: string;
    Make: TMake;
    Marks: string;
  end;

  IActor = interface
    ['{5F3E4B1C-8A7D-4C3E-9B1A-2D6F70C1A3E5}']
    procedure Act;
    procedure Link(const Other: IActor);
  end;

  TActor = class(TInterfacedObject, IActor)
    Other: IActor;
    procedure Act;
    procedure Link(const Next: IActor);
  end;

  TThing = class
    Number: Integer;
    Text: string;
    Bytes: array[0..15] of Byte;
    procedure Count;
    function TextLength: Integer;
    procedure Notify(Sender: TObject);
    procedure Act; virtual;
  end;

  TOther = class(TThing);

  PEntry = ^TEntry;
  TEntry = record
    Number: Integer;
    Name: string;
  end;
  PWide = ^TWide;
  TWide = record
    Name: string;
    Bytes: array[0..99] of Byte;
  end;

const
  Large = 300000;

var
  IsBad: Boolean;
  Sink: NativeInt;
  GlobalBytes: array[0..63] of Byte;
  GlobalThing: TThing;

procedure TActor.Act;
begin
  Inc(Sink);
end;

procedure TActor.Link(const Next: IActor);
begin
  Other := Next;
end;

procedure TThing.Count;
begin
  Inc(Number); // bad: count
end;

function TThing.TextLength: Integer;
begin
  Result := Length(Text); // bad: text-length
end;

procedure TThing.Notify(Sender: TObject);
begin
  Text := Text + 'x'; // bad: notify
end;

procedure TThing.Act;
begin
  Inc(Sink);
end;

// ---------------------------------------------------------------------------- blocks

function Block(Size: NativeUInt): PByte;
begin
  GetMem(Result, Size); // got: block
  FillChar(Result^, Size, 0);
end;

procedure Put(P: Pointer);
begin
  FreeMem(P); // bad: free
end;

procedure WriteAt(P: PByte; Offset: NativeInt);
begin
  P[Offset] := 1; // bad: write
end;

procedure ReadAt(P: PByte; Offset: NativeInt);
begin
  Sink := P[Offset]; // bad: read
end;

type
  TAccess = procedure(P: PByte; Offset: NativeInt);

// Accesses a block at an offset; without the mistake, at its first byte.
procedure Beyond(Access: TAccess; Size: NativeUInt; Offset: NativeInt);
var
  P: PByte;
begin
  P := Block(Size);
  if not IsBad then
    Offset := 0;
  Access(P, Offset);
  Put(P);
end;

procedure OverOne; begin Beyond(@WriteAt, 96, 96); end;
procedure OverOdd; begin Beyond(@WriteAt, 13, 13); end;
procedure OverLarge; begin Beyond(@WriteAt, Large, Large); end;
procedure UnderOne; begin Beyond(@WriteAt, 100, -1); end;
procedure Under32; begin Beyond(@WriteAt, 100, -32); end;
procedure UnderLarge; begin Beyond(@WriteAt, Large, -2); end;
procedure ReadOver; begin Beyond(@ReadAt, 96, 96); end;
procedure ReadOverLarge; begin Beyond(@ReadAt, Large, Large); end;
procedure ReadUnder; begin Beyond(@ReadAt, 96, -1); end;

procedure OverMove;
var
  P: PByte;
  From: array[0..99] of Byte;
begin
  FillChar(From, SizeOf(From), 0);
  P := Block(80);
  Move(From, P^, 80 + 8 * Ord(IsBad)); // bad: move
  Put(P);
end;

procedure OverArray;
var
  Values: array of Integer;
  Index: Integer;
begin
  SetLength(Values, 10); // got: array
  for Index := 0 to 9 + Ord(IsBad) do
    Values[Index] := Index; // bad: array
end;

procedure OverString;
var
  Text: string;
begin
  SetLength(Text, 23); // got: string
  FillChar(Text[1], 23 + 3 * Ord(IsBad), 'x'); // bad: string
end;

procedure OverObject;
var
  Thing: TThing;
begin
  Thing := TThing.Create; // got: object
  FillChar(Thing.Bytes, SizeOf(Thing.Bytes) + 8 * Ord(IsBad), 0); // bad: object
  Thing.Free;
end;

procedure OverShrunk;
var
  P: PByte;
begin
  P := Block(200);
  ReallocMem(P, 120); // got: shrunk
  WriteAt(P, 119 + 30 * Ord(IsBad));
  Put(P);
end;

procedure OverRecord;
var
  P: Pointer;
begin
  P := Block(SizeOf(TEntry));
  FillChar(P^, SizeOf(TEntry) + 16 * Ord(IsBad), 0); // bad: record
  Put(P);
end;

procedure OverList;
var
  List: TFPList;
begin
  List := TFPList.Create;
  List.Capacity := 6; // got: list
  List.List^[5 + Ord(IsBad)] := nil; // bad: list
  List.Free;
end;

// ---------------------------------------------------------------------------- after free

procedure AfterFree(Access: TAccess; Size: NativeUInt; Offset: NativeInt);
var
  P: PByte;
begin
  P := Block(Size);
  if IsBad then
    Put(P);
  Access(P, Offset);
  if not IsBad then
    Put(P);
end;

procedure FreedWrite; begin AfterFree(@WriteAt, 100, 50); end;
procedure FreedWriteLarge; begin AfterFree(@WriteAt, Large, 150000); end;
procedure FreedRead; begin AfterFree(@ReadAt, 100, 50); end;
procedure FreedReadLarge; begin AfterFree(@ReadAt, Large, 150000); end;

procedure FreedMoved;
var
  P, Old: PByte;
begin
  P := Block(100);
  Old := P;
  ReallocMem(P, 9000); // got: moved
  if not IsBad then
    Old := P;
  WriteAt(Old, 20);
  Put(P);
end;

procedure FreedFollowed;
var
  P: ^PByte;
begin
  P := Pointer(Block(64));
  P^ := @GlobalBytes;
  if IsBad then
    Put(P);
  Sink := P^^; // bad: follow
  if not IsBad then
    Put(P);
end;

procedure FreedArray;
var
  Values: array of Integer;
  First: PInteger;
begin
  SetLength(Values, 40); // got: values
  First := @Values[0];
  if IsBad then
    Values := nil; // bad: values
  First[7] := 1; // bad: element
end;

procedure FreedText;
var
  Text: string;
  First: PChar;
begin
  Text := StringOfChar('a', 60 + Ord(IsBad));
  First := PChar(Text);
  if IsBad then
    Text := ''; // bad: text
  First[3] := 'b'; // bad: char
end;

function NewThing: TThing;
begin
  Result := TThing.Create; // got: thing
  Result.Text := 'thing ' + IntToStr(Random(100));
end;

// A thing that is freed already.
function Freed: TThing;
begin
  Result := NewThing;
  if IsBad then
    Result.Destroy; // bad: destroy
end;

procedure Done(Thing: TThing);
begin
  if not IsBad then
    Thing.Free;
end;

procedure FreedVirtual;
var
  Thing: TThing;
begin
  Thing := Freed;
  Thing.Act; // bad: virtual
  Done(Thing);
end;

procedure FreedCount;
var
  Thing: TThing;
begin
  Thing := Freed;
  Thing.Count; // bad: call-count
  Done(Thing);
end;

procedure FreedTextLength;
var
  Thing: TThing;
begin
  Thing := Freed;
  Sink := Thing.TextLength; // bad: call-length
  Done(Thing);
end;

procedure FreedNotify;
var
  Thing: TThing;
  Event: TNotifyEvent;
begin
  Thing := Freed;
  Event := @Thing.Notify;
  Event(nil); // bad: call-event
  Done(Thing);
end;

procedure FreedIs;
var
  Thing: TThing;
begin
  Thing := Freed;
  Sink := Ord(TObject(Thing) is TOther); // bad: is
  Done(Thing);
end;

procedure FreedClassName;
var
  Thing: TThing;
begin
  Thing := Freed;
  Sink := Length(Thing.ClassName); // bad: name
  Done(Thing);
end;

procedure FreedTwice;
var
  Thing: TThing;
begin
  Thing := Freed;
  Thing.Free; // bad: twice
end;

procedure FreedReadField;
var
  Thing: TThing;
begin
  Thing := Freed;
  Sink := Thing.Number; // bad: field
  Done(Thing);
end;

procedure FreedItem;
var
  List: TList;
begin
  List := TList.Create;
  List.Add(NewThing);
  if IsBad then
    TThing(List[0]).Free; // bad: item
  TThing(List[0]).Act; // bad: use-item
  if not IsBad then
    TThing(List[0]).Free;
  List.Free;
end;

procedure FreedInterface;
var
  Actor: IActor;
  Same: Pointer;
begin
  Actor := TActor.Create; // got: actor
  Same := Pointer(Actor);
  if IsBad then
    Actor := nil; // bad: release
  IActor(Same).Act; // bad: interface
end;

procedure ReleasedTwice;
var
  Actor: IActor;
begin
  Actor := TActor.Create; // got: released-actor
  if IsBad then
    Actor._Release; // bad: release-early
  Actor := nil; // bad: release-again
end;

// ---------------------------------------------------------------------------- twice

procedure TwiceFree;
var
  P: PByte;
begin
  P := Block(100);
  Put(P);
  if IsBad then
    Put(P);
end;

procedure TwiceDispose;
var
  Entry, Same: PEntry;
begin
  New(Entry); // got: entry
  Same := Entry;
  Dispose(Entry); // bad: dispose
  if IsBad then
    Dispose(Same); // bad: dispose-again
end;

function PutAside(P: Pointer): PtrInt;
begin
  Put(P);
  Result := 0;
end;

procedure TwiceThreads;
var
  P: PByte;
  Thread: TThreadID;
begin
  P := Block(48);
  Thread := BeginThread(@PutAside, P);
  WaitForThreadTerminate(Thread, 0);
  CloseThread(Thread);
  if IsBad then
    Put(P);
end;

// Two strings share a block that counts one.
procedure TwiceString;
var
  Text, Same: string;
begin
  Text := StringOfChar('s', 30 + Ord(IsBad)); // got: shared
  Same := '';
  if IsBad then
    Move(Text, Same, SizeOf(Pointer));
  Text := ''; // bad: shared
  Same := ''; // bad: shared-again
end;

procedure TwiceArray;
var
  Values, Same: array of Integer;
begin
  SetLength(Values, 20); // got: shared-array
  Same := nil;
  if IsBad then
    Move(Values, Same, SizeOf(Pointer));
  Values := nil; // bad: shared-array
  Same := nil; // bad: shared-array-again
end;

// ---------------------------------------------------------------------------- no block

procedure InnerFree;
var
  P: PByte;
begin
  P := Block(100);
  if IsBad then
    Put(P + 16)
  else
    Put(P);
end;

procedure StackFree;
var
  Bytes: array[0..63] of Byte;
begin
  FillChar(Bytes, SizeOf(Bytes), 0);
  if IsBad then
    Put(@Bytes);
end;

procedure GlobalFree;
begin
  if IsBad then
    Put(@GlobalBytes);
end;

procedure WildFree;
begin
  if IsBad then
    Put(Pointer(16384));
end;

procedure CharsFree;
var
  Text: string;
begin
  Text := StringOfChar('t', 40 + Ord(IsBad)); // got: chars
  if IsBad then
    Put(PChar(Text));
end;

procedure ObjectFree;
var
  Thing: TThing;
begin
  Thing := TThing.Create; // got: plain-object
  if IsBad then
    Put(Thing)
  else
    Thing.Free;
end;

procedure ArrayFree;
var
  Values: array of Integer;
begin
  SetLength(Values, 50); // got: freed-array
  if IsBad then
    Put(Pointer(Values));
end;

procedure InnerResize;
var
  P, Inner: PByte;
begin
  P := Block(100);
  if IsBad then
  begin
    Inner := P + 32;
    ReallocMem(Inner, 500); // bad: resize
  end;
  Put(P);
end;

// ---------------------------------------------------------------------------- mismatches

procedure NewFreeMem;
var
  Entry: PEntry;
begin
  New(Entry); // got: new
  Entry^.Name := 'entry ' + IntToStr(Random(100));
  if IsBad then
    FreeMem(Entry) // bad: new
  else
    Dispose(Entry);
end;

procedure GetMemDispose;
var
  Entry: PEntry;
begin
  if IsBad then
    GetMem(Entry, SizeOf(TEntry)) // got: dispose
  else
    New(Entry);
  Dispose(Entry); // bad: not-new
end;

procedure WrongSize;
var
  P: PByte;
begin
  P := Block(100);
  FreeMem(P, 100 + 60 * Ord(IsBad)); // bad: size
end;

// ---------------------------------------------------------------------------- never written

procedure NewFollowed;
var
  P: ^PByte;
begin
  GetMem(P, 64); // got: never-written
  if not IsBad then
    P^ := @GlobalBytes;
  Sink := P^^; // bad: never-written
  FreeMem(P);
end;

procedure NewText;
var
  Entry: PEntry;
begin
  GetMem(Entry, SizeOf(TEntry)); // got: never-set
  if not IsBad then
    Initialize(Entry^);
  Entry^.Name := 'name'; // bad: never-set
  FreeMem(Entry);
end;

// ---------------------------------------------------------------------------- leaks

procedure LostObject;
var
  Thing: TThing;
begin
  Thing := TThing.Create; // got: lost-object
  if not IsBad then
    Thing.Free;
end;

procedure LostCycle;
var
  One, Two: IActor;
begin
  One := TActor.Create; // got: cycle
  Two := TActor.Create;
  One.Link(Two);
  if IsBad then
    Two.Link(One);
end;

procedure LostItems;
var
  List: TStringList;
  Index: Integer;
begin
  List := TStringList.Create;
  for Index := 1 to 5 do
    List.AddObject(IntToStr(Index), TObject.Create); // got: items
  List.OwnsObjects := not IsBad;
  List.Free;
end;

procedure LostText;
var
  Wide: PWide;
begin
  New(Wide);
  Wide^.Name := StringOfChar('w', 30 + Ord(IsBad)); // got: lost-text
  if IsBad then
    Pointer(Wide^.Name) := nil; // bad: lost-text
  Dispose(Wide);
end;

// ---------------------------------------------------------------------------- all

procedure Work(Turns: Integer);
var
  Blocks: array[0..999] of PByte;
  Turn, Index: Integer;
begin
  FillChar(Blocks, SizeOf(Blocks), 0);
  for Turn := 1 to Turns do
  begin
    Index := Random(1000);
    FreeMem(Blocks[Index]);
    GetMem(Blocks[Index], 16 + Random(256));
    Blocks[Index]^ := 1;
  end;
  for Index := 0 to High(Blocks) do
    FreeMem(Blocks[Index]);
end;

const
  Mistakes: array[0..56] of TMistake = (
    (Name: 'over-one'; Kind: 'overrun'; Make: @OverOne; Marks: 'write block'),
    (Name: 'over-odd'; Kind: 'overrun'; Make: @OverOdd; Marks: 'write block'),
    (Name: 'over-large'; Kind: 'overrun'; Make: @OverLarge; Marks: 'write block'),
    (Name: 'over-move'; Kind: 'overrun'; Make: @OverMove; Marks: 'move block'),
    (Name: 'over-array'; Kind: 'overrun'; Make: @OverArray; Marks: 'array'),
    (Name: 'over-string'; Kind: 'overrun'; Make: @OverString; Marks: 'string'),
    (Name: 'over-object'; Kind: 'overrun'; Make: @OverObject; Marks: 'object'),
    (Name: 'over-shrunk'; Kind: 'overrun'; Make: @OverShrunk; Marks: 'write block shrunk'),
    (Name: 'over-record'; Kind: 'overrun'; Make: @OverRecord; Marks: 'record block'),
    (Name: 'over-list'; Kind: 'overrun'; Make: @OverList; Marks: 'list'),
    (Name: 'under-one'; Kind: 'underrun'; Make: @UnderOne; Marks: 'write block'),
    (Name: 'under-32'; Kind: 'underrun'; Make: @Under32; Marks: 'write block'),
    (Name: 'under-large'; Kind: 'underrun'; Make: @UnderLarge; Marks: 'write block'),
    (Name: 'read-over'; Kind: 'read'; Make: @ReadOver; Marks: 'read block'),
    (Name: 'read-over-large'; Kind: 'read'; Make: @ReadOverLarge; Marks: 'read block'),
    (Name: 'read-under'; Kind: 'read'; Make: @ReadUnder; Marks: 'read block'),
    (Name: 'freed-write'; Kind: 'freed'; Make: @FreedWrite; Marks: 'write block'),
    (Name: 'freed-write-large'; Kind: 'freed'; Make: @FreedWriteLarge; Marks: 'write block'),
    (Name: 'freed-read'; Kind: 'freed'; Make: @FreedRead; Marks: 'read block'),
    (Name: 'freed-read-large'; Kind: 'freed'; Make: @FreedReadLarge; Marks: 'read block'),
    (Name: 'freed-moved'; Kind: 'freed'; Make: @FreedMoved; Marks: 'write block'),
    (Name: 'freed-followed'; Kind: 'freed'; Make: @FreedFollowed; Marks: 'follow block'),
    (Name: 'freed-array'; Kind: 'freed'; Make: @FreedArray; Marks: 'values element'),
    (Name: 'freed-text'; Kind: 'freed'; Make: @FreedText; Marks: 'text char'),
    (Name: 'freed-virtual'; Kind: 'object'; Make: @FreedVirtual; Marks: 'virtual thing'),
    (Name: 'freed-count'; Kind: 'object'; Make: @FreedCount; Marks: 'count thing'),
    (Name: 'freed-text-length'; Kind: 'object'; Make: @FreedTextLength; Marks: 'text-length thing'),
    (Name: 'freed-notify'; Kind: 'object'; Make: @FreedNotify; Marks: 'notify thing'),
    (Name: 'freed-is'; Kind: 'object'; Make: @FreedIs; Marks: 'is thing'),
    (Name: 'freed-class-name'; Kind: 'object'; Make: @FreedClassName; Marks: 'name thing'),
    (Name: 'freed-twice'; Kind: 'object'; Make: @FreedTwice; Marks: 'twice thing'),
    (Name: 'freed-read-field'; Kind: 'object'; Make: @FreedReadField; Marks: 'field thing'),
    (Name: 'freed-item'; Kind: 'object'; Make: @FreedItem; Marks: 'use-item thing'),
    (Name: 'freed-interface'; Kind: 'object'; Make: @FreedInterface; Marks: 'interface actor'),
    (Name: 'released-twice'; Kind: 'object'; Make: @ReleasedTwice;
      Marks: 'release-again release-early released-actor'),
    (Name: 'twice-free'; Kind: 'twice'; Make: @TwiceFree; Marks: 'free block'),
    (Name: 'twice-dispose'; Kind: 'twice'; Make: @TwiceDispose; Marks: 'dispose-again entry'),
    (Name: 'twice-threads'; Kind: 'twice'; Make: @TwiceThreads; Marks: 'free block'),
    (Name: 'twice-string'; Kind: 'twice'; Make: @TwiceString; Marks: 'shared shared-again'),
    (Name: 'twice-array'; Kind: 'twice'; Make: @TwiceArray;
      Marks: 'shared-array shared-array-again'),
    (Name: 'inner-free'; Kind: 'invalid'; Make: @InnerFree; Marks: 'free block'),
    (Name: 'stack-free'; Kind: 'invalid'; Make: @StackFree; Marks: 'free'),
    (Name: 'global-free'; Kind: 'invalid'; Make: @GlobalFree; Marks: 'free'),
    (Name: 'wild-free'; Kind: 'invalid'; Make: @WildFree; Marks: 'free'),
    (Name: 'chars-free'; Kind: 'invalid'; Make: @CharsFree; Marks: 'free chars'),
    (Name: 'object-free'; Kind: 'invalid'; Make: @ObjectFree; Marks: 'free plain-object'),
    (Name: 'array-free'; Kind: 'invalid'; Make: @ArrayFree; Marks: 'free freed-array'),
    (Name: 'inner-resize'; Kind: 'invalid'; Make: @InnerResize; Marks: 'resize block'),
    (Name: 'new-freemem'; Kind: 'mismatch'; Make: @NewFreeMem; Marks: 'new'),
    (Name: 'getmem-dispose'; Kind: 'mismatch'; Make: @GetMemDispose; Marks: 'dispose not-new'),
    (Name: 'wrong-size'; Kind: 'mismatch'; Make: @WrongSize; Marks: 'size block'),
    (Name: 'new-followed'; Kind: 'never written'; Make: @NewFollowed; Marks: 'never-written'),
    (Name: 'new-text'; Kind: 'never written'; Make: @NewText; Marks: 'never-set'),
    (Name: 'lost-object'; Kind: 'leak'; Make: @LostObject; Marks: 'lost-object'),
    (Name: 'lost-cycle'; Kind: 'leak'; Make: @LostCycle; Marks: 'cycle'),
    (Name: 'lost-items'; Kind: 'leak'; Make: @LostItems; Marks: 'items'),
    (Name: 'lost-text'; Kind: 'leak'; Make: @LostText; Marks: 'lost-text'));

var
  Index, Made: Integer;
begin
  if ParamStr(1) = 'work' then
  begin
    Work(StrToInt(ParamStr(2)));
    Exit;
  end;
  IsBad := ParamStr(1) <> 'none';
  Made := 0;
  for Index := 0 to High(Mistakes) do
    if ParamStr(1) = 'list' then
      WriteLn(Mistakes[Index].Name, ' ', Mistakes[Index].Kind.Replace(' ', '-'), ' ',
        Mistakes[Index].Marks)
    else if not IsBad or (Mistakes[Index].Name = ParamStr(1)) then
    begin
      Mistakes[Index].Make();
      Inc(Made);
    end;
  if (Made = 0) and (ParamStr(1) <> 'list') then
    Halt(2);
  if Made > 0 then
    WriteLn(StdErr, 'done');
end.
