/// Tests of LaneMM.CodeRanges: backtraces that pass the border between a program and a library, each
/// with a copy of LaneMM.
unit Test.CodeRanges;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, Test.Cases;

type
  TCodeRangesTests = class(TProgramTest)
  strict private
    function FramesBelow(const Heading: string): string;
  protected
    procedure Act(const Word, Rest: string); override;
    function Value(const Name: string): string; override;
  end;

  TCall = procedure;

  /// A page of code, registered as that of another copy.
  TOtherCodeTests = class(TLaneTest)
  strict private
    Code: PByte;
    procedure AsOther(Call: TCall);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure OwnCodeIsReadInPlace;
    procedure OtherCodeIsCopied;
    procedure CodeOfAnUnloadedLibraryIsNotRead;
    procedure RangeEndsBeforeItsLimit;
    procedure CopyThatEndedHasNoCode;
    procedure EntriesAreUsedAgain;
    procedure NewCopyMakesOthersForgetTheirRules;
  end;

implementation

uses
  SysUtils, StrUtils, testregistry, Test.Programs, LaneMM.Os, LaneMM.StacksState, LaneMM.CodeRanges;

// A line of a backtrace: the routine and the line of the comment, in the program or in the library.
function FrameOf(const Routine, Mark: string): string;
const
  Options = '-O1 -Cg -gl -Xs-';
var
  Name: string;
begin
  Name := IfThen(StartsStr('PLUGIN.', Routine), 'Plugin', 'Plugged');
  Result := Format('%s %s.lpr:%d'#10, [Routine, Name, TestProgram(Name, Options).PlantedLine(Mark)]);
end;

// The routines and places of the backtrace with this heading, without their addresses.
function TCodeRangesTests.FramesBelow(const Heading: string): string;
var
  Line: string;
  IsBelow: Boolean;
begin
  Result := '';
  IsBelow := False;
  for Line in Output.Split([#10]) do
    if StartsStr('      ', Line) and (Length(ExtractWord(1, Line, [' '])) = WordSize * 2) then
    begin
      if IsBelow then
        Result := Result + ExtractWord(2, Line, [' ']) + ' ' + ExtractWord(3, Line, [' ']) + #10;
    end
    else
      IsBelow := StartsStr(Heading, Line);
end;

procedure TCodeRangesTests.Act(const Word, Rest: string);
var
  Frame, Expected, Found: string;
  Parts: TStringArray;
begin
  if Word <> 'frames' then
  begin
    inherited Act(Word, Rest);
    Exit;
  end;
  Parts := Rest.Split([': ']);
  Expected := '';
  for Frame in Parts[1].Split([',']) do
    Expected := Expected + FrameOf(Frame.Split(['='])[0], Frame.Split(['='])[1]);
  Found := FramesBelow(Parts[0]);
  if Found <> Expected + Expected then // both copies may explain it
    AssertEquals(Output, Expected, Found);
end;

function TCodeRangesTests.Value(const Name: string): string;
begin
  if Name = 'library' then
    Result := IfThen(Program_.IsForWindows, 'Plugin.dll', 'libPlugin.so')
  else if Name = 'stem' then
    Result := ChangeFileExt(Value('library'), '')
  else
    Result := inherited Value(Name);
end;

// ---------------------------------------------------------------------------- TOtherCodeTests

// Calls a routine of this copy as if its code were the page.
procedure TOtherCodeTests.AsOther(Call: TCall);
var
  First, Limit: NativeUInt;
begin
  First := Stacks.CodeFirst;
  Limit := Stacks.CodeLimit;
  Stacks.CodeFirst := NativeUInt(Code);
  Stacks.CodeLimit := Stacks.CodeFirst + OsPageSize;
  Call();
  Stacks.CodeFirst := First;
  Stacks.CodeLimit := Limit;
end;

procedure Register;
var
  Ranges: NativeUInt;
begin
  Ranges := Stacks.Ranges;
  Stacks.Ranges := 0;
  CodeRangesStart;
  Stacks.Ranges := Ranges;
end;

procedure TOtherCodeTests.SetUp;
var
  Index: Integer;
begin
  CodeRangesStart;
  AssertTrue('the page of all copies', Stacks.Ranges <> 0);
  Code := OsTakePages(OsPageSize);
  AssertTrue('a page of code', Code <> nil);
  for Index := 0 to OsPageSize - 1 do
    Code[Index] := Index mod 251;
  AsOther(Register);
end;

procedure TOtherCodeTests.TearDown;
begin
  AsOther(CodeRangesStop);
  OsReleasePages(Code, OsPageSize);
end;

procedure TOtherCodeTests.OwnCodeIsReadInPlace;
var
  Bytes: TCodeBytes;
begin
  AssertTrue(CodeAt(NativeUInt(@Register), Bytes) = @Register);
end;

procedure TOtherCodeTests.OtherCodeIsCopied;
const
  Place = 300;
var
  Bytes: TCodeBytes;
  Copied: PByte;
begin
  Copied := CodeAt(NativeUInt(Code + Place), Bytes);
  AssertTrue('where the copy lies', Copied = @Bytes[CodeBefore]);
  AssertTrue('the bytes around it', CompareMem(Code + Place - CodeBefore, @Bytes, SizeOf(Bytes)));
end;

// Another thread unloads it between two steps of a backtrace.
procedure TOtherCodeTests.CodeOfAnUnloadedLibraryIsNotRead;
const
  Place = 300;
var
  Bytes: TCodeBytes;
begin
  AssertTrue('while it is there', CodeAt(NativeUInt(Code + Place), Bytes) <> nil);
  AssertTrue(OsForbid(Code, OsPageSize));
  AssertTrue('code of a copy', IsCode(NativeUInt(Code + Place)));
  AssertTrue('that is not there', CodeAt(NativeUInt(Code + Place), Bytes) = nil);
end;

procedure TOtherCodeTests.RangeEndsBeforeItsLimit;
var
  First: NativeUInt;
begin
  AssertFalse('before it', IsCode(NativeUInt(Code - 1)));
  AssertTrue('its first byte', IsCode(NativeUInt(Code)));
  AssertTrue('its last byte', CodeFind(NativeUInt(Code + OsPageSize - 1), First));
  Same(NativeUInt(Code), First, 'where it begins');
  AssertFalse('its limit', IsCode(NativeUInt(Code + OsPageSize)));
end;

procedure TOtherCodeTests.CopyThatEndedHasNoCode;
begin
  AsOther(CodeRangesStop);
  AssertFalse('code of no copy', IsCode(NativeUInt(Code)));
  AssertTrue('own code', IsCode(NativeUInt(@Register)));
end;

// There are 64 of them.
procedure TOtherCodeTests.EntriesAreUsedAgain;
var
  Turn: Integer;
begin
  for Turn := 1 to 100 do
  begin
    AsOther(CodeRangesStop);
    AsOther(Register);
    AssertTrue(Format('copy %d', [Turn]), IsCode(NativeUInt(Code)));
  end;
end;

procedure TOtherCodeTests.NewCopyMakesOthersForgetTheirRules;
var
  Before: NativeUInt;
begin
  IsCode(NativeUInt(Code));
  Before := Stacks.CodeChanges;
  IsCode(NativeUInt(Code));
  Same(Before, Stacks.CodeChanges, 'changes without a new copy');
  AsOther(CodeRangesStop);
  AsOther(Register);
  IsCode(NativeUInt(Code));
  Same(Before + 1, Stacks.CodeChanges, 'changes with a new copy');
end;

initialization
  RegisterCases(TCodeRangesTests, 'stacks/CodeRanges');
  RegisterTest(TOtherCodeTests);
end.
