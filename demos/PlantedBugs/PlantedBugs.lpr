/// Ten memory errors, one in each run: does the memory manager report it?
///
/// `demos/bugs.sh` runs each error under heaptrc of Free Pascal and under LaneMM, and checks
/// whether the report names the line that is marked here.
program PlantedBugs;

{$mode delphi}{$H+}

uses
  SysUtils, Demo.Options;

const
  Usage =
    'Makes one memory error and ends normally.'#10 +
    '  --bug=NAME      the error; without it, all names are printed'#10 +
    '  --work=N        no error: allocates and frees N blocks of mixed sizes instead'#10;
  BlockSize = 100;

type
  TPart = class
    Number: Integer;
    function Describe: string; virtual;
  end;

  ILink = interface
    procedure Join(const Other: ILink);
  end;

  TLink = class(TInterfacedObject, ILink)
  private
    FOther: ILink;
  public
    procedure Join(const Other: ILink);
  end;

  TBug = record
    Name: string;
    Make: procedure;
  end;

function TPart.Describe: string;
begin
  Result := IntToStr(Number);
end;

procedure TLink.Join(const Other: ILink);
begin
  FOther := Other;
end;

procedure LeakObject;
var
  Part: TPart;
begin
  Part := TPart.Create; // planted: leaked-object
  Part.Number := 1;
end;

procedure LeakCycle;
var
  One, Two: ILink;
begin
  One := TLink.Create; // planted: leaked-cycle
  Two := TLink.Create;
  One.Join(Two);
  Two.Join(One);
end;

procedure FreeTwice;
var
  P: Pointer;
begin
  GetMem(P, BlockSize);
  FreeMem(P);
  FreeMem(P); // planted: double-free
end;

procedure FreeInside;
var
  P: PByte;
begin
  GetMem(P, BlockSize);
  FreeMem(P + 16); // planted: inner-pointer
end;

procedure FreeWrongSize;
var
  P: Pointer;
begin
  GetMem(P, BlockSize);
  FreeMem(P, BlockSize div 2); // planted: wrong-size
end;

procedure WriteBefore;
var
  P: PByte;
begin
  GetMem(P, BlockSize); // planted: write-before
  (P - 1)^ := 1;
  FreeMem(P);
end;

procedure WriteBehind;
var
  P: PByte;
begin
  GetMem(P, BlockSize); // planted: write-behind
  (P + BlockSize)^ := 1;
  FreeMem(P);
end;

procedure WriteAfterFree;
var
  P: PByte;
begin
  GetMem(P, BlockSize); // planted: write-after-free
  FreeMem(P);
  (P + BlockSize div 2)^ := 1;
end;

procedure CallFreed;
var
  Part: TPart;
begin
  Part := TPart.Create;
  Part.Free;
  Part.Describe; // planted: freed-object
end;

procedure UseFreedInterface;
var
  Link: ILink;
  Kept: Pointer;
begin
  Link := TLink.Create;
  Kept := Pointer(Link);
  Link := nil;
  ILink(Kept).Join(nil); // planted: freed-interface
end;

const
  Bugs: array[0..9] of TBug = (
    (Name: 'leaked-object'; Make: LeakObject),
    (Name: 'leaked-cycle'; Make: LeakCycle),
    (Name: 'double-free'; Make: FreeTwice),
    (Name: 'inner-pointer'; Make: FreeInside),
    (Name: 'wrong-size'; Make: FreeWrongSize),
    (Name: 'write-before'; Make: WriteBefore),
    (Name: 'write-behind'; Make: WriteBehind),
    (Name: 'write-after-free'; Make: WriteAfterFree),
    (Name: 'freed-object'; Make: CallFreed),
    (Name: 'freed-interface'; Make: UseFreedInterface));

procedure MakeBug(const Name: string);
var
  Bug: TBug;
begin
  for Bug in Bugs do
    if Bug.Name = Name then
    begin
      Bug.Make;
      Exit;
    end;
  OptionFail('there is no bug ' + Name);
end;

procedure PrintNames;
var
  Bug: TBug;
begin
  for Bug in Bugs do
    WriteLn(Bug.Name);
end;

/// Allocates and frees Count blocks of 16 to 1,015 bytes, a thousand in use at a time.
procedure Work(Count: Integer);
const
  SizeCount = 1000;
  Step = 7919; // a prime, so that the sizes come in no order
var
  Blocks: array[0..SizeCount - 1] of Pointer;
  I: Integer;
begin
  FillChar(Blocks, SizeOf(Blocks), 0);
  for I := 0 to Count - 1 do
  begin
    FreeMem(Blocks[I * Step mod SizeCount]);
    GetMem(Blocks[I * Step mod SizeCount], 16 + Int64(I) * I mod SizeCount);
  end;
  for I := 0 to High(Blocks) do
    FreeMem(Blocks[I]);
end;

begin
  OptionsRead(Usage, ['bug=', 'work=']);
  if OptionText('bug', '') <> '' then
    MakeBug(OptionText('bug', ''))
  else if OptionText('work', '') <> '' then
    Work(OptionNumber('work', 1000000, 1000000000))
  else
    PrintNames;
end.
