/// Tests of LaneMM.CodeRanges: backtraces that pass the border between a program and a library, each
/// with a copy of LaneMM.
unit Test.CodeRanges;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, Test.Programs;

type
  TCodeRangesTests = class(TLaneTest)
  strict private
    Host, Library_: TTestProgram;
    function Frame(const Routine, What: string): string;
    function FramesBelow(const Heading: string): string;
    procedure Compare(const Mistake: string; const Headings, Stacks: array of string);
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure BlockOfTheLibraryFreedByTheProgram;
    procedure BlockOfTheProgramFreedByTheLibrary;
    procedure CallOfTheProgramByTheLibrary;
    procedure LeakOfAnUnloadedLibrary;
    procedure ReportsOfTheLibrarySayThatTheyAreItsOwn;
    procedure DoubleFreeOfABlockOfTheLibrary;
    procedure FaultInTheLibraryHasItsFrames;
    procedure FaultReachesTheProgramThroughBothCopies;
    procedure FaultReachesTheProgramAfterTheLibraryHasLeft;
    procedure LibraryIsLoadedAgainAndAgain;
    procedure SameWorkWithoutMistakesIsSilent;
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
  SysUtils, Classes, StrUtils, testregistry, LaneMM.Os, LaneMM.StacksState,
  LaneMM.CodeRanges;

const
  Options = '-O1 -Cg -gl -Xs-';
  Got = '  Allocated by thread';
  Found = '  Detected at';

procedure TCodeRangesTests.SetUp;
begin
  Library_ := TTestProgram.Create('Plugin', Options);
  Host := TTestProgram.Create('Plugged', Options);
end;

procedure TCodeRangesTests.TearDown;
begin
  Library_.Free;
  Host.Free;
end;

// A line of a backtrace: the routine and the line of the comment, in the program or in the library.
function TCodeRangesTests.Frame(const Routine, What: string): string;
begin
  if StartsStr('PLUGIN.', Routine) then
    Result := Format('%s Plugin.lpr:%d', [Routine, Library_.PlantedLine(What)])
  else
    Result := Format('%s Plugged.lpr:%d', [Routine, Host.PlantedLine(What)]);
end;

// The routines and places of the backtrace with this heading, without their addresses.
function TCodeRangesTests.FramesBelow(const Heading: string): string;
var
  Line: string;
  IsBelow: Boolean;
begin
  Result := '';
  IsBelow := False;
  for Line in Host.Errors.Split([#10]) do
    if StartsStr('      ', Line) and (Length(ExtractWord(1, Line, [' '])) = WordSize * 2) then
    begin
      if IsBelow then
        Result := Result + ExtractWord(2, Line, [' ']) + ' ' + ExtractWord(3, Line, [' ']) + #10;
    end
    else
      IsBelow := StartsStr(Heading, Line);
end;

// Stacks: of each heading, the frames as `ROUTINE=comment`, with commas between.
procedure TCodeRangesTests.Compare(const Mistake: string;
  const Headings, Stacks: array of string);
var
  Index: Integer;
  Entry, Expected: string;
begin
  Host.Run('debug,leaks,dump=0', [Mistake]);
  Host.EndedWith(0);
  for Index := 0 to High(Headings) do
  begin
    Expected := '';
    for Entry in Stacks[Index].Split([',']) do
      Expected := Expected + Frame(Entry.Split(['='])[0], Entry.Split(['='])[1]) + #10;
    AssertEquals(Headings[Index] + ' in ' + Host.Errors, Expected, FramesBelow(Headings[Index]));
  end;
end;

procedure TCodeRangesTests.BlockOfTheLibraryFreedByTheProgram;
begin
  Compare('given', [Got, Found],
    ['PLUGIN.MAKE=made,PLUGIN.PLUGINGET=get,PLUGGED.GIVE=given,PLUGGED.RUN=run,main=run given',
    'PLUGGED.FREEGIVEN=given freed,PLUGGED.GIVE=give,PLUGGED.RUN=run,main=run given']);
  Has('Heap block overrun: ', Host.Errors);
end;

procedure TCodeRangesTests.BlockOfTheProgramFreedByTheLibrary;
begin
  Compare('returned', [Got, Found],
    ['PLUGGED.GIVEBACK=own,PLUGGED.RUN=run,main=run returned',
    'PLUGIN.DROP=dropped,PLUGIN.PLUGINPUT=put,PLUGGED.GIVEBACK=returned,PLUGGED.RUN=run,'
    + 'main=run returned']);
  Has('Heap block overrun: ', Host.Errors);
end;

procedure TCodeRangesTests.CallOfTheProgramByTheLibrary;
const
  Outer = ',PLUGIN.PLUGINVISIT=visit,PLUGGED.BEVISITED=visited,PLUGGED.RUN=run,main=run visited';
begin
  Compare('visited', [Got, Found],
    ['PLUGGED.VISIT=visit got' + Outer, 'PLUGGED.VISIT=visit freed' + Outer]);
  Has('Heap block overrun: ', Host.Errors);
end;

procedure TCodeRangesTests.LeakOfAnUnloadedLibrary;
begin
  Compare('lost', ['      1, 100 bytes allocated'],
    ['PLUGIN.MAKE=made,PLUGIN.PLUGINGET=get,PLUGGED.LOSE=lost,PLUGGED.RUN=run,main=run lost']);
end;

procedure TCodeRangesTests.ReportsOfTheLibrarySayThatTheyAreItsOwn;
var
  Files: TStringList;
  LibraryName: string;
begin
  LibraryName := IfThen(Host.IsForWindows, 'Plugin.dll', 'libPlugin.so');
  Host.Run('leaks,leaks:format=json', ['both']);
  Has(' both:'#10'Memory leaks: 1 block', Host.Errors);
  Has(' both, library ' + LibraryName + ':'#10'Memory leaks: 1 block', Host.Errors);
  Files := Host.FilesOf('.json');
  Same(2, Files.Count, 'files: ' + Files.CommaText);
  Has('_' + ChangeFileExt(LibraryName, '') + '_MemoryManager_', Files.Text);
  HasNot('"library"', Host.Written('.json'));
  Files.Free;
end;

procedure TCodeRangesTests.DoubleFreeOfABlockOfTheLibrary;
const
  Outer = ',PLUGGED.RUN=run,main=run twice';
begin
  Compare('twice', [Got, '  Freed by thread', '  Occurred at'],
    ['PLUGIN.MAKE=made,PLUGIN.PLUGINGET=get,PLUGGED.FREETWICE=twice got' + Outer,
    'PLUGIN.DROP=dropped,PLUGIN.PLUGINPUT=put,PLUGGED.FREETWICE=twice put' + Outer,
    'PLUGGED.FREETWICE=twice freed' + Outer]);
  Has('Double free: ', Host.Errors);
end;

procedure TCodeRangesTests.FaultInTheLibraryHasItsFrames;
var
  Frames, Expected: string;
begin
  Host.Run('debug,dump=0', ['used']);
  Expected := Frame('PLUGIN.TOUCH', 'touched') + #10 + Frame('PLUGIN.PLUGINUSE', 'use') + #10
    + Frame('PLUGGED.USEFREED', 'used') + #10 + Frame('PLUGGED.RUN', 'run') + #10
    + Frame('main', 'run used') + #10;
  Frames := FramesBelow('  Occurred at');
  if Frames <> Expected + Expected then // both copies may explain it
    AssertEquals(Host.Errors, Expected, Frames);
  Has('Use after free: the contents of a freed block were used as an address.', Host.Errors);
end;

procedure TCodeRangesTests.FaultReachesTheProgramThroughBothCopies;
begin
  Host.Run('debug', ['fault']);
  Host.EndedWith(0);
end;

procedure TCodeRangesTests.FaultReachesTheProgramAfterTheLibraryHasLeft;
begin
  Host.Run('debug', ['gone']);
  Host.EndedWith(0);
end;

// Each time its code may lie elsewhere, and where other code was.
procedure TCodeRangesTests.LibraryIsLoadedAgainAndAgain;
begin
  Host.Run('debug', ['again']);
  Host.EndedWith(0);
  AssertEquals('', Host.Errors);
end;

procedure TCodeRangesTests.SameWorkWithoutMistakesIsSilent;
begin
  Host.Run('debug,leaks', ['none']);
  Host.EndedWith(0);
  AssertEquals('', Host.Errors);
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
  RegisterTest(TCodeRangesTests);
  RegisterTest(TOtherCodeTests);
end.
