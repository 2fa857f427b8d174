/// Allocates all available memory, in blocks of a given size, catches EOutOfMemory, and then saves
/// its work, which needs some megabytes. Exit code 0 on success; without a reserve it fails.
/// With a second parameter, `later`, it first waits until free memory was purged.
/// With `grow` it resizes a block of 40 MB to 60 MB: the pages move, so they are not needed twice.
program LastWords;

{$mode delphi}{$H+}

uses
  LaneMM, cthreads, SysUtils, Classes;

type
  PLink = ^TLink;
  TLink = record
    Next: PLink;
    Number: NativeUInt;
  end;

const
  // Numbers that are worth saving; their text takes three megabytes, twice.
  WorkCount = 100000;
  DelayMs = 500; // free memory waits as long for the next use

var
  First: PLink;
  Count: NativeUInt;

procedure TakeAll(Size: NativeUInt);
var
  Link: PLink;
begin
  repeat
    GetMem(Link, Size);
    Link^.Next := First;
    Link^.Number := Count;
    First := Link;
    Inc(Count);
  until Count = 0;
end;

function WorkAsText: string;
var
  Lines: TStringList;
  Link: PLink;
begin
  Lines := TStringList.Create;
  Link := First;
  while (Link <> nil) and (Lines.Count < WorkCount) do
  begin
    Lines.Add(IntToStr(Link^.Number));
    Link := Link^.Next;
  end;
  Result := Lines.Text;
  Lines.Free;
end;

// Returns whether the file begins with the number of the block allocated last.
function IsSaved(const FileName: string): Boolean;
var
  Saved: TextFile;
  Number: NativeUInt;
begin
  AssignFile(Saved, FileName);
  Reset(Saved);
  ReadLn(Saved, Number);
  CloseFile(Saved);
  Result := Number = First^.Number;
end;

procedure Save;
var
  FileName: string;
  Stream: TFileStream;
  Text: string;
begin
  FileName := ParamStr(0) + '.saved';
  Text := WorkAsText;
  Stream := TFileStream.Create(FileName, fmCreate);
  Stream.WriteBuffer(Text[1], Length(Text));
  Stream.Free;
  if not IsSaved(FileName) then
    Halt(2);
end;

procedure Grow;
var
  Block: PByte;
begin
  GetMem(Block, 40 shl 20);
  Block[40 shl 20 - 1] := 7;
  ReallocMem(Block, 60 shl 20);
  Halt(Ord(Block[40 shl 20 - 1] <> 7));
end;

begin
  if ParamStr(1) = 'grow' then
    Grow;
  try
    TakeAll(StrToInt(ParamStr(1)));
  except
    on E: EOutOfMemory do
    begin
      if ParamStr(2) = 'later' then
        Sleep(3 * DelayMs);
      Save;
      WriteLn('saved: ', E.Message);
      Halt(0);
    end;
  end;
  Halt(1);
end.
